"""``timesliver fit``: its options reach the model, and what it says of the model is right."""

import inspect

import numpy as np
import pytest

from timesliver import Segments, TimeSliverClassifier
from timesliver.cli.encoder import complete_encoder, complete_symbols
from timesliver.cli.fit import fit
from timesliver.cli.fitted import validation_accuracy

FAST = ("--epochs", 2, "--jobs", 1)


def test_writes_a_model_that_loads(run, files, tmp_path):
    path = tmp_path / "m.safetensors"
    result = run("fit", files / "train.csv", "--test", files / "test.csv", "-o", path, *FAST)
    assert result.code == 0
    assert "test accuracy" in result.out
    assert "never used in training" in result.out
    loaded = TimeSliverClassifier.load(path)
    assert loaded.classes_.tolist() == ["bump", "flat"]
    assert [file.name for file in tmp_path.iterdir()] == ["m.safetensors"]


def test_options_reach_the_encoder(run, files, tmp_path):
    path = tmp_path / "m.safetensors"
    options = "--bins 16 --latent 6 --segments 3,0.25 --channels separate --sparsity 0.01"
    options += " --patience 1 --lr 0.01 --batch-size 7 --seed 3 --symbols sfa,clock"
    options += " --set depth=1 --set window=bell --estimators 2"
    assert run("fit", files / "train.csv", "-o", path, *options.split(), *FAST).code == 0
    loaded = TimeSliverClassifier.load(path)
    assert (loaded.n_estimators, loaded.random_state) == (2, 3)
    encoder = loaded.encoder
    assert isinstance(encoder, Segments)
    assert [one.n_symbols for one in encoder.symbolizers()] == [16, 16]
    assert [one.name for one in encoder.symbolizers()] == ["sfa", "clock"]
    assert encoder.sizes == (3, 0.25)
    assert loaded.encoders_[0].sizes == (3, 8)
    chosen = encoder.get_params(deep=False)
    expected = {
        "latent_dim": 6, "channels": "separate", "sparsity": 0.01, "patience": 1,
        "learning_rate": 0.01, "batch_size": 7, "max_epochs": 2, "depth": 1, "window": "bell",
    }  # fmt: skip
    assert {name: chosen[name] for name in expected} == expected


def test_nothing_said_is_the_default(run, files, tmp_path):
    path = tmp_path / "m.safetensors"
    assert run("fit", files / "train.csv", "-o", path, "--jobs", 1).code == 0
    assert TimeSliverClassifier.load(path).encoder == "auto"


@pytest.mark.parametrize(
    ("options", "symbols"),
    [
        ("--symbols sax", "'sax'"),
        ("--bins 6", "SAX(n_bins=6)"),
        ("--set symbols__n_bins=7", "SAX(n_bins=7)"),
        ("--set symbols__window=4 --set symbols=sfa", "SFA(alphabet_size=2, window=4)"),
        ("--symbols one", "'one'"),
        ("--symbols sax,clock", "['sax', 'clock']"),
        ("--preset LowVar", "SAX()"),
        ("--preset LowVar --bins 8", "SAX(n_bins=8)"),
    ],
)
def test_symbols(run, files, tmp_path, options, symbols):
    before = repr(Segments().symbols)
    path = tmp_path / "m.safetensors"
    done = run("fit", files / "train.csv", "-o", path, "-q", *options.split(), *FAST)
    assert (done.code, done.err) == (0, "")
    assert repr(TimeSliverClassifier.load(path).encoder.symbols) == symbols
    assert repr(Segments().symbols) == before


def test_presets_can_be_changed(run, files, tmp_path):
    path = tmp_path / "m.safetensors"
    options = "--preset LowVar --latent 5 --set head_rate=2 --set pooling=(1,1)"
    assert run("fit", files / "train.csv", "-o", path, *options.split(), *FAST).code == 0
    encoder = TimeSliverClassifier.load(path).encoder
    assert (encoder.sizes, encoder.latent_dim, encoder.head_rate) == ((4,), 5, 2)


