"""Cases made small enough for a page: fewer columns, fewer digits, fewer classes, fewer cases.

Thinning keeps what the eye looks for: each column holds the lowest and highest value and the
strongest evidence of the time points it stands for.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.errors import InvalidInputError
from timesliver.report.cases import Cases
from timesliver.report.sums import sum_as_text
from timesliver.thinning import extremes, strongest
from timesliver.typing import FloatArray, IntArray, JSONDict

__all__ = ["BUDGET", "MOST_CHANNELS", "Detail", "choose_detail", "pack_case"]

#: Characters that all packed cases together may take.
BUDGET = 7_500_000
_MOST_CASES = 2000
#: Channels kept per case.
MOST_CHANNELS = 128
_MOST_PROBABILITIES = 12
_MISSING = -32768
_LEVELS = 65534


@dataclass(frozen=True)
class Detail:
    """How much of each case is kept.

    Attributes
    ----------
    columns : int
        Columns that a longer series is thinned to.
    classes : int
        Explained classes kept per case.
    dtype : str
        Type of the packed evidence: "u2" or "u1".
    """

    columns: int
    classes: int
    dtype: str

    def size(self, shape: tuple[int, ...], n_classes: int) -> int:
        """Return an upper bound of the characters that one packed case of this shape takes."""
        n_channels, columns = min(shape[1], MOST_CHANNELS), min(shape[2], self.columns)
        explained = min(n_classes, self.classes)
        thinned = shape[2] > self.columns
        values = n_channels * columns * 2 * (1 + thinned)
        scores = explained * columns * (2 + thinned) * (n_channels * int(self.dtype[1]) + 2)
        ranges = n_channels * (16 + explained * 8)
        return (values + scores + ranges) * 4 // 3 + 160 * explained + 8 * n_channels + 800


_DETAILS = (
    Detail(2000, 1000, "u2"),
    Detail(1000, 1000, "u2"),
    Detail(500, 1000, "u2"),
    Detail(500, 4, "u2"),
    Detail(400, 3, "u1"),
    Detail(250, 2, "u1"),
)


def choose_detail(shape: tuple[int, ...], n_explained: int, budget: int) -> tuple[Detail, int]:
    """Choose the finest detail at which all cases fit, or the coarsest and how many cases then fit.

    Examples
    --------
    >>> choose_detail((30, 6, 500), 4, BUDGET)
    (Detail(columns=2000, classes=1000, dtype='u2'), 30)
    >>> choose_detail((500, 40, 5000), 10, BUDGET)
    (Detail(columns=250, classes=2, dtype='u1'), 53)
    """
    n_cases = min(shape[0], _MOST_CASES)
    for detail in _DETAILS:
        if n_cases * detail.size(shape, n_explained) <= budget:
            return detail, n_cases
    return detail, max(1, min(n_cases, budget // detail.size(shape, n_explained)))


def pack_case(cases: Cases, case: int, detail: Detail) -> JSONDict:
    """Return one case, thinned and quantised, ready for JSON.

    Arrays are little-endian base64. ``scores`` (for/against, channel, column) are fractions of
    ``scale``, ``total`` (for/against, column) of ``total_scale``. ``sum`` is base, evidence and
    logit as text where these add up. A thinned case also has
    ``net`` and ``total_net``, because the strongest evidence for and against need not lie at the
    same time. ``values`` (channel, lowest/highest, column) lie between the two ``ranges`` of
    their channel.
    """
    first = cases.first
    series = None if first.series is None else np.asarray(first.series[case])
    length = _length(series) if series is not None else first.positive_by_channel.shape[2]
    step = -(-length // detail.columns)
    starts = np.arange(0, length, step)

    ranking = cases.ranking(case)
    explained = sorted(cases.explanations, key=lambda e: -float(ranking[e.target[case]]))
    explained = explained[: detail.classes]
    scores = np.stack(  # (classes, for/against, channels, time)
        [
            [e.positive_by_channel[case, :, :length], e.negative_by_channel[case, :, :length]]
            for e in explained
        ]
    )
    if not np.isfinite(scores).all() or scores.min() < 0:
        raise InvalidInputError(
            f"the evidence of case {case} is negative or not finite somewhere; "
            f"evidence for and against must both be numbers that are 0 or more"
        )
    sums = scores.sum(axis=3, dtype=np.float64)  # (classes, for/against, channels)
    totals = sums.sum(axis=2)  # (classes, for/against)
    channels = np.argsort(-sums.sum(axis=(0, 1)), kind="stable")[:MOST_CHANNELS]
    channels.sort()
    total, scores = scores.sum(axis=2, dtype=np.float64), scores[:, :, channels]
    total_net, net = (strongest(part[:, 0] - part[:, 1], starts) for part in (total, scores))
    total, scores = (np.maximum.reduceat(part, starts, axis=-1) for part in (total, scores))
    scale, total_scale = float(scores.max()), float(total.max())
    packed: JSONDict = {
        "true": int(cases.true[case]),
        "predicted": int(cases.predicted[case]),
        "length": length,
        "step": step,
        "channels": channels.tolist(),
        "scale": scale,
        "total_scale": total_scale,
        "explained": [
            {
                "class": int(e.target[case]),
                "logit": _number(e.logit[case]),
                "sum": sum_as_text(
                    float(e.base[case]), totals[k, 0] - totals[k, 1], float(e.logit[case])
                ),
                "sums": _base64(sums[k][:, channels], "f4"),
                "scores": _quantised(scores[k], scale, detail.dtype),
                "total": _quantised(total[k], total_scale, "u2"),
            }
            for k, e in enumerate(explained)
        ],
    }
    if step > 1:
        for k, entry in enumerate(packed["explained"]):
            entry["net"] = _quantised(net[k], scale, detail.dtype.replace("u", "i"))
            entry["total_net"] = _quantised(total_net[k], total_scale, "i2")
    if first.probabilities is not None:
        probabilities = np.nan_to_num(np.asarray(first.probabilities[case], dtype=np.float64))
        likely = np.argsort(-ranking, kind="stable")[:_MOST_PROBABILITIES]
        likely = likely[np.argsort(-probabilities[likely], kind="stable")]
        packed["probabilities"] = [[int(k), round(float(probabilities[k]), 5)] for k in likely]
    if series is not None:
        packed |= _packed_values(series[channels, :length], starts, case)
    return packed


def _length(series: FloatArray) -> int:
    """Return the number of time points up to the last one with an observed value."""
    seen = np.flatnonzero(~np.isnan(series).all(axis=0))
    return int(seen[-1]) + 1 if len(seen) else 1


def _packed_values(series: FloatArray, starts: IntArray, case: int) -> JSONDict:
    """Return the values as int16 fractions of each channel's range; gaps stay gaps."""
    if np.isinf(series).any():
        raise InvalidInputError(
            f"the series of case {case} has an infinite value; replace it by a number, "
            f"or by NaN if it is missing"
        )
    columns = np.stack(extremes(series, starts))
    columns = columns.swapaxes(0, 1).astype(np.float64)  # (channels, lowest/highest, columns)
    if len(starts) == series.shape[1]:
        columns = columns[:, :1]
    missing = np.isnan(columns)
    low = np.where(missing, np.inf, columns).min(axis=(1, 2), keepdims=True)
    high = np.where(missing, -np.inf, columns).max(axis=(1, 2), keepdims=True)
    low, high = np.where(low > high, 0, low), np.where(low > high, 0, high)
    span = np.where(high > low, high - low, 1)
    codes = np.round((np.where(missing, low, columns) - low) / span * _LEVELS) - _LEVELS // 2
    return {
        "ranges": _base64(np.concatenate([low, high], axis=1), "f8"),
        "values": _base64(np.where(missing, _MISSING, codes), "i2"),
    }


def _quantised(scores: FloatArray, scale: float, dtype: str) -> str:
    """Return the scores as whole numbers; the largest one of the type stands for the scale."""
    return _base64(np.round(scores / (scale or 1.0) * np.iinfo(dtype).max), dtype)


def _base64(array: NDArray[Any], dtype: str) -> str:
    return base64.b64encode(array.astype(f"<{dtype}").tobytes()).decode("ascii")


def _number(value: Any) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None
