"""Models by the settings of a job: made, trained, and kept in the cache."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from importlib import import_module
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver import backbones
from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks import spelling
from timesliver.bench.tasks.data import evenly, kept_json, load_parts, settings
from timesliver.errors import InvalidInputError, MissingExtraError, NotApplicableError
from timesliver.estimator import SeriesClassifier
from timesliver.typing import JSONDict

__all__ = ["build", "fit", "n_parameters", "predict", "timed_fit", "trained", "training_key"]

_ROCKET_POINTS = 10  # nine for the kernels of MiniRocket, and one that differences lose
_BACKBONES = ("CNN", "COLOR", "FCN", "InceptionTime", "LSTM", "ResNet", "Transformer")


def build(model: JSONDict, seed: int) -> Any:
    """Make an unfitted model.

    Parameters
    ----------
    model : dict
        "class", a name of ours or "package.module:Class", and its "options".
    seed : int
        Its ``random_state``.
    """
    name = model["class"]
    options = _with_tuples(model["options"])
    ours = {"random_state": seed, "n_jobs": 1, "device": "cpu"}  # one device: the same numbers
    if name in spelling.CLASSES:
        return spelling.classifier(name, options, **ours)
    if name in _BACKBONES:
        return getattr(backbones, name)(**ours, **options)
    module, _, cls = name.partition(":")
    if not module.startswith("aeon."):
        known = ", ".join((*spelling.CLASSES, *_BACKBONES))
        raise InvalidInputError(f"there is no model class {name!r}; known are {known}")
    try:
        rival = getattr(import_module(module), cls)
    except ImportError:
        raise MissingExtraError("aeon", "archive") from None
    if "random_state" in signature(rival).parameters:
        options["random_state"] = seed
    return rival(**options)


def _with_tuples(value: Any) -> Any:
    """Return a value with tuples for lists, which is what models take."""
    if isinstance(value, list):
        return tuple(map(_with_tuples, value))
    if isinstance(value, dict):
        return {name: _with_tuples(part) for name, part in value.items()}
    return value


def fit(model: Any, job: Job) -> Any:
    """Fit a model on the training cases of a job.

    Networks choose their epoch on the validation cases, where the data set has some; for other
    models these are more cases to learn from.
    """
    parts = load_parts(job)
    if parts.train.y is None:
        raise InvalidInputError(f"{job.dataset} has no labels to learn from")
    some = evenly(len(parts.train), settings(job)["model"].get("cases"))
    X, y = parts.train.X[some], parts.train.y[some]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the rivals, in many jobs at once
        if isinstance(model, SeriesClassifier) and parts.validation is not None:
            validation = parts.validation.X, parts.validation.y
            return model.fit(X, y, validation_data=validation)
        if parts.validation is not None and parts.validation.y is not None:
            X, y = np.concatenate([X, parts.validation.X]), np.concatenate([y, parts.validation.y])
        return model.fit(suited(X, model), y)


def predict(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    """Return the labels that a model gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels: NDArray[Any] = model.predict(suited(X, model))
    return labels


def trained(job: Job, cache: Cache) -> Any:
    """Return the model of a job, trained now or taken from the cache."""
    model = build(settings(job)["model"], job.seed)
    if not isinstance(model, SeriesClassifier):
        raise NotApplicableError(f"{job.model} cannot be kept in a file, so nothing explains it")
    read: Callable[..., Any] = type(model).load

    def make() -> Any:
        start = time.perf_counter()
        fitted = fit(model, job)
        _seconds(job, cache, time.perf_counter() - start)
        return fitted

    return cache.get_or_make(
        training_key(job, "model"),
        make,
        write=lambda fitted, path: fitted.save(path),
        read=read,
        suffix=".safetensors",
    )


def training_key(job: Job, kind: str, part: str = "model") -> JSONDict:
    """Return what a model depends on: the one of the job, or its backbone."""
    config = settings(job)
    return {
        "kind": kind,
        "data": config["data"],
        "model": config[part],
        "seed": job.seed,
        "split": job.split,
    }


def _seconds(job: Job, cache: Cache, now: float) -> float:
    """Return how long the training of a model took, when it was trained."""
    return float(kept_json(cache, training_key(job, "seconds"), lambda: now))


def n_parameters(model: Any) -> int | None:
    """Return the number of weights of a network, None of anything else."""
    network = getattr(model, "network_", None)
    return None if network is None else sum(p.numel() for p in network.parameters())


def timed_fit(job: Job, cache: Cache) -> tuple[Any, float]:
    """Return the trained model of a job and the seconds that its training took."""
    start = time.perf_counter()
    model = build(settings(job)["model"], job.seed)
    if isinstance(model, SeriesClassifier):
        return trained(job, cache), _seconds(job, cache, time.perf_counter() - start)
    return fit(model, job), time.perf_counter() - start


def suited(X: NDArray[Any], model: Any) -> NDArray[Any]:
    """Return what a rival can take: double precision, no missing values, no short series.

    Missing is replaced by the last value before it. Rockets need ten points: zeros follow.
    """
    if isinstance(model, SeriesClassifier):
        return X
    X = X.astype(np.float64)  # DrCIF takes nothing else
    if "Rocket" in type(model).__name__:
        X = np.pad(X, [(0, 0), (0, 0), (0, max(0, _ROCKET_POINTS - X.shape[2]))])
    if not np.isnan(X).any():
        return X
    known = ~np.isnan(X)
    last = np.maximum.accumulate(np.where(known, np.arange(X.shape[2]), 0), axis=2)
    filled: NDArray[Any] = np.nan_to_num(np.take_along_axis(X, last, axis=2))
    return filled
