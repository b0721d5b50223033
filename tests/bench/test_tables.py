import csv
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import ttest_rel

from bench.made_up import make_suite, run_all
from timesliver.bench import tables
from timesliver.bench.paper import Printed
from timesliver.bench.tables import Cell, Column, Row, Table, appendix, build, write_results
from timesliver.bench.tables.formats import number
from timesliver.bench.tables.runs import Measured, Run, collect, select
from timesliver.bench.tables.significance import compare, over_sets
from timesliver.bench.tables.spec import Spec
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.metrics import average_ranks, wilcoxon_holm

LOCALISE = {
    "task": "localise",
    "datasets": ["LowVar", "FreqSum"],
    "models": ["CNN"],
    "explainers": ["grad_cam/fair", "random", "lime"],
    "seeds": [0, 1, 2],
}
TIME = {
    "name": "time",
    "title": "Average precision",
    "task": "localise",
    "rows": ["explainer", "setting", "model"],
    "columns": "dataset",
    "value": "time_ap",
}
LABELS = {"grad_cam": "Grad-CAM", "random": "Random", "lime": "LIME"}
BASE = {"grad_cam": 0.7, "random": 0.1, "lime": 0.5}


def good(job):
    return {"time_ap": BASE[job.explainer] + 0.01 * job.seed}


def only(suite, records, **options):
    (table,) = build(suite, records, **options)
    return table


def cell_of(table, row, column):
    names = [column.name for column in table.columns]
    (found,) = [r for r in table.rows if r.labels[0] == row]
    return found.cells[names.index(column)]


class TestRuns:
    def test_missing_jobs_only_with_a_preset(self):
        suite = make_suite([LOCALISE])
        records = run_all(suite, lambda job: good(job) if job.seed else None)
        assert len(collect(suite, records)) == 12
        runs = select(collect(suite, records, "quick"), "localise")
        assert [run.status for run in runs].count("missing") == 6
        assert len(runs) == 18
        assert len(collect(suite, records.values(), "quick")) == 18 + 6  # and the trainings

    def test_records_of_other_configurations_are_left_out(self):
        suite = make_suite([LOCALISE])
        records = run_all(suite, good)
        suite.catalogue.models["CNN"]["options"]["width"] = 3
        assert collect(suite, records) == []

    def test_fields(self):
        config = '{"model":{"options":{"n_bins":20,"segment_sizes":[4,7]}}}'
        job = {"task": "cost", "options": {"percent": 5}, "config": config, "seed": 2}
        run = Run(job, "done", {"a": None, "b": float("nan"), "c": 3})
        assert run.get("percent") == 5
        assert run.get("model.segment_sizes") == (4, 7)
        assert run.get("nothing") == run.get("model.nothing") == ""
        assert run.trial == (0, 2)
        assert (run.number("a"), run.number("b"), run.number("c")) == (None, None, 3.0)
        with pytest.raises(InvalidInputError, match=r"no result 'd'; it has \['a', 'b', 'c'\]"):
            run.number("d")

    def test_select(self):
        runs = collect(make_suite([LOCALISE]), {}, "quick")
        assert len(select(runs, "localise", {"dataset": "LowVar"})) == 9
        assert len(select(runs, "localise", {"explainer": ["lime", "random"]})) == 12
        assert len(select(runs, "localise", {"seed": 0}, {"explainer": "lime"})) == 4
        assert len(select(runs, "train")) == 6  # each model they need, once
        assert select(runs, "panel") == []

    def test_a_trial_with_a_failure_is_left_out(self):
        def run(seed, model, status="done", value=1.0):
            return Run({"seed": seed, "model": model}, status, {"a": value})

        runs = [
            run(0, "x", value=1.0),
            run(0, "y", value=3.0),
            run(1, "x", value=9.0),
            run(1, "y", "failed"),
            run(2, "x", "missing"),
            run(3, "x", "na"),
            run(3, "y", value=5.0),
            run(4, "x", value=None),
        ]
        measured = Measured.of(runs, "a", 10.0, None)
        assert measured.values == {(0, 0): 20.0, (0, 3): 50.0}
        assert (measured.failed, measured.missing, measured.na) == (1, 1, 2)


