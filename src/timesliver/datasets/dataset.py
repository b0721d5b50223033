"""`Dataset`: series, their labels and, where they are known, the moments that decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.errors import InvalidInputError
from timesliver.typing import BoolArray, FloatArray, IntArray

__all__ = ["Dataset", "pad"]


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Labelled or unlabelled series.

    Attributes
    ----------
    X : array of shape (n_cases, n_channels, n_timepoints)
        The values; NaN where one is missing, and after the end of a shorter case.
    y : array of shape (n_cases,) or None
        The labels. Those read from text files are strings.
    salient : bool array of the shape of X, or None
        True at the moments and channels that decide the class, where this is known.
    name : str
        What the set is called.
    channel_names : tuple of str or None
        What the channels are called, if the file says so.

    Examples
    --------
    >>> import numpy as np
    >>> Dataset(np.zeros((3, 1, 5)), np.array(["a", "b", "a"]), name="tiny")
    Dataset('tiny', n_cases=3, n_channels=1, n_timepoints=5, n_classes=2)
    >>> Dataset(np.zeros((3, 1, 5)))[:2].X.shape
    (2, 1, 5)
    """

    X: FloatArray
    y: NDArray[Any] | None = None
    salient: BoolArray | None = None
    name: str = ""
    channel_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        shape = self.X.shape
        if len(shape) != 3 or 0 in shape:
            raise InvalidInputError(
                f"the series of a data set must have shape (n_cases, n_channels, n_timepoints) "
                f"with nothing empty, got {shape}"
            )
        if self.y is not None and self.y.shape != shape[:1]:
            raise InvalidInputError(
                f"{shape[0]} series need {shape[0]} labels, got labels of shape {self.y.shape}"
            )
        if self.salient is not None and self.salient.shape != shape:
            raise InvalidInputError(
                f"the mask of salient moments must have the shape of the series, {shape}, "
                f"got {self.salient.shape}"
            )

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, cases: slice | IntArray | BoolArray) -> Dataset:
        """Return some of the cases, as a slice, numbers or a mask says."""
        return replace(
            self,
            X=self.X[cases],
            y=None if self.y is None else self.y[cases],
            salient=None if self.salient is None else self.salient[cases],
        )

    def __repr__(self) -> str:
        n_cases, n_channels, n_timepoints = self.X.shape
        classes = "no labels" if self.y is None else f"n_classes={len(np.unique(self.y))}"
        return (
            f"Dataset({self.name!r}, n_cases={n_cases}, n_channels={n_channels}, "
            f"n_timepoints={n_timepoints}, {classes})"
        )


def pad(cases: Sequence[Sequence[FloatArray] | FloatArray]) -> FloatArray:
    """Stack cases (lists of channels) of unequal length into one array that ends in NaN.

    Examples
    --------
    >>> import numpy as np
    >>> pad([[np.array([1.0, 2.0])], [np.array([3.0])]])
    array([[[ 1.,  2.]],
           [[ 3., nan]]])
    """
    longest = max(len(channel) for case in cases for channel in case)
    X = np.full((len(cases), len(cases[0]), longest), np.nan)
    for i, case in enumerate(cases):
        for j, channel in enumerate(case):
            X[i, j, : len(channel)] = channel
    return X
