"""Long series made short enough to be drawn: each column stands for a few time points.

What the eye looks for stays: the strongest score, the lowest and the highest value.
"""

from __future__ import annotations

import numpy as np

from timesliver.typing import FloatArray, IntArray

__all__ = ["extremes", "strongest"]


def strongest(scores: FloatArray, starts: IntArray) -> FloatArray:
    """Keep the score of each column that is farthest from 0, on either side of it.

    Parameters
    ----------
    scores : array of shape (..., n_timepoints)
        Any scores.
    starts : int array
        The time points at which the columns begin.

    Examples
    --------
    >>> strongest(np.array([1.0, -3.0, 2.0, 0.0]), np.array([0, 2]))
    array([-3.,  2.])
    """
    high = np.maximum.reduceat(scores, starts, axis=-1)
    low = np.minimum.reduceat(scores, starts, axis=-1)
    return np.where(high >= -low, high, low)


def extremes(values: FloatArray, starts: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the lowest and the highest value of each column; NaN where it has none.

    Examples
    --------
    >>> low, high = extremes(np.array([1.0, np.nan, 2.0, 0.0]), np.array([0, 2]))
    >>> low.tolist(), high.tolist()
    ([1.0, 0.0], [1.0, 2.0])
    """
    low: FloatArray = np.fmin.reduceat(values, starts, axis=-1)
    high: FloatArray = np.fmax.reduceat(values, starts, axis=-1)
    return low, high
