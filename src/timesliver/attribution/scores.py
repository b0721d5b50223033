"""The paper's temporal attribution: zeta (Eq. 3) and phi (Eq. 4), in closed form.

The head is linear in P, so ``g = d logit / dP`` is its weight, and as Z >= 0,

    ReLU(sigma Z_ki Q_kj) = Z_ki ReLU(sigma Q_kj).

Only the maxima over the segments need more than matrix products, and they do not depend on the
class. Everything runs over the non-zero entries of Z; no (kappa, n*v, q) array is ever built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from timesliver.attribution.sparse import blocks, max_times, row_sums, sampled_dots
from timesliver.errors import InvalidParameterError, check_choice
from timesliver.network import Batch, TimeSliverNetwork
from timesliver.network.composition import window_spread
from timesliver.network.stencils import Stencils, raw_stencils, stencils

__all__ = ["ACTIVATIONS", "SegmentScores", "segment_scores", "to_time_points"]

ACTIVATIONS = ("relu", "abs", "none", "sigmoid", "tanh")
_EPS = 1e-18  # the paper's epsilon


@dataclass(frozen=True)
class SegmentScores:
    """phi+ and phi- of one segment size, split by channel, and summed by symbol instead.

    Attributes
    ----------
    segment_size : int
        m.
    positive, negative : tensors of shape (B, K, v, kappa)
        Per class explained, channel and segment; the paper's phi_k is the sum over channels.
    positive_by_symbol, negative_by_symbol : tensors of shape (B, K, v, n)
        The same scores summed over segments, split by the symbol that gated them.
    """

    segment_size: int
    positive: Tensor
    negative: Tensor
    positive_by_symbol: Tensor
    negative_by_symbol: Tensor


@torch.no_grad()
def segment_scores(
    network: TimeSliverNetwork,
    batch: Batch,
    Q: list[Tensor],
    targets: Tensor,
    activation: str = "relu",
    max_scaling: bool | None = None,
    centred: bool = False,
) -> list[SegmentScores]:
    """Return phi+ and phi- for each segment size.

    Parameters
    ----------
    network : TimeSliverNetwork
        The network to explain.
    batch : Batch
        The cases.
    Q : list of tensors of shape (B*S, kappa, q)
        What ``network.encode(batch)`` gave.
    targets : int tensor of shape (B, K)
        The K classes to explain for each case.
    activation : {"relu", "abs", "none", "sigmoid", "tanh"}
        What is applied to ``sigma Z Q``; the paper's choice is ReLU.
    max_scaling : bool or None
        Whether each term is divided by its largest value over the segments. None is True for
        "relu" and "abs"; the others have no such scaling.
    centred : bool
        Explain the logit minus its mean over the classes instead of the logit.
    """
    check_choice("activation", activation, ACTIVATIONS)
    scalable = activation in ("relu", "abs")
    if max_scaling is None:
        max_scaling = scalable
    if max_scaling and not scalable:
        raise InvalidParameterError(
            f"max_scaling divides by the largest activation, which is defined for 'relu' and "
            f"'abs' only; use max_scaling=False with activation={activation!r}"
        )
    config = network.config
    W = network.head.full_weight().detach()  # (C, |m|, v, n+1, q)
    if centred:
        W = W - W.mean(0)
    result = []
    for size, (m, Q_m) in enumerate(zip(config.segment_sizes, Q, strict=True)):
        widths = config.window_widths(m)
        if network.raw is None:
            Z = stencils(batch, m, widths)
        else:
            Z = raw_stencils(batch, m, widths, network.raw)
        table = Q_m / batch.n_segments(m).repeat_interleave(batch.n_streams)[:, None, None]
        table = table.flatten(0, 1)  # (B*S*kappa, q)
        explain = _Explainer(Z, table, activation, max_scaling, signed=network.raw is not None)
        by_class = [explain(W[c, size].flatten(0, 2)) for c in targets.T]  # phi of each entry
        shape = (len(batch), batch.n_channels, Q_m.shape[1])
        positive, negative = (
            torch.stack([_by_cell(phi[sign], Z, shape) for phi in by_class], 1) for sign in (0, 1)
        )
        shape = (len(batch), batch.n_channels, batch.n_rows)
        symbols_positive, symbols_negative = (
            torch.stack([row_sums(Z, phi[sign]).view(shape) for phi in by_class], 1)[..., 1:]
            for sign in (0, 1)
        )
        if activation == "sigmoid":
            # sigmoid(0) = 1/2: each segment also gets half of every |g|, whatever it holds
            floor = W[targets, size].abs().sum((-1, -2))[..., None] / 2
            inside = batch.inside(m)[:, None, None, :]
            positive, negative = positive + floor * inside, negative + floor * inside
        result.append(SegmentScores(m, positive, negative, symbols_positive, symbols_negative))
    return result


def to_time_points(segments: Tensor, batch: Batch, m: int) -> Tensor:
    """Give each point the mean over the segments that cover it: (B, K, v, kappa) to (.., L)."""
    sums = _cover(segments.flatten(0, 2), m).view(*segments.shape[:-1], -1)
    covering = _cover(batch.inside(m).to(segments.dtype), m)  # (B, L)
    return sums / covering.clamp(min=1)[:, None, None, :]


def _cover(x: Tensor, m: int) -> Tensor:
    """Sum over the segments that cover each point: (N, kappa) to (N, L)."""
    return window_spread(x.unsqueeze(2), (m,)).squeeze(2)


def _by_cell(phi: Tensor, Z: Stencils, shape: tuple[int, int, int]) -> Tensor:
    """Add up the entries of each channel and segment."""
    return phi.new_zeros(math.prod(shape)).index_add_(0, Z.cell, phi).view(shape)


class _Explainer:
    """zeta of every entry of Z, summed over the latent columns, for one class after another."""

    def __init__(self, Z: Stencils, Q: Tensor, activation: str, max_scaling: bool, signed: bool):
        self.Z, self.Q, self.activation, self.signed = Z, Q, activation, signed
        q = Q.shape[1]
        parts = Q.new_empty(len(Q), 2, q)  # positive and negative part
        torch.clamp(Q, min=0, out=parts[:, 0])
        torch.sub(parts[:, 0], Q, out=parts[:, 1])
        self.parts = parts.flatten(1)  # (segments, 2q)
        self.scale = Q.new_ones(1), Q.new_ones(1)
        if max_scaling:
            largest = max_times(Z, self.parts)
            if signed:  # a negative Z swaps the parts
                swapped = max_times(replace(Z, value=-Z.value), self.parts.roll(q, 1))
                largest = torch.maximum(largest, swapped)
            up, down = largest[:, :q], largest[:, q:]
            if activation == "abs":
                up = down = torch.maximum(up, down)
            self.scale = 1 / (up + _EPS), 1 / (down + _EPS)

    def __call__(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """Return phi+ and phi- of every entry for the gradient g, shape (rows of P, q)."""
        if self.activation in ("sigmoid", "tanh"):
            half = 0.5 if self.activation == "sigmoid" else 1.0
            curved = half * self._curved(g, half)
            return curved, -curved
        by_up, by_down = self.scale
        if self.activation == "none":
            linear = self._dots(torch.cat([g, -g], 1))
            return linear, -linear
        if self.activation == "abs":
            both = self._dots(torch.cat([g.abs() * by_up, g.abs() * by_down], 1))
            return both, both
        rising, falling = g.relu(), (-g).relu()
        return (
            self._dots(torch.cat([rising * by_up, falling * by_down], 1)),
            self._dots(torch.cat([falling * by_up, rising * by_down], 1)),
        )

    def _dots(self, weights: Tensor) -> Tensor:
        """Weigh the positive and the negative part of ``Z_ki Q_k``, for every entry of Z."""
        Z = self.Z
        dots = sampled_dots(Z.starts, Z.segment, weights, self.parts)
        if self.signed:  # a negative Z swaps the parts
            swapped = weights.roll(self.Q.shape[1], 1)
            dots_of_swapped = sampled_dots(Z.starts, Z.segment, swapped, self.parts)
            dots = torch.where(Z.value < 0, -dots_of_swapped, dots)
        return dots * Z.value

    def _curved(self, g: Tensor, inner: float) -> Tensor:
        """Return the sum of ``g tanh(inner Z Q)`` over the columns: tanh is odd, like sigma."""
        parts = [
            (g[row] * torch.tanh(inner * value[:, None] * self.Q[segment])).sum(1)
            for row, segment, value in blocks(self.Z)
        ]
        return torch.cat(parts)
