from itertools import product
from math import comb, factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from timesliver.explainers import create
from timesliver.explainers.kernel_shap import draw_coalitions, fit_shapley


def shapley_values(value, n_parts):
    """Return the values by their definition, over all sets of the other parts."""
    found = np.zeros(n_parts)
    for subset in product((False, True), repeat=n_parts):
        kept = np.array(subset)
        s = int(kept.sum())
        for k in np.flatnonzero(~kept):
            weight = factorial(s) * factorial(n_parts - s - 1) / factorial(n_parts)
            found[k] += weight * (value(kept | (np.arange(n_parts) == k)) - value(kept))
    return found


def crooked(X):
    """Logits that are far from additive."""
    x = X.reshape(len(X), -1)
    score = np.tanh(x[:, ::3].sum(1)) + x[:, 1] * x[:, -1] + np.maximum(x[:, 2::5], 0).prod(1) + 0.7
    return np.stack([score, x.max(1)], axis=1)


@given(seed=st.integers(0, 10**6), n_parts=st.integers(1, 8))
@hypothesis_settings(max_examples=25, deadline=None)
def test_regression_over_all_sets_gives_shapley_values(seed, n_parts):
    rng = np.random.default_rng(seed)
    table = {subset: rng.normal() for subset in product((False, True), repeat=n_parts)}
    empty, full = table[(False,) * n_parts], table[(True,) * n_parts]
    kept, weights = draw_coalitions(n_parts, 2**n_parts, rng)
    gains = np.array([table[tuple(row)] - empty for row in kept.tolist()])
    found = fit_shapley(kept, gains, weights, full - empty)
    expected = shapley_values(lambda row: table[tuple(row.tolist())], n_parts)
    np.testing.assert_allclose(found, expected, atol=5e-3)
    np.testing.assert_allclose(found.sum(), full - empty, atol=1e-10)


def test_coalitions_come_in_pairs_by_the_shapley_kernel():
    kept, weights = draw_coalitions(12, 4000, np.random.default_rng(0))
    assert weights.sum() == 4000
    assert len(np.unique(kept, axis=0)) == len(kept)
    counted = {tuple(row): w for row, w in zip(kept.tolist(), weights, strict=True)}
    for row, weight in counted.items():
        assert counted[tuple(not k for k in row)] == weight
    sizes = np.arange(1, 12)
    expected = np.array([11 / (s * (12 - s)) for s in sizes])
    shares = np.bincount(kept.sum(1), weights, minlength=13)[1:12] / 4000
    np.testing.assert_allclose(shares, expected / expected.sum(), atol=0.02)


def test_all_coalitions_where_they_are_few():
    kept, weights = draw_coalitions(6, 62, np.random.default_rng(0))
    assert len(np.unique(kept, axis=0)) == len(kept) == 62
    sizes = kept.sum(1)
    kernel = np.array([5 / (comb(6, s) * s * (6 - s)) for s in sizes.tolist()])
    np.testing.assert_allclose(weights / weights[0], kernel / kernel[0])


@pytest.mark.parametrize("n_channels", [1, 3])
def test_exact_shapley_values_of_segments(n_channels):
    """Windows of 6 cut 36 points into 6 or 7 segments; 4 x 126 samples are all their sets."""
    X = np.random.default_rng(2).normal(size=(2, n_channels, 36)).astype(np.float32)
    found = create("kernel_shap", crooked, window=6, n_samples=504).explain(X, target=0)
    for x, net in zip(X, found.net, strict=True):
        expected = np.zeros(36)
        for shift in (0, 1, 3, 4):
            segment = (np.arange(36) + (6 - shift) % 6) // 6
            K = segment[-1] + 1
            values = shapley_values(lambda kept: crooked((x * kept[segment])[None])[0, 0], K)  # noqa: B023
            expected += (values / np.bincount(segment))[segment] / 4
        np.testing.assert_allclose(net, expected, atol=2e-4)


@pytest.mark.parametrize("per_channel", [False, True])
def test_scores_sum_to_what_the_series_adds(per_channel):
    X = 3 * np.random.default_rng(0).normal(size=(5, 2, 50)).astype(np.float32)
    options = {"per_channel": per_channel, "random_state": 1}
    for n_samples in (8, 60, 500):
        found = create("kernel_shap", crooked, n_samples=n_samples, **options).explain(X)
        zero = crooked(np.zeros_like(X))[np.arange(5), found.target]
        np.testing.assert_allclose(found.base, zero, atol=1e-6)
        np.testing.assert_allclose(found.net.sum(1), found.logit - zero, atol=1e-3)


@pytest.mark.parametrize("length", [1, 2, 3, 11])
@pytest.mark.parametrize("setting", ["fair", "paper"])
def test_short_series_are_shared_out_too(length, setting):
    if setting == "paper":
        pytest.importorskip("captum")
    X = np.random.default_rng(0).normal(size=(1, 1, length)) + 1

    def logits(X):
        return np.stack([X.sum((1, 2)) ** 2, X[:, 0, 0]], axis=1)

    found = create("kernel_shap", logits, setting=setting).explain(X, target=0)
    np.testing.assert_allclose(found.net.sum(1) + found.base, found.logit, rtol=1e-3)


def test_linear_model_by_few_samples():
    """Any sets that tell the segments apart give the values of an additive model."""
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(3, 2, 200)), rng.normal(size=(2, 200))

    def logits(X):
        return np.stack([(X * weights).sum((1, 2)) + 4, np.zeros(len(X))], axis=1)

    found = create("kernel_shap", logits).explain(X, target=0)
    parts = (X * weights).sum(1)
    expected = np.zeros((3, 200))
    for shift in (0, 2, 4, 6):
        segment = (np.arange(200) + (8 - shift) % 8) // 8
        sums = np.stack([np.bincount(segment, part) / np.bincount(segment) for part in parts])
        expected += sums[:, segment] / 4
    np.testing.assert_allclose(found.net, expected, atol=1e-3)
    np.testing.assert_allclose(found.base, 4, atol=1e-5)


def test_additive_model_point_by_point():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2, 2, 12))

    def logits(X):
        score = np.sin(X[:, 0]).sum(1) + (X[:, 1] ** 2).sum(1)
        return np.stack([score, -score], axis=1)

    found = create("kernel_shap", logits, window=1, per_channel=True).explain(X, target=0)
    net = found.positive_by_channel - found.negative_by_channel
    expected = np.stack([np.sin(X[:, 0]), X[:, 1] ** 2], axis=1)
    np.testing.assert_allclose(net, expected, atol=1e-3)


@pytest.mark.parametrize("length", [40, 64, 130])  # sets of 64 parts are too many to count in int64
def test_single_feature_and_dummies(length):
    X = np.random.default_rng(1).normal(size=(2, 1, length))

    def logits(X):
        return np.stack([np.exp(X[:, 0, 17]), np.zeros(len(X))], axis=1)

    found = create("kernel_shap", logits, window=1).explain(X, target=0)
    np.testing.assert_allclose(found.net[:, 17], np.exp(X[:, 0, 17]) - 1, atol=1e-3)
    np.testing.assert_allclose(np.delete(found.net, 17, axis=1), 0, atol=1e-3)
