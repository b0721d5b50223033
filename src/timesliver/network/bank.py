"""A bank of fixed kernels: nine taps, many dilations, and where their responses exceed a bias.

The family is that of MiniRocket (Dempster et al., 2021): all 84 kernels with three weights of 2 and
six of -1, spread out by dilations up to the length of the series, with biases from quantiles of the
responses of training cases. Everything here runs over one case and one kernel after another; no
array of cases x kernels x time exists. numba compiles it once and keeps it on the machine.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import combinations
from threading import Timer
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console

from timesliver.network.compiled import TAPS, count_cases, fill_biases, share_cases
from timesliver.series import equal_slices
from timesliver.typing import FloatArray, IntArray

__all__ = ["TAPS", "Bank", "bank_shapes", "count", "draw_bank", "share"]

_KERNELS = np.array(list(combinations(range(TAPS), 3)), dtype=np.int32)  # where the 2s are: (84, 3)
_MOST_CHANNELS = 9  # that one kernel looks at
_GOLDEN = (math.sqrt(5) + 1) / 2
_PATIENCE = 1.0  # seconds after which people want to know what takes so long
_COMPILING = "Compiling the kernels: some seconds, once on this machine ..."


class Bank(NamedTuple):
    """Which kernels there are: G of them, each with some of the K biases.

    Attributes
    ----------
    dilation : int32 array of shape (G,)
        Distance of the taps; in rising order.
    twos : int32 array of shape (G, 3)
        Which of the nine taps weigh 2; the others weigh -1.
    padded : bool array of shape (G,)
        Whether moments near the ends count, with zeros beyond the ends.
    n_channels : int32 array of shape (G,)
        How many channels each kernel adds up.
    channels : int32 array of shape (G, at most 9)
        Which ones; the first is the one whose symbols gate it.
    bias_start : int32 array of shape (G + 1,)
        Where the biases of each kernel begin.
    biases : float32 array of shape (K,)
        What a response must exceed.
    """

    dilation: IntArray
    twos: IntArray
    padded: NDArray[np.bool_]
    n_channels: IntArray
    channels: IntArray
    bias_start: IntArray
    biases: FloatArray


def draw_bank(n_kernels: int, values: FloatArray, lengths: IntArray, seed: int) -> Bank:
    """Draw a bank of about ``n_kernels`` pairs of a kernel and a bias.

    Parameters
    ----------
    n_kernels : int
        K, rounded down to a multiple of 84, at least 84.
    values : float32 array of shape (B, v, L)
        Training series, whose responses give the biases.
    lengths : int array of shape (B,)
        Their lengths.
    seed : int
        Decides channels, and which case gives the biases of which kernel.
    """
    rng = np.random.default_rng(seed)
    _, v, L = values.shape
    dilations, n_biases = _dilations(n_kernels, L)
    G = len(dilations) * len(_KERNELS)
    dilation = np.repeat(dilations, len(_KERNELS)).astype(np.int32)
    kernel = np.tile(np.arange(len(_KERNELS)), len(dilations))
    padded = (kernel + np.repeat(np.arange(len(dilations)), len(_KERNELS))) % 2 == 0
    sizes = np.ones(G, dtype=np.int64)
    if v > 1:
        most = math.log2(min(v, _MOST_CHANNELS) + 1)
        sizes = np.floor(2.0 ** rng.uniform(0, most, G)).astype(np.int64)
    channels = np.zeros((G, min(v, _MOST_CHANNELS)), np.int32)
    for own, size in zip(channels, sizes, strict=True):
        own[:size] = rng.choice(v, size, replace=False)
    bias_start = np.concatenate([[0], np.cumsum(np.repeat(n_biases, len(_KERNELS)))])
    bank = Bank(
        dilation,
        _KERNELS[kernel],
        padded,
        sizes.astype(np.int32),
        channels,
        bias_start.astype(np.int32),
        np.zeros(bias_start[-1], np.float32),
    )
    quantiles = (np.arange(1, len(bank.biases) + 1) * _GOLDEN) % 1
    cases = rng.integers(0, len(values), G)
    with _compiling(fill_biases):
        fill_biases(values, lengths, cases, quantiles, *bank)
    return bank


def bank_shapes(n_kernels: int, n_channels: int, n_timepoints: int) -> Bank:
    """Return a bank of zeros, of the sizes that `draw_bank` gives for such series."""
    dilations, n_biases = _dilations(n_kernels, n_timepoints)
    G, K = len(dilations) * len(_KERNELS), int(n_biases.sum()) * len(_KERNELS)
    whole = np.int32
    return Bank(
        np.zeros(G, whole),
        np.zeros((G, 3), whole),
        np.zeros(G, np.bool_),
        np.zeros(G, whole),
        np.zeros((G, min(n_channels, _MOST_CHANNELS)), whole),
        np.zeros(G + 1, whole),
        np.zeros(K, np.float32),
    )


def _dilations(n_kernels: int, n_timepoints: int) -> tuple[IntArray, IntArray]:
    """Return the dilations, up to the length of the series, and how many biases each gets."""
    per_kernel = max(1, n_kernels // len(_KERNELS))
    longest = math.log2(max(1.0, (n_timepoints - 1) / (TAPS - 1)))
    spread = np.floor(2.0 ** np.linspace(0, longest, per_kernel) + 1e-9).astype(np.int32)
    return np.unique(spread, return_counts=True)


def count(
    values: FloatArray, lengths: IntArray, masks: FloatArray, bank: Bank, out: FloatArray
) -> None:
    """Write, for every mask and bias, the share of moments with a response above it.

    Parameters
    ----------
    values : float32 array of shape (B, v, L)
        The series, finite everywhere.
    lengths : int array of shape (B,)
        Their lengths.
    masks : float32 array of shape (B, M, J, L)
        Which moments count, 1 or 0, for each of M rows; J is 1, or v where every channel has
        masks of its own.
    bank : Bank
        The kernels.
    out : float32 array of shape (B, M, K)
        Where the result goes.
    """

    def work(some: slice) -> None:
        count_cases(values[some], lengths[some], masks[some], *bank, out[some])

    with _compiling(count_cases):
        _in_threads(len(values), work)


def share(
    values: FloatArray,
    lengths: IntArray,
    observed: NDArray[np.bool_],
    masks: FloatArray,
    bank: Bank,
    weights: FloatArray,
) -> FloatArray:
    """Share weighted counts out among the points that the kernels looked at, in equal parts.

    Parameters
    ----------
    values, lengths, masks, bank
        As for `count`.
    observed : bool array of shape (B, v, L)
        Which points may get a share.
    weights : float32 array of shape (B, M, K)
        For each case, what a count is worth.

    Returns
    -------
    float32 array of shape (B, v, L)
        The sum over a case is that of ``weights * count``, but for moments of which no point was
        observed.
    """
    shares = np.zeros(values.shape, np.float32)

    def work(some: slice) -> None:
        series = values[some], lengths[some], observed[some], masks[some]
        share_cases(*series, *bank, weights[some], shares[some])

    with _compiling(share_cases):
        _in_threads(len(values), work)
    return shares


@contextmanager
def _compiling(*functions: Any) -> Iterator[None]:
    """Say what takes so long, if functions are compiled now: the first time on a machine."""
    if any(function.signatures for function in functions):
        yield
        return
    said = Timer(_PATIENCE, lambda: Console(stderr=True).print(_COMPILING, style="dim"))
    said.daemon = True
    if sys.stderr.isatty():
        said.start()
    try:
        yield
    finally:
        said.cancel()


def _in_threads(n_cases: int, work: Callable[[slice], None]) -> None:
    """Share cases out among as many threads as torch may use."""
    n_threads = min(torch.get_num_threads(), n_cases)
    if n_threads == 1:
        work(slice(0, n_cases))
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(work, equal_slices(n_cases, 1, -(-n_cases // n_threads))))
