"""`load`: a data set by its name, from the folder that ``TIMESLIVER_DATA`` points to."""

from __future__ import annotations

import difflib
import os
from dataclasses import replace
from pathlib import Path

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.reading import SUFFIXES, read
from timesliver.errors import InvalidInputError, check_choice

__all__ = ["load", "names"]

VARIABLE = "TIMESLIVER_DATA"
FOLDERS = ("uea", "ucr", "localised", "")
ARCHIVE_SUFFIXES = (".ts", ".tsv", ".txt", ".arff")


def load(
    name: str | os.PathLike[str], split: str = "train", *, label: str | None = "auto"
) -> Dataset:
    """Load a data set by its name, or from a file.

    Names are looked up in the folder that the environment variable ``TIMESLIVER_DATA`` gives, and
    in its folders ``uea``, ``ucr`` and ``localised``: ``NAME.npz``, or a folder of the archive's
    files, ``NAME/NAME_TRAIN.ts`` (or ``.tsv``, ``.txt``, ``.arff``).

    Parameters
    ----------
    name : str or path
        Name of a set (upper and lower case are alike), a file that `read` knows, or a folder of
        the archive's files.
    split : "train" or "test", default="train"
        Which part, where there are two. A file with one part is read as it is.
    label : str or None, default="auto"
        The column with the labels, as in `read`; for files only.

    Returns
    -------
    Dataset
    """
    check_choice("split", split, ("train", "test"))
    path = Path(name)
    if path.is_file():
        return read(path, split=split, label=label)
    if path.is_dir():
        file = _archive_file(path, path.resolve().name, split)
        if file is None:
            raise InvalidInputError(
                f"the folder {path} holds no {path.resolve().name}_{split.upper()}.ts (nor .tsv, "
                f".txt, .arff); give a file"
            )
        return read(file, split=split, label=label)
    if path.suffix.lower() in SUFFIXES or len(path.parts) > 1:
        raise InvalidInputError(f"there is no file {path}; check the name and folder")
    places = _places()
    known = {known.lower(): known for known in places}
    found = known.get(str(name).lower())
    if found is None:
        raise InvalidInputError(_unknown(str(name), list(places)))
    place = places[found]
    if place.is_dir():
        file = _archive_file(place, found, split)
        if file is None:
            raise InvalidInputError(f"the set {found} has no {split} part in {place}")
        place = file
    return replace(read(place, split=split), name=found)


def names() -> list[str]:
    """Return the names of the sets in the folder that ``TIMESLIVER_DATA`` points to.

    Examples
    --------
    >>> "a name that no set has" in names()
    False
    """
    return sorted(_places(), key=str.lower)


def _places() -> dict[str, Path]:
    """Map each name to its ``.npz`` file or folder."""
    root = os.environ.get(VARIABLE)
    if not root:
        return {}
    if not Path(root).is_dir():
        raise InvalidInputError(f"{VARIABLE} is set to {root!r}, which is not a folder")
    places: dict[str, Path] = {}
    for folder in FOLDERS:
        if not (Path(root) / folder).is_dir():
            continue
        for place in sorted((Path(root) / folder).iterdir()):
            if place.suffix == ".npz":
                places.setdefault(place.stem, place)
            elif place.is_dir() and any(
                _archive_file(place, place.name, split) for split in ("train", "test")
            ):
                places.setdefault(place.name, place)
    return places


def _archive_file(folder: Path, name: str, split: str) -> Path | None:
    files = (folder / f"{name}_{split.upper()}{suffix}" for suffix in ARCHIVE_SUFFIXES)
    return next((file for file in files if file.is_file()), None)


def _unknown(name: str, known: list[str]) -> str:
    if not os.environ.get(VARIABLE):
        return (
            f"there is no file {name!r}, and sets cannot be found by name before the environment "
            f"variable {VARIABLE} gives the folder that holds them"
        )
    lowered = {one.lower(): one for one in known}
    close = [lowered[one] for one in difflib.get_close_matches(name.lower(), lowered, n=3)]
    root = os.environ[VARIABLE]
    meant = (
        f"did you mean {' or '.join(close)}?"
        if close
        else f"{len(known)} sets are there: list them with timesliver data, or datasets.names()"
    )
    return f"there is no file and no set {name!r} in {root}; {meant}"
