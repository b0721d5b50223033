"""From the records of a suite to its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from timesliver.bench import paper
from timesliver.bench.paper import Printed, PrintedTable
from timesliver.bench.tables.cells import Cell, Column, Row, Table
from timesliver.bench.tables.marks import Ranks, mark_best
from timesliver.bench.tables.runs import Measured, Run, collect, distinct, select
from timesliver.bench.tables.spec import Spec

if TYPE_CHECKING:
    from timesliver.bench.store import Record
    from timesliver.bench.suites import Suite

__all__ = ["appendix", "as_text", "build", "labels_of"]


def build(
    suite: Suite,
    records: Mapping[str, Record] | Iterable[Record],
    preset: str | None = None,
    name: str | None = None,
) -> list[Table]:
    """Make the tables of a suite.

    Parameters
    ----------
    suite : Suite
        Says which tables there are.
    records : dict of hash to Record
        What was run.
    preset : str, optional
        Show the jobs of this preset, run or missing; by default all records, whatever their
        configuration.
    name : str, optional
        Make this table alone.

    Returns
    -------
    list of Table
    """
    runs = collect(suite, records, preset)
    specs = [Spec.read(content) for content in suite.tables]
    labels = labels_of(suite)
    return [
        table
        for spec in specs
        if name in (None, spec.name)
        for part in _expand(spec)
        for table in [_printed(part) if part.kind == "printed" else _measured(part, runs, labels)]
    ]


def appendix(table: Table) -> Table:
    """Return every single result behind a table: a row for each cell, a column for each trial."""
    trials = table.trials
    rows = tuple(
        Row(
            (*row.labels, column.name),
            tuple(
                Cell(Measured({trial: cell.values[trial]}) if trial in cell.values else Measured())
                for trial in trials
            ),
            column.decimals if column.decimals is not None else "column",
        )
        for row in table.rows
        if not row.summary
        for cell, column in zip(row.cells, table.columns, strict=True)
        if cell.values and not column.summary
    )
    digits = table.columns[0].decimals if table.columns else None
    columns = tuple(
        Column(f"split {split}, seed {seed}", digits, "none", summary=True)
        for split, seed in trials
    )
    heads = (*table.heads, "Column")
    return Table(f"{table.name}-all", f"{table.title}: every trial", heads, columns, rows)


def labels_of(suite: Suite) -> dict[str, str]:
    """Return how the names in a suite are printed."""
    return dict(getattr(getattr(suite, "catalogue", None), "labels", {}))


def as_text(value: Any, labels: Mapping[str, str]) -> str:
    """Return a field of a job as it is printed.

    Examples
    --------
    >>> as_text((4, 7), {}), as_text("grad_cam", {"grad_cam": "Grad-CAM"}), as_text(True, {})
    ('4, 7', 'Grad-CAM', 'yes')
    """
    if isinstance(value, tuple):
        return ", ".join(as_text(item, labels) for item in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return labels.get(text, text)


def _expand(spec: Spec) -> list[Spec]:
    """Return the tables that one entry stands for."""
    if spec.kind != "accuracy":
        return [spec]
    by_set = replace(
        spec,
        kind="values",
        title=f"{spec.title}, by data set",
        task=spec.task or "train",
        rows=["dataset"],
        columns="model",
        value=spec.value or "accuracy",
        scale=100.0 if spec.scale == 1 else spec.scale,
        decimals=1 if spec.decimals == 3 else spec.decimals,
        compare="columns",
        ranks=True,
        paper=spec.paper or "uea",
    )
    by_category = replace(
        by_set,
        name=f"{spec.name}-categories",
        title=f"{spec.title}, by category",
        rows=["model"],
        columns="dataset",
        means={**paper.uea_categories(), "All": ["*"]},
        only_means=True,
        compare="rows",
        note="Means over the data sets of a category that were run; the printed numbers are "
        f"means over the same sets. {spec.note}".strip(),
    )
    return [
        by_category,
        by_set,
        *(
            Spec(f"{spec.name}-{table}", f"{spec.title}: {what}", "printed", paper=table)
            for table, what in (
                ("table4", "by category, as printed"),
                ("uea", "by data set, as printed"),
                ("uea_ranks", "ranks, as printed"),
            )
        ),
    ]


def _measured(spec: Spec, runs: list[Run], labels: Mapping[str, str]) -> Table:
    """Make a table of the runs."""
    chosen = select(runs, spec.task, spec.where, spec.without)
    groups: dict[tuple[Any, Any], list[Run]] = {}
    for run in chosen:
        row = tuple(run.get(name) for name in spec.rows)
        for column in spec.values or [run.get(spec.columns)]:
            groups.setdefault((row, column), []).append(run)
    row_keys, column_keys = (distinct(key[i] for key in groups) for i in (0, 1))
    if all(isinstance(key, int | float) for key in column_keys):
        column_keys.sort()
    printed = paper.load(spec.paper) if spec.paper else None
    names = {key: as_text(key, labels) for key in column_keys}
    columns = [Column(names[key], spec.digits, spec.best_of(names[key])) for key in column_keys]
    rows = []
    for row_key in row_keys:
        texts = tuple(as_text(value, labels) for value in row_key)
        cells = []
        for key in column_keys:
            measured = Measured.of(
                groups.get((row_key, key), []),
                spec.values[key] if spec.values else spec.value,
                spec.scale_of(names[key]),
                spec.upto if spec.kind == "area" else None,
            )
            cells.append(
                Cell(measured, _beside(printed, spec, (row_key[0], texts[0]), (key, names[key])))
            )
        rows.append(Row(texts, tuple(cells)))
    heads = tuple(name.removeprefix("model.").replace("_", " ").capitalize() for name in spec.rows)
    notes: tuple[str, ...] = (spec.note,) if spec.note else ()
    table = Table(spec.name, spec.title or spec.name, heads, tuple(columns), tuple(rows), notes)
    ranks = Ranks.of(table, spec.compare, spec.best_of("")) if spec.ranks else None
    table = mark_best(_with_means(table, spec), spec.compare)
    if ranks is not None:
        table = ranks.add_to(table, spec.compare)
    notes = (_what(table), *table.notes)
    if printed is not None:
        notes = (*notes, f"Printed in the paper: {printed.source}")
    return replace(table, notes=notes)


def _what(table: Table) -> str:
    """Say what a cell is."""
    cells = [cell for row in table.rows for cell in row.cells]
    n = max((cell.n for cell in cells), default=0)
    text = f"Mean ± standard deviation over n = {n} trials (splits and seeds)."
    if n <= 1:
        text = "One trial (split and seed) in each cell."
    words = {
        "na": "NA: the method does not apply",
        "failed": "failed: the job raised an error",
        "missing": "missing: not run yet",
        "": "empty: not part of the suite",
    }
    seen = {cell.status for cell in cells}
    legend = "; ".join(meaning for status, meaning in words.items() if status in seen)
    return f"{text} {legend}." if legend else text


def _beside(
    printed: PrintedTable | None, spec: Spec, row: tuple[Any, str], column: tuple[Any, str]
) -> Printed | None:
    """Return the paper's number; a row is known by its first label."""
    if printed is None:
        return None
    known = [
        spec.paper_names.get(str(name), spec.paper_names.get(text, text))
        for name, text in (row, column)
    ]
    return printed.get(*known)


