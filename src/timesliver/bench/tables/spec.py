"""What a suite says about a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from timesliver.errors import InvalidParameterError, check_choice

__all__ = ["Spec"]


@dataclass(frozen=True)
class Spec:
    """A table of a suite.

    Attributes
    ----------
    name, title : str
        Short name, and the heading.
    kind : {"values", "area", "accuracy", "printed"}
        "area" shows I(upto), the area under the curve of `value` over the option ``percent``;
        "accuracy" makes tables by category of the UEA archive and by data set, and repeats the
        paper's; "printed" shows a table of the paper alone.
    task : str
        The jobs it is made of.
    rows : list of str
        Fields or options of the jobs that make a row.
    columns : str
        Field or option that makes the columns; "measure" if `values` does.
    value : str
        The result that is shown.
    values : dict of str to str
        For the columns "measure": the results shown, by the heads of their columns.
    upto : float or None
        U of an area I(U).
    scale : float, or dict of column to float
        What results are multiplied by.
    decimals : int or "auto"
        Digits after the point; "auto" is three significant digits.
    best : str, or dict of column to str
        "max", "min" or "none".
    compare : {"rows", "columns"}
        What competes for being best.
    where : dict
        Values that fields and options must have; a list means any of them.
    without : dict
        Values that they must not have.
    means : dict of str to list of str
        More columns: the mean over the columns named, as far as they are there; "*" is all.
    only_means : bool
        Leave out the columns that the means are made of.
    ranks : bool
        Add average rank, top-1 and top-3.
    paper : str
        Table of the paper to put beside.
    paper_names : dict of str to str
        What the paper calls something, by its name here.
    note : str
        A remark.
    """

    name: str
    title: str = ""
    kind: str = "values"
    task: str = ""
    rows: list[str] = field(default_factory=list)
    columns: str = ""
    value: str = ""
    values: dict[str, str] = field(default_factory=dict)
    upto: float | None = None
    scale: float | dict[str, float] = 1.0
    decimals: int | str = 3
    best: str | dict[str, str] = "max"
    compare: str = "rows"
    where: dict[str, Any] = field(default_factory=dict)
    without: dict[str, Any] = field(default_factory=dict)
    means: dict[str, list[str]] = field(default_factory=dict)
    only_means: bool = False
    ranks: bool = False
    paper: str = ""
    paper_names: dict[str, str] = field(default_factory=dict)
    note: str = ""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, ("values", "area", "accuracy", "printed"))
        check_choice("compare", self.compare, ("rows", "columns"))
        for best in self.best.values() if isinstance(self.best, dict) else [self.best]:
            check_choice("best", best, ("max", "min", "none"))
        needed: dict[str, Any] = {}
        if self.kind == "printed":
            needed = {"paper": self.paper}
        elif self.kind != "accuracy":
            shown = "values" if self.columns == "measure" else "value"
            needed = {name: getattr(self, name) for name in ("task", "rows", "columns", shown)}
        if self.kind == "area":
            needed["upto"] = self.upto
        lacking = [name for name, given in needed.items() if not given]
        if lacking:
            raise InvalidParameterError(f"table {self.name!r} needs {', '.join(lacking)}")

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Spec:
        """Check what a suite says, and fill in the rest."""
        known = {field.name for field in fields(cls)}
        wrong = sorted(set(content) - known)
        if wrong or "name" not in content:
            raise InvalidParameterError(
                f"table {content.get('name', '(without a name)')!r}: "
                + (f"{', '.join(wrong)} unknown" if wrong else "a name is needed")
                + f"; a table has {', '.join(sorted(known))}"
            )
        return cls(**content)

    @property
    def digits(self) -> int | None:
        """Digits after the point; None for three significant ones."""
        return self.decimals if isinstance(self.decimals, int) else None

    def scale_of(self, column: str) -> float:
        """Return what the results in a column are multiplied by."""
        return self.scale.get(column, 1.0) if isinstance(self.scale, dict) else self.scale

    def best_of(self, column: str) -> str:
        """Return what is best in a column."""
        return self.best.get(column, "none") if isinstance(self.best, dict) else self.best
