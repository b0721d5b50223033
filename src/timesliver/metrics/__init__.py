"""How good an explanation is.

`localisation` compares with known truth, `unmasking` retrains on what an explanation keeps,
`faithfulness` and `infidelity` perturb without retraining, `axioms` measure what any explanation
should satisfy, `controls` are the rows every table needs, `ranking` compares methods over sets.
"""

from timesliver.metrics.axioms import Axioms, axioms
from timesliver.metrics.controls import controls, untrained
from timesliver.metrics.faithfulness import (
    PerturbationCurve,
    aopcr,
    deletion_curve,
    insertion_curve,
    logit_change,
)
from timesliver.metrics.infidelity import infidelity, sensitivity_max
from timesliver.metrics.localisation import (
    Localisation,
    aup,
    auprc,
    aur,
    auroc,
    pointing_game,
    top_k_precision,
)
from timesliver.metrics.masking import mask_points, top_points
from timesliver.metrics.ranking import (
    PairwiseTests,
    average_ranks,
    critical_difference_diagram,
    top_counts,
    wilcoxon_holm,
)
from timesliver.metrics.summary import Summary
from timesliver.metrics.unmasking import (
    UnmaskingCurve,
    predicted_scores,
    unmasking_area,
    unmasking_curve,
)

__all__ = [
    "Axioms",
    "Localisation",
    "PairwiseTests",
    "PerturbationCurve",
    "Summary",
    "UnmaskingCurve",
    "aopcr",
    "aup",
    "auprc",
    "aur",
    "auroc",
    "average_ranks",
    "axioms",
    "controls",
    "critical_difference_diagram",
    "deletion_curve",
    "infidelity",
    "insertion_curve",
    "logit_change",
    "mask_points",
    "pointing_game",
    "predicted_scores",
    "sensitivity_max",
    "top_counts",
    "top_k_precision",
    "top_points",
    "unmasking_area",
    "unmasking_curve",
    "untrained",
    "wilcoxon_holm",
]
