"""How well the scores of an explanation find the moments that are known to matter.

Every measure ranks the points of one case by their raw scores; the result is the mean over cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from timesliver.attribution import Attribution
from timesliver.errors import InvalidInputError, check_choice, check_count
from timesliver.metrics.order import PointOrder, read_points
from timesliver.metrics.summary import spread_of
from timesliver.typing import FloatArray

__all__ = ["Localisation", "aup", "auprc", "aur", "auroc", "pointing_game", "top_k_precision"]

# Points that are ranked at a time, which bounds the memory needed.
_CHUNK = 2**21


@dataclass(frozen=True, eq=False)
class Localisation:
    """A localisation measure over cases; ``float(result)`` is its mean.

    Attributes
    ----------
    mean, spread : float
        Mean and standard deviation (n - 1) over the cases measured; a single one has no spread.
    per_case : array of shape (n_cases,)
        NaN for cases that were skipped.
    n_skipped : int
        Cases that have no truth to find.
    n_constant : int
        Cases measured whose scores are all equal, so that nothing was ranked.
    tie_fraction : float
        Share of the points, of the cases measured, that have the score of another point.
    """

    mean: float
    spread: float
    per_case: FloatArray = field(repr=False)
    n_skipped: int
    n_constant: int
    tie_fraction: float

    def __float__(self) -> float:
        return self.mean


def auprc(
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    level: str = "time",
    area: str = "ap",
    part: str = "positive",
    lengths: ArrayLike | None = None,
) -> Localisation:
    """Area under the curve of precision over recall.

    Scores are compared as they are: a softmax or a rounding before would turn small differences
    into ties.

    Parameters
    ----------
    scores : array or Attribution
        ``(n_cases, n_timepoints)`` or ``(n_cases, n_channels, n_timepoints)``, high where the
        explanation points to.
    salient : bool array
        The truth, in either of these shapes.
    level : {"time", "cell"}
        "time" asks when: scores are added up over channels, and a time point is salient if it is
        in any channel. "cell" asks when and in which channel. Do not compare the two.
    area : {"ap", "trapezoid"}
        "ap" is average precision, the step sum. "trapezoid" joins the points of the curve by
        straight lines, which flatters ties: a constant map scores (1 + rate) / 2, not the rate.
    part : {"positive", "negative", "net", "magnitude"}
        Which scores of an `Attribution` to take.
    lengths : array of shape (n_cases,) or None
        Number of time points of each case; later ones are padding and left out. None takes those
        of the `Attribution`, or else the whole array.

    Returns
    -------
    Localisation
        The mean over the cases that have salient points, and more.

    Examples
    --------
    >>> import numpy as np
    >>> salient = np.array([[True, False, True, False], [False] * 4])
    >>> auprc([[0.9, 0.5, 0.4, 0.1], [1, 2, 3, 4]], salient)
    Localisation(mean=0.833..., spread=nan, n_skipped=1, n_constant=0, tie_fraction=0.0)
    """
    check_choice("area", area, ("ap", "trapezoid"))

    def value(order: PointOrder) -> FloatArray:
        after = order.hits_at_stop / order.stop
        if area == "ap":
            return order.mean_over_salient(after)
        before = order.hits_at_start / np.maximum(order.start, 1)
        before[order.start == 0] = 1  # the curve begins at recall 0, precision 1
        return order.mean_over_salient((before + after) / 2)

    return _measure(value, scores, salient, level, part, lengths)


def auroc(
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    level: str = "time",
    part: str = "positive",
    lengths: ArrayLike | None = None,
) -> Localisation:
    """Probability that a salient point scores higher than another; ties count one half.

    Parameters and result are those of `auprc`. Cases in which all points are salient are skipped
    as well.

    Examples
    --------
    >>> import numpy as np
    >>> float(auroc([[0.9, 0.5, 0.4, 0.1]], np.array([[True, False, True, False]])))
    0.75
    """

    def value(order: PointOrder) -> FloatArray:
        misses = order.start - order.hits_at_start + order.stop - order.hits_at_stop
        n_other = (order.n_points - order.n_salient)[:, None]
        return 1 - order.mean_over_salient(misses / 2 / n_other)

    return _measure(value, scores, salient, level, part, lengths, needs_other=True)


def aup(
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    level: str = "time",
    part: str = "positive",
    lengths: ArrayLike | None = None,
) -> Localisation:
    """Area under precision over the threshold, the lowest score of a case being 0, the highest 1.

    Unlike the other measures it depends on how scores are spread, not on their order only. A
    constant map has no thresholds to go through and gets 0. Parameters and result are those of
    `auprc`.

    Examples
    --------
    >>> import numpy as np
    >>> float(aup([[1.0, 0.5, 0.0]], np.array([[True, False, False]])))
    0.583...
    """

    def value(order: PointOrder) -> FloatArray:
        return order.area_over_thresholds(order.hits_at_stop / order.stop)

    return _measure(value, scores, salient, level, part, lengths)


def aur(
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    level: str = "time",
    part: str = "positive",
    lengths: ArrayLike | None = None,
) -> Localisation:
    """Area under recall over the threshold, the lowest score of a case being 0, the highest 1.

    See `aup` and `auprc`.

    Examples
    --------
    >>> import numpy as np
    >>> float(aur([[1.0, 0.5, 0.0]], np.array([[True, False, False]])))
    1.0
    """

    def value(order: PointOrder) -> FloatArray:
        return order.area_over_thresholds(order.hits_at_stop / order.n_salient[:, None])

    return _measure(value, scores, salient, level, part, lengths)


def pointing_game(
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    level: str = "time",
    part: str = "positive",
    lengths: ArrayLike | None = None,
) -> Localisation:
    """Share of cases whose highest score is at a salient point.

    If several points share the highest score, their salient share counts: what choosing one of
    them at random would give on average. Parameters and result are those of `auprc`.

    Examples
    --------
    >>> import numpy as np
    >>> salient = np.array([[True, False, False], [True, False, False]])
    >>> pointing_game([[3, 2, 1], [1, 1, 0]], salient).per_case
    array([1. , 0.5])
    """
    return top_k_precision(scores, salient, 1, level, part, lengths)


def top_k_precision(
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    k: int,
    level: str = "time",
    part: str = "positive",
    lengths: ArrayLike | None = None,
) -> Localisation:
    """Share of salient points among the k with the highest scores.

    Where only some of the points with one score fit into k, their salient share counts. The other
    parameters and the result are those of `auprc`.

    Parameters
    ----------
    k : int
        Number of points, at most that of the shortest case.

    Examples
    --------
    >>> import numpy as np
    >>> float(top_k_precision([[0.9, 0.5, 0.4]], np.array([[True, False, True]]), k=2))
    0.5
    """
    check_count("k", k, 1)

    def value(order: PointOrder) -> FloatArray:
        check_count("k", k, 1, int(order.n_points.min()))
        start, stop = order.start[:, k - 1], order.stop[:, k - 1]
        before, after = order.hits_at_start[:, k - 1], order.hits_at_stop[:, k - 1]
        share: FloatArray = (before + (k - start) * (after - before) / (stop - start)) / k
        return share

    return _measure(value, scores, salient, level, part, lengths)


def _measure(
    value: Callable[[PointOrder], FloatArray],
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    level: str,
    part: str,
    lengths: ArrayLike | None,
    needs_other: bool = False,
) -> Localisation:
    """Rank the points of all cases that have a truth, and take the value of each case."""
    points, truth, inside = read_points(scores, salient, level, part, lengths)
    n_salient = (truth & inside).sum(axis=1)
    usable = n_salient > 0
    if needs_other:
        usable &= n_salient < inside.sum(axis=1)
    measured = np.flatnonzero(usable)
    if not len(measured):
        kinds = "both salient and other points" if needs_other else "a salient point"
        raise InvalidInputError(
            f"none of the {len(points)} cases has {kinds}, so there is nothing to measure; give "
            f"at least one that has"
        )
    per_case = np.full(len(points), np.nan)
    ties, n_constant = np.empty(len(measured)), 0
    step = max(1, _CHUNK // points.shape[1])
    for first in range(0, len(measured), step):
        cases = measured[first : first + step]
        order = PointOrder.of(points[cases], truth[cases], inside[cases])
        per_case[cases] = value(order)
        ties[first : first + step] = order.tie_fraction()
        n_constant += int(order.constant().sum())
    values = per_case[measured]
    return Localisation(
        mean=float(values.mean()),
        spread=spread_of(values),
        per_case=per_case,
        n_skipped=len(points) - len(measured),
        n_constant=n_constant,
        tie_fraction=float(ties.mean()),
    )
