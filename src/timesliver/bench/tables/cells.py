"""A table before it is text: cells that know their single results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from timesliver.bench.paper import Printed
from timesliver.bench.tables import formats
from timesliver.bench.tables.runs import Measured, Trial
from timesliver.metrics.summary import spread_of

__all__ = ["Cell", "Column", "Row", "Table"]


@dataclass(frozen=True)
class Cell:
    """What was measured in one place of a table.

    Attributes
    ----------
    measured : Measured
        One number for each trial.
    printed : Printed or None
        What the paper prints there.
    mark : str
        "best", "second" or "".
    significant : bool
        The best differs from the second best beyond chance.
    """

    measured: Measured = field(default_factory=Measured)
    printed: Printed | None = None
    mark: str = ""
    significant: bool = False

    @property
    def values(self) -> Mapping[Trial, float]:
        """The number of each trial."""
        return self.measured.values

    @property
    def n(self) -> int:
        """How many trials."""
        return len(self.values)

    @property
    def mean(self) -> float | None:
        """Mean over the trials; None without any."""
        return float(np.mean(list(self.values.values()))) if self.values else None

    @property
    def spread(self) -> float | None:
        """Standard deviation over the trials (n - 1); None for fewer than two."""
        return spread_of(np.array(list(self.values.values()))) if self.n > 1 else None

    @property
    def difference(self) -> float | None:
        """Our mean minus the paper's."""
        if self.mean is None or self.printed is None or self.printed.mean is None:
            return None
        return self.mean - self.printed.mean

    @property
    def status(self) -> str:
        """One of "done", "partial", "failed", "missing", "na", or "" for a place with no job."""
        m = self.measured
        if self.values:
            return "partial" if m.failed or m.missing else "done"
        return "failed" if m.failed else "missing" if m.missing else "na" if m.na else ""


@dataclass(frozen=True)
class Column:
    """Head of a column and how its numbers are written.

    Attributes
    ----------
    name : str
        The head.
    decimals : int or None
        Digits after the point; None for three significant digits.
    best : str
        "max", "min" or "none".
    summary : bool
        Computed from the other columns, such as a rank.
    """

    name: str
    decimals: int | None = 3
    best: str = "max"
    summary: bool = False


@dataclass(frozen=True)
class Row:
    """Labels at the left, then a cell for each column.

    Attributes
    ----------
    labels : tuple of str
        One for each head of the table.
    cells : tuple of Cell
        One for each column.
    decimals : int or None or "column"
        For a summary row, its own number of digits.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    decimals: int | str | None = "column"

    @property
    def name(self) -> str:
        """All labels in one line."""
        return " / ".join(label for label in self.labels if label)

    @property
    def summary(self) -> bool:
        """Computed from the other rows."""
        return self.decimals != "column"


@dataclass(frozen=True, eq=False)
class Table:
    """A table with its title and remarks; the formats are in `timesliver.bench.tables.formats`.

    Attributes
    ----------
    name : str
        Short name, unique in its suite.
    title : str
        What the table shows.
    heads : tuple of str
        Heads of the labels.
    columns : tuple of Column
        Heads of the cells.
    rows : tuple of Row
        The body.
    notes : tuple of str
        Remarks below the table.
    """

    name: str
    title: str
    heads: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def trials(self) -> list[Trial]:
        """All trials of all cells, in order."""
        return sorted({trial for row in self.rows for cell in row.cells for trial in cell.values})

    def to_markdown(self) -> str:
        """Return the table as GitHub's Markdown."""
        return formats.to_markdown(self)

    def to_csv(self) -> str:
        """Return all numbers unrounded: mean, spread, n, status, paper and difference."""
        return formats.to_csv(self)

    def to_latex(self) -> str:
        """Return a LaTeX table; it needs the packages booktabs and graphicx."""
        return formats.to_latex(self)

    def to_html(self) -> str:
        """Return a ``<figure>`` element with the table."""
        return formats.to_html(self)
