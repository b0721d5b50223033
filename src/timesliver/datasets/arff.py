r"""Weka's ``.arff`` format, as the UCR and UEA archives use it.

One numeric attribute per time point and a nominal class; or one relational attribute, a quoted
text with the channels separated by ``\n``.

`scipy.io.arff` does not serve: it drops surplus cells without a word, names no line in its errors,
and knows neither text classes, labels beyond ASCII nor attributes of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from timesliver.datasets.dataset import Dataset, pad
from timesliver.datasets.text import content_lines, error_at, parse_numbers, read_lines
from timesliver.errors import InvalidParameterError
from timesliver.typing import FloatArray

__all__ = ["read_arff"]

_ATTRIBUTE = re.compile(r"""@attribute\s+('[^']*'|"[^"]*"|[^\s{]+)\s*(.+)$""", re.IGNORECASE)
_CELL = re.compile(r"""\s*(?:'([^']*)'|"([^"]*)"|([^,'"]*))\s*(?:,|$)""")


@dataclass
class _Header:
    name: str
    attributes: list[str] = field(default_factory=list)
    relational: int | None = None
    nominal: list[int] = field(default_factory=list)


def read_arff(path: Path, label: str | None = "auto") -> Dataset:
    """Read an ``.arff`` file.

    Parameters
    ----------
    path : Path
        The file.
    label : str or None, default="auto"
        Name of the class attribute; "auto" takes the one that lists its values. None: there is
        no class.

    Returns
    -------
    Dataset
        Labels are strings.
    """
    lines = read_lines(path, comment="%")
    content = content_lines(lines, comment="%")
    header = _read_header(path, content, len(lines))
    label_column = _label_attribute(path, header, label)
    cases: list[list[FloatArray]] = []
    y: list[str] = []
    for line, text in content:
        cells = _cells(path, line, text)
        if len(cells) != len(header.attributes):
            raise error_at(
                path,
                line,
                f"{len(cells)} cells, but the header names {len(header.attributes)} attributes; "
                f"the line may be cut short",
            )
        if label_column is not None:
            y.append(cells[label_column].strip())
            if y[-1] in ("", "?"):
                raise error_at(path, line, "no class label; every case needs one, or none of them")
        if header.relational is None:
            values = [cell for i, cell in enumerate(cells) if i != label_column]
            case = [parse_numbers(values, path, line)]
        else:
            channels = cells[header.relational].split("\\n")
            case = [parse_numbers(channel.split(","), path, line) for channel in channels]
        if cases and len(case) != len(cases[0]):
            raise error_at(
                path,
                line,
                f"{len(case)} channels, but the first case has {len(cases[0])}; "
                f"the line may be cut short",
            )
        cases.append(case)
    if not cases:
        raise error_at(path, len(lines), "no case after the @data line; the file may be cut short")
    return Dataset(pad(cases), None if label_column is None else np.array(y), name=header.name)


def _read_header(path: Path, content: Iterator[tuple[int, str]], n_lines: int) -> _Header:
    """Read up to the @data line; the cases are what is left of the content."""
    header = _Header(name=path.stem)
    inside_relational = False
    for line, text in content:
        keyword = text.split()[0].lower()
        if keyword == "@data":
            if not header.attributes:
                raise error_at(path, line, "no @attribute line before the @data line")
            return header
        if keyword == "@relation":
            header.name = text[len(keyword) :].strip().strip("'\"") or path.stem
        elif keyword == "@end":
            inside_relational = False
        elif keyword == "@attribute":
            attribute = _ATTRIBUTE.match(text)
            if not attribute:
                raise error_at(path, line, "expected @attribute NAME TYPE")
            kind = attribute[2].lower()
            if inside_relational:  # one time point of the relational attribute
                continue
            if kind.startswith("{"):
                header.nominal.append(len(header.attributes))
            elif kind.startswith("relational"):
                header.relational, inside_relational = len(header.attributes), True
            elif kind.split()[0] not in ("numeric", "real", "integer", "string"):
                raise error_at(
                    path,
                    line,
                    f"attributes of the type {attribute[2]!r} are not supported; use numeric",
                )
            header.attributes.append(attribute[1].strip("'\""))
        else:
            raise error_at(
                path,
                line,
                f"{text[:40]!r} stands before the @data line; expected @relation, @attribute "
                f"or a comment that starts with %",
            )
    raise error_at(path, n_lines, "no @data line; the file may be cut short, or of another format")


def _label_attribute(path: Path, header: _Header, label: str | None) -> int | None:
    if label is None or (label == "auto" and not header.nominal):
        return None
    if label == "auto":
        return header.nominal[-1]
    if label not in header.attributes:
        raise InvalidParameterError(
            f"label={label!r}, but {path} has no such attribute; "
            f"its last one is {header.attributes[-1]!r}"
        )
    return header.attributes.index(label)


def _cells(path: Path, line: int, text: str) -> list[str]:
    if text.startswith("{"):
        raise error_at(
            path, line, "sparse data ({index value, ...}) are not supported; write all values"
        )
    if "'" not in text and '"' not in text:
        return text.split(",")
    cells, position = [], 0
    while position < len(text):
        cell = _CELL.match(text, position)
        if not cell:
            raise error_at(path, line, "a quotation mark is not closed; the line may be cut short")
        cells.append(next((part for part in cell.groups() if part is not None), ""))
        position = cell.end()
    return cells
