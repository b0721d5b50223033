"""Models that explain themselves: TimeSliver in its two forms, and COLOR."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional as F

from timesliver.attribution import Attribution, options_of
from timesliver.backbones import COLORNetwork
from timesliver.backbones.layers import inside
from timesliver.classifier import TimeSliverClassifier
from timesliver.errors import NotApplicableError, check_choice
from timesliver.explainers.base import AnyExplainer
from timesliver.explainers.windows import WindowExplainer
from timesliver.network.batch import Batch
from timesliver.series import as_series

__all__ = ["AdditiveShares", "ColorImportance", "TimeSliverScores"]

_FLAT = 1e-5  # a spread this small beside the largest value is rounding


class _TimeSliverExplainer(AnyExplainer):
    """Ask a TimeSliver classifier to explain itself: one forward pass, nothing else."""

    @abstractmethod
    def _options(self) -> dict[str, Any]:
        """Return what to tell `TimeSliverClassifier.explain`."""

    def _check_model(self) -> None:
        super()._check_model()
        if not isinstance(self.model.estimator, TimeSliverClassifier):
            raise NotApplicableError(
                f"{self.name} is how a TimeSliverClassifier explains itself, but the model is a "
                f"{self.model.kind}; use a method for any model, such as integrated_gradients or "
                f"lime"
            )

    def explain(self, X: Any, target: ArrayLike | None = None) -> Attribution:
        """Say which moments spoke for a class and which against it; see `AnyExplainer`."""
        estimator: Any = self.model.estimator
        self.model.check_mode()
        series = as_series(X)
        n = len(series)
        wanted = self._targets(target, n)
        labels = None if wanted is None else self.model.classes[wanted]
        start = time.perf_counter()
        explained: Attribution = estimator.explain(series, labels, self.name, **self._options())
        self.model.n_rows += n
        return replace(
            explained,
            seconds=np.full(n, (time.perf_counter() - start) / n),
            forward_passes=np.ones(n),
        )


class TimeSliverScores(_TimeSliverExplainer):
    """The paper's scores of a TimeSliver classifier.

    Parameters
    ----------
    max_scaling : bool
        Whether each product of a symbol and a segment is divided by its largest over the segments.
    centred : bool
        Whether the weights are taken minus their mean over classes.
    """

    name = "timesliver"

    def __init__(
        self, model: Any, *, max_scaling: bool = True, centred: bool = False, **shared: Any
    ) -> None:
        self.max_scaling, self.centred = max_scaling, centred
        super().__init__(model, **shared)

    def _options(self) -> dict[str, Any]:
        return {"max_scaling": self.max_scaling, "centred": self.centred}


class AdditiveShares(_TimeSliverExplainer):
    """Shares of a TimeSliver classifier's logit, which add up to it.

    Parameters
    ----------
    centred : bool
        Whether the logit minus its mean over classes is explained.
    background : {"training", "series", None}
        What counts as the base: what the average moment of the training series says, what the
        middle moment of the series itself says, or nothing but the bias.
    smoothing : int or "auto"
        Over how many points shares are evened out.
    """

    name = "additive"

    def __init__(
        self,
        model: Any,
        *,
        centred: bool = False,
        background: str | None = "training",
        smoothing: int | str = "auto",
        **shared: Any,
    ) -> None:
        self.centred, self.background, self.smoothing = centred, background, smoothing
        options_of(self.name, self._options())
        super().__init__(model, **shared)

    def _options(self) -> dict[str, Any]:
        return {
            "centred": self.centred,
            "background": self.background,
            "smoothing": self.smoothing,
        }


class ColorImportance(WindowExplainer):
    """COLOR's importances: how much P matters, times which segments make it.

    Each product of a symbol's count D and a latent column Q is scaled to 0..1 over the segments
    of the case and weighted by the gradient of P. A time point gets the mean of the segments that
    cover it; COLOR itself adds them up, by which the edges lose. The scores of a channel are those
    of its symbols, or of its values where the network sees these.

    Parameters
    ----------
    objective : {"logit", "loss"}
        What P should matter for: the logit of the class, or the cross-entropy with the class as
        the label, as COLOR has it. (It took the true label; give it as `target` for that.)
    """

    name = "color"
    has_sign: ClassVar[bool] = False

    def __init__(self, model: Any, *, objective: str = "logit", **shared: Any) -> None:
        check_choice("objective", objective, ("logit", "loss"))
        self.objective = objective
        super().__init__(model, **shared)

    def _check_model(self) -> None:
        super()._check_model()
        if not isinstance(self.model.network, COLORNetwork):
            raise NotApplicableError(
                f"color is how COLOR explains itself, but the model is a {self.model.kind}; "
                f"explain timesliver.backbones.COLOR, or use a method for any model, such as lime"
            )

    def _numbers_per_case(self, n_timepoints: int) -> int:
        return 2 * n_timepoints * int(self.model.network.n_rows)

    def _window_scores(self, batch: Batch, targets: Tensor) -> tuple[Tensor, Tensor]:
        network = self.model.network
        with torch.no_grad():
            D, Q = network.encode(batch)  # (B, kappa, A), (B, kappa, q)
            P = D.transpose(1, 2) @ Q
        P.requires_grad_()
        logits = network.classify(P)
        if self.objective == "logit":
            matters = logits.gather(1, targets[:, None]).sum()
        else:
            matters = F.cross_entropy(logits, targets, reduction="sum")
        G = torch.autograd.grad(matters, P)[0].double().abs()  # (B, A, q)
        G = G / (G.amax((1, 2), keepdim=True) + 1e-18)
        n_segments = network.n_segments(batch.lengths)
        within = inside(n_segments, D.shape[1]).transpose(1, 2).bool()
        D, Q = D.double().abs(), Q.double().abs()
        by_row = torch.zeros_like(D)
        for j in range(Q.shape[2]):
            product = D * Q[:, :, j, None]  # (B, kappa, A)
            least = product.masked_fill(~within, torch.inf).amin(1, keepdim=True)
            most = product.masked_fill(~within, 0.0).amax(1, keepdim=True)
            spread = torch.where(most - least > _FLAT * most, most - least, torch.inf)
            by_row += (product - least) / spread * G[:, None, :, j]
        by_channel = (by_row * within).unflatten(2, (network.n_channels, -1)).sum(3)
        return by_channel.transpose(1, 2), n_segments
