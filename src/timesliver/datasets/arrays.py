"""Numpy's binary files: ``.npz`` archives and pairs of ``.npy`` files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.text import read_lines
from timesliver.errors import InvalidInputError, TimeSliverError, check_choice
from timesliver.typing import FloatArray

__all__ = ["open_numpy", "read_labels", "read_npy", "read_npz"]


def read_npz(path: Path, split: str | None = None) -> Dataset:
    """Read an ``.npz`` file with the arrays X and y, or X_train, y_train, X_test, y_test.

    Parameters
    ----------
    path : Path
        The file. An array ``salient`` (``salient_train``, ...) is read too; y may be absent.
    split : "train", "test" or None
        Which part of a file that holds both.
    """
    with open_numpy(path) as arrays:
        if isinstance(arrays, np.ndarray):
            raise InvalidInputError(f"{path} holds a single array, so its name must end in .npy")
        ending = _ending(path, arrays.files, split)
        parts = {
            key: arrays[key + ending]
            for key in ("X", "y", "salient")
            if key + ending in arrays.files
        }
    X = _series(path, parts["X"])
    y = _labels(path, parts["y"], len(X)) if "y" in parts else None
    salient = parts.get("salient")
    if salient is not None:
        salient = salient[:, None, :] if salient.ndim == 2 else salient
        if salient.dtype != np.bool_ or salient.shape != X.shape:
            raise InvalidInputError(
                f"{path}: salient{ending} must be a boolean array of shape {X.shape}, "
                f"got {salient.dtype} of shape {salient.shape}"
            )
    return Dataset(X, y, salient, name=path.stem)


def read_npy(path: Path) -> Dataset:
    """Read X from an ``.npy`` file, and y from the file next to it.

    Next to ``X.npy`` that is ``y.npy``, to ``NAME_X.npy`` it is ``NAME_y.npy``, to
    ``X_NAME.npy`` it is ``y_NAME.npy``. Without such a file there are no labels.
    """
    with open_numpy(path) as array:
        if not isinstance(array, np.ndarray):
            raise InvalidInputError(f"{path} holds several arrays, so its name must end in .npz")
        X = _series(path, array)
    stem = path.stem
    if stem == "X" or stem.startswith("X_"):
        beside = path.with_name(f"y{stem[1:]}.npy")
    else:
        beside = path.with_name(f"{stem.removesuffix('_X')}_y.npy")
    y = read_labels(beside, len(X)) if beside.is_file() else None
    return Dataset(X, y, name=stem.removesuffix("_X"))


def read_labels(path: Path, n_cases: int) -> NDArray[Any]:
    """Read labels from an ``.npy`` file, or from a text file with one label per line."""
    if path.suffix.lower() == ".npy":
        with open_numpy(path) as array:
            return _labels(path, array, n_cases)
    labels = [line.strip() for line in read_lines(path)]
    while not labels[-1]:
        labels.pop()
    return _labels(path, np.array(labels), n_cases)


@contextmanager
def open_numpy(path: Path) -> Iterator[Any]:
    """Open one of numpy's files; what fails until it is closed is put in plain words."""
    try:
        with path.open("rb") as file:
            yield np.load(file, allow_pickle=False)
    except TimeSliverError:
        raise
    except FileNotFoundError:
        raise InvalidInputError(f"there is no file {path}; check the name and folder") from None
    except Exception as error:  # a damaged file makes numpy raise errors of a dozen types
        if "Object arrays" in str(error):
            raise InvalidInputError(
                f"{path} holds Python objects, which are never loaded because that can run code; "
                f"save plain arrays of numbers, and labels as numbers or fixed-width text"
            ) from None
        raise InvalidInputError(
            f"cannot read {path} ({str(error)[:80] or type(error).__name__}); it is damaged, cut "
            f"short, or no file of numpy's"
        ) from None


def _ending(path: Path, keys: list[str], split: str | None) -> str:
    """Return what the names of the arrays to read end in."""
    if "X" in keys:
        return ""
    splits = tuple(part for part in ("train", "test") if f"X_{part}" in keys)
    if not splits:
        raise InvalidInputError(
            f"{path} has no array X, nor X_train or X_test; its arrays are: "
            f"{', '.join(keys[:10]) or 'none'}"
        )
    if split is None and len(splits) == 1:
        return f"_{splits[0]}"
    check_choice(f"{path.name} has the parts {' and '.join(splits)}: split", split, splits)
    return f"_{split}"


def _series(path: Path, X: NDArray[Any]) -> FloatArray:
    if X.dtype.kind not in "biuf" or X.ndim not in (2, 3) or 0 in X.shape:
        raise InvalidInputError(
            f"{path}: X must be numbers of shape (n_cases, n_channels, n_timepoints), or "
            f"(n_cases, n_timepoints) for one channel; got {X.dtype} of shape {X.shape}"
        )
    X = X if X.dtype.kind == "f" else X.astype(np.float64)
    if np.isinf(X).any():
        case = int(np.argwhere(np.isinf(X))[0, 0])
        raise InvalidInputError(
            f"{path}: case {case} holds an infinite value; write a number, or NaN if it is missing"
        )
    return X[:, None, :] if X.ndim == 2 else X


def _labels(path: Path, y: NDArray[Any], n_cases: int) -> NDArray[Any]:
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape != (n_cases,):
        raise InvalidInputError(
            f"{path}: expected one label for each of the {n_cases} cases, "
            f"got labels of shape {y.shape}"
        )
    return y
