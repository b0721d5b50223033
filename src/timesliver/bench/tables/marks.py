"""Best and second best, and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from timesliver.bench.tables.cells import Cell, Column, Row, Table
from timesliver.bench.tables.runs import Measured
from timesliver.bench.tables.significance import Field, Verdict, compare, over_sets
from timesliver.metrics import average_ranks, top_counts

__all__ = ["Ranks", "mark_best"]


class _Lane(NamedTuple):
    """A column or row whose cells compete: its name, how it is written, where they are."""

    name: str
    column: Column
    places: list[tuple[int, int]]


class _Judged(NamedTuple):
    """A mark for each cell, the names of the best two, and the test of them."""

    marks: list[str]
    pair: str
    verdict: Verdict


def mark_best(table: Table, direction: str) -> Table:
    """Mark best and second best of each column (or row), with a test of the two.

    Values that agree as far as they are printed are tied and share their mark.
    """
    cells = [list(row.cells) for row in table.rows]
    tests, untested = [], dict[str, list[str]]()
    if direction == "rows":
        names = [row.name for row in table.rows]
        lanes = [
            _Lane(column.name, column, [(r, c) for r in range(len(cells))])
            for c, column in enumerate(table.columns)
        ]
    else:
        names = [column.name for column in table.columns]
        lanes = [
            _Lane(row.name, table.columns[0], [(r, c) for c in range(len(names))])
            for r, row in enumerate(table.rows)
            if table.columns
        ]
    for lane in lanes:
        if lane.column.best == "none":
            continue
        judged = _judge([cells[r][c] for r, c in lane.places], names, lane.column)
        verdict = judged.verdict
        for (r, c), mark in zip(lane.places, judged.marks, strict=True):
            cells[r][c] = replace(
                cells[r][c], mark=mark, significant=verdict.significant and mark == "best"
            )
        if verdict.tested:
            tests.append(f"{lane.name}: {judged.pair}, {verdict.text}")
        elif verdict.text:
            untested.setdefault(verdict.text, []).append(lane.name)
    rows = tuple(
        replace(row, cells=tuple(line)) for row, line in zip(table.rows, cells, strict=True)
    )
    tests += [f"{', '.join(lane_names)}: {reason}" for reason, lane_names in untested.items()]
    if not tests:
        return replace(table, rows=rows)
    note = (
        "Best and second best are marked; * where they differ at the 5 % level. Tests: "
        f"{'; '.join(tests)}."
    )
    return replace(table, rows=rows, notes=(*table.notes, note))


@dataclass(frozen=True, eq=False)
class Ranks:
    """Average rank, top-1 and top-3 of the methods of a table.

    Attributes
    ----------
    measures : tuple of Column
        What is told of each method.
    lanes : tuple of tuple of Cell
        For each measure, a cell for each method.
    notes : tuple of str
        Over which data sets, and which methods differ.
    """

    measures: tuple[Column, ...]
    lanes: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, direction: str, best: str) -> Ranks:
        """Rank the rows (or columns) over the data sets on which all of them have a result.

        Methods with results on fewer than half of the data sets are not ranked.
        """
        results = np.array(
            [[np.nan if c.mean is None else c.mean for c in row.cells] for row in table.rows],
            dtype=np.float64,
        ).reshape(len(table.rows), len(table.columns))
        methods = [column.name for column in table.columns]
        if direction == "rows":
            results, methods = results.T, [row.name for row in table.rows]
        if not results.size:
            return cls((), (), ())
        field, higher = Field.of(results), best != "min"
        ranked, common = field.ranked, field.results
        if len(ranked) < 2 or not len(common):
            return cls((), (), ("Ranks: no two methods have results on the same data sets.",))
        numbers = {
            Column("Average rank", 2, "min", True): average_ranks(common, higher),
            Column("Top-1", 0, "max", True): top_counts(common, 1, higher),
            Column("Top-3", 0, "max", True): top_counts(common, min(3, len(ranked)), higher),
        }
        lanes = []
        for measure, values in numbers.items():
            lane = [Cell() for _ in methods]
            for i, value in zip(ranked, values, strict=True):
                lane[i] = Cell(Measured({(0, 0): float(value)}))
            marks = _judge(lane, methods, measure).marks
            lanes.append(tuple(replace(c, mark=m) for c, m in zip(lane, marks, strict=True)))
        left_out = [name for i, name in enumerate(methods) if i not in ranked]
        note = (
            f"Ranks over the {len(common)} of {len(results)} data sets on which all "
            f"{len(ranked)} ranked methods have a result."
        )
        if left_out:
            note += f" Not ranked, with results on less than half of them: {', '.join(left_out)}."
        tests = over_sets(common, [methods[i] for i in ranked], higher)
        return cls(tuple(numbers), tuple(lanes), (note, tests))

    def add_to(self, table: Table, direction: str) -> Table:
        """Return the table with the ranks as more columns (or rows)."""
        notes = (*table.notes, *self.notes)
        if direction == "rows":
            rows = tuple(
                replace(row, cells=(*row.cells, *(lane[i] for lane in self.lanes)))
                for i, row in enumerate(table.rows)
            )
            columns = (*table.columns, *self.measures)
            return replace(table, columns=columns, rows=rows, notes=notes)
        blank = ("",) * (len(table.heads) - 1)
        more = (
            Row((measure.name, *blank), lane, measure.decimals)
            for measure, lane in zip(self.measures, self.lanes, strict=True)
        )
        return replace(table, rows=(*table.rows, *more), notes=notes)


def _judge(cells: Sequence[Cell], names: Sequence[str], column: Column) -> _Judged:
    """Find the best two of some cells, and test them."""
    known = [(i, cell.mean) for i, cell in enumerate(cells) if cell.mean is not None]
    marks = [""] * len(cells)
    if len(known) < 2:
        return _Judged(marks, "", Verdict(""))
    sign = -1 if column.best == "max" else 1
    digits = column.decimals

    def shown(value: float) -> float:
        return sign * (float(f"{value:.3g}") if digits is None else round(value, digits))

    levels = sorted({shown(mean) for _, mean in known})
    for i, mean in known:
        place = levels.index(shown(mean))
        marks[i] = ("best", "second")[place] if place < 2 else ""
    order = sorted(known, key=lambda item: sign * item[1])
    (first, _), (second, _) = order[:2]
    if marks[second] == "best":
        verdict = Verdict("the best are equal as printed")
    else:
        verdict = compare(cells[first].values, cells[second].values)
    return _Judged(marks, f"{names[first]} against {names[second]}", verdict)