class TestCells:
    def test_mean_spread_and_difference(self):
        suite = make_suite([LOCALISE], [{**TIME, "paper": "table1"}], labels=LABELS)
        table = only(suite, run_all(suite, good))
        cell = cell_of(table, "Grad-CAM", "LowVar")
        assert cell.mean == pytest.approx(0.71)
        assert cell.spread == pytest.approx(0.01)
        assert (cell.n, cell.status) == (3, "done")
        assert cell.printed.text == "0.55±0.01"
        assert cell.difference == pytest.approx(0.16)
        assert [row.labels for row in table.rows] == [
            ("Grad-CAM", "fair", "CNN"),
            ("Random", "", "CNN"),
            ("LIME", "", "CNN"),
        ]
        assert [column.name for column in table.columns] == ["LowVar", "FreqSum"]

    def test_statuses_are_distinct(self):
        def perform(job):
            if job.dataset == "FreqSum":
                return {"grad_cam": "na", "random": "failed", "lime": None}[job.explainer]
            return good(job) if job.seed else {"grad_cam": "failed"}.get(job.explainer, good(job))

        suite = make_suite([LOCALISE], [TIME], labels=LABELS)
        table = only(suite, run_all(suite, perform), preset="quick")
        statuses = {row: cell_of(table, row, "FreqSum").status for row in LABELS.values()}
        assert statuses == {"Grad-CAM": "na", "Random": "failed", "LIME": "missing"}
        assert cell_of(table, "Grad-CAM", "LowVar").status == "partial"
        text = table.to_markdown()
        assert "0.715 ± 0.007 (n=2, 1 failed)" in text
        for word in ("NA", "failed", "missing"):
            assert re.search(rf"\| {word} \|", text), word
            assert f"{word}: " in table.notes[0]
        assert "empty" not in table.notes[0]

    def test_a_place_without_a_job_is_empty(self):
        more = {**LOCALISE, "datasets": ["LowVar"], "explainers": ["zscore"]}
        suite = make_suite([LOCALISE, more], [TIME])
        table = only(suite, run_all(suite, lambda job: {"time_ap": 0.5}))
        assert cell_of(table, "zscore", "FreqSum").status == ""
        assert "empty: not part of the suite" in table.notes[0]

    def test_scale_and_where(self):
        spec = {
            **TIME,
            "scale": 100,
            "where": {"dataset": "LowVar"},
            "without": {"explainer": "lime"},
        }
        suite = make_suite([LOCALISE], [spec])
        table = only(suite, run_all(suite, good))
        assert len(table.rows) == 2
        assert [c.name for c in table.columns] == ["LowVar"]
        assert table.rows[0].cells[0].mean == pytest.approx(71)

    def test_columns_of_several_results(self):
        spec = {
            **TIME,
            "columns": "measure",
            "values": {"precision": "time_ap", "milliseconds": "seconds"},
            "scale": {"milliseconds": 1000},
            "best": {"precision": "max"},
        }
        del spec["value"]
        suite = make_suite([LOCALISE], [spec])
        table = only(suite, run_all(suite, lambda job: {**good(job), "seconds": 0.002}))
        assert [c.name for c in table.columns] == ["precision", "milliseconds"]
        assert table.rows[0].cells[1].mean == pytest.approx(2.0)
        assert [row.cells[0].mark for row in table.rows] == ["best", "", "second"]
        assert not any(row.cells[1].mark for row in table.rows)

    def test_number_columns_are_sorted(self):
        group = {
            "task": "negative",
            "datasets": ["A"],
            "models": ["m"],
            "options": {"percent": [5, 2]},
        }
        spec = {
            **TIME,
            "task": "negative",
            "rows": ["model"],
            "columns": "percent",
            "value": "delta",
        }
        suite = make_suite([group], [spec])
        table = only(
            suite, run_all(suite, lambda job: {"delta": float(dict(job.options)["percent"])})
        )
        assert [c.name for c in table.columns] == ["2", "5"]
        assert [c.mean for c in table.rows[0].cells] == [2.0, 5.0]

    def test_names_that_the_paper_spells_differently(self):
        spec = {**TIME, "paper": "table1", "paper_names": {"lime": "LIME", "my set": "LowVar"}}
        suite = make_suite([LOCALISE], [spec], labels={"LowVar": "my set"})
        table = only(suite, run_all(suite, good))
        assert cell_of(table, "lime", "my set").printed.mean == 0.10


