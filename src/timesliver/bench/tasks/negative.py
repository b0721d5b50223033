"""How the logit of the predicted class changes once the points against it are masked."""

from __future__ import annotations

import numpy as np

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import tested
from timesliver.bench.tasks.explaining import explained
from timesliver.bench.tasks.models import trained
from timesliver.metrics import logit_change
from timesliver.typing import JSONDict

__all__ = ["perform"]


def perform(job: Job, cache: Cache) -> JSONDict:
    """Return the mean change of the logit.

    Methods without a sign say nothing against a class; for them the order of the points is
    reversed, and the result says so.
    """
    scores = explained(job, cache)
    against = scores.negative
    if not scores.has_sign:
        against = scores.positive.max(axis=1, keepdims=True) - scores.positive
    model, X = trained(job, cache), tested(job).X
    percent = float(dict(job.options)["percent"])
    change = logit_change(model, X, against, percent, random_state=job.seed)
    return {
        "delta": float(change.mean),
        "spread_over_cases": float(np.std(change.values, ddof=1)),
        "reversed": not scores.has_sign,
        "n_cases": len(scores),
    }
