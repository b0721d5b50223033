"""Parts of a set that share no case: at random by class, or by whole blocks of time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.errors import InvalidInputError
from timesliver.typing import IntArray

__all__ = ["at_random", "balanced", "by_blocks"]


def at_random(y: NDArray[Any], sizes: dict[str, int], seed: int) -> dict[str, IntArray]:
    """Draw parts of given sizes, each with the shares of the classes in the whole.

    Parameters
    ----------
    y : array of shape (n_cases,)
        The labels.
    sizes : dict of str to int
        How many cases each part takes; together at most `n_cases`.
    seed : int
        The same seed draws the same parts.

    Returns
    -------
    dict of str to int array
        The cases of each part, in ascending order.

    Examples
    --------
    >>> y = np.array(["cat", "dog"] * 10)
    >>> parts = at_random(y, {"train": 12, "test": 4}, seed=0)
    >>> [np.unique(y[part], return_counts=True)[1].tolist() for part in parts.values()]
    [[6, 6], [2, 2]]
    """
    from sklearn.model_selection import train_test_split  # slow to import: not for all who read

    if sum(sizes.values()) > len(y):
        raise InvalidInputError(
            f"cannot draw parts of {', '.join(map(str, sizes.values()))} cases from {len(y)}; "
            f"check that the set is whole"
        )
    left = np.arange(len(y))
    parts = {}
    for part, size in sizes.items():
        if size < len(left):
            chosen, left = train_test_split(
                left, train_size=size, stratify=y[left], random_state=seed
            )
        else:
            chosen, left = left, left[:0]
        parts[part] = np.sort(chosen)
    return parts


def by_blocks(
    y: NDArray[Any], position: IntArray, length: int, seed: int, n_folds: int = 5
) -> dict[str, IntArray]:
    """Split one long recording by blocks of time, so that no part holds a neighbour of another.

    Parameters
    ----------
    y : array of shape (n_cases,)
        The labels.
    position : int array of shape (n_cases,)
        The number of each case in the recording, ascending.
    length : int
        How many positions a block has.
    seed : int
        The same seed gives the same parts.
    n_folds : int, default=5
        The blocks are dealt to so many folds with like shares of the classes; one of them is the
        test part, one the validation part, the others are the training part.

    Returns
    -------
    dict of str to int array
        "train", "validation" and "test", in ascending order. The first case of a block that
        follows one of another part belongs to no part: it resembles the case before it.

    Examples
    --------
    >>> parts = by_blocks(np.arange(100) % 2, np.arange(100), length=10, seed=0)
    >>> gaps = np.abs(parts["train"] - parts["test"][:, None])
    >>> int(gaps.min())
    2
    """
    from sklearn.model_selection import StratifiedGroupKFold

    block = position // length
    folds = StratifiedGroupKFold(n_folds, shuffle=True, random_state=seed)
    fold = np.empty(len(y), dtype=np.int64)
    for number, (_, members) in enumerate(folds.split(y, y, block)):
        fold[members] = number
    part = np.minimum(fold, 2)  # 0 test, 1 validation, all others train
    border = (np.diff(part, prepend=part[0]) != 0) & (np.diff(position, prepend=-2) == 1)
    numbers = {"train": 2, "validation": 1, "test": 0}
    return {name: np.flatnonzero((part == number) & ~border) for name, number in numbers.items()}


def balanced(y: NDArray[Any], most: int | None, seed: int) -> IntArray:
    """Draw equally many cases of each class: as many as the rarest has, or `most` if it has more.

    Examples
    --------
    >>> y = np.array(["W", "N2", "W", "N2", "W"])
    >>> y[balanced(y, most=None, seed=0)].tolist().count("W")
    2
    """
    rng = np.random.default_rng(seed)
    classes, counts = np.unique(y, return_counts=True)
    size = int(counts.min()) if most is None else min(int(counts.min()), most)
    chosen = [rng.choice(np.flatnonzero(y == label), size, replace=False) for label in classes]
    return np.sort(np.concatenate(chosen))
