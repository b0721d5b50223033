"""The far-field set: products of values at opposite ends of a case make the class."""

from __future__ import annotations

import numpy as np

from timesliver.datasets.dataset import Dataset
from timesliver.errors import check_count, check_number
from timesliver.typing import FloatArray

__all__ = ["make_farfield"]

N_TIMEPOINTS = 100


def make_farfield(
    n_cases: int = 1000,
    random_state: int | np.random.Generator | None = None,
    *,
    noise: float = 0.02,
) -> Dataset:
    """Generate the far-field set, in which moments decide in pairs.

    Each case has one channel of L = 100 time points,
    ``x(t) = sin(f t + p) + e(t) (t - L / 2)`` for t = 1, ..., L, with f uniform on [1, 10), p
    uniform on [0, 2 pi) and Gaussian noise e. The class is 1 if the sum of
    ``x(j) x(L - j + 1)`` over the first half of the case is positive, and 0 otherwise.

    Cases are drawn anew until the classes are equal in size. They nearly are without that.

    Parameters
    ----------
    n_cases : int, default=1000
        Number of cases. Classes differ in size by one at most; their order is random.
    random_state : int, numpy.random.Generator or None
        Seed; the same one gives the same set.
    noise : float, default=0.02
        Standard deviation of e. The paper does not give it, so the default is our choice, made
        by comparing several values with the accuracies that it prints, so that accuracies on
        this set reproduce nothing. More noise makes it harder; with 1 it is near chance.

    Returns
    -------
    Dataset
        Without `salient`: each time point is part of one pair, so there is no part of a case that
        does not count.

    Examples
    --------
    >>> data = make_farfield(8, random_state=0)
    >>> data
    Dataset('FarField', n_cases=8, n_channels=1, n_timepoints=100, n_classes=2)
    >>> x = data.X[0, 0]
    >>> bool((x * x[::-1]).sum() > 0) == bool(data.y[0])
    True
    """
    check_count("n_cases", n_cases, least=1)
    check_number("noise", noise, least=0, most=1000)
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_cases) % 2)
    x = np.empty((n_cases, N_TIMEPOINTS))
    wrong = np.ones(n_cases, dtype=bool)
    half = N_TIMEPOINTS // 2
    while wrong.any():
        x[wrong] = _waves(wrong.sum(), noise, rng)
        interaction = (x[:, :half] * x[:, : half - 1 : -1]).sum(axis=1)
        wrong = (interaction > 0) != y
    return Dataset(x[:, None, :], y, name="FarField")


def _waves(n_cases: int, noise: float, rng: np.random.Generator) -> FloatArray:
    time = np.arange(1, N_TIMEPOINTS + 1)
    frequency = rng.uniform(1, 10, size=(n_cases, 1))
    phase = rng.uniform(0, 2 * np.pi, size=(n_cases, 1))
    strength = rng.normal(0, noise, size=(n_cases, N_TIMEPOINTS))
    waves: FloatArray = np.sin(frequency * time + phase) + strength * (time - N_TIMEPOINTS / 2)
    return waves
