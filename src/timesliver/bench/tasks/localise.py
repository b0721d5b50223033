"""How well explanations point at the moments that are known to decide."""

from __future__ import annotations

import math

import numpy as np

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import tested
from timesliver.bench.tasks.explaining import explained
from timesliver.errors import InvalidInputError
from timesliver.metrics import auprc, pointing_game
from timesliver.typing import JSONDict

__all__ = ["perform"]


def perform(job: Job, cache: Cache) -> JSONDict:
    """Return areas at time and cell level, ties, hits, accuracy and cost."""
    scores = explained(job, cache)
    test = tested(job)
    if test.salient is None or test.y is None:
        raise InvalidInputError(f"{job.dataset} does not know which moments decide")
    salient, y = test.salient, test.y
    positive = auprc(scores, salient)
    result: JSONDict = {
        "time_ap": positive.mean,
        "time_trapezoid": auprc(scores, salient, area="trapezoid").mean,
        "time_ties": positive.tie_fraction,
        "time_constant": positive.n_constant / max(1, len(scores) - positive.n_skipped),
        "total_ap": auprc(scores, salient, part="magnitude").mean,
        "total_trapezoid": auprc(scores, salient, part="magnitude", area="trapezoid").mean,
        "cell_ap": None,
        "cell_total_ap": None,
        "pointing": pointing_game(scores, salient).mean,
        "n_cases": len(scores),
        "n_without_truth": positive.n_skipped,
        "accuracy": float(np.mean(scores.classes[scores.target] == y)),
        "by_class": {
            str(label): _mean(positive.per_case[y == label]) for label in np.unique(y).tolist()
        },
        "seconds_per_case": None if scores.seconds is None else float(scores.seconds.mean()),
        "forward_passes": (
            None if scores.forward_passes is None else float(scores.forward_passes.mean())
        ),
    }
    if scores.has_channels and salient.shape[1] > 1:
        result["cell_ap"] = auprc(scores, salient, level="cell").mean
        result["cell_total_ap"] = auprc(scores, salient, level="cell", part="magnitude").mean
    return result


def _mean(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return None if not len(known) or math.isnan(known.mean()) else float(known.mean())
