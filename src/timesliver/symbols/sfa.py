"""SFA: the first Fourier coefficients of sliding windows, binned into words."""

from __future__ import annotations

from math import isqrt
from typing import Self

import numpy as np
from numpy.typing import NDArray

from timesliver.errors import InvalidParameterError, check_count
from timesliver.series import PaddedSeries
from timesliver.symbols.base import BLOCK, TIE, Symbolizer, code_dtype, standardize
from timesliver.typing import CodeArray, IntArray

__all__ = ["SFA"]

# Windows per channel that the breakpoints are learnt from.
_MOST_WINDOWS = 1 << 16
_MOST_SYMBOLS = 32766


class SFA(Symbolizer):
    """Symbolic Fourier Approximation of the window around every point.

    The window's first Fourier numbers ``Re0, Re1, Im1, Re2, Im2, ...`` are each cut into letters
    at quantiles learnt in ``fit`` (multiple coefficient binning); the letters form the word, and
    each word is a symbol. Works on the z-scores of each case and channel, where a missing value
    counts as the mean. Windows are centred on their point; at the ends of a case the outermost
    window is repeated, and a case shorter than the window is extended by its mean.

    Parameters
    ----------
    window : int
        Number of successive points that the Fourier transform sees.
    word_length : int
        Letters per word, at most ``window`` (a window has no more Fourier numbers).
    alphabet_size : int
        Number of letters; there are ``alphabet_size ** word_length`` symbols.

    Attributes
    ----------
    breakpoints_ : array of shape (n_channels, word_length, alphabet_size - 1)
        Where the Fourier numbers are cut.

    Examples
    --------
    A step up, told by the mean of the two points of each window:

    >>> import numpy as np
    >>> sfa = SFA(window=2, word_length=1, alphabet_size=2)
    >>> sfa.fit_transform(np.array([[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]])).tolist()
    [[[1, 1, 1, 2, 2, 2]]]
    """

    name = "sfa"
    learned = ("breakpoints_",)

    def __init__(self, window: int = 8, word_length: int = 2, alphabet_size: int = 4) -> None:
        self.window = window
        self.word_length = word_length
        self.alphabet_size = alphabet_size
        self._check()

    def _check(self) -> None:
        check_count("window", self.window, 1)
        check_count("word_length", self.word_length, 1)
        check_count("alphabet_size", self.alphabet_size, 2)
        if self.word_length > self.window:
            raise InvalidParameterError(
                f"word_length={self.word_length} is more than the {self.window} Fourier numbers of "
                f"a window of {self.window} points; choose a shorter word or a wider window"
            )
        if self.n_symbols > _MOST_SYMBOLS:
            raise InvalidParameterError(
                f"alphabet_size={self.alphabet_size} and word_length={self.word_length} make "
                f"{self.alphabet_size}**{self.word_length} symbols, more than {_MOST_SYMBOLS}; "
                f"choose fewer letters or a shorter word"
            )

    @property
    def n_symbols(self) -> int:
        """Number of different words."""
        return int(int(self.alphabet_size) ** int(self.word_length))

    @classmethod
    def with_bins(cls, n_bins: int) -> Self:
        """Make words of two letters with at most ``n_bins`` different words (but at least 4)."""
        check_count("n_bins", n_bins, 2, _MOST_SYMBOLS)
        return cls(word_length=2, alphabet_size=max(2, isqrt(n_bins)))

    def _fit(self, series: PaddedSeries) -> None:
        shares = np.arange(1, self.alphabet_size) / self.alphabet_size
        cases, starts = self._training_windows(series.lengths)
        self.breakpoints_ = np.zeros((series.n_channels, self.word_length, len(shares)))
        for channel in range(series.n_channels):
            numbers = self._fourier_at(series, channel, cases, starts)
            if len(numbers):
                self.breakpoints_[channel] = np.quantile(numbers, shares, axis=0).T

    def _training_windows(self, lengths: IntArray) -> tuple[IntArray, IntArray]:
        """Return case and start of windows spread evenly over all windows inside the cases."""
        ends = np.cumsum(np.maximum(lengths - self.window, 0) + 1)
        count = min(ends[-1], _MOST_WINDOWS)
        chosen = np.arange(count) * ends[-1] // count
        cases = np.searchsorted(ends, chosen, side="right")
        return cases, chosen - np.concatenate(([0], ends))[cases]

    def _fourier_at(
        self, series: PaddedSeries, channel: int, cases: IntArray, starts: IntArray
    ) -> NDArray[np.float64]:
        """Fourier numbers (n_windows, word_length) of windows with at least one observed point."""
        basis = _fourier_basis(self.window, self.word_length)
        numbers = np.zeros((len(cases), self.word_length))
        seen = np.zeros(len(cases), dtype=bool)
        step = max(1, BLOCK // series.n_timepoints)
        for first in range(0, len(series), step):
            observed = series.observed[first : first + step, channel]
            z = standardize(series.values[first : first + step, channel], observed)
            here = slice(*np.searchsorted(cases, (first, first + step)))
            case, start = cases[here] - first, starts[here]
            for offset in range(min(self.window, series.n_timepoints)):
                numbers[here] += z[case, start + offset, None] * basis[offset]
                seen[here] |= observed[case, start + offset]
        described: NDArray[np.float64] = numbers[seen]
        return described

    def _transform(self, series: PaddedSeries) -> CodeArray:
        n_cases, n_channels, n_timepoints = series.values.shape
        codes = np.empty(series.values.shape, dtype=code_dtype(self.n_symbols))
        step = max(1, BLOCK // (n_channels * max(n_timepoints, self.window)))
        last = np.maximum(series.lengths - self.window, 0)
        centred = np.arange(n_timepoints) - self.window // 2
        starts = np.clip(centred, 0, last[:, None])[:, None, :]
        for first in range(0, n_cases, step):
            block = series[first : first + step]
            words = self._words(standardize(block.values, block.observed))
            codes[first : first + step] = np.take_along_axis(
                words, starts[first : first + step], axis=-1
            )
        codes += 1
        return codes

    def _words(self, z: NDArray[np.float64]) -> CodeArray:
        """Return the word, counted from 0, of the window that starts at each point."""
        missing = max(self.window - z.shape[-1], 0)
        z = np.pad(z, ((0, 0), (0, 0), (0, missing)))
        n_windows = z.shape[-1] - self.window + 1
        words = np.zeros((*z.shape[:2], n_windows), dtype=code_dtype(self.n_symbols))
        product = np.empty(words.shape)
        for letter, wave in enumerate(_fourier_basis(self.window, self.word_length).T):
            number = np.zeros(words.shape)
            for offset, height in enumerate(wave):
                np.multiply(z[..., offset : offset + n_windows], height, out=product)
                number += product
            value = words.dtype.type(self.alphabet_size**letter)
            for cut in self.breakpoints_[:, letter].T - TIE:
                words += (number >= cut[:, None]) * value
        return words


def _fourier_basis(window: int, n_numbers: int) -> NDArray[np.float64]:
    """Return the matrix (window, n_numbers) that turns a window into Re0, Re1, Im1, Re2, ..."""
    waves = np.fft.rfft(np.eye(window))
    both = np.stack((waves.real, waves.imag), axis=-1).reshape(window, -1)
    return np.delete(both, 1, axis=1)[:, :n_numbers]  # Im0 is always 0
