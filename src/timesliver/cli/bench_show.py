"""``timesliver bench table|figure|export``: what the records of a suite say."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from timesliver.cli.app import bench_app, command
from timesliver.cli.bench import StoreFolder, SuiteName, check_preset, find_suite
from timesliver.cli.options import Debug, Quiet, output_file
from timesliver.cli.output import Output

if TYPE_CHECKING:
    from timesliver.bench.store import Record
    from timesliver.bench.suites import Suite

__all__ = ["export", "figure", "table"]

PresetOption = Annotated[
    str,
    typer.Option(
        "--preset",
        help="Jobs of this preset, as they are configured now; 'all' takes every record.",
    ),
]


class Format(StrEnum):
    """How a table is written."""

    markdown = "markdown"
    csv = "csv"
    latex = "latex"
    html = "html"


@command(
    "timesliver bench table localisation",
    "timesliver bench table localisation --name time --format latex --out table.tex",
    of=bench_app,
)
def table(
    suite_name: SuiteName,
    name: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Only this table of the suite.", show_default=False),
    ] = None,
    form: Annotated[Format, typer.Option("--format", help="How it is written.")] = Format.markdown,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write it to a file.",
            callback=output_file(".md", ".csv", ".tex", ".html"),
            show_default=False,
        ),
    ] = None,
    preset: PresetOption = "quick",
    store: StoreFolder = Path("bench-results"),
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Show the tables of a suite, with what is done so far."""
    from timesliver.bench import tables
    from timesliver.io import replacing

    suite = _with_only(find_suite(suite_name), "table", name)
    chosen_preset = _preset(suite, preset)
    records = _records(suite, store)
    texts = [getattr(made, f"to_{form}")() for made in tables.build(suite, records, chosen_preset)]
    text = "\n\n".join(text.rstrip("\n") for text in texts) + "\n"
    output = Output(quiet=quiet)
    if out is None:
        output.say(text.rstrip("\n"))
        return
    with replacing(out) as draft:
        draft.write_text(text, encoding="utf-8")
    output.say(f"{len(texts)} tables are in {out}")


@command("timesliver bench figure faithfulness --out figures", of=bench_app)
def figure(
    suite_name: SuiteName,
    name: Annotated[
        str | None,
        typer.Option(metavar="FIG", help="Only this figure of the suite.", show_default=False),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the figures.", file_okay=False)
    ] = Path("bench-figures"),
    preset: PresetOption = "quick",
    store: StoreFolder = Path("bench-results"),
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Draw the figures of a suite, with what is done so far."""
    from timesliver.bench import figures

    suite = _with_only(find_suite(suite_name), "figure", name)
    chosen_preset = _preset(suite, preset)
    records = _records(suite, store)
    out.mkdir(parents=True, exist_ok=True)
    output = Output(quiet=quiet)
    for path in figures.draw(suite, records, out, chosen_preset):
        output.say(str(path))


@command("timesliver bench export archive --out exported", of=bench_app)
def export(
    suite_name: SuiteName,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder to write to.", file_okay=False)],
    preset: PresetOption = "quick",
    store: StoreFolder = Path("bench-results"),
    quiet: Quiet = False,
    debug: Debug = False,  # noqa: ARG001
) -> None:
    """Write predictions as the result files that tsml and aeon read."""
    from timesliver.bench.tables.export import write_results

    suite = find_suite(suite_name)
    chosen_preset = _preset(suite, preset)
    records = _records(suite, store)
    out.mkdir(parents=True, exist_ok=True)
    written = write_results(suite, records, out, chosen_preset)
    Output(quiet=quiet).say(f"{len(written)} files are in {out}")


def _with_only(suite: Suite, kind: str, name: str | None) -> Suite:
    """Return a suite with one of its tables or figures only, or as it is if none is named."""
    if name is None:
        return suite
    specs = {spec["name"]: spec for spec in getattr(suite, f"{kind}s")}
    if name not in specs:
        raise typer.BadParameter(
            f"the suite {suite.name} has no {kind} {name!r}, only {', '.join(specs) or 'none'}.",
            param_hint="--name",
        )
    only: dict[str, Any] = {f"{kind}s": [specs[name]]}
    return replace(suite, **only)


def _preset(suite: Suite, preset: str) -> str | None:
    if preset == "all":
        return None
    check_preset(suite, preset)
    return preset


def _records(suite: Suite, store: Path) -> dict[str, Record]:
    from timesliver.bench.store import Store
    from timesliver.errors import InvalidInputError

    records = Store(store).records(suite.name)
    if not records:
        raise InvalidInputError(
            f"{store} holds no records of the suite {suite.name}; "
            f"make some with: timesliver bench run {suite.name} --store {store}"
        )
    return records
