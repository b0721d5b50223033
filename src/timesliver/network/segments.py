"""Module I: each segment of ``m`` successive points becomes a latent vector, a row of Q."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

__all__ = ["SegmentEncoder", "kernel_sizes", "sinusoid"]

# Channels of the hidden convolutions: 16, 32, 64, ...
_FIRST_WIDTH = 16


def kernel_sizes(m: int, depth: int) -> tuple[int, ...]:
    """Return ``depth`` kernel sizes whose stacked receptive field is exactly ``m`` points.

    Examples
    --------
    >>> kernel_sizes(7, 3), kernel_sizes(6, 3), kernel_sizes(1, 3), kernel_sizes(7, 1)
    ((3, 3, 3), (2, 3, 3), (1, 1, 1), (7,))
    """
    base, rest = divmod(m - 1, depth)
    return tuple(1 + base + (layer >= depth - rest) for layer in range(depth))


def sinusoid(n_timepoints: int, dim: int, like: Tensor) -> Tensor:
    """Return the sinusoidal positional encoding, shape (n_timepoints, dim)."""
    t = torch.arange(n_timepoints, device=like.device, dtype=like.dtype)
    pair = torch.arange(dim, device=like.device, dtype=like.dtype).div(2, rounding_mode="floor")
    angle = t[:, None] * torch.exp(pair * (-2.0 * math.log(10_000.0) / dim))  # (L, dim)
    even = torch.arange(dim, device=like.device) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos())


class SegmentEncoder(nn.Module):
    """``g(x; theta_q)``: stacked convolutions with receptive field ``m``, then LayerNorm.

    ``depth=1`` is the paper's literal single convolution of width ``m``; deeper stacks put a
    ReLU between their layers. With ``projection_dim`` the input is first projected linearly at
    each time point, and with ``positional_encoding`` the sinusoid is added to that projection.

    The convolutions run on images of height 1 in channels-last memory, which on CPU is faster
    than a one-dimensional convolution and needs no transposition anywhere in the network.
    """

    def __init__(
        self,
        n_inputs: int,
        latent_dim: int,
        segment_size: int,
        depth: int = 3,
        projection_dim: int | None = None,
        positional_encoding: bool = False,
    ) -> None:
        super().__init__()
        self.positional_encoding = positional_encoding
        self.projection = None if projection_dim is None else nn.Linear(n_inputs, projection_dim)
        hidden = [_FIRST_WIDTH * 2**layer for layer in range(depth - 1)]
        widths = [projection_dim or n_inputs, *hidden, latent_dim]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(n_in, n_out, (1, size))
            for n_in, n_out, size in zip(
                widths, widths[1:], kernel_sizes(segment_size, depth), strict=False
            )
        )
        self.norm = nn.LayerNorm(latent_dim)

    def forward(self, x: Tensor) -> Tensor:
        """Return Q, shape (B, kappa, q), for series of shape (B, L, n_inputs)."""
        if self.projection is not None:
            x = self.projection(x)  # (B, L, d)
            if self.positional_encoding:
                x = x + sinusoid(x.shape[1], x.shape[2], x)
        h = x.transpose(1, 2).unsqueeze(2)  # (B, d, 1, L), channels last in memory
        for layer, convolution in enumerate(self.convolutions):
            h = convolution(h.relu() if layer else h)  # (B, width, 1, L - k + 1)
        Q: Tensor = self.norm(h.squeeze(2).transpose(1, 2))  # (B, kappa, q)
        return Q
