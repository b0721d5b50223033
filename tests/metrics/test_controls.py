import numpy as np
import pytest

from classifier.conftest import small, small_segments
from timesliver import Segments, TimeSliverClassifier
from timesliver.errors import InvalidInputError, InvalidParameterError, NotFittedError
from timesliver.metrics import auprc, controls, untrained


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2, 30)), np.arange(40) % 2
    X[y == 1, 1, 10:20] += 4
    return X, y


@pytest.fixture(scope="module")
def model(data):
    return small(latent_dim=6, sizes=(3,), learning_rate=1e-3, max_epochs=5).fit(*data)


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol=1e-5, atol=1e-6, err_msg=name)


class TestControls:
    def test_by_hand(self):
        X = [np.array([[1.0, 3, 5, 3]]), np.array([[2.0, np.nan, 7, 7, 4]])]
        found = controls(X, random_state=0)
        assert list(found) == ["random", "constant", "zscore", "difference"]
        assert found["constant"].tolist() == [[[1, 1, 1, 1, 0]], [[1, 1, 1, 1, 1]]]
        assert found["difference"].tolist() == [[[0, 2, 2, 2, 0]], [[0, 0, 0, 0, 3]]]
        np.testing.assert_allclose(
            found["zscore"][0, 0], np.array([2, 0, 2, 0, 0]) / np.std([1, 3, 5, 3])
        )
        spread = np.std([2, 7, 7, 4])
        np.testing.assert_allclose(found["zscore"][1, 0], np.array([3, 0, 2, 2, 1]) / spread)
        assert (found["random"][0, 0] > 0).tolist() == [True] * 4 + [False]
        assert (found["random"] < 1).all()

    def test_a_constant_channel_has_no_zscore(self):
        for X in (np.full((1, 1, 7), 0.1), np.array([[[0.1 + 0.2, 0.3, 0.3]]])):
            assert not controls(X, random_state=0)["zscore"].any()

    def test_huge_and_tiny_values(self):
        X = np.array([[[1.0, 2, 4]]])
        for factor in (1e300, 1e-300):
            scaled = controls(X * factor, random_state=0)["zscore"]
            np.testing.assert_allclose(scaled, controls(X, random_state=0)["zscore"])

    def test_a_case_depends_on_itself_alone(self, data, model):
        X = data[0][:6]
        whole = controls(X, 3, model)
        assert "untrained" in whole
        order = [4, 2, 0, 5, 1, 3]
        assert_same({k: v[order] for k, v in whole.items()}, controls(X[order], 3, model))
        assert_same({k: v[2:3] for k, v in whole.items()}, controls(X[2:3], 3, model))
        longer = np.pad(X, ((0, 0), (0, 0), (0, 5)), constant_values=np.nan)
        padded = controls(longer, 3, model)
        assert all(not scores[..., 30:].any() for scores in padded.values())
        assert_same(whole, {k: v[..., :30] for k, v in padded.items()})

    def test_missing_values_are_not_scored(self, data, model):
        X = data[0][:4].copy()
        X[:, 1, 5:9] = np.nan
        found = controls(X, 0, model, part="magnitude", method="additive")
        for name in ("untrained", "zscore", "difference"):
            assert not found[name][:, 1, 5:9].any(), name
            assert found[name][:, 0, 5:9].any(), name
        assert (found["constant"] == 1).all()

    def test_seeds(self, data, model):
        X = data[0][:3]
        assert_same(controls(X, 1, model), controls(X, 1, model))
        other = controls(X, 2, model)
        for name in ("random", "untrained"):
            assert not np.allclose(controls(X, 1, model)[name], other[name])

    def test_random_cases_differ(self):
        random = controls(np.arange(40.0).reshape(2, 1, 20), 0)["random"]
        assert len(np.unique(random)) == 40

    def test_random_scores_are_uniform(self):
        X = np.random.default_rng(0).normal(size=(200, 1, 50))
        random = controls(X, 0)["random"]
        assert random.mean() == pytest.approx(0.5, abs=0.01)
        assert random.var() == pytest.approx(1 / 12, abs=0.005)
        salient = np.zeros((200, 50), dtype=bool)
        salient[:, 10:20] = True
        assert auprc(random, salient, area="trapezoid").mean == pytest.approx(0.22, abs=0.03)

    def test_parts_and_options_reach_the_untrained_network(self, data, model):
        X = data[0][:3]
        found = {
            part: controls(X, 0, model, part)["untrained"]
            for part in ("positive", "negative", "net", "magnitude")
        }
        np.testing.assert_allclose(found["net"], found["positive"] - found["negative"])
        np.testing.assert_allclose(found["magnitude"], found["positive"] + found["negative"])
        for how in ({"method": "timesliver"}, {"smoothing": 0}, {"centred": True}):
            other = controls(X, 0, model, **how)["untrained"]
            assert not np.allclose(found["positive"], other), how


