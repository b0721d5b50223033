"""What a suite says about a figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from timesliver.bench.tables.build import as_text
from timesliver.bench.tables.runs import Run, distinct
from timesliver.errors import InvalidParameterError, check_choice

__all__ = ["KINDS", "FigureSpec", "series_names"]

KINDS = ("bars", "curve", "line", "panel", "ranks")


@dataclass(frozen=True)
class FigureSpec:
    """A figure of a suite.

    Attributes
    ----------
    name, title : str
        Short name, and the heading.
    kind : {"bars", "curve", "line", "panel", "ranks"}
        "curve": a result against percent; "line": against `x`; "bars": one bar for each of `by`;
        "panel": truth and attribution; "ranks": a critical difference diagram.
    task : str
        The jobs it is made of.
    value : str
        The result that is drawn.
    values : dict of str to str
        Several results, by the name of their axis: a row of panels for each.
    x : str
        Field or option along the axis. Of lists it is the one number that each has, or, if any
        has several, how many.
    by : list of str
        Fields that make a line or bar.
    panel : str
        Field that makes a panel.
    where, without : dict
        Values that fields and options must, and must not, have.
    scale : float
        What results are multiplied by.
    best : {"max", "min"}
        What is best, for ranks.
    log : {"", "x", "y", "xy"}
        Axes with a logarithmic scale.
    x_label, y_label : str
        Names of the axes.
    """

    name: str
    kind: str
    title: str = ""
    task: str = ""
    value: str = ""
    values: dict[str, str] = field(default_factory=dict)
    x: str = ""
    by: list[str] = field(default_factory=list)
    panel: str = "dataset"
    where: dict[str, Any] = field(default_factory=dict)
    without: dict[str, Any] = field(default_factory=dict)
    scale: float = 1.0
    best: str = "max"
    log: str = ""
    x_label: str = ""
    y_label: str = ""

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> FigureSpec:
        """Check what a suite says, and fill in what its kind implies."""
        known = {field.name for field in fields(cls)}
        wrong = sorted(set(content) - known)
        name = content.get("name", "(without a name)")
        if wrong or not {"name", "kind"} <= set(content):
            raise InvalidParameterError(
                f"figure {name!r}: "
                + (f"{', '.join(wrong)} unknown" if wrong else "name and kind are needed")
                + f"; a figure has {', '.join(sorted(known))}"
            )
        check_choice("kind", content["kind"], KINDS)
        implied = _IMPLIED[content["kind"]]
        spec = cls(**{**implied, **content})
        needed = ["task"]
        if spec.kind != "panel" and not spec.values:
            needed.append("value")
        if spec.kind == "line":
            needed.append("x")
        lacking = [part for part in needed if not getattr(spec, part)]
        if lacking:
            raise InvalidParameterError(f"figure {name!r} needs {', '.join(lacking)}")
        check_choice("best", spec.best, ("max", "min"))
        check_choice("log", spec.log, ("", "x", "y", "xy"))
        return spec

    @property
    def measures(self) -> dict[str, str]:
        """The results that are drawn, by the names of their axes."""
        return self.values or {self.y_label or self.value.replace("_", " "): self.value}


_IMPLIED: dict[str, dict[str, Any]] = {
    "curve": {
        "task": "unmask",
        "value": "accuracy",
        "x": "percent",
        "x_label": "time points kept, u (%)",
        "y_label": "accuracy after retraining, e(u)",
        "by": ["explainer", "setting", "model"],
    },
    "line": {"by": ["model"]},
    "bars": {"by": ["explainer", "setting", "model"]},
    "panel": {"task": "panel", "by": ["explainer", "setting", "model"]},
    "ranks": {"task": "train", "value": "accuracy", "by": ["model"]},
}


def series_names(
    runs: Sequence[Run], by: Sequence[str], labels: Mapping[str, str]
) -> dict[tuple[Any, ...], str]:
    """Return a name for each line; fields after the first are told only where they matter."""
    keys = distinct(tuple(run.get(name) for name in by) for run in runs)
    names = {}
    for key in keys:
        alike = [other for other in keys if other[:1] == key[:1]]
        rest = [
            as_text(value, labels)
            for i, value in enumerate(key[1:], start=1)
            if len({other[i] for other in alike}) > 1 and value != ""
        ]
        first = as_text(key[0], labels) if key else ""
        names[key] = f"{first} ({', '.join(rest)})" if rest else first
    return names