def _with_means(table: Table, spec: Spec) -> Table:
    """Add columns that are means over others."""
    names = [column.name for column in table.columns]
    members = {
        head: [i for i, name in enumerate(names) if name in wanted or wanted == ["*"]]
        for head, wanted in spec.means.items()
    }
    members = {head: places for head, places in members.items() if places}
    kept = () if spec.only_means else range(len(names))
    rows = tuple(
        replace(
            row,
            cells=(
                *(row.cells[i] for i in kept),
                *(_mean([row.cells[i] for i in places]) for places in members.values()),
            ),
        )
        for row in table.rows
    )
    columns = (
        *(table.columns[i] for i in kept),
        *(Column(head, spec.digits, spec.best_of(head)) for head in members),
    )
    sizes = ", ".join(f"{head} {len(places)}" for head, places in members.items())
    notes = (*table.notes, f"Columns in each mean: {sizes}.") if members else table.notes
    return replace(table, columns=columns, rows=rows, notes=notes)


def _mean(cells: list[Cell]) -> Cell:
    """Return the mean over columns of each trial that all of them have.

    Methods that need no seed are run once. Then there is no trial in common, and the mean is that
    of the columns' means.
    """
    empty = [cell for cell in cells if not cell.values]
    measured = Measured(
        failed=sum(cell.measured.failed for cell in empty),
        missing=sum(cell.measured.missing for cell in empty),
        na=sum(cell.measured.na for cell in empty),
    )
    if not empty:
        common = set.intersection(*(set(cell.values) for cell in cells))
        values = {t: float(np.mean([cell.values[t] for cell in cells])) for t in sorted(common)}
        measured = Measured(values or {(0, 0): float(np.mean([cell.mean for cell in cells]))})
    shown = [cell.printed.mean for cell in cells if cell.printed and cell.printed.mean is not None]
    if len(shown) < len(cells):
        return Cell(measured)
    mean = float(np.mean(shown))
    return Cell(measured, Printed(mean, None, f"{mean:.2f}"))


def _printed(spec: Spec) -> Table:
    """Make a table of the paper's numbers alone."""
    table = paper.load(spec.paper)
    columns = tuple(Column(name, spec.digits, "none") for name in table.columns)
    rows = tuple(
        Row((row,), tuple(Cell(printed=table.cells[row, column]) for column in table.columns))
        for row in table.rows
    )
    source = f"Printed in the paper, not measured here. {table.source}"
    notes = (spec.note, source) if spec.note else (source,)
    return Table(spec.name, spec.title, (table.head.capitalize(),), columns, rows, notes)
