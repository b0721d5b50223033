"""`Model`: one way to ask any classifier for its logits, and to count how often it was asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from timesliver.backbones import BackboneNetwork, COLORNetwork, SeriesBatch
from timesliver.errors import (
    InvalidInputError,
    InvalidParameterError,
    NotApplicableError,
)
from timesliver.estimator import SeriesClassifier
from timesliver.explainers.inputs import Inputs, as_inputs
from timesliver.network import TimeSliverNetwork
from timesliver.series import PaddedSeries, as_series, equal_slices

__all__ = ["Inputs", "Model", "as_model"]

_NUMBERS = 1 << 23  # that a model may hold at once
_INSIDE = 32  # numbers inside a foreign model for each of its input


class Model:
    """A classifier as explainers see it.

    Parameters
    ----------
    classes : array or None
        The class labels; None is 0, 1, ... as many as there are logits.
    forward : callable
        Maps `Inputs` to logits (B, C).
    read : callable
        Maps series of any accepted form to `Inputs`.
    has_gradients : bool
        Whether logits can be differentiated with respect to the values.
    estimator, network : SeriesClassifier and Module, or None
        What is inside, for methods that look into one kind of model.
    n_channels : int or None
        How many channels the model takes; None is any number.
    batch : callable or None
        Maps `Inputs` to what the network takes, if that is known.

    Attributes
    ----------
    n_rows : int
        How many series were passed through the model so far.
    """

    def __init__(
        self,
        classes: NDArray[Any] | None,
        forward: Callable[[Inputs], Tensor],
        read: Callable[[PaddedSeries], Inputs],
        has_gradients: bool,
        estimator: SeriesClassifier | None = None,
        network: nn.Module | None = None,
        n_channels: int | None = None,
        batch: Callable[[Inputs], Any] | None = None,
    ) -> None:
        self._classes, self._forward, self._read = classes, forward, read
        self.has_gradients, self.estimator, self.network = has_gradients, estimator, network
        self.n_channels, self._batch = n_channels, batch
        self.n_rows = 0
        self.check_mode()

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

    def read(self, X: Any) -> Inputs:
        """Read series of any accepted form."""
        self.check_mode()
        series = as_series(X)
        if self.n_channels is not None and series.n_channels != self.n_channels:
            raise InvalidInputError(
                f"the series have {series.n_channels} channels, but the model was fitted on "
                f"{self.n_channels}; give the same channels in the same order"
            )
        return self._read(series)

    def logits(self, inputs: Inputs, values: Tensor | None = None) -> Tensor:
        """Return the logits (B, C), with a gradient if the model has one and one is wanted.

        Parameters
        ----------
        inputs : Inputs
            The cases.
        values : tensor of shape (B, v, L) or None
            Other values for the same cases; None is their own.
        """
        if values is not None:
            inputs = replace(inputs, values=values)
        logits = self._forward(inputs)
        n = len(inputs.values)
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
    def infer(self, inputs: Inputs, values: Tensor | None = None) -> Tensor:
        """Return the logits (B, C) of any number of cases in bounded memory."""
        values = inputs.values if values is None else values
        per_case = values[0].numel() * _INSIDE
        if isinstance(self.network, BackboneNetwork):
            per_case = self.network.numbers_per_case(values.shape[2])
        parts = equal_slices(len(values), per_case, _NUMBERS)
        return torch.cat([self.logits(inputs[part], values[part]) for part in parts])

    def network_for(self, method: str) -> nn.Module:
        """Return the network, for a method that looks at its layers."""
        if self.network is None:
            raise NotApplicableError(
                f"{method} looks at the layers of a network, but the model is a function; give a "
                f"torch module, or use integrated_gradients"
            )
        return self.network

    def batch(self, inputs: Inputs) -> Any:
        """Return cases as the network takes them, for methods that look into it."""
        if self._batch is None:
            raise NotApplicableError(f"nothing is known of the inside of a {self.kind}")
        return self._batch(inputs)


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
        return model if isinstance(model, Model) else _of_classifier(model)
    labels = None if classes is None else np.asarray(classes)
    if isinstance(model, TimeSliverNetwork):
        raise InvalidParameterError(
            "a TimeSliverNetwork takes symbols beside the series; give the fitted "
            "TimeSliverClassifier"
        )
    if isinstance(model, BackboneNetwork):
        return _of_backbone(model, labels)
    if isinstance(model, nn.Module):
        return Model(labels, _of_module(model), _read_plain(_device(model)), True, network=model)
    if callable(model):
        return Model(labels, _of_function(model), _read_plain(torch.device("cpu")), False)
    raise InvalidParameterError(
        f"a model is a fitted classifier of this package, a torch module, or a function from "
        f"series (n_cases, n_channels, n_timepoints) to logits (n_cases, n_classes); got {model!r}"
    )


def _of_classifier(estimator: Any) -> Model:
    estimator._check_fitted()
    network = estimator.network_
    device = _device(network)
    sees_values = isinstance(network, BackboneNetwork) and not _takes_symbols(network)

    def read(series: PaddedSeries) -> Inputs:
        series = series.padded_to(2)
        return as_inputs(series.standardized(estimator.mean_, estimator.scale_), series, device)

    def batch(inputs: Inputs) -> Any:
        if sees_values:
            return SeriesBatch(inputs.values, inputs.lengths)
        seen = inputs.observed.cpu().numpy()  # symbols are made anew for every change of values
        values = inputs.values.detach().cpu().numpy().astype(np.float64)
        values = values * estimator.scale_[:, None] + estimator.mean_[:, None]
        plain = PaddedSeries(np.where(seen, values, 0.0), seen, inputs.lengths.cpu().numpy())
        return estimator._batch(plain).to(device)

    def forward(inputs: Inputs) -> Tensor:
        logits: Tensor = (network if sees_values else network.infer)(batch(inputs))
        return logits

    return Model(
        estimator.classes_,
        forward,
        read,
        sees_values,
        estimator,
        network,
        estimator.n_channels_,
        batch,
    )


def _of_backbone(network: BackboneNetwork, classes: NDArray[Any] | None) -> Model:
    """Take the network alone; its values are given as they are, not standardised."""
    device = _device(network)

    def read(series: PaddedSeries) -> Inputs:
        series = series.padded_to(2)
        return as_inputs(series.values, series, device)

    def batch(inputs: Inputs) -> SeriesBatch:
        return SeriesBatch(inputs.values, inputs.lengths)

    def forward(inputs: Inputs) -> Tensor:
        logits: Tensor = network(batch(inputs))
        return logits

    has_gradients = not _takes_symbols(network)
    return Model(classes, forward, read, has_gradients, None, network, network.n_channels, batch)


def _takes_symbols(network: nn.Module) -> bool:
    return isinstance(network, COLORNetwork) and network.mode == "symbols"


def _of_module(module: nn.Module) -> Callable[[Inputs], Tensor]:
    def forward(inputs: Inputs) -> Tensor:
        logits: Any = module(inputs.values.to(_precision(module)))
        return logits.float() if isinstance(logits, Tensor) else logits

    return forward


def _precision(module: nn.Module) -> torch.dtype:
    weights = chain(module.parameters(), module.buffers())
    return next((each.dtype for each in weights if each.is_floating_point()), torch.float32)


def _of_function(function: Callable[[NDArray[Any]], Any]) -> Callable[[Inputs], Tensor]:
    def forward(inputs: Inputs) -> Tensor:
        logits = np.asarray(function(inputs.values.detach().cpu().numpy()))
        if logits.dtype.kind not in "biuf":
            raise InvalidInputError(f"the model must return numbers, got {logits.dtype}")
        return torch.from_numpy(logits.astype(np.float32))

    return forward


def _read_plain(device: torch.device) -> Callable[[PaddedSeries], Inputs]:
    def read(series: PaddedSeries) -> Inputs:
        if (series.lengths != series.n_timepoints).any():
            raise NotApplicableError(
                "a module or function is given plain arrays, so the series must be of equal "
                "length; explain the cases of each length by themselves"
            )
        return as_inputs(series.values, series, device)

    return read


def _device(module: nn.Module) -> torch.device:
    weights = next(module.parameters(), None)
    return torch.device("cpu") if weights is None else weights.device
