"""Exact shares of a logit: base and shares sum to it, for every input and class.

Every term shares its weighted features out among the moments; see `timesliver.network.Term`. All
shares plus the bias are the logit. What is done to them here keeps that sum: `centred` explains
the logit minus its mean over classes, `background` moves what says nothing about this series into
the base, `smoothing` evens out neighbouring shares.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network import Batch, Moments, Term, TimeSliverNetwork
from timesliver.network.windows import smooth

__all__ = ["additive_shares"]


@torch.no_grad()
def additive_shares(
    network: TimeSliverNetwork,
    batch: Batch,
    encoded: Iterable[tuple[Term, Moments]],
    targets: Tensor,
    centred: bool,
    background: str | None,
    smoothing: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Share out the logits of K classes among channels and time points.

    Parameters
    ----------
    network : TimeSliverNetwork
        The network to explain.
    batch : Batch
        The cases.
    encoded : iterable of (Term, Moments)
        What ``network.each(batch)`` yields.
    targets : int tensor of shape (B, K)
        The classes to explain for each case.
    centred : bool
        Share out the logit minus its mean over the classes.
    background : {"training", "series", None}
        What counts as the base beside the bias: what the average moment of the training series
        says, what the middle one of all moments of the series itself says, or nothing.
    smoothing : int
        Even out evidence for and evidence against, each by itself, over so many points.

    Returns
    -------
    positive, negative : tensors of shape (B, K, v, L)
        Evidence for and against, both >= 0.
    base : tensor of shape (B, K)
        What is said before any moment is looked at.
    """
    B, v, L = batch.values.shape
    bias = network.bias
    base = (bias - bias.mean() if centred else bias)[targets]
    shares = batch.values.new_zeros(B, targets.shape[1], v, L)
    typical = batch.values.new_zeros(1, network.n_classes, v)
    for term, moments in encoded:
        W = term.weight()
        W = W - W.mean(0) if centred else W
        shares += _onto_points(term.shares(moments, W, targets), moments.view.step, batch)
        typical += term.channel_sums(term.average, W, v)
    seen = batch.observed[:, None].to(shares.dtype)  # (B, 1, v, L)
    count = seen.sum(-1)  # (B, 1, v)
    if background == "training":
        of_channel = typical[0][targets] * (count > 0)  # (B, K, v)
        shares -= (of_channel / count.clamp(min=1)).unsqueeze(-1) * seen
        base = base + of_channel.sum(-1)
    elif background == "series":
        middle = torch.where(seen > 0, shares, torch.nan).nanmedian(-1, keepdim=True).values
        middle = middle.nan_to_num()
        shares -= middle * seen
        base = base + (middle.squeeze(-1) * count).sum(-1)
    positive, negative = shares.relu(), (-shares).relu()
    if smoothing > 1:
        positive, negative = smooth(positive, seen, smoothing), smooth(negative, seen, smoothing)
    return positive, negative, base


def _onto_points(shares: Tensor, step: int, batch: Batch) -> Tensor:
    """Give the shares of means back to the points that were averaged, in equal parts."""
    L = batch.n_timepoints
    if step == 1:
        return shares[..., :L]
    points = shares[..., : -(-L // step)].repeat_interleave(step, dim=-1)[..., :L]
    seen = F.pad(batch.observed.to(shares.dtype), (0, -L % step))
    count = seen.unflatten(-1, (-1, step)).sum(-1).repeat_interleave(step, dim=-1)[..., :L]
    equal_parts: Tensor = seen[..., :L] / count.clamp(min=1)
    return points * equal_parts[:, None]
