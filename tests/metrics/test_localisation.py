import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import auc, average_precision_score, precision_recall_curve, roc_auc_score

from timesliver import Attribution
from timesliver.datasets import make_lowvar
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.metrics import aup, auprc, aur, auroc, pointing_game, top_k_precision
from timesliver.metrics import localisation as module

MEASURES = {
    "auprc": auprc,
    "trapezoid": lambda *given, **more: auprc(*given, area="trapezoid", **more),
    "auroc": auroc,
    "aup": aup,
    "aur": aur,
    "pointing_game": pointing_game,
    "top_2": lambda *given, **more: top_k_precision(*given, k=2, **more),
}
ORDER_ONLY = [name for name in MEASURES if name not in ("aup", "aur")]


def over_thresholds(scores, truth):
    """Areas under precision and recall over min-max scaled thresholds, by scikit-learn."""
    span = np.ptp(scores)
    if span == 0:
        return 0.0, 0.0
    precision, recall, thresholds = precision_recall_curve(truth, (scores - scores.min()) / span)
    return auc(thresholds, precision[:-1]), auc(thresholds, recall[:-1])


REFERENCES = {
    "auprc": lambda s, t: average_precision_score(t, s),
    "trapezoid": lambda s, t: auc(*precision_recall_curve(t, s)[1::-1]),
    "auroc": lambda s, t: roc_auc_score(t, s),
    "aup": lambda s, t: over_thresholds(s, t)[0],
    "aur": lambda s, t: over_thresholds(s, t)[1],
}


