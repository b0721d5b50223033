"""`Inputs`: series as explainers vary them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from timesliver.series import PaddedSeries

__all__ = ["Inputs", "as_inputs"]


@dataclass(frozen=True)
class Inputs:
    """Series as a model takes them.

    Attributes
    ----------
    values : float32 tensor of shape (B, v, L)
        What the explainers vary: standardised where the model standardises, so that 0 is the
        training mean; 0 where nothing was observed.
    observed : bool tensor of shape (B, v, L)
        False where a value is missing or past the end of a case.
    lengths : int64 tensor of shape (B,)
        Number of time points of each case, without its padding.
    """

    values: Tensor
    observed: Tensor
    lengths: Tensor

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, cases: Any) -> Inputs:
        return Inputs(self.values[cases], self.observed[cases], self.lengths[cases])

    def repeated(self, n: int) -> Inputs:
        """Return a single case n times."""
        return self[torch.zeros(n, dtype=torch.long)]

    @property
    def inside(self) -> Tensor:
        """Return True for the points of each case and False for its padding, shape (B, L)."""
        t = torch.arange(self.values.shape[2], device=self.lengths.device)
        return t < self.lengths[:, None]

    def seed(self, case: int, seed: int) -> int:
        """Return a seed that follows from another one and the values of a case, nothing else."""
        L = int(self.lengths[case])
        content = self.values[case, :, :L].cpu().contiguous().numpy().tobytes()
        digest = hashlib.blake2b(content, digest_size=8, key=seed.to_bytes(8, "little"))
        return int.from_bytes(digest.digest(), "little") >> 1


def as_inputs(values: NDArray[Any], series: PaddedSeries, device: torch.device) -> Inputs:
    """Return values for the series, such as their standardised ones, on a device."""
    return Inputs(
        torch.from_numpy(values.astype(np.float32)).to(device),
        torch.from_numpy(series.observed).to(device),
        torch.from_numpy(series.lengths).to(device),
    )
