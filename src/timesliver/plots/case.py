"""One case: series, evidence and probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from timesliver.plots.panel import (
    AGAINST,
    FOR,
    Scale,
    add_legend,
    as_channels,
    as_labels,
    as_text,
    column_starts,
    draw_panel,
    most_telling,
)
from timesliver.thinning import strongest
from timesliver.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from timesliver.attribution.result import Attribution

__all__ = ["draw_case"]

_MOST_PANELS = 8  # more channels are drawn as a map
_ABOVE_MAP = 3  # and these many of them as series
_MOST_BARS = 8


def draw_case(
    attribution: Attribution, case: int, channels: Sequence[int] | None, y: ArrayLike | None
) -> Figure:
    """Draw the series, evidence and probabilities of a case; see `Attribution.plot`."""
    one, n_cases = attribution[index(case)], len(attribution)
    n = int(one.lengths[0])
    chosen = as_channels(channels, one.positive_by_channel.shape[1])
    positive = one.positive_by_channel[0, chosen, :n].clip(min=0)
    negative = one.negative_by_channel[0, chosen, :n].clip(min=0)
    scale = Scale.of(positive, negative)
    with_map = len(chosen) > _MOST_PANELS
    weights = np.abs(positive - negative).sum(axis=1)
    rows = most_telling(weights, _ABOVE_MAP if with_map else len(chosen))
    heights = [1.3 if len(rows) > 1 else 2.2] * len(rows)
    if with_map:
        heights.append(min(6.0, max(2.5, 0.12 * len(chosen))))
    figure = Figure(figsize=(11, sum(heights) + 1.2), layout="constrained")
    n_columns = 1 if one.probabilities is None else 2
    grid = figure.add_gridspec(
        len(heights), n_columns, height_ratios=heights, width_ratios=[1, 0.25][:n_columns]
    )
    axes: list[Axes] = []
    for place, row in enumerate(rows):
        axes.append(figure.add_subplot(grid[place, 0], sharex=axes[0] if axes else None))
        values = None if one.series is None else one.series[0, chosen[row], :n]
        draw_panel(axes[-1], positive[row], negative[row], scale, values)
        axes[-1].set_ylabel(f"channel {chosen[row]}")
    if with_map:
        axes.append(figure.add_subplot(grid[-1, 0], sharex=axes[0]))
        _map(axes[-1], positive - negative, chosen)
    for ax in axes[:-1]:
        ax.tick_params(labelbottom=False)
    axes[-1].set_xlabel("time point")
    title = f"case {one.case[0]}, class explained: {as_text(one.classes[one.target[0]])}"
    if one.probabilities is not None:
        probabilities, needed = one.probabilities[0], 0.3 * min(len(one.classes), _MOST_BARS)
        ax = figure.add_subplot(grid[: math.ceil(needed / heights[0]), 1])
        _bars(ax, probabilities, one.classes, int(one.target[0]))
        title += f" (probability {probabilities[one.target[0]]:.3f})"
    if y is not None:
        title += f", true class: {as_text(as_labels(y, n_cases)[case])}"
    figure.suptitle(title)
    figure.align_ylabels(axes)
    add_legend(figure)
    return figure


def _map(ax: Axes, net: FloatArray, channels: IntArray) -> None:
    """Draw the net evidence of many channels as rows of colour."""
    n_channels, n = net.shape
    colours = LinearSegmentedColormap.from_list("evidence", [AGAINST, "white", FOR])
    largest = float(np.abs(net).max()) or 1.0
    image = ax.imshow(
        strongest(net, column_starts(n)),
        extent=(-0.5, n - 0.5, n_channels - 0.5, -0.5),
        aspect="auto",
        interpolation="nearest",
        cmap=colours,
        vmin=-largest,
        vmax=largest,
    )
    rows = np.arange(0, n_channels, math.ceil(n_channels / 20))
    ax.set_yticks(rows, [str(channels[row]) for row in rows], fontsize="small")
    ax.set_ylabel("channel")
    scale = ax.inset_axes((1.01, 0.1, 0.012, 0.8))
    bar = ax.figure.colorbar(image, cax=scale, ticks=[-largest, 0, largest])
    bar.ax.set_yticklabels(["against", "0", "for"])


def _bars(ax: Axes, probabilities: FloatArray, classes: NDArray[Any], target: int) -> None:
    """Draw the probabilities of the likeliest classes, and of the one explained in any case."""
    shown = np.argsort(-probabilities, kind="stable")[:_MOST_BARS]
    if target not in shown:
        shown[-1] = target
    places = np.arange(len(shown))
    colours = ["0.25" if c == target else "0.75" for c in shown]
    bars = ax.barh(places, probabilities[shown], color=colours)
    ax.bar_label(bars, [f"{probabilities[c]:.2f}" for c in shown], padding=2, fontsize="small")
    ax.set(xlim=(0, 1.2), xticks=[], ylim=(len(shown) - 0.4, -0.6))
    ax.set_yticks(places, [as_text(classes[c]) for c in shown])
    for label, c in zip(ax.get_yticklabels(), shown, strict=True):
        label.set_fontweight("bold" if c == target else "normal")
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    left_out = len(shown) < len(classes)
    title = f"probability ({len(shown)} of {len(classes)})" if left_out else "probability"
    ax.set_title(title, fontsize="medium")
