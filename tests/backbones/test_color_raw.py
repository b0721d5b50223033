"""COLOR on values in place of symbols, and the LSTM's steps over long series."""

import numpy as np
import pytest
import torch
from torch import nn

from batches import batch_of
from classifier.conftest import bumps
from timesliver.backbones import COLOR, LSTM, COLORNetwork, LSTMNetwork
from timesliver.errors import InvalidParameterError

RAW = {"mode": "raw", "latent_dim": 4, "row_norm": True}


@pytest.mark.parametrize(
    ("n_channels", "n_classes", "sizes", "expected"),
    [
        (6, 2, {"latent_norm": False, "projection": True}, 2_660),
        (40, 10, {}, 8_206),
    ],
)
def test_parameter_counts_of_the_paper(n_channels, n_classes, sizes, expected):
    network = COLORNetwork(COLOR(**RAW, **sizes), n_channels, n_classes)
    assert sum(weight.numel() for weight in network.parameters()) == expected


def test_the_estimator_has_the_same_network():
    X = np.random.default_rng(0).normal(size=(12, 6, 20))
    model = COLOR(**RAW, latent_norm=False, projection=True, max_epochs=1).fit(X, [0, 1] * 6)
    assert sum(weight.numel() for weight in model.network_.parameters()) == 2_660


def test_raw_against_plain_loops():
    network = COLORNetwork(
        COLOR(latent_dim=4, mode="raw", row_norm=True, projection=True, positional_encoding=False),
        3,
        2,
    ).eval()
    x = torch.randn(1, 3, 9, generator=torch.Generator().manual_seed(0))
    x[:, :, 7:] = 0
    D, Q = network.encode(batch_of(x, torch.tensor([7])))
    expected = torch.zeros(6, 3)
    for k in range(4):  # the case has 7 points, so four segments of 4
        for offset, weight in enumerate((1, 3, 3, 1)):  # three averages of two points in a row
            expected[k] += weight / 7 * x[0, :, k + offset]
    torch.testing.assert_close(D[0], expected)
    mixed = (network.projection.weight @ x[0] + network.projection.bias[:, None])[None]
    for layer, convolution in enumerate(network.convolutions):
        mixed = convolution(mixed if layer == 0 else mixed.relu())
    q = mixed[0].T
    q = (q - q.mean(1, keepdim=True)) / (q.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(Q[0], q)
    P = D[0].T @ Q[0]
    P = (P - P.mean(0)) / (P.var(0, unbiased=False) + 1e-5).sqrt()
    logits = network(batch_of(x, torch.tensor([7])))
    torch.testing.assert_close(logits, network.head(P.flatten()[None]), rtol=1e-4, atol=1e-5)


def test_raw_learns_saves_and_loads(tmp_path):
    X, y, _ = bumps(n_cases=120, n_channels=3)
    settings = {"max_epochs": 40, "batch_size": 16, "learning_rate": 0.01, "random_state": 0}
    model = COLOR(mode="raw", latent_dim=6, **settings).fit(10 * X + 3, y)
    new, new_y, _ = bumps(n_cases=60, n_channels=3, seed=5)
    assert model.score(10 * new + 3, new_y) > 0.9
    model.save(tmp_path / "model")
    again = COLOR.load(tmp_path / "model")
    np.testing.assert_array_equal(again.logits(new), model.logits(new))
    assert again.get_params() == model.get_params()


def test_raw_with_unequal_lengths_and_missing_values():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2, length)) for length in (1, 2, 3, 5, 9, 17, 30, 12, 4, 8)]
    X[6][0, 3:9] = np.nan
    model = COLOR(mode="raw", max_epochs=2, random_state=0).fit(X, [0, 1] * 5)
    together = model.logits(X)
    alone = np.concatenate([model.logits([case]) for case in X])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_impossible_settings():
    X, y, _ = bumps(n_cases=8)
    with pytest.raises(InvalidParameterError, match="mode='both' is unknown"):
        COLOR(mode="both").fit(X, y)
    with pytest.raises(InvalidParameterError, match="row_norm leaves nothing of a single row"):
        COLOR(mode="raw", row_norm=True).fit(X, y)
    with pytest.raises(InvalidParameterError, match="step must be a whole number"):
        LSTM(step=0).fit(X, y)


# --- the LSTM's steps ----------------------------------------------------------------------------


def test_the_lstm_reads_means():
    network = LSTMNetwork(LSTM(width=5, step=4), 2, 3).eval()
    x = torch.randn(2, 2, 10, generator=torch.Generator().manual_seed(0))
    x[1, :, 5:] = 0
    found = network(batch_of(x, torch.tensor([10, 5])))
    means = [x[0, :, :4].mean(1), x[0, :, 4:8].mean(1), x[0, :, 8:].mean(1)]
    states, _ = network.lstm(torch.stack(means)[None])
    torch.testing.assert_close(found[0], network.head(states[0, -1]))
    states, _ = network.lstm(torch.stack([x[1, :, :4].mean(1), x[1, :, 4]])[None])
    torch.testing.assert_close(found[1], network.head(states[0, -1]))
    longer = batch_of(nn.functional.pad(x, (0, 7)), torch.tensor([10, 5]))
    torch.testing.assert_close(network(longer), found)


@pytest.mark.parametrize(("n_timepoints", "step"), [(20, 1), (512, 1), (513, 2), (3000, 6)])
def test_long_series_are_read_in_steps(n_timepoints, step, tmp_path):
    X = np.random.default_rng(0).normal(size=(4, 1, n_timepoints))
    model = LSTM(width=2, max_epochs=1).fit(X, [0, 1, 0, 1])
    assert model.network_.step == step
    _, lengths = model.network_.features(model._batch(model._read(X)))
    assert lengths.max() <= 512
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(LSTM.load(tmp_path / "model").logits(X), model.logits(X))
    assert LSTM(width=2, max_epochs=1, step=3).fit(X, [0, 1, 0, 1]).network_.step == 3
