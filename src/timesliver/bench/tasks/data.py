"""The parts of a data set that a job trains, chooses and tests on."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from timesliver import datasets
from timesliver.bench.cache import Cache
from timesliver.bench.jobs import Job
from timesliver.datasets import Dataset
from timesliver.errors import InvalidInputError
from timesliver.typing import IntArray, JSONDict

__all__ = ["Parts", "at_random", "evenly", "kept_json", "load_parts", "settings", "tested"]


class Parts(NamedTuple):
    """The parts of a data set; `validation` is None where the archive has none."""

    train: Dataset
    validation: Dataset | None
    test: Dataset


def settings(job: Job) -> dict[str, Any]:
    """Return the settings of a job: those of its data, its model and its explainer."""
    described: dict[str, Any] = json.loads(job.config)
    return described


def load_parts(job: Job) -> Parts:
    """Load what a job works on."""
    return _load(settings(job)["data"]["load"], job.split)


def tested(job: Job) -> Dataset:
    """Return the test cases of a job.

    These are all, or the first so many (option `cases`), or so many from first to last (option
    `spread`), for sets in which the cases of one group follow each other.
    """
    test, options = load_parts(job).test, dict(job.options)
    if "spread" in options:
        return test[evenly(len(test), int(options["spread"]))]
    return test[: options.get("cases")]


def evenly(n_cases: int, n_wanted: int | None) -> IntArray:
    """Return so many cases, or all, from first to last: where they are in order, of each group.

    Examples
    --------
    >>> evenly(10, 4).tolist()
    [0, 3, 6, 9]
    >>> len(evenly(10, None))
    10
    """
    return np.linspace(0, n_cases - 1, min(n_wanted or n_cases, n_cases)).astype(np.int64)


def at_random(n_cases: int, most: int) -> IntArray:
    """Return at most so many cases, the same ones each time.

    Examples
    --------
    >>> sorted(at_random(3, 9).tolist()), len(at_random(10, 4))
    ([0, 1, 2], 4)
    """
    return np.random.default_rng(0).permutation(n_cases)[:most]


def kept_json(cache: Cache, key: JSONDict, make: Callable[[], Any]) -> Any:
    """Return a small result from the cache, or make and keep it."""
    return cache.get_or_make(
        key,
        make,
        write=lambda result, path: path.write_text(json.dumps(result), encoding="utf-8"),
        read=lambda path: json.loads(path.read_text(encoding="utf-8")),
        suffix=".json",
    )


@lru_cache(maxsize=2)
def _load(name: str, split: int) -> Parts:
    info = datasets.info(name)
    if (
        info.source in ("uea", "ucr", "local", "localised")
        and "validation" not in info.splits
        and split
    ):
        raise InvalidInputError(
            f"{name} comes with one split into train and test; ask for split 0, not {split}"
        )
    parts = {part: datasets.load(name, part, seed=split) for part in info.splits}
    return Parts(parts["train"], parts.get("validation"), parts["test"])
