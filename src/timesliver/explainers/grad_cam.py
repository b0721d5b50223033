"""Grad-CAM: the last feature maps, weighted by what they mean for the logit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.backbones import (
    BackboneNetwork,
    COLORNetwork,
    LSTMNetwork,
    TransformerNetwork,
)
from timesliver.errors import InvalidParameterError, NotApplicableError
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
    is interpolated between. What it sees is read off the convolutions, pools and padding before
    it; where other operations change the number of positions, these count as spread evenly.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain: CNN, FCN, ResNet, InceptionTime, or a module with convolutions.
    layer : Module or None
        The layer inside the network whose output, (B, channels, T), is looked at. None is the
        features of a backbone, and the last `nn.Conv1d` of another module.
    **shared
        Those of `Explainer`.
    """

    name = "grad_cam"
    has_channels: ClassVar[bool] = False
    has_settings: ClassVar[bool] = True
    needs_gradients: ClassVar[bool] = True

    def __init__(self, model: Any, *, layer: nn.Module | None = None, **shared: Any) -> None:
        self.layer = layer
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
            found = [module for module in network.modules() if isinstance(module, nn.Conv1d)]
            if not found:
                raise NotApplicableError(
                    f"{self.name} looks for a layer over time, but the {self.model.kind} has no "
                    f"nn.Conv1d; name a layer whose output has shape (n_cases, n_features, "
                    f"n_positions), or use integrated_gradients"
                )
            self.layer = found[-1]

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        targets = torch.tensor([case.target for case in cases], device=inputs.lengths.device)
        scores = torch.zeros_like(inputs.values[:, 0])
        for length in inputs.lengths.unique().tolist():  # without padding, maps need no mask
            L = min(max(length, 2), inputs.values.shape[2])
            members = (inputs.lengths == length).nonzero()[:, 0]
            for part in members.split(self.batch_size):
                cut = Batch(
                    inputs.values[part, :, :L], inputs.observed[part, :, :L], inputs.lengths[part]
                )
                scores[part, :L] = self._map(cut, targets[part])
        return Scores(scores)

    def _map(self, inputs: Batch, targets: Tensor) -> Tensor:
        """Return the map of cases of one length, (B, L)."""
        values = inputs.values.detach().clone().requires_grad_()
        features, logits = self._ask(inputs, values)
        L, T = values.shape[2], features.shape[2]
        sight = _Sight.of(features, values)
        if sight is None or not sight.covers(L, T):
            sight = _Sight.even(L, T)
        chosen = logits.gather(1, targets[:, None]).sum()
        (gradient,) = torch.autograd.grad(chosen, features, allow_unused=True)
        if gradient is None:
            raise InvalidParameterError(
                f"the logits do not depend on the layer {self.layer!r}; name one that they pass"
            )
        alpha = gradient.mean(2, keepdim=True)  # (B, width, 1)
        found = (alpha * features.detach()).sum(1).to(values)  # (B, T)
        if self.setting == "paper":
            return F.interpolate(found[:, None], L)[:, 0]
        t = torch.arange(L, device=found.device)
        place = ((t - sight.centre) / sight.step).clamp(0, T - 1)
        before = place.long()
        after = (before + 1).clamp(max=T - 1)
        return torch.lerp(found[:, before], found[:, after], place - before)

    def _ask(self, inputs: Batch, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the features, (B, width, T), and the logits that follow from them, (B, C)."""
        network = self.model.network
        if self.layer is None:
            features, lengths = network.features(replace(inputs, values=values))
            self.model.n_rows += len(values)
            return features, network.from_features(features, lengths)
        outputs: list[Any] = []
        hook = self.layer.register_forward_hook(lambda *call: outputs.append(call[-1]))
        try:
            logits = self.model.logits(inputs, values)
        finally:
            hook.remove()
        if not outputs or not isinstance(outputs[-1], Tensor) or outputs[-1].ndim != 3:
            got = tuple(outputs[-1].shape) if outputs and hasattr(outputs[-1], "shape") else None
            raise InvalidParameterError(
                f"the layer must give features of shape (n_cases, n_features, n_positions), but "
                f"{type(self.layer).__name__} gave {got}"
            )
        return outputs[-1], logits


class _Sight(NamedTuple):
    """Which times a position u of a layer sees: ``step * u + first`` to ``step * u + last``."""

    step: float
    first: float
    last: float

    @property
    def centre(self) -> float:
        """Of the times that position 0 sees."""
        return (self.first + self.last) / 2

    def covers(self, n_timepoints: int, n_positions: int) -> bool:
        """Whether so many positions reach from the start to the end of a series, not past it."""
        last = self.step * (n_positions - 1)
        left_out = n_timepoints - 1 - (last + self.last)
        return last + self.first < n_timepoints and left_out < self.step

    @classmethod
    def even(cls, n_timepoints: int, n_positions: int) -> _Sight:
        """Return that of positions spread evenly."""
        step = n_timepoints / n_positions
        return cls(step, 0, step - 1)

    @classmethod
    def of(cls, features: Tensor, values: Tensor) -> _Sight | None:
        """Read strides, kernels and padding off the graph from the values to the features."""
        known: dict[Any, _Sight | None] = {None: None}
        ahead = [features.grad_fn]
        while ahead:  # without recursion, as networks may be deep
            node = ahead[-1]
            below = [] if node is None else [child for child, _ in node.next_functions]
            unknown = [child for child in below if child not in known]
            if unknown:
                ahead += unknown
                continue
            ahead.pop()
            if getattr(node, "variable", None) is values:
                known[node] = cls(1, 0, 0)
            elif node not in known:
                known[node] = _through(node, [known[child] for child in below])
        return known[features.grad_fn]


def _through(node: Any, below: list[_Sight | None]) -> _Sight | None:
    """Return what the output of a node sees, as wide as its inputs together; None if nothing."""
    seen = [each for each in below if each is not None]
    if not seen or any(each.step != seen[0].step for each in seen):
        return None
    step, first = seen[0].step, min(each.first for each in seen)
    last = max(each.last for each in seen)
    stride, left, span = _window(node)
    return _Sight(step * stride, first - step * left, last + step * (span - left))


def _window(node: Any) -> tuple[int, int, int]:
    """Return stride, padding at the left, and width less one of the window of an operation."""
    kind = node.name()
    if kind.startswith("Convolution"):
        span = node._saved_dilation[-1] * (node._saved_weight.shape[-1] - 1)
        return node._saved_stride[-1], node._saved_padding[-1], span
    if kind.startswith(("MaxPool", "AvgPool")):
        size = node._saved_kernel_size[-1]
        stride = (node._saved_stride or (size,))[-1]
        dilation = getattr(node, "_saved_dilation", (1,))[-1]
        return stride, node._saved_padding[-1], dilation * (size - 1)
    if kind.startswith("ConstantPadNd"):
        return 1, node._saved_pad[0], 0
    if kind.startswith(("ReflectionPad", "ReplicationPad")):
        return 1, node._saved_padding[0], 0
    return 1, 0, 0
