"""Results against something: curves e(u), sensitivity, cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from timesliver.bench.figures.spec import FigureSpec, series_names
from timesliver.bench.tables.build import as_text
from timesliver.bench.tables.cells import Cell
from timesliver.bench.tables.runs import Measured, Run, distinct
from timesliver.errors import InvalidInputError

__all__ = ["draw_bars", "draw_lines"]

_MARKERS = "osD^v<>PXp*hd8"
_OURS = "#0072B2"


def draw_lines(spec: FigureSpec, runs: Sequence[Run], labels: Mapping[str, str]) -> Figure:
    """Draw mean and spread of a result against a field; a panel for each data set.

    A line without any value on the x axis is a dashed level, as a reference.
    """
    figure, axes, panels = _panels(spec, runs, labels)
    names = series_names(runs, spec.by, labels)
    styles = _styles(list(names.values()))
    places = _places([run.get(spec.x) for run in runs])
    for row, (y_label, key) in enumerate(spec.measures.items()):
        for column, panel in enumerate(panels):
            ax = axes[row][column]
            for series, name in names.items():
                mine = [
                    run
                    for run in runs
                    if run.get(spec.panel) == panel
                    and tuple(run.get(field) for field in spec.by) == series
                ]
                if mine:
                    style = {"label": name or None, **styles[name]}
                    _draw_line(ax, spec, mine, key, places, style)
            ax.set(xlabel=spec.x_label or spec.x.replace("_", " "))
            if column == 0:
                ax.set_ylabel(y_label)
            if "x" in spec.log:
                ax.set_xscale("log")
                seen = {places[run.get(spec.x)] for run in runs if run.get(spec.panel) == panel}
                ticks = sorted(place for place in seen if place is not None)
                ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
                ax.xaxis.set_minor_locator(NullLocator())
            elif all(place is None or place == int(place) for place in places.values()):
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            if not ax.lines:
                ax.text(0.5, 0.5, "not run yet", transform=ax.transAxes, ha="center")
            if "y" in spec.log:
                ax.set_yscale("log")
    _legend(figure, axes)
    return figure


def draw_bars(spec: FigureSpec, runs: Sequence[Run], labels: Mapping[str, str]) -> Figure:
    """Draw a bar for each method, its spread as a line; a panel for each data set."""
    names = series_names(runs, spec.by, labels)
    figure, axes, panels = _panels(spec, runs, labels, height=1.2 + 0.24 * len(names))
    for row, (y_label, key) in enumerate(spec.measures.items()):
        for column, panel in enumerate(panels):
            ax = axes[row][column]
            for place, series in enumerate(names):
                mine = [
                    run
                    for run in runs
                    if run.get(spec.panel) == panel
                    and tuple(run.get(field) for field in spec.by) == series
                ]
                cell = Cell(Measured.of(mine, key, spec.scale, None))
                if cell.mean is not None:
                    colour = _OURS if "TimeSliver" in names[series] else "0.6"
                    ax.barh(place, cell.mean, xerr=cell.spread, color=colour, ecolor="0.2")
                elif cell.status:
                    ax.text(0, place, f" {cell.status.replace('na', 'NA')}", va="center")
            ax.set(xlabel=y_label, ylim=(len(names) - 0.4, -0.6))
            ax.set_yticks(range(len(names)), list(names.values()) if column == 0 else [])
            ax.set_xscale("log" if "x" in spec.log else "linear")
    return figure


def _draw_line(
    ax: Axes,
    spec: FigureSpec,
    runs: Sequence[Run],
    key: str,
    places: Mapping[Any, float | None],
    style: Mapping[str, Any],
) -> None:
    groups: dict[float, list[Run]] = {}
    level = []
    for run in runs:
        place = places[run.get(spec.x)]
        if place is None:
            level.append(run)
        else:
            groups.setdefault(place, []).append(run)
    points = []
    for place, members in sorted(groups.items()):
        cell = Cell(Measured.of(members, key, spec.scale, None))
        if cell.mean is not None:
            points.append((place, cell.mean, cell.spread or 0.0))
    if points:
        x, mean, spread = zip(*points, strict=True)
        ax.plot(x, mean, **style)
        if any(spread):
            low = [m - s for m, s in zip(mean, spread, strict=True)]
            high = [m + s for m, s in zip(mean, spread, strict=True)]
            ax.fill_between(x, low, high, color=style["color"], alpha=0.12, linewidth=0)
    elif level and not groups:
        cell = Cell(Measured.of(level, key, spec.scale, None))
        if cell.mean is not None:
            ax.axhline(cell.mean, color=style["color"], linestyle="--", label=style["label"])


def _places(values: Sequence[Any]) -> dict[Any, float | None]:
    """Return where values lie on the axis; None for those that have no place there.

    Of lists the one number counts, or, where any list has several, how many there are.
    """
    several = any(isinstance(value, tuple) and len(value) != 1 for value in values)
    places: dict[Any, float | None] = {}
    for value in values:
        number = value
        if isinstance(value, tuple):
            number = len(value) if several else value[0]
        try:
            places[value] = float(number)
        except (TypeError, ValueError):
            places[value] = None
    return places


def _panels(
    spec: FigureSpec, runs: Sequence[Run], labels: Mapping[str, str], height: float = 3.2
) -> tuple[Figure, list[list[Axes]], list[Any]]:
    """Return a grid: a row for each result, a column for each data set."""
    if not runs:
        raise InvalidInputError(
            f"figure {spec.name!r} has nothing to draw: there is no record of the task "
            f"{spec.task!r} that it asks for; run the suite first"
        )
    panels = distinct(run.get(spec.panel) for run in runs)
    rows = len(spec.measures)
    figure = Figure(figsize=(1.2 + 3.6 * len(panels), height * rows + 0.6), layout="constrained")
    axes = figure.subplots(rows, len(panels), squeeze=False)
    for column, panel in enumerate(panels):
        axes[0][column].set_title(as_text(panel, labels), fontsize="medium")
    for ax in axes.ravel():
        ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle(spec.title)
    return figure, axes.tolist(), panels


def _styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a look for each line: ours thick and blue, the others told apart by their markers."""
    colours = colormaps["tab20"].colors  # type: ignore[attr-defined]
    styles: dict[str, dict[str, Any]] = {}
    others = 0
    for name in names:
        ours = not name or name.startswith("TimeSliver")
        if ours and not any(s["color"] == _OURS for s in styles.values()):
            styles[name] = {"color": _OURS, "marker": "o", "linewidth": 2.6, "zorder": 3}
        else:
            styles[name] = {
                "color": colours[(2 + 2 * others + others // 9) % 20],
                "marker": _MARKERS[(others + 1) % len(_MARKERS)],
                "linewidth": 1.1,
            }
            others += 1
        styles[name]["markersize"] = 4
    return styles


def _legend(figure: Figure, axes: Sequence[Sequence[Axes]]) -> None:
    entries = {}
    for line in axes:
        for ax in line:
            handles, names = ax.get_legend_handles_labels()
            entries.update(dict(zip(names, handles, strict=True)))
    if len(entries) > 1:
        columns = max(1, min(len(entries), math.floor(figure.get_figwidth() / 1.9)))
        figure.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=columns,
            frameon=False,
            fontsize="small",
        )
