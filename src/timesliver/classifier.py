"""`TimeSliverClassifier`: fit, predict and explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from timesliver.attribution import Attribution, explain, join
from timesliver.errors import InvalidParameterError, check_choice
from timesliver.estimator import SeriesClassifier, target_indices
from timesliver.network import Batch, NetworkConfig, TimeSliverNetwork
from timesliver.series import PaddedSeries
from timesliver.symbols import create, from_state
from timesliver.training import Cases, Settings, Training, total_evidence, train
from timesliver.typing import JSONDict

__all__ = ["TimeSliverClassifier"]


class TimeSliverClassifier(SeriesClassifier):
    """Classify time series, and say which moments and channels decided.

    Parameters
    ----------
    n_bins : int
        Number of symbols per channel.
    latent_dim : int
        Length of the vector that describes a segment.
    segment_sizes : sequence of int
        Lengths of the segments, in time points.
    symbolizer : {"sax", "sfa", "abba", "raw"} or Symbolizer
        How values become symbols.
    positional_encoding : bool or "auto"
        Whether the network is told where in the series a segment lies. "auto" trains without and
        with it, and keeps what does better on validation cases; without any, it is used.
    depth : int
        Convolutions per segment encoder; 1 is the paper's single one.
    window : {"box", "bell"}
        How the points of a segment are weighted when its symbols are counted.
    pooling : (int, int)
        Average pooling over symbols and over latent columns before the last layer.
    channels : {"mixed", "separate", "shared"}
        One encoder that sees all channels, as in the paper; one that sees each channel by itself,
        so that the split of the evidence by channel is exact; the same with one last layer for
        all channels.
    learning_rate : float
        Adam's step size; it falls to zero along half a cosine over `max_epochs`.
    max_epochs : int
        Most passes over the training cases.
    batch_size : int
        Most cases per step.
    patience : int
        Epochs without a better validation result before training stops.
    validation_fraction : float
        Share of the training cases, from every class, by which the best epoch is chosen. If that
        is fewer than ten cases, all cases train and the lowest training loss decides.
    head_rate : float
        How many times larger the steps of the last layer are than those of the segment encoder.
        Near 30 the last layer learns first which symbols matter, and evidence gathers where the
        classes differ; on small sets that costs accuracy.
    sparsity : float
        Weight of a penalty on the total evidence, in units of the logit: moments that need not
        speak fall silent. 0.01 is a mild value, for series of any length and number of channels.
    class_weight : dict, "balanced" or None
        How much the cases of each class count.
    device : str
        "auto" is a GPU if there is one, else the CPU.
    n_jobs : int or None
        Number of threads; None leaves torch's setting, -1 takes all cores.
    random_state : int, numpy generator or None
        Makes the result repeatable; global random states are neither used nor changed.
    verbose : int
        1 shows a progress bar.
    callbacks : list of Callback or functions, or None
        Called with the record of each epoch.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The class labels.
    history_ : list of dict
        One record per epoch.
    n_iter_ : int
        Number of epochs trained.
    n_features_in_ : int
        Second axis of the training data: channels, or time points if it was a table.
    network_ : TimeSliverNetwork
        The trained network.
    symbolizer_ : Symbolizer
        The fitted symbolizer.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 1, 40))
    >>> y = np.repeat(["flat", "bump"], 30)
    >>> X[30:, 0, 10:20] += 3
    >>> clf = TimeSliverClassifier(max_epochs=20, random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array(['flat', 'flat'], dtype='<U4')
    >>> scores = clf.explain(X[-1:])
    >>> bool(scores.positive[0, 10:20].mean() > scores.positive[0, 20:].mean())
    True
    """

    def __init__(
        self,
        n_bins: int = 5,
        latent_dim: int = 36,
        segment_sizes: Sequence[int] = (4, 16),
        symbolizer: Any = "sax",
        positional_encoding: bool | str = "auto",
        depth: int = 3,
        window: str = "box",
        pooling: Sequence[int] = (1, 1),
        channels: str = "mixed",
        learning_rate: float = 1e-3,
        max_epochs: int = 100,
        batch_size: int = 64,
        patience: int = 20,
        validation_fraction: float = 0.1,
        head_rate: float = 1.0,
        sparsity: float = 0.0,
        class_weight: Any = None,
        device: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callbacks: Any = None,
    ) -> None:
        self.n_bins = n_bins
        self.latent_dim = latent_dim
        self.segment_sizes = segment_sizes
        self.symbolizer = symbolizer
        self.positional_encoding = positional_encoding
        self.depth = depth
        self.window = window
        self.pooling = pooling
        self.channels = channels
        self.learning_rate = learning_rate
        self.max_epochs = max_epochs
        self.batch_size = batch_size
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.head_rate = head_rate
        self.sparsity = sparsity
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callbacks = callbacks

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("positional_encoding", self.positional_encoding, (True, False, "auto"))
        if not isinstance(self.segment_sizes, Sequence | np.ndarray) or not len(self.segment_sizes):
            raise InvalidParameterError(
                f"segment_sizes must list at least one segment size, got {self.segment_sizes!r}"
            )
        if not (isinstance(self.sparsity, int | float | np.number) and 0 <= self.sparsity < np.inf):
            raise InvalidParameterError(f"sparsity must be 0 or more, got {self.sparsity!r}")
        rate = self.head_rate
        if not (isinstance(rate, int | float | np.number) and 0 < rate < np.inf):
            raise InvalidParameterError(f"head_rate must be a number above 0, got {rate!r}")
        if self.sparsity > 0 and create(self.symbolizer, self.n_bins).name == "raw":
            raise InvalidParameterError(
                "sparsity works on the evidence of symbols; choose another symbolizer than 'raw', "
                "or sparsity=0"
            )

    def _learn_input(self, series: PaddedSeries) -> None:
        self.mean_, self.scale_ = series.moments()
        self.symbolizer_ = deepcopy(create(self.symbolizer, self.n_bins)).fit(series)

    def _batch(self, series: PaddedSeries) -> Batch:
        series = series.padded_to(max(self.segment_sizes))
        codes = self.symbolizer_.transform(series)
        values = series.standardized(self.mean_, self.scale_)
        series = PaddedSeries(values, series.observed, series.lengths)
        separate = self.channels != "mixed"
        return Batch.prepare(series, codes, self.symbolizer_.n_symbols, separate)

    def _state(self) -> tuple[dict[str, NDArray[Any]], JSONDict]:
        symbols, learned = self.symbolizer_.state()
        arrays = {f"symbols.{name}": array for name, array in learned.items()}
        arrays |= {"mean": self.mean_, "scale": self.scale_}
        return arrays, {
            "symbols": symbols,
            "positional_encoding": self.network_.config.positional_encoding,
        }

    def _restore(self, arrays: dict[str, NDArray[Any]], description: JSONDict) -> TimeSliverNetwork:
        prefix = "symbols."
        learned = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        self.symbolizer_ = from_state(description["symbols"], learned)
        if self.symbolizer is None:  # an instance was given
            self.symbolizer = self.symbolizer_
        self.segment_sizes, self.pooling = tuple(self.segment_sizes), tuple(self.pooling)
        self.mean_, self.scale_ = arrays["mean"], arrays["scale"]
        found = (self.symbolizer_.n_channels_,), self.mean_.shape, self.scale_.shape
        if found != ((self.n_channels_,),) * 3:
            raise ValueError(f"{self.n_channels_} channels, but symbols and scales of {found}")
        return self._network(self._config(description["positional_encoding"]))

    def _config(self, positional_encoding: bool) -> NetworkConfig:
        return NetworkConfig(
            n_channels=self.n_channels_,
            n_symbols=self.symbolizer_.n_symbols,
            n_classes=len(self.classes_),
            latent_dim=self.latent_dim,
            segment_sizes=tuple(self.segment_sizes),
            depth=self.depth,
            window=self.window,
            pooling=tuple(self.pooling),  # type: ignore[arg-type]
            channels=self.channels,
            positional_encoding=positional_encoding,
            raw=self.symbolizer_.name == "raw",
        )

    def _networks(self, seed: int, can_choose: bool) -> Iterator[TimeSliverNetwork]:
        choices = [self.positional_encoding]
        if self.positional_encoding == "auto":
            choices = [False, True] if can_choose else [True]
        for choice in choices:
            yield self._network(self._config(bool(choice)), seed)

    def _network(self, config: NetworkConfig, seed: int = 0) -> TimeSliverNetwork:
        return TimeSliverNetwork(config, seed)

    def _settings(self) -> Settings:
        return replace(
            super()._settings(),
            penalty_weight=self.sparsity,
            rate_factors={"head": float(self.head_rate)},
        )

    def _train(self, network: Any, cases: Cases, validation: Cases | None, **how: Any) -> Training:
        if self.sparsity == 0:
            return train(network, cases, validation, **how)

        def penalised(batch: Batch) -> tuple[Tensor, Tensor]:
            Qt = network.spread(network.encode(batch), batch)
            return network.classify(Qt, batch), total_evidence(network, batch, Qt)

        return train(network, cases, validation, penalised=penalised, **how)

    @overload
    def explain(
        self, X: Any, target: Literal["all"], method: str = ..., **options: Any
    ) -> list[Attribution]: ...
    @overload
    def explain(
        self, X: Any, target: ArrayLike | None = ..., method: str = ..., **options: Any
    ) -> Attribution: ...
    def explain(
        self,
        X: Any,
        target: ArrayLike | None = None,
        method: str = "timesliver",
        **options: Any,
    ) -> Attribution | list[Attribution]:
        """Say which moments and channels spoke for a class and which against it.

        Parameters
        ----------
        X : array, list of arrays, data frame or tensor
            Series as in `fit`; any number of them, in bounded memory.
        target : None, a label, one label per case, or "all"
            The class to explain; None is the predicted one. "all" returns a list with one
            attribution for each of ``classes_``.
        method : {"timesliver", "additive"}
            The paper's max-scaled scores, or exact shares of the logit.
        **options
            See `timesliver.explain`.

        Returns
        -------
        Attribution
        """
        self._check_fitted()
        series = self._read(X)
        wanted = target_indices(target, self.classes_, len(series))

        def explain_part(part: PaddedSeries, cases: slice) -> list[Attribution]:
            batch = self._batch(part).to(next(self.network_.parameters()).device)
            chosen = wanted[cases] if isinstance(wanted, np.ndarray) else wanted
            found = explain(self.network_, batch, chosen, method, self.classes_, **options)
            shown = np.where(part.observed, part.values, np.nan).astype(np.float32)
            return [
                replace(
                    scores,
                    positive_by_channel=scores.positive_by_channel[..., : part.n_timepoints],
                    negative_by_channel=scores.negative_by_channel[..., : part.n_timepoints],
                    series=shown,
                )
                for scores in (found if isinstance(found, list) else [found])
            ]

        parts = self._by_chunks(series, explain_part, "Explaining")
        joined = [join(of_class) for of_class in zip(*parts, strict=True)]
        return joined if isinstance(wanted, str) else joined[0]
