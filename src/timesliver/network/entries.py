"""The non-zero entries of Z, for explaining: a segment holds few of the symbols.

Take the points that carry one symbol in one channel, in order of time. A segment k contains the
symbol if and only if exactly one of these points is the first inside the segment, and exactly one
is the last. Both the "first" and the "last" points of successive segments move forward only, so
listing the segments of each point twice, once as first and once as last, gives the same list of
pairs (symbol, segment) in the same order; the difference of the two positions counts the symbol
in the segment. The cost is that of the entries found, whatever the number of symbols.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network.batch import Symbols, View
from timesliver.network.windows import span, window_weights

__all__ = ["Entries", "entries"]


@dataclass(frozen=True)
class Entries:
    """The non-zero entries of Z, sorted by case, symbol channel, symbol and segment, and Q.

    Attributes
    ----------
    starts : int tensor of shape (B*J*(n+1) + 1,)
        Where the entries of each row of P begin, and the end of the last.
    segment : int tensor of shape (n_entries,)
        The row of Q, seen as a (B*S*kappa, q) table.
    cell : int tensor of shape (n_entries,)
        The symbol channel and segment, counted in a (B*J*kappa) array.
    value : float tensor of shape (n_entries,)
        The entry.
    Q : tensor of shape (B*S*kappa, q)
        The rows of Q, divided by the number of segments of their case.
    shape : (int, int, int, int)
        B, J, n + 1 and kappa.
    size : int
        The length m of a segment.
    """

    starts: Tensor
    segment: Tensor
    cell: Tensor
    value: Tensor
    Q: Tensor
    shape: tuple[int, int, int, int]
    size: int

    def row(self) -> Tensor:
        """Return the row of P of each entry."""
        rows = torch.arange(len(self.starts) - 1, device=self.starts.device)
        return rows.repeat_interleave(self.starts.diff())

    def by_segment(self, scores: Tensor) -> Tensor:
        """Add up one number per entry over each symbol channel and segment: (B, J, kappa)."""
        B, J, _, kappa = self.shape
        cells = scores.new_zeros(B * J * kappa).index_add_(0, self.cell, scores)
        return cells.view(B, J, kappa)

    def by_symbol(self, scores: Tensor) -> Tensor:
        """Add up one number per entry over each symbol channel and symbol: (B, J, n)."""
        B, J, rows, _ = self.shape
        sums = torch.segment_reduce(scores, "sum", offsets=self.starts.long(), unsafe=True)
        return sums.view(B, J, rows)[..., 1:]


def entries(Q: Tensor, view: View, symbols: Symbols, widths: tuple[int, ...]) -> Entries:
    """Find the entries of Z for symbols, and put Q (B*S, kappa, q) beside them."""
    m = span(widths)
    B, J, L = symbols.codes.shape
    kappa = L - m + 1
    n_streams = len(Q) // B
    t = symbols.order.flatten().int()
    rows = torch.arange(symbols.counts.numel(), device=t.device, dtype=torch.int32)
    row = rows.repeat_interleave(symbols.counts.flatten())
    last_segment = (view.n_segments(m).int() - 1).repeat_interleave(J * L)
    last_segment[row % symbols.n_rows == 0] = -1  # "no symbol" has no entries

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
    if n_streams < J:
        others = (channel - channel.div(J, rounding_mode="floor")) * kappa
        segment = cell - others.index_select(0, first)

    window = window_weights(widths, Q)
    if len(widths) == 1:
        value = (last - first + 1) * window[0]
    else:
        k = cell % kappa
        value = torch.zeros(len(first), device=t.device, dtype=window.dtype)
        for step in range(m):
            point = torch.minimum(first + step, last)
            value += window[t[point] - k] * (first + step <= last)
    ends = torch.cat([ends.new_zeros(1), ends])
    bag_ends = symbols.counts.flatten().cumsum(0)
    starts = torch.cat([ends[:1], ends[bag_ends]])
    per_case = view.n_segments(m).repeat_interleave(n_streams)
    table = (Q / per_case[:, None, None]).flatten(0, 1)
    return Entries(starts, segment, cell, value, table, (B, J, symbols.n_rows, kappa), m)
