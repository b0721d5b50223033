"""What each kind of job does: one file per task, over shared data, models and explanations."""

from __future__ import annotations

from dataclasses import replace

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job, canonical
from timesliver.bench.tasks import axioms, cost, localise, negative, panel, train, unmask
from timesliver.bench.tasks.data import settings
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
    if job.task in ("train", "cost"):
        return []
    return [replace(job, task="train", explainer="", setting="", options=(), config=_of_model(job))]


def _of_model(job: Job) -> str:
    """Return the settings of the data and the model of a job, without any other."""
    whole = settings(job)
    return canonical({name: whole[name] for name in ("data", "model")})
