"""``timesliver explain``: which moments decided, as numbers, a table or a page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from timesliver.cli.app import command
from timesliver.cli.options import (
    AsJSON,
    Data,
    Debug,
    Label,
    Method,
    MethodOption,
    Model,
    Quiet,
    Split,
    SplitOption,
    output_file,
    parse_cases,
    parse_label,
)
from timesliver.cli.output import Output, write_csv

if TYPE_CHECKING:
    from timesliver.attribution import Attribution

__all__ = ["explain"]

SHOWN_CASES, SHOWN_INTERVALS = 5, 3


@command(
    "timesliver explain model.safetensors new.csv",
    "timesliver explain model.safetensors new.csv --cases 0,3,10-20 -o scores.csv",
    "timesliver explain model.safetensors BasicMotions --target walking -o walking.html",
)
def explain(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write all scores: .npz (for Attribution.load), .csv (one row per case, "
            "channel and time point) or .html (a page to look at).",
            callback=output_file(".npz", ".csv", ".html"),
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="The class to explain.", show_default="the predicted"),
    ] = None,
    method: MethodOption = Method.timesliver,
    cases: Annotated[
        str | None,
        typer.Option(help="Which cases, like 0,3,10-20; the first is 0.", show_default="all"),
    ] = None,
    split: SplitOption = Split.test,
    label: Label = "auto",
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Say which moments and channels spoke for a class, and which against it.

    Without an output file, the strongest intervals of the first cases are shown; --json prints
    those of all cases.
    """
    chosen = parse_cases(cases)
    from timesliver.cli.models import as_class, as_classes, load_model, load_series, settings

    out = Output(as_json, quiet)
    classifier = load_model(model, out.shows_progress)
    goal = None if target is None else as_class(target, classifier.classes_)
    series, numbers = load_series(data, split.value, parse_label(label), chosen)
    wanted = None if goal is None else np.full(len(series), goal, classifier.classes_.dtype)
    scores = classifier.explain(series.X, wanted, method.value)
    y = None if series.y is None else as_classes(series.y, classifier.classes_)
    if output is None:
        n_shown = len(series) if as_json else SHOWN_CASES
        found = [_intervals(scores, i, int(number)) for i, number in enumerate(numbers[:n_shown])]
        _show(out, found, len(series))
        out.result(method=method.value, cases=found)
        return
    match output.suffix.lower():
        case ".npz":
            scores.save(output)
        case ".csv":
            write_csv(output, COLUMNS, _rows(scores, numbers))
        case _:
            from timesliver import report

            title = f"{series.name}: which moments decided"
            shaped_by = settings(classifier)
            report.write(
                output, [scores], y=y, title=title, settings=shaped_by, numbers=numbers.tolist()
            )
    if output.suffix.lower() == ".npz" and chosen is not None and chosen != [*range(len(chosen))]:
        out.note(f"note: {output} numbers the cases from 0, in the order you gave")
    out.say(f"the scores of {len(series)} cases are in {output}")
    out.result(method=method.value, cases=len(series), output=str(output))


COLUMNS = ("case", "channel", "time", "class", "value", "positive", "negative", "net")


def _rows(scores: Attribution, numbers: NDArray[np.int64]) -> Iterator[tuple[Any, ...]]:
    """Yield what `Attribution.to_frame` holds, without the padding."""
    assert scores.series is not None
    for i, (number, length) in enumerate(zip(numbers.tolist(), scores.lengths, strict=True)):
        label = scores.classes[scores.target[i]]
        for channel in range(scores.series.shape[1]):
            parts = zip(
                scores.series[i, channel, :length].tolist(),
                scores.positive_by_channel[i, channel, :length].tolist(),
                scores.negative_by_channel[i, channel, :length].tolist(),
                strict=True,
            )
            for time, (value, positive, negative) in enumerate(parts):
                yield (
                    number,
                    channel,
                    time,
                    label,
                    "" if value != value else f"{value:.6g}",
                    f"{positive:.6g}",
                    f"{negative:.6g}",
                    f"{positive - negative:.6g}",
                )


def _intervals(scores: Attribution, i: int, number: int) -> dict[str, Any]:
    probabilities = scores.probabilities
    return {
        "case": number,
        "class": scores.classes[scores.target[i]],
        "probability": None if probabilities is None else probabilities[i, scores.target[i]],
        "intervals": [
            {
                "start": interval.start,
                "stop": interval.stop,
                "channel": interval.channel,
                "sign": interval.sign,
                "share": interval.share,
            }
            for interval in scores.top(SHOWN_INTERVALS, case=i)
        ],
    }


def _show(out: Output, found: list[dict[str, Any]], n_cases: int) -> None:
    rows: list[tuple[Any, ...]] = []
    for case in found[:SHOWN_CASES]:
        first: tuple[Any, ...] = (case["case"], case["class"], case["probability"])
        for one in case["intervals"] or [None]:
            says = ("no evidence", "", "", "")
            if one is not None:
                moments = f"{one['start']} to {one['stop'] - 1}"
                says = (moments, one["channel"], one["sign"], f"{one['share']:.0%}")
            rows.append((*first, *says))
            first = ("", "", "")
    out.table(rows, ("case", "class", "p", "time points", "channel", "speak", "share"))
    if n_cases > SHOWN_CASES:
        out.say(
            f"... and {n_cases - SHOWN_CASES} more cases: choose with --cases, or write all scores "
            f"with -o FILE.npz, .csv or .html"
        )
