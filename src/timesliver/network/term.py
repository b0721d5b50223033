"""A term: one encoder joined with one set of symbols, and the weights of their interaction."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from timesliver.network.batch import Symbols, View
from timesliver.network.entries import Entries, entries
from timesliver.network.interaction import bag_sum, moment_dots, spread
from timesliver.network.weights import Weights
from timesliver.network.windows import span

__all__ = ["InteractionTerm", "Moments", "Part", "Term"]


class Moments:
    """What an encoder says of every moment: Q, and Q spread back onto the time points.

    Parameters
    ----------
    Q : tensor of shape (B*S, kappa, q)
        A row for every segment of every stream.
    view : View
        The series that were encoded.
    widths : tuple of int
        The averages, one on another, that make the window of a segment.
    n_streams : int
        S: 1 if the encoder sees all channels together, v if each by itself.
    """

    def __init__(self, Q: Tensor, view: View, widths: tuple[int, ...], n_streams: int) -> None:
        self.Q, self.view, self.widths, self.n_streams = Q, view, widths, n_streams

    @cached_property
    def Qt(self) -> Tensor:
        """``A^T Q`` up to the factor `scale`: (B*S, L, q)."""
        inside = self.view.has_segment(span(self.widths))
        mask = None
        if not bool(inside.all()):
            mask = inside.repeat_interleave(self.n_streams, 0).unsqueeze(2).to(self.Q.dtype)
        return spread(self.Q, mask, self.widths)

    @property
    def scale(self) -> Tensor:
        """What the sums of `Qt`, and so P, must be multiplied by: (B,).

        Sums over the window become averages, and P is divided by the number of segments, so that
        logits do not grow with the length of a series. All that follows is linear, so one number
        per case can be applied last, to the logits, where it costs nothing.
        """
        n_segments = self.view.n_segments(span(self.widths)).to(self.Q.dtype)
        return 1 / (n_segments * math.prod(self.widths))


class Term(nn.Module, ABC):
    """A part of the logit that is a sum over moments: weights times features P.

    Subclasses say what P is and how a weighted sum of it is shared out among the moments; nothing
    else is asked of a term, except by the paper's scores, which also want its entries of Z and Q.
    """

    #: Mean of P over the training cases, for the base of an explanation: (1, *shape of P).
    average: Tensor

    @abstractmethod
    def weight(self) -> Tensor:
        """Return the weights of P for each class: (C, *shape of P)."""

    @abstractmethod
    def set_weight(self, weight: Tensor) -> None:
        """Take weights that were found in closed form: (C, *shape of P)."""

    @abstractmethod
    def scale_weight(self, factor: float) -> None:
        """Multiply the weights, and so the term's part of every logit."""

    @abstractmethod
    def features(self, moments: Moments) -> Tensor:
        """Return P: (B, ...)."""

    @abstractmethod
    def shares(self, moments: Moments, weight: Tensor, targets: Tensor) -> Tensor:
        """Share a weighted sum of P out among channels and time points.

        Parameters
        ----------
        moments : Moments
            What the encoder says.
        weight : tensor of shape (C, *shape of P)
            Weights of P.
        targets : int tensor of shape (B, K)
            Which of the C weights are meant for each case, K of them.

        Returns
        -------
        tensor of shape (B, K, v, L)
            For each case and target, the shares: their sum is that of ``weight * P``.
        """

    @abstractmethod
    def channel_sums(self, features: Tensor, weight: Tensor, n_channels: int) -> Tensor:
        """Return what `shares` adds up to in each channel, for all C weights: (B, C, v)."""

    def forward(self, moments: Moments) -> Tensor:
        """Return the term's part of the logits, (B, C)."""
        return self.features(moments).flatten(1) @ self.weight().flatten(1).T


