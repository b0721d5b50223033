"""The Inception network of Ismail Fawaz et al. (2020): kernels of several sizes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.layers import BatchNorm, Convolution, check_widths, inside
from timesliver.backbones.sight import Sight
from timesliver.errors import check_count
from timesliver.network.batch import Batch

__all__ = ["InceptionTime", "InceptionTimeNetwork"]

_RESIDUAL = 3  # modules between one shortcut and the next


class _Inception(nn.Module):
    """Convolutions of several sizes and a pooled branch, put side by side and normalised."""

    def __init__(self, n_in: int, width: int, kernel_sizes: Sequence[int]) -> None:
        super().__init__()
        self.bottleneck = nn.Conv1d(n_in, width, 1, bias=False) if n_in > 1 else nn.Identity()
        n_branch = width if n_in > 1 else 1
        self.branches = nn.ModuleList(
            nn.Sequential(
                nn.ConstantPad1d(((size - 1) // 2, size // 2), 0.0),
                nn.Conv1d(n_branch, width, size, bias=False),
            )
            for size in kernel_sizes
        )
        self.pooled = nn.Sequential(
            nn.ConstantPad1d(1, 0.0), nn.MaxPool1d(3, 1), nn.Conv1d(n_in, width, 1, bias=False)
        )
        self.norm = BatchNorm(width * (len(kernel_sizes) + 1))
        self.relu = nn.ReLU()

    def forward(self, x: Tensor, within: Tensor) -> Tensor:
        """Return (B, width * branches, L)."""
        narrow = self.bottleneck(x)
        branches = [branch(narrow) for branch in self.branches]
        y: Tensor = self.relu(self.norm(torch.cat([*branches, self.pooled(x)], 1), within))
        return y

    def sees(self, before: Sight) -> Sight:
        """Return what a position sees of the series, from what one of the input does."""
        return before.beside(*(before.through(branch) for branch in (*self.branches, self.pooled)))


class InceptionTimeNetwork(BackboneNetwork):
    """Inception modules with shortcuts; see `InceptionTime`."""

    def _build(self, settings: InceptionTime) -> None:
        check_count("width", settings.width, 1)
        check_count("depth", settings.depth, 1)
        kernel_sizes = check_widths("kernel_sizes", settings.kernel_sizes)
        n_in, total = self.n_channels, settings.width * (len(kernel_sizes) + 1)
        self.numbers_per_point = 3 * total
        self.inceptions: Any = nn.ModuleList(
            _Inception(n_in if layer == 0 else total, settings.width, kernel_sizes)
            for layer in range(settings.depth)
        )
        self.shortcuts = nn.ModuleList(
            Convolution(n_in if block == 0 else total, total, 1, relu=False)
            for block in range(settings.depth // _RESIDUAL)
        )
        self.relus = nn.ModuleList(nn.ReLU() for _ in self.shortcuts)
        self.head = nn.Linear(total, self.n_classes)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the last features, (B, width, T), and how many of T belong to each case."""
        x = start = batch.values
        within = inside(batch.lengths, x.shape[2])
        for layer, module in enumerate(self.inceptions):
            x = module(x, within)  # (B, total, L)
            if (layer + 1) % _RESIDUAL == 0:
                block = layer // _RESIDUAL
                x = start = self.relus[block](x + self.shortcuts[block](start, within))
        return x, batch.lengths

    @property
    def sight(self) -> Sight:
        """What a position of `features` sees of the series."""
        sight = start = Sight()
        for layer, module in enumerate(self.inceptions):
            sight = module.sees(sight)
            if (layer + 1) % _RESIDUAL == 0:
                sight = start = sight.beside(start)
        return sight


@dataclass(eq=False, repr=False, kw_only=True)
class InceptionTime(BackboneClassifier):
    """Classify series with the Inception network of Ismail Fawaz et al. (2020).

    This is one network; the paper averages the probabilities of five with other initial weights.
    Training parameters are those of `BackboneClassifier`.

    Parameters
    ----------
    width : int
        Filters of each branch of a module.
    kernel_sizes : sequence of int
        Points that the filters of the branches span.
    depth : int
        Number of modules; every third is followed by a shortcut.
    """

    network_class = InceptionTimeNetwork

    width: int = 32
    kernel_sizes: Sequence[int] = (40, 20, 10)
    depth: int = 6
