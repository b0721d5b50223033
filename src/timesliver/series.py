"""Any accepted input becomes one padded array, its lengths and a mask of what was observed.

One rule serves missing values, unequal lengths and the masking of time points alike: such a
point has the value 0 and *no symbol*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from timesliver.errors import InvalidInputError, InvalidTypeError
from timesliver.typing import BoolArray, FloatArray, IntArray

__all__ = ["PaddedSeries", "as_series", "equal_slices", "observed_lengths"]


@dataclass(frozen=True)
class PaddedSeries:
    """Series of possibly unequal length with missing values, as plain arrays.

    Attributes
    ----------
    values : array of shape (n_cases, n_channels, n_timepoints)
        Finite everywhere; 0 where nothing was observed.
    observed : bool array of the same shape
        False where a value is missing, masked or padding.
    lengths : int array of shape (n_cases,)
        Number of time points of each case, without its padding.
    """

    values: FloatArray
    observed: BoolArray
    lengths: IntArray

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return int(self.values.shape[1])

    @property
    def n_timepoints(self) -> int:
        """Number of time points of the padded array."""
        return int(self.values.shape[2])

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, cases: Any) -> PaddedSeries:
        if not isinstance(cases, slice):
            cases = np.asarray(cases)
        return PaddedSeries(self.values[cases], self.observed[cases], self.lengths[cases])

    @property
    def with_gaps(self) -> FloatArray:
        """The values, NaN where nothing was observed."""
        gaps: FloatArray = np.where(self.observed, self.values, np.nan).astype(self.values.dtype)
        return gaps

    def mask(self, keep: BoolArray) -> PaddedSeries:
        """Keep only some points; the others get the value 0 and no symbol.

        Lengths stay as they are, so masking the end of a case does not shorten it.

        Parameters
        ----------
        keep : bool array of shape (n_cases, n_timepoints) or (n_cases, n_channels, n_timepoints)
            True for the points that stay.
        """
        keep = np.asarray(keep)
        if keep.ndim == 2:
            keep = keep[:, None, :]
        if keep.dtype != np.bool_ or keep.shape not in (
            self.values.shape,
            (len(self), 1, self.n_timepoints),
        ):
            raise InvalidInputError(
                f"the points to keep must be a boolean array of shape "
                f"{(len(self), self.n_timepoints)} or {self.values.shape}, "
                f"got {keep.dtype} of shape {keep.shape}"
            )
        observed = self.observed & keep
        return PaddedSeries(np.where(observed, self.values, 0), observed, self.lengths)

    def padded_to(self, n_timepoints: int) -> PaddedSeries:
        """Extend the array by points without a value to at least this many; lengths stay."""
        missing = n_timepoints - self.n_timepoints
        if missing <= 0:
            return self
        width = ((0, 0), (0, 0), (0, missing))
        return PaddedSeries(np.pad(self.values, width), np.pad(self.observed, width), self.lengths)

    def averaged(self, step: int) -> PaddedSeries:
        """Return the means of every ``step`` successive points, of those that were observed.

        Examples
        --------
        >>> series = as_series(np.array([[1.0, 3.0, 5.0, np.nan, 9.0]]))
        >>> series.averaged(2).values.tolist()
        [[[2.0, 5.0, 9.0]]]
        """
        if step == 1:
            return self
        starts = np.arange(0, self.n_timepoints, step)
        count = np.add.reduceat(self.observed, starts, axis=2, dtype=np.int64)
        total = np.add.reduceat(self.values, starts, axis=2, dtype=np.float64)
        means = (total / np.maximum(count, 1)).astype(self.values.dtype)
        return PaddedSeries(means, count > 0, -(-self.lengths // step))

    def moments(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of each channel over its observed points.

        A channel without spread gets its largest magnitude as deviation, or 1 if that is 0.
        """
        mean, scale = np.zeros(self.n_channels), np.ones(self.n_channels)
        for channel in range(self.n_channels):
            values = self.values[:, channel][self.observed[:, channel]].astype(np.float64)
            largest = np.abs(values).max(initial=0.0)
            if largest > 0:
                mean[channel] = (values / largest).mean() * largest
                spread = (values / largest).std()
                deviation = spread * largest if spread > 1e-13 else largest
                scale[channel] = max(deviation, np.finfo(np.float64).tiny)
        return mean, scale

    def standardized(
        self, mean: NDArray[np.float64], scale: NDArray[np.float64], largest: float = 1e4
    ) -> NDArray[np.float64]:
        """Return ``(values - mean) / scale`` of each channel within +-largest, 0 if unobserved.

        By default 32-bit numbers and their squares stay finite.
        """
        with np.errstate(over="ignore"):
            z = (self.values - mean[:, None]) / scale[:, None]
        np.clip(z, -largest, largest, out=z)
        z *= self.observed
        return z


