"""Probabilities from scores: the factor that makes scores logits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from timesliver.errors import InvalidInputError
from timesliver.typing import FloatArray, IntArray

__all__ = ["check_cases", "temperature"]


def temperature(scores: FloatArray, y: IntArray, weight: FloatArray) -> float:
    """Return the factor that makes scores the best logits: the least weighted log loss.

    The factor is between 0.01 and 100. The scores should come from fits that did not see their
    cases, such as the left-out scores of a ridge regression.

    If the scores separate all cases, the log loss alone would ask for an infinite factor. As in
    Platt's scaling, a case of a class of k cases is therefore aimed at with the probability
    (k + 1) / (k + 2) instead of 1, and the other classes share the rest: few cases never give near
    certainty. Weights do not change k.

    Parameters
    ----------
    scores : float array of shape (n_cases, n_classes)
        The larger, the likelier.
    y : int array of shape (n_cases,)
        Class indices.
    weight : float array of shape (n_cases,)
        How much each case counts, above 0.

    Examples
    --------
    >>> scores = np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> round(temperature(scores, np.array([0, 1]), np.ones(2)), 3)  # half of log(2)
    0.347
    >>> round(temperature(scores.repeat(20, axis=0), np.arange(40) // 20, np.ones(40)), 3)
    1.522
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or not np.isfinite(scores).all():
        raise InvalidInputError(
            f"scores must be finite and of shape (n_cases, n_classes); got shape {scores.shape}"
        )
    n, n_classes = scores.shape
    y, cast = check_cases(y, weight, n, n_classes)
    counts = np.bincount(y)[y]
    aim = np.repeat(1 / (counts + 2) / (n_classes - 1), n_classes).reshape(n, n_classes)
    aim[np.arange(n), y] = (counts + 1) / (counts + 2)
    agreement = (aim * scores).sum(axis=1)

    def loss(log: float) -> Any:
        t = np.exp(log)
        return cast @ (logsumexp(t * scores, axis=1) - t * agreement) / cast.sum()

    bounds = (np.log(1e-2), np.log(1e2))
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-8})
    return float(np.exp(best.x))


def check_cases(
    y: IntArray, weight: FloatArray, n: int, n_classes: int
) -> tuple[IntArray, NDArray[np.float64]]:
    """Return classes and weights as arrays that fit the cases."""
    y, cast = np.asarray(y), np.asarray(weight, dtype=np.float64)
    if y.shape != (n,) or cast.shape != (n,):
        raise InvalidInputError(
            f"y and weight must have one value for each of {n} cases; "
            f"got shapes {y.shape} and {cast.shape}"
        )
    if n < 2 or n_classes < 2:
        raise InvalidInputError(
            f"at least 2 cases and 2 classes are needed; got {n} and {n_classes}"
        )
    if y.min() < 0 or y.max() >= n_classes:
        raise InvalidInputError(f"y must hold class indices from 0 to {n_classes - 1}")
    if not (np.isfinite(cast) & (cast > 0)).all():
        raise InvalidInputError("weights must be finite and above 0; leave out the other cases")
    return y, cast
