"""The settings with which the paper's tables were run again, each chosen on validation cases."""

from __future__ import annotations

from typing import Any

from timesliver.symbols import SAX

__all__ = ["PRESETS"]

_COMMON: dict[str, Any] = {
    "latent_dim": 36,
    "positional_encoding": False,
    "max_epochs": 30,
    "patience": 30,
}

PRESETS: dict[str, dict[str, Any]] = {
    name: _COMMON | special
    for name, special in {
        "FreqSum": {
            "symbols": SAX(15),
            "sizes": (7,),
            "pooling": (8, 4),
            "learning_rate": 0.003,
            "head_rate": 10,
            "max_epochs": 80,
            "patience": 80,
        },
        "SeqComb-UV": {
            "symbols": SAX(20),
            "sizes": (4, 7),
            "positional_encoding": True,
            "head_rate": 30,
        },
        "SeqComb-MV": {
            "symbols": SAX(10),
            "sizes": (4, 7),
            "positional_encoding": True,
            "pooling": (2, 2),
            "head_rate": 30,
        },
        "LowVar": {
            "symbols": SAX(20),
            "sizes": (4,),
            "pooling": (2, 2),
            "learning_rate": 0.003,
            "head_rate": 10,
        },
        "Audio": {
            "symbols": SAX(10),
            "latent_dim": 12,
            "sizes": (1,),
            "pooling": (3, 1),
            "learning_rate": 0.003,
            "max_epochs": 50,
            "patience": 50,
        },
        "EEG": {
            "symbols": SAX(25),
            "latent_dim": 12,
            "sizes": (10,),
            "positional_encoding": True,
            "pooling": (2, 1),
            "learning_rate": 0.003,
            "max_epochs": 40,
            "patience": 40,
        },
        "FordA": {
            "symbols": SAX(70),
            "sizes": (10,),
            "pooling": (2, 2),
            "learning_rate": 0.003,
            "head_rate": 10,
            "max_epochs": 40,
            "patience": 40,
        },
    }.items()
}
