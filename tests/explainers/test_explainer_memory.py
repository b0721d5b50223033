"""Explaining large series takes little memory."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np, torch
from benchmarks import measure
from timesliver.backbones import CNN
from timesliver.explainers import create

torch.set_num_threads(1)
X = measure.noise(8, 40, 501)
model = CNN(max_epochs=1, random_state=0).fit(X, np.arange(8) % 2)


def explain():
    create("gradient_shap", model).fit(X).explain(X[:2])
    for name in ("lime", "kernel_shap"):
        create(name, model, n_samples=300).explain(X[:2])


print(measure.peak_megabytes(explain))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from Linux's /proc")
def test_peak_on_40_channels_of_501_points():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert 5 < float(done.stdout) < 500
