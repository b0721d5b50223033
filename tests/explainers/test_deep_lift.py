import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from explainers.small import Smooth, small_transformer
from timesliver.backbones import (
    CNN,
    FCN,
    LSTM,
    CNNNetwork,
    FCNNetwork,
    InceptionTime,
    InceptionTimeNetwork,
    LSTMNetwork,
    ResNet,
    ResNetNetwork,
)
from timesliver.backbones.layers import seeded
from timesliver.errors import InvalidInputError, NotApplicableError
from timesliver.explainers import as_model, create
from timesliver.explainers.rescale import rescaling

settings = pytest.mark.parametrize("setting", ["fair", "paper"])


def net(a):
    return a.positive_by_channel - a.negative_by_channel


def series(n_cases=4, n_timepoints=16, seed=0):
    return np.random.default_rng(seed).normal(size=(n_cases, 2, n_timepoints)).astype(np.float32)


def lift(module, x, reference):
    """Shares of one series by the repaired rule, for a module that returns one number a row."""
    values = torch.tensor(x).requires_grad_()
    with rescaling(module, 2):
        y = module(torch.cat([values[None], torch.tensor(reference)[None]]))
    (multipliers,) = torch.autograd.grad(y[0].sum(), values)
    return (multipliers * (values - torch.tensor(reference))).detach().numpy(), y.detach()


# --- the rule ------------------------------------------------------------------------------------


def test_a_unit_hands_its_change_back_in_proportion():
    module = nn.Sequential(nn.Linear(3, 1), nn.ReLU())
    with torch.no_grad():
        module[0].weight.copy_(torch.tensor([[1.0, -2.0, 3.0]]))
        module[0].bias.fill_(-1.0)
    x, reference = np.float32([2.0, 1.0, 1.0]), np.float32([0.0, 0.5, 0.0])
    # before the ReLU: 2 and -2; after it: 2 and 0; so half of each input's change is handed back
    shares, y = lift(module, x, reference)
    np.testing.assert_allclose(shares, [0.5 * 2, 0.5 * -1, 0.5 * 3], rtol=1e-6)
    assert y[:, 0].tolist() == [2, 0]


def test_without_a_change_the_derivative_counts():
    module = nn.Sequential(nn.Tanh())
    x = torch.tensor([0.3, -2.0]).requires_grad_()
    with rescaling(module, 2):
        y = module(torch.stack([x, x.detach()]))
    (multipliers,) = torch.autograd.grad(y[0].sum(), x)
    torch.testing.assert_close(multipliers, 1 - torch.tanh(x.detach()) ** 2)


@pytest.mark.parametrize(
    ("x", "reference", "expected"),
    [  # windows of three, one step apart
        # maxima 5, 5, 5 and 1, 1, 2: the rise goes to the 5, once for each window
        ([0, 1, 5, 1, 0], [0, 1, 0, 1, 2], [0, 0, 4 + 4 + 3, 0, 0]),
        # maxima 1, 1, 2 and 5, 5, 5: the fall goes to where the 5 was
        ([0, 1, 0, 1, 2], [0, 1, 5, 1, 0], [0, 0, -4 - 4 - 3, 0, 0]),
        # the largest point moved, the maximum did not
        ([3, 0, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0, -3 - 3, 0, 0]),
    ],
)
def test_overlapping_pools_lose_nothing(x, reference, expected):
    shares, y = lift(nn.MaxPool1d(3, 1), np.float32([x]), np.float32([reference]))
    np.testing.assert_allclose(shares[0], expected, atol=1e-6)
    assert shares.sum() == pytest.approx((y[0] - y[1]).sum().item())


@pytest.mark.parametrize(
    "pool",
    [
        nn.MaxPool1d(2, ceil_mode=True),
        nn.MaxPool1d(3, 2, padding=1),
        nn.MaxPool1d(2, 1, dilation=2),
    ],
)
def test_pools_after_activations_lose_nothing(pool):
    with seeded(0):
        module = nn.Sequential(nn.Conv1d(2, 5, 2), nn.ReLU(), pool, nn.Conv1d(5, 4, 2), nn.ReLU())
    for x, reference in zip(series(8), series(8, seed=1), strict=True):
        for zeroed in (reference, 0 * reference):
            shares, y = lift(module, x, zeroed)
            assert shares.sum() == pytest.approx((y[0] - y[1]).sum().item(), abs=1e-4)


