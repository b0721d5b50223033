"""COLOR (2025): which symbols occur in a segment, times what the segment looks like, then an MLP.

It was made for sequences of monomers; here the symbols of SAX take their place, or, in raw mode,
the values of the channels. A = n * v symbols in all, or A = v channels; kappa = L - m + 1 segments
of m points; q latent columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.layers import check_widths, inside, mlp
from timesliver.errors import InvalidParameterError, check_choice, check_count
from timesliver.network.batch import Batch
from timesliver.network.segments import sinusoid
from timesliver.series import PaddedSeries
from timesliver.symbols import create, from_state
from timesliver.typing import JSONDict

__all__ = ["COLOR", "COLORNetwork"]


class COLORNetwork(BackboneNetwork):
    """``P = D^T Q`` and an MLP; see `COLOR`.

    The values of its batches are symbols 1..n, 0 for none; in raw mode those of the series.
    """

    def _build(self, settings: COLOR) -> None:
        check_choice("mode", settings.mode, ("symbols", "raw"))
        check_count("n_bins", settings.n_bins, 2)
        check_count("latent_dim", settings.latent_dim, 1)
        widths = (*check_widths("widths", settings.widths, 0), settings.latent_dim)
        self.kernel_sizes = check_widths("kernel_sizes", settings.kernel_sizes)
        if len(widths) != len(self.kernel_sizes):
            raise InvalidParameterError(
                f"kernel_sizes={self.kernel_sizes} must have one entry for each of widths="
                f"{widths[:-1]} and one for latent_dim"
            )
        self.mode, self.n_symbols = settings.mode, settings.n_bins
        self.positional_encoding = settings.positional_encoding
        self.span, self.stride = 1 + sum(size - 1 for size in self.kernel_sizes), 1
        n_rows = self.n_channels * (1 if self.mode == "raw" else self.n_symbols)
        if settings.row_norm and n_rows == 1:
            raise InvalidParameterError(
                "row_norm leaves nothing of a single row; use it with more channels or symbols"
            )
        self.n_rows, self.numbers_per_point = n_rows, max(*widths, 2 * n_rows)
        self.projection = nn.Linear(n_rows, n_rows) if settings.projection else nn.Identity()
        self.convolutions = nn.ModuleList(
            nn.Conv1d(n_in, n_out, size)
            for (n_in, n_out), size in zip(
                pairwise((n_rows, *widths)), self.kernel_sizes, strict=True
            )
        )
        self.relus = nn.ModuleList(nn.ReLU() for _ in widths[1:])
        self.norm = nn.LayerNorm(widths[-1]) if settings.latent_norm else nn.Identity()
        self.row_norm = nn.LayerNorm(n_rows) if settings.row_norm else nn.Identity()
        head = check_widths("head", settings.head, 0)
        self.head = mlp(n_rows * widths[-1], head, self.n_classes)

    def encode(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return D, shape (B, kappa, A), and Q, (B, kappa, q); D is 0 past the end of a case."""
        self._check(batch)
        rows = self._rows(batch.values)
        rows = F.pad(rows, (0, max(0, self.span - rows.shape[2])))
        x = self.projection(rows.transpose(1, 2)).transpose(1, 2)
        if self.positional_encoding:
            x = x + sinusoid(x.shape[2], x.shape[1], x).T
        for layer, convolution in enumerate(self.convolutions):
            x = convolution(x if layer == 0 else self.relus[layer - 1](x))
        Q = self.norm(x.transpose(1, 2))
        D = rows
        for size in self.kernel_sizes:
            D = F.avg_pool1d(D, size, 1)
        D = D * inside(self.n_segments(batch.lengths), D.shape[2])
        D = D * (math.prod(self.kernel_sizes) / batch.lengths[:, None, None])
        return D.transpose(1, 2), Q

    def _rows(self, values: Tensor) -> Tensor:
        """Return what is counted in a segment, shape (B, A, L): symbols, or the values."""
        if self.mode == "raw":
            return values
        symbols = torch.arange(1, self.n_symbols + 1, device=values.device)[:, None]
        return (values[:, :, None] == symbols).float().flatten(1, 2)

    def classify(self, P: Tensor) -> Tensor:
        """Return the logits, shape (B, C), from P of shape (B, A, q)."""
        P = self.row_norm(P.transpose(1, 2)).transpose(1, 2)
        logits: Tensor = self.head(P.flatten(1))
        return logits

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits, shape (B, C)."""
        D, Q = self.encode(batch)
        return self.classify(D.transpose(1, 2) @ Q)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return Q, shape (B, q, kappa), and how many segments belong to each case."""
        return self.encode(batch)[1].transpose(1, 2), self.n_segments(batch.lengths)

    def n_segments(self, lengths: Tensor) -> Tensor:
        """Return kappa for series of these lengths; one, if shorter than a segment."""
        return (lengths - self.span + 1).clamp(min=1)


@dataclass(eq=False, repr=False, kw_only=True)
class COLOR(BackboneClassifier):
    """Classify series by their symbols with the network of COLOR (2025).

    Training parameters are those of `BackboneClassifier`.

    Parameters
    ----------
    mode : {"symbols", "raw"}
        What takes the place of monomers: the symbols of SAX, or the standardised values, one row
        per channel. The sizes of two of the paper's networks are those of "raw", with
        ``latent_dim=4`` and ``row_norm=True``.
    n_bins : int
        Number of symbols per channel.
    latent_dim : int
        Length of the vector that describes a segment.
    widths : sequence of int
        Filters of the convolutions before the last, which has `latent_dim`.
    kernel_sizes : sequence of int
        Points that each convolution spans.
    positional_encoding : bool
        Whether the convolutions are told where in the series they are.
    head : sequence of int
        Hidden layers between P and the logits.
    projection : bool
        Whether the convolutions are given a learnt mixture of the rows instead of these.
    latent_norm : bool
        Whether the vector of each segment is normalised.
    row_norm : bool
        Whether P is normalised over its rows, the symbols or channels.
    """

    network_class = COLORNetwork

    mode: str = "symbols"
    n_bins: int = 20
    latent_dim: int = 20
    widths: Sequence[int] = (16, 32)
    kernel_sizes: Sequence[int] = (2, 2, 2)
    positional_encoding: bool = True
    head: Sequence[int] = (32, 8)
    projection: bool = False
    latent_norm: bool = True
    row_norm: bool = False
    max_epochs: int = 300
    batch_size: int = 256
    patience: int = 40

    def _learn_input(self, series: PaddedSeries) -> None:
        super()._learn_input(series)
        self.symbolizer_ = create("sax", self.n_bins).fit(series)

    def _batch(self, series: PaddedSeries) -> Any:
        if self.mode == "raw":
            return super()._batch(series)
        return Batch.of(self.symbolizer_.transform(series) * series.observed, series)

    def _state(self) -> tuple[dict[str, NDArray[Any]], JSONDict]:
        scales, _ = super()._state()
        symbols, learned = self.symbolizer_.state()
        return scales | {f"symbols.{k}": v for k, v in learned.items()}, {"symbols": symbols}

    def _restore_input(self, arrays: dict[str, NDArray[Any]], description: JSONDict) -> None:
        super()._restore_input(arrays, description)
        prefix = "symbols."
        learned = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        self.symbolizer_ = from_state(description["symbols"], learned)
        symbols = self.symbolizer_
        if (symbols.n_channels_, symbols.n_symbols) != (self.n_channels_, self.n_bins):
            raise ValueError(f"{self.n_channels_} channels, but symbols of another number")
