"""What all backbones share: their way to logits, and their estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from timesliver.backbones.layers import mean_over_time, seeded
from timesliver.backbones.sight import Sight
from timesliver.errors import InvalidInputError
from timesliver.estimator import SeriesClassifier
from timesliver.network.batch import Batch
from timesliver.series import PaddedSeries
from timesliver.training import Cases, Descent, pick_device
from timesliver.typing import JSONDict

__all__ = ["BackboneClassifier", "BackboneNetwork"]

_NUMBERS = 1 << 23  # that inference may hold at once


class BackboneNetwork(nn.Module, ABC):
    """A network that turns series into features over time, and their mean into logits.

    Subclasses make their layers, with a `head`, and set `numbers_per_point` in `_build`.

    Parameters
    ----------
    settings : BackboneClassifier
        The classifier, fitted or not, whose parameters say how large the layers are.
    n_channels, n_classes : int
        Channels of the series, and number of logits.
    n_timepoints : int
        Length of the series, by which settings that are None are chosen.
    seed : int
        Seed of the initial weights.
    """

    head: nn.Module
    #: Size of the intermediate arrays, for each time point of a case.
    numbers_per_point: int

    def __init__(
        self, settings: Any, n_channels: int, n_classes: int, n_timepoints: int = 1, seed: int = 0
    ) -> None:
        super().__init__()
        self.n_channels, self.n_classes, self.n_timepoints = n_channels, n_classes, n_timepoints
        with seeded(seed):
            self._build(settings)

    @abstractmethod
    def _build(self, settings: Any) -> None:
        """Make the layers."""

    @abstractmethod
    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the last features, shape (B, width, T), and how many of T belong to each case."""

    @property
    def sight(self) -> Sight | None:
        """What a position of `features` sees of the series; None is all of it, or not known."""
        return None

    def numbers_per_case(self, n_timepoints: int) -> int:
        """Return the size of the intermediate arrays of one case."""
        return n_timepoints * self.numbers_per_point

    def forward(self, batch: Batch) -> Tensor:
        """Return the logits, shape (B, C)."""
        self._check(batch)
        return self.from_features(*self.features(batch))

    def from_features(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits, shape (B, C), for what `features` returned."""
        logits: Tensor = self.head(mean_over_time(features, lengths))
        return logits

    @torch.no_grad()
    def infer(self, batch: Batch) -> Tensor:
        """Return the logits of any number of cases in bounded memory."""
        parts = batch.split(self.numbers_per_case(batch.n_timepoints), _NUMBERS)
        return torch.cat([self(part) for part in parts])

    def _check(self, batch: Batch) -> None:
        if batch.values.ndim != 3 or batch.n_channels != self.n_channels:
            raise InvalidInputError(
                f"the network was made for series of shape (n_cases, {self.n_channels}, "
                f"n_timepoints), got shape {tuple(batch.values.shape)}; give the same channels"
            )


@dataclass(eq=False, repr=False, kw_only=True)
class BackboneClassifier(SeriesClassifier):
    """A classifier of series whose network sees the standardised values.

    Every channel is standardised with the mean and deviation of the training series. Points that
    are missing or past the end of a case are 0.

    Parameters
    ----------
    learning_rate : float
        Adam's step size; it falls to zero along half a cosine over `max_epochs`.
    max_epochs : int
        Most passes over the training cases.
    batch_size : int
        Most cases per step.
    patience : int
        Epochs without a better validation result before training stops.
    validation_fraction : float
        Share of the training cases, from every class, by which the best epoch is chosen. If that
        is fewer than ten cases, all cases train and the lowest training loss decides.
    class_weight : dict, "balanced" or None
        How much the cases of each class count.
    device : str
        "auto" is a GPU if there is one, else the CPU.
    n_jobs : int or None
        Number of threads; None leaves torch's setting, -1 takes all cores.
    random_state : int, numpy generator or None
        Makes the result repeatable; global random states are neither used nor changed.
    verbose : int
        1 shows a progress bar.
    callbacks : list of Callback or functions, or None
        Called with the record of each epoch.
    """

    learning_rate: float = 1e-3
    max_epochs: int = 100
    batch_size: int = 64
    patience: int = 15
    validation_fraction: float = 0.1
    class_weight: Any = None
    device: str = "auto"
    n_jobs: int | None = None
    random_state: Any = None
    verbose: int = 0
    callbacks: Any = None

    #: What it trains.
    network_class: ClassVar[type[BackboneNetwork]]

    def _network(self, seed: int) -> BackboneNetwork:
        """Make the network for the data that were read, with the initial weights of a seed."""
        sizes = self.n_channels_, len(self.classes_), self.n_timepoints_
        return self.network_class(self, *sizes, seed)

    def _learn_input(self, series: PaddedSeries) -> None:
        self.mean_, self.scale_ = series.moments()

    def _batch(self, series: PaddedSeries) -> Any:
        series = series.padded_to(2)  # of a single point, batch normalisation finds no spread
        return Batch.of(series.standardized(self.mean_, self.scale_), series)

    def _solver(self) -> Descent:
        return Descent(
            learning_rate=self.learning_rate,
            max_epochs=self.max_epochs,
            batch_size=self.batch_size,
            patience=self.patience,
            validation_fraction=self.validation_fraction,
            callbacks=self.callbacks,
        )

    def _check_parameters(self) -> None:
        self._solver()

    def _learn(self, cases: Cases, validation: Cases | None, seed: int) -> None:
        how = self._solver()
        if validation is None:
            cases, validation = cases.split(how.validation_fraction, seed)
        self._learn_input(cases.batch)
        with seeded(seed, pick_device(self.device)):  # dropout draws from torch's own state
            best = self._best(
                [(None, self._network(seed))],
                cases.of(self._batch(cases.batch)),
                validation and validation.of(self._batch(validation.batch)),
                how,
                seed,
            )
        self.network_, self.history_ = best.network, best.training.history
        self.n_iter_ = len(self.history_)

    def _state(self) -> tuple[dict[str, NDArray[Any]], JSONDict]:
        return {"mean": self.mean_, "scale": self.scale_}, {}

    def _restore(self, arrays: dict[str, NDArray[Any]], description: JSONDict) -> BackboneNetwork:
        for name, value in self.get_params(deep=False).items():
            if isinstance(value, list):  # a file knows no tuples
                setattr(self, name, tuple(value))
        self._restore_input(arrays, description)
        return self._network(seed=0)

    def _restore_input(
        self,
        arrays: dict[str, NDArray[Any]],
        description: JSONDict,  # noqa: ARG002
    ) -> None:
        """Take what `_learn_input` had learned."""
        self.mean_, self.scale_ = arrays["mean"], arrays["scale"]
        if (self.mean_.shape, self.scale_.shape) != ((self.n_channels_,),) * 2:
            raise ValueError(f"{self.n_channels_} channels, but scales of {self.scale_.shape}")
