"""Choosing the time points with the highest scores, and masking the others.

One ranking serves all metrics that keep or remove points: ties are broken by chance, with a seed,
so that neither early nor late points are favoured.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from timesliver.attribution import Attribution
from timesliver.errors import InvalidInputError, InvalidParameterError, check_choice, check_number
from timesliver.series import PaddedSeries, as_series
from timesliver.training import draw_seed
from timesliver.typing import BoolArray, FloatArray, IntArray

__all__ = [
    "PARTS",
    "InteractionPart",
    "check_percents",
    "count_points",
    "mask_points",
    "rank_points",
    "ranked_among",
    "read_lengths",
    "read_scores",
    "to_plain",
    "top_points",
]

InteractionPart = Literal["positive", "negative", "net", "magnitude"]
PARTS: tuple[str, ...] = get_args(InteractionPart)


def top_points(
    scores: FloatArray, percent: float, lengths: IntArray | None = None, random_state: Any = 0
) -> BoolArray:
    """Mark the top ``percent`` of the time points of each case by score.

    A case of ``L`` points gets exactly ``ceil(percent * L / 100)`` of them: none for 0, all for
    100, at least one for anything between. Padding is never marked. With one ``random_state`` the
    points of a smaller percentage are always among those of a larger one.

    Parameters
    ----------
    scores : array of shape (n_cases, n_timepoints)
        Finite numbers; higher is more important.
    percent : float
        From 0 to 100.
    lengths : int array of shape (n_cases,) or None
        Number of time points of each case without its padding; None means no padding.
    random_state : int, numpy generator or None
        Equal scores are ranked in an order drawn for each case by itself. A case keeps its order
        when cases after it are added or left out.

    Returns
    -------
    bool array of shape (n_cases, n_timepoints)

    Examples
    --------
    >>> import numpy as np
    >>> top_points(np.array([[0.1, 0.9, 0.5, 0.2]]), 50)
    array([[False,  True,  True, False]])
    """
    (percent,) = check_percents([percent], least=1)
    ranks = rank_points(scores, lengths, random_state)
    return ranked_among(ranks, read_lengths(lengths, *ranks.shape), percent)


def rank_points(
    scores: FloatArray, lengths: IntArray | None = None, random_state: Any = 0
) -> IntArray:
    """Return the rank of each point in its case, 0 for the highest score; padding comes last."""
    array = read_scores(scores)
    tie_break = np.random.default_rng(draw_seed(random_state)).random(array.shape)
    inside = np.arange(array.shape[1]) < read_lengths(lengths, *array.shape)[:, None]
    order_by = np.where(inside, -array, np.inf)
    order = np.lexsort((tie_break, order_by), axis=1)
    ranks: IntArray = np.empty_like(order)
    np.put_along_axis(ranks, order, np.arange(array.shape[1])[None], axis=1)
    return ranks


def ranked_among(ranks: IntArray, lengths: IntArray, percent: float) -> BoolArray:
    """Whether each point is among the top ``percent`` of its case, by the ranks of the points."""
    among: BoolArray = ranks < count_points(lengths, percent)[:, None]
    return among


def read_lengths(lengths: ArrayLike | None, n_cases: int, n_timepoints: int) -> IntArray:
    """Return the number of time points of each case, checked; None means no padding."""
    if lengths is None:
        return np.full(n_cases, n_timepoints)
    array = np.asarray(lengths)
    if (
        array.shape != (n_cases,)
        or array.dtype.kind not in "iu"
        or not ((array >= 1) & (array <= n_timepoints)).all()
    ):
        raise InvalidInputError(
            f"lengths must be one whole number from 1 to {n_timepoints} for each of the "
            f"{n_cases} cases, got {lengths!r}"
        )
    return array


def count_points(lengths: IntArray, percent: float) -> IntArray:
    """Return ``ceil(percent * length / 100)``, free of rounding errors."""
    counts: IntArray = np.ceil(percent * lengths / 100 - 1e-9).astype(np.int64)
    return counts


def mask_points(X: Any, keep: BoolArray, masking: str = "no_symbol") -> PaddedSeries:
    """Mask the points that are not kept, in all channels.

    Parameters
    ----------
    X : series of any accepted form
        See `timesliver.series.as_series`.
    keep : bool array of shape (n_cases, n_timepoints)
        True for the points that stay.
    masking : {"no_symbol", "zero"}
        "no_symbol": masked points have no symbol, and the value 0 after the model has standardised
        the series. "zero": they have the value 0 in the units of X, and the symbol of that value;
        centre the series first if 0 is far from their mean. Either way nothing of the masked
        values is left, and symbols are made from what is.
    """
    check_choice("masking", masking, ("no_symbol", "zero"))
    series = as_series(X)
    masked = series.mask(keep)
    if masking == "no_symbol":
        return masked
    inside = np.arange(series.n_timepoints) < series.lengths[:, None]
    zeroed = (~np.asarray(keep) & inside)[:, None]
    return PaddedSeries(masked.values, masked.observed | zeroed, series.lengths)


def to_plain(series: PaddedSeries, like: Any) -> FloatArray | list[FloatArray]:
    """Return series as arrays for models that know nothing of ours, in the form of ``like``.

    A list gives a list of cases without padding, two axes give two, all else gives three. NaN is
    what was not observed, so mask with ``masking="zero"`` for such models.
    """
    values = series.with_gaps
    if isinstance(like, list | tuple):
        flat = np.ndim(like[0]) == 1
        return [
            case[0, :length] if flat else case[:, :length]
            for case, length in zip(values, series.lengths, strict=True)
        ]
    return values[:, 0] if getattr(like, "ndim", None) == 2 else values


def check_percents(percents: Iterable[float], least: int) -> tuple[float, ...]:
    """Return percentages, which must be from 0 to 100, increasing, and at least so many."""
    percents = tuple(percents)
    for percent in percents:
        check_number("a percentage of time points", percent, least=0, most=100)
    if len(percents) < least:
        raise InvalidParameterError(
            f"a curve needs at least {least} percentages of time points, got {list(percents)}"
        )
    if any(after <= before for before, after in pairwise(percents)):
        raise InvalidParameterError(
            f"the percentages of time points must increase, got {list(percents)}"
        )
    return tuple(float(percent) for percent in percents)


def read_scores(
    scores: Any, series: PaddedSeries | None = None, part: InteractionPart = "positive"
) -> NDArray[np.float64]:
    """Return scores as a new array (n_cases, n_timepoints), checked.

    An `Attribution` gives the part of it that is asked for, and must explain the predicted
    classes as far as it knows them: the metrics here would reward what labels give away.
    """
    if isinstance(scores, Attribution):
        chances = scores.probabilities
        if chances is not None:
            explained = chances[np.arange(len(scores)), scores.target]
            wrong = np.flatnonzero(explained < chances.max(axis=1) - 1e-9)
            if len(wrong):
                raise InvalidInputError(
                    f"the scores must explain the predicted classes, but those of "
                    f"{len(wrong)} cases (the first is {wrong[0]}) explain another one; "
                    f"call explain without a target"
                )
        scores = getattr(scores, part)
    array = np.array(scores)
    if array.dtype.kind not in "biuf" or array.ndim != 2 or 0 in array.shape:
        raise InvalidInputError(
            f"scores must be numbers of shape (n_cases, n_timepoints), got {array.dtype} of shape "
            f"{array.shape}; add scores by channel up over the channels"
        )
    if series is not None and array.shape != (len(series), series.n_timepoints):
        raise InvalidInputError(
            f"scores of shape {array.shape} do not fit {len(series)} series of "
            f"{series.n_timepoints} time points; give one score per case and time point"
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        case, time = np.argwhere(~np.isfinite(array))[0]
        raise InvalidInputError(
            f"the score of case {case}, time point {time} is {array[case, time]}; scores must be "
            f"finite numbers: leave such cases out, or mend the explainer"
        )
    return array
