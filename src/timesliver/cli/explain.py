"""``timesliver explain``: which moments decided, as numbers, a table or a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    from timesliver.attribution import Attribution, Interval

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
    method: MethodOption = Method.additive,
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
    wanted = None if goal is None else [goal] * len(series)  # a class may be called "all"
    scores = classifier.explain(series.X, wanted, method.value)
    scores = replace(scores, case=numbers)  # as the whole set numbers them
    if output is None:
        n_shown = len(series) if as_json else SHOWN_CASES
        reasons = [Reasons.of(scores[i]) for i in range(min(n_shown, len(series)))]
        _show(out, reasons[:SHOWN_CASES], len(series))
        out.result(method=method.value, cases=[one.as_dict() for one in reasons])
        return
    match output.suffix.lower():
        case ".npz":
            scores.save(output)
        case ".csv":
            write_csv(output, COLUMNS, _rows(scores))
        case _:
            y = None if series.y is None else as_classes(series.y, classifier.classes_)
            title = f"{series.name}: which moments decided"
            scores.to_html(output, y=y, title=title, settings=settings(classifier))
    out.say(f"the scores of {len(series)} cases are in {output}")
    out.result(method=method.value, cases=len(series), output=str(output))


COLUMNS = ("case", "channel", "time", "class", "value", "positive", "negative", "net")


def _rows(scores: Attribution) -> Iterator[tuple[Any, ...]]:
    """Yield the `COLUMNS` of what `Attribution.to_frame` holds, which needs pandas."""
    assert scores.series is not None
    for i, (number, length) in enumerate(zip(scores.case.tolist(), scores.lengths, strict=True)):
        label = scores.classes[scores.target[i]]
        for channel in range(scores.series.shape[1]):
            parts = zip(
                scores.series[i, channel, :length].tolist(),
                scores.positive_by_channel[i, channel, :length].tolist(),
                scores.negative_by_channel[i, channel, :length].tolist(),
                strict=True,
            )
            for time, (value, positive, negative) in enumerate(parts):
                shown = "" if math.isnan(value) else f"{value:.6g}"
                evidence = (f"{part:.6g}" for part in (positive, negative, positive - negative))
                yield number, channel, time, label, shown, *evidence


@dataclass(frozen=True)
class Reasons:
    """What decided a case: the intervals that say most about the class explained."""

    case: int
    label: Any
    probability: float | None
    logit: float
    base: float
    intervals: list[Interval]

    @classmethod
    def of(cls, scores: Attribution) -> Reasons:
        """Read the scores of a single case."""
        [target], probabilities = scores.target, scores.probabilities
        return cls(
            int(scores.case[0]),
            scores.classes[target],
            None if probabilities is None else float(probabilities[0, target]),
            float(scores.logit[0]),
            float(scores.base[0]),
            scores.top(SHOWN_INTERVALS),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the reasons for scripts."""
        names = ("start", "stop", "channel", "sign", "share")
        return {
            "case": self.case,
            "class": self.label,
            "probability": self.probability,
            "logit": self.logit,
            "base": self.base,
            "intervals": [{name: getattr(one, name) for name in names} for one in self.intervals],
        }


def _show(out: Output, reasons: list[Reasons], n_cases: int) -> None:
    rows: list[list[Any]] = []
    for one in reasons:
        said = [
            [f"{part.start} to {part.stop - 1}", part.channel, part.sign, f"{part.share:.0%}"]
            for part in one.intervals
        ]
        first, *others = said or [["no evidence", "", "", ""]]
        rows.append([one.case, one.label, one.probability, *first])
        rows += [["", "", "", *other] for other in others]
    out.table(rows, ("case", "class", "p", "time points", "channel", "speak", "share"))
    if n_cases > SHOWN_CASES:
        out.say(
            f"... and {n_cases - SHOWN_CASES} more cases: choose with --cases, or write all scores "
            f"with -o FILE.npz, .csv or .html"
        )
