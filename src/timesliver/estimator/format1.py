"""Model files of format 1: one learnt encoder, whose settings were those of the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.typing import JSONDict

__all__ = ["upgrade", "upgrade_weights"]

_OF_THE_CLASSIFIER = ("class_weight", "random_state")


def upgrade(
    tensors: dict[str, NDArray[Any]], header: JSONDict
) -> tuple[dict[str, NDArray[Any]], JSONDict]:
    """Return tensors and header as format 2 has them."""
    if header.get("kind") != "TimeSliverClassifier":
        return tensors, header
    old: JSONDict = header["parameters"]
    symbols = header["symbols"]
    if symbols["name"] == "raw":
        raise ValueError("the ablation without symbols is now a part of the benchmark")
    renamed = {"segment_sizes": "sizes"}
    settings = {
        renamed.get(name, name): value
        for name, value in old.items()
        if name not in (*_OF_THE_CLASSIFIER, "n_bins", "symbolizer", "callbacks")
    }
    settings["symbols"] = {"symbolizer": symbols["name"], "settings": symbols["settings"]}
    chosen = settings | {"positional_encoding": header["positional_encoding"]}
    encoder = {"encoder": "segments", "settings": chosen}
    upgraded = {
        **header,
        "parameters": {
            "encoder": {"encoder": "segments", "settings": settings},
            **{name: old[name] for name in _OF_THE_CLASSIFIER},
        },
        "views": [{"encoder": encoder, "symbols": [symbols]}],
        "parts": [{"view": 0, "encoder": encoder}],
    }
    shape = header["fitted"]["n_channels_"], _n_symbols(symbols), settings["latent_dim"]
    weights = {k: t for k, t in tensors.items() if k.startswith("network.")}
    moved = {k: t for k, t in tensors.items() if k not in weights}
    moved = {k.replace("input.symbols.", "input.symbols.0.0.", 1): t for k, t in moved.items()}
    old_names = {k.removeprefix("network."): t for k, t in weights.items()}
    moved |= {f"network.{k}": t for k, t in upgrade_weights(old_names, *shape).items()}
    return moved, upgraded


def upgrade_weights(
    weights: dict[str, NDArray[Any]], n_channels: int, n_symbols: int, latent_dim: int
) -> dict[str, NDArray[Any]]:
    """Return the weights of a network by the names they have now."""
    moved: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        if name == "head.weight":  # (C, sizes, v or 1, rows, columns)
            for size in range(weight.shape[1]):
                term = f"parts.0.terms.{size}.0"
                moved[f"{term}.weights.weight"] = weight[:, size]
                average = np.zeros((1, n_channels, n_symbols, latent_dim), np.float32)
                moved[f"{term}.average"] = average
        elif name == "head.bias":
            moved["bias"] = weight
        elif name.startswith("projection."):
            moved[name.replace("projection", "parts.0.stem", 1)] = weight
        else:
            moved[f"parts.0.{name}"] = weight
    return moved


def _n_symbols(symbols: JSONDict) -> int:
    settings: dict[str, int] = symbols["settings"]
    if symbols["name"] == "sfa":
        return int(settings["alphabet_size"] ** settings["word_length"])
    return settings["n_bins"]
