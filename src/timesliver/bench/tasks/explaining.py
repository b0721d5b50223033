"""Explanations of the predicted classes of a part of the data, kept in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from timesliver import Attribution, explainers
from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.data import load_parts, settings
from timesliver.bench.tasks.models import trained
from timesliver.errors import InvalidParameterError
from timesliver.metrics import controls
from timesliver.series import as_series

__all__ = ["explained", "explainer", "n_explained"]

# Training cases that a method learns its baselines, or itself, from: 2,000 and the 500 that
# TimeX++ holds out.
_MOST_TRAINING = 2500


def n_explained(job: Job) -> int:
    """Return how many of the first test cases are explained: all, or what the job asks for."""
    asked = dict(job.options).get("cases")
    n_test = len(load_parts(job).test)
    return n_test if asked is None else min(int(asked), n_test)


def explainer(job: Job, cache: Cache) -> explainers.AnyExplainer:
    """Return the explainer of a job, fitted on training cases if it learns from any."""
    entry = settings(job)["explainer"]
    options = dict(entry.get("options", {}))
    if "setting" in entry:
        options["setting"] = entry["setting"]
    made = explainers.create(entry["name"], trained(job, cache), random_state=job.seed, **options)
    train = load_parts(job).train
    some = np.random.default_rng(0).permutation(len(train))[:_MOST_TRAINING]
    return made.fit(train.X[some], None if train.y is None else train.y[some])


def explained(job: Job, cache: Cache, part: str = "test") -> Attribution:
    """Return the attributions of a part: the first test cases, or all training cases."""
    n_cases = n_explained(job) if part == "test" else len(load_parts(job).train)
    key = {
        "kind": "attribution",
        "config": settings(job),
        "seed": job.seed,
        "split": job.split,
        "part": part,
        "cases": n_cases,
        "learned_from": _MOST_TRAINING,
    }
    return cache.get_or_make(
        key,
        make=lambda: _explain(job, cache, part, n_cases),
        write=lambda attribution, path: attribution.save(path),
        read=Attribution.load,
        suffix=".npz",
    )


def _explain(job: Job, cache: Cache, part: str, n_cases: int) -> Attribution:
    X = getattr(load_parts(job), part).X[:n_cases]
    entry = settings(job)["explainer"]
    if "control" in entry:
        return _control(entry["control"], trained(job, cache), X, job.seed)
    return explainer(job, cache).explain(X)


def _control(name: str, model: Any, X: Any, seed: int) -> Attribution:
    """Return the scores of a control as if they were evidence for the predicted class."""
    found = controls(X, random_state=seed, model=model if name == "untrained" else None)
    if name not in found:
        raise InvalidParameterError(f"there is no control {name!r}; known are {', '.join(found)}")
    scores = np.asarray(found[name], dtype=np.float32)
    logits = model.logits(X)
    target = logits.argmax(axis=1)
    series = as_series(X)
    return Attribution(
        positive_by_channel=scores,
        negative_by_channel=np.zeros_like(scores),
        logit=logits.max(axis=1),
        bias=np.zeros(len(scores), np.float32),
        target=target,
        classes=model.classes_,
        method=name,
        series=np.where(series.observed, series.values, np.nan).astype(np.float32),
        has_sign=False,
        has_channels=scores.shape[1] > 1,
    )
