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
from timesliver.backbones.sight import Sight

NETWORKS = [
    (CNNNetwork(CNN(widths=(4, 4, 4, 4), pooled_layers=2), 2, 3), (4, 0, 14)),
    (CNNNetwork(CNN(widths=(4, 4), kernel_size=5, pooled_layers=0), 2, 3), (1, -4, 4)),
    (CNNNetwork(CNN(widths=(4, 4), kernel_size=3, pooled_layers=2), 2, 3), (4, -3, 6)),
    (FCNNetwork(FCN(widths=(4, 4, 4)), 2, 3), (1, -6, 7)),
    (ResNetNetwork(ResNet(widths=(4, 4), kernel_sizes=(8, 5)), 2, 3), (1, -10, 12)),
    (
        InceptionTimeNetwork(InceptionTime(width=3, kernel_sizes=(10, 5), depth=3), 2, 3),
        (1, -12, 15),
    ),
    (
        InceptionTimeNetwork(InceptionTime(width=3, kernel_sizes=(1,), depth=4), 2, 3),
        (1, -4, 4),
    ),
]


def seen_by(network, n_timepoints):
    """Which times each position sees, by spreading a value that is no number: (T, L)."""
    x = torch.zeros(n_timepoints, 2, n_timepoints)
    x[torch.arange(n_timepoints), :, torch.arange(n_timepoints)] = torch.nan
    with torch.no_grad():
        features, _ = network.features(batch_of(x, torch.full((len(x),), n_timepoints)))
    return features.isnan().any(1).T.numpy()


@pytest.mark.parametrize(("network", "expected"), NETWORKS)
@pytest.mark.parametrize("L", [80, 83])
def test_sight_of_the_backbones(network, expected, L):
    sight = network.eval().sight
    assert sight == expected
    sees = seen_by(network, L)
    for u in range(len(sees)):
        times = np.arange(sight.step * u + sight.first, sight.step * u + sight.last + 1)
        inside = times[(times >= 0) & (times < L)].astype(int)
        assert set(np.flatnonzero(sees[u])) <= set(inside)
        if len(inside) == len(times):
            assert sees[u, inside[[0, -1]]].all()


@pytest.mark.parametrize(("network", "expected"), NETWORKS)
def test_positions_reach_from_the_start_to_the_end(network, expected):
    sight = network.eval().sight
    for L in range(1, 60):
        features, _ = network.features(batch_of(torch.zeros(1, 2, L), torch.tensor([L])))
        last = sight.step * (features.shape[2] - 1)
        assert last + sight.first < L <= last + sight.last + sight.step


@pytest.mark.parametrize(
    "network",
    [LSTMNetwork(LSTM(width=4), 2, 3), small_transformer(), COLORNetwork(COLOR(mode="raw"), 2, 3)],
)
def test_others_see_everything_or_do_not_say(network):
    assert network.sight is None


def test_strides_dilation_and_padding():
    layers = nn.MaxPool1d(3, 2, 1), nn.ConstantPad1d((4, 0), 0.0), nn.Conv1d(2, 3, 5)
    assert Sight().through(*layers) == Sight().through(nn.Sequential(*layers)) == (2, -9, 1)
    assert Sight().through(nn.Conv1d(2, 3, 3, stride=3, dilation=4), nn.ReLU()) == (3, 0, 8)
    assert Sight(2, -1, 0).beside(Sight(2, 0, 4), Sight(2, -3, 1)) == (2, -3, 4)


def test_positions_spread_evenly():
    assert Sight.even(40, 20) == (2, 0, 1)
    assert Sight.even(40, 40).centre == 0
    assert Sight.even(10, 20).step == 0.5
