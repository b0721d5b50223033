import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from bench.made_up import make_suite, run_all
from timesliver.bench.figures import build, draw
from timesliver.bench.figures.spec import FigureSpec, series_names
from timesliver.bench.tables.runs import Run
from timesliver.errors import InvalidInputError, InvalidParameterError

LABELS = {"random": "Random", "timesliver": "TimeSliver", "grad_cam": "Grad-CAM", "EEG": "EEG set"}
UNMASK = {
    "task": "unmask",
    "datasets": ["EEG", "FordA"],
    "models": ["CNN"],
    "explainers": ["random", "grad_cam/paper", "grad_cam/fair", "timesliver"],
    "seeds": [0, 1],
    "options": {"percent": [5, 20, 100], "backbone": ["CNN", "COLOR"]},
}
TRAIN = {
    "task": "train",
    "datasets": [f"set {i}" for i in range(8)],
    "models": ["A", "B", "C", "D"],
    "seeds": [0, 1],
}
PANEL = {
    "task": "panel",
    "datasets": ["LowVar", "FordA"],
    "models": ["CNN"],
    "explainers": ["a", "b"],
}
COST = {
    "task": "cost",
    "datasets": ["FreqSum"],
    "models": ["TimeSliver"],
    "options": {"n": [2, 50]},
}
SIZES = {
    "task": "cost",
    "datasets": ["FreqSum"],
    "models": ["TimeSliver"],
    "options": {"m": [[7], [4, 7]]},
}
OTHER = {"task": "cost", "datasets": ["FreqSum"], "models": ["Transformer"]}


def unmasked(job):
    options = dict(job.options)
    base = {"random": 0.1, "grad_cam": 0.3, "timesliver": 0.5}[job.explainer]
    higher = 0.1 * (options["backbone"] == "COLOR") + 0.02 * job.seed
    return {"accuracy": base + options["percent"] / 500 + higher}


def one(group, spec, perform, **options):
    groups = group if isinstance(group, list) else [group]
    suite = make_suite(groups, [], [spec], labels=LABELS)
    (drawing,) = build(suite, run_all(suite, perform), **options)
    assert isinstance(drawing.figure, Figure)
    assert not plt.get_fignums()
    return drawing.figure


def lines_of(ax):
    return {line.get_label(): line.get_xydata() for line in ax.lines}


class TestCurve:
    def test_means_by_hand(self):
        figure = one(UNMASK, {"name": "e", "kind": "curve"}, unmasked)
        assert [ax.get_title() for ax in figure.axes] == ["EEG set", "FordA"]
        lines = lines_of(figure.axes[0])
        assert set(lines) == {"Random", "Grad-CAM (paper)", "Grad-CAM (fair)", "TimeSliver"}
        # mean over two backbones (0, 0.1) and two seeds (0, 0.02)
        expected = [[5, 0.57], [20, 0.60], [100, 0.76]]
        assert lines["TimeSliver"] == pytest.approx(np.array(expected))
        assert figure.axes[0].get_xlabel() == "time points kept, u (%)"
        assert figure.axes[0].get_ylabel() == "accuracy after retraining, e(u)"

    def test_spread_is_over_trials(self):
        figure = one(UNMASK, {"name": "e", "kind": "curve"}, unmasked)
        band = figure.axes[0].collections[-1].get_paths()[0].vertices
        std = np.std([0, 0.02], ddof=1)
        assert band[:, 1].max() == pytest.approx(0.76 + std)
        assert band[:, 1].min() == pytest.approx(0.57 - std)

    def test_failed_points_leave_gaps(self):
        def perform(job):
            return "failed" if dict(job.options)["percent"] == 20 else unmasked(job)

        figure = one(UNMASK, {"name": "e", "kind": "curve"}, perform)
        assert lines_of(figure.axes[0])["Random"][:, 0].tolist() == [5, 100]


