"""What a transformer attends to: as it is, or weighted by what the attention does to a logit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from timesliver.backbones import TransformerNetwork
from timesliver.backbones.layers import inside
from timesliver.errors import NotApplicableError, check_choice
from timesliver.explainers.base import Case, Scores
from timesliver.explainers.windows import WindowExplainer
from timesliver.network.batch import Batch

__all__ = ["AttentionTracing", "GradSAM"]


class _TokenExplainer(WindowExplainer):
    """Score the tokens of a transformer; the largest score of a case becomes 1."""

    has_sign: ClassVar[bool] = False
    has_channels: ClassVar[bool] = False

    def _check_model(self) -> None:
        super()._check_model()
        if not isinstance(self.model.network, TransformerNetwork):
            raise NotApplicableError(
                f"{self.name} reads the attention of a Transformer, but the model is a "
                f"{self.model.kind}; explain timesliver.backbones.Transformer, or use a method "
                f"for any model, such as lime"
            )

    def _numbers_per_case(self, n_timepoints: int) -> int:
        network = self.model.network
        T = int(network.n_tokens(torch.tensor(n_timepoints)))
        return len(network.layers) * int(network.n_heads) * T * T

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        scores = super()._scores(inputs, cases).scores[:, 0]
        largest = scores.amax(1, keepdim=True)
        return Scores(scores / torch.where(largest > 0, largest, 1.0))


class AttentionTracing(_TokenExplainer):
    """How much attention each moment receives; the largest of a case is 1.

    It does not depend on the class.

    Parameters
    ----------
    mode : {"last", "mean", "rollout"}
        The attention of the last layer; the mean over layers; or the product of the layers, each
        averaged with the identity for its residual connection.
    """

    name = "attention_tracing"

    def __init__(self, model: Any, *, mode: str = "last", **shared: Any) -> None:
        check_choice("mode", mode, ("last", "mean", "rollout"))
        self.mode = mode
        super().__init__(model, **shared)

    @torch.no_grad()
    def _window_scores(
        self,
        batch: Batch,
        targets: Tensor,  # noqa: ARG002
    ) -> tuple[Tensor, Tensor]:
        network = self.model.network
        _, attention = network(batch, return_attention=True)
        layers = [weights.double().mean(1) for weights in attention]  # (B, T, T) each
        n_tokens = network.n_tokens(batch.lengths)
        # Tokens as queries all count alike; those of the padding do not ask.
        queries = (inside(n_tokens, layers[0].shape[1]) / n_tokens[:, None, None]).double()
        if self.mode == "rollout":
            for weights in reversed(layers):
                queries = (queries @ weights + queries) / 2
            return queries, n_tokens
        received = [queries @ weights for weights in layers]
        return received[-1] if self.mode == "last" else torch.stack(received).mean(0), n_tokens


class GradSAM(_TokenExplainer):
    """Attention times what raises the logit (Grad-SAM, 2021); the largest of a case is 1.

    Parameters
    ----------
    center : bool
        Softmax makes a constant added to the gradients of a row irrelevant to the model, but the
        ReLU of this method notices it. True subtracts the mean of each row under its attention.
    """

    name = "grad_sam"
    needs_gradients: ClassVar[bool] = True

    def __init__(self, model: Any, *, center: bool = False, **shared: Any) -> None:
        check_choice("center", center, (False, True))
        self.center = center
        super().__init__(model, **shared)

    def _window_scores(self, batch: Batch, targets: Tensor) -> tuple[Tensor, Tensor]:
        network = self.model.network
        values = batch.values.detach().clone().requires_grad_()  # the weights may be frozen
        logits, attention = network(replace(batch, values=values), return_attention=True)
        wanted = logits.gather(1, targets[:, None]).sum()
        gradients = torch.autograd.grad(wanted, attention)
        n_tokens = network.n_tokens(batch.lengths)
        tokens = torch.zeros(len(batch), attention[0].shape[3], device=values.device).double()
        for weights, gradient in zip(attention, gradients, strict=True):
            A, g = weights.detach().double(), gradient.double()
            if self.center:
                g = g - (A * g).sum(3, keepdim=True)
            tokens += (A * g.clamp(min=0)).sum((1, 2))
        return (tokens / (len(attention) * network.n_heads * n_tokens[:, None]))[:, None], n_tokens
