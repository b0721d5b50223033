"""One case to look at: its series, the truth, and the attribution."""

from __future__ import annotations

import numpy as np

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import tested
from timesliver.bench.tasks.explaining import explained
from timesliver.errors import NotApplicableError
from timesliver.typing import JSONDict

__all__ = ["perform"]


def perform(job: Job, cache: Cache) -> JSONDict:
    """Return the first case that has a truth and was classified rightly, rounded for reading."""
    scores = explained(job, cache)
    test = tested(job)
    usable = np.ones(len(scores), dtype=bool)
    if test.salient is not None:
        usable &= test.salient.any(axis=(1, 2))
    if test.y is not None:
        usable &= scores.classes[scores.target] == test.y
    if not usable.any():
        raise NotApplicableError(f"no case of {job.dataset} has a truth and is classified rightly")
    case = int(np.argmax(usable))
    shown = scores[case]
    return {
        "case": case,
        "class": str(shown.classes[shown.target[0]]),
        "series": _rounded(test.X[case]),
        "salient": None if test.salient is None else test.salient[case].astype(int).tolist(),
        "positive": _rounded(shown.positive[0]),
        "negative": _rounded(shown.negative[0]) if shown.has_sign else None,
    }


def _rounded(values: np.ndarray) -> list[float]:
    """Return numbers of four digits, over the largest magnitude."""
    largest = float(np.nanmax(np.abs(values))) or 1.0
    rounded: list[float] = np.round(np.nan_to_num(values) / largest, 4).tolist()
    return rounded
