"""Tables as text: Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jinja2 import Environment

if TYPE_CHECKING:
    from timesliver.bench.tables.cells import Cell, Column, Row, Table

__all__ = ["number", "to_csv", "to_html", "to_latex", "to_markdown"]

_WORDS = {"na": "NA", "failed": "failed", "missing": "missing", "": ""}
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "Δ": r"$\Delta$",
    "·": r"$\cdot$",
}
# As wide as it is, or as the page.
_FITTED = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%" "\n"
_HTML = """\
<figure class="table" id="{{ name }}">
<figcaption>{{ title }}</figcaption>
<div class="scroll"><table>
<thead>
{%- if blocks|length > 1 %}
<tr>{% if n_labels %}<th colspan="{{ n_labels }}"></th>{% endif %}
{%- for block, span in blocks %}<th class="block" colspan="{{ span }}">{{ block }}</th>
{%- endfor %}</tr>
{%- endif %}
<tr>{% for head in heads %}<th scope="col"{% if loop.index <= n_labels %} class="label"{% endif %}>
{{- head }}</th>{% endfor %}</tr>
</thead>
<tbody>
{%- for row in rows %}
<tr{% if row.summary %} class="summary"{% endif %}>
{%- for label in row.labels %}<th scope="row">{{ label }}</th>{% endfor %}
{%- for item in row.items %}<td{% if item.style %} class="{{ item.style }}"{% endif %}>
{{- item.text }}{% if item.star %}<sup>*</sup>{% endif %}</td>{% endfor %}</tr>
{%- endfor %}
</tbody>
</table></div>
{%- for note in notes %}
<p class="note">{{ note }}</p>
{%- endfor %}
</figure>
"""


@dataclass(frozen=True)
class _Item:
    """Text of a place in the table: style is "best", "second" or a status."""

    text: str
    style: str = ""
    star: bool = False


@dataclass(frozen=True)
class _Line:
    labels: list[str]
    items: list[_Item]
    summary: bool


@dataclass(frozen=True)
class _Grid:
    """The table as all formats show it: labels, ours, the paper's, the difference."""

    blocks: list[tuple[str, int]]
    labels: list[str]
    heads: list[str]
    lines: list[_Line]

    @classmethod
    def of(cls, table: Table) -> _Grid:
        shown = [
            i
            for i in range(len(table.heads))
            if any(row.labels[i] for row in table.rows) or not table.rows
        ]
        compared = [
            i
            for i in range(len(table.columns))
            if any(row.cells[i].printed is not None for row in table.rows)
        ]
        ours = bool(table.columns) and (
            not compared
            or any(cell.status for row in table.rows for cell in row.cells if not row.summary)
        )
        usual = max((cell.n for row in table.rows for cell in row.cells), default=0)
        blocks: list[tuple[str, int]] = []
        heads: list[str] = []
        lines = [_Line([row.labels[i] for i in shown], [], row.summary) for row in table.rows]
        if ours:
            blocks.append(("this run", len(table.columns)))
            heads += [column.name for column in table.columns]
            for line, row in zip(lines, table.rows, strict=True):
                for cell, column in zip(row.cells, table.columns, strict=True):
                    plain = row.summary or column.summary
                    line.items.append(
                        _ours(cell, _decimals(row, column), cell.n if plain else usual)
                    )
        if compared:
            blocks.append(("printed in the paper", len(compared)))
            heads += [table.columns[i].name for i in compared]
            for line, row in zip(lines, table.rows, strict=True):
                line.items.extend(_printed(row.cells[i]) for i in compared)
        if compared and ours:
            blocks.append(("difference", len(compared)))
            heads += [table.columns[i].name for i in compared]
            for line, row in zip(lines, table.rows, strict=True):
                for i in compared:
                    change = row.cells[i].difference
                    digits = _decimals(row, table.columns[i])
                    text = "" if change is None else number(change, digits, sign=True)
                    line.items.append(_Item(text))
        return cls(blocks, [table.heads[i] for i in shown], heads, lines)


def number(value: float, decimals: int | None, sign: bool = False) -> str:
    """Return a number as text; without decimals it has three significant digits.

    Examples
    --------
    >>> number(0.98765, 2), number(12345.6, 0), number(0.000012345, None), number(-0.2, 1, True)
    ('0.99', '12,346', '1.23e-05', '−0.2')
    """
    text = f"{value:.3g}" if decimals is None else f"{value:,.{decimals}f}"
    if not float(text.replace(",", "")):
        text = text.removeprefix("-")
    elif sign and value > 0:
        text = "+" + text
    return "−" + text[1:] if text.startswith("-") else text


