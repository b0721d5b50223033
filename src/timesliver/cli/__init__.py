"""The command ``timesliver``: fit, predict, explain, report, data, bench, demo."""

from timesliver.cli import bench, bench_show, data, demo, explain, fit, predict, report
from timesliver.cli.app import app

__all__ = [
    "app",
    "bench",
    "bench_show",
    "data",
    "demo",
    "explain",
    "fit",
    "main",
    "predict",
    "report",
]


def main() -> None:
    """Run the command line; this is what the installed command ``timesliver`` calls."""
    app(prog_name="timesliver")
