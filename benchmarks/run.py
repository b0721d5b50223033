"""All speed and memory figures: python -m benchmarks.run [--write].

The textbook is `timesliver.network.dense`, the model in dense tensors as the paper writes it.
Ratios are medians over turns taken in one run. --write puts the tables into benchmarks/README.md
and the curve into benchmarks/scaling.png.
"""

import argparse
import platform
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import matplotlib as mpl
import numpy as np
import torch

from benchmarks import measure, parameters
from benchmarks.measure import in_turns, milliseconds, problem, ratio
from timesliver.attribution import explain
from timesliver.attribution.shares import additive_shares
from timesliver.network import Batch, TimeSliverNetwork, dense
from timesliver.symbols import SAX

HERE = Path(__file__).parent
START, END = "<!-- tables: begin -->", "<!-- tables: end -->"


def table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def training() -> str:
    return table(
        [
            "training step (q=36, m=7)",
            "ours, ms",
            "textbook, ms",
            "textbook / ours",
            "textbook with Z kept in memory / ours",
            "textbook's encoder alone / ours",
        ],
        [training_row(64, 6, 500, 15, repeats=12), training_row(64, 64, 1000, 20, repeats=3)],
    )


def training_row(B: int, v: int, L: int, n: int, repeats: int) -> list[str]:
    network, batch = problem(measure.sines(B, v, L), n)
    [encoder] = network.parts[0].encoders
    x = batch.values[:, None]  # one stream
    with torch.no_grad():
        [kept] = dense.terms(network, batch)
    Z, weights = kept.Z.transpose(2, 3).flatten(1, 2), kept.weights  # (B, v*n, kappa)
    del kept
    y = torch.arange(B) % 2

    def encode():
        return dense.encode(encoder, None, x)  # (B, 1, kappa, q)

    def with_Z_kept():
        Q = encode()[:, 0]
        P = (Z @ Q / Q.shape[1]).unflatten(1, (v, n))
        return dense.head(weights, P) + network.bias

    def step(logits):
        network.zero_grad()
        torch.nn.functional.cross_entropy(logits(), y).backward()

    seconds = in_turns(
        {
            "ours": lambda: step(lambda: network(batch)),
            "textbook": lambda: step(lambda: dense.logits(network, batch)),
            "kept": lambda: step(with_Z_kept),
            "encoder": lambda: step(lambda: encode().mean((1, 2))[:, :2]),
        },
        repeats,
    )
    return [
        f"{B} cases, {v} channels, L={L}, n={n}",
        milliseconds(seconds["ours"]),
        milliseconds(seconds["textbook"]),
        f"**{ratio(seconds['textbook'], seconds['ours']):.1f}x**",
        f"{ratio(seconds['kept'], seconds['ours']):.1f}x",
        f"{ratio(seconds['encoder'], seconds['ours']):.1f}x",
    ]


def profile() -> str:
    """Where the time of our training step goes, at the first setting."""
    network, batch = problem(measure.sines(64, 6, 500), 15)
    y = torch.arange(64) % 2

    def step():
        network.zero_grad()
        torch.nn.functional.cross_entropy(network(batch), y).backward()

    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(20):
            step()
    operations = profiler.key_averages()
    total = sum(operation.self_cpu_time_total for operation in operations)
    longest = sorted(operations, key=lambda operation: -operation.self_cpu_time_total)[:9]
    rows = [[f"`{op.key}`", f"{100 * op.self_cpu_time_total / total:.0f} %"] for op in longest]
    return table(["operation (64 x 6 x 500, n=15)", "share of a training step"], rows)


def symbols() -> str:
    X = measure.sines(64, 6, 500)
    sizes = (2, 15, 70, 500)
    problems = {n: problem(X, n) for n in sizes}
    with torch.no_grad():  # one after the other: huge temporaries slow down who comes next
        ours = in_turns({n: lambda n=n: forward(*problems[n]) for n in sizes}, 40)
        theirs = in_turns({n: lambda n=n: dense.logits(*problems[n]) for n in sizes}, 3)
    rows = [
        [
            str(n),
            milliseconds(ours[n]),
            f"{ratio(ours[n], ours[2]):.2f}x",
            milliseconds(theirs[n]),
            f"{ratio(theirs[n], theirs[2]):.2f}x",
        ]
        for n in sizes
    ]
    return table(
        ["symbols n (64 x 6 x 500)", "ours, ms", "against n=2", "textbook, ms", "against n=2"], rows
    )


def forward(network: TimeSliverNetwork, batch: Batch) -> torch.Tensor:
    return network.infer(batch)


def attribution() -> str:
    return table(
        [
            "explaining (6 channels, L=500, n=15)",
            "phi+ and phi-, ms",
            "textbook, ms",
            "textbook / ours",
            "phi / forward",
            "additive / forward",
            "additive without its forward pass / forward",
        ],
        [
            attribution_row(f"{name}, batch {n_cases}", make(64, 6, 500)[:n_cases])
            for name, make in (("sines", measure.sines), ("noise", measure.noise))
            for n_cases in (64, 1)
        ],
    )


