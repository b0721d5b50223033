"""The ablation without symbols: learnt functions of the raw values take the place of O."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.network.composition import Batch

__all__ = ["RawProjection"]


class RawProjection(nn.Module):
    """``O[t, (j, i)] = a_ji x_tj + b_ji`` at observed points, 0 elsewhere.

    Every column of a channel is made of the same two, the values and the ones, so P needs only
    their two products with the spread segments.
    """

    def __init__(self, n_channels: int, n_symbols: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(n_channels)
        self.slope = nn.Parameter(torch.empty(n_channels, n_symbols).uniform_(-bound, bound))
        self.offset = nn.Parameter(torch.empty(n_channels, n_symbols).uniform_(-bound, bound))

    def forward(self, Qt: Tensor, batch: Batch) -> Tensor:
        """Return P, shape (B, v*(n+1), q), in the layout of `bag_sum`; row 0 is empty."""
        B, v, _ = batch.codes.shape
        x = batch.values.transpose(2, 3).flatten(0, 1)  # (B*S, U, L)
        seen = (batch.codes > 0).view(x.shape).to(x.dtype)
        by_value = (x @ Qt).view(B, v, 1, -1)
        by_presence = (seen @ Qt).view(B, v, 1, -1)
        P = self.slope[..., None] * by_value + self.offset[..., None] * by_presence
        return F.pad(P, (0, 0, 1, 0)).flatten(1, 2)

    def composition(self, batch: Batch) -> Tensor:
        """Return O itself, shape (B, v, n, L)."""
        B, v, L = batch.codes.shape
        x = batch.values.transpose(2, 3).reshape(B, v, 1, L)
        seen = (batch.codes > 0).unsqueeze(2)
        return (self.slope[..., None] * x + self.offset[..., None]) * seen
