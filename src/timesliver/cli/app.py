"""The application that the commands join, and what happens when one of them fails.

What takes long to import (torch, scikit-learn, and all of this package that needs them) is
imported inside the commands, so that help and shell completion are quick.
"""

from __future__ import annotations

import functools
import inspect
import os
import warnings
from collections.abc import Callable
from typing import Annotated, Any

import typer

from timesliver.cli.output import error, note

__all__ = ["app", "bench_app", "command"]

INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="A data set is a file (.ts, .tsv, .txt, .arff, .npz, .npy, .csv), or the name of a "
    "known set ('timesliver data' lists them), also of one in the folder that the environment "
    "variable TIMESLIVER_DATA points to.\n\n"
    "Start with: timesliver demo\n\nEach command has its own help: timesliver fit --help",
)

bench_app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: timesliver bench status",
)
app.add_typer(
    bench_app,
    name="bench",
    help="Run the benchmark: the tables and figures of the paper, on one machine or many.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from timesliver import __version__

        typer.echo(f"timesliver {__version__}")
        raise typer.Exit


@app.callback()
def _timesliver(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Classify time series, and see which moments decided."""


def command(
    *examples: str, of: typer.Typer = app
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function a command; its help ends with the examples.

    A function that is a command has the parameters `quiet` and `debug`. Errors made on purpose,
    and those of the system, become one line and exit code 1; warnings become notes.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(**options: Any) -> None:
            debug = options["debug"] or os.environ.get("TIMESLIVER_DEBUG", "0") not in ("", "0")
            try:
                with warnings.catch_warnings():
                    _warnings_as_notes(options["quiet"])
                    function(**options)
            except KeyboardInterrupt:
                error("interrupted; nothing was written")
                raise typer.Exit(INTERRUPTED) from None
            except (typer.Exit, typer.Abort, typer.BadParameter, BrokenPipeError):
                raise
            except Exception as problem:
                if debug:
                    raise
                error(_in_one_line(problem))
                raise typer.Exit(1) from None

        epilog = "Examples:\n\n" + "\n\n".join(f"  {example}" for example in examples)
        paragraphs = (inspect.getdoc(function) or "").split("\n\n")
        text = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
        return of.command(help=text, epilog=epilog)(run)

    return register


def _warnings_as_notes(quiet: bool) -> None:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if not quiet:
            note(str(message))

    warnings.showwarning = show


def _in_one_line(problem: Exception) -> str:
    from timesliver.errors import TimeSliverError

    if isinstance(problem, TimeSliverError):
        return " ".join(str(problem).split())
    if isinstance(problem, OSError):
        where = f"{problem.filename}: " if problem.filename else ""
        return f"{where}{problem.strerror or problem}"
    if isinstance(problem, MemoryError) or "can't allocate memory" in str(problem):
        return "there is not enough memory for this; take fewer cases, or shorter series"
    return (
        f"this is a bug in timesliver ({type(problem).__name__}: "
        f"{' '.join(str(problem).split())}); run the command again with --debug to see where, "
        f"and report it"
    )
