"""What the commands show: results on the standard output, notes and errors beside it."""

from __future__ import annotations

import csv
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["Output", "error", "note", "write_csv"]


def note(message: str) -> None:
    """Say something beside the result."""
    Console(stderr=True).print(message, markup=False, highlight=False, soft_wrap=True)


def error(message: str) -> None:
    """Say in one line what went wrong."""
    text = Text.assemble(("error: ", "bold red"), (message, "red"))
    Console(stderr=True).print(text, highlight=False, soft_wrap=True)


class Output:
    """How a command talks: tables for people, or one JSON object for scripts.

    Parameters
    ----------
    as_json : bool
        Print `result` as JSON, and nothing else on the standard output.
    quiet : bool
        Print neither tables nor notes.
    """

    def __init__(self, as_json: bool = False, quiet: bool = False) -> None:
        self.as_json, self.quiet = as_json, quiet

    @property
    def shows_progress(self) -> bool:
        """Whether people want to see how far a long computation is."""
        return not self.quiet

    def note(self, message: str) -> None:
        """Say something beside the result, on the standard error stream."""
        if not self.quiet:
            note(message)

    def say(self, message: str) -> None:
        """Say a line that belongs to the result."""
        if not (self.as_json or self.quiet):
            _console().print(message, markup=False, highlight=False, soft_wrap=True)

    def table(
        self, rows: Iterable[Sequence[Any]], header: Sequence[str] = (), title: str | None = None
    ) -> None:
        """Show a table; without a header its first column names what the others say."""
        if self.as_json or self.quiet:
            return
        table = Table(title=title, title_justify="left", show_header=bool(header), box=None)
        rows = [[_text(cell) for cell in row] for row in rows]
        for i, name in enumerate(header or ("",) * max(map(len, rows), default=0)):
            right = bool(header) and all(_is_figure(row[i]) for row in rows)
            table.add_column(
                Text(name), justify="right" if right else "left", style="" if header or i else "dim"
            )
        for row in rows:
            table.add_row(*map(Text, row))
        _console().print(table)

    def result(self, **content: Any) -> None:
        """Print the result for scripts."""
        if self.as_json:
            from timesliver.io import as_json

            text = json.dumps(as_json(content), ensure_ascii=False, allow_nan=False)
            sys.stdout.write(text + "\n")


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table, whole or not at all."""
    from timesliver.io import replacing

    with replacing(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def _console() -> Console:
    # into a file or pipe, lines are as long as they need to be
    return Console() if sys.stdout.isatty() else Console(width=200)


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return "" if math.isnan(value) else f"{value:.3f}"
    return "" if value is None else str(value)


def _is_figure(text: str) -> bool:
    return text.strip().removeprefix("-").replace(".", "", 1).isdecimal() or not text
