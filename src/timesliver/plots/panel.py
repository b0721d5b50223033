"""What the drawings share: a series on the tint of its evidence, and the checks of requests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from timesliver.errors import InvalidInputError
from timesliver.thinning import extremes, strongest
from timesliver.typing import FloatArray, IntArray

__all__ = [
    "AGAINST",
    "FOR",
    "Scale",
    "add_legend",
    "as_channels",
    "as_labels",
    "as_text",
    "column_starts",
    "draw_panel",
    "most_telling",
    "span_of",
]

FOR, AGAINST = "#0072B2", "#D55E00"  # blue and vermillion: safe for colour-blind eyes
_MOST_COLUMNS = 1500  # time points drawn; more are thinned
_STRIP = 0.3  # the part of a panel's height that shows the evidence


@dataclass(frozen=True)
class Scale:
    """The largest evidence of either sign, and of the net: one scale for all panels."""

    positive: float
    negative: float
    net: float

    @classmethod
    def of(cls, positive: FloatArray, negative: FloatArray) -> Scale:
        """Measure all that will be drawn."""
        up, down = float(positive.max()), float(negative.max())
        least = max(up, down) / 8 or 1.0  # keeps the line off the edge
        net = float(np.abs(positive - negative).max())
        return cls(max(up, least), max(down, least), net or 1.0)


def draw_panel(
    ax: Axes,
    positive: FloatArray,
    negative: FloatArray,
    scale: Scale,
    values: FloatArray | None,
    band: Sequence[FloatArray] = (),
    span: tuple[float, float] | None = None,
) -> None:
    """Draw evidence above and below a line, and over it the series on the tint of the net."""
    n = len(positive)
    starts = column_starts(n)
    edges = np.append(starts, n) - 0.5
    bottom, top = (0.03, _STRIP - 0.02) if values is not None else (0.04, 0.96)
    unit = (top - bottom) / (scale.positive + scale.negative)
    line = bottom + unit * scale.negative
    for scores, colour, sign in ((positive, FOR, 1), (negative, AGAINST, -1)):
        ax.stairs(
            line + sign * unit * strongest(scores, starts),
            edges,
            baseline=line,
            fill=True,
            color=colour,
            transform=ax.get_xaxis_transform(),
        )
    ax.plot([0, 1], [line, line], color="0.5", linewidth=0.6, transform=ax.transAxes)
    ax.spines[["top", "right"]].set_visible(False)
    if values is None:
        ax.set(xlim=(-0.5, n - 0.5), ylim=(0, 1), yticks=[])
        return
    low, high = span_of(values) if span is None else span
    floor = low - (high - low) * (_STRIP + 0.04) / (1 - _STRIP - 0.08)
    ceiling = high + (high - low) * 0.04 / (1 - _STRIP - 0.08)
    net = strongest(positive - negative, starts) / scale.net
    tint = np.empty((1, len(starts), 4))
    tint[0, :, :3] = np.where(net[:, None] > 0, to_rgb(FOR), to_rgb(AGAINST))
    tint[0, :, 3] = 0.5 * np.abs(net)
    extent = (-0.5, edges[-1], floor + _STRIP * (ceiling - floor), ceiling)
    ax.imshow(tint, extent=extent, aspect="auto", interpolation="nearest")
    if band:
        lower, upper = extremes(band[0], starts)[0], extremes(band[1], starts)[1]
        ax.fill_between(starts, lower, upper, color="0.5", alpha=0.3, linewidth=0)
    time = np.arange(n)
    if len(starts) < n:  # the lowest and the highest of each column
        time = np.repeat(starts, 2)
        values = np.stack(extremes(values, starts), axis=1).ravel()
    ax.plot(time, values, color="0.1", linewidth=0.9)
    gap = np.isnan(np.concatenate([[np.nan], values, [np.nan]]))
    alone = ~gap[1:-1] & gap[:-2] & gap[2:]  # a line would not show these
    ax.plot(time[alone], values[alone], ".", color="0.1", markersize=3)
    ticks = np.asarray(MaxNLocator(3).tick_values(low, high))
    ax.set(xlim=(-0.5, n - 0.5), ylim=(floor, ceiling))
    ax.set_yticks(ticks[(ticks >= low) & (ticks <= high)])


def add_legend(figure: Figure, spread: bool = False) -> None:
    """Say below a figure what the colours mean."""
    handles = [
        Patch(color=FOR, label="evidence for (above the line)"),
        Patch(color=AGAINST, label="evidence against (below the line)"),
    ]
    if spread:
        handles.append(Patch(color="0.85", label="one standard deviation"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), frameon=False)


def column_starts(n: int) -> IntArray:
    """Return where the columns begin that n time points are thinned to."""
    return np.arange(0, n, math.ceil(n / _MOST_COLUMNS))


def span_of(*values: FloatArray) -> tuple[float, float]:
    """Return lowest and highest value, apart from each other even where there is only one."""
    seen = np.concatenate(values)
    seen = seen[~np.isnan(seen)]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 0.0)
    if high - low > 1e-9 * max(abs(low), abs(high)):
        return low, high
    margin = abs(low) / 2 or 1.0
    return low - margin, high + margin


def most_telling(weights: FloatArray, k: int) -> IntArray:
    """Return the k channels of largest weight, in their own order."""
    return np.sort(np.argsort(-weights, kind="stable")[:k])


def as_channels(channels: Sequence[int] | None, n_channels: int) -> IntArray:
    """Return the channels asked for; None is all."""
    if channels is None:
        return np.arange(n_channels)
    chosen = np.asarray(channels)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not len(chosen):
        raise InvalidInputError(f"channels must be a list of whole numbers, got {channels!r}")
    if chosen.min() < 0 or chosen.max() >= n_channels:
        raise InvalidInputError(f"channels must lie in 0..{n_channels - 1}, got {channels!r}")
    return chosen


def as_labels(y: ArrayLike, n_cases: int) -> NDArray[Any]:
    """Return one true label per case."""
    labels = np.asarray(y)
    if labels.shape != (n_cases,):
        raise InvalidInputError(
            f"y must have one label for each of the {n_cases} cases, got shape {labels.shape}"
        )
    return labels


def as_text(label: Any) -> str:
    """Return a label as text of bounded length that matplotlib takes literally."""
    text = " ".join(str(label).split())
    return (text if len(text) <= 24 else text[:23] + "…").replace("$", r"\$")
