"""Train on a small generated set, explain unseen cases, write a page to look at.

Each case has two noisy channels; one of them holds, for a short while, a calm stretch at a low or
a high level. Channel and level make the four classes, so we know which moments decide.
"""

import io
import time
from pathlib import Path

import matplotlib as mpl
import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from sklearn.metrics import average_precision_score

from timesliver import Attribution, Batch, NetworkConfig, TimeSliverNetwork, explain
from timesliver.symbols import SAX

mpl.use("Agg")
from matplotlib import pyplot as plt

CLASSES = np.array(["first low", "first high", "second low", "second high"])
FOR, AGAINST, TRUTH = "#0072B2", "#D55E00", "#E0E0E0"  # safe for colour-blind eyes
REPORT = Path("demo-report.html")


def make_data(n_cases: int, rng: np.random.Generator):
    """Series (n_cases, 2, 120), labels, and the mask of the moments that decide."""
    X = rng.normal(size=(n_cases, 2, 120))
    salient = np.zeros(X.shape, dtype=bool)
    y = np.arange(n_cases) % 4
    for case, label in enumerate(y):
        start, length = rng.integers(5, 90), rng.integers(15, 25)
        salient[case, label // 2, start : start + length] = True
        level = (-1.5, 1.5)[label % 2]
        X[case, label // 2, start : start + length] = level + 0.1 * rng.normal(size=length)
    return X, y, salient


def train(network: TimeSliverNetwork, batch: Batch, y: np.ndarray, n_epochs: int = 40) -> None:
    labels = torch.from_numpy(y)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in track(range(n_epochs), description="Training"):
        for cases in torch.randperm(len(batch), generator=generator).split(64):
            loss = torch.nn.functional.cross_entropy(network(batch[cases]), labels[cases])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def draw(X: np.ndarray, y: np.ndarray, salient: np.ndarray, scores: Attribution) -> str:
    """One row per case: its two channels, what decides, and the evidence below each."""
    figure, axes = plt.subplots(4, 2, figsize=(11, 9), sharex=True, constrained_layout=True)
    for case, row in enumerate(axes):
        for channel, ax in enumerate(row):
            ax.fill_between(range(120), -4, 4, where=salient[case, channel], color=TRUTH, lw=0)
            ax.plot(X[case, channel], color="black", lw=0.8)
            ax.set(ylim=(-6.5, 4), yticks=[-3, 0, 3])
            largest = np.maximum(scores.positive_by_channel, scores.negative_by_channel)[case].max()
            unit = 1.4 / max(largest, 1e-9)
            positive = unit * scores.positive_by_channel[case, channel]
            negative = unit * scores.negative_by_channel[case, channel]
            ax.fill_between(range(120), -5, -5 + positive, color=FOR, lw=0)
            ax.fill_between(range(120), -5, -5 - negative, color=AGAINST, lw=0)
            name = "first" if channel == 0 else "second"
            predicted = CLASSES[scores.target[case]]
            ax.set_title(
                f"{name} channel  (true: {CLASSES[y[case]]}, predicted: {predicted})", size=9
            )
            ax.set_ylabel("value")
    for ax in axes[-1]:
        ax.set_xlabel("time point")
    text = io.StringIO()
    figure.savefig(text, format="svg")
    plt.close(figure)
    return text.getvalue()[text.getvalue().index("<svg") :]


def main() -> None:
    console = Console()
    start = time.perf_counter()
    rng = np.random.default_rng(0)
    X, y, _ = make_data(800, rng)
    X_test, y_test, salient = make_data(200, rng)

    symbolizer = SAX(n_bins=12)
    batch = Batch.prepare(X, symbolizer.fit_transform(X), symbolizer.n_symbols, separate=True)
    batch_test = Batch.prepare(
        X_test, symbolizer.transform(X_test), symbolizer.n_symbols, separate=True
    )
    network = TimeSliverNetwork(
        NetworkConfig(
            n_channels=2, n_symbols=12, n_classes=4, segment_sizes=(4, 7), channels="separate"
        )
    )
    train(network, batch, y)

    scores = explain(network, batch_test, classes=CLASSES)
    accuracy = (scores.target == y_test).mean()
    truth = salient.any(axis=1)
    pairs = zip(truth, scores.positive, strict=True)
    found = np.mean([average_precision_score(mask, score) for mask, score in pairs])
    chance = truth.mean()
    shares = explain(network, batch_test, method="additive")
    gap = np.abs(shares.net.sum(axis=1) + shares.bias - shares.logit).max()

    svg = draw(X_test[:4], y_test[:4], salient[:4], scores[:4])
    lines = [
        f"Accuracy on 200 unseen cases: {accuracy:.3f}",
        f"Average precision of the evidence on the planted moments: {found:.3f} "
        f"(chance {chance:.3f})",
        f"Largest gap between the additive shares and the logit: {gap:.1e}",
    ]
    REPORT.write_text(
        "<!doctype html><meta charset=utf-8><title>timesliver demo</title>"
        "<body style='font-family:sans-serif;max-width:70rem;margin:2rem auto'>"
        "<h1>Which moments decided?</h1>"
        f"<p>Grey: the planted stretch. <b style='color:{FOR}'>Blue</b> below a series: evidence "
        f"for the predicted class. <b style='color:{AGAINST}'>Orange</b>: evidence against it.</p>"
        + "".join(f"<p>{line}</p>" for line in lines)
        + svg
    )
    for line in lines:
        console.print(line)
    console.print(f"Took {time.perf_counter() - start:.0f} s. Open {REPORT.resolve()}")


if __name__ == "__main__":
    main()
