"""SAX: z-scores cut at Gaussian quantiles, the paper's default h(x; n, w)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from timesliver.errors import check_choice, check_count
from timesliver.series import PaddedSeries
from timesliver.symbols.base import BLOCK, TIE, Symbolizer, code_dtype, standardize
from timesliver.typing import CodeArray

__all__ = ["SAX"]

# Values that were not divided by their own spread end here, so that their sums are finite.
_HUGE = 1e290


class SAX(Symbolizer):
    """Symbolic Aggregate approXimation of every point of every channel.

    Parameters
    ----------
    n_bins : int
        Number of symbols per channel, cut so that each has the same share of a Gaussian.
    normalize : "instance", "global" or None
        Z-scores within each case and channel; or with the mean and standard deviation that each
        channel had in ``fit``; or none. A channel without spread gets the middle symbol.
    window : int
        Compression window ``w``: the mean of every ``w`` successive points decides the symbol
        that all of them carry.

    Examples
    --------
    >>> import numpy as np
    >>> SAX(n_bins=4).fit_transform(np.array([[-3.0, -1.0, 1.0, 3.0, np.nan]])).tolist()
    [[[1, 2, 3, 4, 0]]]
    """

    name = "sax"
    learned = ("mean_", "scale_")

    def __init__(
        self, n_bins: int = 20, normalize: str | None = "instance", window: int = 1
    ) -> None:
        self.n_bins = n_bins
        self.normalize = normalize
        self.window = window
        self._check()

    def _check(self) -> None:
        check_count("n_bins", self.n_bins, 2, 32766)
        check_choice("normalize", self.normalize, ("instance", "global", None))
        check_count("window", self.window, 1)

    @property
    def n_symbols(self) -> int:
        """Number of symbols of each channel."""
        return int(self.n_bins)

    def _fit(self, series: PaddedSeries) -> None:
        if self.normalize == "global":
            self.mean_, self.scale_ = series.moments()

    def _transform(self, series: PaddedSeries) -> CodeArray:
        breakpoints = ndtri(np.arange(1, self.n_bins) / self.n_bins) - TIE
        codes = np.empty(series.values.shape, dtype=code_dtype(self.n_bins))
        step = max(1, BLOCK // (series.n_channels * series.n_timepoints))
        for start in range(0, len(series), step):
            block = series[start : start + step]
            z = self._normalized(block)
            if self.window > 1:
                z = _window_means(z, block.observed, self.window)
            codes[start : start + step] = np.searchsorted(breakpoints, z, side="right")
        codes += 1
        return codes

    def _normalized(self, series: PaddedSeries) -> NDArray[np.float64]:
        if self.normalize == "instance":
            return standardize(series.values, series.observed)
        if self.normalize == "global":
            return series.standardized(self.mean_, self.scale_, _HUGE)
        return np.clip(series.values.astype(np.float64), -_HUGE, _HUGE)


def _window_means(z: NDArray[np.float64], observed: Any, window: int) -> NDArray[np.float64]:
    """Replace each point by the mean over the observed points of its window."""
    starts = np.arange(0, z.shape[-1], window)
    total = np.add.reduceat(np.where(observed, z, 0.0), starts, axis=-1)
    count = np.add.reduceat(observed.astype(np.int64), starts, axis=-1)
    means = total / np.maximum(count, 1)
    return np.repeat(means, window, axis=-1)[..., : z.shape[-1]]
