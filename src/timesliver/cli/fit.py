"""``timesliver fit``: train a model and write it to a file."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from timesliver.cli.app import INTERRUPTED, command
from timesliver.cli.options import (
    AsJSON,
    Channels,
    Debug,
    Label,
    Quiet,
    Symbolizer,
    complete_data,
    output_file,
    parse_label,
    parse_sizes,
)
from timesliver.cli.output import Output

if TYPE_CHECKING:
    from timesliver.classifier import TimeSliverClassifier
    from timesliver.datasets import Dataset

__all__ = ["fit", "validation_accuracy"]

NETWORK, TRAINING = "The network", "The training"


# Options that are None leave the classifier's own default, which show_default repeats.
@command(
    "timesliver fit train.csv -o model.safetensors",
    "timesliver fit GunPoint_TRAIN.ts --test GunPoint_TEST.ts",
    "timesliver fit BasicMotions --test BasicMotions --channels separate --sparsity 0.01",
)
def fit(
    train: Annotated[
        str,
        typer.Argument(
            metavar="TRAIN",
            help="A file of labelled series, or the name of a known set.",
            autocompletion=complete_data,
        ),
    ],
    test: Annotated[
        str | None,
        typer.Option(
            metavar="TEST",
            help="Labelled series to measure the accuracy on, never used in training.",
            autocompletion=complete_data,
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", help="Where to write the model.", callback=output_file(".safetensors")
        ),
    ] = Path("model.safetensors"),
    label: Label = "auto",
    bins: Annotated[
        int | None,
        typer.Option(help="Symbols per channel.", rich_help_panel=NETWORK, show_default="5", min=2),
    ] = None,
    latent: Annotated[
        int | None,
        typer.Option(
            help="Length of the vector that describes a segment.",
            rich_help_panel=NETWORK,
            show_default="36",
            min=1,
        ),
    ] = None,
    segments: Annotated[
        str | None,
        typer.Option(
            help="Lengths of the segments, in time points.",
            rich_help_panel=NETWORK,
            show_default="4,16",
        ),
    ] = None,
    symbolizer: Annotated[
        Symbolizer | None,
        typer.Option(
            help="How values become symbols.",
            rich_help_panel=NETWORK,
            show_default="sax",
        ),
    ] = None,
    channels: Annotated[
        Channels | None,
        typer.Option(
            help="One encoder for all channels (mixed), for each by itself (separate), or with "
            "one last layer as well (shared).",
            rich_help_panel=NETWORK,
            show_default="mixed",
        ),
    ] = None,
    sparsity: Annotated[
        float | None,
        typer.Option(
            help="Penalty on evidence, for clearer explanations; 0.01 is mild.",
            rich_help_panel=NETWORK,
            show_default="0.0",
            min=0,
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            help="Most passes over the cases.",
            rich_help_panel=TRAINING,
            show_default="100",
            min=1,
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Epochs without improvement before training stops.",
            rich_help_panel=TRAINING,
            show_default="20",
            min=1,
        ),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(help="Learning rate.", rich_help_panel=TRAINING, show_default="0.001"),
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Most cases per step.", rich_help_panel=TRAINING, show_default="64", min=1
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(help="The same seed gives the same model.", rich_help_panel=TRAINING, min=0),
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="Number of threads; -1 takes all cores.",
            rich_help_panel=TRAINING,
            show_default="as many as torch likes",
        ),
    ] = None,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train a classifier on labelled series and write it to a file.

    Ctrl-C ends the training early; the best model so far is written.
    """
    out = Output(as_json, quiet)
    parameters: dict[str, Any] = {
        "n_bins": bins,
        "latent_dim": latent,
        "segment_sizes": parse_sizes(segments),
        "symbolizer": symbolizer and symbolizer.value,
        "channels": channels and channels.value,
        "sparsity": sparsity,
        "max_epochs": epochs,
        "patience": patience,
        "learning_rate": lr,
        "batch_size": batch_size,
        "n_jobs": jobs,
    }
    from timesliver import datasets

    column = parse_label(label)
    data = datasets.load(train, "train", label=column)
    y = _labels(data, train)
    tested = None if test is None else datasets.load(test, "test", label=column)
    if tested is not None:
        _labels(tested, str(test))
        _check_like(data, tested)

    from sklearn.exceptions import ConvergenceWarning

    from timesliver.classifier import TimeSliverClassifier

    given = {name: value for name, value in parameters.items() if value is not None}
    model = TimeSliverClassifier(**given, random_state=seed, verbose=int(out.shows_progress))
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(data.X, y)
    seconds = time.perf_counter() - start
    interrupted = False
    for warning in caught:
        interrupted |= issubclass(warning.category, ConvergenceWarning)
        out.note(f"note: {warning.message}")
    model.save(output)
    _report(out, output, model, data, tested, seconds)
    if interrupted:
        raise typer.Exit(INTERRUPTED)


