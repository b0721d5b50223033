"""What LIME and KernelSHAP share: blank parts of a series, ask the model, fit a linear model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn import functional as F

from timesliver.backbones.layers import seeded
from timesliver.errors import (
    InvalidParameterError,
    NotApplicableError,
    check_count,
)
from timesliver.explainers.base import Case, Explainer, Scores
from timesliver.explainers.inputs import captum_methods, repeated
from timesliver.explainers.segments import default_window, segment_grids
from timesliver.network.batch import Batch
from timesliver.typing import BoolArray, FloatArray, IntArray

__all__ = ["SurrogateExplainer", "count_distinct"]

_SAMPLES = {"paper": 25, "fair": 500}
_MOST_CHANNELS = 6  # that may be told apart


class SurrogateExplainer(Explainer):
    """Explain a case by a linear model of what happens when parts of it are set to 0.

    The "paper" setting calls captum with its defaults: every time point of every channel is a part
    by itself. In the "fair" setting the parts are segments in time, over all channels; four
    grids, each shifted by a quarter of a segment, are averaged.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain, see `as_model`.
    n_samples : int or None
        How often the model is asked about a case, over all grids; None is 500, or 25 as in
        captum. With `per_channel` it is that often for each channel.
    window : int or None
        Points per segment; None is a 25th of the series, see `default_window`. "fair" only.
    per_channel : bool
        Give each channel segments of its own, for up to six channels. "fair" only.
    **shared
        Those of `Explainer`.
    """

    #: Class of captum that the "paper" setting calls.
    captum_name: ClassVar[str]
    has_channels: bool = False  # type: ignore[misc]  # depends on the setting
    has_settings: ClassVar[bool] = True
    cases_at_once: ClassVar[int] = 1

    def __init__(
        self,
        model: Any,
        *,
        n_samples: int | None = None,
        window: int | None = None,
        per_channel: bool = False,
        **shared: Any,
    ) -> None:
        super().__init__(model, **shared)
        if self.setting == "paper" and (window is not None or per_channel):
            raise InvalidParameterError(
                "the 'paper' setting takes every time point of every channel by itself; leave out "
                "window and per_channel, or use setting='fair'"
            )
        self.n_samples = _SAMPLES[self.setting] if n_samples is None else n_samples
        check_count("n_samples", self.n_samples, 8)  # two for each grid
        if window is not None:
            check_count("window", window, 1)
        self.window, self.per_channel = window, per_channel
        self.has_channels = per_channel or self.setting == "paper"

    # --- what a method says --------------------------------------------------------------------

    @abstractmethod
    def _by_segments(self, one: Batch, case: Case) -> tuple[FloatArray, float]:
        """Return the scores of one case, (v, n) or (1, n) for all channels, and its bias."""

    # --- what they share -----------------------------------------------------------------------

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        v, L = inputs.values.shape[1:]
        if self.per_channel and v > _MOST_CHANNELS:
            raise NotApplicableError(
                f"per_channel tells up to {_MOST_CHANNELS} channels apart, the series have {v}; "
                f"leave it out for segments over all channels"
            )
        explain = self._by_captum if self.setting == "paper" else self._by_segments
        scores = np.zeros((len(cases), v if self.has_channels else 1, L))
        bias = np.zeros(len(cases))
        for i, case in enumerate(cases):
            of_case, bias[i] = explain(inputs[i : i + 1], case)
            scores[i, :, : of_case.shape[1]] = of_case
        shaped = torch.from_numpy(scores if self.has_channels else scores[:, 0])
        return Scores(shaped, torch.from_numpy(bias.astype(np.float32)))

    def _by_captum(self, one: Batch, case: Case) -> tuple[FloatArray, float]:
        length = int(one.lengths[0])
        padding = (0, one.n_timepoints - length)

        def logit(values: Tensor) -> Tensor:
            return self.model.infer(one, F.pad(values, padding))[:, case.target]

        method = getattr(captum_methods(), self.captum_name)(logit)
        with seeded(case.seed, one.values.device), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Attempting to construct .* > 10000 features")
            warnings.simplefilter("ignore", ConvergenceWarning)
            scores: Tensor = method.attribute(one.values[:, :, :length], n_samples=self.n_samples)
        return scores[0].double().cpu().numpy(), 0.0

    def _segmentations(self, one: Batch) -> list[IntArray]:
        """Return for each grid the number of the part that a point is in, (v, n) or (1, n)."""
        length = int(one.lengths[0])
        grids = segment_grids(length, self.window or default_window(length))
        n_copies = one.n_channels if self.per_channel else 1
        return [grid + np.arange(n_copies)[:, None] * (grid[-1] + 1) for grid in grids]

    def _samples_per_grid(self, segmentations: list[IntArray]) -> int:
        return self.n_samples * len(segmentations[0]) // len(segmentations)

    def _ask(self, one: Batch, case: Case, parts: IntArray, kept: BoolArray) -> FloatArray:
        """Return the logit of a case, (n,), for each way to keep some parts of it, (n, K)."""
        width = one.n_timepoints
        parts = np.pad(parts, ((0, 0), (0, width - parts.shape[1])))
        logits = []
        for start in range(0, len(kept), self.batch_size):
            mask = torch.from_numpy(kept[start : start + self.batch_size][:, parts])
            rows = repeated(one, len(mask))
            values = rows.values * mask.to(rows.values)  # (B, v, L)
            logits.append(self.model.infer(rows, values)[:, case.target])
        return torch.cat(logits).double().cpu().numpy() if logits else np.zeros(0)


def count_distinct(kept: BoolArray) -> tuple[BoolArray, IntArray]:
    """Return each different row once, and how often it occurs."""
    rows, counts = np.unique(kept, axis=0, return_counts=True)
    return rows, counts