class TestLine:
    def perform(self, job):
        options = dict(job.options)
        n = options.get("n", 10) * len(options.get("m", (7,)))
        return {"gflops": n / 100, "seconds": n / 1000}

    def test_reference_is_a_level(self):
        spec = {
            "name": "cost",
            "kind": "line",
            "task": "cost",
            "x": "n",
            "value": "gflops",
            "log": "xy",
        }
        figure = one([COST, OTHER], {**spec, "x_label": "bins"}, self.perform)
        lines = lines_of(figure.axes[0])
        assert lines["TimeSliver"].tolist() == [[2, 0.02], [50, 0.5]]
        assert lines["Transformer"][:, 1].tolist() == [0.1, 0.1]
        assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
        assert figure.axes[0].get_xlabel() == "bins"
        assert figure.axes[0].get_xticks().tolist() == [2, 50]

    def test_runs_without_a_place_do_not_join_a_line(self):
        spec = {"name": "cost", "kind": "line", "task": "cost", "x": "n", "value": "gflops"}
        figure = one([COST, SIZES], spec, self.perform)
        assert [line.get_xdata().tolist() for line in figure.axes[0].lines] == [[2, 50]]

    def test_lists_count_as_how_many_they_are(self):
        spec = {
            "name": "cost",
            "kind": "line",
            "task": "cost",
            "x": "m",
            "values": {"G": "gflops", "s": "seconds"},
        }
        figure = one(SIZES, {**spec, "by": []}, self.perform)
        assert [ax.get_ylabel() for ax in figure.axes] == ["G", "s"]
        assert figure.axes[0].lines[0].get_xydata().tolist() == [[1, 0.1], [2, 0.2]]

    def test_lists_of_one_number_are_that_number(self):
        spec = {"name": "cost", "kind": "line", "task": "cost", "x": "m", "value": "gflops"}
        figure = one({**SIZES, "options": {"m": [[7], [4]]}}, spec, self.perform)
        assert figure.axes[0].lines[0].get_xdata().tolist() == [4, 7]

    def test_options_of_the_model(self):
        group = {
            "task": "localise",
            "datasets": ["LowVar"],
            "models": ["few", "many"],
            "explainers": ["a"],
        }
        spec = {
            "name": "n",
            "kind": "line",
            "task": "localise",
            "x": "model.n_bins",
            "value": "ap",
            "by": [],
        }
        suite = make_suite([group], [], [spec])
        suite.catalogue.models["few"]["options"]["n_bins"] = 3
        suite.catalogue.models["many"]["options"]["n_bins"] = 50
        records = run_all(suite, lambda job: {"ap": 0.5 if job.model == "few" else 0.9})
        (drawing,) = build(suite, records)
        assert drawing.figure.axes[0].lines[0].get_xydata().tolist() == [[3, 0.5], [50, 0.9]]
        assert not drawing.figure.legends


class TestBars:
    def test_lengths_and_words(self):
        def perform(job):
            if job.explainer == "random":
                return "na"
            return {"time_ap": 0.4 + 0.1 * job.seed}

        group = {**UNMASK, "task": "localise", "options": {}}
        spec = {
            "name": "bars",
            "kind": "bars",
            "task": "localise",
            "value": "time_ap",
            "y_label": "AP",
        }
        figure = one(group, spec, perform)
        ax = figure.axes[0]
        assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.45] * 3)
        assert [text.get_text() for text in ax.texts] == [" NA"]
        assert [t.get_text() for t in ax.get_yticklabels()][:2] == ["Random", "Grad-CAM (paper)"]
        assert ax.get_xlabel() == "AP"


class TestPanel:
    def perform(self, job):
        if job.dataset == "FordA" and job.explainer == "b":
            return "na"
        series = np.sin(np.arange(40) / 3).reshape(2, 20)
        return {
            "case": 4,
            "class": "up",
            "series": series.tolist() if job.dataset == "LowVar" else series[0].tolist(),
            "salient": None
            if job.dataset == "FordA"
            else (np.arange(40).reshape(2, 20) % 20 < 5).astype(int).tolist(),
            "positive": np.linspace(0, 1, 20).tolist(),
            "negative": None if job.explainer == "a" else [0.0] * 20,
        }

    def test_panels(self):
        figure = one(PANEL, {"name": "p", "kind": "panel", "title": "Truth"}, self.perform)
        assert len(figure.axes) == 4
        assert [ax.get_title() for ax in figure.axes[:2]] == ["LowVar", "FordA"]
        assert figure.axes[0].get_ylabel() == "a"
        assert len(figure.axes[0].lines) == 3  # two channels and the line of no evidence
        truth, edges, _ = figure.axes[0].patches[0].get_data()
        assert truth.tolist() == [1] * 5 + [0] * 15
        assert edges[[0, 5]].tolist() == [-0.5, 4.5]
        assert len(figure.axes[1].patches) == 2  # no truth: evidence for and against alone
        assert "case 4, class up" in [text.get_text() for text in figure.axes[0].texts]
        assert [text.get_text() for text in figure.axes[3].texts] == ["does not apply"]

    def test_nothing_done(self):
        with pytest.raises(InvalidInputError, match="no 'panel' job is done"):
            one(PANEL, {"name": "p", "kind": "panel"}, lambda job: "failed")


