"""Write reference outputs: python tests/golden/make.py. Run it only when a change is intended."""

from pathlib import Path

import numpy as np

from timesliver import Batch, NetworkConfig, TimeSliverNetwork, explain

HERE = Path(__file__).parent
CONFIGS = {
    "mixed": {"segment_sizes": (4, 7), "pooling": (2, 2), "positional_encoding": True},
    "separate": {"segment_sizes": (5,), "channels": "separate", "window": "bell"},
    "shared": {"segment_sizes": (3, 6), "channels": "shared", "depth": 1},
}
SHAPE = {"n_channels": 2, "n_symbols": 6, "n_classes": 3, "latent_dim": 5}


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


def outputs(network: TimeSliverNetwork) -> dict[str, np.ndarray]:
    """Logits and attributions of the reference inputs."""
    X, codes = inputs()
    batch = Batch.prepare(X, codes, SHAPE["n_symbols"], network.config.separate)
    result = {"logits": network.infer(batch).numpy()}
    for name, options in {
        "timesliver": {},
        "additive": {"centred": True, "background": True, "spread": True},
    }.items():
        scores = explain(network, batch, target=1, method=name, **options)
        result[f"{name}_positive"] = scores.positive_by_channel
        result[f"{name}_negative"] = scores.negative_by_channel
    return result


def main() -> None:
    for name, settings in CONFIGS.items():
        network = TimeSliverNetwork(NetworkConfig(**SHAPE, **settings), seed=3)
        weights = {f"weights/{key}": p.numpy() for key, p in network.state_dict().items()}
        np.savez_compressed(HERE / f"{name}.npz", **weights, **outputs(network))


if __name__ == "__main__":
    main()
