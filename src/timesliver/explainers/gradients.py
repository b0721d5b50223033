"""Gradients gathered on the way to a series: Integrated Gradients and GradientSHAP."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from timesliver.errors import check_count
from timesliver.explainers.base import Case, Scores
from timesliver.explainers.baselines import AgainstBaselines, AgainstTraining
from timesliver.explainers.inputs import captum_methods, repeated
from timesliver.network.batch import Batch

__all__ = ["GradientSHAP", "IntegratedGradients"]

_STEPS, _MOST_STEPS = 50, 200
_INCOMPLETE = 0.01  # most of the change of the logit that may be missing from its shares
_SAMPLES = {"fair": 50, "paper": 5}
_NOISE = 0.05  # of the deviation of a channel


class IntegratedGradients(AgainstBaselines):
    """Integrated Gradients (Sundararajan, Taly and Yan, 2017).

    The gradient of the logit, integrated along the straight way from a baseline to the series, and
    multiplied with their difference. The shares sum to the change of the logit; the `bias` is the
    logit of the baseline, so ``net.sum(axis=1) + bias`` is the logit, but for the error of the
    integral.

    "paper": zero baseline, 50 steps. "fair": the mean over `baselines`; where the shares miss 1 %
    of the change, the steps are doubled, up to 200.

    Parameters
    ----------
    model, baselines, **shared
        See `AgainstBaselines`.
    """

    name = "integrated_gradients"
    cases_at_once = 1

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        by_case = [self._of_case(inputs[i : i + 1], case) for i, case in enumerate(cases)]
        return Scores(*(torch.stack(part) for part in zip(*by_case, strict=True)))

    def _of_case(self, inputs: Batch, case: Case) -> tuple[Tensor, Tensor]:
        """Return the scores (v, L) and the mean logit of the baselines."""

        def logit(values: Tensor) -> Tensor:
            return self.model.logits(repeated(inputs, len(values)), values)[:, case.target]

        @torch.no_grad()
        def logits_of(values: Tensor) -> Tensor:
            return torch.cat([logit(part) for part in values.split(self.batch_size)])

        engine = captum_methods().IntegratedGradients(logit)
        references, weights = self._references(inputs, case.seed)
        at_references = logits_of(references)
        changes = None
        if self.setting == "fair":
            changes = (logits_of(inputs.values) - at_references).tolist()
        total = torch.zeros_like(inputs.values[0])
        for k, reference in enumerate(references):
            steps = _STEPS
            while True:
                scores = engine.attribute(
                    inputs.values,
                    reference[None],
                    n_steps=steps,
                    method="gausslegendre",
                    internal_batch_size=self.batch_size,
                ).to(total)[0]  # (v, L)
                if changes is None or 2 * steps > _MOST_STEPS:
                    break
                if abs(float(scores.sum()) - changes[k]) <= _INCOMPLETE * abs(changes[k]):
                    break
                steps *= 2
            total += weights[k] * scores
        return total, at_references @ weights


class GradientSHAP(AgainstTraining):
    """GradientSHAP (Lundberg and Lee, 2017): gradients at random points of random ways.

    Every way goes from a training series to the case, with noise added to it; the gradient at a
    random point of it is multiplied with the difference of its ends. Written out rather than left
    to captum, which draws from numpy's global random state.

    "paper": 5 samples, 5 training series (zeros without `fit`), no noise. "fair": 50 samples, 20
    training series, noise of 0.05 of the deviation of each channel; it needs `fit`.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain.
    n_samples : int or None
        How many ways; None is that of the setting.
    **shared
        Those of `Explainer`.
    """

    name = "gradient_shap"
    cases_at_once = 1

    def __init__(self, model: Any, *, n_samples: int | None = None, **shared: Any) -> None:
        super().__init__(model, **shared)
        self.n_samples = _SAMPLES[self.setting] if n_samples is None else n_samples
        check_count("n_samples", self.n_samples, 1)

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        by_case = [self._of_case(inputs[i : i + 1], case) for i, case in enumerate(cases)]
        return Scores(torch.stack(by_case))

    def _of_case(self, inputs: Batch, case: Case) -> Tensor:
        """Return the scores, (v, L)."""
        n = self.n_samples
        draw = torch.Generator().manual_seed(case.seed)
        references, _ = self._references(inputs, case.seed)
        starts = torch.randint(len(references), (n,), generator=draw)
        places = torch.rand(n, 1, 1, generator=draw).to(inputs.values)
        ends = inputs.values.expand(n, -1, -1)
        if self.setting == "fair":
            draw_noise = int(torch.randint(1 << 62, (), generator=draw))
            ends = ends + self._noise(n, _NOISE, inputs, draw_noise)
        total = torch.zeros_like(inputs.values[0])
        for part in torch.arange(n).split(self.batch_size):
            start = references[starts[part]]
            way = ends[part] - start
            at = (start + places[part] * way).requires_grad_()
            logits = self.model.logits(repeated(inputs, len(part)), at)
            (gradient,) = torch.autograd.grad(logits[:, case.target].sum(), at)
            total += (gradient * way).sum(0)
        return total / n
