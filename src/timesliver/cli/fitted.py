"""What ``timesliver fit`` says of a model that it has trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from timesliver.cli.models import accuracy, as_classes
from timesliver.training.callbacks import Record

if TYPE_CHECKING:
    from timesliver.classifier import TimeSliverClassifier
    from timesliver.cli.output import Output
    from timesliver.datasets import Dataset

__all__ = ["Training", "show_fitted", "validation_accuracy"]

_SHOWN_CLASSES = 6


@dataclass(frozen=True)
class Training:
    """How the networks of a model were trained.

    Attributes
    ----------
    n_networks : int
        How many were trained.
    epochs : int or None
        Passes over the cases, of all networks together; None if the weights have a closed form.
    validation_accuracy : float or None
        Mean over the networks of the accuracy on cases that they did not learn from.
    validation : str
        Which cases these are: "set aside", "leave-one-out" or "none".
    """

    n_networks: int
    epochs: int | None
    validation_accuracy: float | None
    validation: str

    @classmethod
    def of(cls, model: TimeSliverClassifier) -> Training:
        """Read the history of a model."""
        members = list(_by_member(model.history_))
        closed = all(_in_closed_form(records) for records in members)
        known = validation_accuracy(model)
        kind = "leave-one-out" if closed else "set aside"
        return cls(
            len(members),
            None if closed else sum(map(len, members)),
            known,
            "none" if known is None else kind,
        )

    @property
    def in_words(self) -> str:
        """The validation accuracy, with what it was measured on."""
        if self.validation_accuracy is None:
            return "no case was set aside: there are too few"
        cases = "cases set aside from training"
        if self.validation == "leave-one-out":
            cases = "leave-one-out: each training case judged by the weights that all others give"
        mean = f"; mean of {self.n_networks} networks" if self.n_networks > 1 else ""
        return f"{self.validation_accuracy:.3f}  ({cases}{mean})"


def validation_accuracy(model: TimeSliverClassifier) -> float | None:
    """Return the mean over a model's networks of the validation accuracy that each was kept for.

    It is measured on cases set aside, or where weights have a closed form by leave-one-out.
    """
    kept = [
        [record["validation_accuracy"] for record in records if record["best"]][-1]
        for records in _by_member(model.history_)
        if "validation_accuracy" in records[0]
    ]
    return float(np.mean(kept)) if kept else None


def _by_member(history: list[Record]) -> Iterator[list[Record]]:
    """Yield the records of each network."""
    members = np.array([record.get("member", 0) for record in history])  # older files have one
    for member in np.unique(members):
        yield [history[i] for i in np.flatnonzero(members == member)]


def _in_closed_form(records: list[Record]) -> bool:
    return "train_loss" not in records[0]


@dataclass(frozen=True)
class _OnTest:
    test_accuracy: float | None = None
    test_cases: int | None = None

    @property
    def in_words(self) -> str:
        if self.test_accuracy is None:
            return "give labelled series with --test to measure it"
        return f"{self.test_accuracy:.3f}  ({self.test_cases} cases, never used in training)"


def show_fitted(
    out: Output,
    path: str,
    model: TimeSliverClassifier,
    train: Dataset,
    test: Dataset | None,
    seconds: float,
) -> None:
    """Show what was learnt from, and how well the model does."""
    training, on_test = Training.of(model), _tested(out, model, test)
    n_cases, n_channels, n_timepoints = train.X.shape
    classes = model.classes_
    shown = ", ".join(str(one) for one in classes[:_SHOWN_CLASSES])
    more = ", ..." if len(classes) > _SHOWN_CLASSES else ""
    rows: list[tuple[str, Any]] = [
        ("cases", n_cases),
        ("channels", n_channels),
        ("length", n_timepoints),
        ("classes", f"{len(classes)}  ({shown}{more})"),
    ]
    if training.epochs is not None:
        several = f"  ({training.n_networks} networks)" if training.n_networks > 1 else ""
        rows.append(("epochs", f"{training.epochs}{several}"))
    encoder = " + ".join(one.name for one in model.encoders_)
    rows.append(("encoder", encoder))
    for tried in model.report_:
        words = f"{tried['encoder']}: {tried['accuracy']:.3f} in {tried['seconds']:.0f} s"
        rows.append(("tried", f"{words}  ({tried['n_held_out']} cases held out)"))
    rows += [
        ("validation accuracy", training.in_words),
        ("test accuracy", on_test.in_words),
        ("seconds", f"{seconds:.1f}"),
        ("model", path),
    ]
    out.table(rows, title=train.name)
    out.result(
        model=path,
        cases=n_cases,
        channels=n_channels,
        length=n_timepoints,
        classes=classes,
        **asdict(training),
        **asdict(on_test),
        seconds=round(seconds, 2),
        encoder=encoder,
        tried=model.report_,
    )


def _tested(out: Output, model: TimeSliverClassifier, test: Dataset | None) -> _OnTest:
    """Measure the accuracy on a test set; say so if it has labels that the model does not know."""
    if test is None or test.y is None:
        return _OnTest()
    true = as_classes(test.y, model.classes_)
    unseen = np.setdiff1d(true.astype(str), model.classes_.astype(str))
    if len(unseen):
        out.note(f"note: labels of the test set that no training case has: {', '.join(unseen)}")
    return _OnTest(accuracy(true, model.predict(test.X)), len(test))
