"""Pieces that several backbones are made of; each leaves the padding of a case at 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from timesliver.errors import InvalidParameterError, check_count

__all__ = [
    "BatchNorm",
    "Convolution",
    "check_widths",
    "inside",
    "mean_over_time",
    "mlp",
    "seeded",
]


@contextmanager
def seeded(seed: int, device: torch.device | None = None) -> Iterator[None]:
    """Draw from a seed of one's own; torch's random state is as before afterwards."""
    with torch.random.fork_rng(devices=[device] if device and device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def check_widths(name: str, widths: Any, fewest: int = 1) -> tuple[int, ...]:
    """Return a sequence of layer sizes as a tuple; raise unless all are whole numbers from 1."""
    if isinstance(widths, str) or not isinstance(widths, Sequence) or len(widths) < fewest:
        raise InvalidParameterError(
            f"{name} must list at least {fewest} layer sizes, such as (32, 64); got {widths!r}"
        )
    for width in widths:
        check_count(f"each of {name}", width, 1)
    return tuple(widths)


def inside(lengths: Tensor, n_timepoints: int) -> Tensor:
    """Return 1 for the points of each case and 0 for its padding, shape (B, 1, T)."""
    t = torch.arange(n_timepoints, device=lengths.device)
    return (t < lengths[:, None]).float()[:, None]


def mean_over_time(x: Tensor, lengths: Tensor) -> Tensor:
    """Return the mean of (B, c, T) over the points of each case, shape (B, c)."""
    return (x * inside(lengths, x.shape[2])).sum(2) / lengths[:, None]


def mlp(n_inputs: int, hidden: Sequence[int], n_outputs: int) -> nn.Sequential:
    """Return linear layers with a ReLU between each two."""
    widths = [n_inputs, *hidden, n_outputs]
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [nn.Linear(n_in, n_out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that neither learns from the padding of a case nor fills it."""

    def forward(self, x: Tensor, within: Tensor) -> Tensor:  # type: ignore[override]
        """Return (B, c, T); `within` comes from `inside`."""
        points = within[:, 0] > 0
        if not self.training or bool(points.all()) or points.sum() < 2:
            return super().forward(x) * within
        y = torch.zeros_like(x).transpose(1, 2)
        y[points] = super().forward(x.transpose(1, 2)[points])
        return y.transpose(1, 2)


class Convolution(nn.Module):
    """A convolution that keeps the length, with optional batch normalisation and ReLU."""

    def __init__(
        self, n_in: int, n_out: int, size: int, normalised: bool = True, relu: bool = True
    ) -> None:
        super().__init__()
        self.pad = nn.ConstantPad1d(((size - 1) // 2, size // 2), 0.0)
        self.conv = nn.Conv1d(n_in, n_out, size, bias=not normalised)
        self.norm = BatchNorm(n_out) if normalised else None
        self.relu = nn.ReLU() if relu else nn.Identity()

    def forward(self, x: Tensor, within: Tensor) -> Tensor:
        """Return (B, n_out, T) for x of shape (B, n_in, T); `within` comes from `inside`."""
        x = self.conv(self.pad(x))
        y: Tensor = self.relu(x * within if self.norm is None else self.norm(x, within))
        return y
