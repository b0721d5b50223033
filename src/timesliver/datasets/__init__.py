"""Data sets: read from files, found by name, or generated."""

from timesliver.datasets.archive import load, names
from timesliver.datasets.dataset import Dataset
from timesliver.datasets.reading import read
from timesliver.datasets.synthetic import make_lowvar

__all__ = ["Dataset", "load", "make_lowvar", "names", "read"]
