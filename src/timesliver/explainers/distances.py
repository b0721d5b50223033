"""Distances within and between series: nearest subsequences, and dynamic time warping."""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from timesliver.typing import FloatArray, IntArray

__all__ = ["dtw_distances", "nearest_subsequences"]

_TIE = 8  # decimals to which squared distances are told apart


def nearest_subsequences(x: FloatArray, window: int) -> IntArray:
    """Return where the subsequence most similar to each one starts: the matrix profile's index.

    Distances are Euclidean between z-normalised subsequences; a flat one is normalised to 0.
    Subsequences that start within a quarter window of each other are not compared. Of equally
    near ones the first counts.

    Parameters
    ----------
    x : array of shape (L,)
        The series.
    window : int
        Length w of a subsequence: at least 4 and at most L / 2, so that each has one to compare
        with.

    Returns
    -------
    int array of shape (L - w + 1,)
    """
    parts = sliding_window_view(x.astype(np.float64), window)
    deviation = parts.std(axis=1, keepdims=True)
    flat = deviation == 0
    z = np.where(flat, 0.0, (parts - parts.mean(axis=1, keepdims=True)) / (deviation + flat))
    squares = (z**2).sum(axis=1)
    distances = squares[:, None] + squares - 2 * z @ z.T
    start = np.arange(len(z))
    near = np.abs(start[:, None] - start) <= math.ceil(window / 4)
    nearest: IntArray = np.where(near, np.inf, distances.round(_TIE)).argmin(axis=1)
    return nearest


def dtw_distances(x: FloatArray, others: FloatArray, band: int) -> FloatArray:
    """Return the dynamic time warping distances from a series to others of its length.

    The cost of a pair of points is ``|x_i - y_j|``; pairs with ``|i - j| > band`` are left out
    (Sakoe and Chiba). All others advance together, one anti-diagonal ``i + j`` after the other.

    Parameters
    ----------
    x : array of shape (L,)
        The series.
    others : array of shape (n, L)
        Series to compare it with.
    band : int
        Half the width of the band.

    Returns
    -------
    array of shape (n,)
    """
    L = len(x)
    # Entry i + 1 of a diagonal is the cell in row i; the border above and outside is infinite.
    before = np.full((len(others), L + 1), np.inf)
    last = before.copy()
    before[:, 0] = 0  # lets the first cell start from nothing
    for diagonal in range(2 * L - 1):
        low = max(0, diagonal - L + 1, (diagonal - band + 1) // 2)
        high = min(diagonal, L - 1, (diagonal + band) // 2) + 1
        row = np.arange(low, high)
        steps = np.minimum(last[:, low:high], last[:, low + 1 : high + 1])
        now = np.full_like(last, np.inf)
        now[:, low + 1 : high + 1] = np.abs(x[row] - others[:, diagonal - row]) + np.minimum(
            steps, before[:, low:high]
        )
        before, last = last, now
    return last[:, L]
