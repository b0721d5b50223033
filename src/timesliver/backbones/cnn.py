"""The convolutional network: narrow kernels, max pooling, the mean over time, a small MLP."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from torch import Tensor, nn

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.layers import Convolution, check_widths, inside, mlp
from timesliver.backbones.sight import Sight
from timesliver.errors import check_count
from timesliver.network.batch import Batch

__all__ = ["CNN", "CNNNetwork"]

# Two layers are pooled up to this length, one more for every doubling.
_SHORT = 750


class CNNNetwork(BackboneNetwork):
    """Convolutions with ReLU, the first of them followed by max pooling; see `CNN`."""

    def _build(self, settings: CNN) -> None:
        widths = check_widths("widths", settings.widths)
        check_count("kernel_size", settings.kernel_size, 1)
        n_pools = settings.pooled_layers
        if n_pools is None:
            doublings = max(0, math.ceil(math.log2(self.n_timepoints / _SHORT)))
            n_pools = min(2 + doublings, len(widths))
        check_count("pooled_layers", n_pools, 0, len(widths))
        self.numbers_per_point = max(widths)
        self.convolutions = nn.ModuleList(
            Convolution(n_in, n_out, settings.kernel_size, normalised=False)
            for n_in, n_out in pairwise((self.n_channels, *widths))
        )
        self.pools = nn.ModuleList(nn.MaxPool1d(2, ceil_mode=True) for _ in range(n_pools))
        self.head = mlp(widths[-1], check_widths("head", settings.head, 0), self.n_classes)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the last features, (B, width, T), and how many of T belong to each case."""
        x, lengths = batch.values, batch.lengths
        for layer, convolution in enumerate(self.convolutions):
            x = convolution(x, inside(lengths, x.shape[2]))  # (B, width, T)
            if layer < len(self.pools):
                x, lengths = self.pools[layer](x), (lengths + 1) // 2
        return x, lengths

    @property
    def sight(self) -> Sight:
        """What a position of `features` sees of the series."""
        sight = Sight()
        for convolution, pool in zip_longest(
            self.convolutions, self.pools, fillvalue=nn.Identity()
        ):
            sight = sight.through(convolution, pool)
        return sight


@dataclass(eq=False, repr=False, kw_only=True)
class CNN(BackboneClassifier):
    """Classify series with a convolutional network.

    The defaults have the size of the paper's network for most of its data sets: 41,976
    parameters, 64 per channel and 9 per class. Training parameters are those of
    `BackboneClassifier`.

    Parameters
    ----------
    widths : sequence of int
        Filters of each convolution.
    kernel_size : int
        Points that a filter spans.
    pooled_layers : int or None
        How many of the first convolutions are followed by a max pooling that halves the length.
        None is 2 for series of up to 750 points and one more for every doubling.
    head : sequence of int
        Hidden layers after the mean over time.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(40, 1, 30)), np.repeat(["flat", "bump"], 20)
    >>> X[20:, 0, 10:20] += 3
    >>> CNN(learning_rate=0.01, max_epochs=20, random_state=0).fit(X, y).predict(X[-2:])
    array(['bump', 'bump'], dtype='<U4')
    """

    network_class = CNNNetwork

    widths: Sequence[int] = (32, 32, 64, 128, 64)
    kernel_size: int = 2
    pooled_layers: int | None = None
    head: Sequence[int] = (32, 16, 8)
