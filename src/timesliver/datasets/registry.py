"""What is known of each data set before it is loaded: its shape, origin, licence and citation."""

from __future__ import annotations

import csv
import difflib
import os
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import NamedTuple

from timesliver.datasets.paper import PAPER_SETS
from timesliver.datasets.places import DATA, sets_on_disk
from timesliver.errors import InvalidInputError

__all__ = ["SOURCES", "Info", "Source", "info", "lookup_key", "registered"]


class Source(NamedTuple):
    """Where sets come from."""

    origin: str
    licence: str
    citation: str


SOURCES = {
    "uea": Source(
        "UEA multivariate archive, downloaded through aeon",
        "research use",
        "Bagnall et al., The UEA multivariate time series classification archive, 2018, "
        "arXiv:1811.00075",
    ),
    "ucr": Source(
        "UCR univariate archive, downloaded through aeon",
        "research use",
        "Dau et al., The UCR time series archive, IEEE/CAA Journal of Automatica Sinica 6(6), 2019",
    ),
    "audio": Source(
        "the ten animal classes of ESC-50, downloaded from GitHub, as MFCC",
        "CC BY-NC",
        "Piczak, ESC: Dataset for environmental sound classification, ACM Multimedia, 2015",
    ),
    "eeg": Source(
        "Sleep-EDF Expanded (cassette nights, Fpz-Cz), downloaded from PhysioNet",
        "ODC-By",
        "Kemp et al., Analysis of a sleep-dependent neuronal feedback loop, IEEE Transactions on "
        "Biomedical Engineering 47(9), 2000; Goldberger et al., PhysioBank, PhysioToolkit, and "
        "PhysioNet, Circulation 101(23), 2000",
    ),
    "localised": Source(
        "MIT-BIH Arrhythmia Database of PhysioNet, cut to 2 s windows beforehand; no download",
        "ODC-By",
        "Moody and Mark, The impact of the MIT-BIH Arrhythmia Database, IEEE Engineering in "
        "Medicine and Biology 20(3), 2001; Goldberger et al., Circulation 101(23), 2000",
    ),
    "synthetic": Source(
        "generated, in the sizes of the TimeSliver paper",
        "free",
        "see the function that makes it, like datasets.make_lowvar",
    ),
    "local": Source("a folder of yours", "unknown", "unknown"),
}


@dataclass(frozen=True)
class Info:
    """What is known of a set; None where this package does not know it.

    Attributes
    ----------
    name : str
        How the set is called.
    source : str
        "uea", "ucr", "audio", "eeg", "localised", "synthetic" or "local".
    category : str
        The column of the TimeSliver paper's table on the UEA archive that counts the set: "Bio.",
        "Motion", "Audio", "Coord." or "Misc."; empty for other sets. (The paper does not list
        them; only one grouping gives the averages it prints.)
    sizes : dict of str to int or None
        The parts that can be loaded, and how many cases each holds.
    n_channels, n_timepoints, n_classes : int or None
        The shape; the length is that of the longest case.
    origin, licence, citation : str
        Where it comes from, on which terms, and what to cite.
    """

    name: str
    source: str
    category: str = ""
    sizes: dict[str, int | None] | None = None
    n_channels: int | None = None
    n_timepoints: int | None = None
    n_classes: int | None = None

    @property
    def splits(self) -> tuple[str, ...]:
        """The parts that can be loaded."""
        return tuple(self.sizes or ("train", "test"))

    @property
    def origin(self) -> str:
        """Where the set comes from."""
        return SOURCES[self.source].origin

    @property
    def licence(self) -> str:
        """The terms of use."""
        return SOURCES[self.source].licence

    @property
    def citation(self) -> str:
        """What to cite."""
        return SOURCES[self.source].citation


def lookup_key(name: str) -> str:
    """Return what names that differ in case, or in - and _, have in common.

    Examples
    --------
    >>> lookup_key("SeqComb-UV")
    'seqcomb_uv'
    """
    return name.lower().replace("-", "_")


@cache
def registered() -> dict[str, Info]:
    """Map the `lookup_key` of each set in the package's table to what is known of it."""
    table = resources.files("timesliver.datasets").joinpath("sets.csv").read_text("utf-8")
    sets = {}
    for row in csv.DictReader(table.splitlines()):
        name, source = row["name"], row["source"]
        if source == "synthetic":
            if name not in PAPER_SETS:
                continue
            sizes: dict[str, int | None] = dict(PAPER_SETS[name])
        else:
            three = source in ("audio", "eeg") or row["validation"]
            parts = ("train", "validation", "test") if three else ("train", "test")
            sizes = {part: _count(row[part]) for part in parts}
        sets[lookup_key(name)] = Info(
            name,
            source,
            row["category"],
            sizes,
            _count(row["channels"]),
            _count(row["length"]),
            _count(row["classes"]),
        )
    return sets


def info(name: str) -> Info:
    """Return what is known of a set before it is loaded.

    Parameters
    ----------
    name : str
        Name of a set; upper and lower case, and - and _, are alike. With aeon installed, any name
        of the UEA and UCR archives will do.

    Returns
    -------
    Info

    Examples
    --------
    >>> known = info("basicmotions")
    >>> known.name, known.category, known.sizes, known.n_classes
    ('BasicMotions', 'Motion', {'train': 40, 'test': 40}, 4)
    """
    key = lookup_key(name)
    if key in registered():
        return registered()[key]
    on_disk = {lookup_key(spelling): spelling for spelling in sets_on_disk()}
    if key in on_disk:
        return Info(on_disk[key], "local")
    if key in _archives():
        return Info(*_archives()[key])
    raise _unknown(name, on_disk)


@cache
def _archives() -> dict[str, tuple[str, str]]:
    """Return the names of the archives, as they spell them, and which one; aeon knows them all."""
    try:
        from aeon.datasets.tsc_datasets import multivariate, univariate
    except ImportError:
        return {}
    uea = {lookup_key(name): (name, "uea") for name in multivariate}
    return {**{lookup_key(name): (name, "ucr") for name in univariate}, **uea}


def _unknown(name: str, on_disk: dict[str, str]) -> InvalidInputError:
    known = {key: spelling for key, (spelling, _) in _archives().items()}
    known.update({key: known_set.name for key, known_set in registered().items()})
    known.update(on_disk)
    close = [known[key] for key in difflib.get_close_matches(lookup_key(name), known, n=3)]
    hint = (
        f"did you mean {' or '.join(close)}?"
        if close
        else "list the known ones with timesliver data, or datasets.names()."
    )
    if not _archives():
        hint += " More names of the UCR and UEA archives need pip install 'timesliver[archive]'."
    if not os.environ.get(DATA):
        hint += f" Sets of your own are found once {DATA} gives the folder that holds them."
    return InvalidInputError(f"there is no file and no set {name!r}; {hint.removesuffix('.')}")


def _count(cell: str) -> int | None:
    return int(cell) if cell else None
