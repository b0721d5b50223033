"""Scores that know nothing of what a model learned; every table of explanations needs them."""

from __future__ import annotations

from copy import copy
from hashlib import blake2b
from typing import Any

import numpy as np

from timesliver.classifier import TimeSliverClassifier
from timesliver.errors import InvalidParameterError, NotFittedError
from timesliver.metrics.order import attribution_part
from timesliver.series import PaddedSeries, as_series
from timesliver.symbols.base import standardize
from timesliver.training import draw_seed
from timesliver.typing import FloatArray

__all__ = ["controls", "untrained"]


def controls(
    X: Any,
    random_state: Any = None,
    model: TimeSliverClassifier | None = None,
    part: str = "positive",
    **how: Any,
) -> dict[str, FloatArray]:
    """Return the scores of controls, to be measured like those of any explanation.

    An explanation says something about a model only as far as it does better than these. The
    scores of a case depend on that case alone, not on the others or on their order. Padding is
    scored 0 by all, a missing value by "zscore" and "difference".

    Parameters
    ----------
    X : array, list of arrays, data frame or tensor
        The series explained.
    random_state : int, numpy generator or None
        For the random scores and the weights of the untrained network.
    model : TimeSliverClassifier or None
        A fitted classifier, for the control "untrained".
    part : {"positive", "negative", "net", "magnitude"}
        Which scores of the untrained network to take.
    **how
        How the untrained network explains itself: ``target``, ``method`` and its options, see
        `TimeSliverClassifier.explain`.

    Returns
    -------
    dict of arrays of shape (n_cases, n_channels, n_timepoints)
        "random" (uniform on [0, 1)), "constant", "untrained" (a network of the same kind with
        fresh weights, if there is a model), "zscore" (distance from the mean of the case and
        channel in standard deviations) and "difference" (distance from the value before).

    Examples
    --------
    >>> import numpy as np
    >>> scores = controls(np.array([[[1.0, 1.0, 4.0]]]), random_state=0)
    >>> {name: s[0, 0].round(2).tolist() for name, s in scores.items()}
    {'random': [...], 'constant': [1.0, 1.0, 1.0],
     'zscore': [0.71, 0.71, 1.41], 'difference': [0.0, 0.0, 3.0]}
    """
    series = as_series(X)
    seed = draw_seed(random_state)
    inside = np.arange(series.n_timepoints) < series.lengths[:, None, None]
    scores = {
        "random": _random(series, seed),
        "constant": np.where(np.broadcast_to(inside, series.values.shape), 1.0, 0.0),
    }
    if model is not None:
        explanation = untrained(model, seed).explain(X, **how)
        if len(explanation) != len(series):
            raise InvalidParameterError(
                "controls have one map per case, of one class each; leave target out, or give a "
                "label"
            )
        scores["untrained"] = attribution_part(explanation, part)
    zscore = np.abs(standardize(series.values, series.observed))
    return scores | {"zscore": zscore, "difference": _difference(series)}


def untrained(model: TimeSliverClassifier, random_state: Any = None) -> TimeSliverClassifier:
    """Return a classifier like this one whose network has fresh weights, before any training.

    Symbols and scales stay those of the model, which is left as it is. The network has not seen
    the training series, so its additive shares are not measured against their average, and
    weights that are found in closed form are still 0.

    Parameters
    ----------
    model : TimeSliverClassifier
        A fitted classifier.
    random_state : int, numpy generator or None
        For the weights.
    """
    if not isinstance(model, TimeSliverClassifier):
        raise InvalidParameterError(
            f"model must be a TimeSliverClassifier, got {type(model).__name__}"
        )
    if not hasattr(model, "network_"):
        raise NotFittedError("the model is not fitted; its symbols are needed, so call fit first")
    fresh = copy(model)
    fresh.network_ = model._fresh_network(draw_seed(random_state))
    fresh.network_.to(next(model.network_.parameters()).device).eval()
    return fresh


def _random(series: PaddedSeries, seed: int) -> FloatArray:
    """Draw the scores of each case from a generator that its own values seed."""
    scores = np.zeros(series.values.shape)
    for case, length in enumerate(series.lengths):
        values = series.values[case, :, :length].astype(np.float64) + 0.0  # no negative zeros
        content = values.tobytes() + series.observed[case, :, :length].tobytes()
        digest = int.from_bytes(blake2b(content, digest_size=16).digest(), "little")
        scores[case, :, :length] = np.random.default_rng([seed, digest]).random(values.shape)
    return scores


def _difference(series: PaddedSeries) -> FloatArray:
    """Return |x_t - x_(t-1)|, 0 where either is missing and at the first point."""
    scores = np.zeros(series.values.shape)
    scores[..., 1:] = np.abs(np.diff(series.values.astype(np.float64), axis=2))
    scores[..., 1:] *= series.observed[..., 1:] & series.observed[..., :-1]
    return scores
