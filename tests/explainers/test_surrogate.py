"""What LIME and KernelSHAP share; what is their own is in test_lime.py and test_kernel_shap.py."""

import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
import torch

from classifier.conftest import fitted  # noqa: F401
from explainers.small import calm_stretches
from timesliver.backbones import CNN
from timesliver.backbones.layers import seeded
from timesliver.errors import InvalidParameterError, MissingExtraError, NotApplicableError
from timesliver.explainers import as_model, create
from timesliver.explainers.inputs import case_seed
from timesliver.explainers.segments import default_window, segment_grids

both = pytest.mark.parametrize("method", ["lime", "kernel_shap"])
without_captum = pytest.mark.skipif(not find_spec("captum"), reason="captum is not installed")
settings = pytest.mark.parametrize("setting", ["fair", pytest.param("paper", marks=without_captum)])


@pytest.fixture(scope="module")
def cnn():
    X, y, _ = calm_stretches(200, 0)
    settings = {"widths": (8, 16, 16), "kernel_size": 5, "pooled_layers": 1, "head": ()}
    model = CNN(**settings, learning_rate=0.01, max_epochs=15, random_state=0)
    return model.fit(X, y)


def linear(weights):
    def logits(X):
        return np.stack([(X * weights).sum((1, 2)) + 0.5, np.zeros(len(X)), X[:, 0, 0]], axis=1)

    return logits


@pytest.fixture
def X():
    return np.random.default_rng(3).normal(size=(4, 2, 40))


# --- segments --------------------------------------------------------------------------------


def test_windows_of_the_papers_data_sets():
    assert [default_window(L) for L in (200, 500, 501, 3000)] == [8, 20, 21, 60]
    n_segments = [segment_grids(L, default_window(L))[0][-1] + 1 for L in (200, 500, 501, 3000)]
    assert n_segments == [25, 25, 24, 50]
    assert max(segment_grids(L, default_window(L))[0][-1] for L in range(1, 6000, 7)) < 50


