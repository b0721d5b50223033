"""``timesliver data``: what is in a data set, and which sets there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from timesliver.cli.app import command
from timesliver.cli.options import (
    AsJSON,
    Debug,
    Label,
    Quiet,
    Split,
    SplitOption,
    complete_data,
    parse_label,
)
from timesliver.cli.output import Output

if TYPE_CHECKING:
    from timesliver.datasets import Dataset

__all__ = ["data", "describe"]

MOST_CLASSES = 30


@command(
    "timesliver data",
    "timesliver data BasicMotions --split test",
    "timesliver data measurements.csv --label outcome",
)
def data(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A file of series, or the name of a known set; nothing lists the known sets.",
            autocompletion=complete_data,
            show_default=False,
        ),
    ] = None,
    split: SplitOption = Split.train,
    label: Label = "auto",
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """List the known data sets, or describe one: shape, classes, missing values."""
    from timesliver import datasets

    output = Output(as_json, quiet)
    if name is None:
        names = datasets.names()
        rows = [_overview(name) for name in names]
        output.table([[*row.values()] for row in rows], header=[*rows[0]])
        output.note(
            "Sets that are not at hand are downloaded when they are first used. More are found in "
            "the folder that the environment variable TIMESLIVER_DATA gives."
        )
        output.result(sets=names)
        return
    described = describe(datasets.load(name, split.value, label=parse_label(label)))
    output.result(**described)
    shortest, longest = described["lengths"]
    classes = described["classes"]
    facts: list[tuple[str, Any]] = [
        ("cases", described["cases"]),
        ("channels", _channels(described)),
        ("length", longest if shortest == longest else f"{shortest} to {longest} (unequal)"),
        ("values", _range(described["range"])),
        ("missing", f"{described['missing']:.2%}" if described["missing"] else "none"),
    ]
    if described["salient"] is not None:
        facts.append(("salient", f"{described['salient']:.2%} of the time points, known"))
    facts.append(("classes", "no labels" if classes is None else len(classes)))
    output.table(facts, title=described["name"])
    if classes is not None:
        output.say("")
        output.table(
            [(label, n, n / described["cases"]) for label, n in classes.items()][:MOST_CLASSES],
            header=("class", "cases", "share"),
        )
        if len(classes) > MOST_CLASSES:
            output.say(f"... and {len(classes) - MOST_CLASSES} more classes")


def describe(data: Dataset) -> dict[str, Any]:
    """Return what there is to know of a set before any model sees it."""
    from timesliver.series import as_series

    series = as_series(data.X)
    inside = np.arange(series.n_timepoints) < series.lengths[:, None, None]
    inside = np.broadcast_to(inside, series.observed.shape)
    seen = series.values[series.observed]
    classes = None
    if data.y is not None:
        labels, counts = np.unique(data.y, return_counts=True)
        classes = dict(zip(labels.astype(str).tolist(), counts.tolist(), strict=True))
    return {
        "name": data.name,
        "cases": len(series),
        "channels": series.n_channels,
        "channel_names": data.channel_names,
        "lengths": [int(series.lengths.min()), int(series.lengths.max())],
        "range": [float(seen.min()), float(seen.max())] if len(seen) else None,
        "missing": float((inside & ~series.observed).sum() / inside.sum()),
        "salient": None if data.salient is None else float(data.salient.any(axis=1).mean()),
        "classes": classes,
    }


def _channels(described: dict[str, Any]) -> str:
    names = described["channel_names"]
    if not names:
        return str(described["channels"])
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"{described['channels']} ({shown})"


def _range(limits: list[float] | None) -> str:
    return "none observed" if limits is None else f"{limits[0]:.4g} to {limits[1]:.4g}"


def _overview(name: str) -> dict[str, Any]:
    from timesliver import datasets

    known = datasets.info(name)
    sizes = known.sizes or {}
    return {
        "set": name,
        "source": known.source,
        **{part: sizes.get(part) for part in ("train", "validation", "test")},
        "channels": known.n_channels,
        "length": known.n_timepoints,
        "classes": known.n_classes,
    }
