"""Raw values in place of symbols, an ablation: learnt functions of the values take O's place."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.bench.tasks.naming import named
from timesliver.encoders import Segments, Shape
from timesliver.network import InteractionTerm, Moments, Term, TimeSliverNetwork, View
from timesliver.network.entries import Entries
from timesliver.network.weights import Weights
from timesliver.network.windows import span, window_sum

__all__ = ["RawSegments"]


@named
class RawSegments(Segments):
    """`Segments` that meet values: as many learnt columns per channel as there would be symbols.

    The column takes the place of its symbol's column in the one-hot matrix O. Only the number of
    symbols matters; the symbols themselves are not looked at.
    """

    name = "raw-segments"

    def _network(self, shape: Shape) -> TimeSliverNetwork:
        network = super()._network(shape)
        [part], [(n_channels, n_columns)] = network.parts, shape.symbols
        part.columns = _Columns(n_channels, n_columns)  # one for all sizes
        part.terms = nn.ModuleList(
            nn.ModuleList(_RawTerm(term.weights, part.columns) for term in of_encoder)
            for of_encoder in part.terms
        )
        return network


class _Columns(nn.Module):
    """``O[t, (j, i)] = slope_ji x_tj + offset_ji`` at observed points, 0 elsewhere."""

    def __init__(self, n_channels: int, n_columns: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(n_channels)
        self.slope = nn.Parameter(torch.empty(n_channels, n_columns).uniform_(-bound, bound))
        self.offset = nn.Parameter(torch.empty(n_channels, n_columns).uniform_(-bound, bound))

    def forward(self, view: View) -> Tensor:
        """Return O itself, (B, v, n, L)."""
        x, seen = view.values.unsqueeze(2), view.observed.unsqueeze(2)
        O: Tensor = (self.slope[..., None] * x + self.offset[..., None]) * seen
        return O


class _RawTerm(InteractionTerm):
    """``P = Z^T Q`` with Z the averages of columns; as O is made of two matrices, so is P."""

    def __init__(self, weights: Weights, columns: _Columns) -> None:
        super().__init__(weights)
        self._columns = (columns,)  # not a part of this term: the terms of all sizes share it

    def features(self, moments: Moments) -> Tensor:
        """Return P, (B, v, n, q)."""
        [columns] = self._columns
        by_value, by_presence = (
            (x.flatten(0, 1) @ moments.Qt).unflatten(0, x.shape[:2]).flatten(1, 2).unsqueeze(2)
            for x in _by_stream(moments)
        )  # (B, v, 1, q)
        P: Tensor = columns.slope[..., None] * by_value + columns.offset[..., None] * by_presence
        P = P * moments.scale.view(-1, 1, 1, 1)
        return P

    def forward(self, moments: Moments) -> Tensor:
        """Return the term's part of the logits, (B, C)."""
        return Term.forward(self, moments)

    def shares(self, moments: Moments, weight: Tensor, targets: Tensor) -> Tensor:
        """Share out ``weight * P``: a point has what its value and its presence bring."""
        [columns] = self._columns
        x, seen = _by_stream(moments)  # (B, S, U, L)
        Qt = moments.Qt.unflatten(0, x.shape[:2])  # (B, S, L, q)
        of_value = torch.einsum("cvnq,vn->cvq", weight, columns.slope)
        of_presence = torch.einsum("cvnq,vn->cvq", weight, columns.offset)
        by_target = []
        for c in targets.T:
            per_value, per_point = (
                torch.einsum("bslq,bsuq->bsul", Qt, W[c].unflatten(1, x.shape[1:3]))
                for W in (of_value, of_presence)
            )
            by_target.append((x * per_value + seen * per_point).flatten(1, 2))
        return torch.stack(by_target, 1) * moments.scale.view(-1, 1, 1, 1)

    def entries(self, moments: Moments) -> Entries:
        """Return all entries of Z. The paper's scores want them >= 0.

        As ``Z Q = -Z (-Q)``, a negative one becomes positive and points at the row of -Q.
        """
        [columns] = self._columns
        view, widths = moments.view, moments.widths
        O = columns(view)
        B, v, n, L = O.shape
        m = span(widths)
        kappa = L - m + 1
        sums = window_sum(O.view(-1, L, 1), widths).view(B, v, n, kappa) / math.prod(widths)
        Z = sums * view.has_segment(m)[:, None, None]
        rows = moments.Q / view.n_segments(m).repeat_interleave(moments.n_streams)[:, None, None]
        table = rows.flatten(0, 1)  # (B*S*kappa, q)

        channel = torch.arange(B * v, device=O.device, dtype=torch.int32).view(B, v, 1, 1)
        stream = channel.div(v // moments.n_streams, rounding_mode="floor")
        k = torch.arange(kappa, device=O.device, dtype=torch.int32)
        sizes = F.pad(torch.full((B, v, n), kappa, device=O.device), (1, 0))  # none: "no symbol"
        return Entries(
            F.pad(sizes.flatten().cumsum(0), (1, 0)).int(),
            (stream * kappa + k + (Z < 0) * len(table)).flatten(),
            (channel * kappa + k).expand_as(Z).flatten(),
            Z.abs().flatten(),
            torch.cat([table, -table]),
            (B, v, n + 1, kappa),
            m,
        )


def _by_stream(moments: Moments) -> tuple[Tensor, Tensor]:
    """Return the values, and 1 where they are known, as (B, S, U, L)."""
    view, S = moments.view, moments.n_streams
    x = view.values.unflatten(1, (S, -1))
    return x, view.observed.unflatten(1, (S, -1)).to(x.dtype)
