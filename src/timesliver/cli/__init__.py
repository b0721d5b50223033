"""The command ``timesliver``: fit, predict, explain, report, data, demo."""

from timesliver.cli import data, demo, explain, fit, predict, report
from timesliver.cli.app import app

__all__ = ["app", "data", "demo", "explain", "fit", "main", "predict", "report"]


def main() -> None:
    """Run the command line; this is what the installed command ``timesliver`` calls."""
    app(prog_name="timesliver")
