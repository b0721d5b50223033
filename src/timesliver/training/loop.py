"""The training loop: Adam, cross-entropy, early stopping, the best weights kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.errors import TrainingError
from timesliver.training.callbacks import Callback, Record, StopTraining

__all__ = ["Cases", "Settings", "Training", "train"]

_LARGEST_GRADIENT = 1.0  # the norm beyond which a step's gradient is shortened
_FEWEST_STEPS = 4  # per epoch; small sets are cut into smaller batches
_WARM_UP = 10  # epochs until a penalty has its full weight


@dataclass(frozen=True)
class Cases:
    """Cases with their classes and weights.

    Attributes
    ----------
    batch : Batch
        What the network takes: anything with a length, indexing by a tensor and ``to(device)``.
    y : int tensor of shape (n_cases,)
        Class indices.
    weight : float tensor of shape (n_cases,)
        How much each case counts.
    """

    batch: Any
    y: Tensor
    weight: Tensor

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, cases: Tensor) -> Cases:
        return Cases(self.batch[cases], self.y[cases], self.weight[cases])

    def to(self, device: torch.device) -> Cases:
        """Move everything to a device."""
        return Cases(self.batch.to(device), self.y.to(device), self.weight.to(device))


@dataclass(frozen=True)
class Settings:
    """How to train.

    Attributes
    ----------
    learning_rate : float
        Adam's step size; it falls to zero along half a cosine over `max_epochs`.
    max_epochs, batch_size, patience : int
        Passes over the data; most cases per step; epochs without improvement before stopping.
    penalty_weight : float
        Weight of the penalty, reached after ten epochs.
    rate_factors : dict
        By the name of a part of the network: how many times larger its steps are.
    """

    learning_rate: float
    max_epochs: int
    batch_size: int
    patience: int
    penalty_weight: float = 0.0
    rate_factors: Mapping[str, float] = field(default_factory=dict)


@dataclass
class Training:
    """What came of a training run: its records, and the best epoch's number and score."""

    history: list[Record] = field(default_factory=list)
    best_epoch: int = -1
    best_score: tuple[float, float] = (-math.inf, -math.inf)
    interrupted: bool = False


def train(
    network: Any,
    cases: Cases,
    validation: Cases | None,
    settings: Settings,
    seed: int,
    callbacks: Sequence[Callback] = (),
    penalised: Callable[[Any], tuple[Tensor, Tensor]] | None = None,
) -> Training:
    """Train a network in place and leave it with the weights of its best epoch.

    The best epoch is that of the highest validation accuracy, ties broken by the lower validation
    loss; without validation cases, that of the lowest training loss. With a penalty it is that of
    the lowest penalised validation loss, once the penalty has its full weight.

    Parameters
    ----------
    network : Module
        Maps a batch to logits; ``infer(batch)`` does so for any number of cases.
    cases, validation : Cases
        What to train on, and what to choose the best epoch by.
    settings : Settings
        How to train.
    seed : int
        Decides the order of the cases.
    callbacks : sequence of Callback
        Who watches.
    penalised : callable
        Maps a batch to its logits and a penalty that is added to the mean loss.
    """
    run = _Run(network, cases, validation, settings, seed, penalised)
    for callback in callbacks:
        callback.on_train_begin(settings.max_epochs)
    try:
        for epoch in range(settings.max_epochs):
            record = run.epoch(epoch)
            for callback in callbacks:
                callback.on_epoch_end(record)
            if epoch - run.result.best_epoch >= settings.patience:
                break
    except StopTraining:
        pass
    except KeyboardInterrupt:
        if not run.result.history:
            raise
        run.result.interrupted = True
    finally:
        for callback in callbacks:
            callback.on_train_end(run.result.history)
    network.load_state_dict(run.best_weights)
    return run.result


