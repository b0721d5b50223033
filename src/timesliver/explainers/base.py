"""What every way to explain shares, from series to an `Attribution`.

`AnyExplainer` is the interface; `Explainer` is for methods that score a few cases at a time.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from timesliver.attribution import Attribution, join
from timesliver.errors import (
    InvalidInputError,
    NotApplicableError,
    NotFittedError,
    check_choice,
    check_count,
)
from timesliver.estimator import target_indices
from timesliver.explainers.inputs import case_seed
from timesliver.explainers.model import Model, as_model
from timesliver.network.batch import Batch
from timesliver.series import PaddedSeries, as_series
from timesliver.training import draw_seed, progress
from timesliver.typing import IntArray

__all__ = ["AnyExplainer", "Case", "Explainer", "Scores"]


class Case(NamedTuple):
    """What a method is told of a case beside its values: class index and seed."""

    target: int
    seed: int


class Scores(NamedTuple):
    """What a method found.

    Attributes
    ----------
    scores : tensor of shape (B, v, L), or (B, L) from methods that do not tell channels apart
        Signed where the method has a sign, else 0 or more.
    bias : tensor of shape (B,) or None
        The part of the logit that no moment accounts for, where the method knows it.
    """

    scores: Tensor
    bias: Tensor | None = None


class AnyExplainer(ABC):
    """A way to say which moments of a series made a model choose a class.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain, see `as_model`.
    setting : {"fair", "paper"}
        "fair" is what the method needs to work well, "paper" the defaults of its library, which
        the paper used. The same where a method has no such choice (``has_settings`` is False).
    random_state : int, numpy generator or None
        Makes the result repeatable. The draws for a case follow from this and its values alone,
        so neither batches nor order change them.
    batch_size : int
        Most series that the model is given at once.
    verbose : int
        1 shows a progress bar even where there is no terminal.
    """

    #: How the registry and `Attribution.method` call it.
    name: ClassVar[str]
    #: Whether it knows evidence against the class.
    has_sign: ClassVar[bool] = True
    #: Whether it tells channels apart.
    has_channels: ClassVar[bool] = True
    #: Whether "fair" and "paper" differ.
    has_settings: ClassVar[bool] = False
    #: Whether `fit` must be called before `explain`.
    needs_fit: ClassVar[bool] = False
    #: Whether it needs the gradient of the logits with respect to the series.
    needs_gradients: ClassVar[bool] = False

    def __init__(
        self,
        model: Any,
        *,
        setting: str = "fair",
        random_state: Any = 0,
        batch_size: int = 64,
        verbose: int = 0,
    ) -> None:
        check_choice("setting", setting, ("fair", "paper"))
        check_count("batch_size", batch_size, 1)
        self.model: Model = as_model(model)
        self.setting, self.batch_size, self.verbose = setting, batch_size, verbose
        self.seed = draw_seed(random_state)
        self._fitted = False
        self._check_model()

    # --- what a method says --------------------------------------------------------------------

    def _check_model(self) -> None:
        """Raise `NotApplicableError` for a model that the method cannot explain."""
        if self.needs_gradients and not self.model.has_gradients:
            raise NotApplicableError(
                f"{self.name} needs the gradient of the logits with respect to the series, which "
                f"a {self.model.kind} does not have; explain a backbone such as CNN or a torch "
                f"module, or use a method that only asks the model: lime, kernel_shap"
            )

    def _fit(self, inputs: Batch, y: Any) -> None:  # noqa: B027
        """Learn from training series."""

    # --- what everyone can call ----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn what the method needs of training series: baselines, or a network of its own.

        Parameters
        ----------
        X : series of any accepted form
            Training cases, as the model was given them.
        y : array of shape (n_cases,) or None
            Their labels, by which some methods choose a balanced sample; None takes the
            predicted classes.
        """
        inputs, labels = self.model.read(X), None if y is None else np.asarray(y)
        if labels is not None and labels.shape != (len(inputs),):
            raise InvalidInputError(
                f"y must have one label for each of the {len(inputs)} cases, got shape "
                f"{labels.shape}"
            )
        self._fit(inputs, labels)
        self._fitted = True
        return self

    @abstractmethod
    def explain(self, X: Any, target: ArrayLike | None = None) -> Attribution:
        """Say which moments spoke for a class and which against it.

        Parameters
        ----------
        X : series of any accepted form
            Any number of cases, in bounded memory.
        target : None, a label, or one label per case
            The class to explain; None is the predicted one.
        """

    def _check_fitted(self) -> None:
        if self.needs_fit and not self._fitted:
            raise NotFittedError(
                f"{self.name} learns from training series; call fit(X_train) before explain"
            )

    def _targets(self, target: ArrayLike | None, n_cases: int) -> IntArray | None:
        """Return one class index per case, or None for the predicted classes."""
        wanted = target_indices(target, self.model.classes, n_cases)
        if isinstance(wanted, str):
            raise InvalidInputError(
                "target='all' is for TimeSliverClassifier.explain; ask for one class at a time"
            )
        return wanted


