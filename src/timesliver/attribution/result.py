"""`Attribution`: what every explanation returns."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.errors import InvalidInputError
from timesliver.typing import FloatArray

__all__ = ["Attribution"]


@dataclass(frozen=True, eq=False)
class Attribution:
    """Which moments and channels spoke for a class, and which against it.

    Attributes
    ----------
    positive_by_channel, negative_by_channel : arrays of shape (n_cases, n_channels, n_timepoints)
        Evidence for and against the class explained.
    logit : array of shape (n_cases,)
        What is explained: the logit of the class, or the centred logit.
    bias : array of shape (n_cases,)
        The part of the logit that no moment accounts for. For additive attributions
        ``net.sum(axis=1) + bias`` is the logit.
    target : array of shape (n_cases,)
        Index into `classes` of the class explained.
    classes : array of shape (n_classes,)
        The class labels.
    method : str
        How the scores were made.
    positive_by_symbol, negative_by_symbol : arrays of shape (n_cases, n_channels, n_symbols)
        Where the method has them: the scores by the symbol that carried them, else None.
    """

    positive_by_channel: FloatArray
    negative_by_channel: FloatArray
    logit: FloatArray
    bias: FloatArray
    target: NDArray[np.int64]
    classes: NDArray[Any]
    method: str
    positive_by_symbol: FloatArray | None = None
    negative_by_symbol: FloatArray | None = None

    def __post_init__(self) -> None:
        shape = self.positive_by_channel.shape
        if len(shape) != 3 or self.negative_by_channel.shape != shape:
            raise InvalidInputError(
                f"scores must have shape (n_cases, n_channels, n_timepoints), got {shape} for and "
                f"{self.negative_by_channel.shape} against"
            )
        for name in ("logit", "bias", "target"):
            if getattr(self, name).shape != shape[:1]:
                raise InvalidInputError(
                    f"{name} must have one entry for each of the {shape[0]} cases, "
                    f"got shape {getattr(self, name).shape}"
                )

    @property
    def positive(self) -> FloatArray:
        """Evidence for the class at each time point: (n_cases, n_timepoints)."""
        positive: FloatArray = self.positive_by_channel.sum(axis=1)
        return positive

    @property
    def negative(self) -> FloatArray:
        """Evidence against the class at each time point: (n_cases, n_timepoints)."""
        negative: FloatArray = self.negative_by_channel.sum(axis=1)
        return negative

    @property
    def net(self) -> FloatArray:
        """Evidence for minus evidence against: (n_cases, n_timepoints)."""
        return self.positive - self.negative

    @property
    def magnitude(self) -> FloatArray:
        """Evidence for plus evidence against, the total evidence: (n_cases, n_timepoints)."""
        return self.positive + self.negative

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, cases: Any) -> Attribution:
        """Return some of the cases; a single index keeps the leading axis."""
        if isinstance(cases, int | np.integer):
            if not -len(self) <= cases < len(self):
                raise IndexError(f"case {cases} asked for, but there are {len(self)} cases")
            cases = [cases]
        changed = {
            field.name: getattr(self, field.name)[cases]
            for field in fields(self)
            if field.name not in ("classes", "method") and getattr(self, field.name) is not None
        }
        return replace(self, **changed)

    def __repr__(self) -> str:
        n_cases, n_channels, n_timepoints = self.positive_by_channel.shape
        return (
            f"Attribution({self.method!r}, n_cases={n_cases}, n_channels={n_channels}, "
            f"n_timepoints={n_timepoints}, n_classes={len(self.classes)})"
        )
