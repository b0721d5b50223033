"""``timesliver bench run|status|merge``: run the jobs of a suite, and see how far they are."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timesliver.cli.app import INTERRUPTED, bench_app, command
from timesliver.cli.options import AsJSON, Debug, Quiet
from timesliver.cli.output import Output, error

if TYPE_CHECKING:
    from timesliver.bench.jobs import Job
    from timesliver.bench.suites import Suite

__all__ = ["StoreFolder", "SuiteName", "check_preset", "find_suite", "merge", "run", "status"]


class Backend(StrEnum):
    """What runs the jobs."""

    loky = "loky"
    sequential = "sequential"
    dask = "dask"
    ray = "ray"


def complete_suite(incomplete: str) -> list[str]:
    """Return the names of suites that begin like this, for the shell."""
    from timesliver.bench import suites

    return [name for name in suites.names() if name.startswith(incomplete)]


SuiteName = Annotated[
    str,
    typer.Argument(
        metavar="SUITE",
        help="A suite ('timesliver bench status' lists them), or a .toml file with one.",
        autocompletion=complete_suite,
    ),
]
StoreFolder = Annotated[
    Path, typer.Option("--store", metavar="DIR", help="Folder of the records.", file_okay=False)
]


@command(
    "timesliver bench run localisation",
    "timesliver bench run localisation --only LowVar --only grad_cam -v",
    "timesliver bench run faithfulness --preset paper --backend dask --scheduler tcp://host:8786",
    of=bench_app,
)
def run(
    suite_name: SuiteName,
    preset: Annotated[str, typer.Option(help="How much of it: quick, or all of the paper.")] = (
        "quick"
    ),
    store: StoreFolder = Path("bench-results"),
    cache: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Folder of trained models; on a cluster, one that all machines see.",
            file_okay=False,
        ),
    ] = Path("bench-cache"),
    backend: Annotated[Backend, typer.Option(help="What runs the jobs.")] = Backend.loky,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDR",
            help="Address of a running Dask or Ray cluster; without it a local one is started.",
            show_default=False,
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            help="How many jobs at once; all cores by default.",
            min=1,
            show_default=False,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Only jobs with this text in their label, such as a data set or 'seed 0', or "
            "with this part, such as 'model=CNN'; several must all be there.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            help="Run at most this many jobs, and the trainings they need.",
            min=1,
            show_default=False,
        ),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run failed jobs again.")] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="A line for each finished job.")
    ] = 0,
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Run the jobs of a suite that are not done yet.

    Each job is stored as it ends: after an interruption, the same command goes on where this one
    stopped. Failed jobs are stored with their traceback. If any job fails, the exit code is 1.
    """
    from timesliver.bench.cache import Cache
    from timesliver.bench.engines import engine
    from timesliver.bench.runner import run as run_jobs
    from timesliver.bench.store import Store

    if scheduler is not None and backend not in (Backend.dask, Backend.ray):
        raise typer.BadParameter(
            f"only --backend dask or ray has a scheduler, not {backend}.", param_hint="--scheduler"
        )
    output = Output(as_json, quiet)
    suite = find_suite(suite_name)
    selected = _select(suite, preset, only or [])
    try:
        summary = run_jobs(
            suite.name,
            selected,
            Store(store),
            Cache(cache),
            engine(backend.value, jobs, scheduler),
            retry=retry,
            limit=limit,
            verbose=0 if quiet else verbose,
            progress=not quiet,
        )
    except KeyboardInterrupt:
        error("interrupted; what was finished is stored, the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    output.say(
        f"{suite.name}, {preset}: {summary.done} done, {summary.failed} failed, {summary.na} do "
        f"not apply; {summary.skipped} not run now"
    )
    output.result(suite=suite.name, preset=preset, **summary._asdict())
    if summary.failed:
        output.note(f"See why with: timesliver bench status {suite_name} --store {store}")
        raise typer.Exit(1)