def test_answers_do_not_change_and_the_network_is_given_back():
    class Shared(nn.Module):  # one ReLU for two layers, in place
        def __init__(self):
            super().__init__()
            with seeded(0):
                self.first, self.second = nn.Conv1d(2, 4, 2), nn.Conv1d(4, 3, 2)
            self.relu = nn.ReLU(inplace=True)

        def forward(self, x):
            return self.relu(self.second(self.relu(self.first(x)))).mean(2)

    module, x = Shared().eval(), torch.from_numpy(series(6))
    expected = module(x)
    with rescaling(module, 6):
        torch.testing.assert_close(module(x), expected, rtol=0, atol=0)
    assert module.relu.inplace
    assert not module.relu._forward_hooks
    a = create("deep_lift", module).explain(x.numpy())
    np.testing.assert_allclose(a.net.sum(1) + a.base, a.logit, atol=1e-5)


@settings
def test_hooks_go_even_if_the_network_fails(setting):
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.relu = nn.ReLU()

        def forward(self, x):
            y = self.relu(x)
            if x.requires_grad:
                raise InvalidInputError("no")
            return y[:, 0, :3]

    module = Broken().eval()
    with pytest.raises(InvalidInputError, match="no"):
        create("deep_lift", module, setting=setting).explain(series())
    assert not module.relu._forward_hooks
    assert not module.relu._forward_pre_hooks


# --- completeness --------------------------------------------------------------------------------


def networks():
    yield CNNNetwork(CNN(widths=(8, 8, 8), kernel_size=2, pooled_layers=2, head=(6,)), 2, 3)
    yield FCNNetwork(FCN(widths=(8, 8), kernel_sizes=(8, 3)), 2, 3)
    yield ResNetNetwork(ResNet(widths=(6, 6), kernel_sizes=(8, 5)), 2, 3)
    yield InceptionTimeNetwork(InceptionTime(width=4, kernel_sizes=(10, 5), depth=3), 2, 3)


@pytest.mark.parametrize("network", list(networks()), ids=lambda network: type(network).__name__)
@pytest.mark.parametrize("method", ["deep_lift", "deep_lift_shap"])
def test_shares_add_up_to_the_change_of_the_logit(network, method):
    with seeded(0), torch.no_grad():  # statistics that are not those of a fresh network
        for module in network.modules():
            if isinstance(module, nn.BatchNorm1d):
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2)
    explainer = create(method, network.eval()).fit(series(30, 24, 2) + 0.5, np.arange(30) % 3)
    cases = [*series(3, 24), *series(2, 15)]
    a = explainer.explain(cases)
    np.testing.assert_allclose(a.net.sum(1) + a.base, a.logit, atol=1e-4)
    assert np.abs(net(a)).max() > 1e-3
    if method == "deep_lift_shap":
        model = as_model(network)
        rows = explainer._rows
        logits = model.infer(model.read(rows.numpy())).numpy()
        np.testing.assert_allclose(a.base[:3], logits.mean(0)[a.target[:3]], atol=1e-5)


# --- agreement with captum -----------------------------------------------------------------------


@settings
@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
def test_without_pooling_both_settings_are_captums(setting):
    from captum.attr import DeepLift

    model, X = Smooth().eval(), series(5)
    a = create("deep_lift", model, setting=setting).explain(X)
    captum = DeepLift(model).attribute(
        torch.from_numpy(X).requires_grad_(), target=torch.from_numpy(a.target)
    )
    np.testing.assert_allclose(net(a), captum.detach().numpy(), atol=1e-5)


@settings
@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
def test_deep_lift_shap_is_captums(setting):
    from captum.attr import DeepLiftShap

    model, X = Smooth().eval(), series(3)
    explainer = create("deep_lift_shap", model, setting=setting).fit(series(40, seed=3))
    a = explainer.explain(X)
    captum = DeepLiftShap(model).attribute(
        torch.from_numpy(X).requires_grad_(),
        explainer._rows,
        target=torch.from_numpy(a.target),
    )
    np.testing.assert_allclose(net(a), captum.detach().numpy(), atol=1e-5)


