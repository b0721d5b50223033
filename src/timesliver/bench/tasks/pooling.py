"""The paper's model with maximum in place of average pooling: an ablation, not linear in P."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver import Attribution, TimeSliverClassifier
from timesliver.attribution import join
from timesliver.network import Batch, NetworkConfig, TimeSliverNetwork
from timesliver.network.head import LinearHead
from timesliver.series import as_series

__all__ = ["MaxPooled"]


class MaxPooled(TimeSliverClassifier):
    """`TimeSliverClassifier` whose last layer sees the largest entry of each group of P.

    The gradient of a logit is then no constant of the weights: it is theirs at the entries that
    are the largest of their group, and 0 elsewhere, so each case is explained by itself.
    """

    def _network(self, config: NetworkConfig, seed: int = 0) -> TimeSliverNetwork:
        return _MaxPooledNetwork(config, seed)

    def explain(
        self, X: Any, target: Any = None, method: str = "timesliver", **options: Any
    ) -> Any:
        """Explain the predicted classes, one case after another."""
        head, series = self.network_.head, as_series(X)
        found: list[Attribution] = []
        for case in range(len(series)):
            one = series[case : case + 1]
            head.selected = None
            batch = self._batch(one)
            with torch.no_grad():
                head.selected = head.largest(*self.network_.interactions(batch))
            found.append(super().explain(one, target, method, **options))
        head.selected = None
        return join(found)


class _MaxPooledNetwork(TimeSliverNetwork):
    def _build(self, config: NetworkConfig) -> None:
        super()._build(config)
        averaging = self.head
        self.head = _MaxHead(
            config.n_classes,
            len(config.segment_sizes),
            config.n_channels,
            config.n_symbols,
            config.latent_dim,
            config.pooling,
        )
        self.head.load_state_dict(averaging.state_dict())

    def interactions(self, batch: Batch) -> tuple[list[Tensor], list[Tensor]]:
        Qt = self.spread(self.encode(batch), batch)
        return self.interact(Qt, batch), self.scales(batch)


class _MaxHead(LinearHead):
    selected: Tensor | None = None  # (|m|, v, n, q), 1 at the entries that count

    def forward(self, R: Sequence[Tensor], scales: Sequence[Tensor]) -> Tensor:
        if self.selected is not None:  # one case, whose largest entries are known
            return super().forward(R, scales)
        logits: Tensor = self.bias
        for size, groups in enumerate(self._groups(R, scales)):
            pooled = groups.amax((3, 5)).flatten(1)  # (B, v * rows * columns)
            logits = logits + pooled @ self.weight[:, size].flatten(1).T
        return logits

    def full_weight(self) -> Tensor:
        W: Tensor = self.weight
        for axis, group in enumerate(self.pooling, start=3):
            W = W.repeat_interleave(group, axis)
        W = W[..., : self.n_symbols, : self.latent_dim]
        return F.pad(W if self.selected is None else W * self.selected, (0, 0, 1, 0))

    def largest(self, R: Sequence[Tensor], scales: Sequence[Tensor]) -> Tensor:
        found = []
        for groups in self._groups(R, scales):
            rows, columns = groups.shape[2] * groups.shape[3], groups.shape[4] * groups.shape[5]
            top = groups.movedim(3, 4).flatten(4).argmax(4)  # (1, v, rows, columns)
            chosen = F.one_hot(top, math.prod(self.pooling)).unflatten(4, self.pooling)
            whole = chosen.movedim(4, 3).reshape(-1, rows, columns)
            found.append(whole[:, : self.n_symbols, : self.latent_dim].float())
        return torch.stack(found)

    def _groups(self, R: Sequence[Tensor], scales: Sequence[Tensor]) -> list[Tensor]:
        """Return P in groups, one per segment size: (B, v, rows, group, columns, group)."""
        a, b = self.pooling
        n, q = self.n_symbols, self.latent_dim
        missing = (0, -q % b, 0, -n % a)
        found = []
        for P, scale in zip(R, scales, strict=True):
            entries = P.view(len(P), self.n_channels, n + 1, q)[:, :, 1:]
            filled = F.pad(entries * scale.view(-1, 1, 1, 1), missing, value=-torch.inf)
            found.append(filled.unflatten(3, (-1, b)).unflatten(2, (-1, a)))
        return found
