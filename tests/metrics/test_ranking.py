import sys
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata, wilcoxon

from timesliver.errors import InvalidInputError, InvalidParameterError, MissingExtraError
from timesliver.metrics import (
    average_ranks,
    critical_difference_diagram,
    top_counts,
    wilcoxon_holm,
)

# three data sets, four methods
TABLE = np.array([[0.9, 0.8, 0.8, 0.1], [0.5, 0.7, 0.6, 0.7], [0.3, 0.3, 0.3, 0.3]])


def tables(fewest_methods=1):
    shapes = st.tuples(st.integers(1, 8), st.integers(fewest_methods, 6))
    return shapes.flatmap(lambda shape: hnp.arrays(int, shape, elements=st.integers(0, 5)))


class TestRanks:
    def test_by_hand(self):
        # ranks 1, 2.5, 2.5, 4; 4, 1.5, 3, 1.5; 2.5 each
        expected = [7.5 / 3, 6.5 / 3, 8 / 3, 8 / 3]
        np.testing.assert_allclose(average_ranks(TABLE), expected)
        np.testing.assert_allclose(average_ranks(pd.DataFrame(TABLE)), expected)
        np.testing.assert_allclose(average_ranks(-TABLE, higher_is_better=False), expected)
        np.testing.assert_allclose(
            average_ranks(TABLE, higher_is_better=False), 5 - np.array(expected)
        )

    def test_rounding_makes_no_rank(self):
        assert average_ranks([[0.1 + 0.2, 0.3], [1e-9, 2e-9]]).tolist() == [1.75, 1.25]

    @settings(max_examples=50, deadline=None)
    @given(tables())
    def test_ranks_add_up(self, table):
        n = table.shape[1]
        assert average_ranks(table).sum() == pytest.approx(n * (n + 1) / 2)

    def test_counts_by_hand(self):
        assert top_counts(TABLE).tolist() == [2, 2, 1, 2]
        assert top_counts(TABLE, 2).tolist() == [2, 3, 2, 2]
        assert top_counts(TABLE, 3).tolist() == [2, 3, 3, 2]
        assert top_counts(TABLE, 4).tolist() == [3, 3, 3, 3]
        assert top_counts(TABLE, higher_is_better=False).tolist() == [2, 1, 1, 2]

    @settings(max_examples=50, deadline=None)
    @given(tables())
    def test_every_set_has_a_best_method(self, table):
        assert top_counts(table).sum() >= len(table)
        assert (top_counts(table, table.shape[1]) == len(table)).all()


class TestWilcoxonHolm:
    def test_exact_p_by_hand(self):
        # differences 1, 2, 3, -4: W- = 4; 7 of 16 sign patterns have a rank sum of 4 or less
        tests = wilcoxon_holm([[1, 0], [2, 0], [3, 0], [0, 4]])
        assert tests.p_values[0, 1] == pytest.approx(2 * 7 / 16)
        # six wins: 2 / 2**6
        wins = np.column_stack([np.arange(1.0, 7), np.zeros(6)])
        assert wilcoxon_holm(wins).p_values[0, 1] == pytest.approx(2 / 64)

    @settings(max_examples=50, deadline=None)
    @given(st.lists(st.integers(-4, 4), min_size=1, max_size=8))
    def test_exact_with_tied_differences(self, differences):
        d = np.array([x for x in differences if x])
        ranks = rankdata(np.abs(d))
        sums = [ranks @ np.array(signs) for signs in product((0, 1), repeat=len(d))]
        fewer = min(ranks[d > 0].sum(), ranks[d < 0].sum())
        expected = min(1, 2 * np.mean(np.array(sums) <= fewer))
        found = wilcoxon_holm(np.column_stack([differences, np.zeros(len(differences))]))
        assert found.p_values[0, 1] == pytest.approx(expected)

    @pytest.mark.parametrize("n", [12, 50, 51, 80])
    def test_like_scipy_without_ties(self, n):
        table = np.random.default_rng(n).normal(size=(n, 2)) + np.array([0.3, 0])
        expected = wilcoxon(table[:, 0], table[:, 1]).pvalue
        assert wilcoxon_holm(table).p_values[0, 1] == pytest.approx(expected, rel=1e-9)

    def test_ties_between_methods_are_left_out(self):
        few = np.array([[1.0, 0], [2, 0], [3, 0], [4, 0], [5, 0]])
        tied = np.vstack([few, [[7, 7], [8, 8]]])
        assert wilcoxon_holm(tied).p_values[0, 1] == wilcoxon_holm(few).p_values[0, 1] == 1 / 16
        assert wilcoxon_holm([[3, 3], [4, 4]]).adjusted[0, 1] == 1
        assert wilcoxon_holm([[0.1 + 0.2, 0.3]] * 6).adjusted[0, 1] == 1

    def test_one_data_set_proves_nothing(self):
        assert wilcoxon_holm([[1, 0, 5]]).adjusted.tolist() == np.ones((3, 3)).tolist()

    def test_holm_by_hand(self):
        # a beats b and c in all of six sets (p = 1/32), b against c is even
        b = np.array([1, 2, 3, 4, 5, 6.0])
        c = b + np.array([1, -2, 3, -4, 5, -6])
        table = np.column_stack([b + np.array([20, 22, 24, 26, 28, 30.0]), b, c])
        tests = wilcoxon_holm(table)
        p = tests.p_values
        assert p[0, 1] == p[0, 2] == pytest.approx(1 / 32)
        assert p[1, 2] > 0.5
        # sorted: 1/32 * 3, max(that, 1/32 * 2), max(that, p * 1)
        assert tests.adjusted[0, 1] == tests.adjusted[0, 2] == pytest.approx(3 / 32)
        assert tests.adjusted[1, 2] == pytest.approx(p[1, 2])

    @settings(max_examples=50, deadline=None)
    @given(tables(fewest_methods=2))
    def test_properties(self, table):
        tests = wilcoxon_holm(table)
        for p in (tests.p_values, tests.adjusted):
            np.testing.assert_array_equal(p, p.T)
            assert ((p > 0) & (p <= 1)).all()
            assert (np.diag(p) == 1).all()
        assert (tests.adjusted >= tests.p_values).all()
        pairs = np.triu_indices(len(tests.adjusted), 1)
        order = np.argsort(tests.p_values[pairs], kind="stable")
        assert (np.diff(tests.adjusted[pairs][order]) >= 0).all()


