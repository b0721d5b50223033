"""Explanations of the predicted classes of a part of the data, kept in the cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from timesliver import Attribution, TimeSliverClassifier, explainers
from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.activations import ActivatedScores
from timesliver.bench.tasks.data import at_random, load_parts, settings, tested
from timesliver.bench.tasks.models import trained
from timesliver.errors import InvalidParameterError, NotApplicableError
from timesliver.metrics import controls
from timesliver.series import as_series
from timesliver.typing import FloatArray

__all__ = ["explained", "explainer"]

# Training cases that a method learns its baselines, or itself, from: 2,000 and the 500 that
# TimeX++ holds out.
_MOST_TRAINING = 2500


def explainer(job: Job, cache: Cache) -> explainers.AnyExplainer:
    """Return the explainer of a job, fitted on training cases if it learns from any."""
    entry = settings(job)["explainer"]
    if "control" in entry:
        raise NotApplicableError(f"{job.explainer} is no method that explains, only a control")
    model = trained(job, cache)
    options: dict[str, Any] = {**entry.get("options", {}), "random_state": job.seed}
    if "setting" in entry:
        options["setting"] = entry["setting"]
    if entry["name"] == "additive":
        options = _shares(model, **options)
    if "activation" in options:
        made: explainers.AnyExplainer = ActivatedScores(model, **options)
    else:
        name = "additive" if entry["name"] == "shares" else entry["name"]
        made = explainers.create(name, model, **options)
    train = load_parts(job).train
    some = at_random(len(train), _MOST_TRAINING)
    return made.fit(train.X[some], None if train.y is None else train.y[some])


def _shares(
    model: Any, background: bool = False, spread: bool = False, **more: Any
) -> dict[str, Any]:
    """Return the options of shares, as they are, from their spelling in the catalogue.

    It is part of the hash of every job, so it stays: shares are plain, unless the middle moment
    of the series is the ``background`` or they are ``spread`` over the longest segment.
    """
    encoders = model.encoders_ if isinstance(model, TimeSliverClassifier) else ()
    longest = max((int(one.size * one.step) for one in encoders), default=0)
    return {
        "background": "series" if background else None,
        "smoothing": longest if spread else 0,
        **more,
    }


def explained(job: Job, cache: Cache, part: str = "test") -> Attribution:
    """Return the attributions of a part: the test cases of the job, or all training cases."""
    X = tested(job).X if part == "test" else load_parts(job).train.X
    key = {
        "kind": "attribution",
        "config": {name: value for name, value in settings(job).items() if name != "backbone"},
        "seed": job.seed,
        "split": job.split,
        "part": part,
        "cases": len(X),
        "learned_from": _MOST_TRAINING,
    }
    if part == "test" and "spread" in dict(job.options):
        key["spread"] = True
    return cache.get_or_make(
        key,
        make=lambda: _explain(job, cache, X),
        write=lambda attribution, path: attribution.save(path),
        read=Attribution.load,
        suffix=".npz",
    )


def _explain(job: Job, cache: Cache, X: FloatArray) -> Attribution:
    entry = settings(job)["explainer"]
    if "control" in entry:
        return _control(entry["control"], trained(job, cache), X, job.seed)
    return explainer(job, cache).explain(X)


def _control(name: str, model: Any, X: Any, seed: int) -> Attribution:
    """Return the scores of a control as if they were evidence for the predicted class."""
    if name == "untrained" and not isinstance(model, TimeSliverClassifier):
        raise NotApplicableError("the control 'untrained' is a TimeSliver before training")
    known = controls(X, random_state=seed, model=model if name == "untrained" else None)
    if name not in known:
        raise InvalidParameterError(f"there is no control {name!r}; known are {', '.join(known)}")
    scores = np.asarray(known[name], dtype=np.float32)
    logits = model.logits(X)
    target = logits.argmax(axis=1)
    return Attribution(
        positive_by_channel=scores,
        negative_by_channel=np.zeros_like(scores),
        logit=logits.max(axis=1),
        base=np.zeros(len(scores), np.float32),
        target=target,
        classes=model.classes_,
        method=name,
        series=as_series(X).with_gaps.astype(np.float32),
        has_sign=False,
        has_channels=scores.shape[1] > 1,
    )
