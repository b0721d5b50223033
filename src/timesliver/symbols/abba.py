"""ABBA: straight pieces of the series, clustered by their length and increment."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree
from sklearn.cluster import KMeans

from timesliver.errors import MissingExtraError, check_count, check_number
from timesliver.series import PaddedSeries
from timesliver.symbols.base import Symbolizer, code_dtype, standardize
from timesliver.typing import CodeArray

__all__ = ["ABBA"]

# Z-scores are rounded so that neither scale nor padding can move the end of a piece.
_DECIMALS = 8
# Pieces per channel that the centres are learnt from.
_MOST_PIECES = 1 << 16
_KMEANS_STARTS = 3
# The chain of a single point.
_FLAT = np.array([[1.0, 0.0]])

_Compress = Callable[..., list[list[float]]]


class ABBA(Symbolizer):
    """Adaptive Brownian bridge-based aggregation: a symbol per straight piece of the series.

    The z-scores of each case and channel are approximated by a chain of straight pieces (by the
    package fABBA, extra ``abba``). K-means over the (length, increment) of all training pieces of
    a channel gives its symbols, which all cases share; each point carries the symbol of the piece
    that leads to it. Missing points are left out of the chain and carry no symbol.

    Pieces are found one series at a time, which without fABBA's compiled parts is by far the
    slowest of the symbolizers.

    Parameters
    ----------
    n_bins : int
        Greatest number of symbols per channel; fewer are used if there are fewer different pieces.
    tol : float
        Tolerance of the approximation: mean squared distance of a piece from the z-scores.
    scale : float
        Weight of a piece's length against its increment, when pieces are compared.
    random_state : int
        Seed of k-means.

    Attributes
    ----------
    centres_ : array of shape (n_channels, n_bins, 2)
        Length and increment of each symbol, NaN for symbols that are not used.
    deviations_ : array of shape (n_channels, 2)
        Standard deviations of length and increment, the units in which pieces are compared.

    Examples
    --------
    Up by steep pieces, down by flat ones:

    >>> import numpy as np
    >>> X = np.array([[0.0, 2.0, 4.0, 3.0, 2.0, 1.0, 0.0, 2.0, 4.0]])
    >>> ABBA(n_bins=2, tol=0.01).fit_transform(X).tolist()
    [[[2, 2, 2, 1, 1, 1, 1, 2, 2]]]
    """

    name = "abba"
    learned = ("centres_", "deviations_")

    def __init__(
        self, n_bins: int = 20, tol: float = 0.1, scale: float = 1.0, random_state: int = 0
    ) -> None:
        self.n_bins = n_bins
        self.tol = tol
        self.scale = scale
        self.random_state = random_state
        self._check()

    def _check(self) -> None:
        check_count("n_bins", self.n_bins, 2, 32766)
        check_number("tol", self.tol, least=0)
        check_number("scale", self.scale, least=0)
        check_count("random_state", self.random_state, 0, 2**32 - 1)

    @property
    def n_symbols(self) -> int:
        """Number of symbols of each channel."""
        return int(self.n_bins)

    def _fit(self, series: PaddedSeries) -> None:
        pieces_of: list[list[NDArray[np.float64]]] = [[] for _ in range(series.n_channels)]
        for _, channel, pieces in self._chains(series):
            pieces_of[channel].append(pieces)
        self.centres_ = np.full((series.n_channels, self.n_bins, 2), np.nan)
        self.deviations_ = np.ones((series.n_channels, 2))
        for channel, chains in enumerate(pieces_of):
            # A channel never observed knows one symbol, that of a flat piece.
            pieces = np.concatenate(chains) if chains else _FLAT
            pieces = pieces[np.lexsort(pieces.T)]  # the order of the cases plays no part
            deviations = pieces.std(axis=0)
            self.deviations_[channel] = np.where(deviations > 10.0**-_DECIMALS, deviations, 1.0)
            centres = self._cluster(pieces, self._weights(channel))
            self.centres_[channel, : len(centres)] = centres

    def _transform(self, series: PaddedSeries) -> CodeArray:
        codes = np.zeros(series.values.shape, dtype=code_dtype(self.n_bins))
        nearest = [
            KDTree(centres[~np.isnan(centres[:, 0])] * self._weights(channel))
            for channel, centres in enumerate(self.centres_)
        ]
        for case, channel, pieces in self._chains(series):
            _, symbols = nearest[channel].query(pieces * self._weights(channel))
            # A piece of length n leads to n points; the first point of all joins the first piece.
            by_point = np.repeat(symbols, pieces[:, 0].astype(np.int64))
            by_point = np.concatenate((symbols[:1], by_point)) + 1
            seen = series.observed[case, channel]
            codes[case, channel, seen] = by_point[: seen.sum()]
        return codes

    def _chains(self, series: PaddedSeries) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
        """Yield case, channel and pieces (length, increment) of all that has observed points."""
        compress = _fabba_compress()
        for case, observed in enumerate(series.observed):
            z = standardize(series.values[case], observed).round(_DECIMALS)
            for channel, seen in enumerate(observed):
                points = z[channel, seen]
                if len(points) > 1:
                    yield case, channel, np.array(compress(points, tol=self.tol))[:, :2]
                elif len(points) == 1:
                    yield case, channel, _FLAT

    def _weights(self, channel: int) -> NDArray[np.float64]:
        """Return what length and increment are multiplied by before pieces are compared."""
        return np.asarray([self.scale, 1.0] / self.deviations_[channel])

    def _cluster(
        self, pieces: NDArray[np.float64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the mean pieces of at most ``n_bins`` clusters, the steepest fall first."""
        sample = min(len(pieces), _MOST_PIECES)
        pieces = pieces[np.arange(sample) * len(pieces) // sample]
        distinct, group, count = np.unique(
            pieces * weights, axis=0, return_inverse=True, return_counts=True
        )
        if len(distinct) > self.n_bins:
            kmeans = KMeans(self.n_bins, n_init=_KMEANS_STARTS, random_state=self.random_state)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # clusters that coincide are dropped below
                group = kmeans.fit(distinct, sample_weight=count).labels_[group.ravel()]
        members = np.bincount(group.ravel())
        sums = np.stack([np.bincount(group.ravel(), column) for column in pieces.T], axis=1)
        centres = sums[members > 0] / members[members > 0, None]
        return np.asarray(centres[np.lexsort(centres.T)])


def _fabba_compress() -> _Compress:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fABBA warns when it runs without its compiled parts
            from fABBA import compress
    except ImportError as error:
        raise MissingExtraError("fABBA", "abba") from error
    return compress  # type: ignore[no-any-return]
