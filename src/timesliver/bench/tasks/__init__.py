"""What each kind of job does: one file per task, over shared data, models and explanations."""

from __future__ import annotations

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks import axioms, cost, localise, negative, panel, train, unmask
from timesliver.typing import JSONDict

__all__ = ["perform", "prerequisites"]

_TASKS = {
    "train": train.perform,
    "localise": localise.perform,
    "unmask": unmask.perform,
    "negative": negative.perform,
    "axioms": axioms.perform,
    "panel": panel.perform,
    "cost": cost.perform,
}


def perform(job: Job, cache: Cache) -> JSONDict:
    """Do a job, and return what it found."""
    return _TASKS[job.task](job, cache)


def prerequisites(job: Job) -> list[Job]:
    """Return the jobs that make what this one needs: the training of its model."""
    return [] if job.training is None else [job.training]
