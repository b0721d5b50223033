"""The paper's temporal attribution: zeta (Eq. 3) and phi (Eq. 4), in closed form.

The head is linear in P, so ``g = d logit / dP`` is its weight, and as Z >= 0,

    ReLU(sigma Z_ki Q_kj) = Z_ki ReLU(sigma Q_kj).

Only the maxima over the segments need more than matrix products, and they do not depend on the
class. Everything runs over the non-zero entries of Z; no (kappa, n*J, q) array is ever built.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network import Batch, InteractionTerm, Moments, Term, View
from timesliver.network.entries import Entries
from timesliver.network.interaction import csr, sampled_dots
from timesliver.network.windows import window_spread

__all__ = ["Phi", "max_times", "max_times_in_blocks", "phi", "to_time_points"]

_EPS = 1e-18  # the paper's epsilon
_BLOCK = 1 << 15


class Phi(NamedTuple):
    """The paper's scores of K classes.

    Attributes
    ----------
    positive, negative : tensors of shape (B, K, v, L)
        phi+ and phi- of every time point, split by channel.
    positive_by_symbol, negative_by_symbol : tensors of shape (B, K, v, n) or None
        The same scores summed over segments, split by the symbol that gated them, if the
        network has one set of symbols only, and every channel has its own.
    """

    positive: Tensor
    negative: Tensor
    positive_by_symbol: Tensor | None
    negative_by_symbol: Tensor | None


@torch.no_grad()
def phi(
    batch: Batch,
    encoded: Iterable[tuple[Term, Moments]],
    targets: Tensor,
    max_scaling: bool,
    centred: bool,
) -> Phi:
    """Return phi+ and phi- of every time point, added up over the terms.

    Parameters
    ----------
    batch : Batch
        The cases.
    encoded : iterable of (Term, Moments)
        What ``network.each(batch)`` yields.
    targets : int tensor of shape (B, K)
        The classes to explain for each case.
    max_scaling : bool
        Whether each term is divided by its largest value over the segments.
    centred : bool
        Explain the logit minus its mean over the classes instead of the logit.
    """
    B, v, L = batch.values.shape
    K = targets.shape[1]
    signs = [batch.values.new_zeros(B, K, v, L) for _ in range(2)]
    by_symbol: dict[tuple[int, int], list[Any]] = {}
    for term, moments in encoded:
        W = term.weight()
        W = W - W.mean(0) if centred else W
        if not isinstance(term, InteractionTerm):
            # Z Q is 0 or 1 over the number of moments counted, so no maxima are looked for. Times
            # the length it is 0 or 1, or somewhat more for kernels that leave out the ends.
            factor = batch.lengths.view(-1, 1, 1, 1) if max_scaling else 1
            for weight, total in zip((W.relu(), (-W).relu()), signs, strict=True):
                total += term.shares(moments, weight, targets) * factor
            by_symbol[id(term), 0] = [torch.zeros(0, 0, 0)] * 2
            continue
        W = F.pad(W, (0, 0, 1, 0))  # no weight for "no symbol"
        entries = term.entries(moments)
        explained = _Explainer(entries, max_scaling)
        by_class = [explained(W[c].flatten(0, 2)) for c in targets.T]
        for sign, total in enumerate(signs):
            segments = torch.stack([entries.by_segment(pair[sign]) for pair in by_class], 1)
            points = to_time_points(segments, moments.view, entries.size)
            step = moments.view.step
            by_channel = InteractionTerm.to_channels(points, moments.view)
            total += by_channel.repeat_interleave(step, dim=-1)[..., :L]
        symbols = [
            torch.stack([entries.by_symbol(pair[sign]) for pair in by_class], 1)
            for sign in range(2)
        ]
        of = id(moments.view), getattr(term, "symbols", 0)  # one view's symbols are not another's
        known = by_symbol.get(of, [0, 0])
        by_symbol[of] = [a + b for a, b in zip(known, symbols, strict=True)]
    of_one = list(by_symbol.values())
    if len(of_one) == 1 and of_one[0][0].shape[2] == v:
        return Phi(signs[0], signs[1], *of_one[0])
    return Phi(signs[0], signs[1], None, None)


def to_time_points(segments: Tensor, view: View, m: int) -> Tensor:
    """Give each point the mean over the segments that cover it: (B, K, J, kappa) to (.., L)."""
    sums = _cover(segments.flatten(0, 2), m).view(*segments.shape[:-1], -1)
    covering = _cover(view.has_segment(m).to(segments.dtype), m)  # (B, L)
    return sums / covering.clamp(min=1)[:, None, None, :]


def _cover(x: Tensor, m: int) -> Tensor:
    """Sum over the segments that cover each point: (N, kappa) to (N, L)."""
    return window_spread(x.unsqueeze(2), (m,)).squeeze(2)


class _Explainer:
    """zeta of every entry of Z, summed over the latent columns, for one class after another."""

    def __init__(self, entries: Entries, max_scaling: bool) -> None:
        self.entries = entries
        Q = entries.Q
        q = Q.shape[1]
        parts = Q.new_empty(len(Q), 2, q)  # positive and negative part
        torch.clamp(Q, min=0, out=parts[:, 0])
        torch.sub(parts[:, 0], Q, out=parts[:, 1])
        self.parts = parts.flatten(1)  # (segments, 2q)
        self.by_up, self.by_down = Q.new_ones(1), Q.new_ones(1)
        if max_scaling:
            scale = 1 / (max_times(entries, self.parts) + _EPS)
            self.by_up, self.by_down = scale[:, :q], scale[:, q:]

    def __call__(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """Return phi+ and phi- of every entry for the gradient g, shape (rows of P, q)."""
        rising, falling = g.relu(), (-g).relu()
        return (
            self._dots(torch.cat([rising * self.by_up, falling * self.by_down], 1)),
            self._dots(torch.cat([falling * self.by_up, rising * self.by_down], 1)),
        )

    def _dots(self, weights: Tensor) -> Tensor:
        """Weigh the positive and the negative part of ``Z_ki Q_k``, for every entry of Z."""
        Z = self.entries
        return sampled_dots(Z.starts, Z.segment, weights, self.parts) * Z.value


def max_times(Z: Entries, Q: Tensor) -> Tensor:
    """Return the largest ``Z_ki Q_kj`` over k, or 0 if all are negative: (rows of P, columns)."""
    if Q.device.type != "cpu":  # elsewhere torch has no such kernel
        return max_times_in_blocks(Z, Q)
    matrix = csr(Z.starts, Z.segment, Z.value, len(Q))
    largest: Tensor = torch.sparse.mm(matrix, Q, reduce="amax")
    return largest.clamp_(min=0)


def max_times_in_blocks(Z: Entries, Q: Tensor) -> Tensor:
    """Do the work of `max_times` on any device."""
    largest = Q.new_zeros(len(Z.starts) - 1, Q.shape[1])
    parts = Z.row().split(_BLOCK), Z.segment.split(_BLOCK), Z.value.split(_BLOCK)
    for row, segment, value in zip(*parts, strict=True):
        terms = Q[segment] * value[:, None]
        largest.scatter_reduce_(0, row[:, None].expand_as(terms), terms, "amax")
    return largest
