"""KernelSHAP (2017): Shapley values of parts of a series by a weighted regression."""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np

from timesliver.explainers.base import Case
from timesliver.explainers.surrogate import SurrogateExplainer, count_distinct
from timesliver.network.batch import Batch
from timesliver.typing import BoolArray, FloatArray

__all__ = ["KernelSHAP", "draw_coalitions", "fit_shapley"]

_RIDGE = 1e-3


class KernelSHAP(SurrogateExplainer):
    """Share the logit among the parts of a series as Shapley values do.

    Options are those of `SurrogateExplainer`. In the "fair" setting sets of parts are drawn by the
    Shapley kernel, each with its complement, or all of them asked where that takes no more
    samples. The scores of a case sum exactly to its logit minus that of the series set to 0, which
    is the `bias`; the value of a segment is spread evenly over its points.
    """

    name = "kernel_shap"
    captum_name = "KernelShap"

    def _by_captum(self, one: Batch, case: Case) -> tuple[FloatArray, float]:
        if one.n_channels * int(one.lengths[0]) == 1:  # captum has no set to draw
            return self._by_segments(one, case)
        scores, _ = super()._by_captum(one, case)
        return scores, self._ends(one, case, [False])[0]

    def _by_segments(self, one: Batch, case: Case) -> tuple[FloatArray, float]:
        rng = np.random.default_rng(case.seed)
        empty, full = self._ends(one, case, [False, True])
        segmentations = self._segmentations(one)
        n = self._samples_per_grid(segmentations)
        scores = []
        for parts in segmentations:
            kept, weights = draw_coalitions(int(parts.max()) + 1, n, rng)
            gains = self._ask(one, case, parts, kept) - empty
            values = fit_shapley(kept, gains, weights, full - empty)
            scores.append((values / np.bincount(parts.ravel()))[parts])
        return np.mean(scores, axis=0), empty

    def _ends(self, one: Batch, case: Case, kept: list[bool]) -> list[float]:
        """Return the logits of the whole series (True) and of the series set to 0 (False)."""
        whole = np.zeros((1, int(one.lengths[0])), dtype=np.int64)
        ends: list[float] = self._ask(one, case, whole, np.array(kept)[:, None]).tolist()
        return ends


def draw_coalitions(
    n_parts: int, n_samples: int, rng: np.random.Generator
) -> tuple[BoolArray, FloatArray]:
    """Draw sets of parts, neither empty nor full, by the Shapley kernel.

    Parameters
    ----------
    n_parts : int
        Number of parts, K.
    n_samples : int
        Most sets; each comes with its complement. If there are no more than that many, all are
        returned and their weights are the kernel itself.
    rng : numpy generator
        Source of chance.

    Returns
    -------
    kept : bool array of shape (n, K)
        Different sets.
    weights : float array of shape (n,)
        How much each counts, 1 for a set drawn once.
    """
    if 2**n_parts - 2 <= n_samples:
        subsets = list(product((False, True), repeat=n_parts))[1:-1]
        kept = np.array(subsets, dtype=bool).reshape(-1, n_parts)
        kernel = np.array(
            [1 / (comb(n_parts, s) * s * (n_parts - s)) for s in kept.sum(1).tolist()]
        )
        return kept, kernel * (len(kernel) / kernel.sum()) if len(kernel) else kernel
    sizes = np.arange(1, n_parts)
    chances = 1 / (sizes * (n_parts - sizes))
    drawn = rng.choice(sizes, size=n_samples // 2, p=chances / chances.sum())
    order = rng.random((len(drawn), n_parts)).argsort(axis=1)
    half = order < drawn[:, None]
    kept, counts = count_distinct(np.concatenate([half, ~half]))
    return kept, counts.astype(np.float64)


def fit_shapley(
    kept: BoolArray, gains: FloatArray, weights: FloatArray, total: float
) -> FloatArray:
    """Return the values of the parts, (K,), that fit the gains best among those that sum to total.

    Weighted least squares with a small ridge; a Lagrange multiplier holds the sum, which
    scikit-learn's `Ridge` cannot. (To put total minus the others in place of one value would
    shrink the others only.)
    """
    z = kept.astype(np.float64)
    normal = (z * weights[:, None]).T @ z + _RIDGE * np.eye(z.shape[1])
    right = (z * weights[:, None]).T @ gains
    free, slope = np.linalg.solve(normal, np.stack([right, np.ones_like(right)], axis=1)).T
    values: FloatArray = free + slope * ((total - free.sum()) / slope.sum())
    return values
