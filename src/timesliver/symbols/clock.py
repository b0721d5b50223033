"""Symbols that all channels share: which part of the series it is, or nothing at all."""

from __future__ import annotations

import numpy as np

from timesliver.errors import check_count
from timesliver.series import PaddedSeries
from timesliver.symbols.base import Symbolizer, code_dtype
from timesliver.typing import CodeArray

__all__ = ["Clock", "One"]


class Clock(Symbolizer):
    """Tell the time: the symbol says which of so many equal parts of its series a point lies in.

    The interaction then knows early from late, which the paper's symbols do not.

    Parameters
    ----------
    n_bins : int
        Number of parts.

    Examples
    --------
    >>> Clock(3).fit_transform(np.zeros((1, 2, 6))).tolist()
    [[[1, 1, 2, 2, 3, 3]]]
    """

    name = "clock"
    shared = True

    def __init__(self, n_bins: int = 4) -> None:
        self.n_bins = n_bins
        self._check()

    def _check(self) -> None:
        check_count("n_bins", self.n_bins, 1, 32766)

    @property
    def n_symbols(self) -> int:
        """Number of parts."""
        return int(self.n_bins)

    def _transform(self, series: PaddedSeries) -> CodeArray:
        t = np.arange(series.n_timepoints)
        parts = t * self.n_symbols // series.lengths[:, None] + 1
        codes: CodeArray = np.minimum(parts, self.n_symbols).astype(code_dtype(self.n_symbols))
        return codes[:, None]


class One(Symbolizer):
    """Give every point the same symbol: the interaction is then the mean of the encoder's rows.

    Examples
    --------
    >>> One().fit_transform(np.array([[5.0, np.nan, 7.0]])).tolist()
    [[[1, 0, 1]]]
    """

    name = "one"
    shared = True
    n_symbols = 1

    def _transform(self, series: PaddedSeries) -> CodeArray:
        return np.ones((len(series), 1, series.n_timepoints), np.uint8)
