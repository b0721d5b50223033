"""How TimeX++ is trained: which cases, how long, with what step size, and the best epoch."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from timesliver.backbones.layers import seeded
from timesliver.errors import TrainingError
from timesliver.explainers.model import Model
from timesliver.explainers.timex.losses import total_loss
from timesliver.explainers.timex.networks import TimeXNetwork
from timesliver.network.batch import Batch
from timesliver.training import Record, progress
from timesliver.typing import IntArray

__all__ = ["SCHEDULES", "Check", "Schedule", "check", "split", "train"]

_BATCH = 64
_WEIGHT_DECAY = 1e-3
_LARGEST_GRADIENT = 1.0  # the norm beyond which a step's gradient is shortened
_PLATEAU_FROM = 20  # epochs before a plateau counts


@dataclass(frozen=True)
class Schedule:
    """How much to train.

    Attributes
    ----------
    n_cases : int or None
        Most cases to train on; None is no limit.
    n_validation : int
        Most cases to choose the best epoch by; a fifth of all, if that is fewer.
    max_epochs : int
        Passes over the cases, unless `min_steps` asks for more.
    learning_rate : float
        First step size of AdamW.
    decay : {"cosine", "plateau"}
        Whether the step size falls to a tenth along half a cosine, or by a factor of ten
        whenever the validation loss stays where it is.
    n_layers : int
        Layers of the encoder, unless the explainer is told.
    min_steps : int
        Batches to learn from, at least: few cases are passed over more often.
    """

    n_cases: int | None
    n_validation: int
    max_epochs: int
    learning_rate: float
    decay: str
    n_layers: int
    min_steps: int = 0

    def n_epochs(self, n_cases: int) -> int:
        """Return how often to pass over that many cases."""
        return max(self.max_epochs, math.ceil(self.min_steps / math.ceil(n_cases / _BATCH)))


#: By name: that of the method's authors, one for a CPU, and one that only shows that all works.
#: The step size of "reduced" is 1e-2, where 2e-3 is recommended: it had the lowest validation
#: loss, which knows nothing of the true moments, on LowVar and SeqComb-UV. The number of steps is
#: never below that of 20 epochs of 2,000 cases.
SCHEDULES = {
    "full": Schedule(None, 500, 50, 1e-3, "plateau", 2),
    "reduced": Schedule(2000, 500, 20, 1e-2, "cosine", 2, min_steps=640),
    "quick": Schedule(200, 50, 2, 1e-2, "cosine", 1),
}


class Check(NamedTuple):
    """What to look at before an explanation is believed.

    Attributes
    ----------
    loss : float
        Mean total loss.
    agreement : float
        Share of the generated series to which the model gives the class of their original; from
        0.9 on, the entries kept say what the model needs.
    mean_probability : float
        Mean of the scores; near 0 or 1, nearly nothing or nearly everything is kept.
    """

    loss: float
    agreement: float
    mean_probability: float


def split(classes: ArrayLike, schedule: Schedule, seed: int) -> tuple[IntArray, IntArray]:
    """Return the cases to train on and those to validate on, each with its share of all classes.

    Fewer than five cases do both.
    """
    classes = np.asarray(classes)
    rng = np.random.default_rng(seed)
    place = np.empty(len(classes))
    for c in np.unique(classes):
        members = np.flatnonzero(classes == c)
        place[members] = (rng.permutation(len(members)) + rng.random()) / len(members)
    order = np.argsort(place)  # the cases of each class are evenly spread over it
    n_validation = min(schedule.n_validation, len(order) // 5)
    rest = order[n_validation:]
    chosen = rest[: schedule.n_cases]
    return chosen, order[:n_validation] if n_validation else chosen


def train(
    network: TimeXNetwork,
    model: Model,
    cases: Batch,
    validation: Batch,
    schedule: Schedule,
    connect: str,
    seed: int,
    verbose: bool = False,
) -> list[Record]:
    """Train the networks in place, and leave them with the weights of the best epoch.

    The best epoch has the lowest total loss on the validation cases, under the same noise in each
    epoch. The model stays as it is: only the gradients of the networks are computed.

    Returns
    -------
    list of dict
        A record of each epoch.
    """
    optimizer = torch.optim.AdamW(
        network.parameters(), schedule.learning_rate, weight_decay=_WEIGHT_DECAY
    )
    n_epochs = schedule.n_epochs(len(cases))
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(
        optimizer, n_epochs, schedule.learning_rate / 10
    )
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.1, patience=5, threshold=1e-5, min_lr=1e-8
    )
    original = model.infer(cases)
    history: list[Record] = []
    best, best_weights = math.inf, _weights(network)
    with seeded(seed, cases.values.device), torch.enable_grad():
        for epoch in progress(range(n_epochs), "Training TimeX++", verbose):
            record: Record = {"epoch": epoch, "learning_rate": optimizer.param_groups[0]["lr"]}
            record["train_loss"] = _pass(network, model, cases, original, optimizer, connect)
            checked = check(network, model, validation, connect, seed)
            record |= {f"validation_{name}": value for name, value in checked._asdict().items()}
            record["best"] = checked.loss < best
            if record["best"]:
                best, best_weights = checked.loss, _weights(network)
            history.append(record)
            if schedule.decay == "cosine":
                falling.step()
            elif epoch >= _PLATEAU_FROM:
                plateau.step(checked.loss)
    network.load_state_dict(best_weights)
    network.eval()
    return history


def _pass(
    network: TimeXNetwork,
    model: Model,
    cases: Batch,
    original: Tensor,
    optimizer: torch.optim.Optimizer,
    connect: str,
) -> float:
    """Go once over the cases; return the mean loss."""
    network.train()
    weights = list(network.parameters())
    total = 0.0
    for chosen in torch.randperm(len(cases)).to(original.device).split(_BATCH):
        part = cases[chosen]
        made = network(part.values)
        loss = total_loss(made, model.logits(part, made.series), original[chosen], connect)
        if not bool(loss.isfinite()):
            raise TrainingError(
                f"the loss of TimeX++ became {loss.item()}; look for extreme values in the "
                f"series and for a model whose logits overflow"
            )
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight.grad = gradient
        nn.utils.clip_grad_norm_(weights, _LARGEST_GRADIENT)
        optimizer.step()
        total += loss.item() * len(part)
    optimizer.zero_grad()
    return total / len(cases)


@torch.no_grad()
def check(network: TimeXNetwork, model: Model, cases: Batch, connect: str, seed: int) -> Check:
    """Measure the networks in evaluation mode, under the noise of a seed."""
    network.eval()
    sums = np.zeros(3)
    with seeded(seed, cases.values.device):
        for start in range(0, len(cases), _BATCH):
            part = cases[start : start + _BATCH]
            made, original = network(part.values), model.logits(part)
            logits = model.logits(part, made.series)
            loss = total_loss(made, logits, original, connect)
            agree = (logits.argmax(1) == original.argmax(1)).float().mean()
            sums += np.array([*map(float, (loss, agree, made.probabilities.mean()))]) * len(part)
    return Check(*(sums / len(cases)).tolist())


def _weights(network: TimeXNetwork) -> dict[str, Tensor]:
    return {name: weight.clone() for name, weight in network.state_dict().items()}
