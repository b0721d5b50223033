"""FreqSum: short sine waves on two channels, and the sum of their frequencies makes the class."""

from __future__ import annotations

import numpy as np

from timesliver.datasets.dataset import Dataset
from timesliver.errors import check_count
from timesliver.typing import IntArray

__all__ = ["make_freqsum"]

N_CHANNELS, N_TIMEPOINTS, WINDOW = 6, 500, 100
FREQUENCIES = np.arange(10, 51)
THRESHOLD = 60


def make_freqsum(
    n_cases: int = 1000, random_state: int | np.random.Generator | None = None
) -> Dataset:
    """Generate the FreqSum set: two short sine waves among square waves that mean nothing.

    Each case has six channels of 500 time points, and each channel a slow wave
    ``0.5 sin(2 pi f t)``, where t runs from 0 to 1 and f is 2, 3, 4 or 5. On two channels, drawn at
    random, ``sin(2 pi f t)`` with a whole f from 10 to 50 is added within a window of 100 time
    points. Each other channel may, with probability 0.5, get a square wave of such a frequency and
    window instead. Each window is drawn by itself, so they may overlap in time. The class is 1 if
    the frequencies of the two sine waves sum to more than 60, and 0 otherwise.

    The class is drawn first, then one of all pairs of frequencies that belong to it. Two
    frequencies drawn without regard to the class would give class 1 to 49 cases in a hundred.

    Parameters
    ----------
    n_cases : int, default=1000
        Number of cases. Classes differ in size by one at most; their order is random.
    random_state : int, numpy.random.Generator or None
        Seed; the same one gives the same set.

    Returns
    -------
    Dataset
        With the windows of the two sine waves as `salient`, on their channels.

    References
    ----------
    Turbé et al., "Evaluation of post-hoc interpretability methods in time-series classification",
    Nature Machine Intelligence 2023.

    Examples
    --------
    >>> make_freqsum(8, random_state=0)
    Dataset('FreqSum', n_cases=8, n_channels=6, n_timepoints=500, n_classes=2)
    """
    check_count("n_cases", n_cases, least=1)
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_cases) % 2)

    # the wave that each channel of a case gets: 0 none, 1 sine, 2 square
    square = rng.integers(0, 2, size=(n_cases, N_CHANNELS - 2)) * 2
    kind = np.concatenate([np.ones((n_cases, 2), dtype=int), square], axis=1)
    kind = rng.permuted(kind, axis=1)
    frequency = rng.choice(FREQUENCIES, size=kind.shape)
    frequency[kind == 1] = _pairs(y, rng).ravel()
    start = rng.integers(0, N_TIMEPOINTS - WINDOW + 1, size=kind.shape)

    # one table of full-length waves of all frequencies serves all cases
    cycles = np.arange(FREQUENCIES[-1] + 1)[:, None] * np.arange(N_TIMEPOINTS) % N_TIMEPOINTS
    sines = np.sin(2 * np.pi / N_TIMEPOINTS * cycles)
    squares = np.where(cycles < N_TIMEPOINTS // 2, 1.0, -1.0)
    waves = np.stack([np.zeros_like(sines), sines, squares])

    X = (0.5 * sines)[rng.integers(2, 6, size=kind.shape)]
    window = start[:, :, None] + np.arange(WINDOW)
    added = waves[kind[:, :, None], frequency[:, :, None], window]
    added += np.take_along_axis(X, window, axis=2)
    np.put_along_axis(X, window, added, axis=2)
    salient = np.zeros(X.shape, dtype=bool)
    np.put_along_axis(salient, window, kind[:, :, None] == 1, axis=2)
    return Dataset(X, y, salient, name="FreqSum")


def _pairs(y: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw two frequencies for each label."""
    pairs = np.stack(np.meshgrid(FREQUENCIES, FREQUENCIES), axis=-1).reshape(-1, 2)
    over = pairs.sum(axis=1) > THRESHOLD
    drawn = np.empty((len(y), 2), dtype=int)
    for label, of_class in enumerate((pairs[~over], pairs[over])):
        drawn[y == label] = rng.choice(of_class, size=int((y == label).sum()))
    return drawn
