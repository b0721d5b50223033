"""Grad-CAM: the last feature maps, weighted by what they mean for the logit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.backbones import (
    BackboneNetwork,
    COLORNetwork,
    LSTMNetwork,
    TransformerNetwork,
)
from timesliver.backbones.sight import Sight
from timesliver.errors import InvalidParameterError, NotApplicableError, check_number
from timesliver.explainers.base import Case, Explainer, Scores
from timesliver.network.batch import Batch

__all__ = ["GradCAM"]


class GradCAM(Explainer):
    """Grad-CAM (Selvaraju et al., 2017) over time.

    The map is ``sum_k alpha_k F_k`` over the features F_k of a layer, where alpha_k is the mean
    gradient of the logit with respect to F_k. What is positive speaks for the class, what is
    negative against it. Channels are not told apart.

    "paper": each time point takes the nearest position of the layer, as if these were spread
    evenly. "fair": every position is put at the centre of the points that it sees, and the map
    is interpolated between. The features of a backbone say what they see; positions of other
    layers count as spread evenly unless `sight` says otherwise.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain: CNN, FCN, ResNet, InceptionTime, or a module with convolutions.
    layer : Module or None
        The layer inside the network whose output, (B, channels, T), is looked at. None is the
        features of a backbone, and the last `nn.Conv1d` of another module.
    sight : (float, float, float) or None
        For "fair", step, first and last: position u of the layer sees the points
        ``step*u + first`` to ``step*u + last``.
    **shared
        Those of `Explainer`.
    """

    name = "grad_cam"
    has_channels: ClassVar[bool] = False
    has_settings: ClassVar[bool] = True
    needs_gradients: ClassVar[bool] = True

    def __init__(
        self,
        model: Any,
        *,
        layer: nn.Module | None = None,
        sight: Sequence[float] | None = None,
        **shared: Any,
    ) -> None:
        self.layer = layer
        self.sight = None if sight is None else _checked(sight)
        super().__init__(model, **shared)

    def _check_model(self) -> None:
        super()._check_model()
        network = self.model.network
        if self.layer is not None:
            if not any(self.layer is module for module in network.modules()):
                raise InvalidParameterError(
                    f"layer must be a module inside the {self.model.kind}, got {self.layer!r}"
                )
        elif isinstance(network, COLORNetwork | LSTMNetwork | TransformerNetwork):
            raise NotApplicableError(
                f"{self.name} needs features of convolutions, which {self.model.kind} does not "
                f"have at its end; name a layer, or use integrated_gradients, or for a "
                f"Transformer grad_sam"
            )
        elif not isinstance(network, BackboneNetwork):
            convolutions = [part for part in network.modules() if isinstance(part, nn.Conv1d)]
            if not convolutions:
                raise NotApplicableError(
                    f"{self.name} looks for a layer over time, but the {self.model.kind} has no "
                    f"nn.Conv1d; name a layer whose output has shape (n_cases, n_features, "
                    f"n_positions), or use integrated_gradients"
                )
            self.layer = convolutions[-1]
        elif self.sight is None:
            self.sight = network.sight

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        targets = torch.tensor([case.target for case in cases], device=inputs.lengths.device)
        scores = torch.zeros_like(inputs.values[:, 0])
        for length in inputs.lengths.unique().tolist():  # without padding, maps need no mask
            L = min(max(length, 2), inputs.n_timepoints)
            members = (inputs.lengths == length).nonzero()[:, 0]
            for part in members.split(self.batch_size):
                cut = Batch(
                    inputs.values[part, :, :L], inputs.observed[part, :, :L], inputs.lengths[part]
                )
                scores[part, :L] = self._map(cut, targets[part])
        return Scores(scores)

    def _map(self, inputs: Batch, targets: Tensor) -> Tensor:
        """Return the map of cases of one length, (B, L)."""
        inputs = replace(inputs, values=inputs.values.detach().clone().requires_grad_())
        features, logits = self._ask(inputs)
        chosen = logits.gather(1, targets[:, None]).sum()
        (gradient,) = torch.autograd.grad(chosen, features, allow_unused=True)
        if gradient is None:
            raise InvalidParameterError(
                f"the logits do not depend on the layer {self.layer!r}; name one that they pass"
            )
        alpha = gradient.mean(2, keepdim=True)  # (B, width, 1)
        scores = (alpha * features.detach()).sum(1).to(inputs.values)  # (B, T)
        L, T = inputs.n_timepoints, scores.shape[1]
        if self.setting == "paper":
            return F.interpolate(scores[:, None], L)[:, 0]
        sight = self.sight or Sight.even(L, T)
        t = torch.arange(L, device=scores.device)
        place = ((t - sight.centre) / sight.step).clamp(0, T - 1)
        before = place.long()
        after = (before + 1).clamp(max=T - 1)
        return torch.lerp(scores[:, before], scores[:, after], place - before)

    def _ask(self, inputs: Batch) -> tuple[Tensor, Tensor]:
        """Return the features, (B, width, T), and the logits that follow from them, (B, C)."""
        network = self.model.network
        if self.layer is None:
            features, lengths = network.features(inputs)
            self.model.n_rows += len(inputs)
            return features, network.from_features(features, lengths)
        outputs: list[Any] = []
        hook = self.layer.register_forward_hook(lambda *call: outputs.append(call[-1]))
        try:
            logits = self.model.logits(inputs)
        finally:
            hook.remove()
        if not outputs or not isinstance(outputs[-1], Tensor) or outputs[-1].ndim != 3:
            got = tuple(outputs[-1].shape) if outputs and hasattr(outputs[-1], "shape") else None
            raise InvalidParameterError(
                f"the layer must give features of shape (n_cases, n_features, n_positions), but "
                f"{type(self.layer).__name__} gave {got}"
            )
        return outputs[-1], logits


def _checked(sight: Sequence[float]) -> Sight:
    """Return what a caller says that positions see."""
    if not isinstance(sight, Sequence) or len(sight) != 3:
        raise InvalidParameterError(
            f"sight must be three numbers, step, first and last; got {sight!r}"
        )
    step, first, last = sight
    check_number("the step of sight", step, above=0)
    check_number("the first point of sight", first)
    check_number("the last point of sight", last, least=first)
    return Sight(step, first, last)
