"""Average ranks over data sets, as a critical difference diagram."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from timesliver.bench.figures.spec import FigureSpec, series_names
from timesliver.bench.tables.cells import Cell
from timesliver.bench.tables.runs import Measured, Run, distinct
from timesliver.bench.tables.significance import Field
from timesliver.errors import InvalidInputError
from timesliver.metrics import critical_difference_diagram

__all__ = ["draw_ranks"]


def draw_ranks(spec: FigureSpec, runs: Sequence[Run], labels: Mapping[str, str]) -> Figure:
    """Draw the ranks of all methods that have results on at least half of the data sets.

    Only data sets count on which all of these have one.
    """
    names = series_names(runs, spec.by, labels)
    groups: dict[object, list[Run]] = {}
    for run in runs:
        key = tuple(run.get(name) for name in spec.by)
        groups.setdefault((run.get(spec.panel), key), []).append(run)
    means = [
        [
            Cell(Measured.of(groups.get((dataset, key), []), spec.value, spec.scale, None)).mean
            for key in names
        ]
        for dataset in distinct(run.get(spec.panel) for run in runs)
    ]
    results = np.array(means, dtype=np.float64).reshape(len(means), len(names))  # None is NaN
    field = Field.of(results)
    if len(field.ranked) < 3 or len(field.results) < 2:
        raise InvalidInputError(
            f"figure {spec.name!r} needs results of three methods on the same two data sets; "
            f"there are {len(field.ranked)} methods on {len(field.results)}"
        )
    figure = critical_difference_diagram(
        field.results,
        [list(names.values())[i] for i in field.ranked],
        higher_is_better=spec.best == "max",
    )
    figure.suptitle(f"{spec.title} ({len(field.results)} data sets)", y=1.02)
    figure.supxlabel(
        "A bar joins methods that one-sided Wilcoxon tests with Holm's correction, by aeon, do not "
        "part;\nthe table's two-sided tests correct for all pairs and part fewer.",
        y=0,
        fontsize=10,
    )
    return figure
