"""Figures of results, drawn from the records as the suites describe them.

`lines` draws curves and bars, `panels` truth and attribution, `ranks` the critical difference
diagram; `spec` reads what a suite wants.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure

from timesliver.bench.figures.lines import draw_bars, draw_lines
from timesliver.bench.figures.panels import draw_panels
from timesliver.bench.figures.ranks import draw_ranks
from timesliver.bench.figures.spec import FigureSpec
from timesliver.bench.tables.build import labels_of
from timesliver.bench.tables.runs import collect, select
from timesliver.io import replacing

if TYPE_CHECKING:
    from timesliver.bench.store import Record
    from timesliver.bench.suites import Suite

__all__ = ["Drawing", "build", "draw"]

_DRAW = {
    "curve": draw_lines,
    "line": draw_lines,
    "bars": draw_bars,
    "panel": draw_panels,
    "ranks": draw_ranks,
}


@dataclass(frozen=True, eq=False)
class Drawing:
    """A figure with its name and title.

    Attributes
    ----------
    name, title : str
        As the suite says.
    figure : matplotlib.figure.Figure
        It does not belong to pyplot, so there is nothing to close.
    """

    name: str
    title: str
    figure: Figure

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figure; the ending of the path decides on the format."""
        target = Path(path)
        options: dict[str, Any] = {}
        if target.suffix == ".svg":  # the same figure gives the same file
            options = {"metadata": {"Date": None}}
        with replacing(target) as draft, mpl.rc_context({"svg.hashsalt": self.name}):
            self.figure.savefig(draft, dpi=150, bbox_inches="tight", **options)
        return target


def build(
    suite: Suite,
    records: Mapping[str, Record] | Iterable[Record],
    preset: str | None = None,
    name: str | None = None,
) -> list[Drawing]:
    """Draw the figures of a suite.

    Parameters
    ----------
    suite : Suite
        Says which figures there are.
    records : dict of hash to Record
        What was run.
    preset : str, optional
        Take the jobs of this preset; by default all that have a record.
    name : str, optional
        Draw this figure alone.

    Returns
    -------
    list of Drawing
    """
    runs, labels = collect(suite, records, preset), labels_of(suite)
    drawings = []
    for content in suite.figures:
        spec = FigureSpec.read(content)
        if name in (None, spec.name):
            chosen = select(runs, spec.task, spec.where, spec.without)
            figure = _DRAW[spec.kind](spec, chosen, labels)
            drawings.append(Drawing(spec.name, spec.title or spec.name, figure))
    return drawings


def draw(
    suite: Suite,
    records: Mapping[str, Record] | Iterable[Record],
    folder: str | os.PathLike[str],
    preset: str | None = None,
    formats: Sequence[str] = ("pdf", "svg", "png"),
) -> list[Path]:
    """Write the figures of a suite to files ``<suite>-<figure>.<format>``.

    Parameters
    ----------
    suite, records, preset
        As for `build`.
    folder : str or path
        An existing folder.
    formats : list of str
        Endings of the files.

    Returns
    -------
    list of Path
        The files.
    """
    return [
        drawing.save(Path(folder) / f"{suite.name}-{drawing.name}.{ending}")
        for drawing in build(suite, records, preset)
        for ending in formats
    ]
