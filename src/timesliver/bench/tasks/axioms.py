"""How far an explainer is from completeness, symmetry and the others."""

from __future__ import annotations

import math
from dataclasses import asdict

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import tested
from timesliver.bench.tasks.explaining import explainer
from timesliver.bench.tasks.models import trained
from timesliver.metrics import axioms
from timesliver.typing import JSONDict

__all__ = ["perform"]


def perform(job: Job, cache: Cache) -> JSONDict:
    """Return the distance from each axiom; None where it has no meaning."""
    made, model = explainer(job, cache), trained(job, cache)
    gaps = asdict(axioms(made, model, tested(job).X, random_state=job.seed))
    return {name: None if math.isnan(gap) else gap for name, gap in gaps.items()}
