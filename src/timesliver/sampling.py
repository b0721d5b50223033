"""Taking cases of all classes in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["rank_in_class"]


def rank_in_class(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many cases of its own class come before each case.

    Examples
    --------
    >>> rank_in_class(np.array(["a", "b", "a", "a"]))
    array([0, 0, 1, 2])
    """
    rank = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        rank[mine] = np.arange(len(mine))
    return rank
