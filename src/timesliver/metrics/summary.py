"""Many measurements of one thing."""

from __future__ import annotations

from dataclasses import dataclass

from timesliver.typing import FloatArray

__all__ = ["Summary", "spread_of"]


def spread_of(values: FloatArray) -> float:
    """Return the standard deviation (n - 1); NaN for a single value, which has none."""
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class Summary:
    """A measurement, repeated over cases or seeds; ``float(result)`` is its mean.

    Attributes
    ----------
    values : array of shape (n,)
        The single results.

    Examples
    --------
    >>> import numpy as np
    >>> Summary(np.array([1.0, 2.0, 3.0]))
    Summary(2 ± 1, n=3)
    """

    values: FloatArray

    @property
    def mean(self) -> float:
        """Mean of the values."""
        return float(self.values.mean())

    @property
    def spread(self) -> float:
        """Standard deviation of the values (n - 1); NaN for a single value, which has none."""
        return spread_of(self.values)

    def __float__(self) -> float:
        return self.mean

    def __repr__(self) -> str:
        return f"Summary({self.mean:.4g} ± {self.spread:.2g}, n={len(self.values)})"
