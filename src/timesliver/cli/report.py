"""``timesliver report``: one page with cases, explanations and the confusion matrix."""

from __future__ import annotations

from dataclasses import replace
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
    parse_label,
)
from timesliver.cli.output import Output
from timesliver.typing import IntArray

if TYPE_CHECKING:
    from timesliver.classifier import TimeSliverClassifier

__all__ = ["report", "write_page"]


@command(
    "timesliver report model.safetensors test.csv -o report.html",
    "timesliver report model.safetensors BasicMotions --split test --cases 20 --open",
)
def report(
    model: Model,
    data: Data,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The page to write.", callback=output_file(".html")),
    ] = Path("report.html"),
    cases: Annotated[int, typer.Option(help="How many cases to show at most.", min=1)] = 60,
    method: MethodOption = Method.additive,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    split: SplitOption = Split.test,
    label: Label = "auto",
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write a page to look through: series, evidence for each class, confusion matrix.

    Of more cases than --cases, mistakes and some of every class are shown; the confusion matrix
    counts all. The page is one file and needs no network.
    """
    from timesliver.cli.models import accuracy, as_classes, load_model, load_series

    out = Output(as_json, quiet)
    classifier = load_model(model, out.shows_progress)
    series, _ = load_series(data, split.value, parse_label(label))
    predicted = classifier.predict(series.X)
    y = None if series.y is None else as_classes(series.y, classifier.classes_)
    title = f"{series.name}: which moments decided"
    shown = write_page(output, classifier, series.X, y, predicted, title, cases, method.value)
    score = None if y is None else accuracy(y, predicted)
    of = "" if len(shown) == len(series) else f" of {len(series)}"
    out.say(f"{len(shown)}{of} cases are shown in {output}")
    if score is not None:
        out.say(f"accuracy {score:.3f} on {len(series)} labelled cases")
    out.result(output=str(output), cases=len(series), shown=shown, accuracy=score)
    if open_:
        typer.launch(str(output.resolve()))


def write_page(
    path: Path,
    classifier: TimeSliverClassifier,
    X: NDArray[Any],
    y: NDArray[Any] | None,
    predicted: NDArray[Any],
    title: str,
    n_most: int,
    method: str = "additive",
) -> IntArray:
    """Write the page, with every class explained; return which cases it shows."""
    from timesliver import report as pages
    from timesliver.cli.models import settings

    mistaken = np.zeros(len(predicted), bool) if y is None else predicted != y
    chosen = pages.choose_cases(predicted, mistaken, n_most)
    why = classifier.explain(X[chosen], "all", method)
    pages.write(
        path,
        [replace(part, case=chosen.astype(np.int64)) for part in why.by_class()],
        y=None if y is None else y[chosen],
        title=title,
        settings=settings(classifier),
        overall=None if y is None else (y, predicted),
    )
    return chosen
