import numpy as np
import pytest

from classifier.conftest import bumps, small
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.metrics.faithfulness import (
    aopcr,
    deletion_curve,
    insertion_curve,
    logit_change,
)
from timesliver.metrics.masking import mask_points, top_points


def linear(X):
    """Two classes: the sum of all values, and nothing."""
    total = np.array([np.nansum(case) for case in X])
    return np.stack([total, 0 * total], axis=1)


@pytest.fixture(scope="module")
def model():
    X, y, _ = bumps(n_channels=2)
    return small().fit(X, y)


@pytest.fixture(scope="module")
def cases():
    return bumps(n_channels=2, seed=1)


# --- delta y -------------------------------------------------------------------------------------


def test_what_speaks_against_the_class_is_the_gain_of_masking_it():
    X = np.array([[5.0, -1.0, 4.0, -3.0], [5.0, 1.0, 4.0, 3.0]])
    against = np.maximum(-X, 0)
    found = logit_change(linear, X, against, 25)
    assert found.values[0] == 3
    assert found.values[1] in (-5, -1, -4, -3)  # nothing speaks against it, a point goes anyway
    assert found.mean == found.values.mean()
    assert logit_change(linear, X[:1], against[:1], 50).values == 4
    np.testing.assert_array_equal(logit_change(linear, X, against, 0).values, 0)
    np.testing.assert_array_equal(logit_change(linear, X, against, 100).values, -X.sum(axis=1))


