import numpy as np
import pytest
import torch
from torch import nn

from batches import batch_of
from explainers.small import small_transformer
from timesliver.backbones import (
    CNN,
    COLOR,
    FCN,
    LSTM,
    CNNNetwork,
    COLORNetwork,
    FCNNetwork,
    InceptionTime,
    InceptionTimeNetwork,
    LSTMNetwork,
    ResNet,
    ResNetNetwork,
)
from timesliver.backbones.layers import seeded
from timesliver.errors import InvalidParameterError, NotApplicableError
from timesliver.explainers import create

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
    network, X = (
        CNNNetwork(CNN(widths=(6, 5), kernel_size=2, pooled_layers=1, head=(4,)), 2, 3).eval(),
        series(),
    )
    by_features = create("grad_cam", network, setting=setting).explain(X)
    layer = network.convolutions[-1]
    how = {"setting": setting, "layer": layer, "sight": network.sight}
    by_layer = create("grad_cam", network, **how).explain(X)
    np.testing.assert_allclose(by_features.net, by_layer.net, atol=1e-6)


# --- from positions to time points ---------------------------------------------------------------


def test_the_fair_map_is_interpolated_between_positions_spread_evenly():
    layers = nn.Conv1d(2, 5, 4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(5, 3, 4)
    model, X = Averaging(*layers).eval(), series()
    a = create("grad_cam", model).explain(X)
    features = model.layers(torch.from_numpy(X)).detach().numpy()
    n_positions = features.shape[2]
    weights = model.head.weight.detach().numpy()[a.target] / n_positions
    positions = np.einsum("nk,nkt->nt", weights, features)
    centres = (np.arange(n_positions) + 0.5) * 40 / n_positions - 0.5
    expected = [np.interp(np.arange(40), centres, row) for row in positions]
    np.testing.assert_allclose(a.net, expected, atol=1e-5)


def test_the_fair_map_is_interpolated_between_the_centres_of_what_positions_see():
    layers = nn.Conv1d(2, 5, 4), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(5, 3, 4)
    model, X = Averaging(*layers).eval(), series()
    a = create("grad_cam", model, sight=(2, 0, 10)).explain(X)
    features = model.layers(torch.from_numpy(X)).detach().numpy()
    weights = model.head.weight.detach().numpy()[a.target] / features.shape[2]
    positions = np.einsum("nk,nkt->nt", weights, features)
    centres = np.arange(features.shape[2]) * 2 + 5
    expected = [np.interp(np.arange(40), centres, row) for row in positions]
    np.testing.assert_allclose(a.net, expected, atol=1e-5)


def test_the_papers_map_does_not_ask_what_positions_see():
    model, X = Averaging(nn.Conv1d(2, 3, 4, stride=2)).eval(), series()
    plain = create("grad_cam", model, setting="paper").explain(X)
    told = create("grad_cam", model, setting="paper", sight=(2, 0, 3)).explain(X)
    np.testing.assert_array_equal(told.net, plain.net)


def test_the_fair_map_points_where_the_features_look():
    settings = CNN(widths=(4, 4, 4, 4, 4), kernel_size=2, pooled_layers=2, head=())
    network = CNNNetwork(settings, 1, 2).eval()  # a position sees 18 points to the right
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
@settings
def test_the_map_is_where_the_series_are_whatever_the_number_of_positions(between, setting):
    layers = nn.Conv1d(1, 1, 5, padding=2), nn.ReLU(), between, nn.Conv1d(1, 1, 3, padding=1)
    module = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(1, 2)).eval()
    with torch.no_grad():
        for weights in module.parameters():
            weights.fill_(0.2)
    X = np.zeros((1, 1, 200))
    X[0, 0, 150:161] = 1
    a = create("grad_cam", module, setting=setting).explain(X, target=0)
    assert 140 <= a.positive[0].argmax() <= 170


# --- backbones -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        CNNNetwork(CNN(widths=(4, 4, 4, 4), kernel_size=2, pooled_layers=2), 2, 3),
        FCNNetwork(FCN(widths=(4, 4, 4)), 2, 3),
        ResNetNetwork(ResNet(widths=(4, 4), kernel_sizes=(8, 5)), 2, 3),
        InceptionTimeNetwork(InceptionTime(width=3, kernel_sizes=(10, 5), depth=3), 2, 3),
        LSTMNetwork(LSTM(width=4), 2, 3),
        small_transformer(),
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
    network = CNNNetwork(CNN(widths=(6, 5), kernel_size=2, pooled_layers=1, head=(4,)), 2, 3).eval()
    cases = [series(1, n, n)[0] for n in (40, 23, 9, 23)]
    explainer = create("grad_cam", network, setting=setting, layer=network.pools[0])
    together = explainer.explain(cases)
    for i, case in enumerate(cases):
        alone = explainer.explain([case]).net[0]
        np.testing.assert_allclose(alone, together.net[i, : case.shape[1]], atol=1e-6)


def test_series_of_one_point():
    a = create("grad_cam", FCNNetwork(FCN(widths=(4, 4, 4)), 2, 3).eval()).explain(series(3, 1))
    assert a.net.shape == (3, 1)


# --- what cannot be explained --------------------------------------------------------------------


@pytest.mark.parametrize(
    "network",
    [
        LSTMNetwork(LSTM(width=4), 2, 3),
        small_transformer(),
        COLORNetwork(COLOR(mode="raw"), 2, 3),
    ],
)
def test_features_must_be_those_of_convolutions(network):
    with pytest.raises(NotApplicableError, match="name a layer"):
        create("grad_cam", network.eval())


def test_the_stem_of_a_transformer_can_be_named():
    network = small_transformer()
    a = create("grad_cam", network, layer=network.stem[-1]).explain(series())
    assert np.abs(a.net).max() > 0


def test_models_without_a_layer_over_time():
    with pytest.raises(NotApplicableError, match=r"no nn.Conv1d"):
        create("grad_cam", nn.Sequential(nn.Flatten(), nn.Linear(80, 3)).eval())


@pytest.mark.parametrize(
    ("sight", "message"),
    [
        (3, "sight must be three numbers, step, first and last"),
        ((1, 0), "sight must be three numbers"),
        ((0, 0, 0), "the step of sight must be a number, above 0"),
        ((1, "0", 0), "the first point of sight must be a number"),
        ((1, 2, 1), "the last point of sight must be a number, at least 2"),
    ],
)
def test_impossible_sights(sight, message):
    with pytest.raises(InvalidParameterError, match=message):
        create("grad_cam", Averaging().eval(), sight=sight)


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
