"""``timesliver demo``: train, explain and look, on generated data with a known answer."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from timesliver.cli.app import command
from timesliver.cli.options import AsJSON, Debug, Quiet, output_file
from timesliver.cli.output import Output
from timesliver.typing import BoolArray

__all__ = ["demo"]

N_TRAIN, N_TEST, N_SHOWN = 600, 200, 60


@command("timesliver demo", "timesliver demo -o look.html")
def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The page to write.", callback=output_file(".html")),
    ] = Path("report.html"),
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Train on generated series, check the explanations, write a page. Takes a minute.

    Each series has two noisy channels; one of them is calm for a short while, at a low or a high
    level. Channel and level make four classes, so it is known which moments decide.
    """
    from sklearn.metrics import average_precision_score

    from timesliver.classifier import TimeSliverClassifier
    from timesliver.cli.models import accuracy
    from timesliver.cli.report import write_page
    from timesliver.datasets import make_lowvar

    out = Output(as_json, quiet)
    start = time.perf_counter()
    names = np.array(["first low", "first high", "second low", "second high"])
    train, test = make_lowvar(N_TRAIN, random_state=0), make_lowvar(N_TEST, random_state=1)
    assert train.y is not None
    assert test.y is not None
    assert test.salient is not None
    out.note(f"Training on {N_TRAIN} generated series of two channels and 200 time points ...")
    model = TimeSliverClassifier(n_jobs=1, random_state=0, verbose=int(out.shows_progress))
    model.fit(train.X, names[train.y])
    true = names[test.y]
    predicted = model.predict(test.X)
    planted: BoolArray = np.any(test.salient, axis=1)
    pairs = zip(planted, model.explain(test.X).positive, strict=True)
    precision = float(np.mean([average_precision_score(mask, score) for mask, score in pairs]))
    chance = float(planted.mean())
    write_page(output, model, test.X, true, predicted, "Demo: which moments decided?", N_SHOWN)
    seconds = time.perf_counter() - start
    score = accuracy(true, predicted)
    where = output.resolve()
    out.table(
        [
            ("accuracy", f"{score:.3f}  on {N_TEST} unseen series"),
            (
                "planted moments found",
                f"{precision:.3f}  average precision of the evidence (chance {chance:.3f}, best 1)",
            ),
            ("seconds", f"{seconds:.0f}"),
        ]
    )
    out.say(f"Look at {where.as_uri()}")
    out.result(
        accuracy=score,
        average_precision=precision,
        chance=chance,
        seconds=round(seconds, 2),
        output=str(where),
    )
