"""What the benchmark found: python -m benchmarks.report [--page FILE].

Writes benchmarks/REPORT.md from benchmarks/findings.md and the records in benchmarks/results, and
the figures to benchmarks/figures. Nothing is run; docs/benchmark.md says how records are made.
"""

import argparse
from pathlib import Path

from timesliver.bench.report import Outcome, write_page, write_report
from timesliver.bench.store import Store
from timesliver.bench.suites import load_suite

HERE = Path(__file__).parent
SUITES = (
    "localisation",
    "faithfulness",
    "archive",
    "ablations",
    "heartbeats",
    "panels",
    "axioms",
)


def outcomes() -> list[Outcome]:
    store = Store(HERE / "results")
    return [Outcome(load_suite(name), store.records(name)) for name in SUITES]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", type=Path, metavar="FILE", help="write one HTML page as well")
    arguments = parser.parse_args()
    recorded = outcomes()
    print(write_report(recorded, HERE / "REPORT.md", HERE / "findings.md", formats=("png",)))
    if arguments.page:
        print(write_page(recorded, arguments.page))


if __name__ == "__main__":
    main()
