"""A small set of two classes, in a file, and a model trained on it."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from timesliver.cli import app


@pytest.fixture(autouse=True)
def no_archive(monkeypatch):
    monkeypatch.delenv("TIMESLIVER_DATA", raising=False)
    monkeypatch.delenv("TIMESLIVER_DEBUG", raising=False)


class Result:
    def __init__(self, result):
        self.code, self.out, self.err = result.exit_code, result.stdout, result.stderr

    @property
    def json(self):
        return json.loads(self.out)


@pytest.fixture
def run():
    def run(*arguments):
        return Result(CliRunner().invoke(app, [str(argument) for argument in arguments]))

    return run


def write_wide(path, n_cases=24, seed=0, labelled=True):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_cases, 30))
    X[::2, 10:18] += 4
    lines = [",".join(f"t{i}" for i in range(30)) + (",label" if labelled else "")]
    for i, row in enumerate(X):
        cells = [f"{value:.4f}" for value in row]
        lines.append(",".join([*cells, "flat" if i % 2 else "bump"] if labelled else cells))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def write_csv():
    return write_wide


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    write_wide(folder / "train.csv")
    write_wide(folder / "test.csv", n_cases=8, seed=1)
    write_wide(folder / "unlabelled.csv", n_cases=3, seed=2, labelled=False)
    return folder


@pytest.fixture(scope="session")
def model(files):
    arguments = ["fit", files / "train.csv", "-o", files / "model.safetensors", "-q"]
    arguments += ["--epochs", 3, "--jobs", 1]
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.stderr
    return files / "model.safetensors"
