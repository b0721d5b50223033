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

from timesliver.network.composition import Batch, window_spread, window_sum

__all__ = ["bag_sum", "scale", "spread"]


def spread(Q: Tensor, batch: Batch, widths: tuple[int, ...]) -> Tensor:
    """Return ``A^T Q`` up to a factor, shape (B*S, L, q): segments given back to their points.

    The window is the box of Eq. 1 for one width, and bell-shaped for several. The factor that
    makes its sums averages is left to `scale`.
    """
    inside = batch.inside(_segment_size(widths))
    mask = None
    if not bool(inside.all()):
        mask = inside.repeat_interleave(batch.n_streams, 0).unsqueeze(2).to(Q.dtype)
    Qt: Tensor = _Spread.apply(Q, mask, widths)  # type: ignore[no-untyped-call]
    return Qt


def scale(batch: Batch, widths: tuple[int, ...]) -> Tensor:
    """Return what the sums of `spread`, and so P, must be multiplied by: (B,).

    Sums over the window become averages, and P is divided by the number of segments, so that
    logits do not grow with the length of a series. All that follows is linear, so one number per
    case can be applied last, to the logits, where it costs nothing.
    """
    n_segments = batch.n_segments(_segment_size(widths)).to(batch.values.dtype)
    return 1 / (n_segments * math.prod(widths))


def bag_sum(Qt: Tensor, batch: Batch) -> Tensor:
    """Return ``P = O^T Qt``, shape (B, v*(n+1), q); row 0 of a channel is "no symbol"."""
    P: Tensor = _BagSum.apply(Qt, batch)  # type: ignore[no-untyped-call]
    return P


def _segment_size(widths: tuple[int, ...]) -> int:
    return sum(widths) - len(widths) + 1


class _Spread(torch.autograd.Function):
    """Sum over the segments that cover each point, leaving out those past a case's end."""

    @staticmethod
    def forward(ctx: Any, Q: Tensor, mask: Tensor | None, widths: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.widths = widths
        return window_spread(Q if mask is None else Q * mask, widths)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        of_Q = window_sum(gradient, ctx.widths)
        return of_Q if mask is None else of_Q * mask, None, None


class _BagSum(torch.autograd.Function):
    """Add up the rows of each bag; backwards, add up the bags that each point lies in."""

    @staticmethod
    def forward(ctx: Any, Qt: Tensor, batch: Batch) -> Tensor:
        ctx.batch, ctx.shape = batch, Qt.shape
        rows, offsets = batch.bags()
        return F.embedding_bag(
            rows, Qt.flatten(0, 1), offsets, mode="sum", include_last_offset=True
        ).view(len(batch), -1, Qt.shape[2])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        table = gradient.flatten(0, 1)
        return F.embedding_bag(ctx.batch.rows(), table, mode="sum").view(ctx.shape), None