class Explainer(AnyExplainer):
    """A way to explain that scores a few cases at a time; see `AnyExplainer`."""

    #: Cases scored together: a step of the progress bar, and the unit of the costs, which are
    #: means over them. 1 for methods that go from case to case anyway.
    cases_at_once: ClassVar[int] = 32

    @abstractmethod
    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        """Explain a few cases; the model may be given `batch_size` rows at once."""

    def explain(self, X: Any, target: ArrayLike | None = None) -> Attribution:
        """Say which moments spoke for a class and which against it; see `AnyExplainer`."""
        self._check_fitted()
        series = as_series(X)
        start = time.perf_counter()
        inputs = self.model.read(series)
        logits = self.model.infer(inputs)
        if not torch.isfinite(logits).all():
            raise InvalidInputError(
                "the model gave logits that are no numbers; look for extreme values in the series"
            )
        wanted = self._targets(target, len(inputs))
        chosen = logits.argmax(1).cpu().numpy() if wanted is None else wanted
        shared = (time.perf_counter() - start) / len(inputs)
        step = self.cases_at_once
        parts = [
            self._explain_part(series[cases], inputs[cases], logits[cases], chosen[cases], shared)
            for cases in progress(
                [slice(i, i + step) for i in range(0, len(inputs), step)],
                f"Explaining by {self.name}",
                bool(self.verbose),
            )
        ]
        return join(parts)

    def _explain_part(
        self, series: PaddedSeries, inputs: Batch, logits: Tensor, targets: Any, seconds: float
    ) -> Attribution:
        start, rows = time.perf_counter(), self.model.n_rows
        cases = [Case(int(t), case_seed(inputs, i, self.seed)) for i, t in enumerate(targets)]
        with torch.enable_grad():
            given, bias = self._scores(inputs, cases)
        n, v, L = series.values.shape
        if given.ndim == 2:
            given = (given / v)[:, None].expand(-1, v, -1)
        scores = given.detach()[:, :, :L].cpu().numpy().astype(np.float32)
        if not np.isfinite(scores).all():
            raise InvalidInputError(
                f"{self.name} gave scores that are no numbers; look for extreme values in the "
                f"series and for a model whose logits overflow"
            )
        scores = scores * (np.arange(L) < series.lengths[:, None, None])
        logits = logits.cpu()
        passes = 1 + (self.model.n_rows - rows) / n
        seconds += (time.perf_counter() - start) / n
        return Attribution(
            positive_by_channel=np.maximum(scores, 0),
            negative_by_channel=np.maximum(-scores, 0),
            logit=logits.numpy()[np.arange(n), targets],
            base=np.zeros(n, np.float32) if bias is None else bias.detach().cpu().numpy(),
            target=np.asarray(targets, dtype=np.int64),
            classes=self.model.classes,
            method=self.name,
            series=series.with_gaps.astype(np.float32),
            probabilities=torch.softmax(logits.double(), 1).numpy(),
            seconds=np.full(n, seconds),
            forward_passes=np.full(n, passes),
            has_sign=self.has_sign,
            has_channels=self.has_channels,
        )
