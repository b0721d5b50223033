"""The fully convolutional network of Wang, Yan and Oates (2017)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import Tensor, nn

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.layers import Convolution, check_widths, inside
from timesliver.backbones.sight import Sight
from timesliver.errors import InvalidParameterError
from timesliver.network.batch import Batch

__all__ = ["FCN", "FCNNetwork"]


class FCNNetwork(BackboneNetwork):
    """Convolutions with batch normalisation and ReLU; see `FCN`."""

    def _build(self, settings: FCN) -> None:
        widths = check_widths("widths", settings.widths)
        kernel_sizes = check_widths("kernel_sizes", settings.kernel_sizes)
        if len(widths) != len(kernel_sizes):
            raise InvalidParameterError(
                f"widths={widths} and kernel_sizes={kernel_sizes} must have one entry for each "
                f"convolution"
            )
        self.numbers_per_point = max(widths)
        self.convolutions = nn.ModuleList(
            Convolution(n_in, n_out, size)
            for (n_in, n_out), size in zip(
                pairwise((self.n_channels, *widths)), kernel_sizes, strict=True
            )
        )
        self.head = nn.Linear(widths[-1], self.n_classes)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the last features, (B, width, T), and how many of T belong to each case."""
        x = batch.values
        within = inside(batch.lengths, x.shape[2])
        for convolution in self.convolutions:
            x = convolution(x, within)  # (B, width, L)
        return x, batch.lengths

    @property
    def sight(self) -> Sight:
        """What a position of `features` sees of the series."""
        return Sight().through(*self.convolutions)


@dataclass(eq=False, repr=False, kw_only=True)
class FCN(BackboneClassifier):
    """Classify series with the fully convolutional network of Wang, Yan and Oates (2017).

    Training parameters are those of `BackboneClassifier`.

    Parameters
    ----------
    widths, kernel_sizes : sequence of int
        Filters of each convolution, and the points that they span.
    """

    network_class = FCNNetwork

    widths: Sequence[int] = (128, 256, 128)
    kernel_sizes: Sequence[int] = (8, 5, 3)
