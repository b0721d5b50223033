r"""Weka's ``.arff`` format, as the UCR and UEA archives use it.

One numeric attribute per time point and a nominal class; or one relational attribute, a quoted
text with the channels separated by ``\n``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from timesliver.datasets.dataset import Dataset, pad
from timesliver.datasets.text import at, numbers, read_lines
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
    first_line: int = 0


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
    header = _read_header(path, lines)
    at_label = _label_attribute(path, header, label)
    cases: list[list[FloatArray]] = []
    y: list[str] = []
    for line, text in enumerate(lines[header.first_line :], start=header.first_line + 1):
        if not text.strip() or text.lstrip().startswith("%"):
            continue
        cells = _cells(path, line, text)
        if len(cells) != len(header.attributes):
            raise at(
                path,
                line,
                f"{len(cells)} cells, but the header names {len(header.attributes)} attributes; "
                f"the line may be cut short",
            )
        if at_label is not None:
            y.append(cells[at_label].strip())
            if y[-1] in ("", "?"):
                raise at(path, line, "no class label; every case needs one, or none of them")
        if header.relational is None:
            values = [cell for i, cell in enumerate(cells) if i != at_label]
            case = [numbers(values, path, line)]
        else:
            channels = cells[header.relational].split("\\n")
            case = [numbers(channel.split(","), path, line) for channel in channels]
        if cases and len(case) != len(cases[0]):
            raise at(
                path,
                line,
                f"{len(case)} channels, but the first case has {len(cases[0])}; "
                f"the line may be cut short",
            )
        cases.append(case)
    if not cases:
        raise at(path, len(lines), "no case after the @data line; the file may be cut short")
    return Dataset(pad(cases), None if at_label is None else np.array(y), name=header.name)


def _read_header(path: Path, lines: list[str]) -> _Header:
    header = _Header(name=path.stem)
    inside = False
    for line, text in enumerate(lines, start=1):
        text = text.strip()
        if not text or text.startswith("%"):
            continue
        keyword = text.split()[0].lower()
        if keyword == "@data":
            if not header.attributes:
                raise at(path, line, "no @attribute line before the @data line")
            header.first_line = line
            return header
        if keyword == "@relation":
            header.name = text[len(keyword) :].strip().strip("'\"") or path.stem
        elif keyword == "@end":
            inside = False
        elif keyword == "@attribute":
            found = _ATTRIBUTE.match(text)
            if not found:
                raise at(path, line, "expected @attribute NAME TYPE")
            kind = found[2].lower()
            if inside:  # one time point of the relational attribute
                continue
            if kind.startswith("{"):
                header.nominal.append(len(header.attributes))
            elif kind.startswith("relational"):
                header.relational, inside = len(header.attributes), True
            elif kind.split()[0] not in ("numeric", "real", "integer", "string"):
                raise at(
                    path,
                    line,
                    f"attributes of the type {found[2]!r} are not supported; use numeric",
                )
            header.attributes.append(found[1].strip("'\""))
        else:
            raise at(
                path,
                line,
                f"{text[:40]!r} stands before the @data line; expected @relation, @attribute "
                f"or a comment that starts with %",
            )
    raise at(path, len(lines), "no @data line; the file may be cut short, or of another format")


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
    if text.lstrip().startswith("{"):
        raise at(path, line, "sparse data ({index value, ...}) are not supported; write all values")
    if "'" not in text and '"' not in text:
        return text.split(",")
    cells, position = [], 0
    while position < len(text):
        found = _CELL.match(text, position)
        if not found:
            raise at(path, line, "a quotation mark is not closed; the line may be cut short")
        cells.append(next((part for part in found.groups() if part is not None), ""))
        position = found.end()
    return cells
