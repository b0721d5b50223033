"""An encoder and symbols that another package brings do all that ours do, without a line more."""

import csv

import numpy as np
import pytest

from timesliver import Attribution, TimeSliverClassifier, datasets, encoders, symbols

MODULE = """
import numpy as np
from timesliver.encoders import FixedEncoder
from timesliver.symbols import Symbolizer


class Pairs(FixedEncoder):
    "Sum and difference of successive points."
    name = "toy"
    size = 2

    def __init__(self, symbols="toysym", gain=1.0):
        super().__init__(symbols)
        self.gain = gain

    def rows(self, x):
        return self.gain * (x[:, 1:] + x[:, :-1]).abs() + (x[:, 1:] - x[:, :-1]).abs()


class Sign(Symbolizer):
    "Below zero or not."
    name = "toysym"
    n_symbols = 2

    def _transform(self, series):
        return np.where(series.values < 0, 1, 2)
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package as pip leaves it: a module, and a folder that says what is in it."""
    (tmp_path / "toy_parts.py").write_text(MODULE)
    info = tmp_path / "toy_parts-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy_parts\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[timesliver.encoders]\ntoy = toy_parts:Pairs\n"
        "[timesliver.symbols]\ntoysym = toy_parts:Sign\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.fixture
def data(files):
    return datasets.read(files / "train.csv")


def test_from_python(installed, data, tmp_path):
    assert encoders.names()[-1] == "toy"
    assert symbols.names()[-1] == "toysym"
    model = TimeSliverClassifier(encoder="toy", n_jobs=1, random_state=0).fit(data.X, data.y)
    assert model.score(data.X, data.y) > 0.9
    model.save(tmp_path / "toy.safetensors")
    loaded = TimeSliverClassifier.load(tmp_path / "toy.safetensors")
    np.testing.assert_array_equal(loaded.logits(data.X), model.logits(data.X))
    why = loaded.explain(data.X)
    np.testing.assert_allclose(why.base + why.net.sum(axis=1), why.logit, atol=1e-4)
    bump = why.net[why.target == 0]
    assert bump[:, 10:18].mean() > bump[:, 20:].mean()
    scores = loaded.explain(data.X, method="timesliver")
    assert scores.positive_by_symbol.shape == (24, 1, 2)
    why.to_html(tmp_path / "toy.html", y=data.y)
    assert "Base + evidence = logit." in (tmp_path / "toy.html").read_text("utf-8")


def test_from_the_shell(installed, run, files, data, tmp_path):
    path = tmp_path / "toy.safetensors"
    options = ("--encoder", "toy", "--symbols", "toysym", "--set", "gain=2", "--jobs", 1)
    done = run("fit", files / "train.csv", "--test", files / "test.csv", "-o", path, *options)
    assert done.code == 0
    assert "leave-one-out" in done.out
    assert "epochs" not in done.out
    loaded = TimeSliverClassifier.load(path)
    assert (loaded.encoder.name, loaded.encoder.gain) == ("toy", 2)
    predicted = run("predict", path, files / "test.csv", "--json").json
    assert predicted["accuracy"] == 1
    assert run("explain", path, files / "test.csv", "-o", tmp_path / "s.npz").code == 0
    assert len(Attribution.load(tmp_path / "s.npz")) == 8
    arguments = ("-o", tmp_path / "s.csv", "--method", "timesliver")
    assert run("explain", path, files / "test.csv", *arguments).code == 0
    with (tmp_path / "s.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 8 * 30
    assert run("report", path, files / "test.csv", "-o", tmp_path / "r.html").code == 0
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "<td>toy</td>" in page
    assert "Base + evidence = logit." in page


def test_weights_in_closed_form_have_no_epochs(installed, run, files, tmp_path):
    arguments = ("-o", tmp_path / "m.safetensors", "--encoder", "toy", "--json", "--jobs", 1)
    learned = run("fit", files / "train.csv", *arguments).json
    assert learned["epochs"] is None
    assert learned["validation"] == "leave-one-out"
    assert learned["validation_accuracy"] > 0.9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--latent 5", "--latent is a setting of the encoder 'segments', but --encoder says 'toy'"),
        ("--epochs 5", "which has the parameters gain, symbols; give these by --set"),
        ("--preset LowVar", "--preset is a setting of the encoder 'segments', but --encoder says"),
        ("--bins 5", "--bins cannot say how many symbols 'toysym' has; leave it out"),
        (
            "--set depth=1",
            "'depth' is not a parameter of the encoder 'toy'; its parameters are gain",
        ),
    ],
)
def test_what_it_does_not_know(installed, run, files, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = run("fit", files / "train.csv", "--encoder", "toy", *options.split())
    assert (done.code, done.out) == (1, "")
    assert message in done.err
    assert done.err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
