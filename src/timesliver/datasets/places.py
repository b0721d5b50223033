"""Folders that hold data sets: yours (``TIMESLIVER_DATA``), and the cache of downloads."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.datasets.arrays import open_numpy
from timesliver.errors import InvalidInputError
from timesliver.io import replacing

__all__ = [
    "DATA",
    "archive_file",
    "cache_folder",
    "data_folders",
    "find_in_data_folders",
    "hint_if_cached",
    "read_arrays",
    "sets_on_disk",
    "temporary_folder",
    "where_to_put",
    "write_arrays",
]

DATA = "TIMESLIVER_DATA"
CACHE = "TIMESLIVER_CACHE"
SUBFOLDERS = ("uea", "ucr", "localised", "")
ARCHIVE_SUFFIXES = (".ts", ".tsv", ".txt", ".arff")


def cache_folder() -> Path:
    """Return the folder that holds downloads: ``TIMESLIVER_CACHE``, or the system's own place.

    Examples
    --------
    >>> from unittest import mock
    >>> with mock.patch.dict(os.environ, TIMESLIVER_CACHE="/big/disk"):
    ...     cache_folder().as_posix()
    '/big/disk'
    """
    if given := os.environ.get(CACHE):
        return Path(given).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "timesliver"


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a folder inside the cache for work in progress; it is removed in the end."""
    _make_writable(cache_folder())
    with TemporaryDirectory(dir=cache_folder(), prefix=".work-") as name:
        yield Path(name)


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write an ``.npz`` file, whole or not at all; its folder is made if need be."""
    _make_writable(path.parent)
    with replacing(path) as draft:
        np.savez_compressed(draft, **arrays)


def _make_writable(folder: Path) -> None:
    """Make a folder of the cache, if it is not there and writable already."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InvalidInputError(
            f"cannot write to the cache folder {folder} ({error.strerror}); let the environment "
            f"variable {CACHE} give another one"
        ) from None


def data_folders() -> list[Path]:
    """Return the folders to search, yours first; the cache only once it exists."""
    folders = []
    if given := os.environ.get(DATA):
        if not Path(given).is_dir():
            raise InvalidInputError(f"{DATA} is set to {given!r}, which is not a folder")
        folders.append(Path(given))
    if cache_folder().is_dir():
        folders.append(cache_folder())
    return folders


def sets_on_disk() -> dict[str, Path]:
    """Map names to ``.npz`` files or folders of archive files; your folder beats the cache."""
    places: dict[str, Path] = {}
    for folder in (root / inside for root in data_folders() for inside in SUBFOLDERS):
        if not folder.is_dir():
            continue
        for place in sorted(folder.iterdir()):
            if place.name.startswith("."):  # work in progress, or what a crash left of it
                continue
            if place.suffix == ".npz":
                places.setdefault(place.stem, place)
            elif place.is_dir() and any(
                archive_file(place, place.name, split) for split in ("train", "test")
            ):
                places.setdefault(place.name, place)
    return places


def archive_file(folder: Path, name: str, split: str) -> Path | None:
    """Return the file of one part in a folder of the archives, like ``NAME_TRAIN.ts``."""
    files = (folder / f"{name}_{split.upper()}{suffix}" for suffix in ARCHIVE_SUFFIXES)
    return next((file for file in files if file.is_file()), None)


def find_in_data_folders(inside: str) -> Path | None:
    """Return the first file or folder of this name, like ``eeg/night.npz``, in one of the roots."""
    return next((root / inside for root in data_folders() if (root / inside).exists()), None)


def where_to_put(inside: str) -> str:
    """Say where `find_in_data_folders` looks, for messages."""
    given = os.environ.get(DATA)
    return " or ".join(str(Path(root) / inside) for root in (given, cache_folder()) if root)


@contextmanager
def hint_if_cached(path: Path) -> Iterator[None]:
    """Let errors on a file that lies in the cache say that it can be had anew."""
    try:
        yield
    except InvalidInputError as error:
        if cache_folder() in path.parents:
            raise InvalidInputError(
                f"{error}. It is a copy in the cache: delete it, and it is made again"
            ) from None
        raise


def read_arrays(path: Path, *keys: str) -> tuple[NDArray[Any], ...]:
    """Read some arrays of an ``.npz`` file."""
    with hint_if_cached(path), open_numpy(path) as arrays:
        try:
            return tuple(arrays[key] for key in keys)
        except KeyError as error:
            raise InvalidInputError(f"{path} lacks an array: {error.args[0]}") from None
