"""`Segments`: the paper's encoder, learnt convolutions over short segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from timesliver.encoders.base import Encoder, Shape
from timesliver.encoders.presets import PRESETS
from timesliver.errors import InvalidParameterError, check_choice, check_count
from timesliver.network import Batch, InteractionPart, TimeSliverNetwork, View
from timesliver.network.segments import InputProjection, SegmentEncoder
from timesliver.network.weights import Weights
from timesliver.series import PaddedSeries
from timesliver.training import Descent
from timesliver.typing import FloatArray, IntArray

__all__ = ["Segments"]

_PROJECTION_DIM = 16  # width of the learnt input projection under a positional encoding
_DEEPEST = 10  # each convolution is twice as wide as the last, so more is a mistake
_MOST_SIZES = 32
_LONG = 256  # points of a series above which step="auto" takes means


class Segments(Encoder):
    """The paper's encoder: a small convolution describes every segment of the series.

    Parameters
    ----------
    sizes : sequence of int or float
        Lengths of the segments: in time points, or below 1 as shares of the length of the series.
    latent_dim : int
        Length of the vector that describes a segment.
    symbols : str, Symbolizer or list of them
        What the segments meet: "sax", "sfa", "abba", "clock", "one", with about five symbols
        each, or instances such as ``SAX(20)``. Each of a list brings a term of its own.
    channels : {"mixed", "separate", "shared"}
        One encoder that sees all channels, as in the paper; one that sees each channel by itself,
        so that the split of the evidence by channel is exact; the same with the same weights for
        all channels.
    positional_encoding : bool or "auto"
        Whether the network is told where in the series a segment lies. "auto" trains without and
        with it, and keeps what does better on validation cases; without any, it is used.
    depth : int
        Convolutions per segment size; 1 is the paper's single one.
    window : {"box", "bell"}
        How the points of a segment are weighted when its symbols are counted.
    pooling : (int, int)
        Average pooling over symbols and over latent columns before the last layer.
    step : int or "auto"
        Look at means of so many successive points, which makes long series affordable. "auto"
        takes as few as leave at most 256.
    augment : "mirror" or None
        Learn from every case upside down and backwards as well, which suits vibrations and noise.
    learning_rate : float
        Adam's step size; it falls to zero along half a cosine over `max_epochs`.
    head_rate : float
        How many times larger the steps of the last layer are than those of the convolutions.
        Near 30 the last layer learns first which symbols matter, and evidence gathers where the
        classes differ; on small sets that costs accuracy.
    sparsity : float
        Weight of a penalty on the total evidence, in units of the logit: moments that need not
        speak fall silent. 0.01 is a mild value, for series of any length and number of channels.
    max_epochs : int
        Most passes over the training cases.
    batch_size : int
        Most cases per step.
    patience : int
        Epochs without a better validation result before training stops.
    validation_fraction : float
        Share of the training cases, from every class, by which the best epoch is chosen. If that
        is fewer than ten cases, all cases train and the lowest training loss decides.
    callbacks : list of Callback or functions, or None
        Called with the record of each epoch.

    Examples
    --------
    >>> Segments(sizes=(4, 1 / 8), symbols=["sax", "clock"]).resolved(n_timepoints=80).sizes
    (4, 10)
    """

    name = "segments"

    def __init__(
        self,
        sizes: Sequence[float] = (4, 16),
        latent_dim: int = 36,
        symbols: Any = "sax",
        channels: str = "mixed",
        positional_encoding: bool | str = "auto",
        depth: int = 3,
        window: str = "box",
        pooling: Sequence[int] = (1, 1),
        step: int | str = 1,
        augment: str | None = None,
        learning_rate: float = 1e-3,
        head_rate: float = 1.0,
        sparsity: float = 0.0,
        max_epochs: int = 100,
        batch_size: int = 64,
        patience: int = 20,
        validation_fraction: float = 0.1,
        callbacks: Any = None,
    ) -> None:
        self.sizes = sizes
        self.latent_dim = latent_dim
        self.symbols = symbols
        self.channels = channels
        self.positional_encoding = positional_encoding
        self.depth = depth
        self.window = window
        self.pooling = pooling
        self.step = step
        self.augment = augment
        self.learning_rate = learning_rate
        self.head_rate = head_rate
        self.sparsity = sparsity
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.callbacks = callbacks

    @classmethod
    def preset(cls, name: str) -> Self:
        """Return the setting with which a table of the paper was run again.

        Parameters
        ----------
        name : str
            "FreqSum", "SeqComb-UV", "SeqComb-MV", "LowVar", "Audio", "EEG" or "FordA".

        Examples
        --------
        >>> Segments.preset("LowVar").sizes
        (4,)
        """
        check_choice("preset", name, tuple(PRESETS))
        return cls(**deepcopy(PRESETS[name]))

    @property
    def separate(self) -> bool:  # type: ignore[override]
        """Whether each channel is a stream of its own."""
        return self.channels != "mixed"

    @property
    def size(self) -> int:  # type: ignore[override]
        """The largest segment."""
        return int(max(self.sizes))

    def check(self) -> None:
        """Raise if a setting makes no sense, before anything long begins."""
        super().check()
        listed = isinstance(self.sizes, list | tuple | np.ndarray)
        if not listed or not 1 <= len(self.sizes) <= _MOST_SIZES:
            raise InvalidParameterError(
                f"sizes must list at least one segment size and at most {_MOST_SIZES}, got "
                f"{self.sizes!r}"
            )
        for m in self.sizes:
            if not isinstance(m, float) or not 0 < m < 1:
                check_count("each of sizes that is no share of the length (0 to 1)", m, 1)
        if len(set(self.sizes)) < len(self.sizes):
            raise InvalidParameterError(f"sizes={tuple(self.sizes)} repeats a size")
        if not isinstance(self.pooling, list | tuple) or len(self.pooling) != 2:
            raise InvalidParameterError(
                f"pooling must be a pair (symbols, latent columns), got {self.pooling}"
            )
        check_count("latent_dim", self.latent_dim, 1)
        check_count("depth", self.depth, 1, _DEEPEST)
        most = min(symbolizer.n_symbols for symbolizer in self.symbolizers())
        check_count("pooling over symbols", self.pooling[0], 1, most)
        check_count("pooling over latent columns", self.pooling[1], 1, self.latent_dim)
        check_choice("window", self.window, ("box", "bell"))
        check_choice("channels", self.channels, ("mixed", "separate", "shared"))
        check_choice("positional_encoding", self.positional_encoding, (True, False, "auto"))
        check_choice("augment", self.augment, (None, "mirror"))
        if self.step != "auto":
            check_count("step", self.step, 1)

    def resolved(self, n_timepoints: int) -> Self:
        """Return the setting with sizes in points, for series of this length."""
        step = math.ceil(n_timepoints / _LONG) if self.step == "auto" else int(self.step)
        length = math.ceil(n_timepoints / step)
        points = [
            max(2, math.ceil(length * size - 1e-9)) if size < 1 else int(size)
            for size in self.sizes
        ]
        chosen: Self = copy(self).set_params(
            sizes=tuple(dict.fromkeys(points)), pooling=tuple(map(int, self.pooling)), step=step
        )
        return chosen

    def solver(self) -> Descent:
        """Return how the network is trained."""
        return Descent(
            learning_rate=self.learning_rate,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            patience=self.patience,
            validation_fraction=self.validation_fraction,
            head_rate=self.head_rate,
            sparsity=self.sparsity,
            callbacks=self.callbacks,
        )

    def finish(self, network: TimeSliverNetwork, batch: Batch) -> None:
        """Store the mean features of the training cases."""
        network.learn_average(batch)

    def augmented(self, series: PaddedSeries, mean: FloatArray) -> tuple[PaddedSeries, IntArray]:
        """Return the cases, with ``augment="mirror"`` also upside down, backwards, and both."""
        cases = np.arange(len(series))
        if self.augment is None:
            return series, cases
        t = np.arange(series.n_timepoints)
        lengths = series.lengths[:, None]
        backwards = np.where(t < lengths, lengths - 1 - t, t)[:, None]
        observed = np.take_along_axis(series.observed, backwards, 2)
        values = np.take_along_axis(series.values, backwards, 2)
        turned = np.concatenate([series.values, values])
        seen = np.concatenate([series.observed, observed])
        flipped = np.where(seen, 2 * mean[:, None] - turned, 0).astype(turned.dtype)
        return (
            PaddedSeries(
                np.concatenate([turned, flipped]),
                np.concatenate([seen, seen]),
                np.tile(series.lengths, 4),
            ),
            np.tile(cases, 4),
        )

    def networks(
        self, shape: Shape, seed: int, can_choose: bool, training: View | None = None
    ) -> list[tuple[Self, TimeSliverNetwork]]:
        """Make the network, without and with a positional encoding where both are tried."""
        del training
        choices = [self.positional_encoding]
        if self.positional_encoding == "auto":
            choices = [False, True] if can_choose else [True]
        made = []
        for choice in choices:
            chosen = copy(self).set_params(positional_encoding=bool(choice))
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                made.append((chosen, chosen._network(shape)))
        return made

    def _network(self, shape: Shape) -> TimeSliverNetwork:
        n_inputs, stem = 1 if self.separate else shape.n_channels, None
        if self.positional_encoding:
            stem, n_inputs = InputProjection(n_inputs, _PROJECTION_DIM, True), _PROJECTION_DIM
        encoders = [
            SegmentEncoder(n_inputs, self.latent_dim, m, self.depth, self.window)
            for m in map(int, self.sizes)
        ]
        pooling, shared = tuple(self.pooling), self.channels == "shared"
        terms = [
            self.terms(shape, self.latent_dim, pooling=pooling, shared=shared) for _ in encoders
        ]
        network = TimeSliverNetwork(
            [InteractionPart(encoders, terms, stem, self.separate)], shape.n_classes
        )
        _draw_head(network, [term.weights for of_encoder in terms for term in of_encoder])
        return network


def _draw_head(network: TimeSliverNetwork, weights: Sequence[Weights]) -> None:
    """Draw the weights of a linear layer that sees the features of all terms."""
    bound = 1.0 / math.sqrt(sum(W.n_channels * W.weight[0, 0].numel() for W in weights))
    shapes = {W.weight.shape for W in weights}
    if len(shapes) == 1:
        n_classes, *shape = shapes.pop()
        drawn = torch.empty(n_classes, len(weights), *shape).uniform_(-bound, bound).unbind(1)
    else:
        drawn = tuple(torch.empty_like(W.weight).uniform_(-bound, bound) for W in weights)
    for W, values in zip(weights, drawn, strict=True):
        W.weight = nn.Parameter(values.contiguous())
    nn.init.uniform_(network.bias, -bound, bound)
