"""LIME (2016): a local linear model of which parts of a series the logit needs."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import Ridge

from timesliver.explainers.base import Case
from timesliver.explainers.surrogate import SurrogateExplainer, count_distinct
from timesliver.network.batch import Batch
from timesliver.typing import FloatArray

__all__ = ["LIME"]

_WIDTH = 0.25  # of the kernel, as a share of the parts
_ALPHA = 1.0


class LIME(SurrogateExplainer):
    """Keep each part by the toss of a coin, and regress the logit on what was kept.

    Options are those of `SurrogateExplainer`. In the "fair" setting a sample counts
    ``exp(-(1 - kept share)^2 / (2 * 0.25^2))`` and the regression is a ridge with alpha 1; a point
    gets the coefficient of its segment, the mean over the grids.
    """

    name = "lime"
    captum_name = "Lime"

    def _by_segments(self, one: Batch, case: Case) -> tuple[FloatArray, float]:
        rng = np.random.default_rng(case.seed)
        segmentations = self._segmentations(one)
        n = self._samples_per_grid(segmentations)
        scores = []
        for parts in segmentations:
            kept, counts = count_distinct(rng.random((n, parts.max() + 1)) < 0.5)
            weights = counts * np.exp(-((1 - kept.mean(1)) ** 2) / (2 * _WIDTH**2))
            outputs = self._ask(one, case, parts, kept)
            ridge = Ridge(_ALPHA).fit(kept, outputs, sample_weight=weights)
            scores.append(ridge.coef_[parts])
        return np.mean(scores, axis=0), 0.0