UNMASK = {
    "task": "unmask",
    "datasets": ["EEG"],
    "models": ["CNN"],
    "explainers": ["random"],
    "seeds": [0, 1],
    "options": {"percent": [10, 20, 100], "backbone": ["CNN", "COLOR"]},
}
AREA = {**TIME, "task": "unmask", "kind": "area", "value": "accuracy", "paper": "table2_20"}


class TestArea:
    def table(self, upto, perform, **options):
        spec = {**AREA, "upto": upto}
        suite = make_suite([UNMASK], [spec], labels=LABELS)
        return only(suite, run_all(suite, perform), **options).rows[0].cells[0]

    @pytest.mark.parametrize(("upto", "area"), [(20, 7), (100, 67), (60, 7 + 40 * 0.675)])
    def test_by_hand(self, upto, area):
        e = {10: 0.4, 20: 0.6, 100: 0.9}  # 0 at 0; areas 2, 5 and 60 between these points

        def perform(job):
            options = dict(job.options)
            return {"accuracy": e[options["percent"]] + 0.1 * (options["backbone"] == "COLOR")}

        alone = self.table(upto, lambda job: {"accuracy": e[dict(job.options)["percent"]]})
        assert alone.mean == pytest.approx(area)
        assert alone.n == 2
        # One backbone is 0.1 better from 10 % on: half of that in the mean.
        assert self.table(upto, perform).mean == pytest.approx(area + 0.05 * (upto - 5))

    def test_paper_beside(self):
        cell = self.table(20, lambda job: {"accuracy": 0.5})
        assert cell.printed.mean == 9.33

    def test_a_missing_point_spoils_its_trial(self):
        cell = self.table(
            20,
            lambda job: (
                None if job.seed and dict(job.options)["percent"] == 20 else {"accuracy": 0.5}
            ),
            preset="quick",
        )
        assert (cell.n, cell.status) == (1, "partial")


class TestMarks:
    def table(self, values, **spec):
        group = {**LOCALISE, "datasets": ["A"], "explainers": list(values)}
        suite = make_suite([group], [{**TIME, **spec}])
        records = run_all(suite, lambda job: {"time_ap": values[job.explainer][job.seed]})
        return only(suite, records)

    def marks(self, table):
        return [row.cells[0].mark for row in table.rows]

    def test_best_and_second(self):
        values = {"a": [0.1] * 3, "b": [0.5, 0.6, 0.7], "c": [0.4] * 3}
        assert self.marks(self.table(values)) == ["", "best", "second"]
        assert self.marks(self.table(values, best="min")) == ["best", "", "second"]
        assert self.marks(self.table(values, best="none")) == ["", "", ""]

    def test_ties_share_their_mark(self):
        values = {"a": [0.50001] * 3, "b": [0.5] * 3, "c": [0.4] * 3}
        table = self.table(values)
        assert self.marks(table) == ["best", "best", "second"]
        assert "equal as printed" in table.notes[-1]

    def test_test_of_the_best_two(self):
        values = {"a": [0.50, 0.52, 0.51], "b": [0.30, 0.33, 0.30], "c": [0.1] * 3}
        table = self.table(values)
        p = ttest_rel(values["a"], values["b"]).pvalue
        assert p < 0.05
        assert table.rows[0].cells[0].significant
        assert not table.rows[1].cells[0].significant
        assert "a / CNN against b / CNN, paired t-test over 3 trials" in table.notes[-1]
        assert "**0.510 ± 0.010**\\*" in table.to_markdown()

    def test_one_method_is_not_marked(self):
        assert self.marks(self.table({"a": [1, 2, 3]})) == [""]


