"""What all classifiers of series share: input, labels, training, prediction, files.

A subclass says how series become a batch and how its network is made; the rest is here.
"""

from __future__ import annotations

import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.exceptions import NotFittedError as ScikitLearnNotFittedError
from sklearn.utils.validation import validate_data

from timesliver.errors import InvalidInputError, NotFittedError
from timesliver.estimator.inputs import case_weights, class_indices, is_table, read_labels
from timesliver.estimator.modelfile import read_model, write_model
from timesliver.network import Batch
from timesliver.series import PaddedSeries, as_series, equal_slices
from timesliver.training import (
    Cases,
    Descent,
    Progress,
    Record,
    Ridge,
    Training,
    draw_seed,
    pick_device,
    progress,
    solve,
    thread_limit,
)
from timesliver.typing import FloatArray, IntArray, JSONDict

__all__ = ["SeriesClassifier", "Trained"]

T = TypeVar("T")

# Numbers of the input that are prepared at once.
_CHUNK = 1 << 21


class _NotFittedError(NotFittedError, ScikitLearnNotFittedError):
    """Ours, and the one that scikit-learn's tools look for."""


class Trained(NamedTuple):
    """The best of some networks: how it was made, the network, and its training."""

    choice: Any
    network: Any
    training: Training


class SeriesClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A classifier of series with a torch network inside.

    Subclasses store `class_weight`, `device`, `n_jobs`, `random_state` and `verbose` next to
    their own parameters.
    """

    class_weight: Any
    device: str
    n_jobs: int | None
    random_state: Any
    verbose: int

    classes_: NDArray[Any]
    n_features_in_: int
    n_channels_: int
    n_timepoints_: int
    history_: list[Record]
    n_iter_: int
    network_: Any

    # --- what a subclass says -----------------------------------------------------------------

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise if a parameter makes no sense."""

    @abstractmethod
    def _learn(self, cases: Cases, validation: Cases | None, seed: int) -> None:
        """Learn from series: set `network_`, `history_` and `n_iter_`."""

    @abstractmethod
    def _batch(self, series: PaddedSeries) -> Batch:
        """Lay out series for the network."""

    @abstractmethod
    def _state(self) -> tuple[dict[str, NDArray[Any]], JSONDict]:
        """Return what a file needs beside weights and parameters: arrays, and a description."""

    @abstractmethod
    def _restore(self, arrays: dict[str, NDArray[Any]], description: JSONDict) -> Any:
        """Take what `_state` returned, and return the network it describes."""

    # --- fit ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, validation_data: Any = None) -> Self:
        """Learn from labelled series.

        Parameters
        ----------
        X : array, list of arrays, data frame or tensor
            ``(n_cases, n_channels, n_timepoints)``; two dimensions mean one channel; a list holds
            one ``(n_channels, n_timepoints_i)`` array per case. NaN is a missing value.
        y : array of shape (n_cases,)
            Class labels of any type.
        sample_weight : array of shape (n_cases,) or None
            How much each case counts.
        validation_data : (X, y) or None
            Cases to choose the best epoch by; None sets some of X aside where that is needed.

        Returns
        -------
        self
        """
        self._check_parameters()
        if hasattr(self, "network_"):
            del self.network_  # a fit that fails leaves no half-old model
        series = self._read(X, fitting=True)
        self.classes_, codes = read_labels(y, len(series))
        weight = case_weights(codes, self.classes_, sample_weight, self.class_weight)
        used = weight > 0
        series, codes, weight = series[used], codes[used], weight[used]
        if len(np.unique(codes)) < 2:
            raise InvalidInputError(
                f"{type(self).__name__} needs cases of at least two classes, got one class only: "
                f"{self.classes_[codes[0]]}"
            )
        with thread_limit(self.n_jobs):
            self._learn(
                _cases(series, codes, weight),
                None if validation_data is None else self._read_validation(validation_data),
                draw_seed(self.random_state),
            )
        return self

    def _best(
        self,
        candidates: Iterable[tuple[Any, Any]],
        cases: Cases,
        validation: Cases | None,
        how: Descent | Ridge,
        seed: int,
    ) -> Trained:
        """Train networks, each given with how it was made, and return the best."""
        device = pick_device(self.device)
        cases, validation = cases.to(device), validation and validation.to(device)
        best: Trained | None = None
        for choice, network in candidates:
            watchers = [Progress()] if self.verbose and isinstance(how, Descent) else []
            training = solve(network.to(device), cases, validation, how, seed, watchers)
            if best is None or training.best_score > best.training.best_score:
                best = Trained(choice, network.eval(), training)
            if training.interrupted:
                warnings.warn(
                    f"training was interrupted after {len(training.history)} epochs; the best "
                    f"model so far was kept",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                break
        assert best is not None
        return best

    # --- predict ------------------------------------------------------------------------------

    def logits(self, X: Any) -> FloatArray:
        """Return the logit of every class: (n_cases, n_classes)."""
        self._check_fitted()
        parts = self._by_chunks(self._read(X), self._infer)
        logits: FloatArray = np.concatenate(parts)
        return logits

    def _infer(self, part: PaddedSeries, cases: slice) -> FloatArray:  # noqa: ARG002
        batch = self._batch(part).to(next(self.network_.parameters()).device)
        logits: FloatArray = self.network_.infer(batch).cpu().numpy()
        return logits

    def decision_function(self, X: Any) -> FloatArray:
        """Return the logits, (n_cases, n_classes); for two classes their difference, (n_cases,).

        The case of two classes follows scikit-learn, whose metrics and calibration rely on it;
        `logits` has one column per class always.
        """
        logits = self.logits(X)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class, in the order of ``classes_``."""
        probabilities: FloatArray = softmax(self.logits(X).astype(np.float64), axis=1)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of every case."""
        indices = self.logits(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[indices]
        return labels

    def _by_chunks(
        self,
        series: PaddedSeries,
        compute: Callable[[PaddedSeries, slice], T],
        description: str = "Predicting",
        numbers_per_case: int = 0,
    ) -> list[T]:
        """Apply a function to a bounded number of cases, and where they stand, at a time."""
        numbers = max(numbers_per_case, series.n_channels * series.n_timepoints)
        chunks = equal_slices(len(series), numbers, _CHUNK)
        with thread_limit(self.n_jobs):
            return [
                compute(series[chunk], chunk)
                for chunk in progress(chunks, description, bool(self.verbose))
            ]

    # --- input and files ----------------------------------------------------------------------

    def _check_fitted(self) -> None:
        if not hasattr(self, "network_"):
            raise _NotFittedError(
                f"this {type(self).__name__} is not fitted yet; call fit(X, y) first, or load a "
                f"saved model with {type(self).__name__}.load(path)"
            )

    def _read(self, X: Any, fitting: bool = False) -> PaddedSeries:
        """Read series; after fit, check that they are of the kind that was learned from."""
        series = as_series(X)
        table = is_table(X, series)
        if fitting:
            self.n_channels_, self.n_timepoints_ = series.n_channels, series.n_timepoints
            self._table = table
        elif series.n_channels != self.n_channels_:
            raise InvalidInputError(
                f"the series have {series.n_channels} channels, but the model was fitted on "
                f"{self.n_channels_}; give the same channels in the same order "
                f"(shape given: {series.values.shape})"
            )
        elif table and self._table and series.n_timepoints != self.n_features_in_:
            raise InvalidInputError(
                f"X has {series.n_timepoints} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input: a table needs the columns it had in "
                f"fit; give series of another length with three axes, (n_cases, 1, n_timepoints)"
            )
        if table:
            validate_data(self, X, reset=fitting, skip_check_array=True, ensure_2d=self._table)
        elif fitting:
            self.n_features_in_ = series.n_channels
        return series

    def _read_validation(self, data: Any) -> Cases:
        """Read the validation cases of a user."""
        try:
            X, y = data
        except (TypeError, ValueError) as error:
            raise InvalidInputError(
                "validation_data must be a pair (X, y) of series and their labels"
            ) from error
        series, labels = self._read(X), np.asarray(y)
        if labels.shape != (len(series),):
            raise InvalidInputError(
                f"validation_data has {len(series)} series but labels of shape {labels.shape}; "
                f"give one label per case"
            )
        return _cases(series, class_indices(labels, self.classes_), np.ones(len(series)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to one safetensors file, which holds data only, no code."""
        self._check_fitted()
        write_model(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model that `save` wrote."""
        return read_model(cls, path)


def _cases(series: PaddedSeries, codes: IntArray, weight: FloatArray) -> Cases:
    return Cases(series, torch.from_numpy(codes), torch.from_numpy(weight.astype(np.float32)))
