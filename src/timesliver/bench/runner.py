"""The runner: does the jobs that the store does not hold, and stores each one as it ends."""

from __future__ import annotations

import importlib
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import joblib

from timesliver.bench.cache import Cache
from timesliver.bench.engines import engine as choose_engine
from timesliver.bench.engines import lost_worker
from timesliver.bench.estimate import Durations
from timesliver.bench.jobs import Job
from timesliver.bench.progress import Progress, last_line
from timesliver.bench.store import Record, Store
from timesliver.errors import NotApplicableError, TimeSliverError, check_count

__all__ = ["Plan", "Summary", "attempt", "make_plan", "run"]

#: A function, or where to find it ("module:function").
Function = str | Callable[..., Any]


class Summary(NamedTuple):
    """How many jobs ended how, and how many were not run because the store holds them."""

    done: int
    failed: int
    na: int
    skipped: int


class Plan(NamedTuple):
    """What is to be run: first what other jobs need, then the others; and what each job needs."""

    first: list[Job]
    then: list[Job]
    needs: dict[str, list[Job]]

    @property
    def jobs(self) -> list[Job]:
        """All of them, in order."""
        return [*self.first, *self.then]


def run(
    suite_name: str,
    jobs: Iterable[Job],
    store: Store,
    cache: Cache,
    engine: AbstractContextManager[None] | None = None,
    *,
    retry: bool = False,
    limit: int | None = None,
    verbose: int = 0,
    progress: bool = False,
    perform: Function = "timesliver.bench.tasks:perform",
    prerequisites: Function = "timesliver.bench.tasks:prerequisites",
) -> Summary:
    """Run the jobs that are missing.

    Every job is stored as it ends, so that a run that is killed loses only the jobs it was at.
    A job that others need (the training of their model) is started before them; others whose
    needs are met go before those that would have to wait.

    Parameters
    ----------
    suite_name : str
        Under which name the records are stored.
    jobs : iterable of Job
        The jobs of the suite; what they need is run and stored with them.
    store : Store
        The records.
    cache : Cache
        Files that jobs share; on several machines best a folder that all of them see.
    engine : context, optional
        What runs the jobs, see `timesliver.bench.engines.engine`; local processes by default.
    retry : bool
        Run failed jobs again.
    limit : int, optional
        Run at most this many of the jobs, and what they need.
    verbose : int
        From 1 on, say a line for each finished job.
    progress : bool
        Draw a bar, on a terminal.
    perform : function, or "module:function"
        ``perform(job, cache)`` returns the job's result as a dictionary.
    prerequisites : function, or "module:function"
        ``prerequisites(job)`` returns the jobs whose results in the cache a job needs.

    Returns
    -------
    Summary
        How the jobs ended.
    """
    if limit is not None:
        check_count("limit", limit, 1)
    jobs = list(jobs)
    records = store.records(suite_name)
    plan = make_plan(jobs, records, retry=retry, limit=limit, prerequisites=prerequisites)
    left = {job.hash: job for job in plan.jobs}
    skipped = len({job.hash for job in jobs} - left.keys())
    with engine or choose_engine():
        n_workers = joblib.effective_n_jobs(None)
        shown = Progress(suite_name, len(left), n_workers, progress, verbose)
        durations = Durations(records.values())
        with shown:
            for record in _run_all(plan, records, cache, perform, n_workers):
                store.append(suite_name, record)
                durations.add(record)
                del left[record.hash]
                shown.finished(record, lambda: durations.estimate(left.values()))
    counts = shown.counts
    return Summary(counts["done"], counts["failed"], counts["na"], skipped)


def make_plan(
    jobs: Iterable[Job],
    records: Mapping[str, Record],
    *,
    retry: bool = False,
    limit: int | None = None,
    prerequisites: Function = "timesliver.bench.tasks:prerequisites",
) -> Plan:
    """Return the jobs without a record, in a good order, and what they need."""

    def is_missing(job: Job) -> bool:
        record = records.get(job.hash)
        return record is None or (retry and record.status == "failed")

    needs_of = _as_function(prerequisites)
    missing = [job for job in dict.fromkeys(jobs) if is_missing(job)][:limit]
    needs = {job.hash: list(needs_of(job)) for job in missing}
    durations = Durations(records.values())
    needed = dict.fromkeys(need for job in missing for need in needs[job.hash])
    first = [job for job in needed if is_missing(job)]
    first.sort(key=lambda job: -(durations.seconds(job) or 0.0))  # the longest first
    ahead = set(first)
    then = [job for job in missing if job not in ahead]
    position = {job.hash: i for i, job in enumerate(first)}
    then.sort(
        key=lambda job: max((position.get(need.hash, -1) for need in needs[job.hash]), default=-1)
    )
    return Plan(first, then, needs)