@pytest.mark.parametrize("length", [1, 2, 7, 40, 61])
@pytest.mark.parametrize("window", [1, 2, 3, 4, 10, 99])
def test_grids_are_shifted_by_a_quarter_window(length, window):
    grids = segment_grids(length, window)
    window = min(window, length)
    assert len(grids) == min(window, 4)
    for grid in grids:
        sizes = np.bincount(grid)
        assert len(grid) == length
        assert set(np.diff(grid)) <= {0, 1}
        assert sizes[1:-1].tolist() == [window] * len(sizes[1:-1])
        assert sizes.max() <= window
    if window % 4 == 0:
        cuts = np.concatenate([np.flatnonzero(np.diff(grid)) + 1 for grid in grids])
        np.testing.assert_array_equal(np.unique(cuts), np.arange(window // 4, length, window // 4))


# --- what a result depends on ------------------------------------------------------------------


@both
@settings
def test_batches_and_order_change_nothing(cnn, method, setting):
    X, _, _ = calm_stretches(4, 1)
    n_samples = 100 if setting == "fair" else 25
    options = {"setting": setting, "n_samples": n_samples, "random_state": 7}
    reference = create(method, cnn, **options, batch_size=32).explain(X)
    for batch_size in (1, 3):
        found = create(method, cnn, **options, batch_size=batch_size).explain(X[::-1])
        np.testing.assert_allclose(found.net[::-1], reference.net, atol=1e-5)
        np.testing.assert_array_equal(found.forward_passes[::-1], reference.forward_passes)
    again = create(method, cnn, **options, batch_size=32).explain(X)
    np.testing.assert_array_equal(again.net, reference.net)
    other = create(method, cnn, **{**options, "random_state": 8}).explain(X)
    assert np.abs(other.net - reference.net).max() > 1e-5


@both
@settings
def test_a_case_in_a_padded_batch(cnn, method, setting):
    X, _, _ = calm_stretches(4, 1)
    cases = [x[:, :length] for x, length in zip(X, (60, 33, 9, 1), strict=True)]
    explainer = create(method, cnn, setting=setting, random_state=1)
    together = explainer.explain(cases)
    for i, case in enumerate(cases):
        alone = explainer.explain(case[None])
        n = case.shape[1]
        np.testing.assert_allclose(together.net[i, :n], alone.net[0], atol=1e-5)
        assert (together.magnitude[i, n:] == 0).all()
        assert (together.magnitude[i, :n] != 0).any() or method == "lime"


@both
@settings
def test_model_and_random_states_stay_as_they_were(cnn, method, setting):
    before = {name: value.clone() for name, value in cnn.network_.state_dict().items()}
    gradients = [parameter.grad for parameter in cnn.network_.parameters()]
    states = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    create(method, cnn, setting=setting, n_samples=20).explain(calm_stretches(2, 1)[0])
    assert torch.equal(torch.get_rng_state(), states[0])
    np.testing.assert_array_equal(np.random.get_state()[1], states[1])  # noqa: NPY002
    assert all(
        torch.equal(value, before[name]) for name, value in cnn.network_.state_dict().items()
    )
    for parameter, gradient in zip(cnn.network_.parameters(), gradients, strict=True):
        assert parameter.grad is gradient


@both
@settings
def test_symbols_and_missing_values(fitted, method, setting):  # noqa: F811
    X = np.random.default_rng(0).normal(size=(2, 1, 30))
    X[0, 0, 3:6] = np.nan
    found = create(method, fitted, setting=setting, n_samples=40).explain(X)
    assert np.isfinite(found.net).all()
    assert (found.magnitude > 0).any(axis=1).all()


# --- what is asked -----------------------------------------------------------------------------


@both
def test_rows_asked_and_batches(X, method):
    asked = []

    def logits(values):
        asked.append(values)
        return linear(np.ones((2, 40)))(values)

    found = create(method, logits, batch_size=30, n_samples=200, window=5).explain(X[:1])
    rows = np.concatenate(asked[1:])
    assert max(map(len, asked)) == 30
    assert found.forward_passes[0] == 1 + len(rows)
    assert 0.7 * 200 < len(rows) <= 202
    kept = rows != 0
    np.testing.assert_array_equal(kept[:, 0], kept[:, 1])  # all channels of a segment together
    np.testing.assert_array_equal(rows, np.where(kept, X[0].astype(np.float32), 0))


@both
def test_equal_samples_are_asked_once(X, method):
    found = create(method, linear(np.ones((2, 40))), n_samples=2000, window=10).explain(X)
    # up to 2^4 sets by one grid, 2^5 by three; KernelSHAP asks about the empty and the full once
    most = 16 + 3 * 32 if method == "lime" else 2 + 14 + 3 * 30
    np.testing.assert_array_equal(found.forward_passes, 1 + most)


@both
def test_channels_are_told_apart_on_request(X, method):
    weights = np.zeros((2, 40))
    weights[1, 10:20] = 1
    X[:, 1, 10:20] = 1
    explainer = create(method, linear(weights), per_channel=True, window=10)
    found = explainer.explain(X, target=0)
    assert found.has_channels
    net = found.positive_by_channel - found.negative_by_channel
    np.testing.assert_allclose(net.sum(1), found.net, atol=1e-5)
    inside = net[:, 1, 10:20].mean()
    assert inside > 0.5
    assert np.abs(net[:, 0]).max() < 0.1 * inside
    plain = create(method, linear(weights), window=10).explain(X, target=0)
    assert not plain.has_channels
    np.testing.assert_array_equal(plain.positive_by_channel[:, 0], plain.positive_by_channel[:, 1])
    assert found.forward_passes[0] > plain.forward_passes[0]


@both
def test_planted_segment_is_found(cnn, method):
    X, y, where = calm_stretches(24, 5)
    right = cnn.predict(X) == y
    assert right.mean() > 0.9
    found = create(method, cnn, n_samples=300, random_state=0).explain(X[right])
    calm = where[right].any(axis=1)
    top = np.argsort(-found.net, axis=1)[:, :10]
    hits = np.take_along_axis(calm, top, axis=1).mean()
    assert hits > 0.7  # chance is 10 / 60
    by_channel = create(method, cnn, n_samples=300, per_channel=True).explain(X[right])
    net = by_channel.positive_by_channel - by_channel.negative_by_channel
    best = net.reshape(len(net), -1).argmax(axis=1)
    assert (
        where[right].reshape(len(net), -1)[np.arange(len(net)), best].mean() > 0.7
    )  # chance is 1 / 12


# --- captum ------------------------------------------------------------------------------------


@both
def test_paper_setting_is_captum_called_directly(cnn, method):
    captum = pytest.importorskip("captum.attr")
    X, _, _ = calm_stretches(3, 1)
    explainer = create(method, cnn, setting="paper", random_state=5)
    found = explainer.explain(X)
    model = as_model(cnn)
    inputs = model.read(X)
    direct = {"lime": captum.Lime, "kernel_shap": captum.KernelShap}[method]
    for case in range(3):
        one = inputs[case : case + 1]
        with seeded(case_seed(inputs, case, explainer.seed)), torch.no_grad():
            expected = direct(lambda x: model.logits(one, x)).attribute(  # noqa: B023
                one.values, target=int(found.target[case])
            )
        net = (found.positive_by_channel - found.negative_by_channel)[case]
        np.testing.assert_allclose(net, expected[0].numpy(), atol=1e-5)
    assert found.has_channels
    np.testing.assert_array_equal(found.forward_passes, 1 + 25 + (method == "kernel_shap"))


@both
def test_captum_does_not_warn_of_many_points_or_slow_convergence(method):
    pytest.importorskip("captum")
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(21, 501))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = create(method, linear(weights), setting="paper").explain(
            rng.normal(size=(1, 21, 501))
        )
    assert np.isfinite(found.net).all()


@both
def test_without_captum(monkeypatch, X, method):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(MissingExtraError, match=r"timesliver\[explain\]"):
        create(method, linear(1.0), setting="paper").explain(X)
    create(method, linear(1.0), n_samples=8).explain(X)


# --- mistakes ----------------------------------------------------------------------------------


@both
@pytest.mark.parametrize(
    "options",
    [
        {"n_samples": 7},
        {"n_samples": 10.5},
        {"window": 0},
        {"setting": "paper", "window": 5},
        {"setting": "paper", "per_channel": True},
    ],
)
def test_wrong_options(method, options):
    with pytest.raises(InvalidParameterError):
        create(method, linear(1.0), **options)


@both
def test_too_many_channels_to_tell_apart(method):
    with pytest.raises(NotApplicableError, match="the series have 7"):
        create(method, linear(1.0), per_channel=True).explain(np.ones((1, 7, 20)))
