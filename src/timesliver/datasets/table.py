"""Tables in ``.csv``: wide (one row per case) or long (one row per case and time point)."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.long import Row, is_long, read_long
from timesliver.datasets.text import MISSING, error_at, is_number, parse_numbers, read_lines
from timesliver.errors import InvalidInputError, InvalidParameterError

__all__ = ["read_csv"]

LABEL_NAMES = ("label", "class", "target", "y")
CASE_NAMES = ("case", "case_id", "id", "index")


def read_csv(path: Path, label: str | None = "auto") -> Dataset:
    """Read a table separated by commas, semicolons or tabs.

    A table with a column ``case`` (or ``case_id``, ``id``) and a column ``time`` (or
    ``timestamp``, ``t``) is long, see `timesliver.datasets.long`. Any other is wide: univariate,
    one row per case, one column per time point. In a wide table an empty cell is a missing value,
    an unnamed first column or one named ``case``, ``case_id``, ``id`` or ``index`` is ignored, and
    the first row is a header if it holds no number, counts the columns, or holds one of the names
    that have a meaning here.

    Parameters
    ----------
    path : Path
        The file.
    label : str or None, default="auto"
        Name of the column with the labels; "first" or "last" also work without a header. "auto"
        takes the column named ``label``, ``class``, ``target`` or ``y`` (``y`` only if there is no
        ``x``), else the first or the last column of a wide table if it holds text. None: there
        are no labels.

    Returns
    -------
    Dataset
        Labels are strings.
    """
    rows = _rows(path)
    header = [cell.strip() for cell in rows[0][1]]
    if is_long(header):
        return read_long(path, header, rows[1:], _named_label(path, header, label, rows))
    names = header if _is_header(rows, label) else []
    body = rows[1:] if names else rows
    if not body:
        raise error_at(path, rows[0][0], "a header but no case after it")
    width = len(rows[0][1])
    for line, cells in rows:
        if len(cells) != width:
            raise error_at(
                path,
                line,
                f"{len(cells)} cells, but line {rows[0][0]} has {width}; every row needs the same "
                f"number, and a missing value is an empty cell",
            )
    label_column = _label_column(path, names, body, label)
    skipped = {label_column} | {i for i, name in enumerate(names) if _is_identifier(i, name)}
    kept = [i for i in range(width) if i not in skipped]
    if not kept:
        raise error_at(path, rows[0][0], "no column of values; expected one for each time point")
    X = np.stack(
        [
            parse_numbers([cells[i] for i in kept], path, line, blank_is_missing=True)
            for line, cells in body
        ]
    )
    y = None
    if label_column is not None:
        for line, cells in body:
            if not cells[label_column].strip():
                raise error_at(path, line, "the label is empty; every case needs one")
        y = np.array([cells[label_column].strip() for _, cells in body])
    return Dataset(X[:, None, :], y, name=path.stem)


def _rows(path: Path) -> list[Row]:
    lines = read_lines(path)
    first = next(line for line in lines if line.strip())
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(lines, delimiter=delimiter)
    rows = []
    try:
        for cells in reader:
            if cells and (len(cells) > 1 or cells[0].strip()):
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        raise error_at(path, reader.line_num, f"not a table of cells ({error})") from None
    return rows


def _is_header(rows: list[Row], label: str | None) -> bool:
    cells = [cell.strip() for cell in rows[0][1]]
    if not any(is_number(cell) for cell in cells):
        return True
    named = cells[1:] if not cells[0] else cells
    if named in ([str(i) for i in range(len(named))], [str(i + 1) for i in range(len(named))]):
        return True
    for i, cell in enumerate(cells):
        meaningful = cell.lower() in (*LABEL_NAMES, *CASE_NAMES) or (cell == label and cell)
        if meaningful and not is_number(cell):
            # "y" may also be a label: then it stands in other rows, too
            return not any(len(row) > i and row[i].strip() == cell for _, row in rows[1:])
    return False


def _is_identifier(position: int, name: str) -> bool:
    return name.lower() in CASE_NAMES or (position == 0 and name in ("", "Unnamed: 0"))


def _named_label(path: Path, names: list[str], label: str | None, rows: list[Row]) -> int | None:
    """Return the position of the label column by its name, or None."""
    if label is None:
        return None
    if label == "auto":
        lowered = [name.lower() for name in names]
        known = LABEL_NAMES[:-1] if "x" in lowered else LABEL_NAMES  # x, y, z are channels
        columns = [i for i, name in enumerate(lowered) if name in known]
        if len(columns) > 1:
            raise InvalidInputError(
                f"{path}: the columns {' and '.join(repr(names[i]) for i in columns)} could both "
                f"be the labels; say which with the option label"
            )
        return columns[0] if columns else None
    if label in names:
        return names.index(label)
    if label in ("first", "last"):
        return 0 if label == "first" else len(rows[0][1]) - 1
    held = ", ".join(repr(name) for name in (*names[:2], *names[2:][-2:])) or "no names"
    raise InvalidParameterError(
        f"label={label!r}, but {path} has no such column (it has {held}); "
        f"'first' and 'last' work too"
    )


def _label_column(path: Path, names: list[str], body: list[Row], label: str | None) -> int | None:
    named = _named_label(path, names, label, body)
    if named is not None or label != "auto":
        return named
    last = len(body[0][1]) - 1
    texts = [i for i in sorted({0, last}) if _is_text(body, i)]
    if names and _is_identifier(0, names[0]):
        texts = [i for i in texts if i]
    if len(texts) > 1:
        raise InvalidInputError(
            f"{path}: the first and the last column both hold text; say which one holds the "
            f"labels with the option label"
        )
    return texts[0] if texts else None


def _is_text(body: list[Row], column: int) -> bool:
    """Tell whether a column holds labels; a table of numbers with a slip in one cell does not."""
    cells = [cells[column].strip() for _, cells in body]
    texts = sum(not is_number(cell) and cell.lower() not in {*MISSING, ""} for cell in cells)
    return 2 * texts > len(cells)