@pytest.mark.filterwarnings("ignore:Setting forward, backward hooks")
def test_papers_setting_is_captums_on_pooled_networks():
    from captum.attr import DeepLift

    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            with seeded(2):
                self.layers = nn.Sequential(
                    nn.Conv1d(2, 6, 3), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(6, 6, 3), nn.ReLU(),
                    nn.Flatten(), nn.Linear(30, 3),
                )  # fmt: skip

        def forward(self, x):
            return self.layers(x)

    model, X = Pooled().eval(), series(4)
    a = create("deep_lift", model, setting="paper").explain(X)
    for i in range(4):
        captum = DeepLift(model).attribute(
            torch.from_numpy(X[i : i + 1]).requires_grad_(), target=int(a.target[i])
        )
        np.testing.assert_allclose(net(a)[i], captum[0].detach().numpy(), atol=1e-6)


# --- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["deep_lift", "deep_lift_shap"])
def test_recurrent_layers_are_refused(method):
    with pytest.raises(NotApplicableError, match="recurrent"):
        create(method, LSTMNetwork(LSTM(width=4), 2, 3).eval())
    with pytest.raises(NotApplicableError, match="recurrent"):
        create(method, nn.Sequential(nn.GRU(2, 3)).eval())


@settings
def test_transformers_are_explained_though_shares_do_not_add_up(setting):
    network = small_transformer()
    a = create("deep_lift", network, setting=setting).explain(series())
    assert np.isfinite(net(a)).all()
    assert np.abs(net(a)).max() > 0


def test_functions_that_are_no_modules_keep_their_gradient():
    class Functional(nn.Module):
        def forward(self, x):
            return F.relu(x[:, 0, :3])

    X = series()
    a = create("deep_lift", Functional().eval()).explain(X, target=1)
    expected = np.zeros(X.shape)
    expected[:, 0, 1] = np.maximum(X[:, 0, 1], 0)
    np.testing.assert_allclose(net(a), expected, atol=1e-6)


class Turned(nn.Module):
    """One layer at each moment, of tensors (B, v, L) whose axes are put in some order before."""

    def __init__(self, first, second, normalised=False):
        super().__init__()
        self.order = first, second, 3 - first - second
        with seeded(0):
            self.layer, self.head = nn.Linear(2, 5), nn.Linear(5, 3)
        self.norm = nn.LayerNorm(5) if normalised else nn.Identity()
        self.relu = nn.ReLU()

    def forward(self, x):
        features = self.relu(self.norm(self.layer(x.permute(self.order))))
        return self.head(features.mean(self.order.index(2)))


@pytest.mark.parametrize("n_timepoints", [2, 4, 7, 8, 16])
@pytest.mark.parametrize("n_cases", [1, 4])
@pytest.mark.parametrize("normalised", [False, True])
def test_modules_that_put_time_first_are_refused(n_timepoints, n_cases, normalised):
    X = series(n_cases, n_timepoints)
    module = Turned(2, 0, normalised).eval()
    with pytest.raises(NotApplicableError, match="cases in their first axis"):
        create("deep_lift", module).explain(X)
    assert not module.relu._forward_hooks


@pytest.mark.parametrize("n_timepoints", [2, 7, 8])
def test_modules_that_keep_the_cases_first_are_explained(n_timepoints):
    X = series(4, n_timepoints)
    a = create("deep_lift", Turned(0, 2).eval()).explain(X)
    np.testing.assert_allclose(a.net.sum(1) + a.base, a.logit, atol=1e-5)
    flat = nn.Sequential(nn.Flatten(0, 1), nn.Linear(n_timepoints, 5), nn.ReLU(), nn.Linear(5, 2))
    a = create("deep_lift", nn.Sequential(flat, nn.Unflatten(0, (-1, 2)), nn.Flatten()).eval())
    a = a.explain(X)  # rows of the activation: cases, and channels within
    np.testing.assert_allclose(a.net.sum(1) + a.base, a.logit, atol=1e-5)
