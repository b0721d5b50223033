"""Where and how a computation runs: its seed, its threads, its device."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from sklearn.utils import check_random_state

from timesliver.errors import InvalidParameterError

__all__ = ["draw_seed", "pick_device", "progress", "thread_limit"]

T = TypeVar("T")
_LONG = 2.0  # seconds after which people want to see how far it is


def draw_seed(random_state: Any) -> int:
    """Turn a ``random_state`` into one seed; None means a fresh one, from no global generator.

    Examples
    --------
    >>> draw_seed(3) == draw_seed(3)
    True
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise InvalidParameterError(
            f"random_state={random_state!r} cannot seed anything; give None, a whole number from "
            f"0 to 2**32 - 1, or a numpy generator"
        ) from error


@contextmanager
def thread_limit(n_jobs: int | None) -> Iterator[None]:
    """Let torch use ``n_jobs`` threads inside; None leaves its number, -1 takes all cores."""
    if n_jobs is None:
        yield
        return
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if not whole or n_jobs == 0:
        raise InvalidParameterError(
            f"n_jobs={n_jobs!r} is not a number of threads; give 1 or more, -1 for all cores, "
            f"or None"
        )
    before = torch.get_num_threads()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    torch.set_num_threads(int(n_jobs) if n_jobs > 0 else max(1, (cores or 1) + 1 + int(n_jobs)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def pick_device(device: str | torch.device) -> torch.device:
    """Return the device of this name; "auto" is a GPU if there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, TypeError, AssertionError) as error:
        raise InvalidParameterError(
            f"device={device!r} cannot be used here ({str(error).splitlines()[0]}); "
            f"choose 'cpu' or 'auto'"
        ) from error
    return chosen


def progress(items: Sequence[T], description: str, always: bool = False) -> Iterator[T]:
    """Yield the items, with a progress bar on a terminal once it takes more than two seconds."""
    bar = Progress(console=Console(stderr=True), transient=sys.stderr.isatty())
    task = bar.add_task(description, total=len(items))
    start = time.perf_counter()
    try:
        for item in items:
            if (always or sys.stderr.isatty()) and time.perf_counter() - start > _LONG:
                bar.start()
            yield item
            bar.advance(task)
    finally:
        if bar.live.is_started:
            bar.stop()
