import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from classifier.conftest import bumps, small
from timesliver.attribution import Attribution
from timesliver.classifier import TimeSliverClassifier
from timesliver.datasets import Dataset
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.metrics.masking import top_points
from timesliver.metrics.unmasking import (
    UnmaskingCurve,
    predicted_scores,
    unmasking_area,
    unmasking_curve,
)
from timesliver.series import PaddedSeries, as_series


def flatten(X):
    return np.asarray(X).reshape(len(X), -1)


def nearest_neighbour():
    return make_pipeline(FunctionTransformer(flatten), KNeighborsClassifier(1))


class SignOfSum:
    """Says 1 if the values add up to more than 0; has nothing of scikit-learn."""

    def fit(self, X, y):
        assert not hasattr(self, "seen"), "a copy was used twice"
        self.seen = X
        return self

    def predict(self, X):
        return np.array([np.nansum(case) for case in X]) > 0


class Parity(BaseEstimator):
    """Says the parity of its seed."""

    def __init__(self, random_state=None, n_jobs=None):
        self.random_state, self.n_jobs = random_state, n_jobs

    def fit(self, X, y):
        assert self.n_jobs == 3
        return self

    def predict(self, X):
        return np.full(len(X), self.random_state % 2)


def one_against_nine(n_cases=20):
    """One point says the class; each of nine others says half as much of the opposite."""
    y = np.arange(n_cases) % 2
    sign = np.where(y == 1, 1.0, -1.0)
    X = np.tile(-0.5 * sign[:, None], (1, 10))
    places = np.random.default_rng(0).integers(0, 10, n_cases)
    X[np.arange(n_cases), places] = sign
    return X, y


def test_a_curve_known_beforehand():
    X, y = one_against_nine()
    scores = np.abs(X)
    curve = unmasking_curve(SignOfSum(), (X, y), (X, y), scores, scores, [10, 20, 30, 40, 100])
    # sums of the kept points: 1, 0.5, 0 (which is no "1"), -0.5, -3.5 times the sign of the class
    np.testing.assert_array_equal(curve.percents, [0, 10, 20, 30, 40, 100])
    np.testing.assert_array_equal(curve.mean, [0, 1, 1, 0.5, 0, 0])
    assert curve.accuracies.shape == (1, 1, 6)
    assert unmasking_area(curve, 20).mean == 15
    assert unmasking_area(curve, 100).mean == unmasking_area(curve).mean == 25
    assert unmasking_area(curve, 15).mean == 10  # between two runs
    assert unmasking_area(curve, 5).mean == 1.25
    assert np.isnan(curve.spread).all()
    assert curve.agreements is None  # an array does not say which class it explains


def test_how_often_the_retrained_model_names_the_explained_class():
    X, y = one_against_nine()
    labels = y == 1
    explained = np.where(np.arange(len(y)) < 5, 1 - y, y)  # of another model, wrong on five of 20
    scores = Attribution(
        positive_by_channel=np.abs(X)[:, None],
        negative_by_channel=np.zeros_like(X)[:, None],
        logit=np.zeros(len(X)),
        base=np.zeros(len(X)),
        target=explained,
        classes=np.array([False, True]),
        method="made up",
    )
    curve = unmasking_curve(SignOfSum(), (X, labels), (X, labels), np.abs(X), scores, [10, 100])
    np.testing.assert_array_equal(curve.mean, [0, 1, 0])
    np.testing.assert_array_equal(curve.agreements, [[[np.nan, 0.75, 0.25]]])


def test_backbones_and_seeds():
    X, y = one_against_nine()
    y[0] = 1  # 11 of 20 cases
    scores = np.abs(X)
    curve = unmasking_curve(
        [Parity(n_jobs=3), SignOfSum()], (X, y), (X, y), scores, scores, [0, 20], seeds=[4, 7, 9]
    )
    assert curve.accuracies.shape == (2, 3, 2)
    np.testing.assert_allclose(curve.accuracies[0, :, 1], [9 / 20, 11 / 20, 11 / 20])
    np.testing.assert_allclose(curve.accuracies[1, :, 1], 19 / 20)
    by_seed = np.array([28, 30, 30]) / 40
    assert curve.mean[1] == pytest.approx(by_seed.mean())
    assert curve.spread[1] == pytest.approx(by_seed.std(ddof=1))
    area = unmasking_area(curve, 20)
    np.testing.assert_allclose(area.values, 10 * by_seed)


def test_what_is_true_of_no_points_is_a_choice():
    X, _ = one_against_nine()
    y_train, scores = np.where(np.arange(20) < 12, 1, 0), np.abs(X)
    y_test = np.where(np.arange(20) < 5, 1, 0)
    how = SignOfSum(), (X, y_train), (X, y_test), scores, scores, [50]
    assert unmasking_curve(*how).mean[0] == 0
    assert unmasking_curve(*how, at_zero="majority").mean[0] == 0.25
    tied = SignOfSum(), (X, np.arange(20) % 4), (X, y_test), scores, scores, [50]
    assert unmasking_curve(*tied, at_zero="majority").mean[0] == 0.25


