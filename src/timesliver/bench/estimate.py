"""How long jobs will take, judged by those that are finished."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from timesliver.bench.jobs import Job
from timesliver.bench.store import Record

__all__ = ["Durations", "Estimate", "in_words"]

# the most alike first: jobs that agree in these fields
_GROUPS = (
    ("task", "dataset", "model", "explainer", "setting", "config"),
    ("task", "dataset", "model", "explainer"),
    ("task", "model", "explainer"),
    ("task", "dataset", "explainer"),
    ("task", "explainer"),
    ("task",),
)


class Estimate(NamedTuple):
    """The work of some jobs: its seconds on one core, and of how many jobs nothing is known."""

    seconds: float
    known: int
    unknown: int


class Durations:
    """Mean times of finished jobs, by how much they are like the job in question."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._sums: dict[tuple[Any, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Learn from a record, if its job was really done."""
        if record.status == "done":
            for group in _GROUPS:
                total = self._sums[group, *(record.job.get(name) for name in group)]
                total[0] += record.seconds
                total[1] += 1

    def seconds(self, job: Job) -> float | None:
        """Return how long a job takes; None if no job of its task is finished."""
        for group in _GROUPS:
            total = self._sums.get((group, *(getattr(job, name) for name in group)))
            if total is not None:
                return total[0] / total[1]
        return None

    def estimate(self, jobs: Iterable[Job]) -> Estimate:
        """Return the work of several jobs."""
        times = [self.seconds(job) for job in jobs]
        known = [time for time in times if time is not None]
        return Estimate(sum(known), len(known), len(times) - len(known))


def in_words(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> [in_words(seconds) for seconds in (3, 200, 9000, 200000)]
    ['3 s', '3 min', '2.5 h', '2.3 days']
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"
