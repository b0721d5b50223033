"""The row that every table needs: scores that know nothing."""

from __future__ import annotations

from typing import ClassVar

import torch

from timesliver.explainers.base import Case, Explainer, Scores
from timesliver.network.batch import Batch

__all__ = ["Random"]


class Random(Explainer):
    """One number between 0 and 1 for every time point."""

    name = "random"
    has_sign: ClassVar[bool] = False
    has_channels: ClassVar[bool] = False

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        scores = torch.zeros(len(cases), inputs.n_timepoints)
        for row, length, case in zip(scores, inputs.lengths.tolist(), cases, strict=True):
            generator = torch.Generator().manual_seed(case.seed)
            row[:length] = torch.rand(length, generator=generator)
        return Scores(scores)
