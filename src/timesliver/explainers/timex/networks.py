"""The networks of TimeX++: which entries to keep, what to make of the others, and how it spreads.

Series are (B, v, L) as everywhere; inside the mask network, tokens are (B, T, d).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = [
    "Conditioner",
    "EncoderLayer",
    "GaussianHead",
    "Generated",
    "MaskNetwork",
    "TimeXNetwork",
    "positional_code",
    "sample_mask",
]

_CODE = 16  # width of the positional code
_HIDDEN = 32  # width of all hidden layers but the encoder's
_DECODER_LAYERS = 2
_DECODER_DROPOUT = 0.1
_TINY = 1e-9  # keeps the logarithm of a probability finite


def positional_code(n_tokens: int, like: Tensor) -> Tensor:
    """Return sines and cosines of the times 1..T on eight scales from 1 to T, shape (T, 16)."""
    t = torch.arange(1, n_tokens + 1, device=like.device, dtype=like.dtype)
    scales = n_tokens ** torch.linspace(0, 1, _CODE // 2, device=like.device, dtype=like.dtype)
    angles = t[:, None] / scales  # (T, 8)
    return torch.cat([angles.sin(), angles.cos()], 1)


class EncoderLayer(nn.Module):
    """A transformer layer whose attention replaces its input, where others add to it.

    A residual would carry each token past the attention to its own place.
    """

    def __init__(self, dim: int, ff_width: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, 1, dropout, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.feed_forward = nn.Sequential(
            nn.Linear(dim, ff_width),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(ff_width, dim),
            nn.Dropout(dropout),
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (B, T, d)."""
        attended, _ = self.attention(tokens, tokens, tokens, need_weights=False)
        h = self.norm1(self.dropout(attended))
        out: Tensor = self.norm2(h + self.feed_forward(h))
        return out


class MaskNetwork(nn.Module):
    """The encoder E, the decoder D and its output: how probably each entry is to be kept."""

    def __init__(
        self, n_channels: int, n_layers: int, ff_width: int, dropout: float, max_tokens: int
    ) -> None:
        super().__init__()
        dim = n_channels + _CODE
        self.max_tokens = max_tokens
        self.encoder = nn.Sequential(
            *(EncoderLayer(dim, ff_width, dropout) for _ in range(n_layers))
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(dim, 1, _HIDDEN, _DECODER_DROPOUT, batch_first=True)
            for _ in range(_DECODER_LAYERS)
        )
        self.output = nn.Linear(dim, max(2, n_channels))
        nn.init.xavier_uniform_(self.output.weight)
        nn.init.constant_(self.output.bias, 0.01)

    def forward(self, x: Tensor) -> Tensor:
        """Return the probabilities p, (B, v, L), for series of that shape.

        A long series is averaged over equal stretches, a token for each; p is equal within one.
        """
        L = x.shape[2]
        stretch = math.ceil(L / self.max_tokens)
        series = F.avg_pool1d(x, stretch, ceil_mode=True).transpose(1, 2)  # (B, T, v)
        code = positional_code(series.shape[1], x).expand(len(x), -1, -1)
        memory = self.encoder(torch.cat([code, series], 2))
        tokens = torch.cat([series, code], 2)
        for layer in self.decoder:
            tokens = layer(tokens, memory)
        scores = self.output(tokens)
        p: Tensor = scores.softmax(2)[..., 1:] if x.shape[1] == 1 else scores.sigmoid()
        return p.transpose(1, 2).repeat_interleave(stretch, dim=2)[:, :, :L]


def sample_mask(p: Tensor) -> Tensor:
    """Draw 1 with probability p, else 0; backwards, pass the gradient of a relaxed draw.

    The difference of the two Gumbel variables of "keep" and "drop" is one logistic variable.
    """
    noise = torch.rand_like(p).logit(1e-7)
    relaxed = ((p + _TINY).log() - (1 - p + _TINY).log() + noise).sigmoid()
    return (relaxed > 0.5).to(p) + (relaxed - relaxed.detach())


class Conditioner(nn.Module):
    """The generator G: makes each entry of the new series from its value and its mask."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, _HIDDEN), nn.ELU(), nn.Linear(_HIDDEN, 1))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return (B, v, L)."""
        made: Tensor = self.layers(torch.stack([x, mask], 3))
        return made[..., 0]


class GaussianHead(nn.Module):
    """Mean and logarithmic variance of a normal distribution over whole series."""

    def __init__(self, n_entries: int) -> None:
        super().__init__()
        self.mean, self.log_variance = (
            nn.Sequential(nn.Linear(n_entries, _HIDDEN), nn.ELU(), nn.Linear(_HIDDEN, n_entries))
            for _ in range(2)
        )

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return two tensors of shape (B, v * L) for series (B, v, L)."""
        flat = x.flatten(1)
        return self.mean(flat), self.log_variance(flat)


class Generated(NamedTuple):
    """What the networks made of a batch; all but the Gaussians have the shape (B, v, L)."""

    probabilities: Tensor
    mask: Tensor
    series: Tensor
    reference: Tensor
    gaussian: tuple[Tensor, Tensor]
    gaussian_of_original: tuple[Tensor, Tensor]


class TimeXNetwork(nn.Module):
    """All that TimeX++ trains.

    Parameters
    ----------
    mean, spread : tensor of shape (v, L)
        Mean and standard deviation of the training series, of which the filling for entries that
        are not kept is drawn.
    n_layers, ff_width, dropout
        Layers of the encoder, their feed-forward width, and the share of numbers set to 0.
    max_tokens : int
        Most tokens of a series.
    """

    mean: Tensor
    spread: Tensor

    def __init__(
        self,
        mean: Tensor,
        spread: Tensor,
        n_layers: int,
        ff_width: int,
        dropout: float,
        max_tokens: int,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)
        self.masks = MaskNetwork(len(mean), n_layers, ff_width, dropout, max_tokens)
        self.conditioner = Conditioner()
        self.gaussian = GaussianHead(mean.numel())
        self.gaussian_of_original = GaussianHead(mean.numel())

    def forward(self, x: Tensor) -> Generated:
        """Draw a mask and make a new series of it; draws from torch's global generator."""
        p = self.masks(x)
        mask = sample_mask(p)
        filling = self.mean + self.spread * torch.randn_like(x)
        series = self.conditioner(x, mask)
        return Generated(
            p,
            mask,
            series,
            mask * x + (1 - mask) * filling,
            self.gaussian(series),
            self.gaussian_of_original(x),
        )
