"""`Chosen`: settings by cross-validation on the training cases, then several networks together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from timesliver import TimeSliverClassifier
from timesliver.typing import FloatArray, JSONDict

__all__ = ["Chosen", "averaged", "mirrored", "scaled", "with_clock"]

_FEW = 60  # cases below which a half of them says too little
_MANY = 1000  # cases that are enough to choose by
_LONGEST = 256  # points of a series; of more, averages are taken


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


def averaged(X: FloatArray, most: int = _LONGEST) -> FloatArray:
    """Return series of at most so many points, each the mean of as few successive ones as will do.

    Points at the end that do not fill a mean are left out.

    Examples
    --------
    >>> averaged(np.array([[[1.0, 3.0, 5.0, 7.0, 100.0]]]), most=3).tolist()
    [[[2.0, 6.0]]]
    """
    n_cases, n_channels, n_timepoints = X.shape
    step = math.ceil(n_timepoints / most)
    whole = X[:, :, : n_timepoints // step * step]
    means: FloatArray = whole.reshape(n_cases, n_channels, -1, step).mean(axis=3)
    return means


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


def mirrored(X: FloatArray, y: NDArray[Any]) -> tuple[FloatArray, NDArray[Any]]:
    """Return four times as many cases: as they are, upside down, backwards, and both.

    Examples
    --------
    >>> mirrored(np.array([[[1.0, 2.0]]]), np.array(["a"]))[0].tolist()
    [[[1.0, 2.0]], [[-1.0, -2.0]], [[2.0, 1.0]], [[-2.0, -1.0]]]
    """
    backwards = X[:, :, ::-1]
    return np.concatenate([X, -X, backwards, -backwards]), np.tile(y, 4)


class Chosen(ClassifierMixin, BaseEstimator):
    """Choose settings by cross-validation, and let networks with them answer together.

    Series of more than 256 points are averaged over short stretches first, which makes long ones
    affordable.

    Their logits are averaged, so the mean of their additive shares explains the answer. Only
    training cases decide: of the settings, best first, as many are taken as do best together on
    held-out cases; where there are too few cases to tell, all of them. What is chosen does not
    depend on the random state.

    Parameters
    ----------
    candidates : sequence of dict
        Parameters of the classifier, each a setting to choose from. ``segment_shares`` are the
        length of the series over the segment sizes; ``clock`` adds a channel that tells the time,
        so that the interaction knows early from late; ``mirrored`` lets networks learn from the
        series upside down and backwards as well, which suits vibrations and noise.
    n_members : int
        How many networks answer together, more if more settings are taken. They differ in their
        seeds, and take turns with the settings.
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
        X, self.classes_ = averaged(X), np.unique(y)
        tried = [scaled(settings, X.shape[2]) for settings in self.candidates]
        self.accuracies_, chosen = self._choose(tried, X, y)
        self.chosen_ = [tried[i] for i in chosen]
        n_members = max(self.n_members, len(chosen))
        turns = islice(cycle(self.chosen_), n_members)
        self.members_ = [
            (settings, self._fitted(settings, X, y, seed))
            for seed, settings in enumerate(turns, start=self.random_state * n_members)
        ]
        return self

    def predict(self, X: FloatArray) -> NDArray[Any]:
        """Return the class of the highest mean logit."""
        X = averaged(X)
        logits = [network.logits(_seen(settings, X)) for settings, network in self.members_]
        labels: NDArray[Any] = self.classes_[np.mean(logits, axis=0).argmax(axis=1)]
        return labels

    def _choose(
        self, tried: list[JSONDict], X: FloatArray, y: NDArray[Any]
    ) -> tuple[list[float], list[int]]:
        """Return the accuracy of each setting on held-out cases, and which ones to take."""
        n_folds = min(self.n_folds, int(np.unique(y, return_counts=True)[1].min()))
        if n_folds < 2 or len(y) < _FEW or len(tried) == 1:
            return [], list(range(len(tried)))
        some = np.random.default_rng(0).permutation(len(y))[:_MANY]
        X, y = X[some], y[some]
        folds = list(StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y))
        logits = np.full((len(tried), len(y), len(self.classes_)), -np.inf)
        for of_settings, settings in zip(logits, tried, strict=True):
            for train, held_out in folds:
                model = self._fitted(settings, X[train], y[train])
                known = np.searchsorted(self.classes_, model.classes_)  # a rare one may lack
                of_settings[np.ix_(held_out, known)] = model.logits(_seen(settings, X[held_out]))
        accuracies = self._accuracies(logits, y)
        order = np.argsort(accuracies, kind="stable")[::-1]
        together = np.cumsum(logits[order], axis=0)  # of the best, the best two, the best three ...
        best = int(np.argmax(self._accuracies(together, y)))
        return accuracies, order[: best + 1].tolist()

    def _accuracies(self, logits: FloatArray, y: NDArray[Any]) -> list[float]:
        """Return the accuracy of each of several sets of logits: (n_sets, n_cases, n_classes)."""
        right = self.classes_[logits.argmax(axis=2)] == y
        return [float(accuracy) for accuracy in right.mean(axis=1)]

    def _fitted(
        self, settings: JSONDict, X: FloatArray, y: NDArray[Any], seed: int = 0
    ) -> TimeSliverClassifier:
        options = {name: settings[name] for name in settings if name not in ("clock", "mirrored")}
        if settings.get("mirrored"):
            X, y = mirrored(X, y)
        made = TimeSliverClassifier(random_state=seed, n_jobs=self.n_jobs, **options)
        return made.fit(_seen(settings, X), y)


def _seen(settings: JSONDict, X: FloatArray) -> FloatArray:
    """Return what the classifier is given."""
    return with_clock(X) if settings.get("clock") else X
