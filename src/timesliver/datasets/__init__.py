"""Data sets: read from files, found or downloaded by name, or generated."""

from timesliver.datasets.archive import load, names
from timesliver.datasets.dataset import Dataset
from timesliver.datasets.reading import read
from timesliver.datasets.registry import Info, info
from timesliver.datasets.synthetic import (
    make_farfield,
    make_freqsum,
    make_lowvar,
    make_seqcomb_mv,
    make_seqcomb_uv,
)

__all__ = [
    "Dataset",
    "Info",
    "info",
    "load",
    "make_farfield",
    "make_freqsum",
    "make_lowvar",
    "make_seqcomb_mv",
    "make_seqcomb_uv",
    "names",
    "read",
]
