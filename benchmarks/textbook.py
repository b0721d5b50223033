"""The same network written as the paper's equations read, in float32: what the package is timed
against. Dense one-hot matrix, `avg_pool1d`, `conv1d`, matrix product; scores by the double loop."""

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver import Batch, TimeSliverNetwork

EPS = 1e-18


def one_hot(codes: Tensor, n: int) -> Tensor:
    """O, transposed: (B, v*n, L), for series without missing values."""
    B, v, L = codes.shape
    O = torch.zeros(B, v, n, L)
    O.scatter_(2, codes.long().sub_(1).unsqueeze(2), 1.0)
    return O.view(B, v * n, L)


def composition(codes: Tensor, n: int, m: int) -> Tensor:
    """Z, transposed: (B, v*n, kappa)."""
    return F.avg_pool1d(one_hot(codes, n), m, stride=1)


def encode(network: TimeSliverNetwork, x: Tensor) -> Tensor:
    """Q (B, kappa, q) of the first segment size from series (B, v, L)."""
    encoder = network.encoders[0]
    h = x
    for layer, convolution in enumerate(encoder.convolutions):
        h = F.conv1d(torch.relu(h) if layer else h, convolution.weight.squeeze(2), convolution.bias)
    return encoder.norm(h.transpose(1, 2))


def head(network: TimeSliverNetwork, P: Tensor) -> Tensor:
    return P.flatten(1) @ network.head.weight[:, 0].flatten(1).T + network.head.bias


def logits(network: TimeSliverNetwork, x: Tensor, codes: Tensor, Z: Tensor | None = None) -> Tensor:
    """Logits (B, C); Z may be given, if it was built before."""
    c = network.config
    if Z is None:
        Z = composition(codes, c.n_symbols, c.segment_sizes[0])
    Q = encode(network, x)
    return head(network, Z @ Q / Q.shape[1])


@torch.no_grad()
def attribution(network: TimeSliverNetwork, x: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """phi+ and phi- (B, v, L) of the predicted class."""
    c = network.config
    n, m = c.n_symbols, c.segment_sizes[0]
    Z = composition(codes, n, m)
    Q = encode(network, x)
    kappa = Q.shape[1]
    target = head(network, Z @ Q / kappa).argmax(1)
    g = network.head.weight[target, 0].flatten(1, 2)  # (B, v*n, q)
    positive = torch.zeros(len(x), c.n_channels, kappa)
    negative = torch.zeros_like(positive)
    for i in range(c.n_channels * n):
        for j in range(c.latent_dim):
            term = torch.sign(g[:, i, j])[:, None] * Z[:, i] * Q[:, :, j]
            for sign, phi in ((1, positive), (-1, negative)):
                zeta = torch.relu(sign * term)
                scaled = zeta / (zeta.max(1, keepdim=True).values + EPS)
                phi[:, i // n] += g[:, i, j].abs()[:, None] * scaled
    return to_time(positive, m), to_time(negative, m)


def to_time(segments: Tensor, m: int) -> Tensor:
    """Mean over the covering segments."""
    kernel = torch.ones(1, 1, m)
    sums = F.conv_transpose1d(segments.flatten(0, 1).unsqueeze(1), kernel).view(
        *segments.shape[:2], -1
    )
    covering = F.conv_transpose1d(torch.ones(1, 1, segments.shape[2]), kernel).view(-1)
    return sums / covering


def channels_first(batch: Batch) -> Tensor:
    """The series of a batch as (B, v, L)."""
    return batch.values.transpose(2, 3).reshape(batch.codes.shape).contiguous()