class TestUntrained:
    def test_same_settings_fresh_weights(self, data, model):
        before = model.logits(data[0])
        fresh = untrained(model, 7)
        weights, trained = fresh.network_.state_dict(), model.network_.state_dict()
        assert {k: w.shape for k, w in weights.items()} == {k: w.shape for k, w in trained.items()}
        assert fresh.symbolizers_ is model.symbolizers_
        assert not np.allclose(fresh.logits(data[0]), before)
        np.testing.assert_array_equal(model.logits(data[0]), before)
        np.testing.assert_array_equal(fresh.logits(data[0]), untrained(model, 7).logits(data[0]))

    def test_weights_are_those_before_training(self, data):
        X, y = data
        encoder = Segments(positional_encoding=True, learning_rate=1e-30, max_epochs=1)
        frozen = TimeSliverClassifier(encoder, random_state=5).fit(X, y)
        np.testing.assert_allclose(
            untrained(frozen, 5).logits(X), frozen.logits(X), rtol=1e-4, atol=1e-5
        )

    def test_it_explains_itself_against_nothing(self, data, model):
        fresh = untrained(model, 7)
        found, plain = fresh.explain(data[0]), fresh.explain(data[0], background=None)
        np.testing.assert_allclose(found.base + found.net.sum(1), found.logit, atol=1e-5)
        np.testing.assert_array_equal(found.positive_by_channel, plain.positive_by_channel)
        np.testing.assert_array_equal(found.base, plain.base)
        assert found.magnitude.any()

    def test_several_encoders_and_seeds(self, data):
        X, y = data
        encoders = [small_segments(sizes=(3,), max_epochs=1), small_segments(max_epochs=1)]
        model = TimeSliverClassifier(encoders, n_estimators=2, random_state=0).fit(X, y)
        fresh = untrained(model, 7)
        assert len(fresh.network_.parts) == len(model.network_.parts) == 4
        assert controls(X[:3], 7, model)["untrained"].any()
        assert not np.allclose(fresh.logits(X), model.logits(X))


class TestMistakes:
    def test_not_a_classifier(self):
        with pytest.raises(InvalidParameterError, match="must be a TimeSliverClassifier, got str"):
            controls(np.ones((1, 1, 5)), 0, "cnn")

    def test_not_fitted(self):
        with pytest.raises(NotFittedError, match="call fit first"):
            untrained(TimeSliverClassifier())

    def test_other_channels(self, model):
        with pytest.raises(InvalidInputError, match="5 channels"):
            controls(np.ones((1, 5, 30)), 0, model)

    def test_all_targets(self, data, model):
        with pytest.raises(InvalidParameterError, match="leave target out"):
            controls(data[0][:2], 0, model, target="all")

    def test_bad_seed_and_part(self, data, model):
        with pytest.raises(InvalidParameterError, match="random_state='x'"):
            controls(data[0][:2], "x")
        with pytest.raises(InvalidParameterError, match="part='best' is unknown"):
            controls(data[0][:2], 0, model, part="best")
