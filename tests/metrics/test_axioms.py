"""Closed-form explainers of a linear model, each of which breaks one axiom."""

from dataclasses import replace

import numpy as np
import pytest

from classifier.conftest import small
from timesliver import Attribution
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.metrics import Axioms, axioms

# Channel 2 plays no part, and there are three classes.
WEIGHT = np.array([[1.0, -2.0, 0.0], [-1.0, 0.5, 0.0], [0.3, 0.4, 0.0]])  # (C, v)
BIAS = np.array([0.5, -0.2, 0.1])


def logits(X):
    return np.nan_to_num(X).sum(axis=2) @ WEIGHT.T + BIAS


def shares(X, target=None):
    """Explain the linear model exactly."""
    y = logits(X)
    target = y.argmax(axis=1) if target is None else np.full(len(X), target)
    share = np.nan_to_num(X) * WEIGHT[target][..., None]
    return Attribution(
        share.clip(0),
        (-share).clip(0),
        y[np.arange(len(X)), target],
        BIAS[target],
        target,
        np.arange(3),
        "shares",
    )


def changed(change):
    """Explain with scores that are changed: positive, negative and series in, both out."""

    def explain(X):
        exact = shares(X)
        positive, negative = change(exact.positive_by_channel, exact.negative_by_channel, X)
        return replace(exact, positive_by_channel=positive, negative_by_channel=negative)

    return explain


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(12, 3, 40))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2, 32)).astype(np.float32), np.arange(40) % 2
    X[y == 1, 1, 10:20] += 4
    return X, y


class TestExactShares:
    def test_all_but_scale(self, X):
        found = axioms(shares, logits, X, n_probes=1000)
        assert found.completeness < 1e-12
        assert (found.sensitivity, found.dummy, found.symmetry) == (0, 0, 0)
        # shares grow with the factor, by |1 - 3| / (1 + 3)
        assert axioms(lambda X: shares(X, 1), logits, X, factor=3).scale == pytest.approx(0.5)

    def test_unequal_lengths_and_missing_values(self, X):
        X[::2, :, 25:] = np.nan
        X[1, 0, 3:20] = np.nan
        found = axioms(shares, logits, X, n_probes=1000)
        assert found.completeness < 1e-12
        assert (found.sensitivity, found.dummy, found.symmetry) == (0, 0, 0)

    def test_objects_with_the_verbs(self, X):
        class Both:
            explain = staticmethod(shares)
            logits = staticmethod(logits)

        assert axioms(Both(), Both(), X) == axioms(shares, logits, X)

    def test_repeatable(self, X):
        random = changed(lambda positive, negative, X: (positive**3, negative))
        assert axioms(random, logits, X, n_probes=5) == axioms(random, logits, X, n_probes=5)
        state = np.random.get_state()[1].copy()  # noqa: NPY002
        axioms(shares, logits, X, random_state=None)
        np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


class TestBrokenExplainers:
    def test_completeness(self, X):
        doubled = changed(lambda positive, negative, X: (2 * positive, 2 * negative))
        exact = shares(X)
        expected = np.abs(exact.logit - exact.base).sum() / np.abs(exact.logit).sum()
        assert axioms(doubled, logits, X).completeness == pytest.approx(expected)

    def test_completeness_of_a_model_that_is_silent(self, X):
        def zeros(X):
            return np.zeros((len(X), 3))

        found = axioms(lambda X: replace(shares(X), base=BIAS[shares(X).target] + 2), zeros, X)
        exact = shares(X)
        assert found.completeness == pytest.approx(np.abs(exact.logit + 2).mean())

    def test_a_channel_without_scores(self, X):
        def drop(positive, negative, X):
            keep = np.array([1, 0, 1])[:, None]
            return positive * keep, negative * keep

        found = axioms(changed(drop), logits, X, n_probes=1000)
        # most weight of the classes lies on the channel that was dropped
        assert 0.3 < found.sensitivity < 0.7
        assert found.dummy == 0

    def test_scores_on_a_channel_without_part(self, X):
        def add(positive, negative, X):
            positive = positive.copy()
            positive[:, 2] = (positive + negative).sum(axis=(1, 2))[:, None] / positive.shape[2]
            return positive, negative

        found = axioms(changed(add), logits, X, n_probes=1000)
        assert found.dummy == pytest.approx(0.5)
        assert found.sensitivity == 0

    def test_scores_on_missing_values(self, X):
        X[:, 0, 20:] = np.nan

        def add(positive, negative, X):
            return np.where(np.isnan(X), 1.0, positive), negative

        assert axioms(changed(add), logits, X, n_probes=1000).dummy > 0.1
        assert axioms(shares, logits, X, n_probes=1000).dummy == 0

    def test_the_larger_of_two_changes_counts(self):
        """Noise has the same sign as a value in half of the probes, twice so in a quarter."""

        def positives(X):
            count = (X > 0).sum(axis=(1, 2))
            return np.column_stack([count, -count, 0 * count])

        def everywhere(X):
            return replace(shares(X, 0), positive_by_channel=np.ones(X.shape))

        X = np.random.default_rng(0).normal(size=(200, 3, 20))
        X -= X.mean(axis=2, keepdims=True)
        found = axioms(everywhere, positives, X, n_probes=60)
        assert found.dummy == pytest.approx(0.25, abs=0.05)

    def test_scores_that_know_the_time(self, X):
        def fade(positive, negative, X):
            weight = np.arange(X.shape[2]) < 20
            return positive * weight, negative * weight

        # the second quarter has its scores, the third has none
        assert axioms(changed(fade), logits, X).symmetry == 1

        def tilt(positive, negative, X):
            weight = np.repeat([1.0, 1, 3, 1], 10)
            return positive * weight, negative * weight

        assert axioms(changed(tilt), logits, X).symmetry == pytest.approx(2 / 4)

    def test_scale(self, X):
        def order(positive, negative, X):
            size = np.abs(X) / np.abs(X).max(axis=(1, 2), keepdims=True)
            return size, 0 * size

        assert axioms(changed(order), logits, X).scale == pytest.approx(0, abs=1e-12)

    def test_scale_without_a_case_to_compare(self, X):
        def other_class(X):
            return shares(X, 0 if np.abs(X).max() < 5 else 1)

        assert np.isnan(axioms(other_class, logits, X, factor=100).scale)

    def test_no_scores_at_all(self, X):
        silent = changed(lambda positive, negative, X: (0 * positive, 0 * negative))
        found = axioms(silent, logits, X)
        assert found.sensitivity == 1
        assert (found.dummy, found.symmetry, found.scale) == (0, 0, 0)


