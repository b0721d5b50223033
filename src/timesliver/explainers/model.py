"""`Model`: one way to ask any classifier for its logits, and to count how often it was asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from timesliver.backbones import BackboneNetwork, COLORNetwork
from timesliver.errors import (
    InvalidInputError,
    InvalidParameterError,
    NotApplicableError,
)
from timesliver.estimator import SeriesClassifier
from timesliver.network import TimeSliverNetwork
from timesliver.network.batch import Batch
from timesliver.series import PaddedSeries, as_series

__all__ = ["Model", "as_model"]

_NUMBERS = 1 << 23  # that a model may hold at once
_INSIDE = 32  # numbers inside a foreign model for each of its input


class Model(ABC):
    """A classifier as explainers see it; `as_model` makes one of any classifier.

    Its batches hold the values that explainers vary: standardised where the classifier
    standardises, so that 0 is the training mean.

    Parameters
    ----------
    classes : array or None
        The class labels; None is 0, 1, ... as many as there are logits.
    network, estimator : Module and SeriesClassifier, or None
        What is inside, for methods that look into one kind of model.
    has_gradients : bool
        Whether logits can be differentiated with respect to the values; only if there is a network.
    n_channels : int or None
        How many channels the model takes; None is any number.

    Attributes
    ----------
    n_rows : int
        How many series were passed through the model so far.
    """

    def __init__(
        self,
        classes: NDArray[Any] | None,
        network: Any = None,
        estimator: Any = None,
        has_gradients: bool = False,
        n_channels: int | None = None,
    ) -> None:
        self._classes, self.network, self.estimator = classes, network, estimator
        self.has_gradients, self.n_channels = has_gradients, n_channels
        self.n_rows = 0
        self.check_mode()

    @abstractmethod
    def _read(self, series: PaddedSeries) -> Batch:
        """Lay out series."""

    @abstractmethod
    def _forward(self, inputs: Batch) -> Any:
        """Return what the classifier gives for a batch."""

    @property
    def kind(self) -> str:
        """What to call the model in a message."""
        inner = self.estimator or self.network
        return "function" if inner is None else type(inner).__name__

    @property
    def classes(self) -> NDArray[Any]:
        """The class labels."""
        if self._classes is None:
            raise InvalidInputError("the number of classes is known once the model was asked")
        return self._classes

    def check_mode(self) -> None:
        """Raise if any part of the network is in training mode."""
        if self.network is not None and any(part.training for part in self.network.modules()):
            place = "model" if self.estimator is None else "model.network_"
            raise InvalidInputError(
                f"the network is in training mode, so its answers depend on chance or on the "
                f"other cases; call {place}.eval() first"
            )

    def read(self, X: Any) -> Batch:
        """Read series of any accepted form."""
        self.check_mode()
        series = as_series(X)
        if self.n_channels is not None and series.n_channels != self.n_channels:
            raise InvalidInputError(
                f"the series have {series.n_channels} channels, but the model was fitted on "
                f"{self.n_channels}; give the same channels in the same order"
            )
        return self._read(series)

    def logits(self, inputs: Batch, values: Tensor | None = None) -> Tensor:
        """Return the logits (B, C), with a gradient if the model has one and one is wanted.

        Parameters
        ----------
        inputs : Batch
            The cases.
        values : tensor of shape (B, v, L) or None
            Other values for the same cases; None is their own.
        """
        if values is not None:
            inputs = replace(inputs, values=values)
        logits, n = self._forward(inputs), len(inputs.values)
        self.n_rows += n
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != n:
            got = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InvalidInputError(
                f"the model must return logits of shape ({n}, n_classes), got {got}"
            )
        if self._classes is None:
            self._classes = np.arange(logits.shape[1])
        if logits.shape[1] != len(self._classes):
            raise InvalidInputError(
                f"the model returned {logits.shape[1]} logits, but there are "
                f"{len(self._classes)} classes"
            )
        return logits

    @torch.no_grad()
    def infer(self, inputs: Batch, values: Tensor | None = None) -> Tensor:
        """Return the logits (B, C) of any number of cases in bounded memory."""
        if values is not None:
            inputs = replace(inputs, values=values)
        per_case = inputs.n_channels * inputs.n_timepoints * _INSIDE
        if isinstance(self.network, BackboneNetwork):
            per_case = self.network.numbers_per_case(inputs.n_timepoints)
        return torch.cat([self.logits(part) for part in inputs.split(per_case, _NUMBERS)])

    def network_batch(self, inputs: Batch) -> Batch:
        """Return cases as the network takes them, for methods that look into it."""
        return inputs


def as_model(model: Any, classes: Any = None) -> Model:
    """Make any classifier explainable.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        A fitted classifier of this package, or its network alone, which then is given values as
        they are; a torch module from series (B, v, L) to logits (B, C); a function that maps an
        array (n_cases, n_channels, n_timepoints) to such logits.
    classes : sequence or None
        Labels of the logits of a module or function; None is 0, 1, ...

    Examples
    --------
    >>> import numpy as np
    >>> model = as_model(lambda X: np.stack([X.mean((1, 2)), X.max((1, 2))], 1), ["mean", "max"])
    >>> model.logits(model.read(np.ones((2, 1, 5)))).shape
    torch.Size([2, 2])
    """
    if isinstance(model, Model | SeriesClassifier):
        if classes is not None:
            raise InvalidParameterError("this model knows its classes; leave classes out")
        return model if isinstance(model, Model) else _OwnClassifier(model)
    labels = None if classes is None else np.asarray(classes)
    if isinstance(model, TimeSliverNetwork):
        raise InvalidParameterError(
            "a TimeSliverNetwork takes symbols beside the series; give the fitted "
            "TimeSliverClassifier"
        )
    if isinstance(model, BackboneNetwork):
        return _OwnNetwork(labels, model)
    if isinstance(model, nn.Module):
        return _ForeignModule(labels, model, has_gradients=True)
    if callable(model):
        return _ForeignFunction(labels, model)
    raise InvalidParameterError(
        f"a model is a fitted classifier of this package, a torch module, or a function from "
        f"series (n_cases, n_channels, n_timepoints) to logits (n_cases, n_classes); got {model!r}"
    )


class _OwnNetwork(Model):
    """A backbone's network alone; its values are given as they are, not standardised."""

    def __init__(self, classes: NDArray[Any] | None, network: Any, estimator: Any = None) -> None:
        takes_symbols = isinstance(network, COLORNetwork) and network.mode == "symbols"
        sees_values = isinstance(network, BackboneNetwork) and not takes_symbols
        n_channels = network.n_channels if estimator is None else estimator.n_channels_
        super().__init__(classes, network, estimator, sees_values, n_channels)

    def _read(self, series: PaddedSeries) -> Batch:
        series = series.padded_to(2)
        return Batch.of(self._values(series), series).to(_device(self.network))

    def _values(self, series: PaddedSeries) -> NDArray[Any]:
        return series.values

    def _forward(self, inputs: Batch) -> Any:
        ask = self.network if self.has_gradients else self.network.infer
        return ask(self.network_batch(inputs))


