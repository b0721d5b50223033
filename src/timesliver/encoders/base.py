"""What any encoder gives: a view of the series, and the part of a network that looks at it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from timesliver.errors import InvalidParameterError
from timesliver.network import (
    Batch,
    InteractionPart,
    InteractionTerm,
    Symbols,
    TimeSliverNetwork,
    View,
)
from timesliver.network.weights import Weights
from timesliver.series import PaddedSeries
from timesliver.symbols import Symbolizer, create
from timesliver.training import Cases, Descent, Ridge
from timesliver.typing import FloatArray, IntArray

__all__ = ["Encoder", "FixedEncoder", "Shape"]

_N_BINS = 5  # symbols of a symbolizer that is given by its name


@dataclass(frozen=True)
class Shape:
    """What a network is made for.

    Attributes
    ----------
    n_channels, n_classes : int
        v and C.
    symbols : tuple of (int, int)
        For each set of symbols, its number of symbol channels and of symbols.
    n_timepoints : int
        Length of the training series.
    """

    n_channels: int
    n_classes: int
    symbols: tuple[tuple[int, int], ...]
    n_timepoints: int = 1


class Encoder(BaseEstimator, ABC):
    """Settings of an encoder, of the symbols that it meets, and of how their weights are found.

    A subclass has a `name` and keeps its settings as scikit-learn estimators do.

    Parameters
    ----------
    symbols : str, Symbolizer or list of them
        What meets the rows of the encoder; each of a list brings a term of its own. A name
        stands for about five symbols.
    """

    name: ClassVar[str]
    #: Length of the longest stretch of points that one row describes.
    size: int = 1
    #: How many points of a series are one to the encoder.
    step: Any = 1
    #: Whether each channel is looked at by itself.
    separate: bool = False

    def __init__(self, symbols: Any = "sax") -> None:
        self.symbols = symbols

    @abstractmethod
    def networks(
        self, shape: Shape, seed: int, can_choose: bool, training: View | None = None
    ) -> list[tuple[Self, TimeSliverNetwork]]:
        """Make the networks to train, the best of which is kept, each with its own settings.

        Parameters
        ----------
        shape : Shape
            What the network is made for.
        seed : int
            For initial weights.
        can_choose : bool
            Whether there are cases to choose by; if not, one network is enough.
        training : View or None
            The training cases, if the network takes something from them; None if its weights
            are about to be read from a file.
        """

    @abstractmethod
    def solver(self) -> Descent | Ridge:
        """Return how the weights are found."""

    def check(self) -> None:
        """Raise if a setting makes no sense, before anything long begins."""
        for symbolizer in self.symbolizers():
            symbolizer._check()  # scikit-learn's set_params looks at nothing
        self.solver()

    def resolved(self, n_timepoints: int) -> Self:  # noqa: ARG002
        """Return the encoder with settings that depend on the length of the series filled in."""
        return self

    def chosen(
        self,
        cases: Cases,
        n_classes: int,
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
        seed: int,
    ) -> Self:
        """Return the encoder with settings that the training cases decide filled in."""
        del cases, n_classes, mean, scale, seed
        return self

    def symbolizers(self) -> list[Symbolizer]:
        """Return what turns series into the symbols of this encoder."""
        several = isinstance(self.symbols, list | tuple)
        named = self.symbols if several else [self.symbols]
        chosen = [create(one, _N_BINS if isinstance(one, str) else None) for one in named]
        if not chosen:
            raise InvalidParameterError("symbols must name at least one symbolizer, got none")
        return chosen

    def finish(self, network: TimeSliverNetwork, batch: Batch) -> None:
        """Store with a trained network what explaining needs to know of the training cases."""

    def augmented(self, series: PaddedSeries, mean: FloatArray) -> tuple[PaddedSeries, IntArray]:
        """Return the cases to train on, and of which case each of them is a version."""
        del mean
        return series, np.arange(len(series))

    def seen(self, series: PaddedSeries) -> PaddedSeries:
        """Return the series, or means of their points, long enough for the longest stretch."""
        return series.averaged(int(self.step)).padded_to(self.size)

    def view(
        self,
        series: PaddedSeries,
        symbolizers: Sequence[Symbolizer],
        mean: NDArray[np.float64],
        scale: NDArray[np.float64],
    ) -> View:
        """Lay series out for the part of the network that this encoder made."""
        seen = self.seen(series)
        symbols = tuple(
            Symbols.of(s.transform(seen), seen.observed, s.n_symbols, self.separate)
            for s in symbolizers
        )
        values = seen.standardized(mean, scale)
        return View.of(values, seen, symbols=symbols, step=int(self.step))

    @staticmethod
    def terms(shape: Shape, latent_dim: int, **weights: Any) -> list[InteractionTerm]:
        """Return a term for each set of symbols, with weights of 0."""
        return [
            InteractionTerm(Weights(shape.n_classes, J, n, latent_dim, **weights), index)
            for index, (J, n) in enumerate(shape.symbols)
        ]


class FixedEncoder(Encoder):
    """An encoder without weights of its own: `rows` says how a stretch of points is described.

    The weights of its terms are found in closed form.

    Examples
    --------
    >>> class Slopes(FixedEncoder):
    ...     name = "slopes"
    ...     size = 2
    ...
    ...     def rows(self, x):
    ...         return x[:, 1:] - x[:, :-1]
    >>> Slopes(symbols="clock")
    Slopes(symbols='clock')
    """

    @abstractmethod
    def rows(self, x: Tensor) -> Tensor:
        """Describe every stretch of `size` points: (N, L, channels) to (N, L - size + 1, q)."""

    def solver(self) -> Ridge:
        """Return how the weights are found: in closed form."""
        return Ridge()

    def networks(
        self, shape: Shape, seed: int, can_choose: bool, training: View | None = None
    ) -> list[tuple[Self, TimeSliverNetwork]]:
        """Make the network."""
        del seed, can_choose, training
        module = _Rows(self, shape.n_channels)
        part = InteractionPart(
            [module], [self.terms(shape, module.latent_dim)], None, self.separate
        )
        return [(self, TimeSliverNetwork([part], shape.n_classes))]


class _Rows(nn.Module):
    """An encoder without weights, as a module."""

    def __init__(self, encoder: FixedEncoder, n_channels: int) -> None:
        super().__init__()
        self.rows, self.widths = encoder.rows, (encoder.size,)
        with torch.device("cpu"):
            tried = self.rows(torch.zeros(1, encoder.size, 1 if encoder.separate else n_channels))
        if tried.ndim != 3 or tried.shape[:2] != (1, 1):
            raise InvalidParameterError(
                f"{type(encoder).__name__}.rows must give one row per stretch of {encoder.size} "
                f"points, shape (1, 1, q) for a single stretch; got {tuple(tried.shape)}"
            )
        self.latent_dim = tried.shape[2]

    def forward(self, x: Tensor) -> Tensor:
        rows: Tensor = self.rows(x)
        return rows