def _labels(data: Dataset, name: str) -> NDArray[Any]:
    from timesliver.errors import InvalidInputError

    if data.y is None:
        raise InvalidInputError(
            f"{name} has no labels, and a classifier needs them; if a column of a .csv holds them, "
            f"name it with --label (or 'first', 'last')"
        )
    return data.y


def _check_like(train: Dataset, test: Dataset) -> None:
    from timesliver.errors import InvalidInputError

    if train.X.shape[1] != test.X.shape[1]:
        raise InvalidInputError(
            f"the test series have {test.X.shape[1]} channels, the training series "
            f"{train.X.shape[1]}; give the same channels in the same order"
        )


def validation_accuracy(model: TimeSliverClassifier) -> float | None:
    """Return the accuracy on the cases set aside, at the epoch that was kept."""
    kept: list[float] = [
        record["validation_accuracy"]
        for record in model.history_
        if record["best"] and "validation_accuracy" in record
    ]
    return kept[-1] if kept else None


def _report(
    out: Output,
    path: Path,
    model: TimeSliverClassifier,
    data: Dataset,
    tested: Dataset | None,
    seconds: float,
) -> None:
    from timesliver.cli.models import accuracy, as_classes

    n_cases, n_channels, n_timepoints = data.X.shape
    found: dict[str, Any] = {
        "model": str(path),
        "cases": n_cases,
        "channels": n_channels,
        "length": n_timepoints,
        "classes": model.classes_,
        "epochs": model.n_iter_,
        "validation_accuracy": validation_accuracy(model),
        "test_accuracy": None,
        "seconds": round(seconds, 2),
    }
    aside = "no case was set aside: there are too few"
    if found["validation_accuracy"] is not None:
        aside = f"{found['validation_accuracy']:.3f}  (cases set aside from training)"
    on_test = "give labelled series with --test to measure it"
    if tested is not None and tested.y is not None:
        true = as_classes(tested.y, model.classes_)
        found["test_cases"] = len(tested)
        found["test_accuracy"] = accuracy(true, model.predict(tested.X))
        on_test = f"{found['test_accuracy']:.3f}  ({len(tested)} cases, never used in training)"
        unseen = np.setdiff1d(true.astype(str), model.classes_.astype(str))
        if len(unseen):
            out.note(f"note: labels of the test set that no training case has: {', '.join(unseen)}")
    shown = ", ".join(str(one) for one in model.classes_[:6])
    more = ", ..." if len(model.classes_) > 6 else ""
    out.table(
        [
            ("cases", n_cases),
            ("channels", n_channels),
            ("length", n_timepoints),
            ("classes", f"{len(model.classes_)}  ({shown}{more})"),
            ("epochs", model.n_iter_),
            ("validation accuracy", aside),
            ("test accuracy", on_test),
            ("seconds", f"{seconds:.1f}"),
            ("model", str(path)),
        ],
        title=data.name,
    )
    out.result(**found)
