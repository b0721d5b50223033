"""Model files of format 1: one learnt encoder, whose settings were those of the classifier."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from timesliver.typing import JSONDict

__all__ = ["upgrade"]

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
    shape = tensors["network.head.weight"].shape  # (C, sizes, v or 1, rows, columns)
    n_channels, n_symbols = header["fitted"]["n_channels_"], _n_symbols(symbols)
    moved: dict[str, NDArray[Any]] = {}
    for name, tensor in tensors.items():
        if name == "network.head.weight":
            for size in range(shape[1]):
                term = f"network.parts.0.terms.{size}.0"
                moved[f"{term}.weights.weight"] = tensor[:, size]
                average = (1, n_channels, n_symbols, settings["latent_dim"])
                moved[f"{term}.average"] = np.zeros(average, np.float32)
        elif name == "network.head.bias":
            moved["network.bias"] = tensor
        elif name.startswith("network.projection."):
            moved[name.replace("projection", "parts.0.stem", 1)] = tensor
        elif name.startswith("network."):
            moved[name.replace("network.", "network.parts.0.", 1)] = tensor
        else:
            moved[name.replace("input.symbols.", "input.symbols.0.0.", 1)] = tensor
    return moved, upgraded


def _n_symbols(symbols: JSONDict) -> int:
    settings: dict[str, int] = symbols["settings"]
    if symbols["name"] == "sfa":
        return int(settings["alphabet_size"] ** settings["word_length"])
    return settings["n_bins"]
