"""A penalty that makes silent moments say nothing: the L1 norm of the centred evidence.

The share of point t in the centred logit of class c is ``e_ct = <W_c[s_t] - mean_c W[s_t], Qt[t]>``
(see `timesliver.attribution.additive`). All shares of a class sum to its centred logit without the
bias, whatever the length of the series and the number of its channels, and so ``sum_t |e_ct|`` is
measured in units of the logit for every kind of data: it is at least the logit's own size, and
exceeds it by what moments say for and against the class and cancels out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.network import Batch, TimeSliverNetwork
from timesliver.network.interaction import bag_sum

__all__ = ["total_evidence"]


def total_evidence(network: TimeSliverNetwork, batch: Batch, Qt: Sequence[Tensor]) -> Tensor:
    """Return the mean over cases and classes of ``sum_t |e_ct|``, in units of the logit.

    A point is a time point of a stream: of all channels together if the network mixes them, of
    one channel if it keeps them separate.
    """
    W = network.head.full_weight()  # (C, |m|, v, n+1, q)
    W = (W - W.mean(0)).flatten(2, 3)
    total: Tensor = _TotalEvidence.apply(  # type: ignore[no-untyped-call]
        W, batch, network.scales(batch), *Qt
    )
    return total


class _TotalEvidence(torch.autograd.Function):
    """The mean and, as the signs are known by then, its gradients at once.

    One class after another is gathered, so memory does not grow with their number.
    """

    @staticmethod
    def forward(ctx: Any, W: Tensor, batch: Batch, scales: Sequence[Tensor], *Qt: Tensor) -> Tensor:
        points = batch.n_streams * batch.n_timepoints
        C, _, rows_per_case, q = W.shape
        first = torch.arange(len(batch), device=W.device, dtype=torch.int32) * rows_per_case
        rows = batch.rows() - first.repeat_interleave(points)[:, None]  # of W: (B*S*L, U)
        factors = [factor.repeat_interleave(points) / (C * len(batch)) for factor in scales]
        tables = [Qt_m.reshape(-1, q) for Qt_m in Qt]  # (B*S*L, q)
        total = W.new_zeros(())
        of_W, of_Qt = torch.empty_like(W), [torch.zeros_like(table) for table in tables]
        for c in range(C):
            weights = [F.embedding_bag(rows, W_m, mode="sum") for W_m in W[c]]  # (B*S*L, q)
            e = torch.zeros_like(factors[0])
            for table, weight, factor in zip(tables, weights, factors, strict=True):
                e += (table * weight).sum(1) * factor
            total += e.abs().sum()
            for m, factor in enumerate(factors):
                slope = (e.sign() * factor)[:, None]
                of_Qt[m].addcmul_(weights[m], slope)
                of_W[c, m] = bag_sum((tables[m] * slope).view(Qt[m].shape), batch).sum(0)
        ctx.n_timepoints = batch.n_timepoints
        ctx.save_for_backward(of_W, *of_Qt)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        of_W, *of_Qt = ctx.saved_tensors
        shape = (-1, ctx.n_timepoints, of_W.shape[-1])
        return gradient * of_W, None, None, *(gradient * of_Qt_m.view(shape) for of_Qt_m in of_Qt)
