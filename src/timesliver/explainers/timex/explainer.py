"""TimeX++, which trains a network to say what a model needs of a series."""

from __future__ import annotations

from typing import Any, ClassVar

import torch

from timesliver.backbones.layers import seeded
from timesliver.errors import (
    InvalidInputError,
    NotApplicableError,
    check_choice,
    check_count,
    check_number,
)
from timesliver.explainers.base import Case, Explainer, Scores
from timesliver.explainers.timex.networks import TimeXNetwork
from timesliver.explainers.timex.training import SCHEDULES, Check, check, split, train
from timesliver.network.batch import Batch
from timesliver.training import Record

__all__ = ["TimeXPlusPlus"]


class TimeXPlusPlus(Explainer):
    """How probably a trained network keeps each entry of a series.

    From the entries kept, a generator makes a new series to which the model, which stays as it
    is, should give the same class. The scores do not depend on the class asked for.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain; it must have gradients.
    schedule : {"reduced", "full", "quick"}
        "reduced" trains on up to 2,000 cases for 20 epochs, some minutes for 200 time points, and
        on fewer cases for as many steps; "full" on all cases but those held out for 50 epochs, as
        the method's authors did; "quick" on 200 cases for 2 epochs, which only shows that
        everything works. A fifth of the cases, up to 500, are held out to choose the epoch by.
    encoder_layers : int or None
        Layers of the encoder; None is 1 for "quick" and else 2.
    ff_width : int
        Width of their feed-forward networks.
    dropout : float
        Share of the encoder's numbers set to 0 in training.
    connect : {"frobenius", "l1_mean"}
        How jumps of the scores are punished. "frobenius" is the method's own loss, which is very
        weak; "l1_mean" is the mean absolute jump.
    max_tokens : int
        Longer series are averaged over equal stretches, with one score each.
    **shared
        Parameters of `Explainer`. ``batch_size`` does not change the batches of the training,
        which are of 64 cases.

    Attributes
    ----------
    history_ : list of dict
        A record of each epoch.
    check_ : Check
        Loss, agreement and mean score on the cases that were held out of the training; see
        `diagnose`.

    References
    ----------
    Liu et al., "TimeX++: Learning Time-Series Explanations with Information Bottleneck",
    ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> X = np.random.default_rng(0).normal(size=(20, 2, 16))
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(32, 3)).eval()
    >>> explainer = TimeXPlusPlus(model, schedule="quick").fit(X)
    >>> explainer.explain(X).positive_by_channel.shape
    (20, 2, 16)
    """

    name = "timex_plus_plus"
    has_sign: ClassVar[bool] = False
    needs_fit: ClassVar[bool] = True
    needs_gradients: ClassVar[bool] = True

    history_: list[Record]
    check_: Check
    _network: TimeXNetwork
    _length: int

    def __init__(
        self,
        model: Any,
        *,
        schedule: str = "reduced",
        encoder_layers: int | None = None,
        ff_width: int = 64,
        dropout: float = 0.25,
        connect: str = "frobenius",
        max_tokens: int = 200,
        **shared: Any,
    ) -> None:
        super().__init__(model, **shared)
        check_choice("schedule", schedule, tuple(SCHEDULES))
        check_choice("connect", connect, ("frobenius", "l1_mean"))
        check_count("ff_width", ff_width, 1)
        check_count("max_tokens", max_tokens, 1)
        if encoder_layers is not None:
            check_count("encoder_layers", encoder_layers, 1)
        check_number("dropout", dropout, least=0, below=1)
        self.schedule, self.connect = SCHEDULES[schedule], connect
        self.encoder_layers = encoder_layers or self.schedule.n_layers
        self.ff_width, self.dropout, self.max_tokens = ff_width, dropout, max_tokens

    def _fit(self, inputs: Batch, y: Any) -> None:
        if len(inputs) < 2:
            raise InvalidInputError(
                f"{self.name} learns how training series differ, so it needs at least 2, got "
                f"{len(inputs)}"
            )
        if (inputs.lengths != inputs.lengths[0]).any():
            raise NotApplicableError(
                f"{self.name} needs series of equal length, got lengths from "
                f"{int(inputs.lengths.min())} to {int(inputs.lengths.max())}; use a method that "
                f"explains each case by itself, such as integrated_gradients"
            )
        if y is None:
            y = self.model.infer(inputs).argmax(1).cpu().numpy()
        device = inputs.values.device
        cases, validation = (
            inputs[torch.from_numpy(chosen).to(device)]
            for chosen in split(y, self.schedule, self.seed)
        )
        with seeded(self.seed):
            network = TimeXNetwork(
                cases.values.mean(0),
                cases.values.std(0),
                self.encoder_layers,
                self.ff_width,
                self.dropout,
                self.max_tokens,
            ).to(device)
        self.history_ = train(
            network,
            self.model,
            cases,
            validation,
            self.schedule,
            self.connect,
            self.seed,
            bool(self.verbose),
        )
        self._network, self._length = network, int(inputs.lengths[0])
        self.check_ = self._check(validation)

    @torch.no_grad()
    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:  # noqa: ARG002
        self._check_series(inputs)
        return Scores(self._network.masks(inputs.values))

    def diagnose(self, X: Any) -> Check:
        """Measure on any series whether the training went well.

        Parameters
        ----------
        X : series of any accepted form
            Best some that were not given to `fit`.

        Returns
        -------
        Check
            With ``loss``, ``agreement`` (at least 0.9 after a good training) and
            ``mean_probability`` (between 0.02 and 0.8).
        """
        self._check_fitted()
        inputs = self.model.read(X)
        self._check_series(inputs)
        return self._check(inputs)

    def _check(self, inputs: Batch) -> Check:
        return check(self._network, self.model, inputs, self.connect, self.seed)

    def _check_series(self, inputs: Batch) -> None:
        v, L = self._network.mean.shape
        same_length = bool((inputs.lengths == self._length).all())
        if inputs.values.shape[1:] != (v, L) or not same_length:
            raise NotApplicableError(
                f"{self.name} was fitted on series of {v} channels and {self._length} time "
                f"points and explains only such; fit another one for series of another size"
            )
