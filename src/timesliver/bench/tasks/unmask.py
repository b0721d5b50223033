"""Keep the top u % of the points, retrain, and measure the accuracy e(u)."""

from __future__ import annotations

from typing import Any

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import kept_json, load_parts, settings
from timesliver.bench.tasks.explaining import explained
from timesliver.bench.tasks.models import build, training_key
from timesliver.errors import InvalidInputError
from timesliver.metrics import unmasking_curve
from timesliver.typing import JSONDict

__all__ = ["perform"]


def perform(job: Job, cache: Cache) -> JSONDict:
    """Return the accuracy of the backbone of the option, retrained on a share of the points.

    And how often it names the class that was explained, unless it sees all points.
    """
    options = dict(job.options)
    percent = float(options["percent"])
    scores = explained(job, cache, "train"), explained(job, cache, "test")
    model = settings(job)["backbone"]
    if percent < 100:
        return _retrain(job, model, percent, scores)
    result: JSONDict = kept_json(  # with all points, the explainer does not matter
        cache,
        training_key(job, "unmasked", "backbone"),
        lambda: {"accuracy": _retrain(job, model, percent, scores)["accuracy"]},
    )
    return result


def _retrain(job: Job, model: JSONDict, percent: float, scores: tuple[Any, Any]) -> JSONDict:
    parts = load_parts(job)
    if parts.train.y is None or parts.test.y is None:
        raise InvalidInputError(f"{job.dataset} has no labels to learn from")
    curve = unmasking_curve(
        build(model, job.seed),
        (parts.train.X, parts.train.y),
        (parts.test.X, parts.test.y),
        *scores,
        percents=[percent],
        seeds=[job.seed],
    )
    result = {"accuracy": float(curve.accuracies[..., -1].mean())}
    if curve.agreements is not None:
        result["agreement"] = float(curve.agreements[..., -1].mean())
    return result
