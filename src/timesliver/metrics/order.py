"""The points of each case in the order of their scores, next to the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from timesliver.attribution import Attribution
from timesliver.errors import InvalidInputError, check_choice
from timesliver.metrics.masking import PARTS, read_lengths
from timesliver.typing import BoolArray, FloatArray, IntArray

__all__ = ["PointOrder", "attribution_part", "read_points"]


@dataclass(frozen=True, eq=False)
class PointOrder:
    """The points of some cases, highest score first, padding last.

    Attributes
    ----------
    scores : array of shape (n_cases, n_points)
        In falling order; padding is -inf.
    salient : bool array of the same shape
        The truth in that order.
    start, stop : int arrays of the same shape
        The places ``start:stop`` of the points with the same score as this one.
    hits : int array of shape (n_cases, n_points + 1)
        Salient points among the first 0, 1, 2, ...
    n_points : int array of shape (n_cases,)
        Points without padding.
    """

    scores: FloatArray
    salient: BoolArray
    start: IntArray
    stop: IntArray
    hits: IntArray
    n_points: IntArray

    @classmethod
    def of(cls, scores: FloatArray, salient: BoolArray, inside: BoolArray) -> PointOrder:
        """Sort the points of each case; those not inside it are padding."""
        scores = np.where(inside, scores, -np.inf)
        order = np.argsort(-scores, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        salient = np.take_along_axis(salient & inside, order, axis=1)
        n_cases, n_points = scores.shape
        differs = scores[:, 1:] != scores[:, :-1]
        edge = np.ones((n_cases, 1), dtype=bool)
        places = np.arange(n_points)
        start = np.maximum.accumulate(np.where(np.hstack([edge, differs]), places, 0), axis=1)
        last = np.where(np.hstack([differs, edge]), places, n_points)
        stop = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1] + 1
        hits = np.zeros((n_cases, n_points + 1), dtype=np.int64)
        np.cumsum(salient, axis=1, out=hits[:, 1:])
        return cls(scores, salient, start, stop, hits, inside.sum(axis=1))

    @property
    def n_salient(self) -> IntArray:
        """Salient points of each case."""
        return self.hits[:, -1]

    @property
    def hits_at_stop(self) -> IntArray:
        """Salient points with at least the score of each point."""
        return np.take_along_axis(self.hits, self.stop, axis=1)

    @property
    def hits_at_start(self) -> IntArray:
        """Salient points with a higher score than each point."""
        return np.take_along_axis(self.hits, self.start, axis=1)

    def mean_over_salient(self, values: FloatArray) -> FloatArray:
        """Average values of the points, in this order, over the salient ones."""
        mean: FloatArray = (values * self.salient).sum(axis=1) / self.n_salient
        return mean

    def area_over_thresholds(self, values: FloatArray) -> FloatArray:
        """Integrate over thresholds that run from 0 at the lowest to 1 at the highest score."""
        last = self.n_points[:, None] - 1
        lowest = np.take_along_axis(self.scores, last, axis=1)
        scores = np.maximum(self.scores, lowest)
        largest = np.maximum(np.abs(scores[:, :1]), np.abs(lowest))
        scores = scores / np.where(largest > 0, largest, 1)  # no overflow in the differences
        reach = scores[:, :1] - np.take_along_axis(scores, last, axis=1)
        steps = (scores[:, :-1] - scores[:, 1:]) / np.where(reach > 0, reach, 1)
        area: FloatArray = (steps * (values[:, :-1] + values[:, 1:]) / 2).sum(axis=1)
        return area

    def constant(self) -> BoolArray:
        """Whether all points of a case have the same score."""
        constant: BoolArray = self.stop[:, 0] == self.n_points
        return constant

    def tie_fraction(self) -> FloatArray:
        """Return the share of the points of each case that have the score of another point."""
        tied = (self.stop - self.start > 1) & np.isfinite(self.scores)
        fraction: FloatArray = tied.sum(axis=1) / self.n_points
        return fraction


def attribution_part(attribution: Attribution, part: str) -> FloatArray:
    """Return the scores (n_cases, n_channels, n_timepoints) of one kind."""
    check_choice("part", part, PARTS)
    positive = attribution.positive_by_channel.astype(np.float64)
    negative = attribution.negative_by_channel.astype(np.float64)
    if part == "net":
        return positive - negative
    if part == "magnitude":
        return positive + negative
    return positive if part == "positive" else negative


def read_points(
    scores: ArrayLike | Attribution,
    salient: ArrayLike,
    level: str,
    part: str,
    lengths: ArrayLike | None,
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Return scores, truth and what is no padding, each of shape (n_cases, n_points)."""
    check_choice("level", level, ("time", "cell"))
    if isinstance(scores, Attribution):
        values = attribution_part(scores, part)
        lengths = scores.lengths if lengths is None else lengths
    else:
        values = _three_axes(scores, "scores")
        if values.dtype.kind not in "biuf":
            raise InvalidInputError(f"scores must be real numbers, got the type {values.dtype}")
        values = values.astype(np.float64)
    truth = _three_axes(salient, "salient")
    if truth.dtype != np.bool_:
        raise InvalidInputError(
            f"salient must be boolean, True for the points that matter, got the type "
            f"{truth.dtype}; compare with a number first, as in salient > 0"
        )
    if level == "cell":
        agree = values.shape == truth.shape
    else:
        agree = values.shape[::2] == truth.shape[::2]
    if not agree:
        raise InvalidInputError(
            f"scores for (cases, channels, time points) {values.shape} do not fit salient for "
            f"{truth.shape} at level={level!r}; give both for the same cases, time points"
            + (" and channels" if level == "cell" else "")
        )
    inside = np.arange(values.shape[2]) < read_lengths(lengths, *values.shape[::2])[:, None, None]
    inside = np.broadcast_to(inside, values.shape)
    bad = inside & ~np.isfinite(values)
    if bad.any():
        case, channel, time = np.argwhere(bad)[0]
        raise InvalidInputError(
            f"scores must be finite, but case {case}, channel {channel}, time point {time} has "
            f"{values[case, channel, time]}; mend the explanation, or give lengths if this is "
            f"padding"
        )
    if level == "time":
        values = np.where(inside, values, 0).sum(axis=1, keepdims=True)
        truth, inside = np.any(truth, axis=1)[:, None], inside[:, :1]
    n_cases = len(values)
    return values.reshape(n_cases, -1), truth.reshape(n_cases, -1), inside.reshape(n_cases, -1)


def _three_axes(given: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array with cases, channels and time points; two axes mean one channel."""
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InvalidInputError(
            f"{name} cannot be read as an array ({error}); pad cases of unequal length and give "
            f"lengths"
        ) from error
    if array.ndim not in (2, 3) or 0 in array.shape:
        raise InvalidInputError(
            f"{name} must have shape (n_cases, n_timepoints) or (n_cases, n_channels, "
            f"n_timepoints), none of them 0; got {array.shape}"
        )
    return array[:, None] if array.ndim == 2 else array
