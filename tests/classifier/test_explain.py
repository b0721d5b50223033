"""Explanations of a fitted classifier, in any number."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from classifier.conftest import bumps, small, small_segments
from timesliver import estimator
from timesliver.errors import InvalidParameterError

X, y, where = bumps(120, n_channels=2)


@pytest.fixture(scope="module")
def model():
    return small(channels="separate", max_epochs=30).fit(X, y)


def test_what_comes_back(model):
    scores = model.explain(X)
    assert scores.method == "additive"
    assert scores.positive.shape == (120, 30)
    np.testing.assert_array_equal(scores.classes[scores.target], model.predict(X))
    np.testing.assert_allclose(scores.probabilities, model.predict_proba(X), rtol=1e-6)
    np.testing.assert_array_equal(scores.series, X.astype(np.float32))
    assert np.isfinite(scores.positive_by_channel).all()
    assert (scores.positive_by_channel >= 0).all()
    np.testing.assert_array_equal(scores.case, np.arange(120))


def test_additive_shares_sum_to_the_logit(model):
    for options in ({}, {"background": None, "smoothing": 0}, {"background": "series"}):
        shares = model.explain(X, **options)
        np.testing.assert_allclose(shares.net.sum(axis=1) + shares.base, shares.logit, atol=1e-4)
        np.testing.assert_allclose(shares.logit, model.logits(X).max(axis=1), atol=1e-5)


def test_the_base_is_what_the_training_cases_are_given_on_average(model):
    """Every value is observed, so the base does not depend on the case."""
    shares = model.explain(X, target="all")
    logits = model.logits(X)
    for c, of_class in enumerate(shares.by_class()):
        np.testing.assert_allclose(of_class.base, logits[:, c].mean(), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(of_class.net.sum(axis=1).mean(), 0, atol=1e-4)


def test_every_class_of_every_case(model):
    every = model.explain(X[:7], target="all")
    assert len(every) == 14
    assert every.case.tolist() == [*range(7)] * 2
    assert every.target.tolist() == [0] * 7 + [1] * 7
    np.testing.assert_array_equal(every.series, np.tile(X[:7].astype(np.float32), (2, 1, 1)))
    np.testing.assert_allclose(every.probabilities, np.tile(model.predict_proba(X[:7]), (2, 1)))
    for c, of_class in enumerate(every.by_class()):
        alone = model.explain(X[:7], target=c)
        assert len(of_class) == 7
        for name, part in of_class.by_case().items():
            np.testing.assert_allclose(
                part, getattr(alone, name), rtol=1e-5, atol=1e-7, err_msg=name
            )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "lime"}, "method='lime' is unknown; choose one of 'additive', 'timesliver'"),
        ({"spread": True}, "'spread' is not an option of method='additive'"),
        ({"background": True}, "background=True is unknown; choose one of 'training', 'series'"),
        ({"smoothing": 2.5}, "smoothing must be a whole number"),
        ({"method": "timesliver", "smoothing": 3}, "not an option of method='timesliver'"),
        ({"method": "timesliver", "activation": "abs"}, "options are max_scaling, centred"),
    ],
)
def test_options_that_make_no_sense(model, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        model.explain(X[:2], **options)


def test_encoders_with_symbols_of_their_own():
    """What several encoders say is averaged, whatever the symbols and steps of each."""
    encoders = [
        small_segments(max_epochs=2, symbols=["sax", "clock"]),
        small_segments(max_epochs=2, symbols="sfa", step=2, channels="separate"),
    ]
    model = small(encoder=encoders).fit(X, y)
    for method in ("additive", "timesliver"):
        scores = model.explain(X[:5], method=method)
        assert scores.positive.shape == (5, 30)
        assert scores.positive_by_symbol is None
    shares = model.explain(X, target=1)
    np.testing.assert_allclose(shares.net.sum(axis=1) + shares.base, shares.logit, atol=1e-4)


def test_the_planted_moments_are_found(model):
    scores = model.explain(X, centred=True, background="series").magnitude
    fast = y == 1  # to be slow is to have nothing fast, which any moment can say
    pairs = zip(where[fast, 0], scores[fast], strict=True)
    assert np.mean([roc_auc_score(mask, score) for mask, score in pairs]) > 0.7


@pytest.mark.parametrize("method", ["timesliver", "additive"])
def test_chunks_change_nothing(model, method, monkeypatch):
    whole = model.explain(X, method=method, target="all")
    monkeypatch.setattr(estimator.base, "_CHUNK", 7 * X[0].size)
    parts = model.explain(X, method=method, target="all")
    np.testing.assert_allclose(
        whole.positive_by_channel, parts.positive_by_channel, rtol=1e-4, atol=1e-6
    )
    np.testing.assert_array_equal(whole.target, parts.target)
    np.testing.assert_array_equal(whole.case, parts.case)
    by_class = np.stack([part.logit for part in parts.by_class()], axis=1)
    np.testing.assert_allclose(model.logits(X), by_class, rtol=1e-4, atol=1e-5)


def test_missing_values_and_padding_are_nan_in_the_series(model):
    holes = [X[0], X[1, :, :20].copy()]
    holes[1][0, 3] = np.nan
    scores = model.explain(holes)
    assert np.isnan(scores.series[1, :, 20:]).all()
    assert np.isnan(scores.series[1, 0, 3])
    assert np.isfinite(scores.positive_by_channel).all()
    assert (scores.magnitude[1, 20:] == 0).all()
    missing = np.isnan(scores.series)
    assert (scores.positive_by_channel[missing] == 0).all()
    assert (scores.negative_by_channel[missing] == 0).all()
    assert scores.lengths.tolist() == [30, 20]


@pytest.mark.parametrize("symbols", ["clock", "one"])
def test_symbols_that_all_channels_share(symbols):
    model = small(symbols=symbols, max_epochs=2).fit(X, y)
    scores = model.explain(X[:5], method="timesliver")
    assert scores.positive.shape == (5, 30)
    assert scores.positive_by_symbol is None
    np.testing.assert_allclose(*scores.positive_by_channel.swapaxes(0, 1), rtol=1e-6)
    shares = model.explain(X[:5])
    np.testing.assert_allclose(shares.net.sum(axis=1) + shares.base, shares.logit, atol=1e-4)