@st.composite
def ranked_cases(draw):
    """Draw scores with many ties, and a truth with salient and other points in every case."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, L = draw(st.integers(1, 5)), draw(st.integers(2, 30))
    scores = rng.integers(-draw(st.integers(0, 20)), 3, size=(n, L)) / 4
    salient = rng.random((n, L)) < draw(st.floats(0.05, 0.95))
    salient[:, 0], salient[:, -1] = True, False
    order = rng.permutation(L)
    return scores[:, order], salient[:, order]


def attribution(positive, negative, series=None):
    n = len(positive)
    zero = np.zeros(n)
    return Attribution(
        positive, negative, zero, zero, zero.astype(int), np.arange(2), "by hand", series=series
    )


class TestByHand:
    scores = np.array([[0.9, 0.5, 0.4, 0.1]])
    salient = np.array([[True, False, True, False]])

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("auprc", (1 + 2 / 3) / 2),
            # (recall, precision): (0, 1) (1/2, 1) (1/2, 1/2) (1, 2/3) (1, 1/2)
            ("trapezoid", 1 / 2 + (1 / 2 + 2 / 3) / 4),
            ("auroc", 3 / 4),
            # thresholds 0, 3/8, 1/2, 1 with precision 1/2, 2/3, 1/2, 1 and recall 1, 1, 1/2, 1/2
            ("aup", 3 / 8 * 7 / 12 + 1 / 8 * 7 / 12 + 1 / 2 * 3 / 4),
            ("aur", 3 / 8 + 1 / 8 * 3 / 4 + 1 / 2 * 1 / 2),
            ("pointing_game", 1.0),
            ("top_2", 0.5),
        ],
    )
    def test_four_points(self, name, expected):
        assert float(MEASURES[name](self.scores, self.salient)) == pytest.approx(expected)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            # groups {a: salient, other} {b: salient} {c: other, other}
            ("auprc", (1 / 2 + 2 / 3) / 2),
            ("trapezoid", ((1 + 1 / 2) / 2 + (1 / 2 + 2 / 3) / 2) / 2),
            ("auroc", (2 + 0.5 + 2) / 6),
            ("pointing_game", 0.5),
            ("top_2", 0.5),
        ],
    )
    def test_ties(self, name, expected):
        found = MEASURES[name]([[3, 3, 2, 1, 1]], np.array([[True, False, True, False, False]]))
        assert float(found) == pytest.approx(expected)
        assert found.tie_fraction == pytest.approx(4 / 5)

    def test_top_k_shares_the_last_places_among_ties(self):
        salient = np.array([[False, True, True, False]])
        found = top_k_precision([[5, 1, 1, 1]], salient, k=3)
        assert float(found) == pytest.approx((2 * 2 / 3) / 3)
        assert float(top_k_precision([[5, 1, 1, 1]], salient, k=4)) == 0.5

    def test_mean_spread_and_skipped_cases(self):
        salient = np.array([[True, False], [False, False], [True, False], [True, True]])
        found = auprc([[2, 1], [2, 1], [1, 2], [0, 0]], salient)
        np.testing.assert_array_equal(found.per_case, [1, np.nan, 0.5, 1])
        assert (found.mean, found.spread) == (np.mean([1, 0.5, 1]), np.std([1, 0.5, 1], ddof=1))
        assert (found.n_skipped, found.n_constant) == (1, 1)
        assert found.tie_fraction == pytest.approx(1 / 3)
        assert float(found) == found.mean
        assert auroc([[2, 1], [2, 1], [1, 2], [0, 0]], salient).n_skipped == 2


class TestReference:
    @settings(max_examples=50, deadline=None)
    @given(ranked_cases())
    @pytest.mark.parametrize("name", REFERENCES)
    def test_like_scikit_learn(self, name, cases):
        expected = [REFERENCES[name](*case) for case in zip(*cases, strict=True)]
        np.testing.assert_allclose(MEASURES[name](*cases).per_case, expected, atol=1e-12)

    def test_chunks_change_nothing(self, monkeypatch):
        rng = np.random.default_rng(0)
        scores, salient = rng.normal(size=(20, 30)), rng.random((20, 30)) < 0.1
        whole = auprc(scores, salient)
        monkeypatch.setattr(module, "_CHUNK", 90)
        parts = auprc(scores, salient)
        np.testing.assert_array_equal(parts.per_case, whole.per_case)
        assert parts.tie_fraction == whole.tie_fraction

    def test_random_scores_reach_the_known_value_of_lowvar(self):
        truth = make_lowvar(1000, random_state=0).salient
        scores = np.random.default_rng(1).random(truth.shape)
        found = auprc(scores, truth, area="trapezoid")
        assert found.mean == pytest.approx(0.084, abs=0.01)
        assert found.spread == pytest.approx(0.037, abs=0.01)
        assert auprc(scores, truth).mean == pytest.approx(0.095, abs=0.01)
        constant = auprc(np.ones(truth.shape), truth, area="trapezoid")
        assert constant.mean == pytest.approx(0.54, abs=0.01)


class TestProperties:
    @settings(max_examples=50, deadline=None)
    @given(ranked_cases())
    @pytest.mark.parametrize("name", ORDER_ONLY)
    def test_only_the_order_of_scores_counts(self, name, cases):
        scores, salient = cases
        stretched = np.expm1(scores) * 1e-7
        np.testing.assert_allclose(
            MEASURES[name](stretched, salient).per_case, MEASURES[name](*cases).per_case
        )

    @settings(max_examples=50, deadline=None)
    @given(ranked_cases())
    def test_constant_maps(self, cases):
        _, salient = cases
        constant = np.full(salient.shape, 0.1)
        rate = salient.mean(axis=1)
        np.testing.assert_allclose(auprc(constant, salient).per_case, rate)
        flattered = auprc(constant, salient, area="trapezoid").per_case
        np.testing.assert_allclose(flattered, (1 + rate) / 2)
        np.testing.assert_allclose(auroc(constant, salient).per_case, 0.5)
        np.testing.assert_allclose(pointing_game(constant, salient).per_case, rate)
        assert auprc(constant, salient).n_constant == len(salient)
        assert auprc(constant, salient).tie_fraction == 1

    @settings(max_examples=50, deadline=None)
    @given(ranked_cases())
    @pytest.mark.parametrize("name", ["auprc", "trapezoid", "auroc", "pointing_game"])
    def test_a_perfect_map_scores_one(self, name, cases):
        scores, salient = cases
        perfect = np.where(salient, 10 + scores, scores)
        np.testing.assert_allclose(MEASURES[name](perfect, salient).per_case, 1)

    @settings(max_examples=50, deadline=None)
    @given(ranked_cases(), st.integers(1, 4))
    @pytest.mark.parametrize("name", MEASURES)
    def test_padding_counts_for_nothing(self, name, cases, extra):
        scores, salient = cases
        width = ((0, 0), (0, extra))
        found = MEASURES[name](
            np.pad(scores, width, constant_values=np.nan),
            np.pad(salient, width, constant_values=True),
            lengths=[scores.shape[1]] * len(scores),
        )
        expected = MEASURES[name](*cases)
        np.testing.assert_allclose(found.per_case, expected.per_case, atol=1e-12)
        assert found.tie_fraction == expected.tie_fraction

    @settings(max_examples=50, deadline=None)
    @given(hnp.arrays(np.float64, (2, 6), elements=st.floats(-1e308, 1e308)))
    @pytest.mark.parametrize("name", MEASURES)
    def test_any_finite_scores_give_a_share(self, name, scores):
        found = MEASURES[name](scores, np.array([[True, False] * 3] * 2))
        assert ((found.per_case >= 0) & (found.per_case <= 1 + 1e-12)).all()


class TestLevels:
    scores = np.array([[[3.0, 0, 0], [0, 2, 0]]])
    salient = np.array([[[True, False, False], [False, False, True]]])

    def test_time_sums_scores_and_joins_truth(self):
        assert float(auprc(self.scores, self.salient)) == pytest.approx((1 + 2 / 3) / 2)
        by_time = self.scores.sum(axis=1), self.salient.any(axis=1)
        assert float(auprc(*by_time)) == float(auprc(self.scores, self.salient))
        assert float(auprc(by_time[0], self.salient)) == float(auprc(*by_time))
        assert float(auprc(self.scores, by_time[1])) == float(auprc(*by_time))

    def test_cell_looks_at_every_channel(self):
        assert float(auprc(self.scores, self.salient, level="cell")) == pytest.approx(
            (1 + 2 / 6) / 2
        )

    def test_one_channel_is_the_same_at_both_levels(self):
        scores, salient = self.scores[:, 0], self.salient[:, 0]
        assert float(auprc(scores, salient[:, None], level="cell")) == float(auprc(scores, salient))

    def test_small_float32_scores_keep_their_order(self):
        scores = (1e-7 * np.arange(200, dtype=np.float32))[None]
        assert float(auprc(scores, np.arange(200)[None] >= 190)) == 1

    def test_parts_and_lengths_of_an_attribution(self):
        positive = np.array([[[1.0, 0, 0, 9]], [[0, 1, 0, 0]]])
        negative = np.array([[[0, 5.0, 0, 0]], [[0, 0, 2, 0]]])
        series = np.ones((2, 1, 4))
        series[0, 0, 3] = np.nan
        truth = np.array([[True, False, False, False], [False, False, True, False]])
        found = attribution(positive, negative, series)
        by_part = {
            part: auprc(found, truth, part=part).per_case.tolist()
            for part in ("positive", "negative", "net", "magnitude")
        }
        assert by_part["positive"] == [1, 1 / 4]
        assert by_part["negative"] == [1 / 3, 1]
        assert by_part["net"] == [1, 1 / 4]
        assert by_part["magnitude"] == [1 / 2, 1]
        assert auprc(attribution(positive, negative), truth).per_case[0] == 1 / 2


class TestMistakes:
    truth = np.array([[True, False, False]])

    @pytest.mark.parametrize(
        ("scores", "salient", "message"),
        [
            ([[1, np.nan, 2]], truth, "case 0, channel 0, time point 1 has nan"),
            ([[1, np.inf, 2]], truth, "must be finite"),
            ([1, 2, 3], truth, r"scores must have shape .* got \(3,\)"),
            ([[1, 2]], truth, r"\(1, 1, 2\) do not fit salient for \(1, 1, 3\)"),
            ([[1, 2, 3]] * 2, truth, "do not fit"),
            ([["a", "b", "c"]], truth, "real numbers"),
            ([[1j, 2, 3]], truth, "real numbers"),
            ([[1, 2, 3], [1]], truth, "cannot be read as an array"),
            ([[1, 2, 3]], [[1, 0, 0]], "must be boolean"),
            ([[1, 2, 3]], [[False] * 3], "none of the 1 cases has"),
            (np.zeros((0, 3)), truth, "none of them 0"),
        ],
    )
    @pytest.mark.parametrize("name", MEASURES)
    def test_bad_arrays(self, name, scores, salient, message):
        with pytest.raises(InvalidInputError, match=message):
            MEASURES[name](scores, salient)

    @pytest.mark.parametrize("lengths", [[0], [4], [1.5], [1, 1], 3])
    def test_bad_lengths(self, lengths):
        with pytest.raises(InvalidInputError, match="lengths must"):
            auprc([[1, 2, 3]], self.truth, lengths=lengths)

    @pytest.mark.parametrize("k", [0, 4, -1, 1.0, True, None])
    def test_bad_k(self, k):
        with pytest.raises(InvalidParameterError, match="k must be a whole number"):
            top_k_precision([[1, 2, 3]], self.truth, k)

    @pytest.mark.parametrize("settings", [{"level": "channel"}, {"area": "roc"}, {"level": "both"}])
    def test_unknown_choices(self, settings):
        with pytest.raises(InvalidParameterError, match="is unknown; choose one of"):
            auprc([[1, 2, 3]], self.truth, **settings)

    def test_unknown_part(self):
        scores = np.ones((1, 1, 3))
        with pytest.raises(InvalidParameterError, match="part='evidence' is unknown"):
            auprc(attribution(scores, scores), self.truth, part="evidence")

    def test_channels_must_agree_at_cell_level(self):
        with pytest.raises(InvalidInputError, match="time points and channels"):
            auprc(np.ones((1, 2, 3)), self.truth, level="cell")

    def test_auroc_needs_points_that_are_not_salient(self):
        with pytest.raises(InvalidInputError, match="both salient and other points"):
            auroc([[1, 2, 3]], np.ones((1, 3), dtype=bool))
