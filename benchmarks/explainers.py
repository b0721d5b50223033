"""What an explanation costs, by method: python -m benchmarks.explainers [--write].

Every method explains the same cases of its model; its time is divided by that of one forward pass
of the same model over the same cases, taken in turns. Each row runs in a process of its own, so
its peak memory is that of the whole process above what was there before explaining (training of
the explainer included). One thread. --write puts the table into benchmarks/README.md.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import numpy as np
import torch

from benchmarks import measure
from timesliver import Segments, TimeSliverClassifier, backbones
from timesliver.errors import NotApplicableError
from timesliver.explainers import create, find, names
from timesliver.symbols import SAX

PAGE = Path(__file__).parent / "README.md"
START, END = "<!-- explainers: begin -->", "<!-- explainers: end -->"
SHAPES = {"6 x 500": (6, 500), "40 x 501": (40, 501)}  # as FreqSum and the audio set
N_CASES = 4
SLOW = 0.02  # seconds per case; what is faster is measured more often


def timesliver() -> TimeSliverClassifier:
    return TimeSliverClassifier(
        Segments(sizes=(7,), symbols=SAX(15), positional_encoding=False, max_epochs=1)
    )


MODELS = {
    "timesliver": timesliver,
    "additive": timesliver,
    "color": lambda: backbones.COLOR(max_epochs=1, n_bins=15, latent_dim=4),
    "attention_tracing": lambda: backbones.Transformer(max_epochs=1),
    "grad_sam": lambda: backbones.Transformer(max_epochs=1),
}


def row(name: str, setting: str, shape: str) -> dict:
    """Measure one method in this process."""
    torch.set_num_threads(1)
    v, L = SHAPES[shape]
    if name == "limesegment":
        v = 1
    X = measure.sines(128, v, L)
    model = MODELS.get(name, lambda: backbones.CNN(max_epochs=1))()
    model.fit(X, np.arange(len(X)) % 2)
    cases = X[:N_CASES]
    model.logits(cases)
    explanations = []

    def explain() -> None:
        explainer = create(name, model, setting=setting, **_quick(name))
        explanations.append(explainer.fit(X).explain(cases))

    try:
        peak = measure.peak_megabytes(explain)
    except NotApplicableError as error:
        return {"na": str(error)}
    explainer = create(name, model, setting=setting, **_quick(name)).fit(X)
    [scores] = explanations
    repeats = 3 if scores.seconds.mean() > SLOW else 25
    seconds = measure.in_turns(
        {"forward": lambda: model.logits(cases), "explain": lambda: explainer.explain(cases)},
        repeats,
    )
    return {
        "ratio": measure.ratio(seconds["explain"], seconds["forward"]),
        "milliseconds": 1000 * median(seconds["explain"]) / N_CASES,
        "passes": float(scores.forward_passes.mean()),
        "peak": peak,
    }


def _quick(name: str) -> dict:
    """Keep the training of TimeX++ short: what it costs to explain does not depend on it."""
    return {"schedule": "quick"} if name == "timex_plus_plus" else {}


def table(shapes: list[str]) -> str:
    header = "| method | model |" + "".join(
        f" {shape}: time / forward pass | ms per case | forward passes | peak, MB |"
        for shape in shapes
    )
    lines = [header, "|---|---|" + "---|" * (4 * len(shapes))]
    for name in names():
        for setting in ("paper", "fair") if find(name).has_settings else ("",):
            cells = [_measured(name, setting or "fair", shape) for shape in shapes]
            kind = type(MODELS.get(name, lambda: backbones.CNN())()).__name__
            lines.append(f"| {name} {setting} | {kind} |" + "".join(cells))
            print(lines[-1], flush=True)
    return "\n".join(lines)


def _measured(name: str, setting: str, shape: str) -> str:
    command = [sys.executable, "-m", "benchmarks.explainers", "--row", name, setting, shape]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    cost = json.loads(done.stdout.splitlines()[-1])
    if "na" in cost:
        return " NA | | | |"
    return (
        f" {cost['ratio']:.1f} | {cost['milliseconds']:.1f} | {cost['passes']:.0f} "
        f"| {cost['peak']:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    parser.add_argument("--row", nargs=3, metavar=("NAME", "SETTING", "SHAPE"))
    parser.add_argument("--shapes", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    options = parser.parse_args()
    if options.row:
        print(json.dumps(row(*options.row)))
        return
    text = table(options.shapes)
    if options.write:
        page = PAGE.read_text()
        before, after = page.split(START)[0], page.split(END)[1]
        PAGE.write_text(f"{before}{START}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
