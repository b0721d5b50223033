"""Truth and attribution of one case, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from timesliver.bench.figures.spec import FigureSpec, series_names
from timesliver.bench.tables.build import as_text
from timesliver.bench.tables.runs import Run, distinct
from timesliver.errors import InvalidInputError
from timesliver.plots.panel import AGAINST, FOR

__all__ = ["draw_panels"]

_TRUTH = "#E69F00"
_STRIP = 0.42  # the part of a panel's height that shows the evidence


def draw_panels(spec: FigureSpec, runs: Sequence[Run], labels: Mapping[str, str]) -> Figure:
    """Draw a row of panels for each method, a column for each data set."""
    done = [run for run in runs if run.status == "done"]
    if not done:
        raise InvalidInputError(
            f"figure {spec.name!r} has nothing to draw: no {spec.task!r} job is done; "
            f"run the suite first"
        )
    names = series_names(runs, spec.by, labels)
    datasets = distinct(run.get(spec.panel) for run in runs)
    figure = Figure(
        figsize=(0.8 + 3.2 * len(datasets), 0.9 + 1.5 * len(names)), layout="constrained"
    )
    axes = figure.subplots(len(names), len(datasets), squeeze=False)
    for row, (series, name) in enumerate(names.items()):
        for column, dataset in enumerate(datasets):
            ax = axes[row][column]
            mine = [
                run
                for run in runs
                if run.get(spec.panel) == dataset
                and tuple(run.get(field) for field in spec.by) == series
            ]
            ax.set(yticks=[], ylim=(0, 1))
            ax.spines[["top", "right", "left"]].set_visible(False)
            if row == 0:
                ax.set_title(as_text(dataset, labels), fontsize="medium")
            if row == len(names) - 1:
                ax.set_xlabel("time point")
            if column == 0:
                ax.set_ylabel(name, rotation=0, ha="right", va="center", wrap=True)
            if mine and mine[0].status == "done":
                _draw(ax, mine[0])
            elif mine:
                word = mine[0].status.replace("na", "does not apply")
                ax.text(0.5, 0.5, word, ha="center", transform=ax.transAxes)
                ax.set_xticks([])
    figure.legend(
        handles=[
            Line2D([], [], color="0.35", linewidth=0.8, label="series"),
            Patch(color=_TRUTH, alpha=0.35, label="truth"),
            Patch(color=FOR, label="evidence for the class"),
            Patch(color=AGAINST, label="evidence against it"),
        ],
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )
    figure.suptitle(spec.title)
    return figure


def _draw(ax: Axes, run: Run) -> None:
    """Draw the series on the truth, and the evidence below."""
    series = np.atleast_2d(np.array(run.result["series"], dtype=np.float64))  # (v, L)
    positive = np.array(run.result["positive"], dtype=np.float64)  # (L,)
    given = run.result.get("negative")
    negative = np.zeros_like(positive) if given is None else np.array(given, dtype=np.float64)
    n = series.shape[1]
    time, edges = np.arange(n), np.arange(n + 1) - 0.5
    if run.result.get("salient") is not None:
        truth = np.atleast_2d(np.array(run.result["salient"], dtype=np.float64)).max(axis=0)
        ax.stairs(truth, edges, fill=True, color=_TRUTH, alpha=0.35, linewidth=0)
    low, high = float(series.min()), float(series.max())
    scaled = (series - low) / ((high - low) or 1.0)
    for channel in scaled:
        ax.plot(time, _STRIP + 0.04 + (0.84 - _STRIP) * channel, color="0.35", linewidth=0.7)
    up, down = max(float(positive.max()), 0.0), max(float(negative.max()), 0.0)
    unit = (_STRIP - 0.04) / ((up + down) or 1.0)
    line = 0.02 + unit * down
    for scores, colour, sign in ((positive, FOR, 1), (negative, AGAINST, -1)):
        top = line + sign * unit * scores.clip(0)
        ax.stairs(top, edges, baseline=line, fill=True, color=colour)
    ax.axhline(line, color="0.5", linewidth=0.5)
    ax.set_xlim(-0.5, n - 0.5)
    ax.text(
        0.99,
        0.98,
        f"case {run.result.get('case', 0)}, class {run.result.get('class', '?')}",
        ha="right",
        va="top",
        fontsize="x-small",
        color="0.3",
        transform=ax.transAxes,
    )
