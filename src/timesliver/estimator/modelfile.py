"""A fitted model in one safetensors file: tensors, and a JSON header that says what they are."""

from __future__ import annotations

import os
from importlib.metadata import version
from typing import TYPE_CHECKING, TypeVar

import torch

from timesliver.errors import InvalidInputError
from timesliver.estimator.format1 import upgrade
from timesliver.io import below, decode_labels, encode_labels, read_tensors, write_tensors
from timesliver.registry import from_description, to_description

if TYPE_CHECKING:
    from timesliver.estimator.base import SeriesClassifier

__all__ = ["PASSING", "read_model", "write_model"]

Model = TypeVar("Model", bound="SeriesClassifier")

_FORMAT = 2  # the newest that this version reads, and the one it writes
_FITTED = ("n_features_in_", "n_channels_", "n_timepoints_", "history_", "n_iter_", "_table")
#: Settings of the machine and the moment, not of the model.
PASSING = ("device", "n_jobs", "verbose", "callbacks")
# What goes wrong when the description in a file is damaged.
_DAMAGED = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    RuntimeError,
    ArithmeticError,
    MemoryError,
)


def write_model(model: SeriesClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted model; the file appears whole or not at all."""
    arrays, description = model._state()
    tensors = {f"network.{k}": w.cpu().numpy() for k, w in model.network_.state_dict().items()}
    tensors |= {f"input.{k}": array for k, array in arrays.items()}
    parameters = {k: v for k, v in model.get_params(deep=False).items() if k not in PASSING}
    if isinstance(model.class_weight, dict):
        parameters["class_weight"] = list(model.class_weight.items())
    # Without the time it took, the same model gives the same file.
    history = [{k: v for k, v in record.items() if k != "seconds"} for record in model.history_]
    header = {
        "format": _FORMAT,
        "kind": type(model).__name__,
        "versions": {name: version(name) for name in ("timesliver", "torch", "numpy")},
        "parameters": {name: to_description(value) for name, value in parameters.items()},
        "classes": encode_labels(model.classes_),
        "fitted": {name: getattr(model, name) for name in _FITTED} | {"history_": history},
        **description,
    }
    write_tensors(path, tensors, header)


def read_model(kind: type[Model], path: str | os.PathLike[str]) -> Model:
    """Read what `write_model` wrote; the file is data only, nothing in it is executed."""
    tensors, header = read_tensors(path)
    if header.get("kind") != kind.__name__:
        raise InvalidInputError(
            f"{path} holds a model of kind {header.get('kind')!r}, not {kind.__name__!r}; load it "
            f"with the class that wrote it"
        )
    if not isinstance(header.get("format"), int) or header["format"] > _FORMAT:
        raise InvalidInputError(
            f"{path} has the format {header.get('format')!r}, but this version of timesliver reads "
            f"formats up to {_FORMAT}; install a newer one"
        )
    try:
        if header["format"] == 1:
            tensors, header = upgrade(tensors, header)
        parameters = {k: from_description(v) for k, v in header["parameters"].items()}
        model = kind(**parameters)
        if isinstance(model.class_weight, list | tuple):
            model.class_weight = dict(model.class_weight)
        model.classes_ = decode_labels(header["classes"])
        for name in _FITTED:
            setattr(model, name, header["fitted"][name])
        with torch.device("meta"):  # shapes are compared before any memory is taken
            model.network_ = model._restore(below(tensors, "input."), header)
        weights = {k: torch.from_numpy(w) for k, w in below(tensors, "network.").items()}
        model.network_.load_state_dict(weights, assign=True)
    except _DAMAGED as error:
        raise InvalidInputError(
            f"{path} does not describe a model that fits its tensors "
            f"({str(error).splitlines()[0]}); save the model again"
        ) from error
    model.network_.eval()
    return model
