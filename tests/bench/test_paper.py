import math

import numpy as np
import pytest

from timesliver.bench import paper
from timesliver.bench.paper import Printed, load, names, uea_categories
from timesliver.errors import InvalidParameterError
from timesliver.metrics import top_counts

SETS = ("FreqSum", "SeqComb-UV", "SeqComb-MV", "LowVar")


def numbers(name):
    """Return a table as an array; NaN where nothing is printed."""
    table = load(name)
    return np.array(
        [
            [
                np.nan if (m := table.cells[row, column].mean) is None else m
                for column in table.columns
            ]
            for row in table.rows
        ]
    )


def column_of(name, column):
    table = load(name)
    return dict(zip(table.rows, numbers(name)[:, table.columns.index(column)], strict=True))


class TestLoading:
    @pytest.mark.parametrize(
        ("name", "shape"),
        [
            ("table1", (14, 4)),
            ("table2_100", (14, 3)),
            ("table2_20", (14, 3)),
            ("table3_2", (14, 3)),
            ("table3_5", (14, 3)),
            ("table4", (20, 6)),
            ("uea", (26, 17)),
            ("uea_ranks", (20, 3)),
            ("backbones", (7, 4)),
            ("parameters", (7, 4)),
            ("activations", (5, 4)),
            ("symbolizers", (4, 2)),
            ("farfield", (1, 4)),
            ("ablations", (4, 2)),
        ],
    )
    def test_shapes(self, name, shape):
        assert numbers(name).shape == shape
        assert load(name).source

    def test_all_are_known(self):
        assert len(names()) == 14
        for name in names():
            assert load(f"{name}.csv").name == name

    def test_unknown(self):
        with pytest.raises(InvalidParameterError, match="choose one of ablations"):
            load("table9")

    @pytest.mark.parametrize(
        ("text", "mean", "spread"),
        [("0.94±0.05", 0.94, 0.05), ("-0.07", -0.07, None), ("NA", None, None), ("--", None, None)],
    )
    def test_parse(self, text, mean, spread):
        assert Printed.parse(text) == Printed(mean, spread, text)

    def test_spelling_and_order_do_not_matter(self):
        table = load("backbones")
        assert (
            table.get("ford-a", "cnn") == table.get("CNN", "FordA") == table.cells["FordA", "CNN"]
        )
        assert table.get("FordA", "LSTM") is None
        assert load("table1").get("TimeX++", "LOWVAR").mean == 0.95
        assert load("table1").get("TimeX", "LowVar") is None


class TestTyped:
    """A few cells of each table, read off the paper by eye."""

    @pytest.mark.parametrize(
        ("name", "row", "column", "text"),
        [
            ("table1", "Grad-SAM", "FreqSum", "0.67±0.03"),
            ("table1", "LIMESegment", "SeqComb-UV", "0.76±0.08"),
            ("table1", "Integrated Gradients", "LowVar", "0.73±0.34"),
            ("table2_100", "TimeSliver", "EEG", "83.99±0.61"),
            ("table2_100", "TimeX++", "Audio", "73.24±0.35"),
            ("table2_20", "TimeSliver", "FordA", "14.99±0.01"),
            ("table2_20", "LIMESegment", "EEG", "NA"),
            ("table3_2", "Integrated Gradients", "EEG", "0.16±0.17"),
            ("table3_2", "TimeSliver", "Audio", "-0.07±0.22"),
            ("table3_5", "COLOR", "Audio", "-0.08±0.22"),
            ("table4", "RLPAM", "Bio.", "66.75"),
            ("table4", "TimeSliver", "All", "75.6"),
            ("uea", "FaceDetection", "DTW_A", "--"),
            ("uea", "StandWalkJump", "TimeSliver", "67.00"),
            ("uea", "NATOPS", "InceptionTime", "96.63"),
            ("uea_ranks", "InterpGN", "Average rank", "7.08"),
            ("parameters", "EEG", "TimeSliver", "6441"),
            ("parameters", "Audio", "CNN", "224938"),
            ("backbones", "EEG", "Transformer", "0.68±0.038"),
            ("activations", "Tanh", "SeqComb-MV", "0.70±0.17"),
            ("symbolizers", "SFA", "AUPRC", "0.93±0.068"),
            ("farfield", "FarField", "FCN", "0.77±0.05"),
        ],
    )
    def test_cells(self, name, row, column, text):
        assert load(name).get(row, column).text == text

    def test_tables_that_repeat_each_other(self):
        first = load("table1").cells
        for dataset in SETS:
            again = load("activations").cells["ReLU (with max-scaling)", dataset]
            assert again.text == first["TimeSliver", dataset].text


class TestCategories:
    def test_sizes_are_those_of_the_paper(self):
        sizes = {name: len(sets) for name, sets in uea_categories().items()}
        assert sizes == {"Bio.": 8, "Motion": 7, "Audio": 3, "Coord.": 3, "Misc.": 5}
        members = [name for sets in uea_categories().values() for name in sets]
        assert sorted(members) == sorted(load("uea").rows)

    def test_their_means_give_table_4(self):
        methods = [m for m in load("uea").columns if m in load("table4").rows]
        methods.remove("InceptionTime")  # see below
        sets = load("uea").rows
        for category, members in uea_categories().items():
            rows = [sets.index(name) for name in members]
            for method in methods:
                mean = np.nanmean(numbers("uea")[rows, load("uea").columns.index(method)])
                printed = load("table4").cells[method, category].mean
                if (method, category) != ("DTW_A", "Bio."):
                    assert abs(mean - printed) < 0.06, (category, method)


