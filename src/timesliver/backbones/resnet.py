"""The residual network of Wang, Yan and Oates (2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.layers import Convolution, check_widths, inside
from timesliver.backbones.sight import Sight
from timesliver.network.batch import Batch

__all__ = ["ResNet", "ResNetNetwork"]


class _Block(nn.Module):
    """Convolutions whose result is added to their input, both normalised."""

    def __init__(self, n_in: int, n_out: int, kernel_sizes: Sequence[int]) -> None:
        super().__init__()
        last = len(kernel_sizes) - 1
        self.convolutions = nn.ModuleList(
            Convolution(n_in if layer == 0 else n_out, n_out, size, relu=layer < last)
            for layer, size in enumerate(kernel_sizes)
        )
        self.shortcut = Convolution(n_in, n_out, 1, relu=False)
        if n_in == n_out:
            self.shortcut.conv = nn.Identity()  # type: ignore[assignment]
        self.relu = nn.ReLU()

    def forward(self, x: Tensor, within: Tensor) -> Tensor:
        """Return (B, n_out, L)."""
        y = x
        for convolution in self.convolutions:
            y = convolution(y, within)
        total: Tensor = self.relu(y + self.shortcut(x, within))
        return total

    def sees(self, before: Sight) -> Sight:
        """Return what a position sees of the series, from what one of the input does."""
        return before.through(*self.convolutions).beside(before.through(self.shortcut))


class ResNetNetwork(BackboneNetwork):
    """Residual blocks of convolutions; see `ResNet`."""

    def _build(self, settings: ResNet) -> None:
        widths = check_widths("widths", settings.widths)
        kernel_sizes = check_widths("kernel_sizes", settings.kernel_sizes)
        self.numbers_per_point = 2 * max(widths)
        self.blocks: Any = nn.ModuleList(
            _Block(n_in, n_out, kernel_sizes)
            for n_in, n_out in pairwise((self.n_channels, *widths))
        )
        self.head = nn.Linear(widths[-1], self.n_classes)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the last features, (B, width, T), and how many of T belong to each case."""
        x = batch.values
        within = inside(batch.lengths, x.shape[2])
        for block in self.blocks:
            x = block(x, within)  # (B, width, L)
        return x, batch.lengths

    @property
    def sight(self) -> Sight:
        """What a position of `features` sees of the series."""
        sight = Sight()
        for block in self.blocks:
            sight = block.sees(sight)
        return sight


@dataclass(eq=False, repr=False, kw_only=True)
class ResNet(BackboneClassifier):
    """Classify series with the residual network of Wang, Yan and Oates (2017).

    Training parameters are those of `BackboneClassifier`.

    Parameters
    ----------
    widths : sequence of int
        Filters of each block.
    kernel_sizes : sequence of int
        Points that the successive convolutions of a block span.
    """

    network_class = ResNetNetwork

    widths: Sequence[int] = (64, 128, 128)
    kernel_sizes: Sequence[int] = (8, 5, 3)
