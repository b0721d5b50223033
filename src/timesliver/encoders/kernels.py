"""`Kernels`: a bank of fixed kernels, whose weights are found in closed form in seconds."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from timesliver.encoders.base import Encoder, Shape
from timesliver.errors import check_count
from timesliver.network import Symbols, TimeSliverNetwork, View
from timesliver.network.bank import TAPS, bank_shapes, draw_bank
from timesliver.network.kernels import KernelPart, KernelTerm, Responses
from timesliver.series import PaddedSeries, equal_slices
from timesliver.symbols import SAX, Clock, One, Symbolizer
from timesliver.training import Cases, Ridge
from timesliver.training.ridge import Columns, solve_ridge
from timesliver.typing import FloatArray, IntArray

__all__ = ["Kernels"]

_ONE, _CLOCK, _LEVEL = One(), (Clock(2), Clock(4)), SAX(3)
#: What symbols="auto" chooses among, the simplest first.
CHOICES: tuple[tuple[Symbolizer, ...], ...] = (
    (_ONE,),
    (_ONE, *_CLOCK),
    (_ONE, _LEVEL),
    (_ONE, SAX(3, normalize="global")),
    (*_CLOCK, _LEVEL),
)
_ENOUGH = 1000  # cases to choose symbols by
_SOME = 840  # kernels to choose symbols by
_NUMBERS = 1 << 24  # of masks that exist at a time


class Kernels(Encoder):
    """A bank of fixed dilated kernels, as accurate as the best and fitted in seconds.

    Each kernel looks at nine points; at every moment its response either exceeds a threshold or
    not. The share of moments that do, by symbol, are the features of a ridge regression whose
    strength is chosen by leave-one-out. The logit is still exactly a sum over moments.

    Parameters
    ----------
    n_kernels : int
        How many pairs of kernel and threshold, rounded down to a multiple of 84.
    symbols : "auto", str, Symbolizer or list of them
        By what the moments are told apart. "auto" chooses among one symbol for all, the time, the
        level and sums of them by the leave-one-out error on the training cases.
    smoothing : int or "auto"
        Over how many points shares are evened out when they are explained. "auto" takes a
        twentieth of the series, and at least the nine points of a kernel.
    """

    name = "kernels"

    def __init__(
        self, n_kernels: int = 2500, symbols: Any = "auto", smoothing: int | str = "auto"
    ) -> None:
        self.n_kernels = n_kernels
        self.symbols = symbols
        self.smoothing = smoothing

    def check(self) -> None:
        """Raise if a setting makes no sense."""
        super().check()
        check_count("n_kernels", self.n_kernels, 84)
        if self.smoothing != "auto":
            check_count("smoothing", self.smoothing, 1)

    def symbolizers(self) -> list[Symbolizer]:
        """Return what turns series into symbols; all that may be chosen, before it is."""
        if isinstance(self.symbols, str) and self.symbols == "auto":
            return list({id(one): one for choice in CHOICES for one in choice}.values())
        return super().symbolizers()

    def resolved(self, n_timepoints: int) -> Self:
        """Return the encoder with the smoothing for series of this length."""
        if self.smoothing != "auto":
            return self
        settled: Self = copy(self).set_params(smoothing=max(TAPS, n_timepoints // 20))
        return settled

    def chosen(
        self,
        cases: Cases,
        n_classes: int,
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
        seed: int,
    ) -> Self:
        """Return the encoder with the symbols of the least leave-one-out error."""
        if not (isinstance(self.symbols, str) and self.symbols == "auto"):
            return self
        some = np.sort(np.random.default_rng(seed).permutation(len(cases))[:_ENOUGH])
        few = cases[torch.from_numpy(some)]
        known = self.symbolizers()
        symbolizers = [deepcopy(one).fit(few.batch) for one in known]
        view = self.view(few.batch, symbolizers, mean, scale)
        bank = draw_bank(min(self.n_kernels, _SOME), *_arrays(view), seed)
        ends = np.cumsum([one.n_symbols for one in symbolizers])[:-1]
        numbers = sum(one.n_symbols for one in symbolizers) * view.values[0].numel()
        features = [
            Responses(view[part], bank).features()
            for part in equal_slices(len(few), numbers, _NUMBERS)
        ]
        blocks = np.split(np.concatenate(features), ends, axis=1)
        by_set = {
            id(one): block.reshape(len(few), -1) for one, block in zip(known, blocks, strict=True)
        }
        y, weight = few.y.numpy(), few.weight.numpy().astype(np.float64)
        errors = []
        for choice in CHOICES:
            columns = Columns([by_set[id(one)] for one in choice])
            solution = solve_ridge(columns, y, n_classes, weight, Ridge().strengths)
            errors.append(solution.errors.min())
        best = CHOICES[int(np.argmin(errors))]
        settled: Self = copy(self).set_params(symbols=list(best))
        return settled

    def solver(self) -> Ridge:
        """Return how the weights are found: in closed form."""
        return Ridge()

    def view(
        self,
        series: PaddedSeries,
        symbolizers: Sequence[Symbolizer],
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
    ) -> View:
        """Lay series out, gaps filled by straight lines; what was missing carries no symbol."""
        symbols = tuple(
            Symbols.unsorted(s.transform(series), series.observed, s.n_symbols) for s in symbolizers
        )
        values = _filled(series.standardized(mean, scale), series)
        return View.of(values, series, symbols=symbols)

    def networks(
        self, shape: Shape, seed: int, can_choose: bool, training: View | None = None
    ) -> list[tuple[Self, TimeSliverNetwork]]:
        """Make the network, with biases from the training series."""
        del can_choose
        if training is None:
            bank = bank_shapes(self.n_kernels, shape.n_channels, shape.n_timepoints)
        else:
            bank = draw_bank(self.n_kernels, *_arrays(training), seed)
        rows = sum(n for _, n in shape.symbols)
        term = KernelTerm(shape.n_classes, rows, len(bank.biases))
        part = KernelPart(bank, term, int(self.smoothing))
        return [(self, TimeSliverNetwork([part], shape.n_classes))]


def _arrays(view: View) -> tuple[FloatArray, IntArray]:
    return view.values.cpu().numpy(), view.lengths.cpu().numpy()


def _filled(values: FloatArray, series: PaddedSeries) -> FloatArray:
    """Return values with straight lines over what is missing inside a case."""
    t = np.arange(series.n_timepoints)
    inside = t < series.lengths[:, None]
    gaps = ~series.observed & inside[:, None]
    for case, channel in np.argwhere(gaps.any(axis=2)):
        seen = series.observed[case, channel]
        if seen.any():
            gap = gaps[case, channel]
            values[case, channel, gap] = np.interp(t[gap], t[seen], values[case, channel, seen])
    return values
