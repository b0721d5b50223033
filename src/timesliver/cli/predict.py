"""``timesliver predict``: the class and its probability for each series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from timesliver.cli.app import command
from timesliver.cli.options import (
    AsJSON,
    Data,
    Debug,
    Label,
    Model,
    Quiet,
    Split,
    SplitOption,
    output_file,
    parse_label,
)
from timesliver.cli.output import Output, write_csv

__all__ = ["predict"]

SHOWN_ROWS, SHOWN_CLASSES = 10, 6


@command(
    "timesliver predict model.safetensors new.csv -o predictions.csv",
    "timesliver predict model.safetensors BasicMotions --split test --json",
)
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where to write all predictions (.csv).",
            callback=output_file(".csv"),
            show_default=False,
        ),
    ] = None,
    split: SplitOption = Split.test,
    label: Label = "auto",
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Predict the class of each series.

    The table has the columns case, predicted, one probability per class, and true if the data
    have labels. Without an output file its first rows are shown; --json prints all of them.
    """
    from timesliver.cli.models import accuracy, as_classes, load_model, load_series

    out = Output(as_json, quiet)
    classifier = load_model(model, out.shows_progress)
    series, _ = load_series(data, split.value, parse_label(label))
    probabilities = classifier.predict_proba(series.X)
    classes = classifier.classes_
    predicted = classes[probabilities.argmax(axis=1)]
    true = None if series.y is None else as_classes(series.y, classes)
    score = None if true is None else accuracy(true, predicted)
    if output is not None:
        header = ["case", "predicted", *(f"p({one})" for one in classes)]
        rows: list[list[Any]] = [
            [case, one, *(f"{p:.6g}" for p in row)]
            for case, (one, row) in enumerate(zip(predicted, probabilities, strict=True))
        ]
        if true is not None:
            header.append("true")
            rows = [[*row, one] for row, one in zip(rows, true, strict=True)]
        write_csv(output, header, rows)

    n_shown = SHOWN_ROWS if output is None else 0
    if n_shown:
        many = len(classes) > SHOWN_CLASSES
        header = ["case", "predicted", *(["p"] if many else [f"p({one})" for one in classes])]
        shown = [
            [case, predicted[case], *([row.max()] if many else row)]
            for case, row in enumerate(probabilities[:n_shown])
        ]
        if true is not None:
            header.append("true")
            shown = [[*row, one] for row, one in zip(shown, true, strict=False)]
        out.table(shown, header)
        if len(series) > n_shown:
            out.say(f"... and {len(series) - n_shown} more cases: write them with -o FILE.csv")
    if true is not None and not np.isin(true.astype(str), classes.astype(str)).any():
        out.note(
            f"note: no label of the data, like {str(true[0])!r}, is a class of the model; its "
            f"classes are {', '.join(map(str, classes[:10]))}"
        )
    if score is not None:
        out.say(f"accuracy {score:.3f} on {len(series)} labelled cases")
    if output is not None:
        out.say(f"predictions of {len(series)} cases are in {output}")
    content: dict[str, Any] = {"cases": len(series), "classes": classes, "accuracy": score}
    if output is not None:
        content["output"] = str(output)
    else:
        content["predictions"] = [
            {
                "case": case,
                "predicted": predicted[case],
                "probabilities": dict(zip(classes.tolist(), probabilities[case], strict=True)),
                **({} if true is None else {"true": true[case]}),
            }
            for case in range(len(series))
        ]
    out.result(**content)