class TestSignificance:
    def trials(self, values):
        return {(0, i): float(v) for i, v in enumerate(values)}

    def test_too_few(self):
        verdict = compare(self.trials([1, 2]), self.trials([0, 0, 0]))
        assert verdict.text == "too few trials to test (2)"
        assert not verdict.tested

    def test_t_test(self):
        a, b = [0.9, 0.8, 0.85, 0.95], [0.7, 0.65, 0.6, 0.8]
        verdict = compare(self.trials(a), self.trials(b))
        p = ttest_rel(a, b).pvalue
        assert f"paired t-test over 4 trials, p = {p:.3f}" == verdict.text
        assert verdict.significant == (p < 0.05)

    def test_wilcoxon_from_six(self):
        a, b = np.arange(6) + 1.0, np.arange(6) * 0.5
        verdict = compare(self.trials(a), self.trials(b))
        assert verdict.text == "Wilcoxon's signed-rank test over 6 trials, p = 0.031"  # 2 / 2**6
        assert verdict.significant

    def test_constant_differences_are_not_tested(self):
        verdict = compare(self.trials([0.9, 0.8, 0.7]), self.trials([0.8, 0.7, 0.6]))
        assert "the same in all trials" in verdict.text
        assert not verdict.tested

    def test_over_sets(self):
        rng = np.random.default_rng(0)
        b = rng.random(12)
        results = np.column_stack(
            [b + 0.2 + 0.01 * rng.random(12), b, b + 0.2 + 0.01 * rng.random(12)]
        )
        text = over_sets(results, ["a", "b", "c"])
        adjusted = wilcoxon_holm(results).adjusted
        best = int(np.argmin(average_ranks(results)))
        other = 2 - best
        assert adjusted[best, 1] < 0.05 < adjusted[best, other]
        assert f"{'abc'[best]}, first by average rank, differs from b (p = " in text
        assert f"cannot be told from {'abc'[other]}" in text
        assert "12 data sets" in text
        assert "Holm" in text

    def test_over_few_sets(self):
        assert "too few to test (5 on" in over_sets(np.ones((5, 2)), ["a", "b"])


ARCHIVE = {
    "task": "train",
    "datasets": ["Cricket", "Epilepsy", "Libras", "ERing", "LSST", "NATOPS", "Heartbeat"],
    "models": ["TimeSliver", "ResNet", "MUSE"],
    "seeds": [0, 1],
}
ACCURACY = {"name": "accuracy", "title": "Accuracy", "kind": "accuracy"}


def archive_result(job):
    i, j = ARCHIVE["datasets"].index(job.dataset), ARCHIVE["models"].index(job.model)
    value = (0.5 + 0.05 * i, 0.6 + 0.02 * i, 0.4 + 0.05 * i)[j] + 0.01 * job.seed
    labels = ["a", "b", "b", "c"]
    return {
        "accuracy": value,
        "balanced_accuracy": value - 0.1,
        "seconds_fit": 1.5,
        "labels": labels,
        "predictions": ["a", "b", "c", "c"],
    }


