"""Series as tensors: what networks, explainers and training take.

`Batch` is the one container; a `View` is a batch as one encoder sees it, with its `Symbols`. The
symbols lie sorted, so that products with the one-hot matrix O of the paper become sums over the
points that carry a symbol. Every symbol channel has ``n + 1`` rows in the network: row 0 gathers
the points without a symbol, and no weight listens to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from timesliver.errors import InvalidInputError
from timesliver.series import PaddedSeries, equal_slices
from timesliver.symbols.base import NO_SYMBOL, code_dtype
from timesliver.typing import BoolArray, CodeArray

__all__ = ["Batch", "Symbols", "View"]


class _ByCase:
    """Tensors whose first axis is that of the cases."""

    def __getitem__(self, cases: Any) -> Self:
        return self._each(lambda tensor: tensor[cases])

    def to(self, target: torch.device | str | torch.dtype) -> Self:
        """Move everything to a device, or the values to another precision."""
        return self._each(
            lambda x: (
                x.to(target) if not isinstance(target, torch.dtype) or x.is_floating_point() else x
            )
        )

    def _each(self, apply: Any) -> Self:
        def changed(part: Any) -> Any:
            if isinstance(part, Tensor):
                return apply(part)
            if isinstance(part, tuple):
                return tuple(map(changed, part))
            return part._each(apply) if isinstance(part, _ByCase) else part

        by_name = {f.name: changed(getattr(self, f.name)) for f in fields(self)}  # type: ignore[arg-type]
        return replace(self, **by_name)  # type: ignore[type-var]


@dataclass(frozen=True)
class Symbols(_ByCase):
    """The codes of one symbolizer, sorted once and used in every epoch.

    A *stream* is what one run of an encoder sees: all channels of a case together, or each by
    itself. A symbolizer has J symbol channels, which need not be the channels of the series.

    Attributes
    ----------
    codes : uint8 or int16 tensor of shape (B, J, L)
        The symbols 1..n, 0 for "no symbol".
    order : int16 or int32 tensor of shape (B, J, L)
        The time points of each symbol channel, sorted by symbol and then by time.
    counts : int32 tensor of shape (B, J, n + 1)
        How many points of each symbol channel carry each symbol.
    """

    codes: Tensor
    order: Tensor
    counts: Tensor

    @classmethod
    def of(
        cls, codes: CodeArray, observed: BoolArray, n_symbols: int, separate: bool = False
    ) -> Symbols:
        """Sort the codes that a symbolizer gave for series; what is missing gets none.

        Parameters
        ----------
        codes : int array of shape (B, J, L)
            J is the number of channels, or 1 for symbols that all channels share.
        observed : bool array of shape (B, v, L)
            Where the series have values.
        n_symbols : int
            The largest code.
        separate : bool
            Whether each channel is a stream of its own, and so needs symbols of its own.
        """
        codes = np.asarray(codes)
        if codes.dtype.kind not in "iu":
            raise InvalidInputError(
                f"codes must be whole numbers, as a symbolizer's transform makes them; "
                f"got {codes.dtype}"
            )
        n_cases, v, L = observed.shape
        if codes.shape not in (observed.shape, (n_cases, 1, L)):
            raise InvalidInputError(
                f"one code per value, or per time point, is needed: the series have shape "
                f"{observed.shape}, the codes {codes.shape}"
            )
        if codes.min() < 0 or codes.max() > n_symbols:
            raise InvalidInputError(
                f"codes must lie in 0..{n_symbols} (0 means no symbol), "
                f"got {codes.min()}..{codes.max()}"
            )
        if codes.shape[1] < v and not separate:
            observed = np.any(observed, axis=1, keepdims=True)
        codes = np.where(observed, codes, NO_SYMBOL).astype(code_dtype(n_symbols))
        order, counts = _sorted_by_symbol(codes, n_symbols)
        return cls(torch.from_numpy(codes), torch.from_numpy(order), torch.from_numpy(counts))

    @classmethod
    def unsorted(cls, codes: CodeArray, observed: BoolArray, n_symbols: int) -> Symbols:
        """Keep codes as they are, for encoders that need no order."""
        if codes.shape[1] < observed.shape[1]:
            observed = np.any(observed, axis=1, keepdims=True)
        codes = np.where(observed, codes, NO_SYMBOL).astype(code_dtype(n_symbols))
        nothing = torch.zeros(len(codes), 0, n_symbols + 1, dtype=torch.int32)
        return cls(torch.from_numpy(codes), nothing, nothing)

    @property
    def n_channels(self) -> int:
        """Number of symbol channels J."""
        return self.codes.shape[1]

    @property
    def n_rows(self) -> int:
        """Rows of P per symbol channel: n symbols, and row 0 for "no symbol"."""
        return self.counts.shape[2]

    def bags(self, n_streams: int) -> tuple[Tensor, Tensor]:
        """Return the points that carry each symbol, as bags of rows of a (B*S*L, q) table.

        The first tensor lists the rows bag after bag, the second where each of the B*J*(n+1)
        bags begins, with the end of the last one appended.
        """
        B, J, L = self.codes.shape
        stream = torch.arange(B * n_streams, device=self.codes.device, dtype=torch.int32)
        rows = self.order.int() + (stream * L).repeat_interleave(J // n_streams).view(B, J, 1)
        ends = self.counts.flatten().cumsum(0, dtype=torch.int32)
        return rows.flatten(), torch.cat([ends.new_zeros(1), ends])

    def rows(self, n_streams: int) -> Tensor:
        """Return the row of the (B*J*(n+1), q) table that each point carries: (B*S*L, J/S)."""
        B, J, L = self.codes.shape
        first = torch.arange(B * J, device=self.codes.device, dtype=torch.int32) * self.n_rows
        rows = self.codes.int() + first.view(B, J, 1)  # (B, J, L)
        streams = rows.view(B * n_streams, J // n_streams, L).transpose(1, 2)
        return streams.reshape(B * n_streams * L, J // n_streams)


@dataclass(frozen=True)
class Batch(_ByCase):
    """Series as a network takes them.

    Attributes
    ----------
    values : float tensor of shape (B, v, L)
        The standardised series, 0 where nothing was observed.
    observed : bool tensor of shape (B, v, L)
        False where a value is missing, masked or padding.
    lengths : int64 tensor of shape (B,)
        Number of time points of each case, without its padding.
    views : tuple of View
        The series as each encoder of a TimeSliver network sees them; empty for other networks.
    """

    values: Tensor
    observed: Tensor
    lengths: Tensor
    views: tuple[View, ...] = ()

    @classmethod
    def of(cls, values: NDArray[Any], series: PaddedSeries, **more: Any) -> Self:
        """Return values for the series, such as their standardised ones, as a batch."""
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(values, dtype=np.float32)
        if not np.isfinite(values).all():
            raise InvalidInputError(
                f"values up to {np.abs(series.values).max():.3g} do not fit the network's 32-bit "
                f"numbers; rescale the series first"
            )
        return cls(
            torch.from_numpy(values),
            torch.from_numpy(np.ascontiguousarray(series.observed)),
            torch.from_numpy(series.lengths),
            **more,
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_channels(self) -> int:
        """Number of channels v."""
        return self.values.shape[1]

    @property
    def n_timepoints(self) -> int:
        """Padded length L."""
        return self.values.shape[2]

    @property
    def inside(self) -> Tensor:
        """True for the points of each case and False for its padding, shape (B, L)."""
        t = torch.arange(self.n_timepoints, device=self.lengths.device)
        return t < self.lengths[:, None]

    def split(self, numbers_per_case: int, budget: int = 1 << 21) -> Iterator[Self]:
        """Cut into batches of equal size for which that many numbers per case fit the budget."""
        for part in equal_slices(len(self), numbers_per_case, budget):
            yield self[part]


@dataclass(frozen=True)
class View(Batch):
    """Series as one encoder sees them: means of every `step` points, with their symbols.

    Attributes
    ----------
    symbols : tuple of Symbols
        The codes of each of its symbolizers.
    step : int
        How many points of the series are one here.
    """

    symbols: tuple[Symbols, ...] = ()
    step: int = 1

    def n_segments(self, m: int) -> Tensor:
        """Return kappa of each case, shape (B,); a case shorter than m has one segment."""
        return (self.lengths - m + 1).clamp(min=1)

    def has_segment(self, m: int) -> Tensor:
        """Return which segments lie within each case, not past its end: bool (B, kappa)."""
        k = torch.arange(self.n_timepoints - m + 1, device=self.lengths.device)
        return k < self.n_segments(m)[:, None]


def _sorted_by_symbol(codes: CodeArray, n_symbols: int) -> tuple[CodeArray, CodeArray]:
    n_cases, J, L = codes.shape
    dtype = np.int16 if np.iinfo(np.int16).max >= L else np.int32
    order = np.empty(codes.shape, dtype)
    counts = np.empty((n_cases, J, n_symbols + 1), np.int32)
    first = np.arange(J)[:, None] * (n_symbols + 1)
    for case in range(n_cases):  # numpy sorts small integers by radix; one case bounds its memory
        order[case] = np.argsort(codes[case], axis=-1, kind="stable")
        rows = (codes[case] + first).ravel()
        counts[case] = np.bincount(rows, minlength=J * (n_symbols + 1)).reshape(J, -1)
    return order, counts
