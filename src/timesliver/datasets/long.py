"""Long tables: one row per case and time point.

The columns are a case, a time, either one value per channel or a ``channel`` and its ``value``,
and, if there are labels, the label of the case. Times give the order of a case's points, nothing
more; an empty cell is a missing value.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.datasets.dataset import Dataset, pad
from timesliver.datasets.text import error_at, is_number, parse_numbers
from timesliver.typing import FloatArray

__all__ = ["Row", "is_long", "read_long"]

CASE_NAMES = ("case", "case_id", "id")
TIME_NAMES = ("time", "timestamp", "t")
CHANNEL, VALUE = "channel", "value"
Row = tuple[int, list[str]]


def is_long(header: list[str]) -> bool:
    """Tell whether a header is that of a long table.

    Examples
    --------
    >>> is_long(["case", "time", "x", "y"]), is_long(["0", "1", "label"])
    (True, False)
    """
    names = {name.lower() for name in header}
    return bool(names & set(CASE_NAMES)) and bool(names & set(TIME_NAMES))


def read_long(path: Path, header: list[str], rows: list[Row], label_column: int | None) -> Dataset:
    """Read the rows of a long table.

    Parameters
    ----------
    path : Path
        The file, for messages.
    header : list of str
        Names of the columns.
    rows : list of (line number, cells)
        The rows after the header.
    label_column : int or None
        Position of the column with the labels.

    Returns
    -------
    Dataset
        Cases in the order of their first row. Channels in the order of their columns; those that
        a column names are sorted.
    """
    names = [name.lower() for name in header]
    case_column = next(i for i, name in enumerate(names) if name in CASE_NAMES)
    time_column = next(i for i, name in enumerate(names) if name in TIME_NAMES)
    if not rows:
        raise error_at(path, 1, "a header but no row after it")
    for line, cells in rows:
        if len(cells) != len(header):
            raise error_at(
                path,
                line,
                f"{len(cells)} cells, but the header has {len(header)}; every row needs the same "
                f"number, and a missing value is an empty cell",
            )
        for column in (case_column, time_column):
            if not cells[column].strip():
                raise error_at(
                    path, line, f"the column {header[column]!r} is empty; every row needs it"
                )

    lines = np.array([line for line, _ in rows])
    cases, case_of_row = _in_order_of_appearance([cells[case_column].strip() for _, cells in rows])
    times = _times(path, [(line, cells[time_column].strip()) for line, cells in rows])
    y = None if label_column is None else _labels(path, rows, label_column, cases, case_of_row)
    if CHANNEL in names and VALUE in names:
        channel_column, value_column = names.index(CHANNEL), names.index(VALUE)
        named = [cells[channel_column].strip() for _, cells in rows]
        channels = sorted(set(named), key=lambda n: (0, float(n), n) if is_number(n) else (1, 0, n))
        positions = {name: i for i, name in enumerate(channels)}
        channel_of_row = np.array([positions[name] for name in named])
        values = np.array(
            [parse_numbers([cells[value_column]], path, line, True)[0] for line, cells in rows]
        )
    else:
        used = {case_column, time_column, label_column}
        columns = [i for i in range(len(header)) if i not in used]
        if not columns:
            raise error_at(path, 1, "no column of values; expected one for each channel")
        channels = [header[i] for i in columns]
        channel_of_row = None
        values = np.stack(
            [parse_numbers([cells[i] for i in columns], path, line, True) for line, cells in rows]
        )

    series: list[FloatArray] = []
    order = np.argsort(case_of_row, kind="stable")
    ends = np.cumsum(np.bincount(case_of_row))
    for case, mine in enumerate(np.split(order, ends[:-1])):
        moments, position = np.unique(times[mine], return_inverse=True)
        filled = np.full((len(channels), len(moments)), np.nan)
        channel = np.zeros(len(mine), int) if channel_of_row is None else channel_of_row[mine]
        _check_no_duplicates(path, lines[mine], position * len(channels) + channel, cases[case])
        if channel_of_row is None:
            filled[:, position] = values[mine].T
        else:
            filled[channel, position] = values[mine]
        series.append(filled)
    return Dataset(pad(series), y, name=path.stem, channel_names=tuple(channels))


def _in_order_of_appearance(names: list[str]) -> tuple[list[str], NDArray[np.int64]]:
    positions: dict[str, int] = {}
    codes = np.array([positions.setdefault(name, len(positions)) for name in names])
    return list(positions), codes


def _times(path: Path, cells: list[tuple[int, str]]) -> FloatArray:
    if all(is_number(cell) and math.isfinite(float(cell)) for _, cell in cells):
        return np.array([float(cell) for _, cell in cells])
    moments = []
    for line, cell in cells:
        try:
            moment = datetime.fromisoformat(cell)
        except ValueError:
            raise error_at(
                path,
                line,
                f"the time {cell!r} is neither a number nor a date like 2024-01-31T12:00:00",
            ) from None
        moments.append((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return np.array(moments)


def _labels(
    path: Path, rows: list[Row], label_column: int, cases: list[str], case_of_row: NDArray[np.int64]
) -> NDArray[Any]:
    labels = [""] * len(cases)
    for (line, cells), case in zip(rows, case_of_row, strict=True):
        label = cells[label_column].strip()
        if labels[case] and label and label != labels[case]:
            raise error_at(
                path,
                line,
                f"case {cases[case]!r} has the label {label!r} here and {labels[case]!r} before; "
                f"all rows of a case need the same",
            )
        labels[case] = labels[case] or label
    if "" in labels:
        case = labels.index("")
        line = rows[int(np.argmax(case_of_row == case))][0]
        raise error_at(path, line, f"case {cases[case]!r} has no label; every case needs one")
    return np.array(labels)


def _check_no_duplicates(
    path: Path, lines: NDArray[np.int64], cells: NDArray[np.int64], case: str
) -> None:
    _, first = np.unique(cells, return_index=True)
    if len(first) < len(cells):
        again = np.setdiff1d(np.arange(len(cells)), first)[0]
        earlier = lines[np.argmax(cells == cells[again])]
        raise error_at(
            path,
            int(lines[again]),
            f"case {case!r} has this time point a second time (first in line {earlier}); "
            f"each may occur once",
        )
