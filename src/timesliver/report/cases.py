"""What the page needs to know of its cases: labels, predictions and which classes are explained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from timesliver.errors import InvalidInputError
from timesliver.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from timesliver.attribution.result import Attribution

__all__ = ["Cases", "Labels", "read_cases"]

_LONGEST_LABEL = 120
_NEEDED = (
    "classes",
    "case",
    "positive_by_channel",
    "negative_by_channel",
    "logit",
    "base",
    "target",
)


class Labels:
    """The classes of the model, then any other label that turns up.

    Examples
    --------
    >>> labels = Labels(["cat", "dog"])
    >>> labels.indices(["dog", "cow", None], "y").tolist(), labels.texts
    ([1, 2, -1], ['cat', 'dog', 'cow'])
    """

    def __init__(self, classes: Iterable[Any]) -> None:
        self._index: dict[Any, int] = {}
        for label in np.asarray(classes).tolist():
            self._index.setdefault(label, len(self._index))
        self.n_classes = len(self._index)

    @property
    def texts(self) -> list[str]:
        """How each label is written on the page."""
        texts = [str(label) or "(empty)" for label in self._index]
        return [t if len(t) <= _LONGEST_LABEL else t[: _LONGEST_LABEL - 1] + "…" for t in texts]

    def indices(self, labels: Any, what: str, n_cases: int | None = None) -> IntArray:
        """Return the number of each label; -1 where there is none (None or NaN)."""
        array: NDArray[Any] = np.asarray(labels)
        if array.ndim != 1 or (n_cases is not None and len(array) != n_cases):
            expected = (
                "one label per case" if n_cases is None else f"{n_cases} labels, one per case"
            )
            raise InvalidInputError(f"{what} must hold {expected}, got shape {array.shape}")
        values = array.tolist()
        given = [label for label in values if label is not None and label == label]
        if given and not any(label in self._index for label in given):
            known = ", ".join(repr(label) for label in list(self._index)[:5])
            raise InvalidInputError(
                f"no label in {what} is a class of the model: got for example {given[0]!r}, "
                f"the classes are {known}; give the labels themselves, of the same type"
            )
        for label in given:
            self._index.setdefault(label, len(self._index))
        return np.array([self._index.get(label, -1) for label in values], dtype=np.int64)


@dataclass(frozen=True)
class Cases:
    """Explanations of the same cases, checked, with what was true and what was predicted.

    Attributes
    ----------
    explanations : sequence of Attribution
        Each explains one class of each case, no class twice.
    labels : Labels
        All labels that the page may show.
    true : int array of shape (n_cases,)
        Index of the true label, -1 where it is not known.
    predicted : int array of shape (n_cases,)
        Index of the predicted class.
    """

    explanations: Sequence[Attribution]
    labels: Labels
    true: IntArray
    predicted: IntArray

    def __len__(self) -> int:
        return len(self.predicted)

    @property
    def first(self) -> Attribution:
        """The first explanation; it holds the series and the probabilities."""
        return self.explanations[0]

    @property
    def mistaken(self) -> NDArray[np.bool_]:
        """Where the true label is known and another class was predicted."""
        mistaken: NDArray[np.bool_] = (self.true >= 0) & (self.true != self.predicted)
        return mistaken

    def ranking(self, case: int) -> FloatArray:
        """Return how much each class deserves to be shown: true and predicted, then by score."""
        probabilities = self.first.probabilities
        if probabilities is not None:
            scores = np.array(probabilities[case], dtype=np.float64)
        else:
            scores = np.full(self.labels.n_classes, -np.inf)
            for explanation in self.explanations:
                scores[explanation.target[case]] = explanation.logit[case]
        if 0 <= self.true[case] < len(scores):
            scores[self.true[case]] = np.inf
        scores[self.predicted[case]] = np.inf
        return scores


def read_cases(explanations: Sequence[Attribution], y: Any = None) -> Cases:
    """Check that the explanations belong together, and find the predicted classes.

    Parameters
    ----------
    explanations : sequence of Attribution
        One for the cases' predicted or chosen class, or one for each class.
    y : array of shape (n_cases,), optional
        True labels.

    Returns
    -------
    Cases
        The explanations with true and predicted labels as numbers.
    """
    if not isinstance(explanations, Sequence) or not explanations:
        raise InvalidInputError(
            f"expected a list with at least one Attribution, got {_describe(explanations)}; "
            f"wrap a single one: [attribution]"
        )
    for i, explanation in enumerate(explanations):
        if not all(hasattr(explanation, name) for name in _NEEDED):
            raise InvalidInputError(
                f"explanation {i} is {_describe(explanation)}; expected an Attribution, "
                f"as explain() returns it"
            )
    first = explanations[0]
    shape = first.positive_by_channel.shape
    if 0 in shape:
        raise InvalidInputError(
            f"there is nothing to show: the scores have shape {shape}; at least one case, "
            f"one channel and one time point are needed"
        )
    for i, explanation in enumerate(explanations):
        if explanation.positive_by_channel.shape != shape or not np.array_equal(
            explanation.classes, first.classes
        ):
            raise InvalidInputError(
                f"explanation {i} has scores of shape {explanation.positive_by_channel.shape} and "
                f"{len(explanation.classes)} classes, explanation 0 has {shape} and "
                f"{len(first.classes)}; all must explain the same cases and classes"
            )
        if not np.array_equal(explanation.case, first.case):
            raise InvalidInputError(
                f"explanation {i} and explanation 0 number their cases differently; all must "
                f"explain the same cases in the same order"
            )
    targets = np.stack([explanation.target for explanation in explanations])
    ordered = np.sort(targets, axis=0)
    if (ordered[1:] == ordered[:-1]).any():
        raise InvalidInputError(
            "two explanations explain the same class of the same case; "
            "give one explanation per class, for example explain(X, target=label) for each label"
        )
    labels = Labels(first.classes)
    true = np.full(shape[0], -1) if y is None else labels.indices(y, "y", shape[0])
    return Cases(explanations, labels, true, _predicted(explanations, targets))


def _predicted(explanations: Sequence[Attribution], targets: IntArray) -> IntArray:
    """Return the predicted class: the most probable, or of the highest logit, or the explained."""
    first = explanations[0]
    if first.probabilities is not None:
        predicted: IntArray = np.argmax(first.probabilities, axis=1)
        return predicted
    if len(explanations) == 1:
        return first.target
    if len(explanations) < len(first.classes):
        raise InvalidInputError(
            f"cannot tell which class was predicted: {len(explanations)} of "
            f"{len(first.classes)} classes are explained and there are no probabilities; "
            f"give one explanation per class, or explanations with probabilities"
        )
    best = np.argmax(np.stack([explanation.logit for explanation in explanations]), axis=0)
    chosen: IntArray = np.take_along_axis(targets, best[None], axis=0)[0]
    return chosen


def _describe(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"an empty {type(value).__name__}"
    return f"a value of type {type(value).__name__}"