def test_the_class_is_the_one_predicted_before():
    X = np.array([[-5.0, 1.0], [-5.0, -1.0]])  # sums below 0: the second class, always at 0
    scores = np.array([[1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(logit_change(linear, X, scores, 50).values, 0)

    def two(X):
        return np.stack([X.sum(axis=1), -X.sum(axis=1)], axis=1)

    np.testing.assert_array_equal(logit_change(two, X, scores, 50).values, [-5, -5])


@pytest.mark.parametrize("masking", ["zero", "no_symbol"])
def test_the_change_of_our_logits(model, cases, masking):
    X = cases[0]
    found = model.explain(X)
    change = logit_change(model, X, found, 20, masking)
    keep = ~top_points(found.negative, 20)
    after = model.logits(mask_points(X, keep, masking))[np.arange(len(X)), found.target]
    np.testing.assert_allclose(change.values, after - found.logit, atol=1e-6)
    np.testing.assert_array_equal(
        change.values, logit_change(model, X, found.negative, 20, masking).values
    )
    if masking == "zero":
        by_function = logit_change(model.logits, X, found, 20)
        np.testing.assert_allclose(change.values, by_function.values, atol=1e-6)
        other = logit_change(model, X, found, 20, "no_symbol")
        assert (np.abs(change.values - other.values) > 1e-3).any()


def test_negative_evidence_is_found(model, cases):
    X = cases[0]
    scores = model.explain(X, smoothing=0)  # smoothed, it reaches into what speaks for the class
    against = logit_change(model, X, scores, 20, "no_symbol").mean
    in_favour = logit_change(model, X, scores.positive, 20, "no_symbol").mean
    assert against > 0 > in_favour


# --- curves --------------------------------------------------------------------------------------

X4 = np.array([[4.0, 3.0, 2.0, 1.0]])
QUARTERS = [0, 25, 50, 75, 100]


def test_curves_known_beforehand():
    down = deletion_curve(linear, X4, X4, QUARTERS)
    np.testing.assert_array_equal(down.outputs, [[10, 6, 3, 1, 0]])
    np.testing.assert_array_equal(down.unchanged, [10])
    assert down.area.values == 3.75  # (8 + 4.5 + 2 + 0.5) / 4
    up = insertion_curve(linear, X4, X4, QUARTERS)
    np.testing.assert_array_equal(up.outputs, [[0, 4, 7, 9, 10]])
    assert up.area.values == 6.25
    assert deletion_curve(linear, X4, -X4, QUARTERS).area.values == 6.25
    assert deletion_curve(linear, X4, X4, [25, 50]).area.values == 4.5
    assert deletion_curve(linear, X4, X4).outputs.shape == (1, 21)


def test_spread_over_cases():
    X = np.repeat(X4, 2, axis=0) * [[1], [2]]
    curve = deletion_curve(linear, X, X, QUARTERS)
    np.testing.assert_array_equal(curve.mean, [15, 9, 4.5, 1.5, 0])
    np.testing.assert_allclose(curve.spread, np.array([10, 6, 3, 1, 0]) / np.sqrt(2))
    assert curve.area.mean == pytest.approx(1.5 * 3.75)


def test_unequal_lengths_and_lists():
    X = [np.array([4.0, 3.0]), np.array([4.0, 3.0, 2.0, 1.0])]
    scores = np.array([[4.0, 3.0, 9.0, 9.0], [4.0, 3.0, 2.0, 1.0]])
    curve = deletion_curve(linear, X, scores, [0, 50, 100])
    np.testing.assert_array_equal(curve.outputs, [[7, 3, 0], [10, 3, 0]])


def test_area_over_the_curve_relative_to_chance():
    # Drops of 4 and 7; in a random order 2.5 and 5. The mean over 500 orders has a standard
    # deviation of about 0.03.
    found = aopcr(linear, X4, X4, [25, 50], n_random=500)
    assert found.values == pytest.approx(5.5 - 3.75, abs=0.15)
    worst = aopcr(linear, X4, -X4, [25, 50], n_random=500)
    assert worst.values == pytest.approx(2 - 3.75, abs=0.15)
    flat = np.ones((3, 8))
    np.testing.assert_array_equal(aopcr(linear, flat, flat).values, 0)
    same = [aopcr(linear, X4, X4, random_state=5).values for _ in range(2)]
    np.testing.assert_array_equal(*same)


@pytest.mark.parametrize("masking", ["zero", "no_symbol"])
def test_good_scores_do_better_than_their_reverse(model, cases, masking):
    X, _, where = cases
    scores = model.explain(X)
    how = {"percents": range(0, 101, 10), "masking": masking}
    for ranked_by in (scores.net, where[:, 0].astype(float)):
        for curve, better in ((deletion_curve, -1), (insertion_curve, 1)):
            good = curve(model, X, ranked_by, **how).area.mean
            bad = curve(model, X, -ranked_by, **how).area.mean
            assert better * (good - bad) > 0.1
    assert aopcr(model, X, scores, masking=masking).mean > 0

    ends = deletion_curve(model, X, scores, [0, 100], masking=masking).outputs
    np.testing.assert_allclose(ends[:, 0], model.predict_proba(X).max(axis=1), atol=1e-6)
    start = insertion_curve(model, X, scores, [0, 100], masking=masking).outputs
    np.testing.assert_allclose(start[:, ::-1], ends, atol=1e-6)


def test_any_object_with_the_method_will_do():
    class Model:
        def predict_proba(self, X):
            return linear(X) / 100

    assert deletion_curve(Model(), X4, X4, QUARTERS).unchanged == 0.1
    with pytest.raises(InvalidParameterError, match="must have the method logits"):
        deletion_curve(Model(), X4, X4, QUARTERS, output="logit")


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", [deletion_curve, insertion_curve, aopcr])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"percents": []}, "at least 2 percentages"),
        ({"percents": [50]}, "at least 2 percentages"),
        ({"percents": [50, 50]}, "must increase"),
        ({"percents": [-5, 50]}, "number, at least 0 and at most 100; got -5"),
        ({"scores": X4 * np.nan}, "case 0, time point 0 is nan"),
        ({"scores": X4[:, :3]}, r"scores of shape \(1, 3\) do not fit"),
        ({"output": "loss"}, "output='loss' is unknown"),
        ({"masking": "mean"}, "masking='mean' is unknown"),
        ({"masking": "no_symbol"}, "use masking='zero' for function"),
        ({"model": 3}, "must have the method"),
        ({"model": lambda X: X.sum(axis=1)}, r"must return numbers of shape \(1, n_classes\)"),
        ({"model": lambda X: X * np.nan}, "returned NaN"),
    ],
)
def test_mistakes(measure, changed, message):
    good = {"model": linear, "X": X4, "scores": X4, "percents": QUARTERS}
    with pytest.raises((InvalidInputError, InvalidParameterError), match=message):
        measure(**(good | changed))


def test_mistakes_of_logit_change(model, cases):
    with pytest.raises(InvalidParameterError, match="at most 100; got 101"):
        logit_change(linear, X4, X4, 101)
    with pytest.raises(InvalidInputError, match="time point 0 is nan"):
        logit_change(linear, X4, X4 * np.nan, 5)
    X = cases[0]
    with pytest.raises(InvalidInputError, match="must explain the predicted classes"):
        logit_change(model, X, model.explain(X, target=1 - model.predict(X)), 5)
    with pytest.raises(InvalidParameterError, match="n_random must be"):
        aopcr(linear, X4, X4, n_random=0)
