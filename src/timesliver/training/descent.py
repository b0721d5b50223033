"""Weights by descent: Adam, cross-entropy, early stopping, the best weights kept."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.errors import TrainingError, check_count, check_number
from timesliver.network import Batch
from timesliver.training.callbacks import Callback, Record, StopTraining, all_callbacks
from timesliver.training.sparsity import total_evidence
from timesliver.training.split import validation_split

__all__ = ["Cases", "Descent", "Training", "descend"]

_LARGEST_GRADIENT = 1.0  # the norm beyond which a step's gradient is shortened
_FEWEST_STEPS = 4  # per epoch; small sets are cut into smaller batches
_WARM_UP = 10  # epochs until a penalty has its full weight


@dataclass(frozen=True)
class Cases:
    """Series, as they were read or as a batch, with their classes and weights.

    Attributes
    ----------
    batch : PaddedSeries or Batch
        What has a length, and is indexed by case.
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

    def of(self, batch: Batch) -> Cases:
        """Return the cases laid out for a network."""
        return Cases(batch, self.y, self.weight)

    def split(self, fraction: float, seed: int) -> tuple[Cases, Cases | None]:
        """Return the cases to train on, and those to validate on if there are enough."""
        rows, held_out = map(torch.from_numpy, validation_split(self.y.numpy(), fraction, seed))
        return (self[rows], self[held_out]) if len(held_out) else (self, None)


@dataclass(frozen=True)
class Descent:
    """How to train by descent.

    Attributes
    ----------
    learning_rate : float
        Adam's step size; it falls to zero along half a cosine over `max_epochs`.
    max_epochs, batch_size, patience : int
        Passes over the data; most cases per step; epochs without improvement before stopping.
    validation_fraction : float
        Share of the training cases by which the best epoch is chosen.
    head_rate : float
        How many times larger the steps of the last layer are than the others.
    sparsity : float
        Weight of the penalty on the total evidence, reached after ten epochs.
    callbacks : list of Callback or functions, or None
        Called with the record of each epoch.
    """

    learning_rate: float
    max_epochs: int
    batch_size: int
    patience: int
    validation_fraction: float = 0.1
    head_rate: float = 1.0
    sparsity: float = 0.0
    callbacks: Any = None

    def __post_init__(self) -> None:
        for name in ("max_epochs", "batch_size", "patience"):
            check_count(name, getattr(self, name), 1)
        for name in ("learning_rate", "head_rate"):
            check_number(name, getattr(self, name), above=0)
        all_callbacks(self.callbacks)
        check_number("sparsity", self.sparsity, least=0)
        check_number("validation_fraction", self.validation_fraction, least=0, below=1)


@dataclass
class Training:
    """What came of a training run: its records, and the best epoch's number and score."""

    history: list[Record] = field(default_factory=list)
    best_epoch: int = -1
    best_score: tuple[float, float] = (-math.inf, -math.inf)
    interrupted: bool = False


def descend(
    network: Any,
    cases: Cases,
    validation: Cases | None,
    how: Descent,
    seed: int,
    callbacks: Sequence[Callback] = (),
) -> Training:
    """Train a network in place and leave it with the weights of its best epoch.

    The best epoch is that of the highest validation accuracy, ties broken by the lower validation
    loss; without validation cases, that of the lowest training loss. With a penalty it is that of
    the lowest penalised validation loss, once the penalty has its full weight.

    The parameters are those of `solve`. ``network.infer(batch)`` gives the logits of any number of
    cases; the seed decides their order; those who watch do so beside the callbacks of `how`.
    """
    run = _Run(network, cases, validation, how, seed)
    watchers = [*all_callbacks(how.callbacks), *callbacks]
    for callback in watchers:
        callback.on_train_begin(how.max_epochs)
    try:
        for epoch in range(how.max_epochs):
            record = run.epoch(epoch)
            for callback in watchers:
                callback.on_epoch_end(record)
            if epoch - run.result.best_epoch >= how.patience:
                break
    except StopTraining:
        pass
    except KeyboardInterrupt:
        if not run.result.history:
            raise
        run.result.interrupted = True
    finally:
        for callback in watchers:
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
        how: Descent,
        seed: int,
    ) -> None:
        self.network, self.cases, self.validation = network, cases, validation
        self.settings = how
        self.generator = torch.Generator().manual_seed(seed)
        self.optimizer = torch.optim.Adam(self._rates(), fused=True)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, how.max_epochs)
        self.result = Training()
        self.best_weights = self._weights()

    def _rates(self) -> list[dict[str, Any]]:
        """Return the weights by their step size, that of the settings first."""
        rate, head_rate = self.settings.learning_rate, self.settings.head_rate
        weights = list(self.network.parameters())
        if head_rate == 1:
            return [{"params": weights, "lr": rate}]
        head = {id(weight) for weight in self.network.head_parameters()}
        return [
            {"params": [w for w in weights if (id(w) in head) == in_head], "lr": step}
            for in_head, step in ((False, rate), (True, rate * head_rate))
        ]

    def epoch(self, number: int) -> Record:
        """Train one epoch, and keep its weights if they are the best so far."""
        start = time.perf_counter()
        weight = float(self.settings.sparsity) * min(1.0, (number + 1) / _WARM_UP)
        record: Record = {"epoch": number, "learning_rate": float(self.schedule.get_last_lr()[0])}
        record["train_loss"] = self._pass(number, weight)
        score = (0.0, -record["train_loss"])
        if self.validation is not None:
            accuracy, loss = self._validate(self.validation, weight)
            record |= {"validation_accuracy": accuracy, "validation_loss": loss}
            score = (accuracy if weight == 0 else 0.0, -loss)
        if weight < self.settings.sparsity:  # warming up: the last epoch counts as the best
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
        if self.settings.sparsity == 0:
            return _cross_entropy(self.network(cases.batch), cases)
        encoded = list(self.network.each(cases.batch))
        logits = self.network.add_up(encoded, len(cases))
        return _cross_entropy(logits, cases) + weight * self._penalty(encoded)

    def _penalty(self, encoded: Any) -> Tensor:
        return total_evidence(encoded, by_channel=encoded[0][1].n_streams > 1)

    @torch.no_grad()
    def _validate(self, cases: Cases, weight: float) -> tuple[float, float]:
        """Return weighted accuracy and mean loss on the validation cases."""
        self.network.eval()
        logits = self.network.infer(cases.batch)
        right = (logits.argmax(1) == cases.y).double()
        weights = cases.weight.double()
        loss = float(_cross_entropy(logits, cases))
        if self.settings.sparsity > 0:
            for start in range(0, len(cases), self.settings.batch_size):
                part = cases.batch[start : start + self.settings.batch_size]
                penalty = self._penalty(list(self.network.each(part)))
                loss += weight * float(penalty) * len(part) / len(cases)
        return float(right @ weights / weights.sum()), loss


def _cross_entropy(logits: Tensor, cases: Cases) -> Tensor:
    return (F.cross_entropy(logits, cases.y, reduction="none") * cases.weight).mean()