def test_other_estimators_get_zeros_in_the_form_of_the_input():
    X, y = one_against_nine()
    seen = []

    class Spy(SignOfSum):
        def fit(self, X, y):
            seen.append(X)
            return self

    forms = [X, X[:, None], list(X), [case[None] for case in X], as_series(X)]
    for form in forms:
        unmasking_curve(Spy(), (form, y), (form, y), np.abs(X), np.abs(X), [10])
    kept = np.where(np.abs(X) == 1, X, 0)
    assert [np.shape(s) for s in seen] == [
        (20, 10),
        (20, 1, 10),
        (20, 10),
        (20, 1, 10),
        (20, 1, 10),
    ]
    assert isinstance(seen[2], list)
    for given in seen:
        np.testing.assert_array_equal(np.reshape(given, X.shape), kept)
    data = Dataset(X[:, None], y)
    unmasking_curve(Spy(), data, data, np.abs(X), np.abs(X), [10])
    np.testing.assert_array_equal(seen[-1][:, 0], kept)


def test_unequal_lengths():
    X = [np.array([1.0, -9.0]), np.array([-1.0, 9.0, 9.0, 9.0])] * 3
    scores = np.tile([[9.0, 1.0, 99.0, 99.0], [9.0, 1.0, 1.0, 1.0]], (3, 1))
    y = [1, 0] * 3
    curve = unmasking_curve(SignOfSum(), (X, y), (X, y), scores, scores, [25, 100])
    np.testing.assert_array_equal(curve.mean, [0, 1, 0])


def test_our_classifiers_get_points_without_a_symbol():
    X, y, where = bumps()
    scores = where[:, 0].astype(float)
    seen = []

    class Spy(TimeSliverClassifier):
        def fit(self, X, y):
            seen.append(X)
            return super().fit(X, y)

        def predict(self, X):
            seen.append(X)
            return super().predict(X)

    backbone = Spy(**small(max_epochs=10).get_params(deep=False))
    curve = unmasking_curve(backbone, (X, y), (X, y), scores, scores, [20])
    assert curve.mean[1] > 0.8
    for given in seen:
        assert isinstance(given, PaddedSeries)
        np.testing.assert_array_equal(given.observed, where)
        np.testing.assert_array_equal(given.values, np.where(where, X, 0))
    assert not hasattr(backbone, "network_")
    again = unmasking_curve(backbone, (X, y), (X, y), scores, scores, [20])
    np.testing.assert_array_equal(curve.accuracies, again.accuracies)


def test_our_classifiers_with_unequal_lengths():
    X, y, where = bumps()
    cases = [case[:, : 20 + i % 10] for i, case in enumerate(X)]
    scores = where[:, 0, :29].astype(float)
    curve = unmasking_curve(
        small(max_epochs=3), (cases, y), (cases, y), scores, scores, [10, 50], seeds=[0, 1]
    )
    assert curve.accuracies.shape == (1, 2, 3)
    assert ((curve.accuracies >= 0) & (curve.accuracies <= 1)).all()


def test_good_scores_beat_random_ones():
    X, y, where = bumps(n_cases=200)
    train, test = (X[:100], y[:100]), (X[100:], y[100:])
    backbones = [small(max_epochs=10), nearest_neighbour()]
    model = small().fit(*train)
    good = predicted_scores(model, X)
    noise = np.random.default_rng(0).random(good.shape)
    areas = [
        unmasking_area(unmasking_curve(backbones, train, test, s[:100], s[100:], [10, 20]), 20).mean
        for s in (good, noise, where[:, 0].astype(float))
    ]
    assert areas[0] > areas[1] + 1
    assert areas[2] > areas[1] + 1


# --- labels must not leak ------------------------------------------------------------------------

N_TEST = 200
# Right guesses on noise are binomial with p = 1/2; more than four standard deviations off has
# probability 6e-5.
CHANCE = 4 * np.sqrt(0.25 / N_TEST)


@pytest.fixture(scope="module")
def noise():
    # Of the seeds 1 to 4 all stay at chance (0.42 to 0.57). With true labels our backbone reaches
    # 0.70 and 0.78 for seed 1, and more than 0.9 for the others.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100 + N_TEST, 1, 40))
    y = rng.permutation(100 + N_TEST) % 2
    model = small(max_epochs=60, learning_rate=0.02, validation_fraction=0).fit(X[:100], y[:100])
    assert model.score(X[:100], y[:100]) > 0.65  # it has learned some labels by heart
    return model, X, y


def retrained(X, y, scores):
    backbones = [small(learning_rate=0.02), nearest_neighbour()]
    train, test = (X[:100], y[:100]), (X[100:], y[100:])
    return unmasking_curve(backbones, train, test, scores[:100], scores[100:], [10, 30])