def attribution_row(name: str, X: np.ndarray) -> list[str]:
    network, batch = problem(X, 15)
    targets = torch.zeros(len(batch), 1, dtype=torch.long)
    with torch.no_grad():
        encoded = list(network.each(batch))
        for _, moments in encoded:
            moments.Qt  # noqa: B018  (worked out here, and kept)
        textbook = in_turns({"phi": lambda: dense.phi(network, batch, 0)}, 2)["phi"]
    seconds = in_turns(
        {
            "phi": lambda: explain(network, batch, 0, method="timesliver"),
            "additive": lambda: explain(network, batch, 0),
            "shares": lambda: additive_shares(
                network, batch, encoded, targets, False, "training", 14
            ),
            "forward": lambda: network.infer(batch),
        },
        25,
    )
    return [
        name,
        milliseconds(seconds["phi"]),
        milliseconds(textbook),
        f"**{median(textbook) / median(seconds['phi']):.0f}x**",
        f"{ratio(seconds['phi'], seconds['forward']):.1f}x",
        f"{ratio(seconds['additive'], seconds['forward']):.1f}x",
        f"{ratio(seconds['shares'], seconds['forward']):.1f}x",
    ]


def memory() -> str:
    peaks = {}
    for name in ("timesliver", "textbook", "explain"):
        command = [sys.executable, "-m", "benchmarks.memory", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks[name] = float(done.stdout)
    forward = table(
        ["forward over 32 x 64 x 3000, n=20", "ours, MB", "textbook, MB", "textbook / ours"],
        [
            [
                "peak above the inputs",
                f"{peaks['timesliver']:.0f}",
                f"{peaks['textbook']:.0f}",
                f"**{peaks['textbook'] / peaks['timesliver']:.0f}x**",
            ]
        ],
    )
    return (
        f"{forward}\n\nA fitted classifier that explains 10,000 cases of 6 channels and 500 points "
        f"needs {peaks['explain'] / 1000:.1f} GB for the whole process, data and result included."
    )


def scaling() -> str:
    """Forward time against length and against channels, drawn and as a table."""
    lengths, channels = (250, 500, 1000, 2000, 4000), (4, 8, 16, 32, 64, 128)
    problems = {("L", L): problem(measure.sines(32, 6, L), 15) for L in lengths}
    problems |= {("v", v): problem(measure.sines(32, v, 500), 15) for v in channels}
    seconds = in_turns({key: lambda key=key: forward(*problems[key]) for key in problems}, 9)
    times = {key: 1000 * median(values) for key, values in seconds.items()}
    draw_scaling(times)
    rows = [
        [
            f"{'time points' if axis == 'L' else 'channels'} = {size}",
            f"{time_ms:.1f}",
            f"{1000 * time_ms / size:.0f}",
        ]
        for (axis, size), time_ms in times.items()
    ]
    return table(
        ["32 cases, n=15 (6 channels, or L=500)", "ms", "us per time point or channel"], rows
    )


def draw_scaling(times: dict[tuple[str, int], float]) -> None:
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3), constrained_layout=True)
    for ax, axis, label in zip(axes, "Lv", ("time points L", "channels v"), strict=True):
        sizes = [size for kind, size in times if kind == axis]
        ax.plot(sizes, [times[axis, size] for size in sizes], "o-", color="#0072B2")
        ax.set(xlabel=label, ylabel="forward pass, ms", xlim=(0, None), ylim=(0, None))
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(HERE / "scaling.png", dpi=120)
    plt.close(figure)


def symbolizing() -> str:
    X = measure.sines(5000, 6, 500)
    start = time.perf_counter()
    SAX(20).fit_transform(X)
    return f"SAX of 5,000 x 6 x 500 values took {time.perf_counter() - start:.2f} s."


SECTIONS = {
    "Training": training,
    "Profile of a training step": profile,
    "Number of symbols": symbols,
    "Explaining": attribution,
    "Memory": memory,
    "Length and channels": scaling,
    "Symbols": symbolizing,
    "Parameters": parameters.table,
}


def machine() -> str:
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        model = next(
            (
                line.split(":")[1].strip()
                for line in info.read_text().splitlines()
                if line.startswith("model name")
            ),
            model,
        )
    return (
        f"Taken on {model}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"Python {platform.python_version()}."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="keep the tables in README.md")
    parser.add_argument("--only", choices=[*SECTIONS], help="one section")
    arguments = parser.parse_args()
    parts = [machine()]
    print(parts[0], flush=True)
    for title, section in SECTIONS.items():
        if arguments.only in (None, title):
            parts.append(f"## {title}\n\n{section()}")
            print("\n" + parts[-1], flush=True)
    if arguments.write:
        page = HERE / "README.md"
        text = page.read_text()
        before, after = text.split(START)[0], text.split(END)[1]
        page.write_text(before + START + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after)


if __name__ == "__main__":
    main()
