"""A bank of fixed kernels as a part of a network: its counts by symbol are the features."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from timesliver.network.bank import Bank, count, share
from timesliver.network.batch import View
from timesliver.network.term import Part, Term

__all__ = ["KernelPart", "KernelTerm", "Responses"]


class Responses:
    """What a bank says of every moment; nothing of it is kept, it is computed where it is used.

    Parameters
    ----------
    view : View
        The series.
    bank : Bank
        The kernels.
    """

    def __init__(self, view: View, bank: Bank) -> None:
        self.view, self.bank = view, bank

    @cached_property
    def series(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Values, lengths and what was observed, as arrays."""
        view = self.view
        values = np.ascontiguousarray(view.values.cpu().numpy(), dtype=np.float32)
        return values, view.lengths.cpu().numpy(), view.observed.cpu().numpy()

    @cached_property
    def masks(self) -> NDArray[np.float32]:
        """Which moments carry each symbol of each set: (B, R, J, L)."""
        codes = [symbols.codes.cpu().numpy() for symbols in self.view.symbols]
        J = max(of_set.shape[1] for of_set in codes)
        rows = [
            np.broadcast_to(of_set == symbol, (len(of_set), J, of_set.shape[2]))
            for of_set, symbols in zip(codes, self.view.symbols, strict=True)
            for symbol in range(1, symbols.n_rows)
        ]
        return np.stack(rows, axis=1).astype(np.float32)

    def features(self) -> NDArray[np.float32]:
        """Count the moments whose response exceeds each bias, by symbol: (B, R, K)."""
        values, lengths, _ = self.series
        P = np.empty((len(values), self.masks.shape[1], len(self.bank.biases)), np.float32)
        count(values, lengths, self.masks, self.bank, P)
        return P


class KernelTerm(Term):
    """Features of a bank: how often each response exceeds its bias, by symbol, over all moments.

    Parameters
    ----------
    n_classes, n_symbols, n_biases : int
        C, the symbols of all sets together R, and K.
    """

    def __init__(self, n_classes: int, n_symbols: int, n_biases: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(n_classes, n_symbols, n_biases))
        self.register_buffer("average", torch.zeros(1, n_symbols, n_biases))

    def weight(self) -> Tensor:
        """Return the weights of P for each class: (C, R, K)."""
        return self.weights

    def set_weight(self, weight: Tensor) -> None:
        """Take weights of P: (C, R, K)."""
        with torch.no_grad():
            self.weights.copy_(weight)

    def scale_weight(self, factor: float) -> None:
        """Multiply the weights."""
        with torch.no_grad():
            self.weights.mul_(factor)

    def features(self, moments: Any) -> Tensor:
        """Return P, (B, R, K)."""
        responses: Responses = moments
        return torch.from_numpy(responses.features()).to(self.weights)

    def shares(self, moments: Any, weight: Tensor, targets: Tensor) -> Tensor:
        """Share ``weight * P`` out among the points that the kernels looked at."""
        responses: Responses = moments
        W = weight.detach().float().cpu().numpy()
        by_target = [
            share(*responses.series, responses.masks, responses.bank, W[c])
            for c in targets.T.cpu().numpy()
        ]
        return torch.from_numpy(np.stack(by_target, axis=1)).to(self.weights)

    def channel_sums(self, features: Tensor, weight: Tensor, n_channels: int) -> Tensor:
        """Return the sum of ``weight * P``, in equal parts for all channels."""
        sums = torch.einsum("brk,crk->bc", features, weight)
        return sums.unsqueeze(2).expand(-1, -1, n_channels) / n_channels


class KernelPart(Part):
    """The part of a network that a bank of kernels brings.

    Parameters
    ----------
    bank : Bank
        The kernels.
    term : KernelTerm
        Their weights.
    width : int
        Over how many points shares are evened out unless something else is asked for.
    view : int
        Which view of a batch they look at.
    """

    def __init__(self, bank: Bank, term: KernelTerm, width: int, view: int = 0) -> None:
        super().__init__()
        self.term = term
        self.view = view
        for name, array in bank._asdict().items():
            self.register_buffer(name, torch.from_numpy(np.array(array)))
        self.width = width

    @property
    def bank(self) -> Bank:
        """The kernels, as arrays."""
        return Bank(*(getattr(self, name).cpu().numpy() for name in Bank._fields))

    def smoothing(self, view: View) -> int:  # noqa: ARG002
        """Over how many points shares are evened out unless something else is asked for."""
        return self.width

    def each(self, view: View, only: Term | None = None) -> Iterator[tuple[Term, Any]]:
        """Yield the term with the responses of the bank."""
        if only is None or self.term is only:
            yield self.term, Responses(view, self.bank)

    def sizes(self, n_channels: int, n_timepoints: int) -> Iterator[int]:
        """Yield how many numbers are made of a case: its features and masks."""
        weights = self.term.weights
        yield weights[0].numel() + weights.shape[1] * n_channels * n_timepoints
