"""`Attribution`: what every explanation returns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from timesliver.attribution import storage
from timesliver.attribution.intervals import Interval, top_intervals
from timesliver.errors import InvalidInputError, MissingExtraError, check_count
from timesliver.series import observed_lengths
from timesliver.typing import FloatArray, IntArray, JSONDict

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Attribution", "join"]

_OF_ALL_CASES = ("classes", "method", "has_sign", "has_channels")


@dataclass(frozen=True, eq=False)
class Attribution:
    """Which moments and channels spoke for a class, and which against it.

    Attributes
    ----------
    positive_by_channel, negative_by_channel : arrays of shape (n_cases, n_channels, n_timepoints)
        Evidence for and against the class explained.
    logit : array of shape (n_cases,)
        What is explained: the logit of the class, or the centred logit.
    base : array of shape (n_cases,)
        The part of the logit that no moment accounts for. For additive attributions
        ``net.sum(axis=1) + base`` is the logit.
    target : array of shape (n_cases,)
        Index into `classes` of the class explained.
    classes : array of shape (n_classes,)
        The class labels.
    method : str
        How the scores were made.
    positive_by_symbol, negative_by_symbol : arrays of shape (n_cases, n_channels, n_symbols)
        Where the method has them: the scores by the symbol that carried them, else None.
    series : array of shape (n_cases, n_channels, n_timepoints) or None
        The values that were explained, NaN where nothing was observed.
    probabilities : array of shape (n_cases, n_classes) or None
        What the model gave each class.
    seconds, forward_passes : arrays of shape (n_cases,) or None
        What explaining each case took: time, and how often the model was asked.
    case : array of shape (n_cases,)
        Which case each entry explains: its number among those that were given, which by default
        is that of the entry.
    has_sign : bool
        Whether the method knows evidence against the class; else `negative` is 0 for want of it.
    has_channels : bool
        Whether the method tells channels apart; else each has an equal share.
    """

    positive_by_channel: FloatArray
    negative_by_channel: FloatArray
    logit: FloatArray
    base: FloatArray
    target: NDArray[np.int64]
    classes: NDArray[Any]
    method: str
    positive_by_symbol: FloatArray | None = None
    negative_by_symbol: FloatArray | None = None
    series: FloatArray | None = None
    probabilities: FloatArray | None = None
    seconds: FloatArray | None = None
    forward_passes: FloatArray | None = None
    case: NDArray[np.int64] = None  # type: ignore[assignment]
    has_sign: bool = True
    has_channels: bool = True

    def __post_init__(self) -> None:
        shape = self.positive_by_channel.shape
        case: Any = self.case
        if case is None:
            object.__setattr__(self, "case", np.arange(len(self.target)))
        if len(shape) != 3 or self.negative_by_channel.shape != shape:
            raise InvalidInputError(
                f"scores must have shape (n_cases, n_channels, n_timepoints), got {shape} for and "
                f"{self.negative_by_channel.shape} against"
            )
        for name in ("logit", "base", "target"):
            if getattr(self, name).shape != shape[:1]:
                raise InvalidInputError(
                    f"{name} must have one entry for each of the {shape[0]} cases, "
                    f"got shape {getattr(self, name).shape}"
                )
        if self.classes.ndim != 1:
            raise InvalidInputError(
                f"classes must be a list of labels, got shape {self.classes.shape}"
            )
        C = len(self.classes)
        if not ((self.target >= 0) & (self.target < C)).all():
            raise InvalidInputError(
                f"target must point to one of the {C} classes, "
                f"got {self.target.min()}..{self.target.max()}"
            )
        by_symbol = [
            part for part in (self.positive_by_symbol, self.negative_by_symbol) if part is not None
        ]
        symbols = (*shape[:2], *by_symbol[0].shape[-1:]) if by_symbol else ()
        for name, expected in (
            ("positive_by_symbol", symbols),
            ("negative_by_symbol", symbols),
            ("series", shape),
            ("probabilities", (shape[0], C)),
            ("seconds", shape[:1]),
            ("forward_passes", shape[:1]),
            ("case", shape[:1]),
        ):
            part = getattr(self, name)
            if part is not None and part.shape != expected:
                raise InvalidInputError(f"{name} must have shape {expected}, got {part.shape}")

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

    @property
    def lengths(self) -> IntArray:
        """Number of time points of each case, without padding if `series` is known: (n_cases,)."""
        if self.series is None:
            return np.full(len(self), self.positive_by_channel.shape[2])
        return observed_lengths(~np.isnan(self.series))

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, cases: Any) -> Attribution:
        """Return some of the cases; a single index keeps the leading axis."""
        if isinstance(cases, int | np.integer):
            if not -len(self) <= cases < len(self):
                raise IndexError(f"case {cases} asked for, but there are {len(self)} cases")
            cases = [cases]
        return replace(self, **{name: part[cases] for name, part in self.by_case().items()})

    def by_class(self) -> list[Attribution]:
        """Return an attribution for each class explained, in the order of `classes`."""
        return [self[self.target == c] for c in np.unique(self.target)]

    def by_case(self) -> dict[str, NDArray[Any]]:
        """Return the fields that have one entry per case and are known, by name."""
        return {
            field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in _OF_ALL_CASES and getattr(self, field.name) is not None
        }

    def top(self, k: int = 3, case: int = 0, by_channel: bool = False) -> list[Interval]:
        """Return the intervals of a case that say most, the strongest first.

        Net evidence is looked at, so that moments which speak for and against alike cancel. A
        point belongs to an interval if its evidence reaches half of the largest of the case; a
        dip is bridged where what lies on both sides outweighs it. Intervals are ranked by their
        share: their evidence over that of the whole case, for and against together.

        Parameters
        ----------
        k : int
            How many intervals at most. There may be fewer, and none if there is no evidence.
        case : int
            The case.
        by_channel : bool
            False looks at the sum over channels and names the channel that carries most of each
            interval. True finds the intervals of each channel by itself.

        Examples
        --------
        >>> import numpy as np
        >>> scores = np.zeros((1, 2, 50))
        >>> scores[0, 1, 10:20] = 3
        >>> one = np.zeros(1)
        >>> why = Attribution(
        ...     scores, 0 * scores, one, one, one.astype(int), np.array(["run", "walk"]), "by hand"
        ... )
        >>> why.top()
        [Interval(10:20, channel 1, for 'run', share 1)]
        """
        check_count("k", k, 1)
        one = self[index(case)]
        net = (one.positive_by_channel - one.negative_by_channel)[0]
        return top_intervals(net, self.classes[one.target].tolist()[0], k, by_channel)

    def to_frame(self) -> pd.DataFrame:
        """Return a tidy data frame: one row for each case, channel and time point.

        Its columns are case, channel, time, class (the one explained), value (if `series` is
        known), positive, negative and net. Padding is left out.
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("pandas", "pandas") from None
        shape = self.positive_by_channel.shape
        inside = np.broadcast_to(np.arange(shape[2]) < self.lengths[:, None, None], shape)
        row, channel, time = np.nonzero(inside)
        columns = {
            "case": self.case[row],
            "channel": channel,
            "time": time,
            "class": self.classes[self.target[row]],
        }
        if self.series is not None:
            columns["value"] = self.series[inside]
        columns["positive"] = self.positive_by_channel[inside]
        columns["negative"] = self.negative_by_channel[inside]
        columns["net"] = columns["positive"] - columns["negative"]
        return pd.DataFrame(columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all to one npz file, whole or not at all; class labels may be text or numbers."""
        storage.write(path, {field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Attribution:
        """Read what `save` wrote. Nothing in the file is run, so it may come from anywhere."""
        return cls(**storage.read(path))

    def plot(
        self, case: int = 0, channels: Sequence[int] | None = None, y: ArrayLike | None = None
    ) -> Figure:
        """Draw a case: its series, the evidence for and against the class, the probabilities.

        Up to eight channels are drawn one below the other. Of more, those with most evidence are
        drawn, above a map of the evidence in all of them.

        Parameters
        ----------
        case : int
            The case.
        channels : list of int or None
            The channels to draw; None is all of them.
        y : array of shape (n_cases,) or None
            The true labels, for the title.

        Returns
        -------
        matplotlib.figure.Figure
            Save it with ``figure.savefig("case.png")``. It does not belong to pyplot, so there is
            nothing to close.
        """
        from timesliver import plots

        return plots.draw_case(self, case, channels, y)

    def plot_class_average(
        self, channels: Sequence[int] | None = None, y: ArrayLike | None = None
    ) -> Figure:
        """Draw the mean series and the mean evidence of the cases explained as each class.

        Parameters
        ----------
        channels : list of int or None
            The channels to draw, one column each. None chooses those with most evidence: up to
            six, or with more than eight classes the one that says most about each class.
        y : array of shape (n_cases,) or None
            The true labels; the titles then say how many of the cases are of the class.

        Returns
        -------
        matplotlib.figure.Figure
            One row per class that was explained, or a grid of them.
        """
        from timesliver import plots

        return plots.draw_class_averages(self, channels, y)

    def to_html(
        self,
        path: str | os.PathLike[str],
        y: ArrayLike | None = None,
        title: str | None = None,
        settings: JSONDict | None = None,
    ) -> None:
        """Write a page to look through all cases in a browser; it needs no network.

        Parameters
        ----------
        path : str or path
            The file to write.
        y : array of shape (n_cases,) or None
            The true labels.
        title : str or None
            Heading of the page.
        settings : dict or None
            What to list as the settings of the model.
        """
        from timesliver import report

        several = len(np.unique(self.case)) < len(self)
        classes = self.by_class() if several else [self]
        report.write(path, classes, y=y, title=title, settings=settings)

    def __repr__(self) -> str:
        n_cases, n_channels, n_timepoints = self.positive_by_channel.shape
        return (
            f"Attribution({self.method!r}, n_cases={n_cases}, n_channels={n_channels}, "
            f"n_timepoints={n_timepoints}, n_classes={len(self.classes)})"
        )


def join(parts: Sequence[Attribution]) -> Attribution:
    """Return the cases of several attributions in one; all else is that of the first."""
    if len(parts) == 1:
        return parts[0]
    by_case = [part.by_case() for part in parts]
    return replace(
        parts[0],
        **{name: np.concatenate([part[name] for part in by_case]) for name in by_case[0]},
    )
