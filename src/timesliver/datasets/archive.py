"""`load`: a data set by its name, from a folder of yours, the cache, the network or a generator."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from timesliver.datasets.audio import load_animals
from timesliver.datasets.dataset import Dataset
from timesliver.datasets.download import download_archive
from timesliver.datasets.eeg import load_sleep
from timesliver.datasets.paper import load_paper_set
from timesliver.datasets.places import archive_file, hint_if_cached, sets_on_disk, where_to_put
from timesliver.datasets.reading import SUFFIXES, read
from timesliver.datasets.registry import Info, info, lookup_key, registered
from timesliver.datasets.splits import at_random
from timesliver.errors import InvalidInputError, check_choice, check_count

__all__ = ["load", "names"]


def load(
    name: str | os.PathLike[str],
    split: str = "train",
    *,
    label: str | None = "auto",
    seed: int = 0,
) -> Dataset:
    """Load a data set by its name, or from a file.

    Names are looked up in the folder that the environment variable ``TIMESLIVER_DATA`` gives, and
    in its folders ``uea``, ``ucr`` and ``localised``: ``NAME.npz``, or a folder of the archive's
    files, ``NAME/NAME_TRAIN.ts`` (or ``.tsv``, ``.txt``, ``.arff``). What is not there is taken
    from the cache (``TIMESLIVER_CACHE``, else the system's place for caches), or downloaded into
    it. `info` tells what is known of a set beforehand.

    =======================  ==================================================================
    any UEA or UCR name      the archive's own parts "train" and "test"
    ``FordA_paper``          853/106/119 cases drawn by class: "train" and "validation" from the
                             archive's train part, "test" from its test part
    ``ESC50_animals``        animal sounds, MFCC; ESC-50's folds 1 to 3, 4 and 5, but no
                             recording in two parts
    ``ESC50_animals_paper``  the same clips, 280/60/60 drawn at random by class
    ``SleepEDF``             sleep stages of 20 subjects, no subject in two parts, balanced
    ``SleepEDF_SC4001E0``    one night of them, split by blocks of ten minutes
    ``MITBIH_PVC``           heart beats with marked moments, no patient in two parts
    ``freqsum``, ...         the paper's synthetic sets (`make_freqsum`, ...), in its sizes
    =======================  ==================================================================

    Parameters
    ----------
    name : str or path
        Name of a set (upper and lower case, - and _ are alike), a file that `read` knows, or a
        folder of the archive's files.
    split : "train", "validation" or "test", default="train"
        Which part. Archives and files have no validation part; a file with one part is read as it
        is.
    label : str or None, default="auto"
        The column with the labels, as in `read`; for files only.
    seed : int, default=0
        Seed of sets that are generated, drawn or split at random; the others ignore it. All parts
        of a set must be loaded with the same seed.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> load("lowvar", "test")
    Dataset('LowVar', n_cases=1000, n_channels=2, n_timepoints=200, n_classes=4)
    """
    check_count("seed", seed, least=0)
    check_choice("split", split, ("train", "validation", "test"))
    path = Path(name)
    if path.is_file():
        check_choice(f"{path.name} is a file: split", split, ("train", "test"))
        return read(path, split=split, label=label)
    if path.is_dir():
        file = archive_file(path, path.resolve().name, split)
        if file is None:
            raise InvalidInputError(
                f"the folder {path} holds no {path.resolve().name}_{split.upper()}.ts (nor .tsv, "
                f".txt, .arff); give a file"
            )
        return read(file, split=split, label=label)
    if path.suffix.lower() in SUFFIXES or len(path.parts) > 1:
        raise InvalidInputError(f"there is no file {path}; check the name and folder")
    places = sets_on_disk()
    spelling = {lookup_key(known): known for known in places}.get(lookup_key(str(name)))
    if spelling is not None:
        return _load_from_disk(spelling, places[spelling], split)
    known = info(str(name))
    _check_split(known.name, split, known.splits)
    loaded = LOADERS[known.source](known, split, seed)
    return loaded if known.source == "synthetic" else replace(loaded, name=known.name)


def names() -> list[str]:
    """Return the names of known sets: those at hand, and those that `load` can get or generate.

    With aeon installed, `load` knows all other names of the UEA and UCR archives too.

    Examples
    --------
    >>> "BasicMotions" in names(), "freqsum" in names(), "a name that no set has" in names()
    (True, True, False)
    """
    spellings = {key: known.name for key, known in registered().items()}
    spellings |= {lookup_key(name): name for name in sets_on_disk()}
    return sorted(spellings.values(), key=str.lower)


def _load_archive(known: Info, split: str, seed: int) -> Dataset:
    if known.name in DRAWN_FROM:
        whole = load(DRAWN_FROM[known.name], "test" if split == "test" else "train")
        if whole.y is None:
            raise InvalidInputError(f"the set {whole.name} has no labels, so none can be drawn by")
        sizes = {part: size or 0 for part, size in (known.sizes or {}).items()}
        test = {"test": sizes.pop("test")}
        cases = at_random(whole.y, test if split == "test" else sizes, seed)[split]
        return replace(whole[cases], name=known.name)
    return _load_from_disk(known.name, download_archive(known), split)


def _load_localised(known: Info, split: str, seed: int) -> Dataset:  # noqa: ARG001
    raise InvalidInputError(
        f"the set {known.name} is prepared beforehand and cannot be downloaded; put the file at "
        f"{where_to_put(f'localised/{known.name}.npz')}, with the arrays X_train, y_train, "
        f"salient_train, X_test, y_test, salient_test"
    )


def _load_synthetic(known: Info, split: str, seed: int) -> Dataset:
    return load_paper_set(known.name, split, seed)


DRAWN_FROM = {"FordA_paper": "FordA"}
LOADERS: dict[str, Callable[[Info, str, int], Dataset]] = {
    "uea": _load_archive,
    "ucr": _load_archive,
    "audio": load_animals,
    "eeg": load_sleep,
    "localised": _load_localised,
    "synthetic": _load_synthetic,
}


def _load_from_disk(name: str, place: Path, split: str) -> Dataset:
    """Read a part of a set from its ``.npz`` file, or the folder of the archive's files."""
    _check_split(name, split, ("train", "test"))
    if place.is_dir():
        file = archive_file(place, place.name, split)
        if file is None:
            raise InvalidInputError(f"the set {name} has no {split} part in {place}")
        place = file
    with hint_if_cached(place):
        return replace(read(place, split=split), name=name)


def _check_split(name: str, split: str, splits: tuple[str, ...]) -> None:
    check_choice(f"the set {name} has the parts {', '.join(splits)}: split", split, splits)
