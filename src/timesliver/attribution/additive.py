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
    by_class = [
        _shares(batch, Qt, W, c)
        if network.raw is None
        else _raw_shares(network.raw, batch, Qt, W, c)
        for c in targets.T
    ]
    shares = torch.stack(by_class, 1)  # (B, K, v, L)
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


def _shares(batch: Batch, Qt: list[Tensor], W: Tensor, c: Tensor) -> Tensor:
    """Shares of the logit of class c of each case: (B, v, L)."""
    B, v, L = batch.codes.shape
    S = batch.n_streams
    n_rows = v * batch.n_rows
    rows = batch.rows().reshape(B, -1)  # the row of P that each point carries
    case = torch.arange(B, device=c.device)
    columns = (rows + ((c - case) * n_rows)[:, None]).flatten()  # the same row in W of class c
    starts = torch.arange(0, len(columns) + 1, v // S, device=c.device)
    shares = W.new_zeros(len(columns))
    for size, Qt_m in enumerate(Qt):
        table = W[:, size].flatten(0, 2)  # (C*v*(n+1), q)
        shares += sampled_dots(starts, columns, Qt_m.flatten(0, 1), table)
    return shares.view(B, S, L, v // S).transpose(2, 3).reshape(B, v, L)


def _raw_shares(raw: RawProjection, batch: Batch, Qt: list[Tensor], W: Tensor, c: Tensor) -> Tensor:
    """Do the same where learnt projections of the values replace the symbols."""
    B, v, L = batch.codes.shape
    S = batch.n_streams
    x = batch.values.transpose(2, 3).reshape(B, v, L)
    shares = torch.zeros_like(x)
    for size, Qt_m in enumerate(Qt):
        weight = W[c, size, :, 1:]  # (B, v, n, q)
        slope = (raw.slope.detach()[..., None] * weight).sum(2).view(B * S, v // S, -1)
        offset = (raw.offset.detach()[..., None] * weight).sum(2).view(B * S, v // S, -1)
        by_value = (slope @ Qt_m.transpose(1, 2)).view(B, v, L)
        by_presence = (offset @ Qt_m.transpose(1, 2)).view(B, v, L)
        shares += by_value * x + by_presence
    return shares * (batch.codes > 0)


def _spread(share: Tensor, seen: Tensor, width: int) -> Tensor:
    """Even out over ``width`` points; every share keeps its mass, on observed points only."""

    def around(x: Tensor) -> Tensor:
        padded = F.pad(x, (width // 2, width // 2)).view(-1, x.shape[-1] + width - 1, 1)
        return window_sum(padded, (width,)).view(x.shape)

    return around(share / around(seen).clamp(min=1)) * seen
