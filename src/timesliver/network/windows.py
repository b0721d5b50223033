"""The window average A of the paper, as sums of shifted rows, and its transpose."""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn import functional as F

__all__ = ["smooth", "span", "window_spread", "window_sum", "window_weights"]


def span(widths: tuple[int, ...]) -> int:
    """Return how many points averages over these widths, one on another, look at.

    Examples
    --------
    >>> span((7,)), span((2, 3, 3))
    (7, 6)
    """
    return sum(widths) - len(widths) + 1


def window_weights(widths: tuple[int, ...], like: Tensor) -> Tensor:
    """Return the weights of a segment's points: averages over these widths, one on another."""
    return window_spread(like.new_ones(1, 1, 1), widths).flatten() / math.prod(widths)


def window_sum(x: Tensor, widths: tuple[int, ...]) -> Tensor:
    """Sum every ``w`` successive rows of (B, T, q), for each width in turn: (B, T - sum(w-1), q).

    A sum of many rows is put together from sums of about the square root of as many.
    """
    for width in widths:
        part = _part(width)
        sums = window_sum(x, (part,)) if part > 1 else x
        n = x.shape[1] - width + 1
        pieces = [sums[:, start : start + n] for start in range(0, width - part + 1, part)]
        pieces += [x[:, start : start + n] for start in range(len(pieces) * part, width)]
        if len(pieces) > 1:
            x = pieces[0] + pieces[1]
            for piece in pieces[2:]:
                x += piece
    return x


def window_spread(x: Tensor, widths: tuple[int, ...]) -> Tensor:
    """Add every row of (B, T, q) to ``w`` successive rows: the transpose of `window_sum`."""
    for width in widths:
        if width == 1:
            continue
        part = _part(width)
        spread = window_spread(x, (part,))
        total = x.new_empty(x.shape[0], x.shape[1] + width - 1, x.shape[2])
        total[:, : spread.shape[1]] = spread
        total[:, spread.shape[1] :] = 0
        whole = width // part * part
        for start in range(part, whole, part):
            total[:, start : start + spread.shape[1]] += spread
        for start in range(whole, width):
            total[:, start : start + x.shape[1]] += x
        x = total
    return x


def _part(width: int) -> int:
    return math.isqrt(width) if width > 16 else 1


def smooth(share: Tensor, seen: Tensor, width: int) -> Tensor:
    """Even out over ``width`` points; every share keeps its mass, on observed points only."""
    width = width // 2 * 2 + 1

    def around(x: Tensor) -> Tensor:
        padded = F.pad(x, (width // 2, width // 2)).view(-1, x.shape[-1] + width - 1, 1)
        return window_sum(padded, (width,)).view(x.shape)

    return around(share / around(seen).clamp(min=1)) * seen
