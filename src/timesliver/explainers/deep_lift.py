"""DeepLIFT, against simple baselines or against training series (DeepLIFTSHAP)."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor, nn

from timesliver.backbones import BackboneNetwork
from timesliver.errors import NotApplicableError
from timesliver.explainers.base import Case, Scores
from timesliver.explainers.baselines import AgainstBaselines, AgainstTraining, ReferenceExplainer
from timesliver.explainers.inputs import captum_methods, repeated
from timesliver.explainers.model import Model
from timesliver.explainers.rescale import check_apart, rescaling
from timesliver.network.batch import Batch

__all__ = ["DeepLIFT", "DeepLIFTSHAP"]


class _DeepLIFTExplainer(ReferenceExplainer):
    """Multipliers between series and references, by captum ("paper") or by `rescaling`."""

    cases_at_once = 8  # each with up to 20 references

    def _check_model(self) -> None:
        super()._check_model()
        if any(isinstance(module, nn.RNNBase) for module in self.model.network.modules()):
            raise NotApplicableError(
                f"{self.name} has no rule for the gates of recurrent layers, which "
                f"{self.model.kind} has; use integrated_gradients or gradient_shap"
            )

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        by_case = [self._references(inputs[i : i + 1], case.seed) for i, case in enumerate(cases)]
        device = inputs.values.device
        counts = torch.tensor([len(of_case.weights) for of_case in by_case], device=device)
        owner = torch.arange(len(cases), device=device).repeat_interleave(counts)  # (pairs,)
        targets = torch.tensor([case.target for case in cases], device=device)
        references = torch.cat([of_case.series for of_case in by_case])  # (pairs, v, L)
        weights = torch.cat([of_case.weights for of_case in by_case])  # (pairs,)
        scores, bias = torch.zeros_like(inputs.values), torch.zeros(len(cases), device=device)
        paper = self.setting == "paper"  # captum's pooling looks at the first pair of a batch
        for part in torch.arange(len(owner)).split(1 if paper else max(1, self.batch_size // 2)):
            of = owner[part]
            lift = self._by_captum if paper else self._by_rescaling
            shares, logits = lift(inputs[of], references[part], targets[of])
            scores.index_add_(0, of, weights[part, None, None] * shares)
            bias.index_add_(0, of, weights[part] * logits)
        return Scores(scores, bias)

    def _by_rescaling(
        self, inputs: Batch, references: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the shares of pairs, (n, v, L), and the logits of the references, (n,)."""
        network, n = self.model.network, len(references)
        values = inputs.values.detach().requires_grad_()
        with rescaling(network, 2 * n) as of_references:
            both = inputs[torch.arange(n).repeat(2)]
            logits = self.model.logits(both, torch.cat([values, references]))
        if not isinstance(network, BackboneNetwork):
            check_apart(of_references, values)
        chosen = logits.gather(1, targets.repeat(2)[:, None])[:, 0]  # (2 n,)
        (multipliers,) = torch.autograd.grad(chosen[:n].sum(), values)
        return multipliers * (inputs.values - references), chosen[n:].detach()

    def _by_captum(
        self, inputs: Batch, references: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the same for one pair."""
        module = _CaptumModule(self.model, inputs)
        target = int(targets)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Setting forward, backward hooks")
            values = inputs.values.detach().clone().requires_grad_()
            shares = captum_methods().DeepLift(module).attribute(values, references, target=target)
        return shares.detach(), module.logits[1:, target].detach()


class _CaptumModule(nn.Module):
    """The network of a model as captum wants it: a module from values to logits."""

    logits: Tensor

    def __init__(self, model: Model, inputs: Batch) -> None:
        super().__init__()
        self.network = model.network  # where captum looks for activations
        self._model, self._inputs = model, inputs

    def forward(self, values: Tensor) -> Tensor:
        """Return the logits of any number of changed versions of the case."""
        self.logits = self._model.logits(repeated(self._inputs, len(values)), values)
        return self.logits


class DeepLIFT(_DeepLIFTExplainer, AgainstBaselines):
    """DeepLIFT (Shrikumar, Greenside and Kundaje, 2017) with the rescale rule.

    The change of the logit between a baseline and the series is handed back through the layers, in
    proportion to what each input changed. The `bias` is the logit of the baseline, so in the
    fair setting ``net.sum(axis=1) + bias`` is the logit.

    "paper": captum's own, with a zero baseline. It loses shares at max pooling: where it
    directly follows an activation, and where windows overlap. "fair": the mean over `baselines`,
    with a rule for max pooling that loses none (see `rescale`). The rule knows activations and
    `nn.MaxPool1d`; other layers that are not linear, such as the attention and the layer
    normalisation of a transformer, keep their gradient, and the shares then do not add up.
    Recurrent layers are refused. A pair of rows is passed even if `batch_size` is 1.

    A module must keep the cases in the first axis of whatever its activations are given, so that
    the rows of a series and of its baseline can be told apart. The fair setting refuses others.

    Parameters
    ----------
    model, baselines, **shared
        See `AgainstBaselines`.
    """

    name = "deep_lift"


class DeepLIFTSHAP(_DeepLIFTExplainer, AgainstTraining):
    """DeepLIFTSHAP (Lundberg and Lee, 2017): the mean of DeepLIFT over training series.

    As `DeepLIFT`, but the references are training series: 5 of them in the paper's setting (zeros
    without `fit`), 20 in the fair one, which needs `fit`. The `bias` is their mean logit.

    Parameters
    ----------
    model, **shared
        See `Explainer`.
    """

    name = "deep_lift_shap"