@command(
    "timesliver bench status", "timesliver bench status localisation --preset paper", of=bench_app
)
def status(
    suites: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SUITE]...",
            help="Suites, or .toml files with one; all suites by default.",
            autocompletion=complete_suite,
            show_default=False,
        ),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Only this preset; all by default.", show_default=False)
    ] = None,
    store: StoreFolder = Path("bench-results"),
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Show which jobs are done, failed and missing, and how long the missing ones will take.

    The time is that of one core, judged by finished jobs that are most alike.
    """
    from timesliver.bench.estimate import Durations, in_words
    from timesliver.bench.runner import make_plan
    from timesliver.bench.store import Store
    from timesliver.bench.suites import names

    output = Output(as_json, quiet)
    shown = [find_suite(name) for name in suites or names()]
    stored = Store(store)
    records = {name: stored.records(name) for name in {*stored.suites(), *(s.name for s in shown)}}
    durations = Durations(record for of_suite in records.values() for record in of_suite.values())
    rows: list[dict[str, Any]] = []
    failures: dict[str, dict[str, str]] = {}
    for suite in shown:
        of_suite = records[suite.name]
        for name in suite.presets if preset is None else [preset]:
            jobs = _select(suite, name, [])
            counts = Counter(of_suite[job.hash].status for job in jobs if job.hash in of_suite)
            work = durations.estimate(make_plan(jobs, of_suite).jobs)
            rows.append(
                {
                    "suite": suite.name,
                    "preset": name,
                    "jobs": len(jobs),
                    **{status: counts[status] for status in ("done", "failed", "na")},
                    "missing": len(jobs) - counts.total(),
                    "seconds_left": work.seconds,
                    "of_unknown_time": work.unknown,
                }
            )
            failures.setdefault(suite.name, {}).update(_failures(jobs, of_suite))
    output.table([_row(row, in_words) for row in rows], header=_HEADER)
    for name, failed in failures.items():
        if failed:
            output.say(f"\n{name}: failed")
            output.table(failed.items(), header=("job", "error"))
    output.result(suites=rows, failures=failures)


@command("timesliver bench merge machine-a machine-b --store bench-results", of=bench_app)
def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="FOLDER...", help="Stores to take records from.", exists=True, file_okay=False
        ),
    ],
    store: StoreFolder = Path("bench-results"),
    as_json: AsJSON = False,
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Add the records of other stores to one store, as from other machines.

    A result is kept before a failure, and a later record before an earlier one.
    """
    from timesliver.bench.store import Store

    output = Output(as_json, quiet)
    added = Store(store).merge(*map(Store, folders))
    output.say(f"{added} records added to {store}")
    output.result(added=added, store=str(store))


def find_suite(name: str) -> Suite:
    """Load a suite; one that does not exist is a mistake in the command."""
    from timesliver.bench.suites import load_suite
    from timesliver.errors import InvalidInputError

    try:
        return load_suite(name)
    except InvalidInputError as problem:
        raise typer.BadParameter(str(problem), param_hint="SUITE") from problem


def check_preset(suite: Suite, preset: str) -> None:
    """Complain of a preset that a suite does not have."""
    if preset not in suite.presets:
        raise typer.BadParameter(
            f"the suite {suite.name} has no preset {preset!r}, only {', '.join(suite.presets)}.",
            param_hint="--preset",
        )


def _select(suite: Suite, preset: str, only: list[str]) -> list[Job]:
    check_preset(suite, preset)
    jobs = suite.jobs(preset)
    chosen = [job for job in jobs if all(job.matches(text) for text in only)]
    if only and not chosen:
        raise typer.BadParameter(
            f"no job has {' and '.join(map(repr, only))} in its label; labels look like "
            f"{jobs[0].label!r}.",
            param_hint="--only",
        )
    return chosen


_HEADER = ("suite", "preset", "jobs", "done", "failed", "na", "missing", "time left")


def _row(row: dict[str, Any], in_words: Any) -> list[Any]:
    left = "" if not row["seconds_left"] else f"about {in_words(row['seconds_left'])}"
    if row["of_unknown_time"]:
        left = f"{left or 'not known'}, {row['of_unknown_time']} jobs unlike any that are done"
    return [*(row[name] for name in _HEADER[:-1]), left]


def _failures(jobs: list[Job], records: Any) -> dict[str, str]:
    from timesliver.bench.progress import last_line

    return {
        job.label: last_line(records[job.hash].error)
        for job in jobs
        if job.hash in records and records[job.hash].status == "failed"
    }
