"""The one linear layer on R, with the average pooling before it folded into its weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["LinearHead"]


class LinearHead(nn.Module):
    """Logits from the interactions of all segment sizes.

    Average pooling and a linear layer are one linear layer whose weights repeat, so pooling
    never touches R: `full_weight` gives every entry of P its own weight again, and that is at
    the same time the gradient ``g`` of each logit, which is all that explaining needs.

    Pooling stays within a channel; a last group that is not full averages what it has.

    Parameters
    ----------
    n_classes, n_sizes, n_channels, n_symbols, latent_dim : int
        C, |m|, v, n and q.
    pooling : (int, int)
        How many symbols and how many latent columns are averaged.
    shared : bool
        Whether all channels use the same weights.
    """

    def __init__(
        self,
        n_classes: int,
        n_sizes: int,
        n_channels: int,
        n_symbols: int,
        latent_dim: int,
        pooling: tuple[int, int] = (1, 1),
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.n_channels = n_channels
        self.n_symbols = n_symbols
        self.latent_dim = latent_dim
        self.pooling = pooling
        rows = math.ceil(n_symbols / pooling[0])
        columns = math.ceil(latent_dim / pooling[1])
        bound = 1.0 / math.sqrt(n_sizes * n_channels * rows * columns)
        weight = torch.empty(n_classes, n_sizes, 1 if shared else n_channels, rows, columns)
        self.weight = nn.Parameter(weight.uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(n_classes).uniform_(-bound, bound))

    def full_weight(self) -> Tensor:
        """Return W with one weight per entry of P: (C, |m|, v, n + 1, q).

        Row 0 of each channel belongs to "no symbol" and is zero.
        """
        W: Tensor = self.weight
        for axis, (group, size) in enumerate(
            zip(self.pooling, (self.n_symbols, self.latent_dim), strict=True), start=3
        ):
            if group > 1:
                member = torch.arange(size, device=W.device) // group
                W = (W / torch.bincount(member).view(-1, *(1,) * (4 - axis))).index_select(
                    axis, member
                )
        W = W.expand(-1, -1, self.n_channels, -1, -1)
        return F.pad(W, (0, 0, 1, 0))

    def forward(self, R: Sequence[Tensor], scales: Sequence[Tensor]) -> Tensor:
        """Return logits, shape (B, C).

        R holds one P of shape (B, v*(n+1), q) per segment size, up to the factors in `scales`,
        one per case.
        """
        W = self.full_weight().flatten(2)  # (C, |m|, v*(n+1)*q)
        logits: Tensor = self.bias
        for size, (P, scale) in enumerate(zip(R, scales, strict=True)):
            logits = logits + (P.flatten(1) @ W[:, size].T) * scale[:, None]
        return logits
