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

from timesliver import TimeSliverClassifier, backbones
from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.bench.tasks.choosing import Chosen
from timesliver.bench.tasks.data import load_parts, settings
from timesliver.bench.tasks.pooling import MaxPooled
from timesliver.errors import InvalidInputError, MissingExtraError, NotApplicableError
from timesliver.estimator import SeriesClassifier

__all__ = ["build", "fit", "trained"]

_OURS: dict[str, Any] = {
    "TimeSliverClassifier": TimeSliverClassifier,
    "MaxPooled": MaxPooled,
    "Chosen": Chosen,
    **{
        name: getattr(backbones, name)
        for name in ("CNN", "COLOR", "FCN", "InceptionTime", "LSTM", "ResNet", "Transformer")
    },
}


def build(settings: dict[str, Any], seed: int) -> Any:
    """Make an unfitted model.

    Parameters
    ----------
    settings : dict
        "class", a name of ours or "package.module:Class", and its "options".
    seed : int
        Its ``random_state``.
    """
    options = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings["options"].items()
    }
    name = settings["class"]
    if name in _OURS:
        return _OURS[name](random_state=seed, n_jobs=1, **options)
    module, _, cls = name.partition(":")
    if not module.startswith("aeon."):
        raise InvalidInputError(f"there is no model class {name!r}; known are {', '.join(_OURS)}")
    try:
        made = getattr(import_module(module), cls)
    except ImportError:
        raise MissingExtraError("aeon", "archive") from None
    if "random_state" in signature(made).parameters:
        options["random_state"] = seed
    return made(**options)


def fit(model: Any, job: Job) -> Any:
    """Train a model on the training part, with the validation part if there is one."""
    parts = load_parts(job)
    some = slice(settings(job)["model"].get("cases"))
    X, y = parts.train.X[some], parts.train.y
    if y is None:
        raise InvalidInputError(f"{job.dataset} has no labels to learn from")
    y = y[some]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of the rivals, in many jobs at once
        if isinstance(model, SeriesClassifier) and parts.validation is not None:
            validation = parts.validation.X, parts.validation.y
            return model.fit(X, y, validation_data=validation)
        if parts.validation is not None and parts.validation.y is not None:
            X, y = np.concatenate([X, parts.validation.X]), np.concatenate([y, parts.validation.y])
        return model.fit(_plain(model, X), y)


def predict(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    """Return the labels that a model gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels: NDArray[Any] = model.predict(_plain(model, X))
    return labels


def trained(job: Job, cache: Cache) -> Any:
    """Return the model of a job, trained now or taken from the cache."""
    model = build(settings(job)["model"], job.seed)
    if not isinstance(model, SeriesClassifier):
        raise NotApplicableError(f"{job.model} cannot be kept in a file, so nothing explains it")
    config = settings(job)
    key = {
        "kind": "model",
        "data": config["data"],
        "model": config["model"],
        "seed": job.seed,
        "split": job.split,
    }
    read: Callable[..., Any] = type(model).load
    return cache.get_or_make(
        key,
        make=lambda: fit(model, job),
        write=lambda fitted, path: fitted.save(path),
        read=read,
        suffix=".safetensors",
    )


def n_parameters(model: Any) -> int | None:
    """Return the number of weights of a network, None of anything else."""
    network = getattr(model, "network_", None)
    return None if network is None else sum(p.numel() for p in network.parameters())


def timed_fit(job: Job, cache: Cache) -> tuple[Any, float]:
    """Return the trained model of a job and the seconds that it took just now."""
    start = time.perf_counter()
    model = build(settings(job)["model"], job.seed)
    found = trained(job, cache) if isinstance(model, SeriesClassifier) else fit(model, job)
    return found, time.perf_counter() - start


def _plain(model: Any, X: NDArray[Any]) -> NDArray[Any]:
    """Fill missing values by the last one before, for models that know no missing values."""
    if isinstance(model, SeriesClassifier | Chosen) or not np.isnan(X).any():
        return X
    known = ~np.isnan(X)
    last = np.maximum.accumulate(np.where(known, np.arange(X.shape[2]), 0), axis=2)
    filled: NDArray[Any] = np.nan_to_num(np.take_along_axis(X, last, axis=2))
    return filled