class TestRanks:
    def perform(self, job):
        order = "ABCD".index(job.model)
        if (job.model, job.dataset) == ("B", "set 0"):
            return "failed"
        if job.model == "D" and job.dataset != "set 1":
            return "na"
        return {"accuracy": 0.9 - 0.1 * order + 0.01 * job.seed}

    def test_incomplete_sets_and_methods_are_left_out(self):
        pytest.importorskip("aeon")
        figure = one(TRAIN, {"name": "r", "kind": "ranks", "title": "Ranks"}, self.perform)
        texts = {text.get_text() for text in figure.axes[0].texts}
        assert {"A", "B", "C", "1.0000", "2.0000", "3.0000"} <= texts
        assert "D" not in texts
        assert figure.get_suptitle() == "Ranks (7 data sets)"

    def test_too_few(self):
        group = {**TRAIN, "models": ["A", "B"]}
        with pytest.raises(InvalidInputError, match="three methods on the same two data sets"):
            one(group, {"name": "r", "kind": "ranks"}, self.perform)


class TestFiles:
    def test_all_formats(self, tmp_path):
        suite = make_suite([UNMASK], [], [{"name": "e", "kind": "curve"}], labels=LABELS)
        records = run_all(suite, unmasked)
        paths = draw(suite, records, tmp_path)
        assert [path.name for path in paths] == ["made-e.pdf", "made-e.svg", "made-e.png"]
        assert paths[0].read_bytes().startswith(b"%PDF")
        assert b"<svg" in paths[1].read_bytes()
        assert paths[2].read_bytes().startswith(b"\x89PNG")
        first = paths[1].read_bytes()
        assert draw(suite, records, tmp_path, formats=["svg"])[0].read_bytes() == first

    def test_one_figure_by_name(self):
        specs = [{"name": name, "kind": "curve"} for name in "ab"]
        suite = make_suite([UNMASK], [], specs)
        assert [d.name for d in build(suite, run_all(suite, unmasked), name="b")] == ["b"]


class TestMistakes:
    def test_nothing_to_draw(self):
        suite = make_suite([UNMASK], [], [{"name": "e", "kind": "curve"}])
        with pytest.raises(InvalidInputError, match="figure 'e' has nothing to draw"):
            build(suite, {})

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ({"name": "x", "kind": "pie"}, "kind='pie' is unknown"),
            ({"name": "x"}, "name and kind are needed"),
            ({"name": "x", "kind": "line", "task": "cost", "value": "a"}, "needs x"),
            ({"name": "x", "kind": "bars"}, "needs task, value"),
            ({"name": "x", "kind": "curve", "colour": "red"}, "colour unknown; a figure has best"),
            ({"name": "x", "kind": "curve", "log": "z"}, "log='z' is unknown"),
        ],
    )
    def test_spec(self, content, message):
        with pytest.raises(InvalidParameterError, match=message):
            FigureSpec.read(content)


def test_names_of_lines_tell_only_what_differs():
    def run(explainer, setting, model):
        return Run({"explainer": explainer, "setting": setting, "model": model}, "done", {})

    runs = [
        run("a", "fair", "CNN"),
        run("a", "", "CNN"),
        run("b", "paper", "CNN"),
        run("b", "paper", "LSTM"),
    ]
    names = series_names(runs, ["explainer", "setting", "model"], {"a": "Alpha"})
    assert list(names.values()) == ["Alpha (fair)", "Alpha", "b (CNN)", "b (LSTM)"]