class _Run:
    """The state of one training run."""

    def __init__(
        self,
        network: Any,
        cases: Cases,
        validation: Cases | None,
        settings: Settings,
        seed: int,
        penalised: Callable[[Any], tuple[Tensor, Tensor]] | None,
    ) -> None:
        self.network, self.cases, self.validation = network, cases, validation
        self.settings, self.penalised = settings, penalised
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(self._rates(), fused=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, settings.max_epochs
        )
        self.result = Training()
        self.best_weights = self._weights()

    def _rates(self) -> list[dict[str, Any]]:
        """Return the weights by their step size, that of the settings first."""
        groups: dict[float, list[nn.Parameter]] = {1.0: []}
        for name, weight in self.network.named_parameters():
            factor = self.settings.rate_factors.get(name.partition(".")[0], 1.0)
            groups.setdefault(factor, []).append(weight)
        rate = self.settings.learning_rate
        return [{"params": weights, "lr": rate * factor} for factor, weights in groups.items()]

    def epoch(self, number: int) -> Record:
        """Train one epoch, and keep its weights if they are the best so far."""
        start = time.perf_counter()
        weight = self.settings.penalty_weight * min(1.0, (number + 1) / _WARM_UP)
        record: Record = {"epoch": number, "learning_rate": self.schedule.get_last_lr()[0]}
        record["train_loss"] = self._pass(number, weight)
        score = (0.0, -record["train_loss"])
        if self.validation is not None:
            accuracy, loss = self._validate(self.validation, weight)
            record |= {"validation_accuracy": accuracy, "validation_loss": loss}
            score = (accuracy if weight == 0 else 0.0, -loss)
        if weight < self.settings.penalty_weight:  # warming up: the last epoch counts as the best
            score = (-math.inf, float(number))
        record["best"] = score > self.result.best_score
        if record["best"]:
            self.result.best_epoch, self.result.best_score = number, score
            self.best_weights = self._weights()
        record["seconds"] = time.perf_counter() - start
        self.result.history.append(record)
        return record

    def _weights(self) -> dict[str, Tensor]:
        return {k: w.detach().clone() for k, w in self.network.state_dict().items()}

    def _pass(self, number: int, weight: float) -> float:
        """Go once over the cases; return the mean loss."""
        self.network.train()
        total = torch.zeros((), dtype=torch.float64)
        order = torch.randperm(len(self.cases), generator=self.generator)
        size = min(self.settings.batch_size, math.ceil(len(order) / _FEWEST_STEPS))
        for chosen in order.split(size):
            part = self.cases[chosen.to(self.cases.y.device)]
            loss = self._loss(part, weight)
            if not bool(loss.isfinite()):
                raise TrainingError(
                    f"the loss became {loss.item()} in epoch {number}; lower learning_rate "
                    f"(now {self.settings.learning_rate:g}), and look for extreme values in the "
                    f"series and the sample weights"
                )
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), _LARGEST_GRADIENT)
            self.optimizer.step()
            total += loss.detach().cpu() * len(part)
        self.schedule.step()
        return float(total / len(self.cases))

    def _loss(self, cases: Cases, weight: float) -> Tensor:
        if self.penalised is None:
            return _cross_entropy(self.network(cases.batch), cases)
        logits, penalty = self.penalised(cases.batch)
        return _cross_entropy(logits, cases) + weight * penalty

    @torch.no_grad()
    def _validate(self, cases: Cases, weight: float) -> tuple[float, float]:
        """Return weighted accuracy and mean loss on the validation cases."""
        self.network.eval()
        logits = self.network.infer(cases.batch)
        right = (logits.argmax(1) == cases.y).double()
        weights = cases.weight.double()
        loss = float(_cross_entropy(logits, cases))
        if self.penalised is not None:
            for start in range(0, len(cases), self.settings.batch_size):
                part = cases.batch[start : start + self.settings.batch_size]
                loss += weight * float(self.penalised(part)[1]) * len(part) / len(cases)
        return float(right @ weights / weights.sum()), loss


def _cross_entropy(logits: Tensor, cases: Cases) -> Tensor:
    return (F.cross_entropy(logits, cases.y, reduction="none") * cases.weight).mean()
