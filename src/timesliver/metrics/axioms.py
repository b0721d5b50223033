"""How far an explainer is from what any explanation should satisfy, as numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from timesliver.attribution import Attribution
from timesliver.errors import InvalidInputError, InvalidParameterError, check_count, check_number
from timesliver.series import as_series
from timesliver.training import draw_seed
from timesliver.typing import FloatArray, IntArray

__all__ = ["Axioms", "axioms"]

# Effects and scores below this share of the largest of the case count as none (rounding).
_NOTHING = 1e-5


@dataclass(frozen=True)
class Axioms:
    """How far an explainer is from each axiom: 0 is as it should be.

    Attributes
    ----------
    completeness : float
        Net evidence and bias add up to the logit. Mean distance from it, over the mean magnitude
        of the logits.
    sensitivity : float
        What changes the logit has a score. Share of the changes that happen where there is none;
        0 to 1.
    dummy : float
        What cannot change the logit has no score. Share of the evidence that is there; 0 to 1.
    symmetry : float
        Equal moments with equal surroundings get equal scores. Difference of their scores, over
        the sum of both; 0 to 1.
    scale : float
        Scores do not change if the series are multiplied by a number. Difference of the scores,
        over the sum of both; 0 to 1. NaN if the class explained changed in every case.
    """

    completeness: float
    sensitivity: float
    dummy: float
    symmetry: float
    scale: float


def axioms(
    explainer: Any,
    model: Any,
    X: Any,
    factor: float = 2.0,
    n_probes: int = 32,
    random_state: Any = 0,
) -> Axioms:
    """Measure how far an explainer is from completeness, sensitivity, symmetry and more.

    Some of this says as much about the model as about its explainer: a model that knows the time
    or the scale makes equal moments different.

    Completeness compares with the logit that `model` returns. An explainer of centred logits
    needs a model that returns those.

    Sensitivity and dummy are seen by probes, windows of one channel and a twentieth of the time.
    In each, the values are replaced by noise with the mean and the deviation of the case and
    channel, twice; the larger change of the logit is the effect of the window. Missing values
    stay missing, so a window without any value has no effect.

    Symmetry is seen in series made of the first quarter of each case, four times in a row: the
    second and the third time have the same surroundings, up to a quarter to either side. Cases
    of fewer than four points are left out.

    Parameters
    ----------
    explainer : callable or object with ``explain``
        Takes series (n_cases, n_channels, n_timepoints), with NaN for missing values and padding
        if there are any, and returns an `Attribution`.
    model : callable or object with ``logits``
        Takes the same, and returns the logits (n_cases, n_classes).
    X : array, list of arrays, data frame or tensor
        The series to explain.
    factor : float
        What series are multiplied by to see `scale`; above 0.
    n_probes : int
        Number of windows probed, chosen at random. Each costs two predictions of all cases.
    random_state : int, numpy generator or None
        For the choice of windows and the noise in them.

    Returns
    -------
    Axioms

    Examples
    --------
    A linear model, and the exact share of each value in its logits:

    >>> import numpy as np
    >>> weight = np.array([-1.0, 1.0])
    >>> def logits(X):
    ...     return X.sum(axis=(1, 2))[:, None] * weight
    >>> def shares(X):
    ...     target = logits(X).argmax(axis=1)
    ...     share = X * weight[target][:, None, None]
    ...     return Attribution(
    ...         share.clip(0),
    ...         (-share).clip(0),
    ...         logits(X).max(axis=1),
    ...         np.zeros(len(X)),
    ...         target,
    ...         np.arange(2),
    ...         "shares",
    ...     )
    >>> gaps = axioms(shares, logits, np.random.default_rng(0).normal(size=(8, 1, 40)))
    >>> gaps.completeness < 1e-12, gaps.sensitivity, gaps.dummy, gaps.symmetry
    (True, 0.0, 0.0, 0.0)
    >>> round(gaps.scale, 3)  # doubled values have double shares: |1 - 2| / (1 + 2)
    0.333
    """
    check_number("factor", factor, above=0)
    check_count("n_probes", n_probes, 1)
    explain, predict = _explain_with(explainer), _predict_with(model)
    series = as_series(X)
    values = series.with_gaps
    explained = explain(values)
    logits = predict(values)
    if logits.shape[1] != len(explained.classes):
        raise InvalidInputError(
            f"the model has {logits.shape[1]} logits, but the explainer knows "
            f"{len(explained.classes)} classes; give the model that is explained"
        )
    rng = np.random.default_rng(draw_seed(random_state))
    sensitivity, dummy = _probe(predict, values, logits, explained, n_probes, rng)
    return Axioms(
        completeness=_completeness(explained, logits),
        sensitivity=sensitivity,
        dummy=dummy,
        symmetry=_symmetry(explain, values, series.lengths),
        scale=_scale(explain, values, explained, float(factor)),
    )


def _explain_with(explainer: Any) -> Callable[[FloatArray], Attribution]:
    run = getattr(explainer, "explain", explainer)
    if not callable(run):
        raise InvalidParameterError(
            f"explainer must be a function of series or have explain(X), got {explainer!r}"
        )

    def explain(values: FloatArray) -> Attribution:
        explained = run(values)
        if not isinstance(explained, Attribution):
            raise InvalidInputError(
                f"the explainer must return an Attribution, got {type(explained).__name__}"
            )
        if explained.positive_by_channel.shape != values.shape:
            raise InvalidInputError(
                f"the explainer returned scores of shape {explained.positive_by_channel.shape} for "
                f"series of shape {values.shape}"
            )
        if not np.isfinite(_scores(explained)).all():
            raise InvalidInputError("the explainer returned scores that are not finite")
        return explained

    return explain


def _predict_with(model: Any) -> Callable[[FloatArray], FloatArray]:
    run = getattr(model, "logits", model)
    if not callable(run):
        raise InvalidParameterError(
            f"model must be a function of series or have logits(X), got {model!r}"
        )

    def predict(values: FloatArray) -> FloatArray:
        logits = np.asarray(run(values), dtype=np.float64)
        if logits.ndim != 2 or len(logits) != len(values) or not np.isfinite(logits).all():
            raise InvalidInputError(
                f"the model must return finite logits of shape ({len(values)}, n_classes), got "
                f"shape {logits.shape}"
            )
        return logits

    return predict


def _scores(explained: Attribution) -> FloatArray:
    """Return evidence for and against: (2, n_cases, n_channels, n_timepoints)."""
    parts = explained.positive_by_channel, explained.negative_by_channel
    return np.stack(parts).astype(np.float64)


def _share(part: Any, whole: Any) -> float:
    """Return part / whole; nothing of nothing is none."""
    return float(part.sum() / whole.sum()) if whole.sum() > 0 else 0.0


def _completeness(explained: Attribution, logits: FloatArray) -> float:
    positive, negative = _scores(explained).sum(axis=(2, 3))
    logit = logits[np.arange(len(logits)), explained.target]
    error = np.abs(positive - negative + explained.base - logit)
    # all logits 0: there is no scale, so the distance stays as it is
    return _share(error, np.abs(logit)) if np.any(logit) else float(error.mean())


def _probe(
    predict: Callable[[FloatArray], FloatArray],
    values: FloatArray,
    logits: FloatArray,
    explained: Attribution,
    n_probes: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Return the share of effects without a score, and the share of scores without effect."""
    n_cases, n_channels, n_timepoints = values.shape
    edges = np.unique(np.linspace(0, n_timepoints, 21).astype(int))
    windows = [
        (channel, slice(start, stop))
        for channel in range(n_channels)
        for start, stop in itertools.pairwise(edges)
    ]
    if len(windows) > n_probes:
        chosen = np.sort(rng.choice(len(windows), n_probes, replace=False))
        windows = [windows[i] for i in chosen]
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=2), 1)
    mean = np.where(seen, values, 0).sum(axis=2) / count
    spread = np.sqrt(np.where(seen, (values - mean[..., None]) ** 2, 0).sum(axis=2) / count)
    spread[spread == 0] = 1
    cases = np.arange(n_cases)
    effects = np.zeros((n_cases, len(windows)))
    scores = np.zeros((n_cases, len(windows)))
    magnitude = np.abs(_scores(explained)).sum(axis=0)
    for probe, (channel, when) in enumerate(windows):
        scores[:, probe] = magnitude[:, channel, when].sum(axis=1)
        for _ in range(2):
            changed = values.copy()
            noise = rng.normal(size=(n_cases, when.stop - when.start))
            noise = mean[:, channel, None] + spread[:, channel, None] * noise
            changed[:, channel, when] = np.where(seen[:, channel, when], noise, np.nan)
            change = np.abs(predict(changed) - logits)[cases, explained.target]
            effects[:, probe] = np.maximum(effects[:, probe], change)
    has_score = scores > _NOTHING * scores.max(axis=1, keepdims=True)
    largest = np.maximum(effects.max(axis=1), np.abs(logits).max(axis=1))
    has_effect = effects > _NOTHING * largest[:, None]
    effects, scores = effects * has_effect, scores * has_score
    return _share(effects * ~has_score, effects), _share(scores * ~has_effect, scores)