class TestAccuracy:
    def tables(self, perform=archive_result, **options):
        suite = make_suite([ARCHIVE], [ACCURACY])
        return {table.name: table for table in build(suite, run_all(suite, perform), **options)}

    def test_which_tables(self):
        assert list(self.tables()) == [
            "accuracy-categories",
            "accuracy",
            "accuracy-table4",
            "accuracy-uea",
            "accuracy-uea_ranks",
        ]

    def test_categories(self):
        table = self.tables()["accuracy-categories"]
        names = [c.name for c in table.columns]
        assert names == [
            "Motion",
            "Audio",
            "Coord.",
            "Misc.",
            "All",
            "Average rank",
            "Top-1",
            "Top-3",
        ]
        # Motion: Cricket 0, Epilepsy 1, NATOPS 5
        cell = cell_of(table, "TimeSliver", "Motion")
        assert cell.mean == pytest.approx(100 * (0.505 + 0.05 * 2))
        assert cell.n == 2
        assert cell.printed.mean == pytest.approx((98.61 + 98.55 + 98.89) / 3)
        assert cell_of(table, "ResNet", "Audio").printed.mean == 63.89
        assert any("Motion 3, Audio 1, Coord. 1, Misc. 2, All 7" in note for note in table.notes)

    def test_ranks_are_over_data_sets(self):
        tables = self.tables()
        results = np.array(
            [[0.505 + 0.05 * i, 0.605 + 0.02 * i, 0.405 + 0.05 * i] for i in range(7)]
        )
        expected = average_ranks(results)
        by_category, by_set = tables["accuracy-categories"], tables["accuracy"]
        for i, model in enumerate(ARCHIVE["models"]):
            assert cell_of(by_category, model, "Average rank").mean == pytest.approx(expected[i])
            assert cell_of(by_set, "Average rank", model).mean == pytest.approx(expected[i])
        # i = 0..3: ResNet is better (0.6 + 0.02 i > 0.5 + 0.05 i for i < 10 / 3)
        assert [cell_of(by_set, "Top-1", model).mean for model in ARCHIVE["models"]] == [3, 4, 0]
        assert [cell_of(by_set, "Top-3", model).mean for model in ARCHIVE["models"]] == [7, 7, 7]
        assert any("Holm's correction" in note for note in by_set.notes)

    def test_best_of_each_data_set(self):
        table = self.tables()["accuracy"]
        assert [cell.mark for cell in table.rows[0].cells] == ["second", "best", ""]
        assert [cell.mark for cell in table.rows[6].cells] == ["best", "second", ""]

    def test_incomplete_data_sets_and_methods(self):
        def perform(job):
            if job.model == "MUSE" and job.dataset not in ("LSST", "Libras"):
                return "na"
            return (
                "failed" if (job.model, job.dataset) == ("ResNet", "ERing") else archive_result(job)
            )

        table = self.tables(perform)["accuracy"]
        notes = " ".join(table.notes)
        assert "over the 6 of 7 data sets on which all 2 ranked methods" in notes
        assert "Not ranked, with results on less than half of them: MUSE." in notes
        assert cell_of(table, "Average rank", "MUSE").status == ""
        category = self.tables(perform)["accuracy-categories"]
        assert cell_of(category, "ResNet", "Misc.").status == "failed"
        assert cell_of(category, "MUSE", "Motion").status == "na"

    def test_printed_block(self):
        table = self.tables()["accuracy-table4"]
        text = table.to_markdown()
        assert "| TimeSliver | 66.9 | 90.9 | 55.2 | 93.6 | 76.1 | 75.6 |" in text
        assert "Printed in the paper, not measured here" in text

    def test_means_of_methods_without_a_common_trial(self):
        def perform(job):
            keep = job.seed == 0 if job.dataset == "Cricket" else job.seed == 1
            return archive_result(job) if keep else None

        cell = cell_of(self.tables(perform)["accuracy-categories"], "ResNet", "Motion")
        assert cell.mean == pytest.approx(100 * np.mean([0.60, 0.63, 0.71]))


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.cells, self.rows = [], 0, []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells += int(dict(attributes).get("colspan", 1))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        if tag == "tr":
            self.rows.append(self.cells)
            self.cells = 0


