"""Module III: the interaction ``P = Z^T Q`` as bag sums, and its shares by moment.

As ``Z = A O``, the product is ``P = O^T (A^T Q)``: spread Q back onto the time points, then add
up the points that carry each symbol. The cost is O(L v q), whatever the number of symbols, and
neither O nor Z is ever built. Both steps are linear, so their backward passes are their
transposes and nothing but the indices needs to be kept.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network.batch import Symbols
from timesliver.network.windows import window_spread, window_sum

__all__ = ["bag_sum", "csr", "moment_dots", "sampled_dots", "spread"]


def spread(Q: Tensor, mask: Tensor | None, widths: tuple[int, ...]) -> Tensor:
    """Return ``A^T Q`` up to the factor of the averages, shape (B*S, L, q).

    The window is the box of Eq. 1 for one width, and bell-shaped for several. Where the mask is
    0 there is no segment.
    """
    Qt: Tensor = _Spread.apply(Q, mask, widths)  # type: ignore[no-untyped-call]
    return Qt


def bag_sum(Qt: Tensor, symbols: Symbols, n_streams: int) -> Tensor:
    """Return ``P = O^T Qt``, shape (B, J*(n+1), q); row 0 of a channel is "no symbol"."""
    P: Tensor = _BagSum.apply(Qt, symbols, n_streams)  # type: ignore[no-untyped-call]
    return P


def moment_dots(Qt: Tensor, W: Tensor, symbols: Symbols, n_streams: int, targets: Tensor) -> Tensor:
    """Return ``<W_c[s_tj], Qt[t]>`` for the class c of each case: (B, J, L).

    They are the shares of the moments in ``<W_c, bag_sum(Qt)>``.

    Parameters
    ----------
    Qt : tensor of shape (B*S, L, q)
        The segments spread onto time points.
    W : tensor of shape (C, J, n+1, q)
        Weights of P for each class.
    symbols : Symbols
        What the points carry.
    n_streams : int
        S.
    targets : int tensor of shape (B,)
        The class of each case.
    """
    dots: Tensor = _MomentDots.apply(  # type: ignore[no-untyped-call]
        Qt, W, symbols, n_streams, targets
    )
    return dots


def sampled_dots(starts: Tensor, columns: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return ``<left[i], right[j]>`` for every entry (i, j) of a sparse pattern.

    The entries of row i have the columns ``columns[starts[i]:starts[i + 1]]``.
    """
    pattern = csr(starts, columns, left.new_zeros(len(columns)), len(right))
    torch.sparse.sampled_addmm(pattern, left, right.T, beta=0.0, out=pattern)
    return pattern.values()


def csr(starts: Tensor, columns: Tensor, values: Tensor, n_columns: int) -> Tensor:
    """Return a sparse matrix."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            starts.int(),
            columns.int(),
            values,
            (len(starts) - 1, n_columns),
            check_invariants=False,
        )


class _Spread(torch.autograd.Function):
    """Sum over the segments that cover each point, leaving out those past a case's end."""

    @staticmethod
    def forward(ctx: Any, Q: Tensor, mask: Tensor | None, widths: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.widths = widths
        return window_spread(Q if mask is None else Q * mask, widths)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (mask,) = ctx.saved_tensors
        of_Q = window_sum(gradient, ctx.widths)
        return of_Q if mask is None else of_Q * mask, None, None


class _BagSum(torch.autograd.Function):
    """Add up the rows of each bag; backwards, add up the bags that each point lies in."""

    @staticmethod
    def forward(ctx: Any, Qt: Tensor, symbols: Symbols, n_streams: int) -> Tensor:
        ctx.symbols, ctx.n_streams, ctx.shape = symbols, n_streams, Qt.shape
        rows, offsets = symbols.bags(n_streams)
        return F.embedding_bag(
            rows, Qt.flatten(0, 1), offsets, mode="sum", include_last_offset=True
        ).view(len(symbols.codes), -1, Qt.shape[2])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        rows = ctx.symbols.rows(ctx.n_streams)
        of_Qt = F.embedding_bag(rows, gradient.flatten(0, 1), mode="sum").view(ctx.shape)
        return of_Qt, None, None


class _MomentDots(torch.autograd.Function):
    """Products of single rows; backwards, weighted sums over the same pairs."""

    @staticmethod
    def forward(
        ctx: Any, Qt: Tensor, W: Tensor, symbols: Symbols, n_streams: int, targets: Tensor
    ) -> Tensor:
        B, J, L = symbols.codes.shape
        rows = symbols.rows(n_streams).reshape(B, -1)
        first = (targets - torch.arange(B, device=targets.device)) * (J * symbols.n_rows)
        columns = (rows + first[:, None]).int().flatten()  # of W: (B*S*L*U,)
        starts = torch.arange(
            0, len(columns) + 1, J // n_streams, device=targets.device, dtype=torch.int32
        )
        dots = sampled_dots(starts, columns, Qt.flatten(0, 1), W.flatten(0, 2))
        ctx.save_for_backward(Qt, W, columns)
        ctx.symbols, ctx.n_streams = symbols, n_streams
        return _by_channel(dots.view(B, n_streams, L, -1))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        Qt, W, columns = ctx.saved_tensors
        B, J, L = gradient.shape
        S, gradient = ctx.n_streams, gradient.contiguous()
        table, weights = Qt.flatten(0, 1), W.flatten(0, 2)
        by_point = gradient.view(B, S, J // S, L).transpose(2, 3).reshape(B * S * L, J // S)
        by_point = by_point.contiguous()
        of_Qt = F.embedding_bag(
            columns.view_as(by_point), weights, mode="sum", per_sample_weights=by_point
        )
        rows, offsets = ctx.symbols.bags(S)
        sorted_gradient = gradient.gather(2, ctx.symbols.order.long()).flatten()
        bags = F.embedding_bag(
            rows,
            table,
            offsets,
            mode="sum",
            include_last_offset=True,
            per_sample_weights=sorted_gradient,
        )  # (B*J*(n+1), q), each case's own
        first = columns.view(B, -1)[:, 0].long()
        of_W = torch.zeros_like(weights).view(len(W), -1)
        classes = first.div(J * ctx.symbols.n_rows, rounding_mode="floor")
        of_W.index_add_(0, classes, bags.view(B, -1))
        return of_Qt.view_as(Qt), of_W.view_as(W), None, None, None


def _by_channel(points: Tensor) -> Tensor:
    """Put symbol channels before time: (B, S, L, U) to (B, S*U, L)."""
    B, _, L, _ = points.shape
    return points.transpose(2, 3).reshape(B, -1, L)
