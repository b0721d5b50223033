"""What gradient methods compare a series with: simple baselines, or rows of the training set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from timesliver.errors import InvalidParameterError, check_choice
from timesliver.explainers.base import Explainer
from timesliver.explainers.segments import default_window
from timesliver.network.batch import Batch
from timesliver.sampling import rank_in_class

__all__ = ["AgainstBaselines", "AgainstTraining", "ReferenceExplainer", "References"]

_BASELINES = ("zero", "mean", "noise", "blur")
_DRAWS = 5  # noise series of which each case gets the mean explanation
_REACH = 6  # deviations after which a Gaussian is cut
_N_TRAINING = {"fair": 20, "paper": 5}  # of the training set


class References(NamedTuple):
    """Series that a case is compared with, (n, v, L), and their weights, (n,), that sum to 1."""

    series: Tensor
    weights: Tensor


class ReferenceExplainer(Explainer):
    """An explainer by gradients between a series and others that it is compared with."""

    has_settings: ClassVar[bool] = True
    needs_gradients: ClassVar[bool] = True

    @abstractmethod
    def _references(self, inputs: Batch, seed: int) -> References:
        """Return what one case is compared with."""


class AgainstBaselines(ReferenceExplainer):
    """Compares with simple series; the explanation is the mean over them.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain.
    baselines : sequence of {"zero", "mean", "noise", "blur"}
        For the fair setting; "paper" always takes "zero". "zero" is the training mean of a channel
        for models that standardise. "mean" is the training mean at each time point; it needs `fit`
        and is left out without. "noise" is standard normal, five draws. "blur" is the case itself,
        smoothed by a Gaussian as wide as a segment of LIME. The last two make the methods find
        less, so they are not the default.
    **shared
        Those of `Explainer`.
    """

    def __init__(
        self, model: Any, *, baselines: Sequence[str] = ("zero", "mean"), **shared: Any
    ) -> None:
        if isinstance(baselines, str) or not baselines:
            raise InvalidParameterError(
                f"baselines must list one or more of {', '.join(_BASELINES)}; got {baselines!r}"
            )
        for kind in baselines:
            check_choice("each of baselines", kind, _BASELINES)
        self.baselines = tuple(dict.fromkeys(baselines))
        self._mean: Tensor | None = None
        super().__init__(model, **shared)

    def _fit(self, inputs: Batch, y: Any) -> None:  # noqa: ARG002
        seen = inputs.observed.sum(0).clamp(min=1)
        self._mean = (inputs.values * inputs.observed).sum(0) / seen  # (v, L)

    def _references(self, inputs: Batch, seed: int) -> References:
        zero = torch.zeros_like(inputs.values)
        series: list[Tensor] = []
        for kind in self.baselines if self.setting == "fair" else ("zero",):
            if kind == "zero":
                series.append(zero)
            elif kind == "noise":
                series.append(_like(_normal((_DRAWS,), inputs, seed), inputs))
            elif kind == "blur":
                series.append(_blurred(inputs))
            elif self._mean is not None:
                series.append(_like(self._mean[None], inputs))
        series = series or [zero]
        weights = [torch.full((len(each),), 1 / len(each)) for each in series]
        return References(torch.cat(series), torch.cat(weights).to(zero) / len(series))


class AgainstTraining(ReferenceExplainer):
    """Compares with series of the training set, of every class alike.

    The fair setting takes 20 of them and needs `fit`. The paper's takes 5, and a series of zeros
    without `fit`.
    """

    needs_fit: ClassVar[bool] = True

    def __init__(self, model: Any, **shared: Any) -> None:
        super().__init__(model, **shared)
        self._fitted = self.setting == "paper"  # zeros serve until `fit`
        self._rows: Tensor | None = None
        self._spread: Tensor | None = None

    def _fit(self, inputs: Batch, y: Any) -> None:
        labels = self.model.infer(inputs).argmax(1).cpu().numpy() if y is None else y
        rows = _balanced(labels, _N_TRAINING[self.setting], self.seed)
        self._rows = inputs.values[torch.from_numpy(rows)]
        seen = inputs.observed.sum((0, 2)).clamp(min=1)
        mean = (inputs.values * inputs.observed).sum((0, 2)) / seen  # (v,)
        apart = (inputs.values - mean[:, None]) * inputs.observed
        self._spread = (apart.square().sum((0, 2)) / seen).sqrt()  # (v,)

    def _references(self, inputs: Batch, seed: int) -> References:  # noqa: ARG002
        rows = torch.zeros_like(inputs.values) if self._rows is None else self._rows
        weights = torch.full((len(rows),), 1 / len(rows)).to(rows)
        return References(_like(rows, inputs), weights)

    def _noise(self, n: int, share: float, inputs: Batch, seed: int) -> Tensor:
        """Return n draws, (n, v, L), of that share of the deviation of each channel."""
        assert self._spread is not None
        return _like(_normal((n,), inputs, seed), inputs) * (share * self._spread[:, None])


def _like(series: Tensor, inputs: Batch) -> Tensor:
    """Return series (n, v, any length) as long as one case, 0 where that was not observed."""
    return F.pad(series, (0, inputs.n_timepoints - series.shape[2])) * inputs.observed


def _normal(shape: tuple[int, ...], inputs: Batch, seed: int) -> Tensor:
    """Return draws for one case; how far it was padded does not change them."""
    generator = torch.Generator().manual_seed(seed)
    shape = (*shape, inputs.n_channels, int(inputs.lengths))
    return torch.randn(shape, generator=generator).to(inputs.values)


def _blurred(inputs: Batch) -> Tensor:
    """Return one case, (1, v, L), smoothed over the points that were observed."""
    width = default_window(int(inputs.lengths))
    reach = min(_REACH * width, inputs.n_timepoints - 1)
    away = torch.arange(-reach, reach + 1).to(inputs.values)
    kernel = torch.exp(-away.square() / (2 * width**2))[None, None]
    seen = inputs.observed.to(inputs.values)
    both = torch.cat([inputs.values * seen, seen])  # (2, v, L)
    total, share = F.conv1d(both.flatten(0, 1)[:, None], kernel, padding=reach).chunk(2)
    return (total / share.clamp(min=1e-12))[:, 0] * seen


def _balanced(labels: Any, n: int, seed: int) -> Any:
    """Return the indices of n random cases, as many of each class as there are."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    _, classes = np.unique(labels, return_inverse=True)
    classes = rng.permutation(classes.max() + 1)[classes[order]]  # which class comes first
    return order[np.lexsort((classes, rank_in_class(classes)))[:n]]
