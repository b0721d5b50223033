"""The weights of the one linear layer, with the average pooling before it folded in."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["Weights"]


class Weights(nn.Module):
    """One weight for each class and entry of a term's P.

    Average pooling and a linear layer are one linear layer whose weights repeat, so pooling
    never touches P: `full` gives every entry of P its own weight again, and that is at the same
    time the gradient ``g`` of each logit, which is all that explaining needs.

    Pooling stays within a symbol channel; a last group that is not full averages what it has.

    Parameters
    ----------
    n_classes, n_channels, n_symbols, latent_dim : int
        C, the number of symbol channels J, n and q.
    pooling : (int, int)
        How many symbols and how many latent columns are averaged.
    shared : bool
        Whether all symbol channels use the same weights.
    """

    def __init__(
        self,
        n_classes: int,
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
        self.weight = nn.Parameter(
            torch.zeros(n_classes, 1 if shared else n_channels, rows, columns)
        )

    def full(self) -> Tensor:
        """Return W with one weight per entry of P: (C, J, n + 1, q).

        Row 0 of each symbol channel belongs to "no symbol" and is zero.
        """
        W: Tensor = self.weight
        for axis, (group, size) in enumerate(
            zip(self.pooling, (self.n_symbols, self.latent_dim), strict=True), start=2
        ):
            if group > 1:
                member = torch.arange(size, device=W.device) // group
                W = (W / torch.bincount(member).view(-1, *(1,) * (3 - axis))).index_select(
                    axis, member
                )
        W = W.expand(-1, self.n_channels, -1, -1)
        return F.pad(W, (0, 0, 1, 0))
