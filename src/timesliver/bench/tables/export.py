"""Results in the files of other programs: tsml's predictions, aeon's table per classifier."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timesliver.bench.tables.build import labels_of
from timesliver.bench.tables.runs import Run, collect, distinct
from timesliver.io import replacing

if TYPE_CHECKING:
    from timesliver.bench.store import Record
    from timesliver.bench.suites import Suite

__all__ = ["write_results"]

_MEASURES = {"accuracy": "accuracy", "balacc": "balanced_accuracy"}


def write_results(
    suite: Suite,
    records: Mapping[str, Record] | Iterable[Record],
    folder: str | os.PathLike[str],
    preset: str | None = None,
) -> list[Path]:
    """Write the results of the train jobs for tsml-eval and aeon.

    ``<classifier>/Predictions/<dataset>/testResample<i>.csv`` holds one run for tsml-eval, with
    the true and the predicted class of each test case; it is written for records that hold both
    (``labels`` and ``predictions``). As no probabilities are stored, the predicted class has 1.
    ``classification/<measure>/<classifier>_<measure>.csv`` holds all runs of a classifier, as
    aeon's ``get_estimator_results(..., path=folder)`` reads them.

    A resample is a pair of split and seed here, numbered in order; the comment in the first line
    of a file of predictions names the two.

    Parameters
    ----------
    suite : Suite
        Where the records are from.
    records : dict of hash to Record
        What was run.
    folder : str or path
        Where to write; it is made if needed.
    preset : str, optional
        Take the jobs of this preset only.

    Returns
    -------
    list of Path
        The files.
    """
    root, labels = Path(folder), labels_of(suite)
    runs = [
        run
        for run in collect(suite, records, preset)
        if run.get("task") == "train" and run.status == "done"
    ]
    numbers = {trial: i for i, trial in enumerate(sorted({run.trial for run in runs}))}
    written = []
    for name in distinct(run.get("model") for run in runs):
        mine = [run for run in runs if run.get("model") == name]
        classifier = re.sub(r"[^\w.+-]+", "_", labels.get(name, name))
        for run in mine:
            if {"labels", "predictions"} <= run.result.keys():
                place = root / classifier / "Predictions" / run.get("dataset")
                path = place / f"testResample{numbers[run.trial]}.csv"
                written.append(_write(path, _predictions(run, classifier, numbers[run.trial])))
        for measure, key in _MEASURES.items():
            lines = _collated(mine, key, len(numbers), numbers)
            path = root / "classification" / measure / f"{classifier}_{measure}.csv"
            written.append(_write(path, lines))
    return written


def _predictions(run: Run, classifier: str, resample: int) -> list[list[Any]]:
    """Return the lines of a tsml file; classes are numbered in the order of their labels."""
    truth, predicted = run.result["labels"], run.result["predictions"]
    classes = sorted({*truth, *predicted}, key=lambda label: (str(type(label)), label))
    index = {label: i for i, label in enumerate(classes)}
    comment = f"split {run.trial[0]} seed {run.trial[1]}; classes {json.dumps(classes)}"
    milliseconds = round(1000 * float(run.result.get("seconds_fit") or -0.001))
    lines: list[list[Any]] = [
        [run.get("dataset"), classifier, "TEST", resample, "MILLISECONDS", comment],
        [run.get("config") or "no settings"],
        [run.result["accuracy"], milliseconds, -1, -1, -1, len(classes), "", -1, -1],
    ]
    for true, guess in zip(truth, predicted, strict=True):
        chances = [int(index[guess] == i) for i in range(len(classes))]
        lines.append([index[true], index[guess], "", *chances])
    return lines


def _collated(
    runs: Sequence[Run], key: str, n_resamples: int, numbers: Mapping[tuple[int, int], int]
) -> list[list[Any]]:
    """Return a line for each data set, a column for each resample; empty where it was not run."""
    lines: list[list[Any]] = [["Resamples:", *range(n_resamples)]]
    for dataset in sorted(distinct(run.get("dataset") for run in runs)):
        line: list[Any] = [dataset, *[""] * n_resamples]
        for run in runs:
            if run.get("dataset") == dataset:
                value = run.number(key)
                line[1 + numbers[run.trial]] = "" if value is None else value
        lines.append(line)
    return lines


def _write(path: Path, lines: list[list[Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    file = io.StringIO()
    csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).writerows(lines)
    with replacing(path) as draft:
        draft.write_text(file.getvalue(), encoding="utf-8")
    return path
