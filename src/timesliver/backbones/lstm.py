"""The recurrent network: LSTM layers, and a linear layer on the state at the end of a case."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from timesliver.backbones.base import BackboneClassifier, BackboneNetwork, SeriesBatch
from timesliver.backbones.layers import seeded
from timesliver.errors import check_count

__all__ = ["LSTM", "LSTMNetwork"]


class LSTMNetwork(BackboneNetwork):
    """LSTM layers whose last state is classified; see `LSTM`."""

    def __init__(
        self,
        n_channels: int,
        n_classes: int,
        width: int = 64,
        n_layers: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__()
        check_count("width", width, 1)
        check_count("n_layers", n_layers, 1)
        self.n_channels = n_channels
        with seeded(seed):
            self.lstm = nn.LSTM(n_channels, width, n_layers, batch_first=True)
            self.head = nn.Linear(width, n_classes)

    def features(self, batch: SeriesBatch) -> tuple[Tensor, Tensor]:
        """Return the last features, (B, width, T), and how many of T belong to each case."""
        states, _ = self.lstm(batch.values.transpose(1, 2))  # (B, L, width)
        return states.transpose(1, 2), batch.lengths

    def forward(self, batch: SeriesBatch) -> Tensor:
        """Return the logits, shape (B, C)."""
        self._check(batch)
        states, lengths = self.features(batch)
        cases = torch.arange(len(batch), device=lengths.device)
        logits: Tensor = self.head(states[cases, :, lengths - 1])
        return logits

    def numbers_per_case(self, n_timepoints: int) -> int:
        """Return the size of the intermediate arrays of one case."""
        return 8 * n_timepoints * self.lstm.hidden_size


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
    """

    width: int = 64
    n_layers: int = 1

    def _network(self, seed: int) -> LSTMNetwork:
        return LSTMNetwork(self.n_channels_, len(self.classes_), self.width, self.n_layers, seed)
