"""Module III: the interaction ``P = Z^T Q`` as bag sums.

As ``Z = A O``, the product is ``P = O^T (A^T Q)``: spread Q back onto the time points, then add
up the points that carry each symbol. The cost is O(L v q), whatever the number of symbols, and
neither O nor Z is ever built. Both steps are linear, so their backward passes are their
transposes and nothing but the indices needs to be kept.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network.composition import Batch, window_sum

__all__ = ["bag_sum", "segment_weights", "spread"]


def segment_weights(batch: Batch, m: int) -> Tensor:
    """Return 1 / kappa for the segments of each stream and 0 past its end: (B*S, kappa, 1)."""
    n_segments = batch.n_segments(m)[:, None]
    k = torch.arange(batch.n_timepoints - m + 1, device=n_segments.device)
    inside = (k < n_segments).to(batch.values.dtype)
    return (inside / n_segments).unsqueeze(2)


def spread(Q: Tensor, weights: Tensor, widths: tuple[int, ...]) -> Tensor:
    """Return ``A^T diag(weights) Q``, shape (B*S, L, q): segments given back to their points.

    The window is the box of Eq. 1 for one width, and bell-shaped for several.
    """
    Qt: Tensor = _Spread.apply(Q, weights / math.prod(widths), widths)  # type: ignore[no-untyped-call]
    return Qt


def bag_sum(Qt: Tensor, batch: Batch) -> Tensor:
    """Return ``P = O^T Qt``, shape (B, v*(n+1), q), with a row for "no symbol" per channel."""
    P: Tensor = _BagSum.apply(Qt.flatten(0, 1), batch)  # type: ignore[no-untyped-call]
    return P.view(len(batch), -1, Qt.shape[2])


class _Spread(torch.autograd.Function):
    """Scale the segments, then sum over those that cover each point."""

    @staticmethod
    def forward(ctx: Any, Q: Tensor, scale: Tensor, widths: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(scale)
        ctx.widths = widths
        margin = sum(widths) - len(widths)
        padded = Q.new_zeros(Q.shape[0], Q.shape[1] + 2 * margin, Q.shape[2])
        torch.mul(Q, scale, out=padded[:, margin : margin + Q.shape[1]])
        return window_sum(padded, widths)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (scale,) = ctx.saved_tensors
        return window_sum(gradient, ctx.widths) * scale, None, None


class _BagSum(torch.autograd.Function):
    """Add up the rows of each bag; backwards, add up the bags that each point lies in."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, batch: Batch) -> Tensor:
        ctx.batch = batch
        rows, offsets = batch.bags()
        return F.embedding_bag(rows, table, offsets, mode="sum", include_last_offset=True)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        rows = ctx.batch.rows()
        return F.embedding_bag(rows, gradient.contiguous(), mode="sum"), None
