"""`TimeSliverClassifier`: fit, predict and explain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from itertools import product
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from timesliver import encoders
from timesliver.attribution import Attribution, explain, join, options_of
from timesliver.encoders import Encoder, Shape, choose_encoders
from timesliver.encoders.moved import naming_what_has_moved
from timesliver.errors import InvalidParameterError, check_count, check_number
from timesliver.estimator import SeriesClassifier, Trained, target_indices
from timesliver.io import below
from timesliver.network import Batch, TimeSliverNetwork, View
from timesliver.registry import from_description, to_description
from timesliver.series import PaddedSeries
from timesliver.symbols import from_state
from timesliver.training import Cases
from timesliver.typing import FloatArray, JSONDict

__all__ = ["TimeSliverClassifier"]


class TimeSliverClassifier(SeriesClassifier):
    """Classify time series, and say which moments and channels decided.

    The logit of a class is a base plus a sum of terms over moments and channels, so every
    prediction is exactly explained.

    Parameters
    ----------
    encoder : "auto", str, Encoder or list of Encoder
        What describes every moment, with its symbols and its way of training: the name of an
        encoder or an instance such as ``Segments(sizes=(4, 16))``, whose parameters scikit-learn
        reaches as ``encoder__sizes``. The logits of several are averaged. "auto" is `Kernels`;
        with 1,000 cases or more, `Segments` as well, and what does best on cases held out from
        training is taken: either, or both together.
    class_weight : dict, "balanced" or None
        How much the cases of each class count.
    n_estimators : int
        How many seeds to train with. Their logits are averaged, and so are the explanations,
        exactly.
    random_state : int, numpy generator or None
        Makes the result repeatable; global random states are neither used nor changed.
    n_jobs : int or None
        Number of threads; None leaves torch's setting, -1 takes all cores.
    time_budget : float
        Seconds that "auto" may spend on learning an encoder.
    device : str
        "auto" is a GPU if there is one, else the CPU.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The class labels.
    history_ : list of dict
        One record per epoch, or one in all where weights are found in closed form; ``member``
        counts the trained networks.
    n_iter_ : int
        Number of records.
    n_features_in_ : int
        Second axis of the training data: channels, or time points if it was a table.
    network_ : TimeSliverNetwork
        The trained network.
    encoders_ : list of Encoder
        The encoders, with what depends on the length of the series filled in.
    report_ : list of dict
        What "auto" has tried: encoder, accuracy on how many held-out cases, seconds.
    symbolizers_ : list of lists of Symbolizer
        The fitted symbolizers of each encoder.

    Examples
    --------
    >>> import numpy as np
    >>> from timesliver import Segments
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1, 40))
    >>> y = np.repeat(["flat", "bump"], 30)
    >>> X[30:, 0, 10:20] += 3
    >>> clf = TimeSliverClassifier(Segments(max_epochs=20), random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array(['flat', 'flat'], dtype='<U4')
    >>> why = clf.explain(X[-1:])
    >>> bool(why.net[0, 10:20].mean() > why.net[0, 20:].mean())
    True
    >>> bool(np.allclose(why.base + why.net.sum(axis=1), why.logit, atol=1e-5))
    True
    """

    @naming_what_has_moved
    def __init__(
        self,
        encoder: Any = "auto",
        class_weight: Any = None,
        n_estimators: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        time_budget: float = 300.0,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.encoder = encoder
        self.class_weight = class_weight
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.device = device
        self.verbose = verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters, also of the encoder and its symbols: ``encoder__sizes=(4,)``."""
        try:
            super().set_params(**params)
        except AttributeError as error:
            raise InvalidParameterError(
                f"{', '.join(params)}: what is given by its name, or in a list, has no parameters "
                f"to set; give one instance first, such as Segments(symbols=SAX(5))"
            ) from error
        return self

    # --- fit ----------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        check_count("n_estimators", self.n_estimators, 1)
        check_number("time_budget", self.time_budget, above=0)
        for encoder in self._chosen():
            encoder.check()

    def _chosen(self) -> list[Encoder]:
        """Return the encoders that were asked for; none for "auto"."""
        if isinstance(self.encoder, str) and self.encoder == "auto":
            return []
        several = isinstance(self.encoder, list | tuple)
        given: Sequence[Any] = self.encoder if several else [self.encoder]
        if not len(given):
            raise InvalidParameterError("encoder must name at least one encoder, got none")
        return [encoders.create(one) for one in given]

    def _auto(self, cases: Cases, validation: Cases | None, seed: int) -> list[Encoder]:
        """Return the encoders that do best on cases held out from training."""

        def fit(encoder: Encoder, some: Cases) -> Callable[[Any], FloatArray]:
            trial = TimeSliverClassifier(
                encoder, random_state=seed, device=self.device, verbose=self.verbose
            )
            trial.fit(some.batch, some.y.numpy(), sample_weight=some.weight.numpy())
            return trial.logits

        chosen, self.report_ = choose_encoders(cases, validation, self.time_budget, seed, fit)
        return chosen

    def _learn_input(self, chosen: Sequence[Encoder], cases: Cases, seed: int) -> None:
        """Learn scales and symbols."""
        series = cases.batch
        self.mean_, self.scale_ = series.moments()
        self.encoders_ = [
            one.resolved(series.n_timepoints).chosen(
                cases, len(self.classes_), self.mean_, self.scale_, seed
            )
            for one in chosen
        ]
        self.symbolizers_ = [
            [deepcopy(one).fit(encoder.seen(series)) for one in encoder.symbolizers()]
            for encoder in self.encoders_
        ]

    def _learn(self, cases: Cases, validation: Cases | None, seed: int) -> None:
        self.report_ = []
        chosen = self._chosen() or self._auto(cases, validation, seed)
        self._learn_input(chosen, cases, seed)
        whole = self._batch(cases.batch)
        members: list[Trained] = []
        for view, own_seed in product(range(len(self.encoders_)), _seeds(seed, self.n_estimators)):
            members.append(self._member(view, cases, whole, validation, own_seed))
            if members[-1].training.interrupted:
                break
        self.network_ = TimeSliverNetwork.mean([one.network for one in members]).eval()
        views = [part.view for part in self.network_.parts]
        choices = [one.choice for one in members]
        self._trained_encoders = list(zip(views, choices, strict=True))
        self.history_ = [
            {"member": i, **record}
            for i, one in enumerate(members)
            for record in one.training.history
        ]
        self.n_iter_ = len(self.history_)

    def _member(
        self, view: int, cases: Cases, whole: Batch, validation: Cases | None, seed: int
    ) -> Trained:
        """Train one network, with one encoder and one seed."""
        encoder = self.encoders_[view]
        how, train = encoder.solver(), cases
        if validation is None:
            train, validation = cases.split(how.validation_fraction, seed)
        series, of_case = encoder.augmented(train.batch, self.mean_)
        batch = whole if series is cases.batch else self._batch(series)
        can_choose = validation is not None
        candidates = self._networks(view, encoder, seed, can_choose, batch.views[view])
        best = self._best(
            candidates,
            train[torch.from_numpy(of_case)].of(batch),
            validation and validation.of(self._batch(validation.batch)),
            how,
            seed,
        )
        encoder.finish(best.network, whole.to(best.network.bias.device))
        return best

    def _networks(
        self,
        view: int,
        encoder: Encoder,
        seed: int,
        can_choose: bool = False,
        training: View | None = None,
    ) -> list[tuple[Encoder, TimeSliverNetwork]]:
        """Make the networks that an encoder has to offer."""
        candidates = encoder.networks(self._shape(view), seed, can_choose, training)
        for _, network in candidates:
            for part in network.parts:
                part.view = view
        return candidates

    def _fresh_network(self, seed: int) -> TimeSliverNetwork:
        """Return a network like the trained one, with the weights it had before any training."""
        seeds = _seeds(seed, len(self._trained_encoders))
        return TimeSliverNetwork.mean(
            [
                self._networks(view, encoder, own_seed)[0][1]
                for (view, encoder), own_seed in zip(self._trained_encoders, seeds, strict=True)
            ]
        )

    def _shape(self, view: int) -> Shape:
        """Return what a part of the network that looks at this view is made for."""
        v, separate = self.n_channels_, self.encoders_[view].separate
        symbols = [
            (v if separate or not one.shared else 1, one.n_symbols)
            for one in self.symbolizers_[view]
        ]
        return Shape(v, len(self.classes_), tuple(symbols), self.n_timepoints_)

    def _batch(self, series: PaddedSeries) -> Batch:
        views = tuple(
            encoder.view(series, symbolizers, self.mean_, self.scale_)
            for encoder, symbolizers in zip(self.encoders_, self.symbolizers_, strict=True)
        )
        return Batch.of(series.standardized(self.mean_, self.scale_), series, views=views)

    # --- explain ------------------------------------------------------------------------------

    def explain(
        self,
        X: Any,
        target: ArrayLike | None = None,
        method: str = "additive",
        **options: Any,
    ) -> Attribution:
        """Say which moments and channels spoke for a class and which against it.

        Parameters
        ----------
        X : array, list of arrays, data frame or tensor
            Series as in `fit`; any number of them, in bounded memory.
        target : None, a label, one label per case, or "all"
            The class to explain; None is the predicted one. "all" explains every class of every
            case: first all cases for the first class, then for the next; see
            `Attribution.by_class`. A class of that name is asked for in a list.
        method : {"additive", "timesliver"}
            "additive" gives exact shares of the logit: base and shares add up to it. "timesliver"
            gives the paper's max-scaled scores, which have no unit.
        **options
            For "additive": ``background``, what counts as the base beside the class's bias: what
            the average moment of the "training" series says, so that shares are measured against
            the average training series; what the middle moment of the "series" itself says; or
            None. ``smoothing`` evens evidence out over so many points, each share keeping its
            mass; "auto" takes the longest segment of `Segments`, a twentieth of the series for
            `Kernels`. For "timesliver":
            ``max_scaling``, whether every product is divided by its largest over the segments.
            For both: ``centred``, to explain the logit minus its mean over the classes.

        Returns
        -------
        Attribution
        """
        options_of(method, options)
        self._check_fitted()
        series = self._read(X)
        wanted = target_indices(target, self.classes_, len(series))
        device = self.network_.bias.device

        def explain_part(part: PaddedSeries, cases: slice) -> Attribution:
            batch = self._batch(part).to(device)
            chosen = wanted[cases] if isinstance(wanted, np.ndarray) else wanted
            why = explain(self.network_, batch, chosen, method, self.classes_, **options)
            numbers = np.arange(len(series))[cases]
            n_classes = len(why) // len(part)
            shown = np.tile(part.with_gaps.astype(np.float32), (n_classes, 1, 1))
            return replace(why, series=shown, case=np.tile(numbers, n_classes))

        parts = self._by_chunks(series, explain_part, "Explaining", self._numbers(series, method))
        if not isinstance(wanted, str):
            return join(parts)
        by_class = [part.by_class() for part in parts]
        return join([join(of_class) for of_class in zip(*by_class, strict=True)])

    def _numbers(self, series: PaddedSeries, method: str) -> int:
        """Return how many numbers explaining a case takes at a time."""
        v, L = series.n_channels, series.n_timepoints
        numbers: int = sum(self.network_.sizes(v, L))
        if method == "timesliver":  # also holds Q by sign, and the entries of Z
            numbers *= 4
            for encoder, symbolizers in zip(self.encoders_, self.symbolizers_, strict=True):
                most = min(encoder.size, max(one.n_symbols for one in symbolizers))
                numbers += v * L * most
        return numbers

    # --- files --------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, NDArray[Any]], JSONDict]:
        arrays = {"mean": self.mean_, "scale": self.scale_}
        views = []
        for i, (encoder, symbolizers) in enumerate(
            zip(self.encoders_, self.symbolizers_, strict=True)
        ):
            states = [one.state() for one in symbolizers]
            for j, (_, learned) in enumerate(states):
                arrays |= {f"symbols.{i}.{j}.{name}": array for name, array in learned.items()}
            views.append(
                {"encoder": to_description(encoder), "symbols": [config for config, _ in states]}
            )
        parts = [
            {"view": view, "encoder": to_description(encoder)}
            for view, encoder in self._trained_encoders
        ]
        return arrays, {"views": views, "parts": parts}

    def _restore(self, arrays: dict[str, NDArray[Any]], description: JSONDict) -> TimeSliverNetwork:
        self.mean_, self.scale_ = arrays["mean"], arrays["scale"]
        self.report_ = []
        self.encoders_, self.symbolizers_ = [], []
        for i, view in enumerate(description["views"]):
            self.encoders_.append(from_description(view["encoder"]))
            self.symbolizers_.append(
                [
                    from_state(config, below(arrays, f"symbols.{i}.{j}."))
                    for j, config in enumerate(view["symbols"])
                ]
            )
        known = [one.n_channels_ for of_view in self.symbolizers_ for one in of_view]
        shapes = {self.mean_.shape, self.scale_.shape, *((count,) for count in known)}
        if shapes != {(self.n_channels_,)}:
            raise ValueError(f"{self.n_channels_} channels, but symbols and scales of {shapes}")
        self._trained_encoders = [
            (part["view"], from_description(part["encoder"])) for part in description["parts"]
        ]
        for view, encoder in self._trained_encoders:
            check_count("view", view, 0, len(self.encoders_) - 1)
            encoder.check()  # a file may ask for more layers than anyone can wait for
        return self._fresh_network(0)


def _seeds(seed: int, count: int) -> list[int]:
    """Return so many seeds, the first of which is the one given."""
    more = np.random.SeedSequence(seed).generate_state(count - 1) >> 1
    return [seed, *map(int, more)]
