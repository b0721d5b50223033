"""All suites in one text, or on one page: what was found, then every table and figure.

Numbers in the findings are not typed: the findings are a template, and its functions look the
numbers up in the records.
"""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined, TemplateError

from timesliver.bench import figures, tables
from timesliver.bench.findings import Findings, Outcome
from timesliver.bench.tables.runs import collect
from timesliver.errors import InvalidInputError, InvalidParameterError, MissingExtraError
from timesliver.io import replacing

__all__ = ["Findings", "Outcome", "write_page", "write_report"]


def write_report(
    outcomes: Sequence[Outcome],
    path: str | os.PathLike[str],
    findings: str | os.PathLike[str],
    formats: Sequence[str] = ("png",),
) -> Path:
    """Write a report in Markdown: the findings, every table and figure, every single trial.

    Parameters
    ----------
    outcomes : list of Outcome
        The suites in the order of the report.
    path : str or path
        The file to write; figures go to a folder ``figures`` beside it.
    findings : str or path
        A Jinja template in Markdown that may call the functions of `Findings`.
    formats : list of str
        Endings of the files of the figures; the first is the one shown.

    Returns
    -------
    Path
        The file.
    """
    target = Path(path)
    parts = [_render_findings(Path(findings), outcomes)]
    singles = ["# Appendix: every trial\n"]
    for outcome in outcomes:
        suite = outcome.suite
        lines = [f"# {suite.title}\n", suite.description.strip(), f"```\n{outcome.command}\n```\n"]
        if _is_empty(outcome):
            parts.append("\n\n".join([*lines, "No job of this suite has been run.\n"]))
            continue
        for table, command in _tables(outcome):
            lines += [table.to_markdown(), f"Table: `{command}`\n"]
            single = tables.appendix(table)
            if len(table.trials) > 1 and single.rows:
                singles.append(single.to_markdown())
        for name, drawing in _drawings(outcome):
            if isinstance(drawing, str):
                lines.append(f"The figure {name} could not be drawn: {drawing}\n")
                continue
            folder = target.parent / "figures"
            folder.mkdir(parents=True, exist_ok=True)
            stem = f"{suite.name}-{drawing.name}"
            for ending in formats:
                drawing.save(folder / f"{stem}.{ending}")
            lines.append(f"![{drawing.title}](figures/{stem}.{formats[0]})")
            lines.append(f"Figure: `timesliver bench figure {suite.name} --name {drawing.name}`\n")
        parts.append("\n\n".join(line for line in lines if line))
    if len(singles) > 1:
        parts.append("\n\n".join(singles))
    with replacing(target) as draft:
        text = re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts))
        draft.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
    return target


def write_page(
    outcomes: Sequence[Outcome],
    path: str | os.PathLike[str],
    title: str = "The benchmark of timesliver",
) -> Path:
    """Write one page with all tables, all figures and every trial; it needs no network.

    Parameters
    ----------
    outcomes : list of Outcome
        The suites in the order of the page.
    path : str or path
        The file to write.
    title : str
        The heading.

    Returns
    -------
    Path
        The file.
    """
    sections = []
    for outcome in outcomes:
        empty = _is_empty(outcome)
        made = [] if empty else _tables(outcome)
        sections.append(
            {
                "name": outcome.suite.name,
                "title": outcome.suite.title,
                "description": outcome.suite.description.strip(),
                "command": outcome.command,
                "empty": empty,
                "tables": [{"html": t.to_html(), "command": command} for t, command in made],
                "figures": [
                    {
                        "title": name if isinstance(drawing, str) else drawing.title,
                        "command": f"timesliver bench figure {outcome.suite.name} --name {name}",
                        "reason": drawing if isinstance(drawing, str) else "",
                        "data": "" if isinstance(drawing, str) else _embedded(drawing),
                    }
                    for name, drawing in ([] if empty else _drawings(outcome))
                ],
                "singles": [tables.appendix(t).to_html() for t, _ in made if len(t.trials) > 1],
            }
        )
    text = resources.files("timesliver.bench").joinpath("page.html").read_text(encoding="utf-8")
    page = Environment(autoescape=True, undefined=StrictUndefined).from_string(text)
    target = Path(path)
    with replacing(target) as draft:
        draft.write_text(page.render(title=title, sections=sections), encoding="utf-8")
    return target


def _render_findings(path: Path, outcomes: Sequence[Outcome]) -> str:
    if not path.is_file():
        raise InvalidInputError(f"there is no file {path} with the findings; write one first")
    # The text becomes Markdown, in which < and & are themselves.
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True)
    try:
        template = environment.from_string(path.read_text(encoding="utf-8"))
        return template.render(Findings(outcomes).functions()).rstrip("\n") + "\n"
    except (TemplateError, InvalidInputError, InvalidParameterError, TypeError) as error:
        raise InvalidInputError(f"{path}: {error}") from error


def _is_empty(outcome: Outcome) -> bool:
    """Whether nothing that the report would show has been run."""
    runs = collect(outcome.suite, outcome.records, outcome.preset)
    return all(run.status == "missing" for run in runs)


def _tables(outcome: Outcome) -> list[tuple[tables.Table, str]]:
    """Return the tables of a suite, each with the command that shows it."""
    suite = outcome.suite
    return [
        (table, f"timesliver bench table {suite.name} --name {content['name']}")
        for content in suite.tables
        for table in tables.build(suite, outcome.records, outcome.preset, content["name"])
    ]


def _drawings(outcome: Outcome) -> list[tuple[str, figures.Drawing | str]]:
    """Return the figures of a suite; those that cannot be drawn yet as the reason why."""
    drawings: list[tuple[str, figures.Drawing | str]] = []
    for content in outcome.suite.figures:
        name = content["name"]
        try:
            made = figures.build(outcome.suite, outcome.records, outcome.preset, name)
            drawings += [(name, drawing) for drawing in made]
        except (InvalidInputError, MissingExtraError) as error:
            drawings.append((name, str(error)))
    return drawings


def _embedded(drawing: figures.Drawing) -> str:
    """Return a figure as an address that holds all of it."""
    file = io.BytesIO()
    drawing.figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    return "data:image/svg+xml;base64," + base64.b64encode(file.getvalue()).decode("ascii")
