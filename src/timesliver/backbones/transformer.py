"""The transformer: a convolutional stem, positional encoding, encoder layers, the mean of tokens.

Attention is written out, so that its weights, and gradients with respect to them, can be read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, overload

import torch
from torch import Tensor, nn

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.layers import check_widths, inside, mlp
from timesliver.errors import InvalidParameterError, check_count, check_number
from timesliver.network.batch import Batch
from timesliver.network.segments import sinusoid

__all__ = ["Attention", "EncoderLayer", "Transformer", "TransformerNetwork"]

# Attention costs the square of the number of tokens, so longer series get a stride.
_MANY_TOKENS = 512


class Attention(nn.Module):
    """Multi-head self-attention that returns its weights."""

    def __init__(self, dim: int, n_heads: int, dropout: float) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.project = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, within: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, T, d) and the weights, (B, heads, T, T), of queries (rows) on keys."""
        B, T, d = x.shape
        q, k, v = self.project(x).view(B, T, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        scores = q / math.sqrt(q.shape[3]) @ k.transpose(2, 3)  # (B, heads, T, T)
        weights = scores.masked_fill(within[:, None] == 0, -torch.inf).softmax(3)
        y = self.dropout(weights) @ v  # (B, heads, T, d / heads)
        return self.out(y.transpose(1, 2).reshape(B, T, d)), weights


class EncoderLayer(nn.Module):
    """Attention and a feed-forward network, each added to its input and then normalised."""

    def __init__(self, dim: int, n_heads: int, ff_width: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(dim, n_heads, dropout)
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.feed_forward = nn.Sequential(
            nn.Linear(dim, ff_width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(ff_width, dim)
        )
        self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout)

    def forward(self, x: Tensor, within: Tensor) -> tuple[Tensor, Tensor]:
        """Return (B, T, d) and the attention weights, (B, heads, T, T)."""
        attended, weights = self.attention(x, within)
        x = self.norm1(x + self.dropout1(attended))
        return self.norm2(x + self.dropout2(self.feed_forward(x))), weights


class TransformerNetwork(BackboneNetwork):
    """A convolutional stem and post-norm encoder layers; see `Transformer`.

    Token j covers the time points from ``j * stride`` to ``j * stride + span - 1``.
    """

    def _build(self, settings: Transformer) -> None:
        widths = check_widths("stem_widths", settings.stem_widths)
        kernels = check_widths("stem_kernels", settings.stem_kernels)
        strides = _strides(self.n_timepoints, kernels)
        if settings.stem_strides is not None:
            strides = check_widths("stem_strides", settings.stem_strides)
        if not len(widths) == len(kernels) == len(strides):
            raise InvalidParameterError(
                f"stem_widths={widths}, stem_kernels={kernels} and stem_strides={strides} must "
                f"have one entry for each convolution of the stem"
            )
        for name in ("n_heads", "ff_width", "n_layers"):
            check_count(name, getattr(settings, name), 1)
        check_number("dropout", settings.dropout, least=0, below=1)
        dim, self.n_heads = widths[-1], settings.n_heads
        if dim % self.n_heads:
            raise InvalidParameterError(
                f"n_heads={self.n_heads} must divide the last of stem_widths, {dim}"
            )
        self.span, self.stride = 1, 1
        for kernel, stride in zip(kernels, strides, strict=True):
            self.span += (kernel - 1) * self.stride
            self.stride *= stride
        self.numbers_per_point = max(*widths, settings.ff_width, 4 * dim)
        self.stem = nn.Sequential()
        for (n_in, n_out), kernel, stride in zip(
            pairwise((self.n_channels, *widths)), kernels, strides, strict=True
        ):
            self.stem.extend([nn.Conv1d(n_in, n_out, kernel, stride), nn.ReLU()])
        self.layers = nn.ModuleList(
            EncoderLayer(dim, self.n_heads, settings.ff_width, settings.dropout)
            for _ in range(settings.n_layers)
        )
        self.norm = nn.LayerNorm(dim) if settings.final_norm else nn.Identity()
        self.head = mlp(dim, check_widths("head", settings.head, 0), self.n_classes)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the last features, (B, width, T), and how many of T belong to each case."""
        tokens, n_tokens, _ = self._encode(batch)
        return tokens, n_tokens

    def _encode(self, batch: Batch) -> tuple[Tensor, Tensor, list[Tensor]]:
        missing = max(0, self.span - batch.n_timepoints)
        x = self.stem(nn.functional.pad(batch.values, (0, missing)))  # (B, d, T)
        lengths = self.n_tokens(batch.lengths)
        within = inside(lengths, x.shape[2])
        x = x.transpose(1, 2)  # (B, T, d)
        x = x + sinusoid(x.shape[1], x.shape[2], x)
        weights = []
        for layer in self.layers:
            x, of_layer = layer(x, within)
            weights.append(of_layer)
        return self.norm(x).transpose(1, 2), lengths, weights

    @overload
    def forward(self, batch: Batch) -> Tensor: ...
    @overload
    def forward(
        self, batch: Batch, return_attention: Literal[True]
    ) -> tuple[Tensor, list[Tensor]]: ...
    def forward(
        self, batch: Batch, return_attention: bool = False
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Return the logits and, if asked, each layer's attention weights (B, heads, T, T).

        The weights are part of the graph: the gradient of a logit can be taken for them. Those on
        the tokens of the padding are 0.
        """
        self._check(batch)
        tokens, n_tokens, weights = self._encode(batch)
        logits = self.from_features(tokens, n_tokens)
        return (logits, weights) if return_attention else logits

    def n_tokens(self, lengths: Tensor) -> Tensor:
        """Return how many tokens series of these lengths have; one, if shorter than the span."""
        return (lengths - self.span).clamp(min=0) // self.stride + 1

    def numbers_per_case(self, n_timepoints: int) -> int:
        """Return the size of the intermediate arrays of one case."""
        T = n_timepoints // self.stride + 1
        return super().numbers_per_case(n_timepoints) + 2 * self.n_heads * T * T


@dataclass(eq=False, repr=False, kw_only=True)
class Transformer(BackboneClassifier):
    """Classify series with a transformer.

    The defaults have the size of the paper's network for most of its data sets: 360,896
    parameters, 128 per channel and 33 per class. Training parameters are those of
    `BackboneClassifier`.

    Parameters
    ----------
    stem_widths, stem_kernels : sequence of int
        Filters of each convolution of the stem, and the points that they span. The last width is
        that of the tokens.
    stem_strides : sequence of int or None
        Steps of the convolutions. None steps over as few points as give 512 tokens or fewer.
    n_heads, ff_width, n_layers : int
        Attention heads and feed-forward width of a layer, and the number of layers.
    final_norm : bool
        Whether the tokens are normalised after the last layer.
    head : sequence of int
        Hidden layers after the mean over tokens.
    dropout : float
        Share of numbers set to 0 in training.
    """

    network_class = TransformerNetwork

    stem_widths: Sequence[int] = (32, 64, 128)
    stem_kernels: Sequence[int] = (4, 2, 2)
    stem_strides: Sequence[int] | None = None
    n_heads: int = 4
    ff_width: int = 1024
    n_layers: int = 1
    final_norm: bool = False
    head: Sequence[int] = (64, 32)
    dropout: float = 0.1


def _strides(n_timepoints: int, kernels: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides of at most the kernel size, so that no point is left out."""
    strides = []
    for kernel in kernels:
        stride = min(kernel, max(1, math.ceil(n_timepoints / _MANY_TOKENS)))
        strides.append(stride)
        n_timepoints = math.ceil(n_timepoints / stride)
    return tuple(strides)
