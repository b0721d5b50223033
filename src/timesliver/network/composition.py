"""Module II.b: the symbolic composition Z, never built as a dense matrix.

With the one-hot matrix O (L, n*v) and the window average A (kappa, L), Eq. 1 of the paper reads
``Z = A O``. `Batch` holds the symbols sorted so that products with O and with Z become sums over
the points that carry a symbol; `window_sum` applies A, `window_spread` its transpose.

Every channel has ``n + 1`` rows in this module: row 0 gathers the points without a symbol, and
the head has no weight for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from timesliver.errors import InvalidInputError
from timesliver.series import PaddedSeries, as_series, equal_slices
from timesliver.symbols.base import NO_SYMBOL, code_dtype
from timesliver.typing import CodeArray

__all__ = ["Batch", "window_spread", "window_sum"]


@dataclass(frozen=True)
class Batch:
    """Series and their symbols, laid out for the network; sorted once, used in every epoch.

    A *stream* is what one run of the segment encoder sees: all channels of a case together
    (S = 1 stream of U = v channels), or each channel by itself (S = v streams of U = 1).

    Attributes
    ----------
    values : float tensor of shape (B, S, L, U)
        The series, 0 where nothing was observed.
    codes : uint8 or int16 tensor of shape (B, v, L)
        The symbols 1..n, 0 for "no symbol".
    order : int16 or int32 tensor of shape (B, v, L)
        The time points of each channel, sorted by symbol and then by time.
    counts : int32 tensor of shape (B, v, n + 1)
        How many points of each channel carry each symbol.
    lengths : int64 tensor of shape (B,)
        Number of time points of each case, without its padding.
    """

    values: Tensor
    codes: Tensor
    order: Tensor
    counts: Tensor
    lengths: Tensor

    @classmethod
    def prepare(cls, X: Any, codes: CodeArray, n_symbols: int, separate: bool = False) -> Batch:
        """Lay out series and the codes that a symbolizer gave them; what is missing gets none."""
        series = as_series(X)
        codes = np.asarray(codes)
        if codes.dtype.kind not in "iu":
            raise InvalidInputError(
                f"codes must be whole numbers, as a symbolizer's transform makes them; "
                f"got {codes.dtype}"
            )
        if codes.shape != series.values.shape:
            raise InvalidInputError(
                f"one code per value is needed: the series have shape {series.values.shape}, "
                f"the codes {codes.shape}"
            )
        if codes.min() < 0 or codes.max() > n_symbols:
            raise InvalidInputError(
                f"codes must lie in 0..{n_symbols} (0 means no symbol), "
                f"got {codes.min()}..{codes.max()}"
            )
        codes = np.where(series.observed, codes, NO_SYMBOL).astype(code_dtype(n_symbols))
        order, counts = _sorted_by_symbol(codes, n_symbols)
        return cls(
            _streams(series, separate),
            torch.from_numpy(codes),
            torch.from_numpy(order),
            torch.from_numpy(counts),
            torch.from_numpy(series.lengths),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_channels(self) -> int:
        """Number of channels v."""
        return self.codes.shape[1]

    @property
    def n_timepoints(self) -> int:
        """Padded length L."""
        return self.codes.shape[2]

    @property
    def n_streams(self) -> int:
        """Number of streams S per case."""
        return self.values.shape[1]

    @property
    def n_rows(self) -> int:
        """Rows of P per channel: n symbols, and row 0 for "no symbol"."""
        return self.counts.shape[2]

    def __getitem__(self, cases: Any) -> Batch:
        return self._each(lambda tensor: tensor[cases])

    def to(self, device: torch.device | str) -> Batch:
        """Move everything to a device."""
        return self._each(lambda tensor: tensor.to(device))

    def split(self, numbers_per_case: int, budget: int = 1 << 21) -> Iterator[Batch]:
        """Cut into batches of equal size for which that many numbers per case fit the budget."""
        for part in equal_slices(len(self), numbers_per_case, budget):
            yield self[part]

    def n_segments(self, m: int) -> Tensor:
        """Return kappa of each case, shape (B,); a case shorter than m has one segment."""
        return (self.lengths - m + 1).clamp(min=1)

    def inside(self, m: int) -> Tensor:
        """Return which segments lie within each case, not past its end: bool (B, kappa)."""
        k = torch.arange(self.n_timepoints - m + 1, device=self.lengths.device)
        return k < self.n_segments(m)[:, None]

    def bags(self) -> tuple[Tensor, Tensor]:
        """Return the points that carry each symbol, as bags of rows of a (B*S*L, q) table.

        The first tensor lists the rows bag after bag, the second where each of the B*v*(n+1)
        bags begins, with the end of the last one appended.
        """
        B, v, L = self.codes.shape
        S = self.n_streams
        stream = torch.arange(B * S, device=self.codes.device, dtype=torch.int32)
        rows = self.order.int() + (stream * L).repeat_interleave(v // S).view(B, v, 1)
        ends = self.counts.flatten().cumsum(0, dtype=torch.int32)
        return rows.flatten(), torch.cat([ends.new_zeros(1), ends])

    def rows(self) -> Tensor:
        """Return the row of the (B*v*(n+1), q) table that each point carries: (B*S*L, U)."""
        B, v, L = self.codes.shape
        S = self.n_streams
        first = torch.arange(B * v, device=self.codes.device, dtype=torch.int32) * self.n_rows
        rows = self.codes.int() + first.view(B, v, 1)  # (B, v, L)
        return rows.view(B * S, v // S, L).transpose(1, 2).reshape(B * S * L, v // S)

    def _each(self, apply: Any) -> Batch:
        return replace(self, **{f.name: apply(getattr(self, f.name)) for f in fields(self)})


def window_sum(x: Tensor, widths: tuple[int, ...]) -> Tensor:
    """Sum every ``w`` successive rows of (B, T, q), for each width in turn: (B, T - sum(w-1), q).

    A sum of many rows is put together from sums of about the square root of as many.
    """
    for width in widths:
        part = _part(width)
        sums = window_sum(x, (part,)) if part > 1 else x
        n = x.shape[1] - width + 1
        pieces = [sums[:, start : start + n] for start in range(0, width - part + 1, part)]
        pieces += [x[:, start : start + n] for start in range(len(pieces) * part, width)]
        if len(pieces) > 1:
            x = pieces[0] + pieces[1]
            for piece in pieces[2:]:
                x += piece
    return x


def window_spread(x: Tensor, widths: tuple[int, ...]) -> Tensor:
    """Add every row of (B, T, q) to ``w`` successive rows: the transpose of `window_sum`."""
    for width in widths:
        if width == 1:
            continue
        part = _part(width)
        spread = window_spread(x, (part,))
        total = x.new_empty(x.shape[0], x.shape[1] + width - 1, x.shape[2])
        total[:, : spread.shape[1]] = spread
        total[:, spread.shape[1] :] = 0
        whole = width // part * part
        for start in range(part, whole, part):
            total[:, start : start + spread.shape[1]] += spread
        for start in range(whole, width):
            total[:, start : start + x.shape[1]] += x
        x = total
    return x


def _part(width: int) -> int:
    return math.isqrt(width) if width > 16 else 1


def _streams(series: PaddedSeries, separate: bool) -> Tensor:
    with np.errstate(over="ignore"):
        values = series.values.astype(np.float32)
    if not np.isfinite(values).all():
        raise InvalidInputError(
            f"values up to {np.abs(series.values).max():.3g} do not fit the network's 32-bit "
            f"numbers; rescale the series first"
        )
    n_cases, v, L = values.shape
    if separate:
        return torch.from_numpy(values.reshape(n_cases, v, L, 1))
    return torch.from_numpy(np.ascontiguousarray(values.transpose(0, 2, 1))[:, None])


def _sorted_by_symbol(codes: CodeArray, n_symbols: int) -> tuple[CodeArray, CodeArray]:
    n_cases, v, L = codes.shape
    dtype = np.int16 if np.iinfo(np.int16).max >= L else np.int32
    order = np.empty(codes.shape, dtype)
    counts = np.empty((n_cases, v, n_symbols + 1), np.int32)
    first = np.arange(v)[:, None] * (n_symbols + 1)
    for case in range(n_cases):  # numpy sorts small integers by radix; one case bounds its memory
        order[case] = np.argsort(codes[case], axis=-1, kind="stable")
        rows = (codes[case] + first).ravel()
        counts[case] = np.bincount(rows, minlength=v * (n_symbols + 1)).reshape(v, -1)
    return order, counts
