"""The non-zero entries of Z, for explaining: a segment holds few of the symbols.

Take the points that carry one symbol in one channel, in order of time. A segment k contains the
symbol if and only if exactly one of these points is the first inside the segment, and exactly one
is the last. Both the "first" and the "last" points of successive segments move forward only, so
listing the segments of each point twice, once as first and once as last, gives the same list of
pairs (symbol, segment) in the same order; the difference of the two positions counts the symbol
in the segment. The cost is that of the entries found, whatever the number of symbols.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network.composition import Batch, window_spread, window_sum
from timesliver.network.raw import RawProjection

__all__ = ["Stencils", "raw_stencils", "stencils"]


@dataclass(frozen=True)
class Stencils:
    """Entries of Z of one segment size, sorted by case, channel, symbol and segment.

    Attributes
    ----------
    starts : int tensor of shape (B*v*(n+1) + 1,)
        Where the entries of each row of P begin, and the end of the last.
    segment : int tensor of shape (n_entries,)
        The row of Q, seen as a (B*S*kappa, q) table.
    cell : int tensor of shape (n_entries,)
        The channel and segment, counted in a (B*v*kappa) array.
    value : float tensor of shape (n_entries,)
        The entry.
    """

    starts: Tensor
    segment: Tensor
    cell: Tensor
    value: Tensor

    def row(self) -> Tensor:
        """Return the row of P of each entry."""
        rows = torch.arange(len(self.starts) - 1, device=self.starts.device)
        return rows.repeat_interleave(self.starts.diff())


def stencils(batch: Batch, m: int, widths: tuple[int, ...]) -> Stencils:
    """Return the entries of Z for symbols."""
    _, v, L = batch.codes.shape
    kappa = L - m + 1
    t = batch.order.flatten().int()
    rows = torch.arange(batch.counts.numel(), device=t.device, dtype=torch.int32)
    row = rows.repeat_interleave(batch.counts.flatten())
    last_segment = (batch.n_segments(m).int() - 1).repeat_interleave(v * L)
    last_segment[row % batch.n_rows == 0] = -1  # "no symbol" has no entries

    same = row[1:] == row[:-1]
    before = F.pad(torch.where(same, t[:-1], -1), (1, 0), value=-1)
    after = F.pad(torch.where(same, t[1:], L + m), (0, 1), value=L + m)
    earliest = (t - (m - 1)).clamp_(min=0)
    latest = torch.minimum(t, last_segment)
    as_first = torch.maximum(earliest, before + 1)  # first in the segments from here to latest
    n_first = (latest - as_first + 1).clamp_(min=0)
    n_last = (torch.minimum(latest, after - m) - earliest + 1).clamp_(min=0)

    points = torch.arange(len(t), device=t.device, dtype=torch.int32)
    first = points.repeat_interleave(n_first)
    last = points.repeat_interleave(n_last)
    ends = n_first.cumsum(0, dtype=torch.int32)
    channel = points.div(L, rounding_mode="floor")  # counted over the whole batch
    shift = as_first - (ends - n_first) + channel * kappa
    cell = torch.arange(len(first), device=t.device, dtype=torch.int32)
    cell += shift.index_select(0, first)
    segment = cell
    if batch.n_streams < v:
        others = (channel - channel.div(v, rounding_mode="floor")) * kappa
        segment = cell - others.index_select(0, first)

    window = _window(widths, batch.values)
    if len(widths) == 1:
        value = (last - first + 1) * window[0]
    else:
        k = cell % kappa
        value = torch.zeros(len(first), device=t.device, dtype=window.dtype)
        for step in range(m):
            point = torch.minimum(first + step, last)
            value += window[t[point] - k] * (first + step <= last)
    ends = torch.cat([ends.new_zeros(1), ends])
    bag_ends = batch.counts.flatten().cumsum(0)
    starts = torch.cat([ends[:1], ends[bag_ends]])
    return Stencils(starts, segment, cell, value)


def raw_stencils(batch: Batch, m: int, widths: tuple[int, ...], raw: RawProjection) -> Stencils:
    """Return all entries of Z where learnt projections of the values replace the symbols."""
    O = raw.composition(batch)  # (B, v, n, L)
    B, v, n, L = O.shape
    kappa = L - m + 1
    Z = window_sum(O.view(-1, L, 1), widths).view(B * v, n, kappa) / math.prod(widths)
    Z = Z * batch.inside(m).repeat_interleave(v, 0)[:, None]

    k = torch.arange(kappa, device=O.device, dtype=torch.int32)
    channel = torch.arange(B * v, device=O.device, dtype=torch.int32)
    stream = channel.div(v // batch.n_streams, rounding_mode="floor")
    sizes = torch.full((B * v, n + 1), kappa, device=O.device, dtype=torch.int32)
    sizes[:, 0] = 0  # "no symbol" has no entries
    ends = sizes.flatten().cumsum(0, dtype=torch.int32)
    return Stencils(
        torch.cat([ends.new_zeros(1), ends]),
        (stream[:, None, None] * kappa + k).expand_as(Z).flatten(),
        (channel[:, None, None] * kappa + k).expand_as(Z).flatten(),
        Z.flatten(),
    )


def _window(widths: tuple[int, ...], like: Tensor) -> Tensor:
    """Return the weights of a segment's points: averages over these widths, one on another."""
    return window_spread(like.new_ones(1, 1, 1), widths).flatten() / math.prod(widths)
