"""Retraining on the time points that an explanation holds to be important: e(u) and I(U)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import trapezoid
from sklearn.base import clone

from timesliver.attribution import Attribution
from timesliver.datasets import Dataset
from timesliver.errors import InvalidInputError, InvalidParameterError, check_choice, check_count
from timesliver.estimator import SeriesClassifier
from timesliver.metrics.masking import (
    PARTS,
    InteractionPart,
    check_percents,
    mask_points,
    rank_points,
    ranked_among,
    read_scores,
    to_plain,
)
from timesliver.metrics.summary import Summary
from timesliver.series import PaddedSeries, as_series
from timesliver.training import progress
from timesliver.typing import FloatArray, IntArray

__all__ = ["UnmaskingCurve", "predicted_scores", "unmasking_area", "unmasking_curve"]


@dataclass(frozen=True, eq=False)
class UnmaskingCurve:
    """Accuracy after retraining on the top u % of the time points.

    Attributes
    ----------
    percents : array of shape (n_percents,)
        The percentages u, from 0 upwards.
    accuracies : array of shape (n_backbones, n_seeds, n_percents)
        The accuracy e(u) of each run on the test cases, from 0 to 1.
    agreements : array of shape (n_backbones, n_seeds, n_percents), or None
        How often each run names the class that was explained, right or wrong: where this is high
        and the accuracy is not, the choice of points tells the explained class. NaN at 0 %; None
        if the scores did not come as an `Attribution`.
    """

    percents: FloatArray
    accuracies: FloatArray
    agreements: FloatArray | None = None

    def __post_init__(self) -> None:
        check_percents(self.percents.tolist(), least=2)
        shape = self.accuracies.shape
        if len(shape) != 3 or 0 in shape or shape[2] != len(self.percents):
            raise InvalidInputError(
                f"accuracies must have shape (n_backbones, n_seeds, {len(self.percents)}), one "
                f"for each percentage; got {shape}"
            )
        if not np.isfinite(self.accuracies).all():
            raise InvalidInputError("accuracies must be finite numbers, got NaN or infinity")

    @property
    def mean(self) -> FloatArray:
        """Mean accuracy over backbones and seeds: (n_percents,)."""
        mean: FloatArray = self.accuracies.mean(axis=(0, 1))
        return mean

    @property
    def spread(self) -> FloatArray:
        """Standard deviation over seeds of the mean over backbones; NaN for a single seed."""
        by_seed = self.accuracies.mean(axis=0)
        return np.array([Summary(column).spread for column in by_seed.T])


def unmasking_curve(
    estimators: Any,
    train: tuple[Any, Any] | Dataset,
    test: tuple[Any, Any] | Dataset,
    scores_train: FloatArray | Attribution,
    scores_test: FloatArray | Attribution,
    percents: Iterable[float] = (5, 10, 15, 20, 40, 60, 80, 100),
    seeds: Sequence[int] = (0,),
    at_zero: str = "zero",
    verbose: int = 0,
) -> UnmaskingCurve:
    """Keep the top u % of the time points, retrain, and measure the accuracy e(u).

    All points but the top u % are masked in the training and in the test cases: our own
    classifiers get masked points without a value and without a symbol, other estimators (also one
    of ours inside a pipeline) get the value 0 there; give them series whose mean is near 0, as
    after standardising. Nothing is taken from the series before masking, neither symbols nor
    scales.

    Scores must come from *predicted* classes, as `predicted_scores` makes them. Scores made with
    true labels write the label into the choice of points: even on pure noise the retrained models
    would then be right. An `Attribution` is checked for this; an array cannot be.

    Parameters
    ----------
    estimators : estimator or list of estimators
        Unfitted backbones with ``fit`` and ``predict``. Each run trains a fresh copy, whose
        ``random_state``, if it has one, is the seed. Other settings, such as ``n_jobs``, are kept.
    train, test : (X, y) or Dataset
        Series in any accepted form, and their labels.
    scores_train, scores_test : array of shape (n_cases, n_timepoints), or Attribution
        Scores of the points; of an `Attribution` the positive ones, phi+.
    percents : list of float
        The percentages u, increasing. For 0 nothing is trained; it is added if it is not there.
    seeds : list of int
        One training run for each; a seed also decides how equal scores are ranked.
    at_zero : {"zero", "majority"}
        What e(0) is: 0, as in the paper's figures, or the accuracy of always naming the most
        frequent class of the training cases.
    verbose : int
        1 shows a progress bar wherever the output goes; 0 shows one on a terminal.

    Returns
    -------
    UnmaskingCurve

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = np.zeros((20, 10)), np.arange(20) % 2
    >>> X[:, 3] = 2 * y - 1
    >>> curve = unmasking_curve(KNeighborsClassifier(1), (X, y), (X, y), X**2, X**2, [10, 100])
    >>> curve.mean
    array([0., 1., 1.])
    >>> unmasking_area(curve, upto=20).mean
    15.0
    """
    backbones = list(estimators) if isinstance(estimators, list | tuple) else [estimators]
    for backbone in backbones or [None]:
        if isinstance(backbone, type) or not all(hasattr(backbone, m) for m in ("fit", "predict")):
            raise InvalidParameterError(
                f"estimators must be one or more objects with fit and predict, got {backbone!r}"
            )
    if not len(seeds):
        raise InvalidParameterError(f"seeds must list at least one seed, got {seeds!r}")
    for seed in seeds:
        check_count("a seed", seed, 0, 2**32 - 1)
    check_choice("at_zero", at_zero, ("zero", "majority"))
    (X_train, y_train), (X_test, y_test) = _labelled(train, "train"), _labelled(test, "test")
    series_train, series_test = as_series(X_train), as_series(X_test)
    scores = read_scores(scores_train, series_train), read_scores(scores_test, series_test)
    kept = [percent for percent in check_percents(percents, least=1) if percent > 0]
    if not kept:
        raise InvalidParameterError("percents must hold one above 0 to retrain at, got [0]")

    first = 0.0 if at_zero == "zero" else _majority_accuracy(y_train, y_test)
    accuracies = np.full((len(backbones), len(seeds), 1 + len(kept)), first)
    agreements = np.full_like(accuracies, np.nan)
    explained = None
    if isinstance(scores_test, Attribution):
        explained = scores_test.classes[scores_test.target]
    # Test cases must not share the tie-breaks of training cases of the same number: where both
    # sets list their classes in the same order, equal choices of points would give labels away.
    ranks = [
        (
            rank_points(scores[0], series_train.lengths, np.random.default_rng([seed, 0])),
            rank_points(scores[1], series_test.lengths, np.random.default_rng([seed, 1])),
        )
        for seed in seeds
    ]
    runs = list(product(range(len(seeds)), range(len(kept)), range(len(backbones))))
    for run, column, row in progress(runs, "Retraining", bool(verbose)):
        model = _fresh(backbones[row], seeds[run])
        model.fit(_kept(model, X_train, series_train, ranks[run][0], kept[column]), y_train)
        predicted = np.asarray(
            model.predict(_kept(model, X_test, series_test, ranks[run][1], kept[column]))
        )
        if predicted.shape != y_test.shape:
            raise InvalidInputError(
                f"{type(model).__name__} predicted an array of shape {predicted.shape} for "
                f"{len(y_test)} cases; one label per case is needed"
            )
        accuracies[row, run, 1 + column] = np.mean(predicted == y_test)
        if explained is not None:
            agreements[row, run, 1 + column] = np.mean(predicted == explained)
    return UnmaskingCurve(
        np.array([0.0, *kept]), accuracies, None if explained is None else agreements
    )


def unmasking_area(curve: UnmaskingCurve, upto: float = 100) -> Summary:
    """Return I(U), the area under e(u) from 0 to U by the trapezoid rule.

    As in the paper, u counts in percent and e from 0 to 1, so I(U) is at most U.

    Parameters
    ----------
    curve : UnmaskingCurve
        What `unmasking_curve` returned.
    upto : float
        U; where no run was made at U itself, e(U) lies on the line between its neighbours.

    Returns
    -------
    Summary
        One area for each seed, of the mean over the backbones; with their mean and spread.
    """
    check_percents([upto], least=1)
    first, last = curve.percents[0], curve.percents[-1]
    if not first < upto <= last or first != 0:
        raise InvalidParameterError(
            f"the area up to {upto} % needs a curve from 0 to there, but this one goes from "
            f"{first:g} to {last:g} %"
        )
    below = curve.percents[curve.percents < upto]
    grid = np.append(below, upto)
    by_seed = curve.accuracies.mean(axis=0)
    return Summary(np.array([trapezoid(np.interp(grid, curve.percents, e), grid) for e in by_seed]))


def predicted_scores(
    model: Any, X: Any, part: InteractionPart = "positive", **options: Any
) -> NDArray[np.float64]:
    """Return scores of the time points for the classes that the model predicts.

    Labels play no part, so these scores are fit for `unmasking_curve`.

    Parameters
    ----------
    model : TimeSliverClassifier, or any explainer
        Anything whose ``explain(X)`` returns the `Attribution` of the predicted classes.
    X : series of any accepted form
        The cases, training or test.
    part : {"positive", "negative", "net", "magnitude"}
        Which scores.
    **options
        Given to ``explain``, such as ``method="additive"``.

    Returns
    -------
    array of shape (n_cases, n_timepoints)
    """
    check_choice("part", part, PARTS)
    if "target" in options:
        raise InvalidParameterError(
            "predicted_scores explains the predicted classes and takes no target: scores of true "
            "labels would give the labels away"
        )
    return read_scores(model.explain(X, **options), as_series(X), part)


def _labelled(data: Any, name: str) -> tuple[Any, NDArray[Any]]:
    """Return series and labels, one per case."""
    try:
        X, y = (data.X, data.y) if isinstance(data, Dataset) else data
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{name} must be a pair (X, y) of series and their labels, or a Dataset"
        ) from error
    labels = np.asarray(y)
    if labels.shape != (len(X),):
        raise InvalidInputError(
            f"{name} has {len(X)} series but labels of shape {labels.shape}; give one label per "
            f"case"
        )
    return X, labels


def _majority_accuracy(y_train: NDArray[Any], y_test: NDArray[Any]) -> float:
    """Return the accuracy of naming the most frequent class, or any one of several such."""
    classes, counts = np.unique(y_train, return_counts=True)
    most = classes[counts == counts.max()]
    return float(np.isin(y_test, most).mean() / len(most))


def _fresh(estimator: Any, seed: int) -> Any:
    """Return an unfitted copy, seeded."""
    model = clone(estimator, safe=False)
    if hasattr(model, "get_params"):
        names = [n for n in model.get_params() if f"__{n}".endswith("__random_state")]
        if names:
            model.set_params(**dict.fromkeys(names, int(seed)))
    return model


def _kept(model: Any, X: Any, series: PaddedSeries, ranks: IntArray, percent: float) -> Any:
    """Return the series with all but the top points masked, in the form that suits the model."""
    keep = ranked_among(ranks, series.lengths, percent)
    if isinstance(model, SeriesClassifier):
        return mask_points(series, keep)
    return to_plain(mask_points(series, keep, "zero"), X)
