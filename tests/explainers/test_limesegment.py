import time

import numpy as np
import pytest
from scipy.signal import istft, stft
from sklearn.linear_model import Ridge

from timesliver.backbones import CNN
from timesliver.errors import InvalidParameterError, NotApplicableError
from timesliver.explainers import create
from timesliver.explainers.distances import dtw_distances, nearest_subsequences
from timesliver.explainers.inputs import case_seed
from timesliver.explainers.limesegment import (
    change_points,
    locality_weights,
    persistent_background,
)


def step(length=200, at=90, noise=0.05, seed=0):
    rng = np.random.default_rng(seed)
    return noise * rng.normal(size=length) + 3.0 * (np.arange(length) >= at)


def wandering(n_cases, length, seed=0):
    """Series with changes of level and spread, which have several change points."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_cases, 1, length))
    for case in X:
        for part in np.array_split(case[0], 5):
            part *= rng.uniform(0.2, 2)
            part += rng.normal(0, 2)
    return X


def level(X):
    """Logits of three classes, none of them linear."""
    x = X[:, 0]
    return np.stack([np.tanh(x).sum(1), x[:, ::4].max(1), (x**2).mean(1)], axis=1)


# --- parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("length", "window"), [(30, 4), (41, 9), (60, 30), (60, 12)])
@pytest.mark.parametrize("seed", range(3))
def test_nearest_subsequences_one_by_one(length, window, seed):
    x = np.random.default_rng(seed).normal(size=length).cumsum()
    x[5:20] = 1.0 if seed == 2 else x[5:20]  # flat
    n = length - window + 1

    def normalised(i):
        part = x[i : i + window]
        return (part - part.mean()) / part.std() if part.std() > 0 else np.zeros(window)

    for i, found in enumerate(nearest_subsequences(x, window)):
        others = [j for j in range(n) if abs(i - j) > np.ceil(window / 4)]
        distances = [np.linalg.norm(normalised(i) - normalised(j)) for j in others]
        assert found in others
        assert np.linalg.norm(normalised(i) - normalised(found)) <= min(distances) + 1e-6
        if seed < 2:
            assert found == others[int(np.argmin(distances))]


def dtw_by_hand(x, y, band):
    L = len(x)
    D = np.full((L + 1, L + 1), np.inf)
    D[0, 0] = 0
    for i in range(L):
        for j in range(L):
            if abs(i - j) <= band:
                D[i + 1, j + 1] = abs(x[i] - y[j]) + min(D[i, j], D[i, j + 1], D[i + 1, j])
    return D[L, L]


@pytest.mark.parametrize("length", [1, 2, 13, 30])
@pytest.mark.parametrize("band", [0, 1, 2, 3, 40])
def test_dtw_cell_by_cell(length, band):
    rng = np.random.default_rng(length)
    x, others = rng.normal(size=length), rng.normal(size=(4, length))
    expected = [dtw_by_hand(x, y, band) for y in others]
    np.testing.assert_allclose(dtw_distances(x, others, band), expected)
    np.testing.assert_allclose(dtw_distances(x, x[None], band), 0)


def test_dtw_of_many_long_series_is_fast():
    x, others = np.random.default_rng(0).normal(size=(2, 16, 500))
    start = time.process_time()
    dtw_distances(x[0], others, 50)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("at", [60, 90, 120])
@pytest.mark.parametrize("noise", [0.0, 0.05, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_the_step_is_the_first_change_point(at, noise, seed):
    window = 40
    (found,) = change_points(step(at=at, noise=noise, seed=seed), window, 1)
    assert abs(found - at) <= window / 4


def test_change_points_by_their_definition():
    for x in wandering(5, 150)[:, 0]:
        window, half = 30, 15
        nearest = nearest_subsequences(x, window)
        scores = {}
        for i in range(half, len(nearest) - 1):
            if nearest[i + 1] != nearest[i] + 1:
                left, right = x[i - half : i], x[i : i + half]
                scores[i] = abs(left.mean() - right.mean()) * abs(left.std() - right.std())
                scores[i] /= (left.std() + right.std()) / 2
        for most in (1, 3, 20):
            expected = []
            for i in sorted(scores, key=scores.get, reverse=True):
                if len(expected) < most and all(abs(i - j) >= half for j in expected):
                    expected.append(i)
            assert change_points(x, window, most) == sorted(expected)


def test_no_change_points_in_flat_or_short_series():
    assert change_points(np.full(100, 1.1, dtype=np.float32).astype(float), 20, 3) == []
    assert change_points(np.random.default_rng(0).normal(size=39), 20, 3) == []
    assert change_points(np.random.default_rng(0).normal(size=40), 20, 3) != []


def test_background_is_the_most_persistent_frequency():
    t = np.arange(400)
    wave = np.sin(2 * np.pi * t / 8)
    burst = 5 * np.sin(2 * np.pi * t / 20) * (np.abs(t - 200) < 40)
    background = persistent_background(wave + burst, 40)
    assert background.shape == (400,)
    assert np.corrcoef(background, wave)[0, 1] > 0.6  # a neighbouring row may be as persistent
    assert abs(np.corrcoef(background, burst)[0, 1]) < 0.05


def test_background_by_its_definition():
    x = wandering(1, 130)[0, 0]
    spectrum = stft(x, nperseg=40)[2]
    ratios = [np.mean(np.abs(row)) / np.std(np.abs(row)) for row in spectrum]
    spectrum[np.arange(len(ratios)) != np.argmax(ratios)] = 0
    np.testing.assert_allclose(persistent_background(x, 40), istft(spectrum, nperseg=40)[1][:130])


@pytest.mark.parametrize("length", [8, 9, 39, 40, 41, 77])
def test_background_of_any_length(length):
    for x in (np.zeros(length), np.ones(length), np.arange(length) * 1.0):
        background = persistent_background(x, 40)
        assert background.shape == x.shape
        assert np.isfinite(background).all()
    assert (persistent_background(np.zeros(length), 40) == 0).all()


def test_weights_peak_at_the_average_distance():
    distances, counts = np.array([0.0, 2.0, 5.0]), np.array([1, 3, 2])
    drawn = np.repeat(distances, counts)
    expected = np.exp(-np.abs((distances - drawn.mean()) / drawn.std()))
    np.testing.assert_allclose(locality_weights(distances, counts), expected)
    np.testing.assert_array_equal(locality_weights(np.full(3, 0.1), counts), 1)
    np.testing.assert_array_equal(locality_weights(np.zeros(3), counts), 1)


# --- whole -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["logit", "label"])
def test_whole_method_with_every_draw_by_itself(target):
    X = wandering(3, 120).astype(np.float32)
    explainer = create("limesegment", level, target=target, random_state=3)
    found = explainer.explain(X, target=0)
    inputs = explainer.model.read(X)
    coefficients = set()
    for case, x in enumerate(X[:, 0].astype(float)):
        cuts = change_points(x, 24, 3)
        assert len(cuts) == 3
        segment = np.digitize(np.arange(120), cuts)
        rng = np.random.default_rng(case_seed(inputs, case, explainer.seed))
        kept = rng.random((100, 4)) < 0.5
        series = np.where(kept[:, segment], x, persistent_background(x, 40))
        distances = np.array([dtw_by_hand(x, row, 12) for row in np.unique(series, axis=0)])
        distances = distances[np.unique(series, axis=0, return_inverse=True)[1].ravel()]
        weights = np.exp(-np.abs((distances - distances.mean()) / distances.std()))
        logits = level(series[:, None].astype(np.float32))
        outputs = logits[:, 0] if target == "logit" else logits.argmax(1)
        expected = Ridge(alpha=1.0).fit(kept, outputs, sample_weight=weights).coef_
        np.testing.assert_allclose(found.net[case], expected[segment], atol=1e-4)
        coefficients |= set(expected.round(6))
    assert len(coefficients) > 4
    assert (found.forward_passes <= 17).all()


def test_the_segment_that_matters_has_the_score():
    """The logit is the mean of the raised part; all else is noise round zero."""
    x = 0.1 * np.random.default_rng(0).normal(size=200)
    x[70:130] += 4 + 0.5 * np.random.default_rng(1).normal(size=60)
    logits = lambda X: np.stack([X[:, 0, 80:120].mean(1), -X[:, 0, 0]], axis=1)  # noqa: E731
    found = create("limesegment", logits).explain(x[None], target=0)
    assert found.positive[0, 80:120].mean() > 3 * np.abs(found.net[0, :60]).max()
    assert not found.has_channels
    assert found.has_sign


def test_constant_and_short_series_have_no_score():
    for X in (np.full((2, 1, 100), 2.5), np.zeros((1, 1, 60)), np.ones((1, 1, 1)), wandering(1, 7)):
        found = create("limesegment", level).explain(X)
        assert (found.magnitude == 0).all()
        assert (found.forward_passes == 1).all()


@pytest.mark.parametrize("length", [8, 12, 39, 500])
def test_any_length_up_to_the_limit(length):
    found = create("limesegment", level).explain(wandering(2, length))
    assert np.isfinite(found.net).all()
    assert found.net.shape == (2, length)


def test_repeatable_in_any_batches():
    X = wandering(5, 100)
    reference = create("limesegment", level, random_state=1).explain(X).net
    for batch_size in (1, 3, 32):
        explainer = create("limesegment", level, random_state=1, batch_size=batch_size)
        np.testing.assert_allclose(explainer.explain(X[::-1]).net[::-1], reference, atol=1e-5)
    # few draws, so that another seed leaves other sets out
    few = [create("limesegment", level, n_samples=6, random_state=seed) for seed in (1, 1, 2)]
    nets = [explainer.explain(X).net for explainer in few]
    np.testing.assert_array_equal(nets[0], nets[1])
    assert np.abs(nets[0] - nets[2]).max() > 1e-3


def test_unequal_lengths_and_missing_values():
    X = wandering(30, 80)
    X[::2] += 2
    model = CNN(widths=(8,), head=(), pooled_layers=0, max_epochs=3, random_state=0)
    model.fit(X, np.arange(30) % 2)
    cases = [X[0], X[1][:, :50], X[2][:, :5], X[3][:, :1]]
    cases[1][0, 4:9] = np.nan
    explainer = create("limesegment", model, random_state=0)
    together = explainer.explain(cases)
    for i, case in enumerate(cases):
        n = case.shape[1]
        np.testing.assert_allclose(together.net[i, :n], explainer.explain([case]).net[0], atol=1e-5)
        assert (together.magnitude[i, n:] == 0).all()
    assert (together.magnitude[:2] > 0).any(axis=1).all()


def test_options_count():
    X = wandering(1, 200)
    levels = [
        len(np.unique(create("limesegment", level, n_change_points=k).explain(X).net))
        for k in (1, 2, 4)
    ]
    assert levels == [2, 3, 5]
    plain = create("limesegment", level).explain(X).net
    for options in ({"window": 10}, {"nperseg": 16}, {"target": "label"}, {"n_samples": 10}):
        assert np.abs(create("limesegment", level, **options).explain(X).net - plain).max() > 1e-4


@pytest.mark.parametrize(
    ("shape", "what"), [((1, 2, 50), "2 channels and 50"), ((1, 1, 501), "1 channels and 501")]
)
def test_not_applicable(shape, what):
    with pytest.raises(NotApplicableError, match=what):
        create("limesegment", level).explain(np.ones(shape))


@pytest.mark.parametrize(
    "options",
    [
        {"n_samples": 0},
        {"n_change_points": 0},
        {"window": 3},
        {"nperseg": 1},
        {"target": "probability"},
    ],
)
def test_wrong_options(options):
    with pytest.raises(InvalidParameterError):
        create("limesegment", level, **options)
