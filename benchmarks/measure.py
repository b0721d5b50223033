"""Data to time with, and the two clocks: seconds, taken in turns, and peak memory."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np

from timesliver import Segments
from timesliver.encoders import Shape
from timesliver.network import Batch, TimeSliverNetwork
from timesliver.series import as_series
from timesliver.symbols import SAX

K = TypeVar("K")


def sines(n_cases: int, n_channels: int, n_timepoints: int, seed: int = 0) -> np.ndarray:
    """Slow sines with faster ones added to a third of the channels, as in FreqSum."""
    rng = np.random.default_rng(seed)
    shape = (n_cases, n_channels, 1)
    t = np.linspace(0, 1, n_timepoints)
    slow = 0.5 * np.sin(2 * np.pi * (rng.integers(2, 6, shape) * t + rng.random(shape)))
    fast = np.sin(2 * np.pi * rng.integers(10, 51, shape) * t) * (rng.random(shape) < 1 / 3)
    return (slow + fast).astype(np.float32)


def noise(n_cases: int, n_channels: int, n_timepoints: int, seed: int = 0) -> np.ndarray:
    """White noise: the most symbols per segment, the worst case for explaining."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_cases, n_channels, n_timepoints)).astype(np.float32)


def problem(X: np.ndarray, n_bins: int) -> tuple[TimeSliverNetwork, Batch]:
    """An untrained network of one segment size, 7, with 36 latent columns, and its input."""
    series, symbolizer = as_series(X), SAX(n_bins).fit(X)
    encoder = Segments(sizes=(7,), symbols=symbolizer, positional_encoding=False)
    shape = Shape(series.n_channels, 2, ((series.n_channels, n_bins),))
    [(_, network)] = encoder.networks(shape, seed=0, can_choose=False)
    mean, scale = series.moments()
    view = encoder.view(series, [symbolizer], mean, scale)
    return network.eval(), Batch.of(view.values.numpy(), series, views=(view,))


def in_turns(functions: dict[K, Callable[[], object]], repeats: int) -> dict[K, list[float]]:
    """Seconds of each function, called in turns so that all see the same state of the machine."""
    seconds: dict[K, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def ratio(slow: list[float], fast: list[float]) -> float:
    """Median over the turns of how much longer one took than the other."""
    return median(a / b for a, b in zip(slow, fast, strict=True))


def milliseconds(seconds: list[float]) -> str:
    return f"{1000 * median(seconds):.1f}"


def peak_megabytes(function: Callable[[], object]) -> float:
    """Peak resident memory during a call, above what was resident before it (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    function()
    return (_status("VmHWM") - before) / 1024


def peak_of_process() -> float:
    """Peak resident memory of this process, in megabytes (Linux).

    What `resource` says would include the process that started this one.
    """
    return _status("VmHWM") / 1024


def _status(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"{key} is not in /proc/self/status")
