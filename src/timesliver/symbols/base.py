"""What every symbolizer does (Module II.a): series in, one small integer per point out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from timesliver.errors import InvalidInputError, NotFittedError
from timesliver.registry import from_description, to_description
from timesliver.series import PaddedSeries, as_series
from timesliver.typing import BoolArray, CodeArray, FloatArray, JSONDict

__all__ = ["BLOCK", "NO_SYMBOL", "TIE", "Symbolizer", "code_dtype", "standardize"]

#: The code of a missing, padded or masked point: an all-zero row of the one-hot matrix O.
NO_SYMBOL = 0


#: A number that equals a breakpoint up to rounding belongs to the upper bin, however the series
#: was scaled before: breakpoints are lowered by this much.
TIE = 1e-6
#: Values worked on at once: a block that stays in the processor's cache.
BLOCK = 1 << 17


class Symbolizer(BaseEstimator, ABC):
    """Maps each time point to one of ``n_symbols`` symbols, on every symbol channel.

    Codes are 1..n_symbols; 0 (`NO_SYMBOL`) is reserved for points that carry no symbol. A
    subclass has a `name` and keeps its settings as scikit-learn estimators do; whatever it learns
    in ``fit`` are arrays named in `learned`. Its `_transform` gives a code per point of every
    channel, or one channel of codes that all channels share.

    Examples
    --------
    >>> class Sign(Symbolizer):
    ...     name = "sign"
    ...     n_symbols = 2
    ...
    ...     def _transform(self, series):
    ...         return np.where(series.values < 0, 1, 2)
    >>> Sign().fit_transform(np.array([[-3.0, 4.0, np.nan]])).tolist()
    [[[1, 2, 0]]]
    """

    name: ClassVar[str]
    learned: ClassVar[tuple[str, ...]] = ()
    #: Whether all channels share one channel of codes.
    shared: ClassVar[bool] = False
    n_channels_: int | None = None

    @property
    @abstractmethod
    def n_symbols(self) -> int:
        """Number of symbols of each symbol channel, not counting "no symbol"."""

    @classmethod
    def with_bins(cls, n_bins: int) -> Self:
        """Make a symbolizer with about ``n_bins`` symbols, if it lets one choose."""
        return cls(n_bins=n_bins) if "n_bins" in cls._get_param_names() else cls()

    def fit(self, X: Any) -> Self:
        """Learn what the symbols depend on from training series."""
        self._check()
        series = as_series(X)
        self._fit(series)
        self.n_channels_ = series.n_channels
        return self

    def transform(self, X: Any) -> CodeArray:
        """Return the codes: (n_cases, n_channels, n_timepoints), or one channel if all share it."""
        if self.n_channels_ is None:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(X) before transform(X)"
            )
        series = as_series(X)
        if series.n_channels != self.n_channels_:
            raise InvalidInputError(
                f"the series have {series.n_channels} channels, but the symbolizer was fitted "
                f"on {self.n_channels_}; shape given: {series.values.shape}"
            )
        codes = self._transform(series)
        seen: BoolArray = series.observed
        if codes.shape[1] < series.n_channels:
            seen = np.any(seen, axis=1, keepdims=True)
        return np.where(seen, codes, NO_SYMBOL).astype(code_dtype(self.n_symbols), copy=False)

    def fit_transform(self, X: Any) -> CodeArray:
        """Fit, then transform the same series."""
        series = as_series(X)
        return self.fit(series).transform(series)

    def state(self) -> tuple[JSONDict, dict[str, NDArray[Any]]]:
        """Return all of this symbolizer as a JSON-able dictionary and plain arrays."""
        config: JSONDict = {"name": self.name, "n_channels": self.n_channels_}
        config["settings"] = to_description(self)["settings"]
        arrays = {key: getattr(self, key) for key in self.learned if hasattr(self, key)}
        return config, arrays

    @classmethod
    def from_state(cls, config: JSONDict, arrays: dict[str, NDArray[Any]]) -> Self:
        """Rebuild a symbolizer from what `state` returned."""
        symbolizer = cls(**{k: from_description(v) for k, v in config["settings"].items()})
        symbolizer.n_channels_ = config["n_channels"]
        for key in cls.learned:
            if key in arrays:
                setattr(symbolizer, key, np.asarray(arrays[key]))
        return symbolizer

    def _fit(self, series: PaddedSeries) -> None:
        """Learn from the training series."""

    def _check(self) -> None:
        """Raise if a setting makes no sense."""

    @abstractmethod
    def _transform(self, series: PaddedSeries) -> CodeArray:
        """Return codes 1..n_symbols; unobserved points are overwritten by the caller."""


def code_dtype(n_symbols: int) -> type[np.uint8] | type[np.int16]:
    """Return the smallest type that holds the codes 0..n_symbols."""
    return np.uint8 if n_symbols <= 255 else np.int16


def standardize(values: FloatArray, observed: BoolArray) -> NDArray[np.float64]:
    """Return the z-scores of each case and channel over its observed points.

    A channel without spread gets 0 everywhere. Dividing by the largest magnitude first keeps
    huge and tiny values away from overflow and makes the result independent of the scale.
    """
    count = np.maximum(observed.sum(axis=-1, keepdims=True), 1)
    z = np.where(observed, values, 0.0).astype(np.float64, copy=False)
    largest = np.abs(z).max(axis=-1, keepdims=True)
    np.divide(z, largest, out=z, where=largest > 0)
    z -= z.sum(axis=-1, keepdims=True) / count
    z *= observed
    spread = np.sqrt(np.square(z).sum(axis=-1, keepdims=True) / count)
    constant = spread <= 1e-13
    np.divide(z, spread, out=z, where=~constant)
    z *= ~constant
    return z