def attempt(perform: Function, job: Job, cache: Cache) -> Record:
    """Do a job, with one thread, and return its record, however it ends."""
    from timesliver.training.runtime import thread_limit

    begin = time.perf_counter() - cache.waited

    def spent() -> float:  # without the time in which another job made what this one needs
        return time.perf_counter() - cache.waited - begin

    try:
        with thread_limit(1):
            result = _as_function(perform)(job, cache)
        return Record.of(job, "done", result, seconds=spent())
    except NotApplicableError as reason:
        return Record.of(job, "na", error=" ".join(str(reason).split()), seconds=spent())
    except Exception:
        return Record.of(job, "failed", error=traceback.format_exc(), seconds=spent())


def _run_all(
    plan: Plan, records: Mapping[str, Record], cache: Cache, perform: Function, n_workers: int
) -> Iterator[Record]:
    """Yield records as jobs end, also when workers die.

    The jobs that a dead worker may have been at are run again after the others, and if that kills
    a worker again, one at a time: a job that is deadly even then has failed.
    """
    known = dict(records)
    for job in plan.jobs:
        known.pop(job.hash, None)  # a failed one that is tried again
    suspects: set[Job] = set()
    while True:
        started: list[Job] = []
        try:
            for record in _run_parallel(plan, known, cache, perform, started):
                known[record.hash] = record
                yield record
            return
        except Exception as error:
            at_work = [job for job in started if job.hash not in known][:n_workers]
            if not at_work or not lost_worker(error):
                raise
        for job in suspects.intersection(at_work):
            known[job.hash] = _run_alone(job, known, cache, perform)
            yield known[job.hash]
        suspects.update(at_work)
        left = [job for job in plan.jobs if job.hash not in known]
        left.sort(key=at_work.__contains__)
        plan = Plan([], left, plan.needs)


def _run_alone(job: Job, known: Mapping[str, Record], cache: Cache, perform: Function) -> Record:
    """Run a job while no other runs."""
    try:
        return next(_run_parallel(Plan([], [job], {}), known, cache, perform, []))
    except Exception as error:
        if not lost_worker(error):
            raise
        why = "the process that ran it died, perhaps for want of memory; run fewer jobs at once"
        return Record.of(job, "failed", error=why)


def _run_parallel(
    plan: Plan,
    known: Mapping[str, Record],
    cache: Cache,
    perform: Function,
    started: list[Job],
) -> Iterator[Record]:
    """Run jobs through joblib and yield their records, in the order in which they end."""
    hopeless: list[Record] = []

    def calls() -> Iterator[Any]:
        for job in _startable_first(plan, known):
            record = _record_without_running(job, plan.needs.get(job.hash, ()), known)
            if record is None:
                started.append(job)
                yield joblib.delayed(attempt)(perform, job, cache)
            else:
                hopeless.append(record)

    parallel = joblib.Parallel(return_as="generator_unordered", batch_size=1)
    for record in parallel(calls()):
        yield record
        while hopeless:
            yield hopeless.pop(0)
    yield from hopeless


def _startable_first(plan: Plan, known: Mapping[str, Record]) -> Iterator[Job]:
    """Yield jobs to be started now: the first one that need not wait, if there is any."""
    yield from plan.first
    planned = {job.hash for job in plan.jobs}

    def must_wait(job: Job) -> bool:
        needs = (need.hash for need in plan.needs.get(job.hash, ()))
        return any(need in planned and need not in known for need in needs)

    waiting = list(plan.then)
    while waiting:
        yield waiting.pop(next((i for i, job in enumerate(waiting) if not must_wait(job)), 0))


def _record_without_running(
    job: Job, needs: Sequence[Job], known: Mapping[str, Record]
) -> Record | None:
    """Return the record of a job that cannot succeed, since what it needs did not."""
    for need in needs:
        record = known.get(need.hash)
        if record is not None and record.status != "done":
            why = f"not run, as what it needs is {record.status} ({need.label}): "
            return Record.of(job, record.status, error=why + last_line(record.error))
    return None


def _as_function(function: Function) -> Callable[..., Any]:
    if not isinstance(function, str):
        return function
    module, _, name = function.partition(":")
    try:
        return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]
    except (ImportError, AttributeError) as error:
        raise TimeSliverError(f"there is no function {function!r} ({error})") from error