class TestDiagram:
    names = ("CNN", "Grad-CAM", "integrated gradients", "TimeSliver")

    def texts(self, figure):
        return {text.get_text().strip() for axes in figure.axes for text in axes.texts}

    def test_draws_names_and_ranks(self, tmp_path):
        plt = pytest.importorskip("matplotlib.pyplot")
        pytest.importorskip("aeon")
        open_before = plt.get_fignums()
        rng = np.random.default_rng(0)
        table = rng.random((12, 4)) + np.array([0, 0.1, 0.2, 2])
        figure = critical_difference_diagram(table, self.names)
        assert plt.get_fignums() == open_before
        assert set(self.names) <= self.texts(figure)
        assert {f"{rank:.4f}" for rank in average_ranks(table)} <= self.texts(figure)
        figure.savefig(tmp_path / "ranks.png")
        assert (tmp_path / "ranks.png").stat().st_size > 1000
        flipped = critical_difference_diagram(-table, self.names, higher_is_better=False)
        assert self.texts(flipped) == self.texts(figure)

    @pytest.mark.parametrize(
        "table", [np.ones((3, 3)), np.ones((5, 3)) * [1, 1, 2], np.arange(6.0).reshape(2, 3)]
    )
    def test_equal_methods_and_few_sets_do_not_warn(self, table):
        pytest.importorskip("aeon")
        assert critical_difference_diagram(table, ["a", "b", "c"]).axes

    def test_without_aeon(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "aeon.visualisation", None)
        with pytest.raises(MissingExtraError, match=r"timesliver\[archive\]"):
            critical_difference_diagram(TABLE, self.names)

    @pytest.mark.parametrize(
        ("table", "settings", "error", "message"),
        [
            (TABLE, {"methods": "abc"}, InvalidParameterError, "each of the 4 columns"),
            (TABLE, {"methods": "aabc"}, InvalidParameterError, "different name"),
            (
                TABLE,
                {"methods": "abcd", "alpha": 5},
                InvalidParameterError,
                "alpha must be a number, above 0 and below 1; got 5",
            ),
            (TABLE[:, :2], {"methods": "ab"}, InvalidInputError, "at least three methods"),
            (TABLE[:1], {"methods": "abcd"}, InvalidInputError, "two data sets"),
        ],
    )
    def test_mistakes(self, table, settings, error, message):
        with pytest.raises(error, match=message):
            critical_difference_diagram(table, **settings)


@pytest.mark.parametrize("function", [average_ranks, top_counts, wilcoxon_holm])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1, np.nan]], "row 0, column 1 is nan"),
        ([[1, 2], [np.inf, 3]], "row 1, column 0 is inf"),
        ([1, 2], r"got \(2,\)"),
        (np.ones((0, 3)), "neither of them 0"),
        ([["CNN", "LSTM"]], "table of numbers"),
        ([[1, 2], [3]], "table of numbers"),
    ],
)
def test_bad_tables(function, table, message):
    with pytest.raises(InvalidInputError, match=message):
        function(table)


@pytest.mark.parametrize("k", [0, 5, 1.5])
def test_bad_k(k):
    with pytest.raises(InvalidParameterError, match="k must be a whole number"):
        top_counts(TABLE, k)


def test_one_method_cannot_be_compared():
    with pytest.raises(InvalidInputError, match="at least two columns"):
        wilcoxon_holm([[1], [2]])
