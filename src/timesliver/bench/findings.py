"""Numbers for the prose of a report, looked up in the records instead of typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from timesliver.bench import paper, tables
from timesliver.bench.store import STATUSES
from timesliver.bench.tables.cells import Cell
from timesliver.bench.tables.formats import number
from timesliver.bench.tables.runs import Measured, Run, collect, select
from timesliver.errors import InvalidInputError, InvalidParameterError, check_choice

if TYPE_CHECKING:
    from timesliver.bench.store import Record
    from timesliver.bench.suites import Suite

__all__ = ["Findings", "Outcome"]

_FIELDS = ("dataset", "model", "explainer", "setting")


@dataclass(frozen=True, eq=False)
class Outcome:
    """A suite and its records.

    Attributes
    ----------
    suite : Suite
        The suite.
    records : dict of hash to Record
        What was run.
    preset : str or None
        Which jobs are shown, run or missing; None for all that have a record.
    """

    suite: Suite
    records: Mapping[str, Record] | Iterable[Record]
    preset: str | None = "quick"

    @property
    def command(self) -> str:
        """What to type to get these records."""
        preset = f" --preset {self.preset}" if self.preset else ""
        return f"timesliver bench run {self.suite.name}{preset}"


class Findings:
    """The functions that a template of findings may call.

    Each looks at the records of one suite. A field that is not given must have the same value in
    all records that fit, so that no mean is taken by mistake; "*" says that a mean is meant.
    """

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        self._outcomes = {outcome.suite.name: outcome for outcome in outcomes}
        self._runs: dict[str, list[Run]] = {}

    def functions(self) -> dict[str, Any]:
        """Return what a template knows, by name."""
        names = ("value", "spread", "number", "has", "count", "paper", "table", "command")
        return {name: getattr(self, name) for name in names}

    def value(self, suite: str, *, decimals: int | None = 3, **asked: Any) -> str:
        """Return the mean over the trials as text; see `number`."""
        return number(self.number(suite, **asked), decimals)

    def spread(self, suite: str, *, decimals: int | None = 3, **asked: Any) -> str:
        """Return the standard deviation over the trials as text; see `number`."""
        deviation = self._find(suite, **asked).spread
        if deviation is None:
            raise InvalidInputError(
                f"there is a single trial of {_words(asked)} in {suite}; it has no spread"
            )
        return number(deviation, decimals)

    def number(self, suite: str, **asked: Any) -> float:
        """Return the mean over the trials.

        Parameters
        ----------
        suite : str
            Name of the suite.
        **asked
            ``task`` and ``key``, the result to look up; fields and options of the jobs;
            ``scale``, a factor; ``upto``, for the area I(upto) over the option ``percent``.
        """
        mean = self._find(suite, **asked).mean
        assert mean is not None
        return mean

    def has(self, suite: str, *, decimals: int | None = None, **asked: Any) -> bool:  # noqa: ARG002
        """Whether all trials of a number are done; a wrong name is an error all the same."""
        cell = self._cell(suite, **asked)
        return cell.mean is not None and cell.status != "partial"

    def count(self, suite: str, *statuses: str) -> int:
        """Return how many jobs are "done", "failed", "na" or "missing"; without a status, all."""
        for status in statuses:
            check_choice("status", status, (*STATUSES, "missing"))
        return sum(not statuses or run.status in statuses for run in self._collected(suite))

    def paper(self, table: str, row: str, column: str) -> str:
        """Return a number as the paper prints it, without its spread."""
        printed = paper.load(table).get(row, column)
        if printed is None or printed.mean is None:
            raise InvalidInputError(f"the paper prints no number for {row}, {column} in {table}")
        return printed.text.partition("±")[0]

    def table(self, suite: str, name: str) -> str:
        """Return a table of a suite as Markdown."""
        outcome = self._outcome(suite)
        made = tables.build(outcome.suite, outcome.records, outcome.preset, name)
        if not made:
            raise InvalidParameterError(f"the suite {suite} has no table {name!r}")
        return "\n\n".join(table.to_markdown() for table in made)

    def command(self, suite: str) -> str:
        """Return what to type to get the records of a suite."""
        return self._outcome(suite).command

    def _outcome(self, suite: str) -> Outcome:
        if suite not in self._outcomes:
            raise InvalidParameterError(
                f"there is no suite {suite!r} in this report, only {', '.join(self._outcomes)}"
            )
        return self._outcomes[suite]

    def _collected(self, suite: str) -> list[Run]:
        outcome = self._outcome(suite)
        if suite not in self._runs:
            self._runs[suite] = collect(outcome.suite, outcome.records, outcome.preset)
        return self._runs[suite]

    def _find(self, suite: str, **asked: Any) -> Cell:
        cell = self._cell(suite, **asked)
        if cell.mean is None or cell.status == "partial":
            count = cell.measured
            raise InvalidInputError(
                f"{_words(asked)} in {suite} is not complete: {cell.n} trials done, {count.failed} "
                f"jobs failed, {count.missing} missing, {count.na} do not apply; "
                f"run: {self._outcome(suite).command}"
            )
        return cell

    def _cell(
        self,
        suite: str,
        *,
        task: str,
        key: str,
        scale: float = 1.0,
        upto: float | None = None,
        **fields: Any,
    ) -> Cell:
        asked = {name: value for name, value in fields.items() if value != "*"}
        runs = select(self._collected(suite), task, asked)
        what = _words({"task": task, **fields})
        if not runs:
            raise InvalidInputError(f"the suite {suite} has no job with {what}")
        options = {name for run in runs for name in run.options}
        free = set(_FIELDS) | options - ({"percent"} if upto is not None else set())
        for name in sorted(free - set(fields)):
            seen = {run.get(name) for run in runs}
            if len(seen) > 1:
                raise InvalidInputError(
                    f"{what} in {suite} is not one number: {name} is one of "
                    f"{', '.join(sorted(map(repr, seen)))}; give one, or {name}='*' for the mean"
                )
        return Cell(Measured.of(runs, key, scale, upto))


def _words(asked: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in asked.items())
