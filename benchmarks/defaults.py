"""How the defaults were chosen: TIMESLIVER_DATA=... python -m benchmarks.defaults [--write].

Every candidate differs from the defaults in one setting. Each is cross-validated on the training
parts of the sets below; test parts are never read. Finished fits are kept in
benchmarks/defaults.jsonl, so a run can be stopped and taken up again; a record is known by its
settings, spelled as in the records of the benchmark. --write puts the table into
docs/settings.md.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from rich.progress import track
from sklearn.model_selection import StratifiedKFold

from timesliver import TimeSliverClassifier
from timesliver.bench.tasks.spelling import encoder
from timesliver.datasets import load

HERE = Path(__file__).parent
RECORDS = HERE / "defaults.jsonl"
PAGE = HERE.parent / "docs" / "settings.md"
START, END = "<!-- table: begin -->", "<!-- table: end -->"

SETS = [
    *("CBF", "ECG200", "GunPoint", "ItalyPowerDemand", "SyntheticControl"),
    *("ERing", "Libras", "RacketSports", "Epilepsy", "UWaveGestureLibrary"),
]
FOLDS = 2
CANDIDATES = {
    "the defaults": {},
    "sizes=(4, 7), the paper's": {"segment_sizes": [4, 7]},
    "sizes=(8, 24)": {"segment_sizes": [8, 24]},
    "n_bins=3": {"n_bins": 3},
    "n_bins=10": {"n_bins": 10},
    "n_bins=20, the paper's": {"n_bins": 20},
    "latent_dim=64": {"latent_dim": 64},
    "positional_encoding=False": {"positional_encoding": False},
    'channels="separate"': {"channels": "separate"},
    "learning_rate=3e-3": {"learning_rate": 3e-3},
    "max_epochs=200": {"max_epochs": 200},
}


def fits(sets: list[str], candidates: list[str]):
    for candidate in candidates:
        for name in sets:
            for fold in range(FOLDS):
                yield {"candidate": candidate, "set": name, "fold": fold}


def accuracy(fit: dict) -> dict:
    data = load(fit["set"], "train")
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    train, held_out = list(folds.split(data.X, data.y))[fit["fold"]]
    changed = encoder(CANDIDATES[fit["candidate"]])
    model = TimeSliverClassifier(changed, random_state=fit["fold"])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data.X[train], data.y[train])
    seconds = time.perf_counter() - start
    return fit | {
        "settings": CANDIDATES[fit["candidate"]],
        "accuracy": model.score(data.X[held_out], data.y[held_out]),
        "epochs": model.n_iter_,
        "seconds": round(seconds, 2),
    }


def table(records: list[dict]) -> str:
    """One row per candidate: mean accuracy on each set, their mean, and the time."""
    sets = [name for name in SETS if any(record["set"] == name for record in records)]
    lines = [["setting changed", "mean", *sets, "seconds"], ["---"] * (len(sets) + 3)]
    for candidate, settings in CANDIDATES.items():
        mine = [record for record in records if record["settings"] == settings]
        by_set = [[r["accuracy"] for r in mine if r["set"] == name] for name in sets]
        if not all(by_set):
            continue
        means = [float(np.mean(scores)) for scores in by_set]
        row = [candidate, f"**{np.mean(means):.3f}**", *(f"{mean:.2f}" for mean in means)]
        lines.append([*row, f"{sum(record['seconds'] for record in mine):.0f}"])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into the docs")
    parser.add_argument("--only", nargs="*", default=list(CANDIDATES), choices=list(CANDIDATES))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    records = (
        [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    )
    done = [(record["settings"], record["set"], record["fold"]) for record in records]
    for fit in track(list(fits(SETS, arguments.only)), description="Fitting"):
        if (CANDIDATES[fit["candidate"]], fit["set"], fit["fold"]) not in done:
            records.append(accuracy(fit))
            with RECORDS.open("a") as file:
                file.write(json.dumps(records[-1]) + "\n")
    print(table(records))
    if arguments.write:
        page = PAGE.read_text()
        before, after = page.split(START)[0], page.split(END)[1]
        PAGE.write_text(f"{before}{START}\n{table(records)}\n{END}{after}")


if __name__ == "__main__":
    main()
