"""The UCR archive's plain tables (``.tsv``, ``.txt``): one case per line, its label first."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.text import error_at, is_number, parse_numbers, read_lines
from timesliver.typing import FloatArray

__all__ = ["read_ucr"]


def read_ucr(path: Path, labelled: bool = True) -> Dataset:
    """Read a table separated by tabs, commas or spaces.

    Parameters
    ----------
    path : Path
        The file. Shorter series are filled up with NaN.
    labelled : bool, default=True
        Whether the first column holds the class labels.

    Returns
    -------
    Dataset
        Labels are strings; whole numbers lose their decimals (``1.0000000e+00`` is ``"1"``), so
        that they are the same in all of the archive's formats.
    """
    lines = read_lines(path)
    first = next(line for line in lines if line.strip())
    separator = "\t" if "\t" in first else "," if "," in first else None
    rows: list[FloatArray] = []
    y: list[str] = []
    width = first_line = 0
    for line, text in enumerate(lines, start=1):
        if not text.strip():
            continue
        cells = text.split(separator)
        if labelled:
            y.append(cells.pop(0).strip())
            if not y[-1]:
                raise error_at(path, line, "no class label; expected one in the first column")
        if not rows:
            width, first_line = len(cells), line
            if not width:
                raise error_at(path, line, "one cell only; expected a label, then the values")
        if len(cells) != width:
            raise error_at(
                path,
                line,
                f"{len(cells)} values, but line {first_line} has {width}; "
                f"fill shorter series up with NaN",
            )
        rows.append(parse_numbers(cells, path, line, blank_is_missing=True))
    return Dataset(np.stack(rows)[:, None, :], _whole(y) if labelled else None, name=path.stem)


def _whole(labels: list[str]) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    if all(is_number(label) and float(label).is_integer() for label in labels):
        labels = [str(int(float(label))) for label in labels]
    return np.array(labels)
