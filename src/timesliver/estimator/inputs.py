"""What a user gives to ``fit``: labels and weights, checked and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.series import PaddedSeries
from timesliver.typing import FloatArray, IntArray

__all__ = ["case_weights", "class_indices", "is_table", "read_labels", "target_indices"]


def read_labels(y: Any, n_cases: int) -> tuple[NDArray[Any], IntArray]:
    """Return the classes, sorted, and for each case the index of its class."""
    if y is None:
        raise InvalidInputError(
            "a classifier requires y to be passed, but the target y is None; give one label per "
            "case"
        )
    labels = column_or_1d(y, warn=True)
    if len(labels) != n_cases:
        raise InvalidInputError(
            f"there are {n_cases} series but {len(labels)} labels; give one label per case"
        )
    missing = [label is None or label != label for label in labels.tolist()]
    if any(missing):
        raise InvalidInputError(f"case {missing.index(True)} has no label; leave such cases out")
    if labels.dtype.kind == "f" and np.isinf(labels).any():
        raise InvalidInputError(
            "Input y contains infinity or a value too large for dtype('float64'); labels must be "
            "finite numbers or text"
        )
    check_classification_targets(labels)
    try:
        classes, indices = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InvalidInputError(
            f"the labels are of types that cannot be compared ({error}); make them all strings or "
            f"all numbers"
        ) from error
    return classes, indices.astype(np.int64)


def class_indices(labels: NDArray[Any], classes: NDArray[Any]) -> IntArray:
    """Return the index of each label among known classes."""
    index = {label: i for i, label in enumerate(classes.tolist())}
    wanted = labels.ravel().tolist()
    indices = [index.get(label, -1) for label in wanted]
    if -1 in indices:
        raise InvalidInputError(
            f"the label {wanted[indices.index(-1)]!r} is none of the classes that were "
            f"learned: {', '.join(map(repr, index))}"
        )
    return np.array(indices, dtype=np.int64).reshape(labels.shape)


def target_indices(
    target: ArrayLike | None, classes: NDArray[Any], n_cases: int
) -> IntArray | str | None:
    """Return one class index per case, "all", or None for the predicted classes."""
    if target is None:
        return None
    if isinstance(target, str) and target == "all":
        return "all"
    labels = np.asarray(target)
    if labels.shape not in ((), (n_cases,)):
        raise InvalidInputError(
            f"target must be one label or one label for each of the {n_cases} cases, got "
            f"shape {labels.shape}"
        )
    return np.broadcast_to(class_indices(labels, classes), (n_cases,))


def case_weights(
    indices: IntArray, classes: NDArray[Any], sample_weight: Any, class_weight: Any
) -> FloatArray:
    """Return the weight of each case: its own times that of its class, 1 on average."""
    try:
        weight = _check_sample_weight(sample_weight, indices[:, None], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"sample_weight must hold one number for each of the {len(indices)} cases ({error})"
        ) from error
    if (weight < 0).any() or not (weight > 0).any():
        raise InvalidInputError(
            "sample_weight must not be negative, and must be above 0 for some cases"
        )
    if class_weight is not None:
        try:
            by_class = compute_class_weight(class_weight, classes=classes, y=classes[indices])
        except (TypeError, ValueError) as error:
            raise InvalidParameterError(
                f"class_weight={class_weight!r} does not fit the classes ({error}); give a dict "
                f"from class to number, 'balanced' or None"
            ) from error
        if not (np.isfinite(by_class) & (by_class >= 0)).all():
            raise InvalidParameterError(
                f"class_weight={class_weight!r} must hold finite numbers, at least 0"
            )
        weight = weight * by_class[indices]
        if not weight.any():
            raise InvalidParameterError(f"class_weight={class_weight!r} leaves no case any weight")
    scaled: FloatArray = weight / weight[weight > 0].mean()
    return scaled


def is_table(X: Any, series: PaddedSeries) -> bool:
    """Return whether X has two axes, so that scikit-learn's rules for features hold."""
    if isinstance(X, list | tuple):
        return np.ndim(X[0]) == 1 and bool((series.lengths == series.n_timepoints).all())
    return getattr(X, "ndim", None) == 2