def to_markdown(table: Table) -> str:
    """Return the table as GitHub's Markdown: the best is bold, the second best italic."""
    grid = _Grid.of(table)
    told = {"printed in the paper": "paper: ", "difference": "Δ "} if len(grid.blocks) > 1 else {}
    prefixes = [told.get(block, "") for block, span in grid.blocks for _ in range(span)]
    heads = [prefix + _markdown(head) for prefix, head in zip(prefixes, grid.heads, strict=True)]
    lines = [
        "| " + " | ".join([_markdown(label) for label in grid.labels] + heads) + " |",
        "|" + ":---|" * len(grid.labels) + "---:|" * len(heads),
    ]
    around = {"best": "**{}**", "second": "_{}_"}
    for line in grid.lines:
        cells = [_markdown(label) for label in line.labels]
        for item in line.items:
            text = around.get(item.style, "{}").format(item.text) if item.text else ""
            cells.append(text + "\\*" * item.star)
        lines.append("| " + " | ".join(cells) + " |")
    notes = "".join(f"\n{_markdown(note)}\n" for note in table.notes)
    return f"**{_markdown(table.title)}**\n\n" + "\n".join(lines) + "\n" + notes


def to_latex(table: Table) -> str:
    """Return a LaTeX table: the best is bold, the second best underlined.

    It needs the packages booktabs and graphicx; a table wider than the page is made smaller.
    """
    grid = _Grid.of(table)
    head = " & ".join(_latex(text) for text in grid.labels + grid.heads) + r" \\"
    spans = ""
    if len(grid.blocks) > 1:
        start = len(grid.labels) + 1
        names, rules = [], []
        for block, span in grid.blocks:
            names.append(rf"\multicolumn{{{span}}}{{c}}{{{_latex(block)}}}")
            rules.append(rf"\cmidrule(lr){{{start}-{start + span - 1}}}")
            start += span
        spans = "& " * len(grid.labels) + " & ".join(names) + " \\\\\n" + "".join(rules) + "\n"
    around = {"best": r"\textbf{%s}", "second": r"\underline{%s}"}
    body, before = "", False
    for line in grid.lines:
        cells = [_latex(label) for label in line.labels]
        for item in line.items:
            text = around.get(item.style, "%s") % _latex(item.text) if item.text else ""
            cells.append(text + "$^{*}$" * item.star)
        body += ("\\midrule\n" if line.summary and not before else "") + " & ".join(cells)
        body += " \\\\\n"
        before = line.summary
    notes = "".join(f"\\par\\footnotesize {_latex(note)}\n" for note in table.notes)
    label = re.sub(r"[^A-Za-z0-9]+", "-", table.name)
    return (
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{_latex(table.title)}}}\n\\label{{tab:{label}}}\n"
        f"{_FITTED}\\begin{{tabular}}{{{'l' * len(grid.labels)}{'r' * len(grid.heads)}}}\n"
        f"\\toprule\n{spans}{head}\n\\midrule\n{body}\\bottomrule\n\\end{{tabular}}}}\n"
        f"{notes}\\end{{table}}\n"
    )


def to_html(table: Table) -> str:
    """Return a ``<figure>`` with the table; classes best, second, na, failed, missing, partial."""
    grid = _Grid.of(table)
    template = Environment(autoescape=True).from_string(_HTML)
    return template.render(
        name=table.name,
        title=table.title,
        blocks=grid.blocks,
        n_labels=len(grid.labels),
        heads=grid.labels + grid.heads,
        rows=grid.lines,
        notes=table.notes,
    )


def to_csv(table: Table) -> str:
    """Return all numbers unrounded, six columns for each column of the table."""
    parts = ("mean", "spread", "n", "status", "paper", "difference")
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [*table.heads, *(f"{column.name} {part}" for column in table.columns for part in parts)]
    )
    for row in table.rows:
        line: list[object] = list(row.labels)
        for cell in row.cells:
            paper = None if cell.printed is None else cell.printed.mean
            line += [cell.mean, cell.spread, cell.n, cell.status, paper, cell.difference]
        writer.writerow(["" if value is None else value for value in line])
    return file.getvalue()


def _decimals(row: Row, column: Column) -> int | None:
    return column.decimals if isinstance(row.decimals, str) else row.decimals


def _ours(cell: Cell, decimals: int | None, usual: int) -> _Item:
    if cell.mean is None:
        return _Item(_WORDS[cell.status], cell.status)
    text = number(cell.mean, decimals)
    if cell.spread is not None and (cell.spread or decimals != 0):
        text += f" ± {number(cell.spread, decimals)}"
    lost = [
        f"{count} {word}"
        for count, word in ((cell.measured.failed, "failed"), (cell.measured.missing, "missing"))
        if count
    ]
    if lost or cell.n != usual:
        text += f" ({', '.join([f'n={cell.n}', *lost])})"
    return _Item(text, cell.mark or ("partial" if lost else ""), cell.significant)


def _printed(cell: Cell) -> _Item:
    text = "" if cell.printed is None else cell.printed.text
    return _Item(text.replace("±", " ± ").replace("-", "−") if text not in ("", "--") else "")


def _markdown(text: str) -> str:
    return re.sub(r"([\\|*_<>`\[\]])", r"\\\1", text)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)
