"""Additive attribution: shares of a logit that sum to it exactly, for every input and class.

Without activation and max-scaling, the share of point t and channel j in logit c is

    sum_q W_c[s_tj, q] * Qt[t, q]        (summed over the segment sizes)

with Qt the segments spread back onto time points. All shares plus the bias are the logit. The
refinements keep that sum: `centred` explains the logit minus its mean over classes, `background`
moves what a typical moment says into the bias, `spread` evens out neighbouring shares.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.attribution.sparse import sampled_dots
from timesliver.network import Batch, TimeSliverNetwork
from timesliver.network.composition import window_sum
from timesliver.network.raw import RawProjection

__all__ = ["Evidence", "evidence"]


@dataclass(frozen=True)
class Evidence:
    """Shares of the logits of K classes: ``(positive - negative)`` and the bias sum to them.

    Attributes
    ----------
    positive, negative : tensors of shape (B, K, v, L)
        Evidence for and against, both >= 0.
    bias : tensor of shape (B, K)
        What is said before any moment is looked at.
    """

    positive: Tensor
    negative: Tensor
    bias: Tensor


@torch.no_grad()
def evidence(
    network: TimeSliverNetwork,
    batch: Batch,
    Qt: list[Tensor],
    targets: Tensor,
    centred: bool = False,
    background: bool = False,
    spread: bool = False,
) -> Evidence:
    """Return every point's and channel's share of the logits.

    Parameters
    ----------
    network : TimeSliverNetwork
        The network to explain.
    batch : Batch
        The cases.
    Qt : list of tensors of shape (B*S, L, q)
        What ``network.spread`` gave for each segment size.
    targets : int tensor of shape (B, K)
        The K classes to explain for each case.
    centred : bool
        Share out the logit minus its mean over the classes.
    background : bool
        Subtract the median over time of each channel's shares, and count it to the bias.
    spread : bool
        Spread evidence for and evidence against, each by itself, over the width of the largest
        segment.
    """
    W = network.head.full_weight().detach()  # (C, |m|, v, n+1, q)
    bias = network.head.bias.detach()
    if centred:
        W, bias = W - W.mean(0), bias - bias.mean()
    shares = W.new_zeros(*targets.shape, *batch.codes.shape[1:])  # (B, K, v, L)
    for size, (Qt_m, factor) in enumerate(zip(Qt, network.scales(batch), strict=True)):
        for k, c in enumerate(targets.T):
            if network.raw is None:
                dots = _dots(batch, Qt_m, W[:, size], c)
            else:
                dots = _raw_dots(network.raw, batch, Qt_m, W[c, size, :, 1:])
            shares[:, k] += dots * factor.view(-1, 1, 1)
    total_bias = bias[targets]
    seen = (batch.codes > 0)[:, None]  # (B, 1, v, L)
    if background:
        typical = torch.where(seen, shares, torch.nan).nanmedian(-1, keepdim=True).values
        typical = typical.nan_to_num()
        shares = torch.where(seen, shares - typical, 0)
        total_bias = total_bias + (typical.squeeze(-1) * seen.sum(-1)).sum(-1)
    positive, negative = shares.relu(), (-shares).relu()
    if spread:
        width = max(network.config.segment_sizes) // 2 * 2 + 1
        positive = _spread(positive, seen.to(shares.dtype), width)
        negative = _spread(negative, seen.to(shares.dtype), width)
    return Evidence(positive, negative, total_bias)


def _dots(batch: Batch, Qt: Tensor, W: Tensor, c: Tensor) -> Tensor:
    """Return ``<W_c[s_tj], Qt[t]>`` for the class c of each case: (B, v, L)."""
    B, v, L = batch.codes.shape
    S = batch.n_streams
    rows = batch.rows().reshape(B, -1)  # the row of P that each point carries
    case = torch.arange(B, device=c.device)
    columns = (rows + ((c - case) * v * batch.n_rows)[:, None]).flatten()  # that row in W of c
    starts = torch.arange(0, len(columns) + 1, v // S, device=c.device)
    dots = sampled_dots(starts, columns, Qt.flatten(0, 1), W.flatten(0, 2))
    return dots.view(B, S, L, v // S).transpose(2, 3).reshape(B, v, L)


def _raw_dots(raw: RawProjection, batch: Batch, Qt: Tensor, weight: Tensor) -> Tensor:
    """Do the same where learnt projections replace the symbols, with weights (B, v, n, q)."""
    B, v, L = batch.codes.shape
    x = batch.values.transpose(2, 3).reshape(B, v, L)
    Qt = Qt.transpose(1, 2)  # (B*S, q, L)
    slope = (raw.slope[..., None] * weight).sum(2).view(len(Qt), -1, Qt.shape[1])
    offset = (raw.offset[..., None] * weight).sum(2).view(len(Qt), -1, Qt.shape[1])
    return ((slope @ Qt).view(B, v, L) * x + (offset @ Qt).view(B, v, L)) * (batch.codes > 0)


def _spread(share: Tensor, seen: Tensor, width: int) -> Tensor:
    """Even out over ``width`` points; every share keeps its mass, on observed points only."""

    def around(x: Tensor) -> Tensor:
        padded = F.pad(x, (width // 2, width // 2)).view(-1, x.shape[-1] + width - 1, 1)
        return window_sum(padded, (width,)).view(x.shape)

    return around(share / around(seen).clamp(min=1)) * seen
