"""The ``.ts`` text format of the time series classification archives.

A header of lines that start with ``@``, then one case per line: channels separated by ``:``,
values by ``,``, the class label last.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timesliver.datasets.dataset import Dataset, pad
from timesliver.datasets.text import content_lines, error_at, is_number, parse_numbers, read_lines
from timesliver.errors import InvalidInputError
from timesliver.typing import FloatArray

__all__ = ["read_ts"]


@dataclass
class _Header:
    """What the lines before the data say."""

    name: str
    labelled: bool = False
    labels: tuple[str, ...] = ()
    n_channels: int | None = None
    equal_length: bool = False


def read_ts(path: Path) -> Dataset:
    """Read a ``.ts`` file.

    Parameters
    ----------
    path : Path
        The file. Its header must not announce time stamps; ``@classLabel false``, or no such
        line, means that the cases carry no label.

    Returns
    -------
    Dataset
        Labels are strings.
    """
    lines = read_lines(path, comment="#")
    content = content_lines(lines, comment="#")
    header = _read_header(path, content, len(lines))
    cases: list[list[FloatArray]] = []
    y: list[str] = []
    for line, text in content:
        parts = text.split(":")
        if header.labelled:
            y.append(_label(path, line, parts.pop().strip(), header))
        n_channels = header.n_channels or len(cases[0] if cases else parts)
        if len(parts) != n_channels:
            raise error_at(path, line, _wrong_count(len(parts), n_channels, header.labelled))
        try:
            case = [parse_numbers(part.split(","), path, line) for part in parts]
        except InvalidInputError as error:
            if header.labelled or is_number(parts[-1].split(",")[0]):
                raise
            raise InvalidInputError(
                f"{error}; if it is a class label, the header needs a line '@classLabel true'"
            ) from None
        if header.equal_length:
            expected = len(cases[0][0]) if cases else len(case[0])
            for channel in case:
                if len(channel) != expected:
                    raise error_at(
                        path,
                        line,
                        f"a channel of {len(channel)} values, but the header says @equalLength "
                        f"true and the first has {expected}; the line may be cut short",
                    )
        cases.append(case)
    if not cases:
        raise error_at(path, len(lines), "no case after the @data line; the file may be cut short")
    return Dataset(pad(cases), np.array(y) if header.labelled else None, name=header.name)


def _read_header(path: Path, content: Iterator[tuple[int, str]], n_lines: int) -> _Header:
    """Read up to the @data line; the cases are what is left of the content."""
    header = _Header(name=path.stem)
    for line, text in content:
        if not text.startswith("@"):
            raise error_at(
                path,
                line,
                f"{text[:40]!r} stands before the @data line; expected a header line that "
                f"starts with @, as in the archives' .ts files",
            )
        keyword, *values = text[1:].split() or [""]
        match keyword.lower():
            case "data":
                return header
            case "problemname" if values:
                header.name = values[0]
            case "timestamps":
                if _truth(path, line, keyword, values):
                    raise error_at(
                        path,
                        line,
                        "series with time stamps cannot be read; write evenly spaced values "
                        "without them, and '@timeStamps false'",
                    )
            case "univariate":
                if _truth(path, line, keyword, values):
                    header.n_channels = 1
            case "dimensions" | "dimension":
                if not values or not values[0].isdecimal() or int(values[0]) < 1:
                    raise error_at(path, line, f"@{keyword} needs the number of channels, like 6")
                header.n_channels = int(values[0])
            case "equallength":
                header.equal_length = _truth(path, line, keyword, values)
            case "classlabel":
                header.labelled = _truth(path, line, keyword, values)
                header.labels = tuple(values[1:])
            case "targetlabel":
                if _truth(path, line, keyword, values):
                    raise error_at(
                        path,
                        line,
                        "the cases carry numbers to predict (@targetLabel), not classes; "
                        "only classification is supported",
                    )
            case _:
                pass  # @missing, @seriesLength and the like: the data speak for themselves
    raise error_at(path, n_lines, "no @data line; the file may be cut short, or of another format")


def _truth(path: Path, line: int, keyword: str, values: list[str]) -> bool:
    if not values or values[0].lower() not in ("true", "false"):
        raise error_at(path, line, f"@{keyword} must be followed by true or false")
    return values[0].lower() == "true"


def _label(path: Path, line: int, label: str, header: _Header) -> str:
    if not label:
        raise error_at(path, line, "no class label at the end; expected one after the last ':'")
    known = header.labels
    if known and label not in known:
        same = is_number(label) and float(label) in [float(k) for k in known if is_number(k)]
        if not same:
            shown = label if len(label) <= 40 else label[:37] + "..."
            raise error_at(
                path,
                line,
                f"the label {shown!r} is not among those of the header ({', '.join(known[:10])}"
                f"{', ...' if len(known) > 10 else ''}); the line may be cut short",
            )
    return label


def _wrong_count(n_channels: int, expected: int, labelled: bool) -> str:
    ending = " and a class label" if labelled else ""
    return (
        f"{n_channels} channel{'' if n_channels == 1 else 's'}, expected {expected}{ending}, "
        f"separated by ':'; the line may be cut short"
    )
