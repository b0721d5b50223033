"""What commands do with a model: load it, give it a set of data, compare its labels."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from timesliver.datasets import Dataset, load
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.estimator.modelfile import PASSING

if TYPE_CHECKING:
    from timesliver.classifier import TimeSliverClassifier

__all__ = ["accuracy", "as_class", "as_classes", "load_model", "load_series", "settings"]


def load_model(path: str | os.PathLike[str], verbose: bool = False) -> TimeSliverClassifier:
    """Load a model; its computations show their progress if wanted."""
    from timesliver.classifier import TimeSliverClassifier

    if not Path(path).exists():
        raise InvalidInputError(
            f"there is no model {path}; make one with: timesliver fit DATA -o {path}"
        )
    model = TimeSliverClassifier.load(path)
    model.verbose = int(verbose)
    return model


def load_series(
    name: str, split: str, label: str | None, cases: list[int] | None = None
) -> tuple[Dataset, NDArray[np.int64]]:
    """Load a set, or some of its cases; return it with the numbers of its cases."""
    data = load(name, split, label=label)
    if cases is None:
        return data, np.arange(len(data))
    if max(cases) >= len(data):
        raise InvalidParameterError(
            f"case {max(cases)} asked for, but {data.name} has {len(data)}: 0 to {len(data) - 1}"
        )
    chosen = np.array(cases)
    y = None if data.y is None else data.y[chosen]
    return Dataset(data.X[chosen], y, None, data.name, data.channel_names), chosen


def as_classes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as the model writes them, so that 1 in one file is "1" in another.

    Examples
    --------
    >>> as_classes(np.array(["2", "1"]), np.array([1, 2])).tolist()
    [2, 1]
    """
    if y.dtype.kind == classes.dtype.kind or (y.dtype.kind in "iu" and classes.dtype.kind in "iu"):
        return y
    known = {str(one): one for one in classes.tolist()}
    return np.array([known.get(str(label), label) for label in y.tolist()], dtype=object)


def as_class(text: str, classes: NDArray[Any]) -> Any:
    """Return the class that a person means by some text."""
    for one in classes.tolist():
        if str(one) == text:
            return one
    known = ", ".join(str(one) for one in classes[:20]) + (", ..." if len(classes) > 20 else "")
    raise InvalidParameterError(f"the model knows no class {text!r}; its classes are {known}")


def accuracy(y: NDArray[Any], predicted: NDArray[Any]) -> float:
    """Return the share of cases whose predicted label is the true one."""
    if y.dtype.kind != predicted.dtype.kind:
        y, predicted = y.astype(str), predicted.astype(str)
    return float(np.mean(y == predicted))


def settings(model: TimeSliverClassifier) -> dict[str, Any]:
    """Return the settings of a fitted model that shaped what it learned, to be read by people.

    Settings of the encoder stand beside those of the classifier; of several encoders, each has
    its number in front.
    """
    shown = _lasting(model)
    del shown["encoder"]
    several = len(model.encoders_) > 1
    for number, encoder in enumerate(model.encoders_, start=1):
        prefix = f"{number}: " if several else ""
        shown[f"{prefix}encoder"] = encoder.name
        shown |= {f"{prefix}{name}": value for name, value in _lasting(encoder).items()}
    return shown


def _lasting(estimator: Any) -> dict[str, Any]:
    parameters = estimator.get_params(deep=False)
    return {name: value for name, value in parameters.items() if name not in PASSING}
