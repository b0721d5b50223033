"""Two products over the non-zero entries of a sparse matrix that need no large temporaries."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import torch
from torch import Tensor

from timesliver.network.stencils import Stencils

__all__ = ["blocks", "max_times", "row_sums", "sampled_dots"]

_BLOCK = 1 << 15


def sampled_dots(starts: Tensor, columns: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """Return ``<left[i], right[j]>`` for every entry (i, j) of a sparse pattern.

    The entries of row i have the columns ``columns[starts[i]:starts[i + 1]]``.
    """
    pattern = _csr(starts, columns, left.new_zeros(len(columns)), len(right))
    torch.sparse.sampled_addmm(pattern, left, right.T, beta=0.0, out=pattern)
    return pattern.values()


def max_times(Z: Stencils, Q: Tensor) -> Tensor:
    """Return the largest ``Z_ki Q_kj`` over k, or 0 if all are negative: (rows of P, columns)."""
    if Q.device.type != "cpu":  # elsewhere torch has no such kernel
        return max_times_in_blocks(Z, Q)
    matrix = _csr(Z.starts, Z.segment, Z.value, len(Q))
    largest: Tensor = torch.sparse.mm(matrix, Q, reduce="amax")
    return largest.clamp_(min=0)


def max_times_in_blocks(Z: Stencils, Q: Tensor) -> Tensor:
    """Do the work of `max_times` on any device."""
    largest = Q.new_zeros(len(Z.starts) - 1, Q.shape[1])
    for row, segment, value in blocks(Z):
        terms = Q[segment] * value[:, None]
        largest.scatter_reduce_(0, row[:, None].expand_as(terms), terms, "amax")
    return largest


def row_sums(Z: Stencils, entries: Tensor) -> Tensor:
    """Add up one number per entry over each row of P."""
    return torch.segment_reduce(entries, "sum", offsets=Z.starts.long(), unsafe=True)


def blocks(Z: Stencils) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Cut the entries into blocks of (row of P, row of Q, value)."""
    parts = (Z.row().split(_BLOCK), Z.segment.split(_BLOCK), Z.value.split(_BLOCK))
    yield from zip(*parts, strict=True)


def _csr(starts: Tensor, columns: Tensor, values: Tensor, n_columns: int) -> Tensor:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        return torch.sparse_csr_tensor(
            starts.int(),
            columns.int(),
            values,
            (len(starts) - 1, n_columns),
            check_invariants=False,
        )
