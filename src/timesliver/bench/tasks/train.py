"""Train a model and test it once."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import balanced_accuracy_score

from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import load_parts
from timesliver.bench.tasks.models import n_parameters, predict, timed_fit
from timesliver.typing import JSONDict

__all__ = ["perform"]


def perform(job: Job, cache: Cache) -> JSONDict:
    """Return accuracies, predictions, size and cost of a model."""
    model, seconds = timed_fit(job, cache)
    test = load_parts(job).test
    predictions = predict(model, test.X)
    best = [record for record in getattr(model, "history_", []) if record.get("best")]
    return {
        "accuracy": float(np.mean(predictions == test.y)),
        "balanced_accuracy": float(balanced_accuracy_score(test.y, predictions)),
        "validation_accuracy": best[-1].get("validation_accuracy") if best else None,
        "n_parameters": n_parameters(model),
        "epochs": getattr(model, "n_iter_", None),
        "seconds_fit": seconds,
        "labels": test.y.tolist() if test.y is not None else None,
        "predictions": predictions.tolist(),
    }
