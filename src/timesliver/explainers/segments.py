"""Cutting a series into equal segments, which perturbation methods keep or blank as a whole."""

from __future__ import annotations

import math

import numpy as np

from timesliver.typing import IntArray

__all__ = ["default_window", "segment_grids"]

_GRIDS = 4
_FEWEST, _MOST, _LONGEST = 25, 50, 60  # segments of a series; points of a segment


def default_window(length: int) -> int:
    """Return how long the segments of a series should be.

    It makes 25 segments of up to 60 points, more of them in longer series, but never above 50:
    what a few hundred samples can tell apart.

    Examples
    --------
    >>> [default_window(length) for length in (10, 200, 500, 3000, 10000)]
    [1, 8, 20, 60, 200]
    """
    wanted = min(math.ceil(length / _FEWEST), _LONGEST)
    return max(wanted, math.ceil(length / _MOST), 1)


def segment_grids(length: int, window: int) -> list[IntArray]:
    """Cut a series by up to four grids, each shifted by a quarter window against the last.

    Parameters
    ----------
    length : int
        Number of time points, n.
    window : int
        Points per segment; the first and the last of a grid may be shorter.

    Returns
    -------
    list of int arrays of shape (n,)
        For each grid, the number of the segment that each point is in. Windows of less than four
        points have fewer different grids.

    Examples
    --------
    >>> for grid in segment_grids(8, 4):
    ...     print(grid)
    [0 0 0 0 1 1 1 1]
    [0 1 1 1 1 2 2 2]
    [0 0 1 1 1 1 2 2]
    [0 0 0 1 1 1 1 2]
    """
    window = min(window, length)
    shifts = sorted({quarter * window // _GRIDS for quarter in range(_GRIDS)})
    return [(np.arange(length) + (window - shift) % window) // window for shift in shifts]
