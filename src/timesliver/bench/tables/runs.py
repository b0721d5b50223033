"""Records as the tables and figures see them: one run per job, missing ones included."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from timesliver.errors import InvalidInputError
from timesliver.metrics import UnmaskingCurve, unmasking_area
from timesliver.typing import JSONDict

if TYPE_CHECKING:
    from timesliver.bench.store import Record
    from timesliver.bench.suites import Suite

__all__ = ["Measured", "Run", "Trial", "collect", "distinct", "select"]

#: A repetition: number of the split, and seed.
Trial = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Run:
    """A job and what came of it.

    Attributes
    ----------
    job : dict
        Fields of the job.
    status : str
        "done", "failed", "na" (the method does not apply) or "missing" (not run yet).
    result : dict
        What the job measured.
    """

    job: JSONDict
    status: str
    result: JSONDict

    @property
    def options(self) -> dict[str, Any]:
        """The job's options."""
        return dict(self.job.get("options", {}))

    @property
    def trial(self) -> Trial:
        """Split and seed."""
        return int(self.job.get("split", 0)), int(self.job.get("seed", 0))

    def get(self, name: str) -> Any:
        """Return a field of the job, or an option; "" where there is none.

        ``model.n_bins`` is an option of the model, from the job's configuration.
        """
        if name.startswith("model."):
            config = json.loads(self.job.get("config") or "{}")
            value = config.get("model", {}).get("options", {}).get(name.removeprefix("model."), "")
        else:
            value = self.job[name] if name in self.job else self.options.get(name, "")
        return tuple(value) if isinstance(value, list) else value

    def number(self, key: str) -> float | None:
        """Return a number of the result; None where it is not defined."""
        if key not in self.result:
            raise InvalidInputError(
                f"the {self.get('task')} job of {self.get('explainer') or self.get('model')} on "
                f"{self.get('dataset')} has no result {key!r}; it has {sorted(self.result)}"
            )
        value = self.result[key]
        return None if value is None or math.isnan(float(value)) else float(value)


def collect(
    suite: Suite,
    records: Mapping[str, Record] | Iterable[Record],
    preset: str | None = None,
) -> list[Run]:
    """Return one run for each job of the preset and the trainings they need, in the suite's order.

    Without a preset these are the jobs of all presets that have a record, and nothing is missing.
    Records of configurations that the suite no longer has are left out in any case.
    """
    given = records.values() if isinstance(records, Mapping) else records
    by_hash = {record.hash: record for record in given}
    presets = list(suite.presets) if preset is None else [preset]
    runs = []
    jobs = [job for one in presets for job in suite.jobs(one)]
    trainings = [job.training for job in jobs if job.config and job.training is not None]
    for job in distinct([*jobs, *trainings]):
        record = by_hash.get(job.hash)
        if record is not None:
            runs.append(Run(record.job, record.status, record.result or {}))
        elif preset is not None:
            runs.append(Run(job.to_dict(), "missing", {}))
    return runs


def select(
    runs: Iterable[Run],
    task: str,
    where: Mapping[str, Any] | None = None,
    without: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Return the runs of a task that have all values of `where` and none of `without`.

    A list of values means any of them.
    """
    return [
        run
        for run in runs
        if run.get("task") == task
        and all(_is_one(run.get(name), values) for name, values in (where or {}).items())
        and not any(_is_one(run.get(name), values) for name, values in (without or {}).items())
    ]


def _is_one(value: Any, wanted: Any) -> bool:
    choices = wanted if isinstance(wanted, list) else [wanted]
    return value in [tuple(choice) if isinstance(choice, list) else choice for choice in choices]


def distinct(items: Iterable[Any]) -> list[Any]:
    """Return each item once, in order of appearance."""
    return list(dict.fromkeys(items))


@dataclass(frozen=True)
class Measured:
    """One number for each trial of a group of runs.

    Attributes
    ----------
    values : dict of Trial to float
        Mean over the runs of a trial (over backbones, say). A trial with a failed or missing run
        is left out, as its mean would be one of other things.
    failed, missing, na : int
        How many runs failed, are missing or do not apply.
    """

    values: Mapping[Trial, float] = field(default_factory=dict)
    failed: int = 0
    missing: int = 0
    na: int = 0

    @classmethod
    def of(cls, runs: Sequence[Run], key: str, scale: float, upto: float | None) -> Measured:
        """Average ``scale`` times a result within each trial, or take the area I(upto) of it."""
        counts = dict.fromkeys(("failed", "missing", "na", "done"), 0)
        trials: dict[Trial, list[Run]] = {}
        for run in runs:
            counts[run.status] += 1
            trials.setdefault(run.trial, []).append(run)
        values: dict[Trial, float] = {}
        for trial, members in sorted(trials.items(), key=lambda item: item[0]):
            if any(run.status in ("failed", "missing") for run in members):
                continue
            done = [run for run in members if run.status == "done"]
            read = _each(key) if upto is None else _areas(key, upto)
            numbers = [number for number in read(done) if number is not None]
            if numbers:
                values[trial] = scale * float(np.mean(numbers))
            else:
                counts["na"] += len(done)
        return cls(values, counts["failed"], counts["missing"], counts["na"])


def _each(key: str) -> Callable[[Sequence[Run]], Iterator[float | None]]:
    return lambda runs: (run.number(key) for run in runs)


def _areas(key: str, upto: float) -> Callable[[Sequence[Run]], Iterator[float | None]]:
    """Return the area under e(u) for each curve in the runs, which differ in their percent."""

    def areas(runs: Sequence[Run]) -> Iterator[float | None]:
        curves: dict[str, dict[float, float]] = {}
        for run in runs:
            rest = {name: v for name, v in run.options.items() if name != "percent"}
            names = ("dataset", "model", "explainer", "setting")
            curve = repr((sorted(rest.items()), *(run.get(name) for name in names)))
            value = run.number(key)
            if value is not None:
                points = curves.setdefault(curve, {0.0: 0.0})
                points[float(run.get("percent"))] = value
                full = run.result.get("full_accuracy")
                if full is not None:
                    points.setdefault(100.0, float(full))
        for points in curves.values():
            percents = np.array(sorted(points))
            accuracies = np.array([[[points[percent] for percent in percents]]])
            yield unmasking_area(UnmaskingCurve(percents, accuracies), upto).mean

    return areas
