"""Setting cases aside for validation."""

from __future__ import annotations

import numpy as np

from timesliver.typing import IntArray

__all__ = ["validation_split"]

# With fewer validation cases than this, one lucky case decides when training stops: none are set
# aside then, and all cases train.
_FEWEST = 10


def validation_split(y: IntArray, fraction: float, seed: int) -> tuple[IntArray, IntArray]:
    """Return the indices of the cases to train on and of those to validate on.

    Every class gives its share, rounded so that the shares add up, but never its last training
    case. The second part is empty if it would hold fewer than 10 cases.

    Examples
    --------
    >>> train, validation = validation_split(np.arange(200) % 2, 0.1, seed=0)
    >>> len(train), len(validation)
    (180, 20)
    >>> [len(part) for part in validation_split(np.arange(12) % 3, 0.1, seed=0)]
    [12, 0]
    """
    rng = np.random.default_rng(seed)
    wanted = round(fraction * len(y))
    order = rng.permutation(len(y))
    if wanted < _FEWEST:
        return np.arange(len(y)), np.arange(0)
    counts = np.bincount(y)
    share = counts * fraction
    taken = np.minimum(np.floor(share).astype(np.int64), counts - 1).clip(min=0)
    for c in np.argsort(taken - share, kind="stable"):  # the largest remainders first
        if taken.sum() < wanted and taken[c] < counts[c] - 1:
            taken[c] += 1
    validation = np.concatenate([order[y[order] == c][:n] for c, n in enumerate(taken)])
    return np.setdiff1d(np.arange(len(y)), validation), np.sort(validation)
