"""`Batch`: series as any network takes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from timesliver.series import PaddedSeries, equal_slices

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Series as a network takes them.

    Attributes
    ----------
    values : float tensor of shape (B, v, L)
        The standardised series, 0 where nothing was observed.
    observed : bool tensor of shape (B, v, L)
        False where a value is missing or past the end of a case.
    lengths : int64 tensor of shape (B,)
        Number of time points of each case, without its padding.
    views : tuple
        Other forms of the same cases, such as their symbols, with one row for each case.
    """

    values: Tensor
    observed: Tensor
    lengths: Tensor
    views: tuple[Any, ...] = ()

    @classmethod
    def of(cls, values: NDArray[Any], series: PaddedSeries) -> Batch:
        """Take values for the points of series, such as their standardised ones, as float32."""
        return cls(
            torch.from_numpy(values.astype(np.float32)),
            torch.from_numpy(series.observed),
            torch.from_numpy(series.lengths),
        )

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return self.values.shape[1]

    @property
    def n_timepoints(self) -> int:
        """Number of time points of the padded array."""
        return self.values.shape[2]

    @property
    def inside(self) -> Tensor:
        """True for the points of each case and False for its padding, shape (B, L)."""
        t = torch.arange(self.n_timepoints, device=self.lengths.device)
        return t < self.lengths[:, None]

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, cases: Any) -> Batch:
        return Batch(
            self.values[cases],
            self.observed[cases],
            self.lengths[cases],
            tuple(view[cases] for view in self.views),
        )

    def to(self, device: torch.device | str) -> Batch:
        """Move everything to a device."""
        return Batch(
            self.values.to(device),
            self.observed.to(device),
            self.lengths.to(device),
            tuple(view.to(device) for view in self.views),
        )

    def split(self, numbers_per_case: int, budget: int = 1 << 21) -> Iterator[Batch]:
        """Cut into batches of equal size for which that many numbers per case fit the budget."""
        for part in equal_slices(len(self), numbers_per_case, budget):
            yield self[part]
