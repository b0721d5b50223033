"""Each command does what it says, for people and for scripts."""

import csv
import inspect

import numpy as np
import pytest

from timesliver import Attribution, TimeSliverClassifier, datasets
from timesliver.cli import app, demo
from timesliver.cli.fit import fit
from timesliver.cli.options import complete_data
from timesliver.cli.report import choose

FAST = ("--epochs", 2, "--jobs", 1)


class TestFit:
    def test_writes_a_model_that_loads(self, run, files, tmp_path):
        path = tmp_path / "m.safetensors"
        result = run("fit", files / "train.csv", "--test", files / "test.csv", "-o", path, *FAST)
        assert result.code == 0
        assert "test accuracy" in result.out
        assert "never used in training" in result.out
        loaded = TimeSliverClassifier.load(path)
        assert loaded.classes_.tolist() == ["bump", "flat"]
        assert [file.name for file in tmp_path.iterdir()] == ["m.safetensors"]

    def test_options_reach_the_classifier(self, run, files, tmp_path):
        path = tmp_path / "m.safetensors"
        options = "--bins 5 --latent 6 --segments 3,5 --channels separate --sparsity 0.01"
        options += " --patience 1 --lr 0.01 --batch-size 7 --seed 3 --symbolizer sfa"
        assert run("fit", files / "train.csv", "-o", path, *options.split(), *FAST).code == 0
        parameters = TimeSliverClassifier.load(path).get_params()
        assert parameters["n_bins"] == 5
        assert parameters["latent_dim"] == 6
        assert tuple(parameters["segment_sizes"]) == (3, 5)
        assert parameters["channels"] == "separate"
        assert parameters["sparsity"] == 0.01
        assert parameters["patience"] == 1
        assert parameters["learning_rate"] == 0.01
        assert parameters["batch_size"] == 7
        assert parameters["random_state"] == 3
        assert parameters["symbolizer"] == "sfa"
        assert parameters["max_epochs"] == 2

    def test_json(self, run, files, tmp_path):
        path = tmp_path / "m.safetensors"
        test = files / "test.csv"
        found = run("fit", files / "train.csv", "--test", test, "-o", path, "--json", *FAST).json
        assert found["cases"] == 24
        assert found["classes"] == ["bump", "flat"]
        assert found["epochs"] == 2
        assert 0 <= found["test_accuracy"] <= 1
        assert found["model"] == str(path)

    def test_quiet(self, run, files, tmp_path):
        path = tmp_path / "m.safetensors"
        result = run("fit", files / "train.csv", "-o", path, "-q", *FAST)
        assert (result.code, result.out, result.err) == (0, "", "")

    def test_the_same_seed_gives_the_same_model(self, run, files, tmp_path):
        found = {}
        for name, seed in (("a", 4), ("b", 4), ("c", 5)):
            path = tmp_path / f"{name}.safetensors"
            run("fit", files / "train.csv", "-o", path, "-q", "--seed", seed, *FAST)
            found[name] = run("predict", path, files / "test.csv", "--json").json["predictions"]
        assert found["a"] == found["b"] != found["c"]

    def test_ctrl_c_keeps_the_best_model_so_far(self, run, files, tmp_path, monkeypatch):
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

    def test_labels_that_training_never_saw(self, run, files, tmp_path):
        test = tmp_path / "other.csv"
        test.write_text((files / "test.csv").read_text().replace("flat", "new"))
        result = run(
            "fit", files / "train.csv", "--test", test, "-o", tmp_path / "m.safetensors", *FAST
        )
        assert result.code == 0
        assert "no training case has: new" in result.err

    def test_shown_defaults_are_those_of_the_classifier(self):
        """Help must not import torch, so it repeats the defaults."""
        names = {"bins": "n_bins", "latent": "latent_dim", "segments": "segment_sizes"}
        names |= {"epochs": "max_epochs", "lr": "learning_rate"}
        actual = inspect.signature(TimeSliverClassifier).parameters
        for name, parameter in inspect.signature(fit, eval_str=True).parameters.items():
            shown = parameter.annotation.__metadata__[0].show_default
            if isinstance(shown, str) and name != "jobs":
                default = actual[names.get(name, name)].default
                text = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
                assert shown == text, name


