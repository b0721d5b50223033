"""``timesliver fit``: train a model and write it to a file."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from numpy.typing import NDArray

from timesliver.cli.app import INTERRUPTED, command
from timesliver.cli.encoder import (
    chosen_encoder,
    complete_encoder,
    complete_symbols,
    read_settings,
)
from timesliver.cli.options import (
    AsJSON,
    Channels,
    Debug,
    Label,
    Quiet,
    complete_data,
    output_file,
    parse_label,
    parse_sizes,
)
from timesliver.cli.output import Output

if TYPE_CHECKING:
    from timesliver.datasets import Dataset

__all__ = ["fit"]

ENCODER, SEGMENTS, TRAINING = "The encoder", "The encoder 'segments'", "The training"


def _option(panel: str, text: str, default: str | bool = True, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=default, **more)


# Options that are None leave the encoder's own default, which the help repeats.
@command(
    "timesliver fit train.csv -o model.safetensors",
    "timesliver fit GunPoint_TRAIN.ts --test GunPoint_TEST.ts",
    "timesliver fit BasicMotions --test BasicMotions --channels separate --sparsity 0.01",
    "timesliver fit train.csv --symbols sax,clock --set depth=1 --estimators 3",
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
    encoder: Annotated[
        str,
        _option(
            ENCODER,
            "What describes every moment; a wrong name gives the list.",
            metavar="NAME",
            autocompletion=complete_encoder,
        ),
    ] = "auto",
    preset: Annotated[
        str | None,
        _option(
            ENCODER,
            "A ready setting of 'segments', like LowVar; other options change it.",
            False,
            metavar="NAME",
        ),
    ] = None,
    symbols: Annotated[
        str | None,
        _option(
            ENCODER,
            "How moments become symbols; each of several brings weights of its own.",
            "sax",
            metavar="NAME[,NAME]",
            autocompletion=complete_symbols,
        ),
    ] = None,
    bins: Annotated[
        int | None, _option(ENCODER, "About how many symbols there are of each kind.", "5", min=2)
    ] = None,
    set_: Annotated[
        list[str] | None,
        _option(
            ENCODER,
            "Any parameter of the encoder, like depth=1 or symbols__n_bins=7; may be given again "
            "for others.",
            False,
            "--set",
            metavar="NAME=VALUE",
        ),
    ] = None,
    latent: Annotated[
        int | None,
        _option(SEGMENTS, "Length of the vector that describes a segment.", "36", min=1),
    ] = None,
    segments: Annotated[
        str | None,
        _option(
            SEGMENTS,
            "Lengths of the segments: time points, or below 1 shares of the length.",
            "4,16",
        ),
    ] = None,
    channels: Annotated[
        Channels | None,
        _option(
            SEGMENTS,
            "One encoder for all channels (mixed), for each by itself (separate), or with one "
            "last layer as well (shared).",
            "mixed",
        ),
    ] = None,
    sparsity: Annotated[
        float | None,
        _option(
            SEGMENTS, "Penalty on evidence, for clearer explanations; 0.01 is mild.", "0.0", min=0
        ),
    ] = None,
    epochs: Annotated[
        int | None, _option(SEGMENTS, "Most passes over the cases.", "100", min=1)
    ] = None,
    patience: Annotated[
        int | None,
        _option(SEGMENTS, "Epochs without improvement before training stops.", "20", min=1),
    ] = None,
    lr: Annotated[float | None, _option(SEGMENTS, "Learning rate.", "0.001")] = None,
    batch_size: Annotated[
        int | None, _option(SEGMENTS, "Most cases per step.", "64", min=1)
    ] = None,
    estimators: Annotated[
        int,
        _option(TRAINING, "How many seeds to train with; their logits are averaged.", min=1),
    ] = 1,
    seed: Annotated[int, _option(TRAINING, "The same seed gives the same model.", min=0)] = 0,
    jobs: Annotated[
        int | None,
        _option(TRAINING, "Number of threads; -1 takes all cores.", "as many as torch likes"),
    ] = None,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train a classifier on labelled series and write it to a file.

    Ctrl-C ends the training early; the best model so far is written.
    """
    out = Output(as_json, quiet)
    of_segments = {
        "--latent": ("latent_dim", latent),
        "--segments": ("sizes", parse_sizes(segments)),
        "--channels": ("channels", channels and channels.value),
        "--sparsity": ("sparsity", sparsity),
        "--epochs": ("max_epochs", epochs),
        "--patience": ("patience", patience),
        "--lr": ("learning_rate", lr),
        "--batch-size": ("batch_size", batch_size),
    }
    more = read_settings(set_ or [])
    chosen = chosen_encoder(encoder, preset, symbols, bins, of_segments, more)
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
    from timesliver.cli.fitted import show_fitted

    model = TimeSliverClassifier(
        chosen,
        n_estimators=estimators,
        random_state=seed,
        n_jobs=jobs,
        verbose=int(out.shows_progress),
    )
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
    show_fitted(out, str(output), model, data, tested, seconds)
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