class TestTimeSliver:
    def fitted(self, data, positional_encoding):
        how = {"positional_encoding": positional_encoding, "learning_rate": 1e-3}
        return small(latent_dim=6, sizes=(3,), max_epochs=8, **how).fit(*data)

    def test_additive_and_max_scaled(self, data):
        model = self.fitted(data, False)
        additive = axioms(model, model, data[0])
        assert additive.completeness < 1e-5
        assert additive.symmetry < 1e-5
        assert additive.sensitivity < 0.05
        assert additive.dummy < 0.05
        assert additive.scale > 0.01
        scaled = axioms(lambda X: model.explain(X, method="timesliver"), model, data[0])
        assert scaled.completeness > 0.5
        assert scaled.symmetry < 1e-5

    @pytest.mark.parametrize("background", ["training", "series", None])
    @pytest.mark.parametrize("smoothing", ["auto", 0])
    def test_shares_are_complete_against_any_background(self, data, background, smoothing):
        model = self.fitted(data, False)
        how = {"background": background, "smoothing": smoothing}
        assert axioms(lambda X: model.explain(X, **how), model, data[0]).completeness < 1e-5

    def test_positional_encoding_breaks_symmetry(self, data):
        model = self.fitted(data, True)
        found = axioms(model, model, data[0])
        assert found.completeness < 1e-5
        assert found.symmetry > 0.01

    def test_centred_scores_belong_to_centred_logits(self, data):
        model = self.fitted(data, False)

        def explain(X):
            return model.explain(X, method="additive", centred=True)

        def centred(X):
            return model.logits(X) - model.logits(X).mean(axis=1, keepdims=True)

        assert axioms(explain, centred, data[0]).completeness < 1e-5
        assert axioms(explain, model, data[0]).completeness > 1e-3


class TestMistakes:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"factor": 0}, "factor must be a number, above 0"),
            ({"factor": "2"}, "factor must be a number, above 0"),
            ({"factor": np.nan}, "factor must be a number, above 0"),
            ({"n_probes": 0}, "n_probes must be a whole number"),
            ({"random_state": "x"}, "random_state"),
            ({"explainer": 3}, "explainer must be a function"),
            ({"model": 3}, "model must be a function"),
        ],
    )
    def test_settings(self, X, settings, message):
        with pytest.raises(InvalidParameterError, match=message):
            axioms(**{"explainer": shares, "model": logits, "X": X} | settings)

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"explainer": lambda X: X}, "must return an Attribution, got ndarray"),
            ({"explainer": lambda X: shares(X[:3])}, r"shape \(3, 3, 40\) for series of shape"),
            (
                {"explainer": changed(lambda p, n, X: (p * np.nan, n))},
                "scores that are not finite",
            ),
            ({"model": lambda X: logits(X)[:, 0]}, r"shape \(12, n_classes\), got shape \(12,\)"),
            ({"model": lambda X: logits(X) * np.nan}, "finite logits"),
            ({"model": lambda X: logits(X)[:, :2]}, "2 logits, but the explainer knows 3"),
            ({"X": np.ones((2, 3, 3))}, "at least 4 time points, got at most 3"),
            ({"X": np.ones(3)}, "series must have shape"),
        ],
    )
    def test_input(self, X, settings, message):
        with pytest.raises(InvalidInputError, match=message):
            axioms(**{"explainer": shares, "model": logits, "X": X} | settings)


def test_a_result_is_a_plain_record():
    assert Axioms(0, 1, 2, 3, 4) == Axioms(0, 1, 2, 3, 4)
