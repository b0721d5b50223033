"""Each command does what it says, for people and for scripts."""

import csv
import inspect

import numpy as np
import pytest

from timesliver import Attribution, Segments, TimeSliverClassifier, datasets
from timesliver.cli import app, demo
from timesliver.cli.models import settings
from timesliver.cli.options import complete_data

FAST = ("--epochs", 2, "--jobs", 1)


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
        written = np.array([[row["p(bump)"], row["p(flat)"]] for row in rows], dtype=float)
        np.testing.assert_allclose(written, expected, rtol=1e-4)

    def test_without_labels(self, run, files, model, tmp_path):
        result = run("predict", model, files / "unlabelled.csv", "-o", tmp_path / "p.csv")
        assert result.code == 0
        assert "accuracy" not in result.out
        assert (tmp_path / "p.csv").read_text().startswith("case,predicted,p(bump),p(flat)\n0,")

    def test_json_holds_everything(self, run, files, model):
        answer = run("predict", model, files / "train.csv", "--json").json
        assert len(answer["predictions"]) == answer["cases"] == 24
        assert set(answer["predictions"][0]["probabilities"]) == {"bump", "flat"}
        assert answer["predictions"][1]["true"] == "flat"

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
        answer = run("explain", model, files / "test.csv", "--json", "--cases", "2,5-6").json
        assert [case["case"] for case in answer["cases"]] == [2, 5, 6]
        interval = answer["cases"][0]["intervals"][0]
        assert 0 <= interval["start"] < interval["stop"] <= 30
        assert interval["sign"] in ("for", "against")
        case, X = answer["cases"][1], datasets.read(files / "test.csv").X
        why = TimeSliverClassifier.load(model).explain(X[[5]])
        assert case["logit"] == pytest.approx(why.logit[0])
        assert case["base"] == pytest.approx(why.base[0])

    def test_npz(self, run, files, model, tmp_path):
        path = tmp_path / "s.npz"
        arguments = ("-o", path, "--target", "flat")
        assert run("explain", model, files / "test.csv", *arguments).code == 0
        scores = Attribution.load(path)
        assert len(scores) == 8
        assert (scores.classes[scores.target] == "flat").all()
        np.testing.assert_allclose(scores.net.sum(axis=1) + scores.base, scores.logit, atol=1e-4)

    def test_files_number_cases_as_the_set_does(self, run, files, model, tmp_path):
        path = tmp_path / "s.npz"
        run("explain", model, files / "test.csv", "-o", path, "--cases", "4,1")
        assert Attribution.load(path).case.tolist() == [4, 1]

    def test_the_papers_scores(self, run, files, model, tmp_path):
        path = tmp_path / "s.npz"
        run("explain", model, files / "test.csv", "-o", path, "--method", "timesliver")
        assert Attribution.load(path).method == "timesliver"

    def test_csv(self, run, files, model, tmp_path):
        path = tmp_path / "s.csv"
        assert run("explain", model, files / "test.csv", "-o", path, "--cases", "4,1").code == 0
        with path.open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == 60
        assert [rows[0]["case"], rows[-1]["case"]] == ["4", "1"]
        X = datasets.read(files / "test.csv").X
        expected = TimeSliverClassifier.load(model).explain(X[[4, 1]])
        written = np.array([row["positive"] for row in rows], dtype=float).reshape(2, 30)
        np.testing.assert_allclose(written, expected.positive, rtol=1e-4, atol=1e-6)
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
        assert result.json == {"method": "additive", "cases": 8, "output": str(path)}
        assert "bump" in path.read_text(encoding="utf-8")


class TestReport:
    def test_writes_a_page(self, run, files, model, tmp_path):
        path = tmp_path / "r.html"
        result = run("report", model, files / "train.csv", "-o", path, "--cases", 5, "--json")
        assert result.code == 0
        answer = result.json
        assert answer["cases"] == 24
        assert len(answer["shown"]) == 5
        assert "<html" in path.read_text(encoding="utf-8")

    def test_without_labels(self, run, files, model, tmp_path):
        result = run("report", model, files / "unlabelled.csv", "-o", tmp_path / "r.html")
        assert result.code == 0
        assert "3 cases are shown" in result.out

    def test_mistakes_are_shown_first(self, run, files, model, tmp_path):
        text = (files / "train.csv").read_text().replace("bump", "flat")
        (tmp_path / "t.csv").write_text(text)
        arguments = ("-o", tmp_path / "r.html", "--cases", 6, "--json")
        assert len(run("report", model, tmp_path / "t.csv", *arguments).json["shown"]) == 6

    def test_what_is_said_of_the_logit(self, run, files, model, tmp_path):
        path = tmp_path / "r.html"
        run("report", model, files / "test.csv", "-o", path)
        assert "Base + evidence = logit." in path.read_text(encoding="utf-8")
        run("report", model, files / "test.csv", "-o", path, "--method", "timesliver")
        page = path.read_text(encoding="utf-8")
        assert "Base + evidence = logit." not in page
        assert "Scores have no unit." in page

    def test_settings_can_be_read(self, model):
        shown = settings(TimeSliverClassifier.load(model))
        assert shown["encoder"] == "segments"
        assert shown["symbols"] == "sax"
        assert (shown["sizes"], shown["max_epochs"], shown["random_state"]) == ((4, 16), 3, 0)
        assert {"device", "n_jobs", "verbose", "callbacks"}.isdisjoint(shown)

    def test_settings_of_several_encoders(self, files):
        data = datasets.read(files / "train.csv")
        pair = [Segments(sizes=(m,), max_epochs=1) for m in (3, 5)]
        shown = settings(TimeSliverClassifier(pair, n_jobs=1).fit(data.X, data.y))
        assert (shown["1: sizes"], shown["2: sizes"]) == ((3,), (5,))


class TestData:
    def test_describes_a_file(self, run, files, tmp_path):
        path = tmp_path / "u.ts"
        path.write_text("@classLabel true a b\n@data\n1,?,3,-4:a\n1,2:b\n5,6:b\n")
        answer = run("data", path, "--json").json
        assert answer["cases"] == 3
        assert answer["lengths"] == [2, 4]
        assert answer["range"] == [-4, 6]
        assert answer["missing"] == pytest.approx(1 / 8)
        assert answer["classes"] == {"a": 1, "b": 2}
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
    result = run("demo", "-o", tmp_path / "r.html", "--json")
    assert result.code == 0
    answer = result.json
    assert 0 <= answer["average_precision"] <= 1
    assert answer["chance"] == pytest.approx(0.0725, abs=0.02)
    assert answer["output"] == str(tmp_path / "r.html")
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
