"""What TimeX++ is trained for: five losses, each a formula, and their weighted sum."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from timesliver.explainers.timex.networks import Generated

__all__ = [
    "bottleneck",
    "connectivity",
    "distribution",
    "label_preservation",
    "reference",
    "total_loss",
]

_KEPT = 0.5  # r, the share of entries that the bottleneck pulls towards
_TINY = 1e-6  # in the bottleneck's logarithms
_EXTRACTOR, _CONDITIONER = 2.0, 1.0  # weights of the two groups of losses
_CONNECTIVITY, _DISTRIBUTION = 2.0, 0.1  # weights within their groups


def label_preservation(made: Tensor, original: Tensor) -> Tensor:
    """Return how far the classes of the new series are from those of the original.

    The mean of both divergences from the average distribution q, KL(q || p), divided by the
    number of classes.

    Parameters
    ----------
    made, original : tensor of shape (B, C)
        Logits of the new series and of the original.
    """
    log_p1, log_p2 = made.log_softmax(1), original.log_softmax(1)
    log_q = torch.logaddexp(log_p1, log_p2) - math.log(2)
    return (log_q.exp() * (log_q - (log_p1 + log_p2) / 2)).mean()


def bottleneck(p: Tensor) -> Tensor:
    """Return the mean divergence of the probabilities from one half; 0 if all are one half."""
    kept = p * (p / _KEPT + _TINY).log()
    dropped = (1 - p) * ((1 - p) / (1 - _KEPT + _TINY) + _TINY).log()
    return (kept + dropped).mean()


def connectivity(p: Tensor, kind: str = "frobenius") -> Tensor:
    """Return how much the probabilities (B, v, L) jump from one time point to the next.

    "frobenius" is one norm over the whole batch, divided by the number of entries, and so the
    weaker the more entries there are; "l1_mean" is the mean absolute jump.
    """
    jumps = p[:, :, 1:] - p[:, :, :-1]
    size = jumps.abs().sum() if kind == "l1_mean" else jumps.flatten().norm()
    return size / max(1, jumps.numel())


def distribution(made: tuple[Tensor, Tensor], original: tuple[Tensor, Tensor]) -> Tensor:
    """Return the mean divergence of the new series' normal distributions from the original one.

    Each argument holds means and logarithmic variances, (B, v * L); those of the original are
    averaged over the batch.
    """
    mean, log_variance = made
    mean0, log_variance0 = (part.mean(0) for part in original)
    ratio = (log_variance - log_variance0).exp()
    distance = (mean - mean0).square() * (-log_variance0).exp()
    return (log_variance0 - log_variance - 1 + ratio + distance).mean() / 2


def reference(made: Tensor, filled: Tensor) -> Tensor:
    """Return the mean squared difference of the new series from the filled one."""
    return (filled - made).square().mean()


def total_loss(made: Generated, logits: Tensor, original: Tensor, connect: str) -> Tensor:
    """Return the weighted sum of all losses.

    Parameters
    ----------
    made : Generated
        What the networks made of a batch.
    logits, original : tensor of shape (B, C)
        The model's logits for the new series and for the original.
    connect : {"frobenius", "l1_mean"}
        The kind of connectivity loss.
    """
    p = made.probabilities
    extractor = bottleneck(p) + _CONNECTIVITY * connectivity(p, connect)
    conditioner = _DISTRIBUTION * distribution(
        made.gaussian, made.gaussian_of_original
    ) + reference(made.series, made.reference)
    return (
        label_preservation(logits, original) + _EXTRACTOR * extractor + _CONDITIONER * conditioner
    )
