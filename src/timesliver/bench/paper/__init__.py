"""The numbers printed in the paper, one CSV file per table, typed as they stand there."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from timesliver.errors import InvalidParameterError

__all__ = ["Printed", "PrintedTable", "load", "names", "uea_categories"]


@dataclass(frozen=True)
class Printed:
    """A number of the paper.

    Attributes
    ----------
    mean : float or None
        The number; None where the paper prints NA or nothing.
    spread : float or None
        The standard deviation printed with it.
    text : str
        What the paper prints.
    """

    mean: float | None
    spread: float | None
    text: str

    @classmethod
    def parse(cls, text: str) -> Printed:
        """Read ``0.94±0.05``, ``0.94``, ``NA`` or ``--``."""
        if text in ("", "--", "NA"):
            return cls(None, None, text)
        mean, _, spread = text.partition("±")
        return cls(float(mean), float(spread) if spread else None, text)


@dataclass(frozen=True, eq=False)
class PrintedTable:
    """A table of the paper.

    Attributes
    ----------
    name : str
        Name of its file, without the ending.
    source : str
        Where in the paper it stands, and what was changed.
    head : str
        What a row is.
    rows, columns : tuple of str
        Names as printed, in the paper's order.
    cells : dict of (row, column) to Printed
        The numbers.
    """

    name: str
    source: str
    head: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: Mapping[tuple[str, str], Printed]

    def get(self, row: str, column: str) -> Printed | None:
        """Return a number by its names, in either order; None where the paper has no such cell.

        Case, blanks and hyphens do not matter: "Ford-A" is "FordA".
        """
        cells = {tuple(map(_comparable, names)): cell for names, cell in self.cells.items()}
        names = _comparable(row), _comparable(column)
        return cells.get(names, cells.get(names[::-1]))


def names() -> tuple[str, ...]:
    """Return the names of all tables typed from the paper."""
    files = (file.name for file in resources.files(__package__).iterdir())
    tables = (file.removesuffix(".csv") for file in files if file.endswith(".csv"))
    return tuple(sorted(set(tables) - {"uea_sets"}))


def load(name: str) -> PrintedTable:
    """Read a table of the paper.

    Parameters
    ----------
    name : str
        One of `names`; ".csv" may follow.

    Examples
    --------
    >>> load("table1").get("TimeSliver", "LowVar")
    Printed(mean=0.99, spread=0.04, text='0.99±0.04')
    """
    stem = name.removesuffix(".csv")
    if stem not in names():
        raise InvalidParameterError(
            f"there is no table {name!r} of the paper; choose one of {', '.join(names())}"
        )
    source, (head, *columns), lines = _read(stem)
    return PrintedTable(
        stem,
        source,
        head,
        tuple(line[0] for line in lines),
        tuple(columns),
        {
            (row, column): Printed.parse(text)
            for row, *texts in lines
            for column, text in zip(columns, texts, strict=True)
        },
    )


def uea_categories() -> dict[str, list[str]]:
    """Return the UEA sets of each category of Table 4, in the paper's order of categories."""
    categories: dict[str, list[str]] = {}
    for dataset, category in _read("uea_sets")[2]:
        categories.setdefault(category, []).append(dataset)
    return categories


def _read(stem: str) -> tuple[str, list[str], list[list[str]]]:
    """Return the remark in the first line, the head and the other lines."""
    text = resources.files(__package__).joinpath(f"{stem}.csv").read_text(encoding="utf-8")
    remark, *lines = text.splitlines()
    head, *body = csv.reader(lines)
    return remark.removeprefix("# "), head, body


def _comparable(name: str) -> str:
    return re.sub(r"[^a-z0-9+]", "", name.casefold())
