"""What the five methods by gradients share, and Integrated Gradients and GradientSHAP by name."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

from explainers.small import Smooth, calm_stretches, small_transformer
from timesliver.backbones import CNN, LSTM, CNNNetwork, LSTMNetwork
from timesliver.backbones.layers import seeded
from timesliver.errors import (
    InvalidParameterError,
    MissingExtraError,
    NotApplicableError,
    NotFittedError,
)
from timesliver.explainers import as_model, create
from timesliver.explainers.inputs import case_seed
from timesliver.explainers.segments import default_window
from timesliver.metrics import auprc

METHODS = ("integrated_gradients", "gradient_shap", "deep_lift", "deep_lift_shap", "grad_cam")
every = pytest.mark.parametrize("method", METHODS)
settings = pytest.mark.parametrize("setting", ["fair", "paper"])


@pytest.fixture(scope="module")
def cnn():
    X, y, _ = calm_stretches(200, 0)
    sizes = {"widths": (8, 16, 16), "kernel_size": 5, "pooled_layers": 1, "head": (8,)}
    return CNN(**sizes, learning_rate=0.01, max_epochs=15, random_state=0).fit(X, y)


def ragged(seed=5):
    """Six cases of other lengths, and one value missing."""
    rng = np.random.default_rng(seed)
    cases = [rng.normal(size=(2, n)) for n in (60, 41, 13, 60, 30, 7)]
    cases[1][1, 4] = np.nan
    return cases


def net(a):
    return a.positive_by_channel - a.negative_by_channel


class Linear(nn.Module):
    """Logits that are linear in the series, with 3 classes."""

    def __init__(self, n_channels=2, n_timepoints=8):
        super().__init__()
        with seeded(3):
            self.weight = nn.Parameter(torch.randn(3, n_channels, n_timepoints))
            self.bias = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return torch.einsum("bvl,cvl->bc", x, self.weight) + self.bias


class OneFeature(nn.Module):
    """A logit that sees the square of one value."""

    def forward(self, x):
        return torch.stack([x[:, 1, 5] ** 2, 0 * x[:, 0, 0]], 1)


# --- closed forms ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["integrated_gradients", "deep_lift"])
@settings
def test_of_a_linear_model_the_scores_are_weights_times_distance(method, setting):
    rng = np.random.default_rng(0)
    X, train = rng.normal(size=(5, 2, 8)), rng.normal(size=(30, 2, 8)) + 1
    model = Linear().eval()
    a = create(method, model, setting=setting).fit(train).explain(X)
    baseline = train.mean(0) / 2 if setting == "fair" else np.zeros((2, 8))  # zero and mean
    weight = model.weight.detach().numpy()
    np.testing.assert_allclose(net(a), weight[a.target] * (X - baseline), atol=2e-5)
    bias = np.einsum("vl,cvl->c", baseline, weight) + model.bias.detach().numpy()
    np.testing.assert_allclose(a.base, bias[a.target], atol=1e-5)
    np.testing.assert_allclose(a.net.sum(1) + a.base, a.logit, atol=1e-4)


@pytest.mark.parametrize("method", ["gradient_shap", "deep_lift_shap"])
def test_against_zeros_the_scores_of_a_linear_model_are_weights_times_values(method):
    X = np.random.default_rng(0).normal(size=(5, 2, 8))
    model = Linear().eval()
    a = create(method, model, setting="paper").explain(X, target=1)
    np.testing.assert_allclose(net(a), model.weight.detach().numpy()[[1] * 5] * X, atol=1e-5)


def test_against_training_series_the_scores_of_a_linear_model_average_over_them():
    rng = np.random.default_rng(0)
    X, train = rng.normal(size=(4, 2, 8)), rng.normal(size=(20, 2, 8)) + 1
    model = Linear().eval()
    expected = model.weight.detach().numpy()[[2] * 4] * (X - train.mean(0))
    a = create("deep_lift_shap", model).fit(train, np.arange(20) % 3).explain(X, target=2)
    np.testing.assert_allclose(net(a), expected, atol=1e-5)
    shap = create("gradient_shap", model, n_samples=4000).fit(train, np.arange(20) % 3)
    assert np.abs(net(shap.explain(X, target=2)) - expected).max() < 0.15


def test_a_single_feature_gets_everything():
    X = np.random.default_rng(1).normal(size=(3, 2, 8))
    expected = np.zeros(X.shape)
    expected[:, 1, 5] = X[:, 1, 5] ** 2
    a = create("integrated_gradients", OneFeature().eval()).explain(X, target=0)
    np.testing.assert_allclose(net(a), expected, atol=1e-5)
    shap = create("gradient_shap", OneFeature().eval(), setting="paper", n_samples=5000)
    np.testing.assert_allclose(net(shap.explain(X, target=0)), expected, rtol=0.05)


def test_integrated_gradients_are_complete(cnn):
    X, _, _ = calm_stretches(5, 7)
    train, y, _ = calm_stretches(40, 8)
    for baselines in (("zero",), ("mean", "zero"), ("noise",), ("blur", "zero")):
        a = create("integrated_gradients", cnn, baselines=baselines).fit(train, y).explain(X)
        missing = np.abs(a.net.sum(1) + a.base - a.logit)
        assert (missing <= 0.01 * np.abs(a.logit - a.base) + 0.02).all()
    a = create("integrated_gradients", cnn, baselines=("zero",)).explain(X)
    assert (np.abs(a.net.sum(1) + a.base - a.logit) <= 0.01 * np.abs(a.logit - a.base) + 1e-4).all()


def test_steps_are_doubled_until_the_shares_add_up():
    class Steep(nn.Module):  # 50 steps do not find the place where it rises
        def forward(self, x):
            rise = torch.sigmoid(200 * (x[:, 0, 0] - 0.513))
            return torch.stack([rise, 0 * rise], 1)

    X = np.ones((1, 1, 4))
    fair = create("integrated_gradients", Steep().eval()).explain(X, target=0)
    paper = create("integrated_gradients", Steep().eval(), setting="paper").explain(X, target=0)
    assert fair.forward_passes[0] in (1 + 2 + 50 + 100, 1 + 2 + 50 + 100 + 200)
    assert abs(fair.net.sum() - 1) < 0.01 < abs(paper.net.sum() - 1)


# --- agreement with captum -----------------------------------------------------------------------


def test_integrated_gradients_are_captums():
    from captum.attr import IntegratedGradients

    model, X = Smooth().eval(), np.random.default_rng(2).normal(size=(5, 2, 16)).astype(np.float32)
    a = create("integrated_gradients", model, setting="paper").explain(X)
    captum = IntegratedGradients(model).attribute(
        torch.from_numpy(X), target=torch.from_numpy(a.target)
    )
    np.testing.assert_allclose(net(a), captum.detach().numpy(), atol=1e-6)


def test_gradient_shap_is_captums_for_the_same_draws(monkeypatch):
    from captum.attr import GradientShap

    rng = np.random.default_rng(2)
    X, train = (rng.normal(size=(n, 2, 16)).astype(np.float32) for n in (1, 5))
    model = as_model(Smooth().eval())
    explainer = create("gradient_shap", model, setting="paper").fit(train)
    draw = torch.Generator().manual_seed(case_seed(model.read(X), 0, explainer.seed))
    starts = torch.randint(5, (5,), generator=draw).numpy()
    places = torch.rand(5, generator=draw).numpy()
    monkeypatch.setattr(np.random, "choice", lambda *_: starts)
    monkeypatch.setattr(np.random, "uniform", lambda *_: places)
    captum = GradientShap(model.network).attribute(
        torch.from_numpy(X).requires_grad_(), explainer._rows, n_samples=5, target=1
    )
    ours = net(explainer.explain(X, target=1))
    np.testing.assert_allclose(ours, captum.detach().numpy(), atol=1e-6)


@pytest.mark.parametrize("method", ["integrated_gradients", "deep_lift"])
def test_the_error_without_captum_says_what_to_install(method, monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    explainer = create(method, Linear().eval(), setting="paper")
    with pytest.raises(MissingExtraError, match="explain"):
        explainer.explain(np.ones((1, 2, 8)))


# --- what all of them promise --------------------------------------------------------------------


def fitted(method, model, **options):
    train, y, _ = calm_stretches(40, 8)
    return create(method, model, **options).fit(train, y)


@every
@settings
def test_neither_batches_nor_order_change_the_scores(cnn, method, setting):
    X, _, _ = calm_stretches(4, 3, 24)
    whole = fitted(method, cnn, setting=setting, batch_size=32).explain(X)
    scale = np.abs(net(whole)).max()
    for batch_size, order in ((1, np.arange(4)), (3, np.arange(4)[::-1])):
        explainer = fitted(method, cnn, setting=setting, batch_size=batch_size)
        a = explainer.explain(X[order])
        np.testing.assert_allclose(net(a), net(whole)[order], atol=1e-5 * max(1, scale))
        np.testing.assert_allclose(a.base, whole.base[order], atol=1e-5)


@every
@settings
def test_a_case_alone_is_explained_as_in_a_padded_batch(cnn, method, setting):
    cases = ragged()
    explainer = fitted(method, cnn, setting=setting)
    together = explainer.explain(cases)
    for i, case in enumerate(cases):
        alone = explainer.explain([case])
        n = case.shape[1]
        np.testing.assert_allclose(net(alone)[0], net(together)[i, :, :n], atol=1e-5)
        np.testing.assert_allclose(alone.base, together.base[i : i + 1], atol=1e-5)
        assert not net(together)[i, :, n:].any()
    if method != "grad_cam":
        assert net(together)[1, 1, 4] == 0  # what is missing says nothing


@every
@settings
def test_the_model_and_global_random_states_are_left_alone(cnn, method, setting):
    network = cnn.network_
    before = {name: value.clone() for name, value in network.state_dict().items()}
    gradients = {  # training leaves some
        name: None if weight.grad is None else weight.grad.clone()
        for name, weight in network.named_parameters()
    }
    attributes = {name: set(vars(module)) for name, module in network.named_modules()}
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    fitted(method, cnn, setting=setting).explain(calm_stretches(3, 3)[0])
    assert torch.equal(torch_state, torch.get_rng_state())
    np.testing.assert_equal(numpy_state, np.random.get_state())  # noqa: NPY002
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name])
    for name, weight in network.named_parameters():
        assert weight.requires_grad
        assert (weight.grad is None) == (gradients[name] is None)
        assert weight.grad is None or torch.equal(weight.grad, gradients[name])
    for name, module in network.named_modules():
        assert set(vars(module)) == attributes[name]
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks):
            assert not hooks
        assert not module.training


@every
@settings
def test_forward_passes_are_the_rows_that_went_through_the_network(method, setting):
    network, batch_size = (
        CNNNetwork(CNN(widths=(6, 6), kernel_size=3, pooled_layers=1, head=()), 2, 3).eval(),
        12,
    )
    explainer = fitted(method, network, setting=setting, batch_size=batch_size)
    rows, features = [], network.features
    network.features = lambda batch: rows.append(len(batch)) or features(batch)
    n = 35  # more than are explained at once
    a = explainer.explain(calm_stretches(n, 4, 24)[0])
    assert round(a.forward_passes.sum(), 6) == sum(rows)
    inference = 0  # the first rows are the one pass by which the classes are known
    while inference < n:
        inference += rows.pop(0)
    assert inference == n
    assert max(rows) <= batch_size
    passes = {
        ("integrated_gradients", "paper"): 1 + 1 + 50,
        ("gradient_shap", "paper"): 1 + 5,
        ("gradient_shap", "fair"): 1 + 50,
        ("deep_lift", "paper"): 1 + 2,
        ("deep_lift", "fair"): 1 + 4,
        ("deep_lift_shap", "paper"): 1 + 10,
        ("deep_lift_shap", "fair"): 1 + 40,
        ("grad_cam", "paper"): 2,
        ("grad_cam", "fair"): 2,
    }
    if (method, setting) in passes:
        np.testing.assert_allclose(a.forward_passes, passes[method, setting])
    else:  # three logits, and 50, 150 or 350 steps for each of two baselines
        assert (a.forward_passes >= 1 + 3 + 100).all()
        assert (a.forward_passes <= 1 + 3 + 700).all()


@every
@settings
def test_rows_through_a_module_of_the_users_are_counted(method, setting):
    module = Smooth().eval()
    rows, forward = [], module.forward
    module.forward = lambda x: rows.append(len(x)) or forward(x)
    X = np.random.default_rng(2).normal(size=(3, 2, 16))
    explainer = create(method, module, setting=setting).fit(X, [0, 1, 0])
    rows.clear()
    assert round(explainer.explain(X).forward_passes.sum(), 6) == sum(rows)


@every
@settings
def test_the_planted_stretch_is_found(cnn, method, setting):
    X, y, where = calm_stretches(16, 11)
    assert (cnn.predict(X) == y).mean() > 0.95
    a = fitted(method, cnn, setting=setting).explain(X)
    found = auprc(a.positive, where.any(1)).mean
    chance = where.any(1).mean()
    assert found > 3 * chance, (found, chance)
    if a.has_channels:
        cells = auprc(a.positive_by_channel.reshape(16, -1), where.reshape(16, -1)).mean
        assert cells > 3 * where.mean(), (cells, where.mean())


@every
def test_the_same_seed_gives_the_same_map(cnn, method):
    X, _, _ = calm_stretches(3, 3)
    maps = [net(fitted(method, cnn, random_state=seed).explain(X)) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(maps[0], maps[1])
    if method in ("gradient_shap", "deep_lift_shap"):
        assert np.abs(maps[0] - maps[2]).max() > 1e-4


@every
def test_a_function_has_no_gradients(method):
    with pytest.raises(NotApplicableError, match="gradient"):
        create(method, lambda X: X[:, 0, :2])


@pytest.mark.parametrize("method", ["integrated_gradients", "gradient_shap"])
@pytest.mark.parametrize("model", [LSTMNetwork(LSTM(width=4), 2, 3).eval(), small_transformer()])
def test_recurrent_networks_and_transformers_have_gradients(method, model):
    a = fitted(method, model).explain(calm_stretches(2, 3)[0])
    assert np.abs(net(a)).max() > 0


# --- baselines -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["gradient_shap", "deep_lift_shap"])
def test_training_series_are_needed_in_the_fair_setting_only(method):
    X = np.ones((2, 2, 8))
    with pytest.raises(NotFittedError, match=r"call fit\(X_train\)"):
        create(method, Linear().eval()).explain(X)
    create(method, Linear().eval(), setting="paper").explain(X)


@pytest.mark.parametrize(("n_classes", "setting"), [(3, "fair"), (30, "fair"), (2, "paper")])
def test_training_series_are_of_every_class_alike(n_classes, setting):
    y = np.concatenate([np.arange(n_classes), np.zeros(100, int), np.arange(n_classes).repeat(9)])
    X = np.zeros((len(y), 2, 8))
    X[:, 0, 0] = np.arange(len(y))
    wanted = 20 if setting == "fair" else 5
    explainer = create("deep_lift_shap", Linear().eval(), setting=setting).fit(X, y)
    chosen = explainer._rows[:, 0, 0].numpy().astype(int)
    counts = np.bincount(y[chosen], minlength=n_classes)
    assert len(set(chosen)) == wanted
    assert counts.max() - counts.min() <= 1
    again = create("deep_lift_shap", Linear().eval(), setting=setting).fit(X, y)
    assert torch.equal(explainer._rows, again._rows)


def test_labels_that_are_not_given_are_predicted():
    X = np.random.default_rng(0).normal(size=(50, 2, 8))
    model = as_model(Linear().eval())
    predicted = model.infer(model.read(X)).argmax(1).numpy()
    rows = [create("deep_lift_shap", model).fit(X, y)._rows for y in (None, predicted)]
    assert torch.equal(*rows)


def references(inputs, **options):
    model = as_model(
        CNNNetwork(CNN(widths=(6,), kernel_size=3, pooled_layers=0, head=()), 2, 3).eval()
    )
    explainer = create("deep_lift", model, **options)
    return explainer, lambda X: explainer._references(model.read(X)[inputs], 17)


def test_baselines():
    rng = np.random.default_rng(0)
    train = rng.normal(size=(9, 2, 50)) + 2
    X = [rng.normal(size=(2, 30)), rng.normal(size=(2, 70))]
    X[0][1, 3] = np.nan
    explainer, of = references(slice(0, 1), baselines=("zero", "mean", "noise", "blur"))
    without, weights = of(X)  # the mean is left out before `fit`
    assert without.shape == (1 + 5 + 1, 2, 70)
    np.testing.assert_allclose(weights, [1 / 3, *[1 / 15] * 5, 1 / 3])
    explainer.fit(train)
    found, weights = of(X)
    np.testing.assert_allclose(weights, [0.25, 0.25, *[0.05] * 5, 0.25])
    assert not found[0].any()
    assert not found[:, :, 30:].any()
    assert not found[:, 1, 3].any()
    seen = np.isfinite(X[0])
    np.testing.assert_allclose(
        found[1, :, :30].numpy()[seen], train.mean(0)[:, :30][seen], rtol=1e-5
    )
    assert abs(found[2:7].std().item() - np.sqrt(30 / 70)) < 0.15
    sigma = default_window(30)
    for t in (0, 3, 17):
        near = np.exp(-((np.arange(30) - t) ** 2) / (2 * sigma**2))
        assert np.isclose(found[7, 0, t].item(), (X[0][0] * near).sum() / near.sum(), atol=1e-5)
        if t != 3:
            share = near * seen[1]
            blurred = (np.nan_to_num(X[0][1]) * share).sum() / share.sum()
            assert np.isclose(found[7, 1, t].item(), blurred, atol=1e-5)
    longer, _ = references(slice(1, 2), baselines=("mean",))[1](X)
    assert longer.shape == (1, 2, 70)  # zero serves
    explainer, of = references(slice(1, 2), baselines=("mean",))
    explainer.fit(train)
    assert not of(X)[0][:, :, 50:].any()  # the training series were shorter


@pytest.mark.parametrize("length", [1, 10, 400, 3000])
def test_the_blur_is_a_gaussian_over_all_that_was_observed(length):
    x = np.random.default_rng(0).normal(size=(2, length))
    x[1, length // 3 : length // 2] = np.nan
    found, _ = references(slice(0, 1), baselines=("blur",))[1]([x, np.zeros((2, length + 50))])
    t, seen = np.arange(length), np.isfinite(x)
    kernel = np.exp(-((t[:, None] - t) ** 2) / (2 * default_window(length) ** 2))
    expected = np.nan_to_num(x) @ kernel / np.maximum(seen @ kernel, 1e-12) * seen
    np.testing.assert_allclose(found[0, :, :length], expected, atol=1e-5)
    assert not found[:, :, length:].any()


def test_noise_does_not_depend_on_padding():
    short, long = np.ones((2, 30)), np.ones((2, 70))
    _, of = references(slice(0, 1), baselines=("noise",))
    alone, _ = of([short])
    padded, _ = of([short, long])
    assert torch.equal(alone, padded[:, :, :30])


def test_papers_setting_takes_zero_alone():
    explainer, of = references(slice(0, 1), setting="paper", baselines=("noise", "blur"))
    explainer.fit(np.ones((3, 2, 30)))
    found, weights = of(np.ones((1, 2, 30)))
    assert found.shape == (1, 2, 30)
    assert not found.any()
    assert weights.tolist() == [1]


@pytest.mark.parametrize("baselines", ["zero", (), ("zero", "ones")])
def test_baselines_that_are_none(baselines):
    with pytest.raises(InvalidParameterError, match="baselines"):
        create("integrated_gradients", Linear().eval(), baselines=baselines)


@pytest.mark.parametrize("n_samples", [0, 2.5])
def test_samples_are_counted_from_one(n_samples):
    with pytest.raises(InvalidParameterError, match="n_samples"):
        create("gradient_shap", Linear().eval(), n_samples=n_samples)