class TestPredict:
    def test_writes_a_table(self, run, files, model, tmp_path):
        result = run("predict", model, files / "test.csv", "-o", tmp_path / "p.csv")
        assert result.code == 0
        assert "accuracy" in result.out
        with (tmp_path / "p.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert list(rows[0]) == ["case", "predicted", "p(bump)", "p(flat)", "true"]
        assert [row["true"] for row in rows] == ["bump", "flat"] * 4
        loaded = TimeSliverClassifier.load(model)
        expected = loaded.predict_proba(datasets.read(files / "test.csv").X)
        found = np.array([[row["p(bump)"], row["p(flat)"]] for row in rows], dtype=float)
        np.testing.assert_allclose(found, expected, rtol=1e-4)

    def test_without_labels(self, run, files, model, tmp_path):
        result = run("predict", model, files / "unlabelled.csv", "-o", tmp_path / "p.csv")
        assert result.code == 0
        assert "accuracy" not in result.out
        assert (tmp_path / "p.csv").read_text().startswith("case,predicted,p(bump),p(flat)\n0,")

    def test_json_holds_everything(self, run, files, model):
        found = run("predict", model, files / "train.csv", "--json").json
        assert len(found["predictions"]) == found["cases"] == 24
        assert set(found["predictions"][0]["probabilities"]) == {"bump", "flat"}
        assert found["predictions"][1]["true"] == "flat"

    def test_shows_the_first_rows(self, run, files, model):
        result = run("predict", model, files / "train.csv")
        assert "... and 14 more cases" in result.out

    def test_labels_that_the_model_never_saw(self, run, files, model, tmp_path):
        text = (files / "test.csv").read_text().replace("bump", "up").replace("flat", "down")
        (tmp_path / "t.csv").write_text(text)
        result = run("predict", model, tmp_path / "t.csv")
        assert "accuracy 0.000" in result.out
        assert "no label of the data, like 'up', is a class of the model" in result.err

    def test_labels_of_another_type_are_compared_as_text(self, run, tmp_path, files):
        X = datasets.read(files / "train.csv").X
        np.savez(tmp_path / "n.npz", X=X, y=np.arange(24) % 2)
        path = tmp_path / "m.safetensors"
        assert run("fit", tmp_path / "n.npz", "-o", path, *FAST).code == 0
        text = (files / "train.csv").read_text().replace("bump", "0").replace("flat", "1")
        (tmp_path / "t.csv").write_text(text)
        numbers = run("predict", path, tmp_path / "n.npz", "--json").json["accuracy"]
        assert run("predict", path, tmp_path / "t.csv", "--json").json["accuracy"] == numbers


class TestExplain:
    def test_shows_intervals(self, run, files, model):
        result = run("explain", model, files / "test.csv")
        assert result.code == 0
        assert "time points" in result.out
        assert "... and 3 more cases" in result.out

    def test_json(self, run, files, model):
        found = run("explain", model, files / "test.csv", "--json", "--cases", "2,5-6").json
        assert [case["case"] for case in found["cases"]] == [2, 5, 6]
        interval = found["cases"][0]["intervals"][0]
        assert 0 <= interval["start"] < interval["stop"] <= 30
        assert interval["sign"] in ("for", "against")

    def test_npz(self, run, files, model, tmp_path):
        path = tmp_path / "s.npz"
        arguments = ("--target", "flat", "--method", "additive")
        assert run("explain", model, files / "test.csv", "-o", path, *arguments).code == 0
        scores = Attribution.load(path)
        assert len(scores) == 8
        assert (scores.classes[scores.target] == "flat").all()
        np.testing.assert_allclose(scores.net.sum(axis=1) + scores.bias, scores.logit, atol=1e-4)

    def test_csv(self, run, files, model, tmp_path):
        path = tmp_path / "s.csv"
        assert run("explain", model, files / "test.csv", "-o", path, "--cases", "4,1").code == 0
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 60
        assert [rows[0]["case"], rows[-1]["case"]] == ["4", "1"]
        X = datasets.read(files / "test.csv").X
        expected = TimeSliverClassifier.load(model).explain(X[[4, 1]])
        found = np.array([row["positive"] for row in rows], dtype=float).reshape(2, 30)
        np.testing.assert_allclose(found, expected.positive, rtol=1e-4, atol=1e-6)
        assert float(rows[0]["value"]) == pytest.approx(X[4, 0, 0], abs=1e-4)

    def test_csv_leaves_out_padding_and_shows_holes(self, run, model, tmp_path):
        (tmp_path / "u.ts").write_text("@data\n1,?,3,4,5\n1,2,3\n")
        assert run("explain", model, tmp_path / "u.ts", "-o", tmp_path / "s.csv").code == 0
        with (tmp_path / "s.csv").open() as file:
            rows = list(csv.DictReader(file))
        assert [row["case"] for row in rows] == ["0"] * 5 + ["1"] * 3
        assert rows[1]["value"] == ""

    def test_html(self, run, files, model, tmp_path):
        path = tmp_path / "s.html"
        result = run("explain", model, files / "test.csv", "-o", path, "--json")
        assert result.json == {"method": "timesliver", "cases": 8, "output": str(path)}
        assert "bump" in path.read_text(encoding="utf-8")


class TestReport:
    def test_writes_a_page(self, run, files, model, tmp_path):
        path = tmp_path / "r.html"
        result = run("report", model, files / "train.csv", "-o", path, "--cases", 5, "--json")
        assert result.code == 0
        found = result.json
        assert found["cases"] == 24
        assert len(found["shown"]) == 5
        assert "<html" in path.read_text(encoding="utf-8")

    def test_without_labels(self, run, files, model, tmp_path):
        result = run("report", model, files / "unlabelled.csv", "-o", tmp_path / "r.html")
        assert result.code == 0
        assert "3 cases are shown" in result.out

    def test_choice_of_cases(self):
        predicted = np.array(["a"] * 50 + ["b"] * 50)
        y = predicted.copy()
        y[[10, 20, 30, 40]] = "b"
        chosen = choose(y, predicted, 6)
        assert set(chosen) >= {10, 20, 30}
        assert len(set(chosen)) == 6
        assert (chosen >= 50).any()
        assert choose(y, predicted, 100).tolist() == list(range(100))


class TestData:
    def test_describes_a_file(self, run, files, tmp_path):
        path = tmp_path / "u.ts"
        path.write_text("@classLabel true a b\n@data\n1,?,3,-4:a\n1,2:b\n5,6:b\n")
        found = run("data", path, "--json").json
        assert found["cases"] == 3
        assert found["lengths"] == [2, 4]
        assert found["range"] == [-4, 6]
        assert found["missing"] == pytest.approx(1 / 8)
        assert found["classes"] == {"a": 1, "b": 2}
        shown = run("data", path).out
        assert "2 to 4 (unequal)" in shown
        assert "12.50%" in shown

    def test_unlabelled(self, run, files):
        assert "no labels" in run("data", files / "unlabelled.csv").out

    def test_lists_known_sets(self, run, tmp_path, monkeypatch):
        np.savez(tmp_path / "Wave.npz", X_train=np.ones((2, 1, 3)), y_train=["a", "b"])
        monkeypatch.setenv("TIMESLIVER_DATA", str(tmp_path))
        result = run("data")
        lines = [line.split() for line in result.out.splitlines()]
        assert ["Wave", "local"] in lines
        assert ["BasicMotions", "uea", "40", "40", "6", "100", "4"] in lines
        assert "TIMESLIVER_DATA" in result.err
        assert {"Wave", "BasicMotions"} < set(run("data", "--json").json["sets"])
        assert run("data", "wave").code == 0


def test_demo(run, tmp_path, monkeypatch):
    module = inspect.getmodule(demo.demo)
    monkeypatch.setattr(module, "N_TRAIN", 60)
    monkeypatch.setattr(module, "N_TEST", 12)
    monkeypatch.setattr(module, "EPOCHS", 2)
    result = run("demo", "-o", tmp_path / "r.html", "--json")
    assert result.code == 0
    found = result.json
    assert 0 <= found["average_precision"] <= 1
    assert found["chance"] == pytest.approx(0.0725, abs=0.02)
    assert found["output"] == str(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_completion(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    (tmp_path / "in.csv").touch()
    (tmp_path / "in.pdf").touch()
    np.savez(tmp_path / "InlineSkate.npz", X=np.ones((2, 3)))
    monkeypatch.setenv("TIMESLIVER_DATA", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert complete_data("in") == ["InlineSkate", "in.csv", "inner/"]
    assert complete_data(f"{tmp_path}/in.") == [f"{tmp_path}/in.csv"]


def test_every_command_has_help_with_examples(run):
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert sorted(names) == ["data", "demo", "explain", "fit", "predict", "report"]
    for name in names:
        result = run(name, "--help")
        assert result.code == 0
        assert "Examples" in result.out
        assert "--json" in result.out
        assert "--quiet" in result.out
