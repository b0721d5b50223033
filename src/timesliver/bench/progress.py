"""How far a run is: a live bar on a terminal, and a line per finished job if wanted."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar

from timesliver.bench.estimate import Estimate, in_words
from timesliver.bench.jobs import Job
from timesliver.bench.store import Record

__all__ = ["Progress", "last_line"]

_STYLES = {"done": "green", "failed": "bold red", "na": "yellow"}


class Progress:
    """Shows a run on the standard error stream; use it as a context.

    Parameters
    ----------
    title : str
        What is being run.
    total : int
        How many jobs there are.
    n_workers : int
        How many of them run at once.
    live : bool
        Draw a bar, on a terminal.
    verbose : int
        From 1 on, say a line for each finished job.
    """

    def __init__(
        self, title: str, total: int, n_workers: int, live: bool = True, verbose: int = 0
    ) -> None:
        self.total, self.n_workers, self.verbose = total, n_workers, verbose
        self.counts: Counter[str] = Counter()
        self._console = Console(stderr=True)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("{task.fields[figures]}"),
            console=self._console,
            disable=not (live and self._console.is_terminal),
        )
        self._task = self._bar.add_task(title, total=total, figures="")
        self._begin = time.monotonic()
        self._shown = -math.inf

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()

    def finished(self, record: Record, left: Callable[[], Estimate]) -> None:
        """Count a record, and say how much work is left, if anybody sees it."""
        self.counts[record.status] += 1
        if self.verbose:
            n = self.counts.total()
            error = f": {last_line(record.error)}" if record.error else ""
            self._console.print(
                f"[{n}/{self.total}] {record.status:6} {Job.from_dict(record.job).label} "
                f"({record.seconds:.1f} s){error}",
                style=_STYLES[record.status],
                markup=False,
                highlight=False,
                soft_wrap=True,
            )
        self._bar.update(self._task, advance=1)
        now = time.monotonic()
        if not self._bar.disable and (now > self._shown + 1 or self.counts.total() == self.total):
            self._shown = now
            self._bar.update(self._task, figures=self.figures(left()))

    def figures(self, left: Estimate) -> str:
        """Return failures, rate and time left in words."""
        parts = [f"{self.counts[status]} {status}" for status in ("failed", "na")]
        spent = max(time.monotonic() - self._begin, 1e-9)
        done = self.counts.total()
        parts.append(f"{60 * done / spent:.3g} per minute")
        if left.known:  # what is unknown is taken to be like what is known
            seconds = left.seconds * (1 + left.unknown / left.known) / self.n_workers
            parts.append(f"about {in_words(seconds)} left")
        return ", ".join(parts)


def last_line(text: str) -> str:
    r"""Return the end of a traceback, which says what went wrong, in one line.

    Examples
    --------
    >>> last_line("Traceback ...\n  File x\nValueError: too\nshort\n")
    'ValueError: too short'
    """
    lines = text.strip().splitlines()
    end = max((i + 1 for i, line in enumerate(lines[:-1]) if line.startswith(" ")), default=0)
    return " ".join(" ".join(lines[end:]).split())
