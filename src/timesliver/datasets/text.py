"""Text files line by line, and numbers from their cells; errors name the file and the line."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from timesliver.errors import InvalidInputError
from timesliver.typing import FloatArray

__all__ = ["content_lines", "error_at", "is_number", "parse_numbers", "read_lines"]

MISSING = frozenset({"?", "nan", "na", "n/a", "null"})


def error_at(path: str | os.PathLike[str], line: int, message: str) -> InvalidInputError:
    """Return the error for a mistake in one line of a file."""
    return InvalidInputError(f"{path}:{line}: {message}")


def read_lines(path: Path, comment: str | None = None) -> list[str]:
    """Return the lines of a UTF-8 text file.

    Parameters
    ----------
    path : Path
        The file.
    comment : str or None
        What a comment line starts with. Comments may be in any encoding.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InvalidInputError(f"there is no file {path}; check the name and folder") from None
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror or error}") from None
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidInputError(f"{path} is text in UTF-16; save it as UTF-8")
    if b"\0" in content:
        raise InvalidInputError(
            f"{path} does not hold text, though its ending {path.suffix!r} promises it; "
            f"check that it is the right file, and unpacked"
        )
    text = content.decode("utf-8-sig", errors="surrogateescape")
    if not text.strip():
        raise InvalidInputError(f"{path} is empty; expected series in it")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not text.isascii():
        for number, line in enumerate(lines, start=1):
            foreign = any("\udc80" <= character <= "\udcff" for character in line)
            if foreign and not (comment and line.lstrip().startswith(comment)):
                raise error_at(path, number, "not text in UTF-8; save the file in that encoding")
    return lines


def content_lines(lines: list[str], comment: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is neither blank nor a comment.

    Examples
    --------
    >>> list(content_lines(["% by hand", "", " 1,2 "], comment="%"))
    [(3, '1,2')]
    """
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if text and not text.startswith(comment):
            yield number, text


def parse_numbers(
    cells: Sequence[str], path: Path, line: int, blank_is_missing: bool = False
) -> FloatArray:
    """Return the numbers in some cells of a line, NaN for those that are missing.

    Examples
    --------
    >>> parse_numbers(["1", "2.5", "?"], Path("some.ts"), 12)
    array([1. , 2.5, nan])
    """
    try:
        values = np.array(list(map(float, cells)))
        plain = "_" not in "".join(cells)
    except ValueError:
        plain = False
    if not plain:
        missing = MISSING | {""} if blank_is_missing else MISSING
        for position, cell in enumerate(cells, start=1):
            if not is_number(cell) and cell.strip().lower() not in missing:
                raise error_at(path, line, _not_a_number(cell, position, blank_is_missing))
        values = np.array([float(cell) if is_number(cell) else math.nan for cell in cells])
    if np.isinf(values).any():
        position = int(np.argmax(np.isinf(values)))
        raise error_at(
            path,
            line,
            f"value {position + 1} is infinite ({cells[position].strip()}); "
            f"write a number, or ? if it is missing",
        )
    return values


def is_number(cell: str) -> bool:
    """Tell whether a cell holds a number.

    Examples
    --------
    >>> is_number("-1e3"), is_number("walking"), is_number("1_000")
    (True, False, False)
    """
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _not_a_number(cell: str, position: int, blank_is_missing: bool) -> str:
    shown = cell.strip() if len(cell) <= 40 else cell.strip()[:37] + "..."
    if not shown:
        return f"value {position} is empty; write ? where a value is missing"
    hint = "leave the cell empty" if blank_is_missing else "write ?"
    if is_number(shown.replace(",", ".")):
        hint = "use a decimal point; " + hint
    return f"value {position} is {shown!r}; expected a number ({hint} where one is missing)"