class TestFormats:
    def table(self):
        def cell(mean, spread, **options):
            values = {(0, 0): mean - spread, (0, 1): mean + spread}
            return Cell(Measured(values), **options)

        rows = (
            Row(
                ("A&B_1", "50 %"),
                (
                    cell(
                        0.9, 0.05, printed=Printed.parse("0.80±0.1"), mark="best", significant=True
                    ),
                ),
            ),
            Row(("<b>|x|</b>", ""), (cell(0.7, 0.02, mark="second"),)),
            Row(("$c$", ""), (Cell(Measured(na=2)),)),
        )
        return Table(
            "a b",
            "Title: 5 % & <more>",
            ("Method", "Setting"),
            (Column("Set_1", 2),),
            rows,
            ("Note #1.",),
        )

    def test_markdown(self):
        assert self.table().to_markdown() == (
            "**Title: 5 % & \\<more\\>**\n\n"
            "| Method | Setting | Set\\_1 | paper: Set\\_1 | Δ Set\\_1 |\n"
            "|:---|:---|---:|---:|---:|\n"
            "| A&B\\_1 | 50 % | **0.90 ± 0.07**\\* | 0.80 ± 0.1 | +0.10 |\n"
            "| \\<b\\>\\|x\\|\\</b\\> |  | _0.70 ± 0.03_ |  |  |\n"
            "| $c$ |  | NA |  |  |\n"
            "\nNote #1.\n"
        )

    def test_latex(self):
        text = self.table().to_latex()
        assert r"\caption{Title: 5 \% \& \textless{}more\textgreater{}}" in text
        assert r"\label{tab:a-b}" in text
        assert (
            r"A\&B\_1 & 50 \% & \textbf{0.90 $\pm$ 0.07}$^{*}$ & 0.80 $\pm$ 0.1 & +0.10 \\" in text
        )
        assert r"\underline{0.70 $\pm$ 0.03}" in text
        assert r"\multicolumn{1}{c}{printed in the paper}" in text
        assert r"\cmidrule(lr){4-4}" in text
        assert r"\$c\$" in text
        body = text[text.index(r"\toprule") : text.index(r"\bottomrule")]
        lines = [line for line in body.splitlines() if line.endswith(r"\\")]
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {4}
        assert r"\begin{tabular}{llrrr}" in text
        plain = re.sub(r"\\[{}]", "", text)
        assert plain.count("{") == plain.count("}")
        assert text.isascii()

    def test_html(self):
        text = self.table().to_html()
        reader = Reader()
        reader.feed(text)
        assert not reader.open
        assert set(reader.rows) == {5}
        assert "<b>" not in text
        assert "&lt;b&gt;|x|&lt;/b&gt;" in text
        assert '<td class="best">0.90 ± 0.07<sup>*</sup></td>' in text
        assert '<td class="na">NA</td>' in text
        assert 'colspan="1">printed in the paper' in text

    def test_csv(self):
        head, *rows = csv.reader(io.StringIO(self.table().to_csv()))
        parts = ["mean", "spread", "n", "status", "paper", "difference"]
        assert head == ["Method", "Setting", *(f"Set_1 {part}" for part in parts)]
        assert rows[0][:2] == ["A&B_1", "50 %"]
        assert float(rows[0][2]) == pytest.approx(0.9)
        assert float(rows[0][3]) == pytest.approx(0.05 * np.sqrt(2))
        assert rows[0][4:7] == ["2", "done", "0.8"]
        assert float(rows[0][7]) == pytest.approx(0.1)
        assert rows[2][2:] == ["", "", "0", "na", "", ""]

    def test_label_columns_without_text_are_left_out(self):
        row = Row(("a", ""), (Cell(Measured({(0, 0): 1.0})),))
        table = Table("t", "T", ("Method", "Setting"), (Column("x"),), (row,))
        assert "Setting" not in table.to_markdown()
        assert "Setting" in table.to_csv()

    @pytest.mark.parametrize(
        ("value", "decimals", "text"),
        [(-0.0004, 3, "0.000"), (-0.5, 1, "−0.5"), (1e-7, None, "1e-07"), (5858.0, 0, "5,858")],
    )
    def test_numbers(self, value, decimals, text):
        assert number(value, decimals) == text


class TestAppendix:
    def test_every_trial(self):
        group = {**LOCALISE, "splits": [0, 1]}
        suite = make_suite([group], [TIME], labels=LABELS)
        table = only(suite, run_all(suite, lambda job: {"time_ap": job.split + job.seed / 10}))
        single = appendix(table)
        assert [c.name for c in single.columns] == [
            f"split {split}, seed {seed}" for split in (0, 1) for seed in (0, 1, 2)
        ]
        assert len(single.rows) == 6
        assert single.rows[0].labels == ("Grad-CAM", "fair", "CNN", "LowVar")
        values = [cell.mean for cell in single.rows[0].cells]
        assert values == pytest.approx([0, 0.1, 0.2, 1, 1.1, 1.2])
        assert "| 0.000 | 0.100 | 0.200 | 1.000 | 1.100 | 1.200 |" in single.to_markdown()

    def test_trials_that_failed_are_empty(self):
        suite = make_suite([LOCALISE], [TIME])
        table = only(suite, run_all(suite, lambda job: "failed" if job.seed == 1 else good(job)))
        assert [cell.n for cell in appendix(table).rows[0].cells] == [1, 1]
        partly = run_all(
            suite, lambda job: "failed" if job.seed and job.explainer == "lime" else good(job)
        )
        assert [cell.n for cell in appendix(only(suite, partly)).rows[-1].cells] == [1, 0, 0]


