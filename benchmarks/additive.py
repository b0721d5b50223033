"""How additive shares are refined by default: python -m benchmarks.additive [--write].

Networks of the paper's settings are trained as in the tables, and their shares compared with the
known truth on *validation* cases, for every way to centre, to choose the background and to smooth.
A figure is the mean over the classes of the mean average precision of the evidence for the
predicted class. --write puts the table into docs/settings.md.
"""

import argparse
import itertools
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from timesliver import Attribution, Segments, TimeSliverClassifier, datasets
from timesliver.symbols import SAX

DOCS = Path(__file__).parent.parent / "docs" / "settings.md"
START, END = "<!-- shares: begin -->", "<!-- shares: end -->"
SETS = {
    "LowVar": "lowvar",
    "SeqComb-UV": "seqcomb_uv",
    "SeqComb-MV": "seqcomb_mv",
    "FreqSum": "freqsum",
    "MITBIH-PVC": "MITBIH_PVC",
    "LowVar, longer segments": "lowvar",
}
OTHERS = {
    "MITBIH-PVC": Segments(
        symbols=SAX(10), sizes=(8, 32), positional_encoding=False, max_epochs=15, patience=30
    ),
    # the defaults but for what makes it fast: patterns of 10 to 19 points, segments of up to 16
    "LowVar, longer segments": Segments(
        channels="separate", positional_encoding=False, learning_rate=3e-3, max_epochs=20
    ),
}
MULTIPLES = (0, 1, 2, 4)  # of the longest segment, to smooth over
N_CASES = 300


def parts(name: str) -> tuple[datasets.Dataset, datasets.Dataset]:
    """Training and validation cases; of MIT-BIH, patients of the training part are held out."""
    load = SETS[name]
    train = datasets.load(load, "train", seed=0)
    if "validation" in datasets.info(load).splits:
        return train, datasets.load(load, "validation", seed=0)
    held_out = np.arange(len(train)) >= 0.8 * len(train)  # the cases of a patient follow each other
    return train[~held_out], train[held_out]


def by_class(why: Attribution, salient: np.ndarray) -> float:
    truth = salient.any(axis=1)
    scores = np.full(len(truth), np.nan)
    for case in np.flatnonzero(truth.any(axis=1)):
        scores[case] = average_precision_score(truth[case], why.positive[case])
    means = [np.nanmean(scores[why.target == c]) for c in np.unique(why.target[truth.any(axis=1)])]
    return float(np.mean(means))


def table(seeds: list[int]) -> str:
    ways = list(itertools.product((False, True), ("training", "series", None), MULTIPLES))
    figures: dict[tuple[object, ...], dict[str, list[float]]] = {way: {} for way in ways}
    for name, seed in itertools.product(SETS, seeds):
        train, validation = parts(name)
        encoder = OTHERS.get(name) or Segments.preset(name)
        clf = TimeSliverClassifier(encoder, random_state=seed, n_jobs=1)
        clf.fit(train.X, train.y, validation_data=(validation.X, validation.y))
        some = np.linspace(0, len(validation) - 1, min(N_CASES, len(validation))).astype(int)
        size = max(encoder.sizes)
        for way in ways:
            centred, background, smoothing = way
            why = clf.explain(
                validation.X[some],
                centred=centred,
                background=background,
                smoothing=smoothing * size,
            )
            figures[way].setdefault(name, []).append(by_class(why, validation.salient[some]))
        phi = clf.explain(validation.X[some], method="timesliver")
        print(name, seed, "phi+", round(by_class(phi, validation.salient[some]), 3), flush=True)
    columns = ["centred", "background", "smoothing, longest segments", *SETS, "mean"]
    lines = ["| " + " | ".join(columns) + " |"]
    lines.append("| --- " * (4 + len(SETS)) + "|")
    means = {way: np.mean([np.mean(v) for v in by_set.values()]) for way, by_set in figures.items()}
    for way in sorted(ways, key=lambda way: -means[way]):
        words = [str(part) for part in way]
        words += [f"{np.mean(figures[way][name]):.3f}" for name in SETS]
        lines.append("| " + " | ".join([*words, f"{means[way]:.3f}"]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    result = table(list(range(options.seeds)))
    print(result)
    if options.write:
        page = DOCS.read_text()
        before, after = page.split(START)[0], page.split(END)[1]
        DOCS.write_text(f"{before}{START}\n{result}\n{END}{after}")


if __name__ == "__main__":
    main()
