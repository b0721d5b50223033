"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "AsJSON",
    "Channels",
    "Data",
    "Debug",
    "Label",
    "Method",
    "MethodOption",
    "Model",
    "Quiet",
    "Split",
    "SplitOption",
    "complete_data",
    "output_file",
    "parse_cases",
    "parse_label",
    "parse_sizes",
]


class Split(StrEnum):
    """The parts of a set; archives have two."""

    train = "train"
    validation = "validation"
    test = "test"


class Channels(StrEnum):
    """How channels share the network."""

    mixed = "mixed"
    separate = "separate"
    shared = "shared"


class Method(StrEnum):
    """How evidence is computed."""

    additive = "additive"
    timesliver = "timesliver"


def complete_data(incomplete: str) -> list[str]:
    """Return the names of known sets and the files that begin like this, for the shell."""
    from timesliver import datasets
    from timesliver.datasets.reading import SUFFIXES
    from timesliver.errors import TimeSliverError

    try:
        matches = [name for name in datasets.names() if name.lower().startswith(incomplete.lower())]
    except TimeSliverError:
        matches = []
    folder, beginning = os.path.split(incomplete)
    try:
        places = sorted(Path(folder or ".").iterdir())
    except OSError:
        places = []
    for place in places:
        if place.name.startswith(beginning) and (beginning or not place.name.startswith(".")):
            if place.is_dir():
                matches.append(f"{os.path.join(folder, place.name)}/")  # noqa: PTH118
            elif place.suffix.lower() in SUFFIXES:
                matches.append(os.path.join(folder, place.name))  # noqa: PTH118
    return matches


def output_file(*suffixes: str) -> Callable[[Path | None], Path | None]:
    """Return a check that a file can be written, to be made before any long computation."""

    def check(path: Path | None) -> Path | None:
        if path is None:
            return None
        if path.suffix.lower() not in suffixes:
            known = " or ".join(filter(None, (", ".join(suffixes[:-1]), suffixes[-1])))
            raise typer.BadParameter(f"{path} must end in {known}.")
        if path.is_dir():
            raise typer.BadParameter(f"{path} is a folder; give the name of a file.")
        if not path.parent.is_dir():
            raise typer.BadParameter(f"the folder {path.parent} does not exist; make it first.")
        if not os.access(path.parent, os.W_OK):
            raise typer.BadParameter(f"the folder {path.parent} may not be written to.")
        return path

    return check


def parse_cases(text: str | None) -> list[int] | None:
    """Read numbers of cases.

    Examples
    --------
    >>> parse_cases("0,3,10-12")
    [0, 3, 10, 11, 12]
    """
    if text is None:
        return None
    cases: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise typer.BadParameter(
                f"{text!r} is no list of cases; write it like 0,3,10-20 (the first case is 0).",
                param_hint="--cases",
            )
        if dash and int(last) < int(first):
            raise typer.BadParameter(f"{part!r} ends before it begins.", param_hint="--cases")
        cases.extend(range(int(first), int(last or first) + 1))
    return list(dict.fromkeys(cases))


def parse_sizes(text: str | None) -> tuple[float, ...] | None:
    """Read segment sizes: time points, or shares of the length.

    Examples
    --------
    >>> parse_sizes("4,0.25")
    (4, 0.25)
    """
    return None if text is None else tuple(_size(part.strip(), text) for part in text.split(","))


def _size(part: str, text: str) -> float:
    try:
        size = int(part) if part.isdecimal() else float(part)
    except ValueError:
        size = 0.0
    if part.isdecimal() or 0 < size < 1:
        return size
    raise typer.BadParameter(
        f"{text!r} is no list of segment sizes; write it like 4,7 (time points) or 4,0.25 (a "
        f"share of the length).",
        param_hint="--segments",
    )


def parse_label(text: str) -> str | None:
    """Return the name of the label column; "none" means that there is none."""
    return None if text.lower() == "none" else text


Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A file of series, or the name of a known set.",
        autocompletion=complete_data,
    ),
]
Model = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model that 'timesliver fit' wrote.")
]
Label = Annotated[
    str,
    typer.Option(
        metavar="COLUMN",
        help="Column of a .csv with the labels: its name, 'first', 'last', or 'none'. "
        "By default the one named label, class, target or y, else the first or last if it "
        "holds text.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    Split, typer.Option("--split", help="Which part of a set that has several.")
]
MethodOption = Annotated[
    Method,
    typer.Option(
        "--method", help="Shares that add up to the logit (additive), or the paper's scores."
    ),
]
AsJSON = Annotated[
    bool, typer.Option("--json", help="Print one JSON object, and nothing else, on stdout.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show where an error comes from (or set TIMESLIVER_DEBUG=1)."),
]