class TestMistakes:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ({**TIME, "colour": 1}, "'time': colour unknown; a table has best"),
            ({"title": "x"}, "a name is needed"),
            ({"name": "x", "task": "train"}, "'x' needs rows, columns, value"),
            ({**TIME, "columns": "measure"}, "needs values"),
            ({**TIME, "kind": "area"}, "needs upto"),
            ({**TIME, "kind": "pie"}, "kind='pie' is unknown"),
            ({**TIME, "best": "highest"}, "best='highest' is unknown"),
            ({"name": "x", "kind": "printed"}, "needs paper"),
        ],
    )
    def test_spec(self, content, message):
        with pytest.raises(InvalidParameterError, match=message):
            Spec.read(content)

    def test_table_without_records(self):
        suite = make_suite([LOCALISE], [TIME])
        table = only(suite, {})
        assert table.rows == ()
        assert table.to_markdown()
        assert table.to_html()
        assert appendix(table).rows == ()

    def test_one_table_by_name(self):
        suite = make_suite([LOCALISE], [TIME, {**TIME, "name": "other"}])
        assert [t.name for t in build(suite, {}, name="other")] == ["other"]


class TestExport:
    def export(self, tmp_path, perform=archive_result):
        labels = {"MUSE": "M USE/1"}
        suite = make_suite([ARCHIVE], labels=labels)
        return write_results(suite, run_all(suite, perform), tmp_path)

    def test_tsml_file(self, tmp_path):
        self.export(tmp_path)
        path = tmp_path / "ResNet" / "Predictions" / "Libras" / "testResample1.csv"
        lines = list(csv.reader(path.read_text("utf-8").splitlines()))
        assert lines[0][:5] == ["Libras", "ResNet", "TEST", "1", "MILLISECONDS"]
        assert lines[0][5] == 'split 0 seed 1; classes ["a", "b", "c"]'
        assert len(lines[1]) == 1
        assert len(lines[2]) == 9
        assert float(lines[2][0]) == pytest.approx(0.65)
        assert lines[2][1] == "1500"
        assert lines[2][5] == "3"
        assert lines[3:] == [
            ["0", "0", "", "1", "0", "0"],
            ["1", "1", "", "0", "1", "0"],
            ["1", "2", "", "0", "0", "1"],
            ["2", "2", "", "0", "0", "1"],
        ]

    def test_names_are_safe(self, tmp_path):
        files = self.export(tmp_path)
        assert (tmp_path / "M_USE_1" / "Predictions" / "Cricket" / "testResample0.csv") in files
        assert len(files) == 3 * 7 * 2 + 3 * 2
        assert all(file.is_file() for file in files)

    def test_aeon_reads_it(self, tmp_path):
        loaders = pytest.importorskip("aeon.benchmarking.results_loaders")
        self.export(tmp_path)
        found = loaders.get_estimator_results(
            "ResNet", num_resamples=None, measure="accuracy", path=str(tmp_path)
        )
        assert list(found["ResNet"]) == sorted(ARCHIVE["datasets"])
        assert found["ResNet"]["Epilepsy"] == pytest.approx([0.62, 0.63])
        array, names = loaders.get_estimator_results_as_array(
            ["ResNet"], ["LSST", "Cricket"], num_resamples=1, measure="balacc", path=str(tmp_path)
        )
        assert array[:, 0] == pytest.approx([0.58, 0.5])
        assert names == ["LSST", "Cricket"]

    def test_without_labels_only_the_table(self, tmp_path):
        def perform(job):
            return "failed" if job.seed else {"accuracy": 0.5, "balanced_accuracy": None}

        files = self.export(tmp_path, perform)
        assert len(files) == 6
        text = (tmp_path / "classification" / "accuracy" / "ResNet_accuracy.csv").read_text("utf-8")
        assert text.splitlines()[:2] == ["Resamples:,0", "Cricket,0.5"]


def test_package_offers_what_is_documented():
    assert set(tables.__all__) <= set(dir(tables))
