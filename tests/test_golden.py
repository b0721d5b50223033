"""Stored logits and attributions, to catch drift that no equation of a test would notice.

The files hold the weights of networks of an early version under the names they had then. They are
never written again.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from timesliver import Segments
from timesliver.attribution import explain
from timesliver.encoders import Shape
from timesliver.estimator.format1 import upgrade_weights
from timesliver.network import Batch, Symbols, TimeSliverNetwork, View
from timesliver.series import as_series

GOLDEN = Path(__file__).parent / "golden"
SETTINGS = {
    "mixed": {"sizes": (4, 7), "pooling": (2, 2), "positional_encoding": True},
    "separate": {"sizes": (5,), "channels": "separate", "window": "bell"},
    "shared": {"sizes": (3, 6), "channels": "shared", "depth": 1},
}
N_CHANNELS, N_SYMBOLS, N_CLASSES, LATENT_DIM = 2, 6, 3, 5


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """Series with missing values and unequal lengths, and codes for them."""
    t = np.arange(30)
    X = np.stack(
        [[np.sin(0.3 * t * (i + 1) + c) + 0.02 * i * t for c in range(2)] for i in range(4)]
    )
    X[1, 0, 5:8] = np.nan
    X[2, :, 19:] = np.nan
    codes = np.where(np.isnan(X), 0, np.clip(np.floor(np.nan_to_num(X) * 2) + 3, 0, 5) + 1)
    return X, codes.astype(np.uint8)


def outputs(network: TimeSliverNetwork, encoder: Segments) -> dict[str, np.ndarray]:
    """Logits and attributions of the reference inputs."""
    X, codes = inputs()
    series = as_series(X)
    symbols = Symbols.of(codes, series.observed, N_SYMBOLS, encoder.separate)
    view = View.of(series.values, series, symbols=(symbols,))
    batch = Batch.of(series.values, series, views=(view,))
    result = {"logits": network.infer(batch).numpy()}
    for method, options in {
        "timesliver": {},
        "additive": {"centred": True, "background": "series", "smoothing": encoder.size},
    }.items():
        scores = explain(network, batch, target=1, method=method, **options)
        result[f"{method}_positive"] = scores.positive_by_channel
        result[f"{method}_negative"] = scores.negative_by_channel
    return result


@pytest.mark.parametrize("name", list(SETTINGS))
def test_outputs_have_not_drifted(name):
    with np.load(GOLDEN / f"{name}.npz", allow_pickle=False) as stored:
        reference = dict(stored)
    encoder = Segments(**{"latent_dim": LATENT_DIM, "positional_encoding": False} | SETTINGS[name])
    shape = Shape(N_CHANNELS, N_CLASSES, ((N_CHANNELS, N_SYMBOLS),))
    [(_, network)] = encoder.networks(shape, seed=0, can_choose=False)
    weights = {
        key.removeprefix("weights/"): value
        for key, value in reference.items()
        if key.startswith("weights/")
    }
    weights = upgrade_weights(weights, N_CHANNELS, N_SYMBOLS, LATENT_DIM)
    network.load_state_dict({key: torch.from_numpy(value) for key, value in weights.items()})
    for key, value in outputs(network, encoder).items():
        np.testing.assert_allclose(value, reference[key], rtol=1e-4, atol=1e-6, err_msg=key)
