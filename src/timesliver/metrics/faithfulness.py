"""Does the model react where the explanation says so? Masking points without retraining.

Where values are scaled case by case, as for SAX symbols, masking a point can change the symbols of
those that stay: the model's reaction is then more than the loss of that point.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.integrate import trapezoid

from timesliver.attribution import Attribution
from timesliver.errors import check_count
from timesliver.metrics.masking import (
    check_percents,
    rank_points,
    ranked_among,
    read_scores,
)
from timesliver.metrics.outputs import ClassOutput
from timesliver.metrics.summary import Summary
from timesliver.series import as_series
from timesliver.training import draw_seed, progress
from timesliver.typing import FloatArray

__all__ = [
    "PerturbationCurve",
    "aopcr",
    "deletion_curve",
    "insertion_curve",
    "logit_change",
]

_STEPS = tuple(range(0, 101, 5))


def logit_change(
    model: Any,
    X: Any,
    negative_scores: FloatArray | Attribution,
    percent: float,
    masking: str = "zero",
    random_state: Any = 0,
) -> Summary:
    """Return by how much the logit of the predicted class grows without its opponents.

    This is the paper's delta y_c(u-): the logit after masking the top ``percent`` of the time
    points by evidence *against* the class, minus the logit before. Higher is better. Exactly that
    share of the points is masked in every case, also where fewer of them speak against the class.

    Parameters
    ----------
    model : SeriesClassifier, or a function from series to logits (n_cases, n_classes)
        What predicts.
    X : series of any accepted form
        The cases.
    negative_scores : array of shape (n_cases, n_timepoints), or Attribution
        Evidence against the predicted class, phi- >= 0.
    percent : float
        From 0 to 100; the paper takes 2 and 5.
    masking : {"zero", "no_symbol"}
        "zero": the value 0, in the units of X, with the symbol of that value. "no_symbol": the
        mean value and no symbol; only for our own classifiers.
    random_state : int, numpy generator or None
        How equal scores are ranked.

    Returns
    -------
    Summary
        The change of each case, with mean and spread.

    Examples
    --------
    >>> import numpy as np
    >>> linear = lambda X: np.stack([X.sum(axis=1), -X.sum(axis=1)], axis=1)
    >>> X = np.array([[3.0, -1.0, 2.0, 0.5]])
    >>> logit_change(linear, X, np.maximum(-X, 0), percent=25).values
    array([1.])
    """
    (percent,) = check_percents([percent], least=1)
    output = ClassOutput(model, X, "logit", masking)
    scores = read_scores(negative_scores, output.series, "negative")
    lengths = output.series.lengths
    ranks = rank_points(scores, lengths, random_state)
    masked = output.keeping(~ranked_among(ranks, lengths, percent))
    return Summary(masked - output.unchanged)


@dataclass(frozen=True, eq=False)
class PerturbationCurve:
    """How the output for the predicted class changes as points are removed or put back.

    Attributes
    ----------
    percents : array of shape (n_percents,)
        Share of the points that were removed, or put back.
    outputs : array of shape (n_cases, n_percents)
        Probability or logit of the class that the unchanged series were given.
    unchanged : array of shape (n_cases,)
        The same for the unchanged series.
    """

    percents: FloatArray
    outputs: FloatArray = field(repr=False)
    unchanged: FloatArray = field(repr=False)

    @property
    def mean(self) -> FloatArray:
        """Mean over the cases: (n_percents,)."""
        mean: FloatArray = self.outputs.mean(axis=0)
        return mean

    @property
    def spread(self) -> FloatArray:
        """Standard deviation over the cases, NaN for a single one: (n_percents,)."""
        return np.array([Summary(column).spread for column in self.outputs.T])

    @property
    def area(self) -> Summary:
        """Area of each case by the trapezoid rule, over the width: the mean height of the curve."""
        area = trapezoid(self.outputs, self.percents, axis=1)
        return Summary(area / (self.percents[-1] - self.percents[0]))


def deletion_curve(
    model: Any,
    X: Any,
    scores: FloatArray | Attribution,
    percents: Iterable[float] = _STEPS,
    output: str = "probability",
    masking: str = "zero",
    random_state: Any = 0,
) -> PerturbationCurve:
    """Remove points, the highest scores first, and watch the predicted class.

    If the scores are faithful, the curve falls early: a small area is good.

    Parameters
    ----------
    model : SeriesClassifier, an object with ``predict_proba`` or ``logits``, or a function
        A function returns (n_cases, n_classes).
    X : series of any accepted form
        The cases.
    scores : array of shape (n_cases, n_timepoints), or Attribution
        Scores of the points; of an `Attribution` the net evidence.
    percents : list of float
        At least two percentages, increasing.
    output : {"probability", "logit"}
        What to watch.
    masking : {"zero", "no_symbol"}
        What removed points become; see `logit_change`.
    random_state : int, numpy generator or None
        How equal scores are ranked.

    Examples
    --------
    >>> import numpy as np
    >>> linear = lambda X: np.stack([X.sum(axis=1), 0 * X.sum(axis=1)], axis=1)
    >>> X = np.array([[4.0, 3.0, 2.0, 1.0]])
    >>> deletion_curve(linear, X, X, [0, 25, 50, 75, 100]).mean
    array([10., 6., 3., 1., 0.])
    """
    return _curve(model, X, scores, percents, output, masking, random_state, removing=True)


def insertion_curve(
    model: Any,
    X: Any,
    scores: FloatArray | Attribution,
    percents: Iterable[float] = _STEPS,
    output: str = "probability",
    masking: str = "zero",
    random_state: Any = 0,
) -> PerturbationCurve:
    """Start from nothing and put points back, the highest scores first.

    If the scores are faithful, the curve rises early: a large area is good. Parameters are those
    of `deletion_curve`.
    """
    return _curve(model, X, scores, percents, output, masking, random_state, removing=False)


def aopcr(
    model: Any,
    X: Any,
    scores: FloatArray | Attribution,
    percents: Iterable[float] = tuple(range(5, 51, 5)),
    output: str = "logit",
    masking: str = "zero",
    n_random: int = 3,
    random_state: Any = 0,
) -> Summary:
    """Return the area over the perturbation curve, minus that of random orders.

    The area over the curve (AOPC) is the mean drop of the output over ``percents`` as points are
    removed, the highest scores first. What removal in a random order does anyway is taken off, so
    0 is no better than chance.

    Parameters
    ----------
    model, X, scores, percents, output, masking
        As for `deletion_curve`.
    n_random : int
        Number of random orders to compare with.
    random_state : int, numpy generator or None
        Random orders, and how equal scores are ranked.

    Returns
    -------
    Summary
        One number for each case.
    """
    check_count("n_random", n_random, 1)
    rng = np.random.default_rng(draw_seed(random_state))

    def drop(ranked_by: Any) -> FloatArray:
        curve = deletion_curve(model, X, ranked_by, percents, output, masking, rng)
        fallen: FloatArray = curve.unchanged - curve.outputs.mean(axis=1)
        return fallen

    percents = check_percents(percents, least=2)
    own = drop(scores)
    shape = (len(own), as_series(X).n_timepoints)
    by_chance = np.mean([drop(rng.random(shape)) for _ in range(n_random)], axis=0)
    return Summary(own - by_chance)


def _curve(
    model: Any,
    X: Any,
    scores: FloatArray | Attribution,
    percents: Iterable[float],
    output: str,
    masking: str,
    random_state: Any,
    removing: bool,
) -> PerturbationCurve:
    steps = check_percents(percents, least=2)
    of_class = ClassOutput(model, X, output, masking)
    lengths = of_class.series.lengths
    ranks = rank_points(read_scores(scores, of_class.series, "net"), lengths, random_state)
    outputs = np.empty((len(ranks), len(steps)))
    for column, percent in enumerate(progress(steps, "Masking points")):
        top = ranked_among(ranks, lengths, percent)
        outputs[:, column] = of_class.keeping(~top if removing else top)
    return PerturbationCurve(np.array(steps), outputs, of_class.unchanged)