class _OwnClassifier(_OwnNetwork):
    """A fitted classifier of this package, which standardises, and may need symbols."""

    def __init__(self, estimator: Any) -> None:
        estimator._check_fitted()
        super().__init__(estimator.classes_, estimator.network_, estimator)

    def _values(self, series: PaddedSeries) -> NDArray[Any]:
        return series.standardized(self.estimator.mean_, self.estimator.scale_)

    def network_batch(self, inputs: Batch) -> Batch:
        """Return cases as the network takes them; symbols are made anew of changed values."""
        if self.has_gradients:
            return inputs
        values = inputs.values.detach().cpu().numpy().astype(np.float64)
        values = values * self.estimator.scale_[:, None] + self.estimator.mean_[:, None]
        observed = inputs.observed.cpu().numpy()
        plain = PaddedSeries(np.where(observed, values, 0), observed, inputs.lengths.cpu().numpy())
        batch: Batch = self.estimator._batch(plain).to(_device(self.network))
        return batch


class _ForeignModule(Model):
    """A torch module from arrays of series to logits."""

    def _read(self, series: PaddedSeries) -> Batch:
        return _plain_batch(series).to(_device(self.network))

    def _forward(self, inputs: Batch) -> Any:
        weights = chain(self.network.parameters(), self.network.buffers())
        precisions = (each.dtype for each in weights if each.is_floating_point())
        logits = self.network(inputs.values.to(next(precisions, torch.float32)))
        return logits.float() if isinstance(logits, Tensor) else logits


class _ForeignFunction(Model):
    """A function from arrays of series to logits."""

    def __init__(self, classes: NDArray[Any] | None, function: Callable[..., Any]) -> None:
        super().__init__(classes)
        self.function = function

    def _read(self, series: PaddedSeries) -> Batch:
        return _plain_batch(series)

    def _forward(self, inputs: Batch) -> Any:
        logits = np.asarray(self.function(inputs.values.detach().cpu().numpy()))
        if logits.dtype.kind not in "biuf":
            raise InvalidInputError(f"the model must return numbers, got {logits.dtype}")
        return torch.from_numpy(logits.astype(np.float32))


def _plain_batch(series: PaddedSeries) -> Batch:
    """Return series as they are, which must be of equal length."""
    if (series.lengths != series.n_timepoints).any():
        raise NotApplicableError(
            "a module or function is given plain arrays, so the series must be of equal length; "
            "explain the cases of each length by themselves"
        )
    return Batch.of(series.values, series)


def _device(module: nn.Module) -> torch.device:
    weights = next(module.parameters(), None)
    return torch.device("cpu") if weights is None else weights.device
