"""Watching a training run: three moments, plain records."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from timesliver.errors import InvalidParameterError

__all__ = ["Callback", "Progress", "Record", "StopTraining", "TimeLimit", "all_callbacks"]

#: One epoch: its number, losses, accuracy and time, as plain numbers.
Record = dict[str, Any]


class StopTraining(Exception):  # noqa: N818 - a request, not an error
    """Raised by a callback to end training; the best model so far is kept."""


class Callback:
    """What a training run calls; override what you need.

    A plain function given as a callback is called at the end of each epoch.

    Examples
    --------
    >>> class Stop(Callback):
    ...     def on_epoch_end(self, record):
    ...         if record["train_loss"] < 0.1:
    ...             raise StopTraining
    """

    def on_train_begin(self, max_epochs: int) -> None:
        """Begin: nothing has been trained yet."""

    def on_epoch_end(self, record: Record) -> None:
        """Look at the record of an epoch that has just ended."""

    def on_train_end(self, history: Sequence[Record]) -> None:
        """End, however training ended."""


class Progress(Callback):
    """A progress bar on the standard error stream."""

    def __init__(self, description: str = "Training") -> None:
        self.description = description

    def on_train_begin(self, max_epochs: int) -> None:
        """Draw the bar."""
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("epoch {task.completed}/{task.total}"),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(self.description, total=max_epochs, figures="")
        self._bar.start()

    def on_epoch_end(self, record: Record) -> None:
        """Move it on."""
        figures = f"loss {record['train_loss']:.3f}"
        if "validation_accuracy" in record:
            figures += f", validation accuracy {record['validation_accuracy']:.3f}"
        self._bar.update(self._task, advance=1, figures=figures)

    def on_train_end(self, history: Sequence[Record]) -> None:  # noqa: ARG002
        """Leave it as it is."""
        self._bar.stop()


class TimeLimit(Callback):
    """End training after so many seconds; the best model so far is kept."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def on_train_begin(self, max_epochs: int) -> None:  # noqa: ARG002
        """Look at the clock."""
        self._end = time.perf_counter() + self.seconds

    def on_epoch_end(self, record: Record) -> None:  # noqa: ARG002
        """Look again."""
        if time.perf_counter() > self._end:
            raise StopTraining


class _Function(Callback):
    """A plain function as a callback."""

    def __init__(self, function: Callable[[Record], Any]) -> None:
        self.function = function

    def on_epoch_end(self, record: Record) -> None:
        self.function(record)


def all_callbacks(callbacks: Sequence[Callback | Callable[[Record], Any]] | None) -> list[Callback]:
    """Return callbacks of one kind from callbacks and functions."""
    if not isinstance(callbacks, list | tuple | None):
        raise InvalidParameterError(f"callbacks must be a list or None, got {callbacks!r}")
    for callback in callbacks or ():
        if not (isinstance(callback, Callback) or callable(callback)):
            raise InvalidParameterError(
                f"callbacks must hold Callback objects or functions, got {callback!r}"
            )
    return [c if isinstance(c, Callback) else _Function(c) for c in callbacks or ()]
