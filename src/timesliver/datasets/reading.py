"""`read`: a data set from a file of any known format."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from timesliver.datasets.arff import read_arff
from timesliver.datasets.arrays import read_labels, read_npy, read_npz
from timesliver.datasets.dataset import Dataset
from timesliver.datasets.table import read_csv
from timesliver.datasets.ts import read_ts
from timesliver.datasets.ucr import read_ucr
from timesliver.errors import InvalidInputError, InvalidParameterError

__all__ = ["SUFFIXES", "read"]

SUFFIXES = (".ts", ".tsv", ".txt", ".arff", ".npz", ".npy", ".csv")


def read(
    path: str | os.PathLike[str],
    y_path: str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    label: str | None = "auto",
) -> Dataset:
    r"""Read a data set from a file; its ending tells the format.

    ======================  ===================================================================
    ``.ts``                 archive format: a header, channels separated by ``:``, label last
    ``.tsv``, ``.txt``      UCR tables: label first, then the values
    ``.arff``               Weka's format, univariate or with one relational attribute
    ``.npz``                arrays X and y, or X_train, y_train, X_test, y_test
    ``.npy``                X; y from the file next to it (``X.npy``/``y.npy``,
                            ``NAME_X.npy``/``NAME_y.npy``)
    ``.csv``                wide (one row per case, a column with labels) or long (columns case,
                            time, label, and one per channel or ``channel`` and ``value``)
    ======================  ===================================================================

    Labels from text files are strings, those from numpy's files are what the file holds.

    Parameters
    ----------
    path : path
        The file.
    y_path : path or None
        File with the labels in place of those in `path`: ``.npy``, or text with one per line.
    split : "train", "test" or None
        Which part of an ``.npz`` file that holds both.
    label : str or None, default="auto"
        The column with the labels, for ``.csv`` and ``.arff``: its name, or for ``.csv`` also
        "first" or "last". "auto" takes the column named ``label``, ``class``, ``target`` or ``y``,
        else the first or last column if it holds text. None: the file has no labels (also for
        ``.tsv`` and ``.txt``).

    Returns
    -------
    Dataset

    Raises
    ------
    InvalidInputError
        If the file cannot be read; the message has its name, and the line where there is one.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "walks.csv"
    ...     _ = file.write_text("0,1,2,label\n0.1,0.2,,slow\n0.5,0.9,0.7,fast\n")
    ...     read(file)
    Dataset('walks', n_cases=2, n_channels=1, n_timepoints=3, n_classes=2)
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        raise InvalidInputError(f"{path} is a folder; give a file in it")
    if suffix not in SUFFIXES:
        raise InvalidInputError(
            f"{path}: the ending {suffix!r} is unknown; expected one of {', '.join(SUFFIXES)}"
        )
    if label != "auto" and suffix in (".ts", ".npz", ".npy"):
        raise InvalidParameterError(
            f"label={label!r} has no meaning for {suffix} files; leave it out"
        )
    if label not in ("auto", "first", None) and suffix in (".tsv", ".txt"):
        raise InvalidParameterError(
            f"label={label!r}, but in {suffix} files the label is always first; leave it out, or "
            f"save the table as .csv"
        )
    match suffix:
        case ".ts":
            data = read_ts(path)
        case ".tsv" | ".txt":
            data = read_ucr(path, labelled=label is not None)
        case ".arff":
            data = read_arff(path, label)
        case ".npz":
            data = read_npz(path, split)
        case ".npy":
            data = read_npy(path)
        case _:
            data = read_csv(path, label)
    if y_path is None:
        return data
    return replace(data, y=read_labels(Path(y_path), len(data)))