def test_on_noise_retraining_stays_at_chance(noise):
    model, X, y = noise
    curve = retrained(X, y, predicted_scores(model, X))
    np.testing.assert_allclose(curve.accuracies[:, 0, 1:], 0.5, atol=CHANCE)


def test_on_noise_scores_of_true_labels_would_not(noise):
    """The counter-test: the control above can fail."""
    model, X, y = noise
    curve = retrained(X, y, model.explain(X, target=y).positive)
    assert (curve.accuracies[0, 0, 1:] > 0.5 + CHANCE).all()
    assert curve.accuracies[0, 0, 2] > 0.75


def test_scores_of_true_labels_are_refused_where_it_can_be_seen(noise):
    model, X, y = noise
    leaky, honest = model.explain(X, target=y), model.explain(X)
    for scores in ((leaky, honest), (honest, leaky)):
        with pytest.raises(InvalidInputError, match="must explain the predicted classes"):
            unmasking_curve(SignOfSum(), (X, y), (X, y), *scores, [10])
    with pytest.raises(InvalidParameterError, match="takes no target"):
        predicted_scores(model, X, target=y)


def test_broken_ties_do_not_tell_the_number_of_a_case():
    y = np.arange(N_TEST) % 2
    X, scores = np.ones((N_TEST, 40)), np.zeros((N_TEST, 40))
    model = KNeighborsClassifier(1)
    curve = unmasking_curve(model, (X, y), (X, y), scores, scores, [30])
    assert abs(curve.mean[1] - 0.5) < CHANCE
    alike = top_points(scores, 30).astype(float)
    assert model.fit(alike, y).score(alike, y) == 1  # as it would be with one seed for both


def test_predicted_scores_are_those_of_explain(noise):
    model, X, _ = noise
    one = model.explain(X[:5], method="additive")
    for part in ("positive", "negative", "net", "magnitude"):
        found = predicted_scores(model, X[:5], part, method="additive")
        np.testing.assert_allclose(found, getattr(one, part))
    with pytest.raises(InvalidParameterError, match="part='up'"):
        predicted_scores(model, X[:5], "up")


# --- bad input -----------------------------------------------------------------------------------

X, y = one_against_nine()
good = {
    "estimators": SignOfSum(),
    "train": (X, y),
    "test": (X, y),
    "scores_train": np.abs(X),
    "scores_test": np.abs(X),
    "percents": [10, 20],
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"percents": []}, "at least 1 percentages"),
        ({"percents": [0]}, "one above 0"),
        ({"percents": [10, 101]}, "number, at least 0 and at most 100; got 101"),
        ({"percents": [20, 10]}, "must increase"),
        ({"scores_train": np.abs(X)[:5]}, r"scores of shape \(5, 10\) do not fit 20 series"),
        ({"scores_test": X[:, None]}, r"got float64 of shape \(20, 1, 10\)"),
        ({"scores_test": X * np.nan}, "case 0, time point 0 is nan"),
        ({"train": X}, "train must be a pair"),
        ({"test": (X, y[:4])}, r"test has 20 series but labels of shape \(4,\)"),
        ({"test": Dataset(X[:, None])}, r"labels of shape \(\)"),
        ({"estimators": []}, "objects with fit and predict, got None"),
        ({"estimators": SignOfSum}, "objects with fit and predict"),
        ({"estimators": [SignOfSum(), 3]}, "objects with fit and predict, got 3"),
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [-1]}, "a seed must be a whole number"),
        ({"at_zero": "half"}, "at_zero='half' is unknown"),
    ],
)
def test_mistakes(changed, message):
    with pytest.raises((InvalidInputError, InvalidParameterError), match=message):
        unmasking_curve(**(good | changed))


def test_a_model_that_predicts_no_labels():
    class Wrong(SignOfSum):
        def predict(self, X):
            return np.zeros((len(X), 2))

    with pytest.raises(InvalidInputError, match=r"Wrong predicted an array of shape \(20, 2\)"):
        unmasking_curve(**(good | {"estimators": Wrong()}))


def test_bad_curves():
    with pytest.raises(InvalidParameterError, match="at least 2 percentages"):
        UnmaskingCurve(np.array([]), np.zeros((1, 1, 0)))
    with pytest.raises(InvalidInputError, match=r"shape \(n_backbones, n_seeds, 2\)"):
        UnmaskingCurve(np.array([0.0, 10.0]), np.zeros((1, 2)))
    with pytest.raises(InvalidInputError, match="finite"):
        UnmaskingCurve(np.array([0.0, 10.0]), np.full((1, 1, 2), np.nan))
    curve = unmasking_curve(**good)
    for upto in (0, 30):
        with pytest.raises(InvalidParameterError, match="goes from 0 to 20 %"):
            unmasking_area(curve, upto)
    with pytest.raises(InvalidParameterError, match="at most 100; got 200"):
        unmasking_area(curve, 200)
    late = UnmaskingCurve(np.array([10.0, 20.0]), np.ones((1, 1, 2)))
    with pytest.raises(InvalidParameterError, match="goes from 10 to 20 %"):
        unmasking_area(late, 20)
