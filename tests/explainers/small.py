"""Small data and a small network, on which several ways to explain are tried."""

from __future__ import annotations

import numpy as np
from torch import nn

from timesliver.backbones import Transformer, TransformerNetwork
from timesliver.backbones.layers import seeded


def calm_stretches(n_cases, seed, n_timepoints=60):
    """LowVar, small and easy: a stretch of one channel is calm, its level is the class."""
    rng = np.random.default_rng(seed)
    X = 0.4 * rng.normal(size=(n_cases, 2, n_timepoints))
    y = np.arange(n_cases) % 2
    where = np.zeros(X.shape, dtype=bool)
    for case, start in enumerate(rng.integers(5, n_timepoints - 15, size=n_cases)):
        where[case, case // 2 % 2, start : start + 10] = True
    level = np.where(y, 1.5, -1.5)[:, None, None] + 0.1 * rng.normal(size=X.shape)
    return np.where(where, level, X), y, where


class Smooth(nn.Module):
    """Activations, but no pooling, where captum's DeepLIFT is right too; for (B, 2, 16)."""

    def __init__(self):
        super().__init__()
        with seeded(1):
            self.layers = nn.Sequential(
                nn.Conv1d(2, 6, 3), nn.ReLU(), nn.Conv1d(6, 6, 3), nn.Tanh(), nn.Flatten(),
                nn.Linear(6 * 12, 8), nn.Sigmoid(), nn.Linear(8, 3),
            )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


def small_transformer():
    """One layer of two heads, for series of two channels and three classes."""
    sizes = {"stem_widths": (8,), "stem_kernels": (3,), "n_heads": 2, "ff_width": 16, "head": ()}
    return TransformerNetwork(Transformer(**sizes), 2, 3).eval()