def _symmetry(
    explain: Callable[[FloatArray], Attribution], values: FloatArray, lengths: IntArray
) -> float:
    quarter = lengths // 4
    usable = quarter > 0
    if not usable.any():
        raise InvalidInputError(
            f"symmetry needs a case of at least 4 time points, got at most {lengths.max()}"
        )
    values, lengths, quarter = values[usable], lengths[usable], quarter[usable]
    repeated = np.full_like(values, np.nan)
    for case, (length, period) in enumerate(zip(lengths, quarter, strict=True)):
        repeated[case, :, :length] = values[case][:, np.arange(length) % period]
    scores = _scores(explain(repeated))
    difference, total = np.zeros(len(values)), np.zeros(len(values))
    for case, period in enumerate(quarter):
        second = scores[:, case, :, period : 2 * period]
        third = scores[:, case, :, 2 * period : 3 * period]
        difference[case] = np.abs(second - third).sum()
        total[case] = np.abs(second).sum() + np.abs(third).sum()
    return _share(difference, total)


def _scale(
    explain: Callable[[FloatArray], Attribution],
    values: FloatArray,
    explained: Attribution,
    factor: float,
) -> float:
    other = explain(values * values.dtype.type(factor))
    same = other.target == explained.target
    if not same.any():
        return float("nan")
    before, after = _scores(explained)[:, same], _scores(other)[:, same]
    return _share(np.abs(before - after), np.abs(before) + np.abs(after))
