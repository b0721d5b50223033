"""Explaining by the windows that a network sees: tokens of a transformer, segments of COLOR."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.backbones.layers import inside
from timesliver.explainers.base import Case, Explainer, Scores
from timesliver.network.batch import Batch
from timesliver.series import equal_slices

__all__ = ["WindowExplainer", "mean_of_covering"]

_NUMBERS = 1 << 23  # that are looked at together


class WindowExplainer(Explainer):
    """Score windows, and give each time point the mean of those that cover it.

    The network has their `span` and `stride`.
    """

    @abstractmethod
    def _numbers_per_case(self, n_timepoints: int) -> int:
        """Return the size of the arrays that are looked at for one case."""

    @abstractmethod
    def _window_scores(self, batch: Batch, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores of windows, (B, c, T), and how many of the T belong to each case."""

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        network, L = self.model.network, inputs.n_timepoints
        targets = torch.tensor([case.target for case in cases], device=inputs.values.device)
        most = min(self.batch_size, max(1, _NUMBERS // self._numbers_per_case(L)))
        scores = []
        for part in equal_slices(len(cases), 1, most):
            batch = self.model.network_batch(inputs[part])
            windows, n_windows = self._window_scores(batch, targets[part])
            self.model.n_rows += len(batch)
            scores.append(mean_of_covering(windows, n_windows, network.span, network.stride, L))
        return Scores(torch.cat(scores))


def mean_of_covering(
    scores: Tensor, n_scores: Tensor, span: int, stride: int, n_timepoints: int
) -> Tensor:
    """Give each time point the mean score of the windows that cover it, 0 where none does.

    Parameters
    ----------
    scores : tensor of shape (B, c, T)
        Window j covers the points from ``j * stride`` to ``j * stride + span - 1``.
    n_scores : tensor of shape (B,)
        How many of the T windows belong to each case.
    span, stride, n_timepoints : int
        Points per window, points from one window to the next, and points of the result.

    Returns
    -------
    tensor of shape (B, c, n_timepoints)
    """
    B, c, T = scores.shape
    within = inside(n_scores, T).to(scores)
    rows = torch.cat([scores * within, within], 1).reshape(B * (c + 1), 1, T)
    spread = F.conv_transpose1d(rows, rows.new_ones(1, 1, span), stride=stride)[:, 0]
    spread = F.pad(spread, (0, max(0, n_timepoints - spread.shape[1])))[:, :n_timepoints]
    total = spread.view(B, c + 1, -1)
    return total[:, :-1] / total[:, -1:].clamp(min=1)