class Part(nn.Module, ABC):
    """What one encoder brings to a network."""

    #: Which view of a batch the encoder looks at.
    view: int

    @abstractmethod
    def each(self, view: View, only: Term | None = None) -> Iterator[tuple[Term, Any]]:
        """Yield every term, or one, with what its encoder says; one encoder's rows at a time."""

    @abstractmethod
    def sizes(self, n_channels: int, n_timepoints: int) -> Iterator[int]:
        """Yield how many numbers each encoder makes of a case."""

    @abstractmethod
    def smoothing(self, view: View) -> int:
        """Over how many points shares are evened out unless something else is asked for."""


class InteractionTerm(Term):
    """The paper's interaction ``P = Z^T Q`` of symbols with rows of any encoder.

    Parameters
    ----------
    weights : Weights
        The weights of P.
    symbols : int
        Which of a view's symbols meet the encoder.
    """

    def __init__(self, weights: Weights, symbols: int = 0) -> None:
        super().__init__()
        self.weights = weights
        self.symbols = symbols
        shape = (1, weights.n_channels, weights.n_symbols, weights.latent_dim)
        self.register_buffer("average", torch.zeros(shape))

    def weight(self) -> Tensor:
        """Return the weights of P for each class: (C, J, n, q)."""
        return self.weights.full()[:, :, 1:]

    def set_weight(self, weight: Tensor) -> None:
        """Take weights of P: (C, J, n, q)."""
        with torch.no_grad():
            self.weights.weight.copy_(weight)

    def scale_weight(self, factor: float) -> None:
        """Multiply the weights."""
        with torch.no_grad():
            self.weights.weight.mul_(factor)

    def features(self, moments: Moments) -> Tensor:
        """Return P, (B, J, n, q)."""
        P = self._sums(moments) * moments.scale[:, None, None]
        return P.view(len(P), self.weights.n_channels, -1, P.shape[2])[:, :, 1:]

    def forward(self, moments: Moments) -> Tensor:
        """Return the term's part of the logits; the factors of P come last."""
        W = self.weights.full().flatten(1)
        return (self._sums(moments).flatten(1) @ W.T) * moments.scale[:, None]

    def shares(self, moments: Moments, weight: Tensor, targets: Tensor) -> Tensor:
        """Share out ``weight * P``: point t of symbol channel j has ``<W[s_tj], Qt[t]>``."""
        W = nn.functional.pad(weight, (0, 0, 1, 0))
        symbols = self._symbols(moments)
        by_target = [moment_dots(moments.Qt, W, symbols, moments.n_streams, c) for c in targets.T]
        shares = torch.stack(by_target, 1) * moments.scale.view(-1, 1, 1, 1)
        return self.to_channels(shares, moments.view)

    def channel_sums(self, features: Tensor, weight: Tensor, n_channels: int) -> Tensor:
        """Return the sum of ``weight * P`` over symbols and columns, by channel."""
        sums = torch.einsum("bjnq,cjnq->bcj", features, weight)
        if sums.shape[2] == n_channels:
            return sums
        return sums.expand(-1, -1, n_channels) / n_channels

    def entries(self, moments: Moments) -> Entries:
        """Return the non-zero entries of Z, and Q divided by the number of segments."""
        return entries(moments.Q, moments.view, self._symbols(moments), moments.widths)

    @staticmethod
    def to_channels(scores: Tensor, view: View) -> Tensor:
        """Give scores of symbol channels, (B, K, J, L), to the channels of the series.

        A symbol that all channels share speaks for those that are observed, in equal parts.
        """
        if scores.shape[2] == view.n_channels:
            return scores
        seen = view.observed.to(scores.dtype)  # (B, v, L)
        return scores * (seen / seen.sum(1, keepdim=True).clamp(min=1))[:, None]

    def _symbols(self, moments: Moments) -> Symbols:
        return moments.view.symbols[self.symbols]

    def _sums(self, moments: Moments) -> Tensor:
        """Return P up to its factors, with a row for "no symbol": (B, J*(n+1), q)."""
        return bag_sum(moments.Qt, self._symbols(moments), moments.n_streams)
