"""No symbols: the paper's ablation, in which learnt projections of the values replace O."""

from __future__ import annotations

import numpy as np

from timesliver.errors import check_count
from timesliver.series import PaddedSeries
from timesliver.symbols.base import Symbolizer
from timesliver.typing import CodeArray

__all__ = ["Raw"]


class Raw(Symbolizer):
    """Mark which points are observed, and leave the rest to the network.

    The network then replaces the ``n_bins`` one-hot columns of a channel by ``n_bins`` learnt
    affine functions of the raw value (`timesliver.network.composition.RawProjection`).

    Parameters
    ----------
    n_bins : int
        Number of learnt columns per channel, in place of the number of symbols.
    """

    name = "raw"
    settings = ("n_bins",)

    def __init__(self, n_bins: int = 20):
        check_count("n_bins", n_bins, 2, 32766)
        self.n_bins = int(n_bins)

    @property
    def n_symbols(self) -> int:
        """Number of learnt columns of each channel."""
        return self.n_bins

    def _transform(self, series: PaddedSeries) -> CodeArray:
        return np.ones(series.values.shape, dtype=np.uint8)
