"""What a transformer attends to: as it is, or weighted by what the attention does to a logit."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.backbones import SeriesBatch, TransformerNetwork
from timesliver.backbones.layers import inside
from timesliver.errors import NotApplicableError, check_choice
from timesliver.explainers.base import Case, Explainer, Scores
from timesliver.explainers.model import Inputs
from timesliver.series import equal_slices

__all__ = ["AttentionTracing", "GradSAM", "mean_of_covering"]

_NUMBERS = 1 << 23  # of all attention weights that are looked at together


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


class _OfAttention(Explainer):
    """Score the tokens of a transformer, and give each time point the mean of its tokens."""

    has_sign: ClassVar[bool] = False
    has_channels: ClassVar[bool] = False

    @abstractmethod
    def _token_scores(
        self, network: TransformerNetwork, batch: SeriesBatch, targets: Tensor
    ) -> Tensor:
        """Return the score of each token, shape (B, T), 0 or more and 0 past the end of a case."""

    def _check_model(self) -> None:
        super()._check_model()
        if not isinstance(self.model.network, TransformerNetwork):
            raise NotApplicableError(
                f"{self.name} reads the attention of a Transformer, but the model is a "
                f"{self.model.kind}; explain timesliver.backbones.Transformer, or use a method "
                f"for any model, such as lime"
            )

    def _scores(self, inputs: Inputs, cases: list[Case]) -> Scores:
        network: Any = self.model.network
        L = inputs.values.shape[2]
        targets = torch.tensor([case.target for case in cases], device=inputs.values.device)
        T = int(network.n_tokens(torch.tensor(L)))
        per_case = len(network.layers) * network.n_heads * T * T
        most = min(self.batch_size, max(1, _NUMBERS // per_case))
        scores = []
        for part in equal_slices(len(cases), 1, most):
            batch = self.model.batch(inputs[part])
            tokens = self._token_scores(network, batch, targets[part]).detach().double()
            self.model.n_rows += len(batch)
            n_tokens = network.n_tokens(batch.lengths)
            time = mean_of_covering(tokens[:, None], n_tokens, network.span, network.stride, L)
            largest = time.amax(2, keepdim=True)
            scores.append((time / torch.where(largest > 0, largest, 1.0))[:, 0])
        return Scores(torch.cat(scores))


class AttentionTracing(_OfAttention):
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
    def _token_scores(
        self,
        network: TransformerNetwork,
        batch: SeriesBatch,
        targets: Tensor,  # noqa: ARG002
    ) -> Tensor:
        _, attention = network(batch, return_attention=True)
        layers = [weights.double().mean(1) for weights in attention]  # (B, T, T) each
        n_tokens = network.n_tokens(batch.lengths)
        # Tokens as queries all count alike; those of the padding do not ask.
        queries = (inside(n_tokens, layers[0].shape[1]) / n_tokens[:, None, None]).double()
        if self.mode == "rollout":
            for weights in reversed(layers):
                queries = (queries @ weights + queries) / 2
            return queries[:, 0]
        received = [(queries @ weights)[:, 0] for weights in layers]
        return received[-1] if self.mode == "last" else torch.stack(received).mean(0)


class GradSAM(_OfAttention):
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

    def _token_scores(
        self, network: TransformerNetwork, batch: SeriesBatch, targets: Tensor
    ) -> Tensor:
        values = batch.values.detach().clone().requires_grad_()  # the weights may be frozen
        logits, attention = network(SeriesBatch(values, batch.lengths), return_attention=True)
        wanted = logits.gather(1, targets[:, None]).sum()
        gradients = torch.autograd.grad(wanted, attention)
        n_tokens = network.n_tokens(batch.lengths)
        tokens = torch.zeros(len(batch), attention[0].shape[3], device=values.device).double()
        for weights, gradient in zip(attention, gradients, strict=True):
            A, g = weights.detach().double(), gradient.double()
            if self.center:
                g = g - (A * g).sum(3, keepdim=True)
            tokens += (A * g.clamp(min=0)).sum((1, 2))
        return tokens / (len(attention) * network.n_heads * n_tokens[:, None])
