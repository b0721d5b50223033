"""`solve`: the weights of a network from labelled cases, by descent or in closed form."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from timesliver.network import TimeSliverNetwork
from timesliver.training.callbacks import Callback
from timesliver.training.descent import Cases, Descent, Training, descend
from timesliver.training.ridge import Columns, FeatureBlocks, solve_ridge, temperature

__all__ = ["Ridge", "solve"]

_IN_MEMORY = 1 << 28  # numbers, which take 1 GB


@dataclass(frozen=True)
class Ridge:
    """How to find the weights of fixed encoders in closed form.

    Attributes
    ----------
    strengths : tuple of float
        Penalties to choose from, by the leave-one-out error on the training cases.
    """

    strengths: tuple[float, ...] = tuple(np.logspace(-3, 3, 10).tolist())

    #: No case need be set aside: each is judged by the weights that all others give.
    validation_fraction: float = 0.0


def solve(
    network: Any,
    cases: Cases,
    validation: Cases | None,
    how: Descent | Ridge,
    seed: int,
    callbacks: Sequence[Callback] = (),
) -> Training:
    """Find the weights of a network, in place.

    Parameters
    ----------
    network : Module
        Maps a batch to logits; in closed form, a `TimeSliverNetwork`.
    cases, validation : Cases
        What to learn from, and what to choose by; the closed form looks at the former only.
    how : Descent or Ridge
        Which way.
    seed : int
        Decides what is left to chance.
    callbacks : sequence of Callback
        Who watches.

    Returns
    -------
    Training
        What came of it, the same record for both.
    """
    if isinstance(how, Descent):
        return descend(network, cases, validation, how, seed, callbacks)
    return _in_closed_form(network, cases, how)


def _in_closed_form(network: TimeSliverNetwork, cases: Cases, how: Ridge) -> Training:
    start = time.perf_counter()
    features: FeatureBlocks = _Features(network, cases.batch)
    if len(features) * sum(features.widths) <= _IN_MEMORY:  # they are asked for twice
        whole = slice(0, len(features))
        features = Columns([features.block(i, whole) for i in range(len(features.widths))])
    y, weight = cases.y.cpu().numpy(), cases.weight.cpu().numpy().astype(np.float64)
    solution = solve_ridge(
        features, y, network.n_classes, weight, strengths=np.array(how.strengths)
    )
    # Ridge fits +1 and -1; one factor makes the scores logits, and the probabilities honest.
    factor = temperature(solution.left_out, y, weight)
    for term, weights, mean in zip(network.terms, solution.weights, solution.means, strict=True):
        term.set_weight(_like(term.weight(), weights))
        term.average.copy_(_like(term.average, mean))
    with torch.no_grad():
        network.bias.copy_(torch.from_numpy(solution.bias))
    network.scale(factor)
    right = solution.left_out.argmax(axis=1) == y
    accuracy = float(right @ weight / weight.sum())
    record = {
        "epoch": 0,
        "strength": float(solution.strength),
        "temperature": factor,
        "validation_accuracy": accuracy,
        "best": True,
        "seconds": time.perf_counter() - start,
    }
    return Training([record], best_epoch=0, best_score=(accuracy, 0.0))


def _like(tensor: torch.Tensor, numbers: NDArray[np.float64]) -> torch.Tensor:
    return torch.from_numpy(numbers).to(tensor).view(tensor.shape)


class _Features:
    """The features of a network's terms, one term and some cases at a time."""

    def __init__(self, network: TimeSliverNetwork, batch: Any) -> None:
        self.network, self.batch = network, batch
        self.widths = [term.average.numel() for term in network.terms]

    def __len__(self) -> int:
        return len(self.batch)

    @torch.no_grad()
    def block(self, index: int, cases: slice) -> NDArray[np.float32]:
        term, some = self.network.terms[index], self.batch[cases]
        parts = [
            term.features(moments).flatten(1).cpu().numpy()
            for part in self.network.split(some)
            for _, moments in self.network.each(part, only=term)
        ]
        features: NDArray[np.float32] = np.concatenate(parts)
        return features