class TestDisagreements:
    """Where the paper contradicts itself. These tests keep us from trusting such numbers."""

    def test_inception_time_of_table_4_is_not_the_one_of_the_appendix(self):
        rows = [load("uea").rows.index(name) for name in uea_categories()["Bio."]]
        mean = numbers("uea")[rows, load("uea").columns.index("InceptionTime")].mean()
        assert load("table4").get("InceptionTime", "Bio.").mean - mean > 6.5

    def test_the_mean_over_all_sets_is_not_the_mean_of_the_sets(self):
        means = dict(zip(load("uea").columns, np.nanmean(numbers("uea"), axis=0), strict=True))
        printed = column_of("table4", "All")
        differences = {m: means[m] - printed[m] for m in means if m in printed}
        assert differences["TimeSliver"] == pytest.approx(1.24, abs=0.01)
        assert differences["ResNet"] == pytest.approx(3.66, abs=0.01)
        assert sum(abs(d) < 0.06 for d in differences.values()) == 1  # DTW_I alone

    def test_the_mean_over_all_sets_is_no_mean_of_the_categories_either(self):
        sizes = [len(uea_categories()[name]) for name in load("table4").columns[:5]]
        parts = numbers("table4")[load("table4").rows.index("TimeSliver")]
        assert np.average(parts[:5], weights=sizes) == pytest.approx(76.9, abs=0.05)
        assert parts[:5].mean() == pytest.approx(76.5, abs=0.05)
        assert parts[5] == 75.6

    def test_nineteen_rivals_where_the_caption_says_sixteen(self):
        assert len(load("table4").rows) - 1 == 19

    def test_ranks_are_of_more_methods_than_are_listed(self):
        # Ranks of 20 methods add up to 210, of 25 (with the five ensembles) to 325.
        total = sum(column_of("uea_ranks", "Average rank").values())
        assert total == pytest.approx(253.87, abs=0.01)

    def test_best_marked_wrongly(self):
        table = numbers("uea")
        rows, columns = load("uea").rows, load("uea").columns
        best = {row: columns[int(np.nanargmax(table[i]))] for i, row in enumerate(rows)}
        assert best["EigenWorms"] == "MUSE"  # bold: InceptionTime
        assert best["ERing"] == "ROCKET"  # bold: MUSE

    def test_a_tie_that_counts_for_one_of_two(self):
        """Cricket is the only set on which DTW_D or DTW_A is best, both with 100 %."""
        table = np.nan_to_num(numbers("uea"), nan=-1)
        counts = dict(zip(load("uea").columns, top_counts(table), strict=True))
        assert counts["DTW_D"] == counts["DTW_A"] == 1
        printed = column_of("uea_ranks", "Top-1")
        assert (printed["DTW_D"], printed["DTW_A"]) == (0, 1)
        for k in (1, 3):  # more rivals can only lower a count
            counts = dict(zip(load("uea").columns, top_counts(table, k), strict=True))
            printed = column_of("uea_ranks", f"Top-{k}")
            assert all(printed[m] <= counts[m] for m in counts if m in printed)

    def test_kept_points_beat_all_points(self):
        """I(100) / 100 is a mean of e(u), yet above the accuracy of every backbone."""
        for dataset, count in (("EEG", 3), ("FordA", 3), ("Audio", 0)):
            table, backbones = load("table2_100"), load("backbones")
            most = max(backbones.get(dataset, name).mean for name in backbones.columns)
            above = [
                row
                for row in table.rows
                if (printed := table.get(row, dataset).mean) is not None and printed > 100 * most
            ]
            assert len(above) == count, (dataset, above)
            assert ("TimeSliver" in above) == bool(count)

    @pytest.mark.parametrize("name", ["table2_100", "table2_20"])
    def test_two_cells_are_copies(self, name):
        assert load(name).get("LIME", "FordA").text == load(name).get("KernelShap", "EEG").text

    def test_drop_without_symbols(self):
        table = load("symbolizers")
        drop = 1 - table.get("raw", "AUPRC").mean / table.get("SAX", "AUPRC").mean
        assert drop == pytest.approx(0.298, abs=0.001)  # printed: 38.7 %; in the text also 17 %

    def test_rows_that_a_constant_map_would_get(self):
        """By the trapezoid rule a constant map scores (1 + rate of salient points) / 2."""
        rates = {"FreqSum": 0.354, "SeqComb-UV": 0.22, "SeqComb-MV": 0.22, "LowVar": 0.072}
        for dataset, rate in rates.items():
            printed = load("table1").get("Grad-SAM", dataset).mean
            assert math.isclose(printed, (1 + rate) / 2, abs_tol=0.011)

    def test_improvement_of_18_percent(self):
        best = {
            d: max(v for m, v in column_of("table1", d).items() if m != "TimeSliver") for d in SETS
        }
        gains = [load("table1").get("TimeSliver", d).mean / best[d] - 1 for d in SETS]
        assert np.mean(gains) == pytest.approx(0.187, abs=0.001)  # as printed


def test_package_offers_what_is_documented():
    assert set(paper.__all__) <= set(dir(paper))
