"""LowVar: the channel that falls calm, and at which level, make the class."""

from __future__ import annotations

import numpy as np

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.synthetic.narma import narma
from timesliver.errors import check_count

__all__ = ["make_lowvar"]


def make_lowvar(
    n_cases: int = 1000, random_state: int | np.random.Generator | None = None
) -> Dataset:
    """Generate the LowVar set: two noisy channels, one of them calm for a short while.

    Each case has 200 time points of a NARMA process plus noise of standard deviation 1. A
    stretch of 10 to 19 points on one channel is replaced by values round -1.5 or +1.5 with
    standard deviation 0.1. Channel and level make the class: 0 is (first, -1.5), 1 (first, +1.5),
    2 (second, -1.5), 3 (second, +1.5).

    Parameters
    ----------
    n_cases : int, default=1000
        Number of cases. Classes differ in size by one at most; their order is random.
    random_state : int, numpy.random.Generator or None
        Seed; the same one gives the same set.

    Returns
    -------
    Dataset
        With the calm stretch as `salient`.

    References
    ----------
    Queen et al., "Encoding Time-Series Explanations through Self-Supervised Model Behavior
    Consistency", NeurIPS 2023.

    Examples
    --------
    >>> make_lowvar(8, random_state=0)
    Dataset('LowVar', n_cases=8, n_channels=2, n_timepoints=200, n_classes=4)
    """
    check_count("n_cases", n_cases, least=1)
    rng = np.random.default_rng(random_state)
    shape = (n_cases, 2, 200)
    y = rng.permutation(np.arange(n_cases) % 4)
    level = np.where(y % 2, 1.5, -1.5)
    start = rng.integers(20, 160, size=n_cases)
    length = rng.integers(10, 20, size=n_cases)

    time = np.arange(200)
    stretch = (time >= start[:, None]) & (time < (start + length)[:, None])
    salient = stretch[:, None, :] & (np.arange(2) == (y // 2)[:, None])[:, :, None]
    noisy = narma(shape, rng) + rng.normal(0, 1, size=shape)
    calm = level[:, None, None] + rng.normal(0, 0.1, size=shape)
    return Dataset(np.where(salient, calm, noisy), y, salient, name="LowVar")
