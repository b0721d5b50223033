"""Explanations of a fitted classifier, in any number."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from classifier.conftest import bumps, small
from timesliver import estimator

X, y, where = bumps(120, n_channels=2)


@pytest.fixture(scope="module")
def model():
    return small(channels="separate", max_epochs=30).fit(X, y)


def test_what_comes_back(model):
    scores = model.explain(X)
    assert scores.positive.shape == (120, 30)
    np.testing.assert_array_equal(scores.classes[scores.target], model.predict(X))
    np.testing.assert_allclose(scores.probabilities, model.predict_proba(X), rtol=1e-6)
    np.testing.assert_array_equal(scores.series, X.astype(np.float32))
    assert np.isfinite(scores.positive_by_channel).all()
    assert (scores.positive_by_channel >= 0).all()


def test_additive_shares_sum_to_the_logit(model):
    shares = model.explain(X, method="additive")
    np.testing.assert_allclose(shares.net.sum(axis=1) + shares.bias, shares.logit, atol=1e-4)
    np.testing.assert_allclose(shares.logit, model.logits(X).max(axis=1), atol=1e-5)


def test_the_planted_moments_are_found(model):
    scores = model.explain(X, method="additive", centred=True, background=True).magnitude
    fast = y == 1  # to be slow is to have nothing fast, which any moment can say
    pairs = zip(where[fast, 0], scores[fast], strict=True)
    assert np.mean([roc_auc_score(mask, score) for mask, score in pairs]) > 0.7


@pytest.mark.parametrize("method", ["timesliver", "additive"])
def test_chunks_change_nothing(model, method, monkeypatch):
    whole = model.explain(X, method=method, target="all")
    monkeypatch.setattr(estimator.base, "_CHUNK", 7 * X[0].size)
    parts = model.explain(X, method=method, target="all")
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_allclose(
            one.positive_by_channel, other.positive_by_channel, rtol=1e-4, atol=1e-6
        )
        np.testing.assert_array_equal(one.target, other.target)
    np.testing.assert_allclose(
        model.logits(X), np.stack([part.logit for part in parts], axis=1), rtol=1e-4, atol=1e-5
    )


def test_missing_values_and_padding_are_nan_in_the_series(model):
    holes = [X[0], X[1, :, :20].copy()]
    holes[1][0, 3] = np.nan
    scores = model.explain(holes)
    assert np.isnan(scores.series[1, :, 20:]).all()
    assert np.isnan(scores.series[1, 0, 3])
    assert np.isfinite(scores.positive_by_channel).all()
    assert scores.lengths.tolist() == [30, 20]
