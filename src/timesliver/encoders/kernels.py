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
from timesliver.network import Batch, Symbols, TimeSliverNetwork, View
from timesliver.network.bank import bank_shapes, draw_bank
from timesliver.network.kernels import KernelPart, KernelTerm, Responses
from timesliver.series import PaddedSeries
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
_FEW = 30  # cases to choose the smoothing by


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
    """

    name = "kernels"

    def __init__(self, n_kernels: int = 2500, symbols: Any = "auto") -> None:
        self.n_kernels = n_kernels
        self.symbols = symbols

    def check(self) -> None:
        """Raise if a setting makes no sense."""
        super().check()
        check_count("n_kernels", self.n_kernels, 84)

    def symbolizers(self) -> list[Symbolizer]:
        """Return what turns series into symbols; all that may be chosen, before it is."""
        if isinstance(self.symbols, str) and self.symbols == "auto":
            return list(dict.fromkeys(one for choice in CHOICES for one in choice))
        return super().symbolizers()

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
        responses = Responses(view, bank)
        features = responses.features()
        sizes = [one.n_symbols for one in symbolizers]
        blocks = np.split(features, np.cumsum(sizes)[:-1], axis=1)
        by_set = dict(zip(known, (block.reshape(len(few), -1) for block in blocks), strict=True))
        y, weight = few.y.numpy(), few.weight.numpy().astype(np.float64)
        errors = []
        for choice in CHOICES:
            solution = solve_ridge(
                Columns([by_set[one] for one in choice]), y, n_classes, weight, Ridge().strengths
            )
            errors.append(solution.errors.min())
        best = CHOICES[int(np.argmin(errors))]
        settled: Self = copy(self).set_params(symbols=list(best))
        return settled

    def solver(self) -> Ridge:
        """Return how the weights are found: in closed form."""
        return Ridge()

    def finish(self, network: TimeSliverNetwork, batch: Batch) -> None:
        """Choose over how many points evidence is evened out."""
        [part] = network.parts
        some = np.linspace(0, len(batch) - 1, min(_FEW, len(batch))).astype(np.int64)
        part.choose_smoothing(batch[torch.from_numpy(np.unique(some))])

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
        self, shape: Shape, seed: int, can_choose: bool, training: View | None
    ) -> list[tuple[Self, TimeSliverNetwork]]:
        """Make the network, with biases from the training series."""
        del can_choose
        if training is None:
            bank = bank_shapes(self.n_kernels, shape.n_channels, shape.n_timepoints)
        else:
            bank = draw_bank(self.n_kernels, *_arrays(training), seed)
        rows = sum(n for _, n in shape.symbols)
        term = KernelTerm(shape.n_classes, rows, len(bank.biases))
        return [(self, TimeSliverNetwork([KernelPart(bank, term)], shape.n_classes))]


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
