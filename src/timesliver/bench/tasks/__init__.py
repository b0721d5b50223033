"""What each kind of job does: one file per task, over shared data, models and explanations."""

from __future__ import annotations

from importlib import import_module

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.typing import JSONDict

__all__ = ["perform", "prerequisites"]


def perform(job: Job, cache: Cache) -> JSONDict:
    """Do a job, and return what it found: that is `perform` of the module named as its task."""
    result: JSONDict = import_module(f"{__name__}.{job.task}").perform(job, cache)
    return result


def prerequisites(job: Job) -> list[Job]:
    """Return the jobs that make what this one needs: the training of its model."""
    return [] if job.training is None else [job.training]
