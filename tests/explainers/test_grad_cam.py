import numpy as np
import pytest
import torch
from torch import nn

from batches import batch_of
from timesliver.backbones import (
    CNNNetwork,
    COLORNetwork,
    FCNNetwork,
    InceptionTimeNetwork,
    LSTMNetwork,
    ResNetNetwork,
    TransformerNetwork,
)
from timesliver.backbones.layers import seeded
from timesliver.errors import InvalidParameterError, NotApplicableError
from timesliver.explainers import create
from timesliver.explainers.grad_cam import _Sight

settings = pytest.mark.parametrize("setting", ["fair", "paper"])


def series(n_cases=4, n_timepoints=40, seed=0):
    return np.random.default_rng(seed).normal(size=(n_cases, 2, n_timepoints)).astype(np.float32)


class Averaging(nn.Module):
    """Convolutions, the mean over time, a linear layer."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*(layers or (nn.Conv1d(2, 3, 1),)))
        self.head = nn.Linear(3, 4)
        with seeded(1), torch.no_grad():
            for weights in self.parameters():
                weights.normal_(std=0.5)

    def forward(self, x):
        return self.head(self.layers(x).mean(2))


def test_by_hand_on_a_network_that_averages():
    model, X = Averaging().eval(), series()
    conv, head = model.layers[0], model.head
    features = np.einsum("kv,nvt->nkt", conv.weight[:, :, 0].detach().numpy(), X)
    features += conv.bias.detach().numpy()[:, None]
    for setting in ("fair", "paper"):
        a = create("grad_cam", model, setting=setting).explain(X)
        weights = head.weight.detach().numpy()[a.target]  # dy/dF_kt = W_ck / T, the same at all t
        expected = np.einsum("nk,nkt->nt", weights, features) / 40
        np.testing.assert_allclose(a.net, expected, atol=1e-5)
        np.testing.assert_allclose(a.positive, np.maximum(expected, 0), atol=1e-5)
        np.testing.assert_allclose(a.negative, np.maximum(-expected, 0), atol=1e-5)
        # of such a network the map sums to the logit without the head's bias
        bias = head.bias.detach().numpy()[a.target]
        np.testing.assert_allclose(a.net.sum(1), a.logit - bias, rtol=1e-4, atol=1e-5)
    assert a.has_sign
    assert not a.has_channels


def test_papers_setting_is_captums():
    from captum.attr import LayerAttribution, LayerGradCam

    layers = nn.Conv1d(2, 5, 3, stride=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(5, 3, 2)
    model, X = Averaging(*layers).eval(), series()
    for layer in (None, model.layers[0], model.layers[2]):
        a = create("grad_cam", model, layer=layer, setting="paper").explain(X)
        captum = LayerGradCam(model, layer or model.layers[3]).attribute(
            torch.from_numpy(X), target=torch.from_numpy(a.target)
        )
        expected = LayerAttribution.interpolate(captum, 40)[:, 0].detach().numpy()
        np.testing.assert_allclose(a.net, expected, atol=1e-6)


@settings
def test_of_a_backbone_the_last_features_are_taken(setting):
    network, X = CNNNetwork(2, 3, (6, 5), 2, 1, (4,)).eval(), series()
    by_features = create("grad_cam", network, setting=setting).explain(X)
    layer = network.convolutions[-1]
    by_layer = create("grad_cam", network, setting=setting, layer=layer).explain(X)
    np.testing.assert_allclose(by_features.net, by_layer.net, atol=1e-6)


# --- where a position of a layer looks -----------------------------------------------------------


def seen_by(module, n_timepoints):
    """Which times each position sees, by spreading a value that is no number: (T, L)."""
    x = torch.zeros(n_timepoints, 2, n_timepoints)
    x[torch.arange(n_timepoints), :, torch.arange(n_timepoints)] = torch.nan
    with torch.no_grad():
        return module(x).isnan().any(1).T.numpy()


def networks():
    yield CNNNetwork(2, 3, (4, 4, 4, 4), 2, 2), (4, 0, 14)
    yield FCNNetwork(2, 3, (4, 4, 4)), (1, -6, 7)
    yield ResNetNetwork(2, 3, (4, 4), (8, 5)), (1, -10, 12)
    yield InceptionTimeNetwork(2, 3, 3, (10, 5), 3), (1, -12, 15)


@pytest.mark.parametrize(("network", "expected"), list(networks()))
def test_sight_of_the_backbones(network, expected):
    def features(x):
        return network.eval().features(batch_of(x, torch.full((len(x),), x.shape[2])))[0]

    check_sight(features, expected)


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([nn.Conv1d(2, 3, 5, stride=2, padding=2)], (2, -2, 2)),
        ([nn.Conv1d(2, 3, 3, dilation=4), nn.AvgPool1d(3)], (3, 0, 10)),
        ([nn.Conv1d(2, 3, 5, padding=2, padding_mode="reflect")], (1, -2, 2)),
        ([nn.ReplicationPad1d((4, 0)), nn.Conv1d(2, 3, 5)], (1, -4, 0)),
        ([nn.MaxPool1d(3, 2, 1), nn.ConstantPad1d((4, 0), 0.0), nn.Conv1d(2, 3, 5)], (2, -9, 1)),
    ],
)
def test_sight_of_other_layers(layers, expected):
    check_sight(nn.Sequential(*layers), expected)


def check_sight(module, expected):
    L = 80
    x = torch.zeros(1, 2, L, requires_grad=True)
    sight = _Sight.of(module(x), x)
    assert sight == expected
    sees = seen_by(module, L)
    for u in range(len(sees)):
        times = np.arange(sight.step * u + sight.first, sight.step * u + sight.last + 1)
        inside = times[(times >= 0) & (times < L)].astype(int)
        assert set(np.flatnonzero(sees[u])) <= set(inside)
        if len(inside) == len(times):
            assert sees[u, inside[[0, -1]]].all()


def test_the_fair_map_is_interpolated_between_the_centres():
    layers = nn.Conv1d(2, 5, 4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(5, 3, 4)
    model, X = Averaging(*layers).eval(), series()
    a = create("grad_cam", model).explain(X)
    features = model.layers(torch.from_numpy(X)).detach().numpy()
    weights = model.head.weight.detach().numpy()[a.target] / features.shape[2]
    found = np.einsum("nk,nkt->nt", weights, features)
    receptive = 4 + 1 + 3 * 2
    centres = np.arange(features.shape[2]) * 2 + (receptive - 1) / 2
    expected = [np.interp(np.arange(40), centres, row) for row in found]
    np.testing.assert_allclose(a.net, expected, atol=1e-5)


def test_the_fair_map_points_where_the_features_look():
    network = CNNNetwork(1, 2, (4, 4, 4, 4, 4), 2, 2, ()).eval()  # sees 19 points to the right
    with torch.no_grad():
        for convolution in network.convolutions:
            convolution.conv.weight.fill_(0.2)
            convolution.conv.bias.zero_()
        network.head[0].weight.copy_(torch.tensor([[1.0], [-1.0]]).expand(2, 4))
    X = np.zeros((1, 1, 200))
    X[0, 0, 100] = 1
    centre = {
        setting: (a.positive[0] * np.arange(200)).sum() / a.positive[0].sum()
        for setting in ("fair", "paper")
        for a in [create("grad_cam", network, setting=setting).explain(X, target=0)]
    }
    assert abs(centre["fair"] - 100) < 2
    assert centre["paper"] < 95


def test_without_a_trace_positions_are_spread_evenly():
    x = torch.zeros(1, 2, 40, requires_grad=True)
    assert _Sight.of(x.detach().requires_grad_() * 1, x) is None
    assert _Sight.even(40, 20) == (2, 0, 1)
    branches = nn.Conv1d(2, 2, 1)(x), nn.Conv1d(2, 2, 1, stride=2)(x)
    assert _Sight.of(branches[0][:, :, :20] + branches[1], x) is None


class Every(nn.Module):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def forward(self, x):
        return x[:, :, :: self.step]


@pytest.mark.parametrize(
    "between",
    [
        nn.AdaptiveAvgPool1d(50),
        Every(4),
        nn.Upsample(scale_factor=3),
        nn.ConvTranspose1d(1, 1, 1, 2),
    ],
)
def test_operations_that_are_not_known_do_not_move_the_fair_map(between):
    layers = nn.Conv1d(1, 1, 5, padding=2), nn.ReLU(), between, nn.Conv1d(1, 1, 3, padding=1)
    module = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(1, 2)).eval()
    with torch.no_grad():
        for weights in module.parameters():
            weights.fill_(0.2)
    X = np.zeros((1, 1, 200))
    X[0, 0, 150:161] = 1
    a = create("grad_cam", module).explain(X, target=0)
    assert 140 <= a.positive[0].argmax() <= 170


def test_what_a_sight_covers():
    assert _Sight(1, 0, 0).covers(40, 40)
    assert _Sight(1, -2, 2).covers(40, 40)
    assert _Sight(4, 0, 14).covers(80, 17)  # the last sees 64 to 78
    assert _Sight(4, 0, 14).covers(82, 17)
    assert not _Sight(4, 0, 14).covers(83, 17)  # there would be an 18th
    assert not _Sight(1, 0, 0).covers(40, 20)
    assert not _Sight(2, 0, 1).covers(40, 40)
    for L in range(20, 120):  # the ends that pools of a backbone leave out do not matter
        x = torch.zeros(1, 2, L, requires_grad=True)
        for network, _ in networks():
            features, _ = network.eval().features(batch_of(x, torch.tensor([L])))
            assert _Sight.of(features, x).covers(L, features.shape[2])


def test_deep_networks():
    block = nn.Conv1d(2, 2, 3, padding=1), nn.BatchNorm1d(2), nn.ReLU()
    deep = nn.Sequential(*block * 300, nn.Conv1d(2, 3, 1)).eval()
    x = torch.zeros(1, 2, 40, requires_grad=True)
    y = deep(x)
    for _ in range(200):
        y = y * 1
    assert _Sight.of(y, x) == (1, -300, 300)
    assert np.isfinite(create("grad_cam", Averaging(*deep).eval()).explain(series()).net).all()


# --- backbones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        *(network for network, _ in networks()),
        LSTMNetwork(2, 3, 4),
        TransformerNetwork(2, 3, (8,), (3,), (1,), 2, 16, head=()),
    ],
)
def test_logits_follow_from_features(network):
    values = torch.from_numpy(series())
    values[1, :, 25:] = 0
    batch = batch_of(values, torch.tensor([40, 25, 40, 40]))
    network.eval()
    with torch.no_grad():
        torch.testing.assert_close(
            network.from_features(*network.features(batch)), network(batch), rtol=0, atol=0
        )


@settings
def test_a_layer_inside_and_cases_of_other_lengths(setting):
    network = CNNNetwork(2, 3, (6, 5), 2, 1, (4,)).eval()
    cases = [series(1, n, n)[0] for n in (40, 23, 9, 23)]
    explainer = create("grad_cam", network, setting=setting, layer=network.pools[0])
    together = explainer.explain(cases)
    for i, case in enumerate(cases):
        alone = explainer.explain([case]).net[0]
        np.testing.assert_allclose(alone, together.net[i, : case.shape[1]], atol=1e-6)


def test_series_of_one_point():
    a = create("grad_cam", FCNNetwork(2, 3, (4, 4, 4)).eval()).explain(series(3, 1))
    assert a.net.shape == (3, 1)


# --- what cannot be explained --------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        LSTMNetwork(2, 3, 4),
        TransformerNetwork(2, 3, (8,), (3,), (1,), 2, 16, head=()),
        COLORNetwork(2, 3, mode="raw"),
    ],
)
def test_features_must_be_those_of_convolutions(network):
    with pytest.raises(NotApplicableError, match="name a layer"):
        create("grad_cam", network.eval())


def test_the_stem_of_a_transformer_can_be_named():
    network = TransformerNetwork(2, 3, (8,), (3,), (1,), 2, 16, head=()).eval()
    a = create("grad_cam", network, layer=network.stem[-1]).explain(series())
    assert np.abs(a.net).max() > 0


def test_models_without_a_layer_over_time():
    with pytest.raises(NotApplicableError, match=r"no nn.Conv1d"):
        create("grad_cam", nn.Sequential(nn.Flatten(), nn.Linear(80, 3)).eval())


def test_layers_that_do_not_serve():
    model = Averaging().eval()
    with pytest.raises(InvalidParameterError, match="inside"):
        create("grad_cam", model, layer=nn.Conv1d(2, 3, 1))
    with pytest.raises(InvalidParameterError, match=r"gave \(4, 4\)"):
        create("grad_cam", model, layer=model.head).explain(series())
    model.unused = nn.Conv1d(2, 3, 1).eval()
    with pytest.raises(InvalidParameterError, match="gave None"):
        create("grad_cam", model, layer=model.unused).explain(series())
    assert not model.unused._forward_hooks
