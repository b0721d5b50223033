"""The paper's scores with another activation than ReLU, an ablation, on dense tensors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from timesliver import Attribution, TimeSliverClassifier
from timesliver.attribution import join
from timesliver.errors import InvalidParameterError, NotApplicableError, check_choice
from timesliver.explainers import AnyExplainer
from timesliver.network import InteractionTerm, dense
from timesliver.network.windows import span
from timesliver.series import PaddedSeries, as_series, equal_slices
from timesliver.typing import IntArray

__all__ = ["ACTIVATIONS", "ActivatedScores"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "abs": torch.abs,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "none": lambda products: products,
}
_SCALABLE = ("relu", "abs")
_NUMBERS = 1 << 22  # products of Z and Q that are looked at together


class ActivatedScores(AnyExplainer):
    """The scores of Eqs. 3 and 4 with an activation to choose.

    Parameters
    ----------
    activation : {"relu", "abs", "sigmoid", "tanh", "none"}
        What is applied to the products of Z and Q. A symbol that a segment lacks has a product of
        0, and where the activation of 0 is not 0 that counts as well.
    max_scaling : bool
        Whether each product is divided by its largest over the segments; for "relu" and "abs".
    centred : bool
        Whether the logit minus its mean over classes is explained.
    """

    name = "timesliver"

    def __init__(
        self,
        model: Any,
        *,
        activation: str,
        max_scaling: bool = True,
        centred: bool = False,
        **shared: Any,
    ) -> None:
        check_choice("activation", activation, tuple(ACTIVATIONS))
        if max_scaling and activation not in _SCALABLE:
            raise InvalidParameterError(
                f"max_scaling needs the activation 'relu' or 'abs'; use max_scaling=False with "
                f"activation={activation!r}"
            )
        self.activation, self.max_scaling, self.centred = activation, max_scaling, centred
        super().__init__(model, **shared)

    def _check_model(self) -> None:
        super()._check_model()
        estimator = self.model.estimator
        ours = isinstance(estimator, TimeSliverClassifier) and all(
            type(term) is InteractionTerm and term.weights.n_channels == estimator.n_channels_
            for term in estimator.network_.terms
        )
        if not ours or any(encoder.step != 1 for encoder in estimator.encoders_):
            raise NotApplicableError(
                "other activations are worked out for TimeSliver networks that look at every "
                "point, with symbols for each channel"
            )

    def explain(self, X: Any, target: ArrayLike | None = None) -> Attribution:
        """Say which moments spoke for a class and which against it; see `AnyExplainer`."""
        self.model.check_mode()
        series = as_series(X)
        targets = self._targets(target, len(series))
        parts = equal_slices(len(series), self._products(series), _NUMBERS)
        explained = [
            self._explain(series[part], None if targets is None else targets[part])
            for part in parts
        ]
        self.model.n_rows += len(series)
        return join(explained)

    def _products(self, series: PaddedSeries) -> int:
        """Return how many products of Z and Q the largest term of a case has."""
        sizes: list[int] = [
            term.average.numel() * (series.n_timepoints - span(encoder.widths) + 1)
            for part in self.model.estimator.network_.parts
            for encoder, terms in zip(part.encoders, part.terms, strict=True)
            for term in terms
        ]
        return max(sizes)

    @torch.no_grad()
    def _explain(self, series: PaddedSeries, targets: IntArray | None) -> Attribution:
        start = time.perf_counter()
        estimator = self.model.estimator
        network, batch = estimator.network_, estimator._batch(series)
        logits = network.infer(batch)
        chosen = logits.argmax(1) if targets is None else torch.tensor(targets)
        signs = [torch.zeros_like(batch.values) for _ in range(2)]
        for c in chosen.unique().tolist():
            cases = chosen == c
            scores = dense.phi(
                network,
                batch[cases],
                c,
                ACTIVATIONS[self.activation],
                self.max_scaling,
                self.centred,
            )
            for sign, of_class in zip(signs, scores, strict=True):
                sign[cases] = of_class[..., : series.n_timepoints]
        bias, explained = network.bias, logits
        if self.centred:
            bias, explained = bias - bias.mean(), logits - logits.mean(1, keepdim=True)
        n = len(series)
        return Attribution(
            positive_by_channel=signs[0].numpy(),
            negative_by_channel=signs[1].numpy(),
            logit=explained.gather(1, chosen[:, None])[:, 0].numpy(),
            base=bias[chosen].numpy(),
            target=chosen.numpy(),
            classes=estimator.classes_,
            method=self.name,
            series=series.with_gaps.astype(np.float32),
            probabilities=logits.double().softmax(1).numpy(),
            seconds=np.full(n, (time.perf_counter() - start) / n),
            forward_passes=np.ones(n),
        )
