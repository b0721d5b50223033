"""SeqComb: two short ramps, and the directions in which they go make the class."""

from __future__ import annotations

import numpy as np

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.synthetic.narma import narma
from timesliver.errors import check_choice, check_count

__all__ = ["make_seqcomb_mv", "make_seqcomb_uv"]

N_TIMEPOINTS = 200
RISING = np.array([[False, False], [False, False], [True, True], [True, False]])  # class, ramp
RAMPS = {  # shortest and longest ramp, mean frequency of the sine on it
    "long": (15, 29, 5),
    "short": (10, 19, 10),
}


def make_seqcomb_uv(
    n_cases: int = 1000,
    random_state: int | np.random.Generator | None = None,
    *,
    ramps: str = "long",
) -> Dataset:
    """Generate the SeqComb-UV set: one channel, with two ramps that rise or fall.

    Each case has 200 time points of a NARMA process plus noise of standard deviation 0.01. Two
    ramps that do not overlap replace parts of it. The class says where they go, in the order of
    time: 0 is a case without ramps, 1 (falls, falls), 2 (rises, rises), 3 (rises, falls).

    A ramp is a straight line round zero whose height is ``5 (|min| + |max|)`` of the values that
    the case has without ramps, plus ``sin(a i)`` at its time points i = 0, 1, ... The whole number
    a is drawn for each ramp from a Poisson distribution. The first ramp starts in the first half
    of the case, the second anywhere after it.

    Parameters
    ----------
    n_cases : int, default=1000
        Number of cases. Classes differ in size by one at most; their order is random.
    random_state : int, numpy.random.Generator or None
        Seed; the same one gives the same set.
    ramps : "long" or "short", default="long"
        "long": 15 to 29 time points and a of mean 5, which fits the results of the TimeSliver
        paper. "short": 10 to 19 time points and a of mean 10, as the set was first published.

    Returns
    -------
    Dataset
        With the ramps as `salient`; cases of class 0 have no salient point.

    References
    ----------
    Queen et al., "Encoding Time-Series Explanations through Self-Supervised Model Behavior
    Consistency", NeurIPS 2023.

    Examples
    --------
    >>> data = make_seqcomb_uv(8, random_state=0)
    >>> data
    Dataset('SeqComb-UV', n_cases=8, n_channels=1, n_timepoints=200, n_classes=4)
    >>> data.salient.any(axis=(1, 2)) == (data.y > 0)
    array([ True,  True,  True,  True,  True,  True,  True,  True])
    """
    check_choice("ramps", ramps, tuple(RAMPS))
    return _seqcomb("SeqComb-UV", n_cases, 1, ramps, random_state)


def make_seqcomb_mv(
    n_cases: int = 1000, random_state: int | np.random.Generator | None = None
) -> Dataset:
    """Generate the SeqComb-MV set: four channels, with a ramp on each of two.

    As `make_seqcomb_uv` with long ramps, but with four channels. The two ramps lie on two
    different channels, drawn at random, and do not overlap in time. The smallest and largest value
    that make the height of the ramps are those of all channels of a case.

    Parameters
    ----------
    n_cases : int, default=1000
        Number of cases. Classes differ in size by one at most; their order is random.
    random_state : int, numpy.random.Generator or None
        Seed; the same one gives the same set.

    Returns
    -------
    Dataset
        With the ramps as `salient`, on their channel; cases of class 0 have no salient point.

    References
    ----------
    Queen et al., "Encoding Time-Series Explanations through Self-Supervised Model Behavior
    Consistency", NeurIPS 2023.

    Examples
    --------
    >>> make_seqcomb_mv(8, random_state=0)
    Dataset('SeqComb-MV', n_cases=8, n_channels=4, n_timepoints=200, n_classes=4)
    """
    return _seqcomb("SeqComb-MV", n_cases, 4, "long", random_state)


def _seqcomb(
    name: str,
    n_cases: int,
    n_channels: int,
    ramps: str,
    random_state: int | np.random.Generator | None,
) -> Dataset:
    check_count("n_cases", n_cases, least=1)
    shortest, longest, mean_frequency = RAMPS[ramps]
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_cases) % 4)
    shape = (n_cases, n_channels, N_TIMEPOINTS)
    X = narma(shape, rng) + rng.normal(0, 0.01, size=shape)
    height = 5 * (np.abs(X.min(axis=(1, 2))) + np.abs(X.max(axis=(1, 2))))

    # arrays of shape (n_cases, 2) for the two ramps, (n_cases, 2, longest) for their values
    channel = np.zeros((n_cases, 2), dtype=int)
    if n_channels > 1:
        channel = rng.permuted(np.tile(np.arange(n_channels), (n_cases, 1)), axis=1)[:, :2]
    length = rng.integers(shortest, longest + 1, size=(n_cases, 2))
    first = rng.integers(0, N_TIMEPOINTS // 2, size=n_cases)
    second = rng.integers(first + length[:, 0], N_TIMEPOINTS - length[:, 1] + 1)
    start = np.stack([first, second], axis=1)
    frequency = rng.poisson(mean_frequency, size=(n_cases, 2))

    step = np.arange(longest)
    climb = step / (length[:, :, None] - 1) - 0.5
    line = height[:, None, None] * np.where(RISING[y][:, :, None], climb, -climb)
    ramp = line + np.sin(frequency[:, :, None] * step)
    taken = (step < length[:, :, None]) & (y > 0)[:, None, None]

    case, which, at = np.nonzero(taken)
    cells = case, channel[case, which], start[case, which] + at
    X[cells] = ramp[taken]
    salient = np.zeros(shape, dtype=bool)
    salient[cells] = True
    return Dataset(X, y, salient, name=name)
