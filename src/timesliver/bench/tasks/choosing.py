"""`Chosen`: settings by cross-validation on the training cases, then several seeds together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from timesliver import TimeSliverClassifier
from timesliver.typing import FloatArray, JSONDict

__all__ = ["Chosen", "scaled", "with_clock"]

_FEW = 60  # cases below which a third of them says too little
_MANY = 1000  # cases that are enough to choose by


def scaled(settings: JSONDict, n_timepoints: int) -> JSONDict:
    """Return settings with segment sizes in place of their shares of the length.

    Examples
    --------
    >>> scaled({"n_bins": 3, "segment_shares": [16, 4]}, 160)
    {'n_bins': 3, 'segment_sizes': (10, 40)}
    """
    found = dict(settings)
    shares = found.pop("segment_shares", None)
    if shares is not None:
        sizes = {max(2, math.ceil(n_timepoints / share)) for share in shares}
        found["segment_sizes"] = tuple(sorted(sizes))
    return found


def with_clock(X: FloatArray) -> FloatArray:
    """Return the series with one more channel that rises from -1 to 1: the symbols of time.

    Examples
    --------
    >>> with_clock(np.zeros((1, 1, 3))).tolist()
    [[[0.0, 0.0, 0.0], [-1.0, 0.0, 1.0]]]
    """
    n_cases, _, n_timepoints = X.shape
    clock = np.broadcast_to(np.linspace(-1, 1, n_timepoints), (n_cases, 1, n_timepoints))
    return np.concatenate([X, clock], axis=1)


class Chosen(ClassifierMixin, BaseEstimator):
    """Choose settings by cross-validation, then average the logits of several seeds.

    Only training cases decide. The same random state chooses alike.

    Parameters
    ----------
    candidates : sequence of dict
        Parameters of the classifier, each a setting to choose from. ``segment_shares`` are the
        length of the series over the segment sizes; ``clock`` adds a channel that tells the time,
        so that the interaction knows early from late.
    n_members : int
        How many networks, which differ in their seeds, answer together.
    n_folds : int
        Parts of the cross-validation.
    random_state : int
        The first of the seeds.
    n_jobs : int or None
        Number of threads.
    """

    def __init__(
        self,
        candidates: Sequence[JSONDict],
        n_members: int = 5,
        n_folds: int = 3,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.n_members = n_members
        self.n_folds = n_folds
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: FloatArray, y: NDArray[Any]) -> Self:
        """Choose, then train."""
        tried = [scaled(settings, X.shape[2]) for settings in self.candidates]
        self.accuracies_ = [self._validated(settings, X, y) for settings in tried]
        self.chosen_ = tried[int(np.argmax(self.accuracies_))]
        first = self.random_state * self.n_members
        self.members_ = [self._fitted(self.chosen_, X, y, first + i) for i in range(self.n_members)]
        self.classes_ = self.members_[0].classes_
        return self

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return the class of the highest mean logit."""
        seen = _seen(self.chosen_, X)
        logits = np.mean([member.logits(seen) for member in self.members_], axis=0)
        labels: NDArray[Any] = self.classes_[logits.argmax(axis=1)]
        return labels

    def _validated(self, settings: JSONDict, X: FloatArray, y: NDArray[Any]) -> float:
        """Return the accuracy on held-out training cases."""
        n_folds = min(self.n_folds, int(np.unique(y, return_counts=True)[1].min()))
        if n_folds < 2 or len(y) < _FEW:
            return 0.0  # too few to choose by: the first candidate it is
        some = np.random.default_rng(0).permutation(len(y))[:_MANY]
        X, y = X[some], y[some]
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
        right = [
            self._fitted(settings, X[train], y[train]).predict(_seen(settings, X[held_out]))
            == y[held_out]
            for train, held_out in folds.split(X, y)
        ]
        return float(np.concatenate(right).mean())

    def _fitted(
        self, settings: JSONDict, X: FloatArray, y: NDArray[Any], seed: int = 0
    ) -> TimeSliverClassifier:
        options = {name: value for name, value in settings.items() if name != "clock"}
        made = TimeSliverClassifier(random_state=seed, n_jobs=self.n_jobs, **options)
        return made.fit(_seen(settings, X), y)


def _seen(settings: JSONDict, X: FloatArray) -> FloatArray:
    """Return what the classifier is given."""
    return with_clock(X) if settings.get("clock") else X
