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

from timesliver.network.composition import Batch, window_sum
from timesliver.network.raw import RawProjection

__all__ = ["Stencils", "raw_stencils", "stencils"]


@dataclass(frozen=True)
class Stencils:
    """Entries of ``Z / kappa`` of one segment size, sorted by case, channel, symbol and segment.

    Attributes
    ----------
    starts : int tensor of shape (B*v*(n+1) + 1,)
        Where the entries of each row of P begin, and the end of the last.
    row : int tensor of shape (n_entries,)
        The row of P, counted over the whole batch.
    segment : int tensor of shape (n_entries,)
        The row of Q, seen as a (B*S*kappa, q) table.
    cell : int tensor of shape (n_entries,)
        The segment of the entry's channel, counted in a (B*v*kappa) array.
    value : float tensor of shape (n_entries,)
        The entry.
    """

    starts: Tensor
    row: Tensor
    segment: Tensor
    cell: Tensor
    value: Tensor


def stencils(batch: Batch, m: int, widths: tuple[int, ...]) -> Stencils:
    """Return the entries of Z for symbols."""
    _, v, L = batch.codes.shape
    kappa = L - m + 1
    t = batch.order.flatten().int()
    counts = batch.counts.flatten()
    row = torch.repeat_interleave(torch.arange(len(counts), device=t.device).int(), counts)
    n_segments = batch.n_segments(m).int().repeat_interleave(v * L // batch.n_streams)
    n_segments = n_segments * (row % batch.n_rows > 0)  # "no symbol" has no entries

    same = row[1:] == row[:-1]
    before, after = torch.full_like(t, -1), torch.full_like(t, L + m)
    before[1:] = torch.where(same, t[:-1], before[1:])
    after[:-1] = torch.where(same, t[1:], after[:-1])
    earliest = (t - (m - 1)).clamp(min=0)
    latest = torch.minimum(t, n_segments - 1)
    as_first = torch.maximum(earliest, before + 1)  # segments from here to latest
    n_first = (latest - as_first + 1).clamp(min=0)
    n_last = (torch.minimum(latest, after - m) - earliest + 1).clamp(min=0)

    points = torch.arange(len(t), device=t.device, dtype=torch.int32)
    first = torch.repeat_interleave(points, n_first)
    last = torch.repeat_interleave(points, n_last)
    ends = n_first.cumsum(0, dtype=torch.int32)
    entries = torch.arange(len(first), device=t.device, dtype=torch.int32)
    k = entries + (as_first - ends + n_first)[first]
    row = row[first]
    channel = row.div(batch.n_rows, rounding_mode="floor")  # counted over the whole batch
    stream = channel.div(v // batch.n_streams, rounding_mode="floor")

    window = _window(widths, batch.values)
    if len(widths) == 1:
        value = (last - first + 1) * window[0]
    else:
        value = torch.zeros(len(first), device=t.device, dtype=window.dtype)
        for step in range(m):
            point = torch.minimum(first + step, last)
            value += window[t[point] - k] * (first + step <= last)
    ends = torch.cat([ends.new_zeros(1), ends])
    bag_starts = torch.cat([counts.new_zeros(1), counts]).cumsum(0)
    value = value / batch.n_segments(m)[stream]
    return Stencils(ends[bag_starts], row, stream * kappa + k, channel * kappa + k, value)


def raw_stencils(batch: Batch, m: int, widths: tuple[int, ...], raw: RawProjection) -> Stencils:
    """Return all entries of Z where learnt projections of the values replace the symbols."""
    O = raw.composition(batch)  # (B, v, n, L)
    B, v, n, L = O.shape
    kappa = L - m + 1
    S = batch.n_streams
    Z = window_sum(O.view(-1, L, 1), widths).view(B * v, n, kappa) / math.prod(widths)
    n_segments = batch.n_segments(m).repeat_interleave(v // S).view(-1, 1, 1)
    k = torch.arange(kappa, device=O.device, dtype=torch.int32)
    Z = torch.where(k < n_segments, Z / n_segments, 0)

    channel = torch.arange(B * v, device=O.device, dtype=torch.int32).view(-1, 1, 1)
    symbol = torch.arange(1, n + 1, device=O.device, dtype=torch.int32).view(-1, 1)
    row = (channel * (n + 1) + symbol).expand_as(Z)
    stream = channel.div(v // S, rounding_mode="floor")
    sizes = torch.full((B * v, n + 1), kappa, device=O.device, dtype=torch.int32)
    sizes[:, 0] = 0
    ends = sizes.flatten().cumsum(0, dtype=torch.int32)
    return Stencils(
        torch.cat([ends.new_zeros(1), ends]),
        row.flatten(),
        (stream * kappa + k).expand_as(Z).flatten(),
        (channel * kappa + k).expand_as(Z).flatten(),
        Z.flatten(),
    )


def _window(widths: tuple[int, ...], like: Tensor) -> Tensor:
    """Return the weights of a segment's points: averages over these widths, one on another."""
    window = torch.ones(1, 1, 1, dtype=like.dtype, device=like.device)
    for width in widths:
        padded = torch.nn.functional.pad(window, (0, 0, width - 1, width - 1))
        window = window_sum(padded, (width,)) / width
    return window.flatten()
