import numpy as np
import pytest
from sklearn.linear_model import Ridge

from timesliver.explainers import create
from timesliver.explainers.inputs import case_seed
from timesliver.explainers.surrogate import count_distinct


def logits_of(function):
    return lambda X: np.stack([function(X), -function(X)], axis=1)


def test_counting_equals_repeating():
    rng = np.random.default_rng(0)
    kept = rng.random((200, 3)) < 0.5
    output = kept @ np.array([1.0, -2.0, 0.5]) + kept[:, 0] * kept[:, 1]
    rows, counts = count_distinct(kept)
    assert len(rows) == 8
    assert counts.sum() == 200
    by_row = rows @ np.array([1.0, -2.0, 0.5]) + rows[:, 0] * rows[:, 1]
    expected = Ridge().fit(kept, output).coef_
    found = Ridge().fit(rows, by_row, sample_weight=counts).coef_
    np.testing.assert_allclose(found, expected)


def test_whole_method_against_its_equations():
    """One grid (window 1), the same draws, and the regression by scikit-learn."""
    rng = np.random.default_rng(4)
    x, weights = rng.normal(size=12), rng.normal(size=12)

    def f(X):
        return (X[:, 0] * weights).sum(1) + X[:, 0, 3] * X[:, 0, 7]

    explainer = create("lime", logits_of(f), window=1, n_samples=300, random_state=9)
    found = explainer.explain(x[None], target=0)
    seed = case_seed(explainer.model.read(x[None]), 0, explainer.seed)
    kept = np.random.default_rng(seed).random((300, 12)) < 0.5
    closeness = np.exp(-((1 - kept.mean(1)) ** 2) / (2 * 0.25**2))
    expected = Ridge(alpha=1.0).fit(kept, f((kept * x)[:, None]), sample_weight=closeness).coef_
    np.testing.assert_allclose(found.net[0], expected, atol=1e-4)


def test_coefficients_of_a_linear_model_are_proportional():
    """A ridge shrinks, and little with many samples; a point has the sum over its segment."""
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(3, 2, 40)), rng.normal(size=(2, 40))
    f = logits_of(lambda X: (X * weights).sum((1, 2)) + 3)
    found = create("lime", f, window=10, n_samples=20000).explain(X, target=0)
    parts = (X * weights).sum(1)
    expected = np.zeros((3, 40))
    for shift in (0, 2, 5, 7):
        segment = (np.arange(40) + (10 - shift) % 10) // 10
        sums = np.stack([np.bincount(segment, part) for part in parts])
        expected += sums[:, segment] / 4
    np.testing.assert_allclose(found.net, expected, rtol=0.02, atol=0.02)
    against = create("lime", f, window=10, n_samples=20000).explain(X, target=1)
    np.testing.assert_allclose(against.net, -found.net, atol=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_single_feature(sign):
    X = np.random.default_rng(1).normal(size=(2, 1, 40))
    X[:, 0, 17] = 2.0
    found = create("lime", logits_of(lambda X: sign * X[:, 0, 17]), window=1).explain(X, target=0)
    assert (np.argmax(sign * found.net, axis=1) == 17).all()
    others = np.delete(found.net, 17, axis=1)
    np.testing.assert_allclose(others, 0, atol=0.15)
    np.testing.assert_allclose(found.net[:, 17], sign * 2, rtol=0.15)


def test_overlapping_grids_are_finer_than_a_segment():
    X = np.ones((1, 1, 40))
    found = create("lime", logits_of(lambda X: X[:, 0, 18]), window=8).explain(X, target=0)
    best = np.flatnonzero(found.net[0] > 0.95 * found.net[0].max())
    assert 18 in best
    assert len(best) == 2  # a quarter of the window
