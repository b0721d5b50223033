"""Which cases to show where there are too many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.sampling import rank_in_class
from timesliver.typing import BoolArray, IntArray

__all__ = ["choose_cases"]


def choose_cases(predicted: NDArray[Any], mistaken: BoolArray, n_most: int) -> IntArray:
    """Choose cases: mistakes first, up to half of them, then others from all classes in turn.

    Parameters
    ----------
    predicted : array of shape (n_cases,)
        The class predicted for each case, as a label or as a number.
    mistaken : bool array of shape (n_cases,)
        Where the prediction is known to be wrong.
    n_most : int
        How many cases to choose, if there are as many.

    Returns
    -------
    int array
        The chosen cases in their own order.

    Examples
    --------
    >>> predicted = np.array(["a"] * 8 + ["b"] * 2)
    >>> choose_cases(predicted, np.zeros(10, bool), 4)
    array([0, 1, 8, 9])
    """
    n_cases = len(predicted)
    if n_cases <= n_most:
        return np.arange(n_cases)
    mistakes = np.flatnonzero(mistaken)
    turns = rank_in_class(predicted[mistakes])
    mistakes = mistakes[np.argsort(turns, kind="stable")][: n_most // 2]
    others = np.setdiff1d(np.arange(n_cases), mistakes)
    turns = rank_in_class(predicted[others]) + n_cases * mistaken[others]  # mistakes come last
    others = others[np.argsort(turns, kind="stable")][: n_most - len(mistakes)]
    return np.sort(np.concatenate([mistakes, others]))
