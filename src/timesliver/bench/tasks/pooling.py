"""The paper's model with maximum in place of average pooling: an ablation, not linear in P."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.bench.tasks.naming import named
from timesliver.encoders import Segments, Shape
from timesliver.network import InteractionTerm, Moments, Term
from timesliver.network.entries import Entries

__all__ = ["MaxSegments"]


@named
class MaxSegments(Segments):
    """`Segments` whose last layer sees the largest entry of each group of P."""

    name = "max-segments"

    @staticmethod
    def terms(shape: Shape, latent_dim: int, **weights: Any) -> list[InteractionTerm]:
        """Return a term for each set of symbols, with weights of 0."""
        averaging = Segments.terms(shape, latent_dim, **weights)
        return [_MaxTerm(term.weights, term.symbols) for term in averaging]


class _MaxTerm(InteractionTerm):
    """A sum over the entries of P that are the largest of their group.

    Its features are P with all other entries set to 0. A logit is linear in them, and which they
    are depends on the case, so that its gradient does as well.
    """

    def weight(self) -> Tensor:
        """Return the weights of P: every entry has that of its group, (C, J, n, q)."""
        W: Tensor = self.weights.weight
        for axis, group in enumerate(self.weights.pooling, start=2):
            W = W.repeat_interleave(group, axis)
        W = W[:, :, : self.weights.n_symbols, : self.weights.latent_dim]
        return W.expand(-1, self.weights.n_channels, -1, -1)

    def features(self, moments: Moments) -> Tensor:
        """Return the largest entries of P, and 0 for the others: (B, J, n, q)."""
        P = super().features(moments)
        return P * self._largest(P)

    def forward(self, moments: Moments) -> Tensor:
        """Return the term's part of the logits, (B, C)."""
        return Term.forward(self, moments)

    def shares(self, moments: Moments, weight: Tensor, targets: Tensor) -> Tensor:
        """Share out ``weight * P`` over the entries that count."""
        counts = self._counting(moments)
        case = torch.arange(len(counts), device=counts.device)[:, None]
        by_target = [
            super(_MaxTerm, self).shares(moments, weight[c] * counts, case) for c in targets.T
        ]
        return torch.cat(by_target, 1)

    def entries(self, moments: Moments) -> Entries:
        """Return the entries of Z, each with a row of Q of its own: without what does not count."""
        every = super().entries(moments)
        counts = F.pad(self._counting(moments), (0, 0, 1, 0)).flatten(0, 2)  # (rows of P, q)
        row = every.row()
        own = torch.arange(len(row), device=row.device, dtype=torch.int32)
        return replace(every, segment=own, Q=every.Q[every.segment] * counts[row])

    def _counting(self, moments: Moments) -> Tensor:
        return self._largest(super().features(moments))

    def _largest(self, P: Tensor) -> Tensor:
        """Return 1 for the largest entry of each group of P, 0 for the others."""
        (a, b), (n, q) = self.weights.pooling, P.shape[2:]
        filled = F.pad(P.detach(), (0, -q % b, 0, -n % a), value=-torch.inf)
        groups = filled.unflatten(3, (-1, b)).unflatten(2, (-1, a)).movedim(3, 4)
        top = groups.flatten(4).argmax(4)  # (B, J, rows, columns)
        marked = F.one_hot(top, math.prod((a, b))).unflatten(4, (a, b)).movedim(4, 3)
        whole: Tensor = marked.flatten(4, 5).flatten(2, 3)[:, :, :n, :q].to(P.dtype)
        return whole
