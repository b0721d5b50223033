"""Engines: what runs the jobs. All distribution is joblib's, Dask's or Ray's."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import joblib

from timesliver.errors import (
    InvalidInputError,
    InvalidParameterError,
    MissingExtraError,
    check_choice,
    check_count,
)

__all__ = ["ENGINES", "engine", "lost_worker"]

ENGINES = ("loky", "sequential", "dask", "ray")

_CONNECT_SECONDS = 30  # how long to wait for a scheduler


@contextmanager
def engine(
    name: str = "loky", n_jobs: int | None = None, scheduler: str | None = None
) -> Iterator[None]:
    """Choose what `joblib.Parallel` uses inside.

    Parameters
    ----------
    name : str
        "sequential" (in this process), "loky" (processes on this machine), "dask" or "ray".
    n_jobs : int, optional
        How many jobs at once; all cores by default, and all of a cluster's workers.
    scheduler : str, optional
        Address of a running cluster, as ``tcp://host:8786`` for Dask or ``host:6379`` (or
        "auto") for Ray. Without one, a local cluster is started and ended.
    """
    check_choice("engine", name, ENGINES)
    if n_jobs is not None:
        check_count("n_jobs", n_jobs, 1)
    if scheduler is not None and name not in ("dask", "ray"):
        raise InvalidParameterError(
            f"scheduler={scheduler!r} is for the engines 'dask' and 'ray'; engine={name!r} has none"
        )
    with ExitStack() as stack:
        settings: dict[str, Any] = {}
        if name == "loky":
            settings = {"inner_max_num_threads": 1}
        elif name == "dask":
            stack.enter_context(_dask(n_jobs, scheduler))
        elif name == "ray":
            stack.enter_context(_ray(n_jobs, scheduler))
        at_once = 1 if name == "sequential" else n_jobs or -1
        with joblib.parallel_config(backend=name, n_jobs=at_once, **settings):
            yield


def lost_worker(error: BaseException) -> bool:
    """Whether an error means that a worker died, and not that a job went wrong."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, BrokenExecutor) or bool(
        names & {"KilledWorker", "ActorDiedError", "RayActorError", "WorkerCrashedError"}
    )


@contextmanager
def _dask(n_jobs: int | None, scheduler: str | None) -> Iterator[None]:
    distributed = _import("distributed", "dask")
    with ExitStack() as stack:
        address: Any = scheduler
        if scheduler is None:
            address = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=n_jobs or joblib.cpu_count(),
                    threads_per_worker=1,
                    dashboard_address=None,
                )
            )
        try:
            client = distributed.Client(address, timeout=_CONNECT_SECONDS)
        except (OSError, ValueError) as error:
            raise InvalidInputError(
                f"no Dask scheduler answers at {scheduler} ({error}); start one with "
                f"'dask scheduler', and workers with 'dask worker {scheduler} --nthreads 1'"
            ) from error
        stack.enter_context(client)
        yield


@contextmanager
def _ray(n_jobs: int | None, scheduler: str | None) -> Iterator[None]:
    ray = _import("ray", "ray")
    backend = importlib.import_module("ray.util.joblib.ray_backend")

    class Streaming(backend.RayBackend):  # type: ignore[name-defined]
        """Ray's own backend, which gives back results as they come."""

        supports_return_generator = True

    joblib.register_parallel_backend("ray", Streaming)
    started = not ray.is_initialized()
    if started:
        local = {"num_cpus": n_jobs or joblib.cpu_count(), "include_dashboard": False}
        try:
            ray.init(
                address=scheduler,
                logging_level="ERROR",
                log_to_driver=False,
                **({} if scheduler else local),
            )
        except (ConnectionError, ValueError) as error:
            raise InvalidInputError(
                f"no Ray cluster answers at {scheduler} ({error}); start one with "
                f"'ray start --head'"
            ) from error
    try:
        yield
    finally:
        if started:
            ray.shutdown()


def _import(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, "cluster") from error
