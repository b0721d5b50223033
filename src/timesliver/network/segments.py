"""Module I: each segment of ``m`` successive points becomes a latent vector, a row of Q."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["InputProjection", "SegmentEncoder", "kernel_sizes", "sinusoid"]

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


class InputProjection(nn.Module):
    """A learnt linear map of each time point's values, to which the sinusoid may be added."""

    def __init__(self, n_inputs: int, dim: int, positional_encoding: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(n_inputs, dim)
        self.positional_encoding = positional_encoding

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, L, dim) for series of shape (B, L, n_inputs)."""
        x = self.linear(x)
        return x + sinusoid(x.shape[1], x.shape[2], x) if self.positional_encoding else x


class SegmentEncoder(nn.Module):
    """``g(x; theta_q)``: stacked convolutions with receptive field ``m``, then LayerNorm.

    ``depth=1`` is the paper's literal single convolution of width ``m``; deeper stacks put a
    ReLU between their layers. The window of Z is a box over the segment, or a bell: averages over
    the same widths as the convolutions, in a row.
    """

    def __init__(
        self,
        n_inputs: int,
        latent_dim: int,
        segment_size: int,
        depth: int = 3,
        window: str = "box",
    ) -> None:
        super().__init__()
        self.latent_dim = latent_dim
        stacked = kernel_sizes(segment_size, depth)
        self.widths = (segment_size,) if window == "box" else stacked
        hidden = [_FIRST_WIDTH * 2**layer for layer in range(depth - 1)]
        widths = [n_inputs, *hidden, latent_dim]
        self.convolutions = nn.ModuleList(
            nn.Conv2d(n_in, n_out, (1, size))
            for n_in, n_out, size in zip(widths, widths[1:], stacked, strict=False)
        )
        self.norm = nn.LayerNorm(latent_dim)

    def forward(self, x: Tensor) -> Tensor:
        """Return Q, shape (B, kappa, q), for series of shape (B, L, n_inputs)."""
        last = len(self.convolutions) - 1
        for layer, conv in enumerate(self.convolutions):
            x = _Convolution.apply(  # type: ignore[no-untyped-call]
                x, conv.weight, conv.bias, layer < last
            )  # (B, L - k + 1, width)
        Q: Tensor = _LayerNorm.apply(  # type: ignore[no-untyped-call]
            x, self.norm.weight, self.norm.bias, self.norm.eps
        )  # (B, kappa, q)
        return Q


class _Convolution(torch.autograd.Function):
    """Convolve (B, T, c) to (B, T - k + 1, d), time before channels, with an optional ReLU.

    It runs as the convolution of an image of height 1 in channels-last memory. The gradient of
    the weight is a matrix product per kernel position, which on CPU is faster than the library's
    own.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, relu: bool) -> Tensor:
        y = _time_first(F.conv2d(_image(x), _channels_last(weight), bias))
        ctx.save_for_backward(x, weight, y.relu_() if relu else None)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor, None]:
        x, weight, y = ctx.saved_tensors
        gradient = gradient.contiguous()  # (B, T - k + 1, d)
        if y is not None:
            gradient = torch.ops.aten.threshold_backward(gradient, y, 0)
        n = gradient.shape[1]
        of_x = None
        if ctx.needs_input_grad[0]:
            of_x, *_ = torch.ops.aten.convolution_backward(
                _image(gradient),
                _image(x),
                _channels_last(weight),
                None,
                (1, 1),
                (0, 0),
                (1, 1),
                False,
                (0, 0),
                1,
                (True, False, False),
            )
            of_x = _time_first(of_x)
        ones = gradient.new_ones(len(gradient) * n)
        taps = [
            torch.bmm(gradient.transpose(1, 2), x[:, k : k + n]).sum(0)
            for k in range(weight.shape[3])
        ]
        return of_x, torch.stack(taps, -1).unsqueeze(2), ones @ gradient.flatten(0, 1), None


class _LayerNorm(torch.autograd.Function):
    """Layer normalisation whose weights' gradients are matrix products.

    In the library's own backward pass the threads add them up side by side in memory, where they
    slow each other down.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        y, mean, rstd = torch.native_layer_norm(x, weight.shape, weight, bias, eps)
        ctx.save_for_backward(x, mean, rstd, weight, bias)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        x, mean, rstd, weight, bias = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_x, *_ = torch.ops.aten.native_layer_norm_backward(
            gradient, x, weight.shape, mean, rstd, weight, bias, (True, False, False)
        )
        of_weight = rstd.flatten() @ (x - mean).mul_(gradient).flatten(0, 1)
        of_bias = gradient.new_ones(rstd.numel()) @ gradient.flatten(0, 1)
        return of_x, of_weight, of_bias, None


def _image(x: Tensor) -> Tensor:
    """See (B, T, c) as an image (B, c, 1, T); in memory nothing moves."""
    return x.transpose(1, 2).unsqueeze(2)


def _time_first(image: Tensor) -> Tensor:
    return image.squeeze(2).transpose(1, 2)


def _channels_last(weight: Tensor) -> Tensor:
    return weight.contiguous(memory_format=torch.channels_last)