def as_series(X: Any) -> PaddedSeries:
    """Read series of any accepted form.

    Parameters
    ----------
    X : PaddedSeries, array, torch tensor, data frame or list
        ``(n_cases, n_channels, n_timepoints)``; two dimensions mean one channel. A list holds
        one ``(n_channels, n_timepoints_i)`` array per case, or one-dimensional arrays.
        NaN marks a missing value; NaN in all channels up to the end of a case is padding.

    Returns
    -------
    PaddedSeries
        float32 values if the input was float32 (or narrower), else float64.

    Examples
    --------
    >>> import numpy as np
    >>> series = as_series([np.arange(3.0), np.arange(5.0)])
    >>> series.values.shape, series.lengths.tolist()
    ((2, 1, 5), [3, 5])
    """
    if isinstance(X, PaddedSeries):
        return X
    values = _padded(X) if isinstance(X, list | tuple) else _numeric(X, "the series")
    if values.ndim == 2:
        if values.shape[1] == 0:
            raise InvalidInputError(
                f"the series are empty: 0 feature(s) (shape={values.shape}) while a minimum of 1 "
                f"is required; give at least one time point"
            )
        values = values[:, None, :]
    if values.ndim != 3:
        raise InvalidInputError(
            f"series must have shape (n_cases, n_channels, n_timepoints), or "
            f"(n_cases, n_timepoints) for one channel; got shape {values.shape}. "
            f"Reshape your data: a single series needs a leading axis, X[None]"
        )
    if 0 in values.shape:
        raise InvalidInputError(
            f"the series are empty: got shape {values.shape}; at least one case, "
            f"one channel and one time point are needed"
        )
    observed: BoolArray = ~np.isnan(values)
    infinite = np.isinf(values)
    if infinite.any():
        case, channel, time = np.argwhere(infinite)[0]
        raise InvalidInputError(
            f"infinite value in case {case}, channel {channel}, time point {time}; "
            f"replace it by a number, or by NaN if it is missing"
        )
    lengths = observed_lengths(observed)
    if not observed.all():
        values = np.where(observed, values, 0)
    return PaddedSeries(values, observed, lengths)


def observed_lengths(observed: BoolArray) -> NDArray[np.int64]:
    """Return how many time points each case has up to its last observed one, at least 1.

    Examples
    --------
    >>> observed_lengths(np.array([[[True, False, True, False]], [[False] * 4]])).tolist()
    [3, 1]
    """
    seen: BoolArray = np.any(observed, axis=1)
    last = observed.shape[2] - np.argmax(seen[:, ::-1], axis=1)
    return np.where(seen.any(axis=1), last, 1).astype(np.int64)


def equal_slices(n_cases: int, numbers_per_case: int, budget: int) -> list[slice]:
    """Cut cases into parts of equal size for which that many numbers per case fit the budget.

    Examples
    --------
    >>> equal_slices(5, numbers_per_case=10, budget=45)
    [slice(0, 3, None), slice(3, 6, None)]
    """
    most = max(1, budget // numbers_per_case)
    step = math.ceil(n_cases / math.ceil(n_cases / most))
    return [slice(start, start + step) for start in range(0, n_cases, step)]


def _numeric(X: Any, what: str) -> FloatArray:
    """Return X as a float32 array if it has no more digits, else as a float64 array."""
    if issparse(X):
        raise InvalidInputError(f"{what} must not be a sparse matrix; convert it with .toarray()")
    try:
        array = np.asarray(X)
        if array.dtype.kind in "biufO":
            short = array.dtype.kind == "f" and array.dtype.itemsize <= 4
            array = array.astype(np.float32 if short else np.float64, copy=False)
    except (ValueError, TypeError, RuntimeError) as error:
        kind = InvalidTypeError if isinstance(error, TypeError) else InvalidInputError
        raise kind(
            f"{what} cannot be read as an array of numbers ({error}); expected an array of shape "
            f"(n_cases, n_channels, n_timepoints) or a list with one "
            f"(n_channels, n_timepoints) array per case"
        ) from error
    if array.dtype.kind == "c":
        raise InvalidInputError(
            f"Complex data not supported: {what} must hold real numbers; give real and imaginary "
            f"parts as two channels"
        )
    if array.dtype.kind != "f":
        raise InvalidInputError(
            f"{what} must hold real numbers, got the type {array.dtype}; convert them first"
        )
    return array


def _padded(cases: Sequence[Any]) -> FloatArray:
    """Stack a list of cases of unequal length, padding the ends with NaN."""
    if not cases:
        raise InvalidInputError("the list of series is empty; at least one case is needed")
    arrays = [_numeric(case, f"case {i}") for i, case in enumerate(cases)]
    arrays = [array[None] if array.ndim == 1 else array for array in arrays]
    for i, array in enumerate(arrays):
        if array.ndim != 2 or array.shape[0] != arrays[0].shape[0]:
            raise InvalidInputError(
                f"every case of a list must have shape (n_channels, n_timepoints) with the same "
                f"number of channels; case 0 has shape {arrays[0].shape}, "
                f"case {i} has shape {array.shape}"
            )
    longest = max(array.shape[1] for array in arrays)
    padded = np.full(
        (len(arrays), arrays[0].shape[0], longest), np.nan, dtype=np.result_type(*arrays)
    )
    for i, array in enumerate(arrays):
        padded[i, :, : array.shape[1]] = array
    return padded
