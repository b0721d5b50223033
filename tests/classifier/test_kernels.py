"""The kernel bank through the front door: any series, exact shares, one file."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from classifier.conftest import bumps
from timesliver import Kernels, Segments, TimeSliverClassifier
from timesliver.errors import InvalidParameterError
from timesliver.network.kernels import Responses
from timesliver.symbols import SAX, Clock, One


def kernels(n_kernels=168, **more):
    return TimeSliverClassifier(Kernels(n_kernels, **more), random_state=0, n_jobs=1)


def assert_adds_up(why):
    total = why.base + why.net.sum(axis=1, dtype=np.float64)
    scale = 1 + why.magnitude.sum(axis=1).max()
    np.testing.assert_allclose(total, why.logit, atol=1e-5 * scale)


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = bumps(n_cases=60, n_channels=2, n_timepoints=40)
    return kernels(n_kernels=840).fit(X, y), X, y


def test_it_learns(fitted):
    clf, X, y = fitted
    fresh, labels, _ = bumps(n_cases=60, n_channels=2, n_timepoints=40, seed=1)
    assert clf.score(X, y) > 0.9
    assert clf.score(fresh, labels) > 0.8
    assert clf.n_iter_ == 1
    assert 0 <= clf.history_[0]["validation_accuracy"] <= 1


def test_evidence_lies_on_the_bumps():
    X, y, salient = bumps(n_cases=80, n_channels=1, n_timepoints=60)
    clf = kernels(n_kernels=2500).fit(X, y)
    why = clf.explain(X)
    truth = salient.reshape(len(X), 60) if salient.ndim == 2 else salient.any(axis=1)
    inside = [w[t].mean() for w, t in zip(why.positive, truth, strict=True) if t.any()]
    outside = [w[~t].mean() for w, t in zip(why.positive, truth, strict=True) if t.any()]
    assert np.mean(inside) > 2 * np.mean(outside)


@pytest.mark.parametrize("symbols", ["auto", "one", ["one", Clock(3)], [SAX(3), One()]])
def test_shares_add_up_for_every_class(symbols):
    X, y, _ = bumps(n_cases=30, n_channels=3, n_timepoints=24)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    X[3, :, 15:] = np.nan
    clf = kernels(symbols=symbols).fit(X, y)
    for background in ("training", "series", None):
        for smoothing in ("auto", 0, 7):
            why = clf.explain(X, "all", background=background, smoothing=smoothing)
            assert_adds_up(why)
            missing = np.isnan(np.tile(X, (len(clf.classes_), 1, 1)))
            assert (why.positive_by_channel[missing] == 0).all()
            assert (why.negative_by_channel[missing] == 0).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 30), st.integers(1, 4))
def test_any_length_and_number_of_channels(seed, L, v):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(v, rng.integers(1, L + 1))) for _ in range(12)]
    y = np.arange(12) % 3
    clf = kernels(n_kernels=84).fit(X, y)
    assert clf.predict_proba(X).shape == (12, 3)
    assert_adds_up(clf.explain(X, "all"))


def test_padding_and_batches_change_nothing(fitted):
    clf, X, _ = fitted
    longer = np.pad(X, ((0, 0), (0, 0), (0, 9)), constant_values=np.nan)
    np.testing.assert_allclose(clf.logits(longer), clf.logits(X), rtol=1e-5, atol=1e-6)
    alone = np.concatenate([clf.logits(X[i : i + 1]) for i in range(5)])
    np.testing.assert_allclose(alone, clf.logits(X[:5]), rtol=1e-5, atol=1e-6)
    why, longer_why = clf.explain(X[:4]), clf.explain(longer[:4])
    np.testing.assert_allclose(longer_why.positive[:, :40], why.positive, rtol=1e-4, atol=1e-6)


def test_constant_and_missing_channels():
    X, y, _ = bumps(n_cases=20, n_channels=1, n_timepoints=20)
    X = np.concatenate([X, np.full_like(X, 7.0), np.full_like(X, np.nan)], axis=1)
    clf = kernels().fit(X, y)
    assert clf.score(X, y) > 0.8
    assert_adds_up(clf.explain(X))


def test_many_channels():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 1500, 16)).astype(np.float32)
    clf = kernels(n_kernels=84, symbols="one").fit(X, np.arange(8) % 2)
    assert_adds_up(clf.explain(X[:2]))


def test_symbols_are_chosen_in_bounded_memory(fitted, monkeypatch):
    clf, X, y = fitted
    sizes = []
    features = Responses.features
    monkeypatch.setattr(
        Responses, "features", lambda self: sizes.append(self.masks.size) or features(self)
    )
    monkeypatch.setattr("timesliver.encoders.kernels._NUMBERS", 20_000)
    again = kernels(n_kernels=840).fit(X, y)
    assert max(sizes[:-1]) <= 20_000
    assert repr(again.encoders_) == repr(clf.encoders_)
    np.testing.assert_array_equal(again.logits(X), clf.logits(X))


def test_a_file_holds_the_bank(fitted, tmp_path):
    clf, X, _ = fitted
    path = tmp_path / "model.safetensors"
    clf.save(path)
    again = TimeSliverClassifier.load(path)
    np.testing.assert_array_equal(again.logits(X), clf.logits(X))
    np.testing.assert_array_equal(again.explain(X).net, clf.explain(X).net)
    assert again.encoder.get_params(deep=False) == clf.encoder.get_params(deep=False)


def test_with_learnt_segments_and_several_seeds(tmp_path):
    X, y, _ = bumps(n_cases=30, n_channels=2, n_timepoints=24)
    encoder = [Kernels(84), Segments(sizes=(4,), max_epochs=2, positional_encoding=False)]
    clf = TimeSliverClassifier(encoder, n_estimators=2, random_state=0, n_jobs=1).fit(X, y)
    assert len(clf.network_.parts) == 4
    assert_adds_up(clf.explain(X, "all"))
    clf.save(tmp_path / "model.safetensors")
    again = TimeSliverClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.logits(X), clf.logits(X))


def test_the_papers_scores_are_sums_of_like_signs(fitted):
    clf, X, _ = fitted
    scores = clf.explain(X[:5], method="timesliver", max_scaling=False)
    shares = clf.explain(X[:5], background=None, smoothing=0)
    net = scores.positive_by_channel - scores.negative_by_channel
    expected = shares.positive_by_channel - shares.negative_by_channel
    np.testing.assert_allclose(net, expected, atol=1e-4)
    assert (scores.positive_by_channel >= 0).all()
    scaled = clf.explain(X[:5], method="timesliver")
    np.testing.assert_allclose(scaled.positive, 40 * scores.positive, rtol=1e-4, atol=1e-5)


def test_the_seed_decides_and_threads_do_not(fitted):
    clf, X, y = fitted
    before = torch.get_num_threads()
    twice = TimeSliverClassifier(Kernels(840), random_state=0, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(twice.logits(X), clf.logits(X), rtol=1e-4, atol=1e-5)
    other = TimeSliverClassifier(Kernels(840), random_state=1, n_jobs=1).fit(X, y)
    assert not np.allclose(other.logits(X), clf.logits(X))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_kernels": 83}, "n_kernels must be a whole number, at least 84"),
        ({"symbols": "fourier"}, "there is no symbolizer 'fourier'"),
    ],
)
def test_bad_settings(settings, message):
    X, y, _ = bumps(n_cases=6)
    with pytest.raises(InvalidParameterError, match=message):
        TimeSliverClassifier(Kernels(**settings)).fit(X, y)
