"""The recurrent network: LSTM layers, and a linear layer on the state at the end of a case.

Long series are shortened first, by the mean of a few points at a time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork
from timesliver.backbones.layers import inside
from timesliver.errors import check_count
from timesliver.network.batch import Batch

__all__ = ["LSTM", "LSTMNetwork"]

_MANY_STEPS = 512  # each waits for the one before


class LSTMNetwork(BackboneNetwork):
    """LSTM layers whose last state is classified; see `LSTM`."""

    def _build(self, settings: LSTM) -> None:
        check_count("width", settings.width, 1)
        check_count("n_layers", settings.n_layers, 1)
        step = settings.step
        self.step = math.ceil(self.n_timepoints / _MANY_STEPS) if step is None else step
        check_count("step", self.step, 1)
        self.lstm = nn.LSTM(self.n_channels, settings.width, settings.n_layers, batch_first=True)
        self.head = nn.Linear(settings.width, self.n_classes)

    def features(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the last features, (B, width, T), and how many of T belong to each case."""
        means, lengths = self._means(batch)
        states, _ = self.lstm(means.transpose(1, 2))  # (B, T, width)
        return states.transpose(1, 2), lengths

    def _means(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the means of `step` points each, (B, v, T), and how many belong to each case."""
        if self.step == 1:
            return batch.values, batch.lengths
        missing = -batch.n_timepoints % self.step
        values = nn.functional.pad(batch.values, (0, missing)).unflatten(2, (-1, self.step))
        within = inside(batch.lengths, values.shape[2] * self.step)
        counts = within.unflatten(2, (-1, self.step)).sum(3).clamp(min=1)
        return values.sum(3) / counts, (batch.lengths + self.step - 1) // self.step

    def from_features(self, features: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits, shape (B, C), from the state at the end of each case."""
        cases = torch.arange(len(lengths), device=lengths.device)
        logits: Tensor = self.head(features[cases, :, lengths - 1])
        return logits

    def numbers_per_case(self, n_timepoints: int) -> int:
        """Return the size of the intermediate arrays of one case."""
        return 8 * (n_timepoints // self.step + 1) * self.lstm.hidden_size


@dataclass(eq=False, repr=False, kw_only=True)
class LSTM(BackboneClassifier):
    """Classify series with a recurrent network.

    It reads point after point, so its time grows with the length and many cores do not help.
    Training parameters are those of `BackboneClassifier`.

    Parameters
    ----------
    width : int
        Size of the state.
    n_layers : int
        Number of LSTM layers.
    step : int or None
        Number of points whose mean the network reads at a time. None takes as few as give 512
        steps or fewer.
    """

    network_class = LSTMNetwork

    width: int = 64
    n_layers: int = 1
    step: int | None = None