def test_shell_completion_knows_the_names():
    assert complete_encoder("s") == ["segments"]
    assert complete_symbols("s") == ["sax", "sfa"]
    assert complete_symbols("clock,on") == ["clock,one"]


def test_several_networks(run, write_csv, tmp_path):
    train = write_csv(tmp_path / "more.csv", n_cases=120)
    path = tmp_path / "m.safetensors"
    arguments = ("fit", train, "-o", path, "--estimators", 3, *FAST)
    result = run(*arguments)
    assert "6  (3 networks)" in result.out
    assert "(cases set aside from training; mean of 3 networks)" in result.out
    learned = run(*arguments, "--json").json
    assert (learned["n_networks"], learned["epochs"]) == (3, 6)
    assert learned["validation"] == "set aside"
    model = TimeSliverClassifier.load(path)
    kept = [
        [r["validation_accuracy"] for r in model.history_ if r["member"] == i and r["best"]][-1]
        for i in range(3)
    ]
    assert learned["validation_accuracy"] == validation_accuracy(model) == np.mean(kept)


def test_json(run, files, tmp_path):
    path = tmp_path / "m.safetensors"
    test = files / "test.csv"
    learned = run("fit", files / "train.csv", "--test", test, "-o", path, "--json", *FAST).json
    assert learned["cases"] == 24
    assert learned["classes"] == ["bump", "flat"]
    assert learned["epochs"] == 2
    assert learned["validation"] == "none"
    assert learned["validation_accuracy"] is None
    assert 0 <= learned["test_accuracy"] <= 1
    assert learned["test_cases"] == 8
    assert learned["model"] == str(path)


def test_quiet(run, files, tmp_path):
    path = tmp_path / "m.safetensors"
    result = run("fit", files / "train.csv", "-o", path, "-q", *FAST)
    assert (result.code, result.out, result.err) == (0, "", "")


def test_the_same_seed_gives_the_same_model(run, files, tmp_path):
    predictions = {}
    for name, seed in (("a", 4), ("b", 4), ("c", 5)):
        path = tmp_path / f"{name}.safetensors"
        run("fit", files / "train.csv", "-o", path, "-q", "--seed", seed, *FAST)
        predictions[name] = run("predict", path, files / "test.csv", "--json").json["predictions"]
    assert predictions["a"] == predictions["b"] != predictions["c"]


def test_ctrl_c_keeps_the_best_model_so_far(run, files, tmp_path, monkeypatch):
    def interrupt(self, record):
        if record["epoch"] == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr("timesliver.training.callbacks.Progress.on_epoch_end", interrupt)
    path = tmp_path / "m.safetensors"
    result = run("fit", files / "train.csv", "-o", path, "--epochs", 50, "--json")
    assert result.code == 130
    assert "interrupted after 2 epochs" in result.err
    assert result.json["epochs"] == 2
    assert TimeSliverClassifier.load(path).n_iter_ == 2


def test_labels_that_training_never_saw(run, files, tmp_path):
    test = tmp_path / "other.csv"
    test.write_text((files / "test.csv").read_text().replace("flat", "new"))
    result = run(
        "fit", files / "train.csv", "--test", test, "-o", tmp_path / "m.safetensors", *FAST
    )
    assert result.code == 0
    assert "no training case has: new" in result.err


def test_shown_defaults_are_those_of_the_encoder():
    """Help must not import torch, so it repeats the defaults."""
    names = {"bins": "symbols__n_bins", "latent": "latent_dim", "segments": "sizes"}
    names |= {"epochs": "max_epochs", "lr": "learning_rate"}
    actual = Segments().get_params()
    actual["symbols__n_bins"] = Segments().symbolizers()[0].n_bins
    checked = []
    for name, parameter in inspect.signature(fit, eval_str=True).parameters.items():
        shown = parameter.annotation.__metadata__[0].show_default
        if isinstance(shown, str) and name != "jobs":
            default = actual[names.get(name, name)]
            text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
            assert shown == text, name
            checked.append(name)
    assert len(checked) == 10
