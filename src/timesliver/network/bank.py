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
from numba import njit
from numpy.typing import NDArray
from rich.console import Console

from timesliver.series import equal_slices
from timesliver.typing import FloatArray, IntArray

__all__ = ["TAPS", "Bank", "bank_shapes", "count", "draw_bank", "share"]

TAPS = 9
_HALF = TAPS // 2
_KERNELS = np.array(list(combinations(range(TAPS), 3)), dtype=np.int32)  # where the 2s are: (84, 3)
_MOST_CHANNELS = 9  # that one kernel looks at
_GOLDEN = (math.sqrt(5) + 1) / 2
_PATIENCE = 1.0  # seconds after which people want to know what takes so long
_COMPILING = "Compiling the kernels: some seconds, once on this machine ..."
# Sums may be taken in another order, so that several are taken at once.
_FAST: Any = {"nsz", "contract", "reassoc", "arcp"}

Array = NDArray[Any]


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
    with _compiling(_fill_biases):
        _fill_biases(values, lengths, cases, quantiles, *bank)
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
        _count(values[some], lengths[some], masks[some], *bank, out[some])

    with _compiling(_count):
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
        _share(*series, *bank, weights[some], shares[some])

    with _compiling(_share):
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


@njit(cache=True)
def _prepare(x: Array, length: int, d: int, needed: Array, wide: Array, total: Array) -> None:
    """Put zeros around the needed channels, and add up their nine taps with the weight -1."""
    for j in range(x.shape[0]):
        if needed[j]:
            for t in range(length + 2 * _HALF * d):
                wide[j, t] = 0
            for t in range(length):
                wide[j, _HALF * d + t] = x[j, t]
                total[j, t] = 0
            for tap in range(TAPS):
                for t in range(length):
                    total[j, t] -= wide[j, t + tap * d]


@njit(cache=True)
def _need(g: int, dilation: Array, n_channels: Array, channels: Array, needed: Array) -> None:
    """Mark the channels of all kernels with the same dilation as the g-th."""
    needed[:] = False
    other = g
    while other < len(dilation) and dilation[other] == dilation[g]:
        for j in channels[other, : n_channels[other]]:
            needed[j] = True
        other += 1


@njit(cache=True)
def _respond(
    response: Array, length: int, d: int, twos: Array, chosen: Array, wide: Array, total: Array
) -> None:
    """Write the response of a kernel at every moment: three more at the taps that weigh 2."""
    a, b, c, three = twos[0] * d, twos[1] * d, twos[2] * d, np.float32(3)
    j = chosen[0]
    for t in range(length):
        response[t] = total[j, t] + three * (wide[j, t + a] + wide[j, t + b] + wide[j, t + c])
    for i in range(1, len(chosen)):
        j = chosen[i]
        for t in range(length):
            response[t] += total[j, t] + three * (wide[j, t + a] + wide[j, t + b] + wide[j, t + c])


@njit(cache=True)
def _range(length: int, d: int, padded: bool) -> tuple[int, int]:
    """Return the moments that count: all, or those whose taps lie inside, if there are any."""
    if padded or length <= 2 * _HALF * d:
        return 0, length
    return _HALF * d, length - _HALF * d


@njit(cache=True)
def _fill_biases(
    values: Array,
    lengths: Array,
    cases: Array,
    quantiles: Array,
    dilation: Array,
    twos: Array,
    padded: Array,
    n_channels: Array,
    channels: Array,
    bias_start: Array,
    biases: Array,
) -> None:
    v, L = values.shape[1:]
    wide = np.zeros((v, L + 2 * _HALF * dilation.max()), np.float32)
    total, response = np.zeros((v, L), np.float32), np.zeros(L, np.float32)
    needed = np.zeros(v, np.bool_)
    for g in range(len(dilation)):
        n, d = lengths[cases[g]], dilation[g]
        chosen = channels[g, : n_channels[g]]
        needed[:] = False
        for j in chosen:
            needed[j] = True
        _prepare(values[cases[g]], n, d, needed, wide, total)
        _respond(response, n, d, twos[g], chosen, wide, total)
        start, stop = _range(n, d, padded[g])
        ranked = np.sort(response[start:stop])
        for b in range(bias_start[g], bias_start[g + 1]):
            place = quantiles[b] * (len(ranked) - 1)
            below = int(place)
            above = min(below + 1, len(ranked) - 1)
            part = np.float32(place - below)
            biases[b] = ranked[below] * (1 - part) + ranked[above] * part


@njit(cache=True, nogil=True, fastmath=_FAST)
def _count(
    values: Array,
    lengths: Array,
    masks: Array,
    dilation: Array,
    twos: Array,
    padded: Array,
    n_channels: Array,
    channels: Array,
    bias_start: Array,
    biases: Array,
    out: Array,
) -> None:
    n_cases, v, L = values.shape
    n_rows = masks.shape[1]
    for case in range(n_cases):
        wide = np.zeros((v, L + 2 * _HALF * dilation.max()), np.float32)
        total, response = np.zeros((v, L), np.float32), np.zeros(L, np.float32)
        needed = np.zeros(v, np.bool_)
        n = lengths[case]
        for g in range(len(dilation)):
            d = dilation[g]
            if g == 0 or d != dilation[g - 1]:
                _need(g, dilation, n_channels, channels, needed)
                _prepare(values[case], n, d, needed, wide, total)
            chosen = channels[g, : n_channels[g]]
            _respond(response, n, d, twos[g], chosen, wide, total)
            start, stop = _range(n, d, padded[g])
            gate = chosen[0] if masks.shape[2] > 1 else 0
            scale = np.float32(1) / np.float32(stop - start)
            for b in range(bias_start[g], bias_start[g + 1]):
                bias = biases[b]
                for row in range(n_rows):
                    mask = masks[case, row, gate]
                    above = np.float32(0)
                    for t in range(start, stop):
                        above += mask[t] if response[t] > bias else np.float32(0)
                    out[case, row, b] = above * scale


@njit(cache=True, nogil=True, fastmath=_FAST)
def _share(
    values: Array,
    lengths: Array,
    observed: Array,
    masks: Array,
    dilation: Array,
    twos: Array,
    padded: Array,
    n_channels: Array,
    channels: Array,
    bias_start: Array,
    biases: Array,
    weights: Array,
    shares: Array,
) -> None:
    n_cases, v, L = values.shape
    n_rows = masks.shape[1]
    for case in range(n_cases):
        margin = _HALF * dilation.max()
        wide = np.zeros((v, L + 2 * margin), np.float32)
        total, response = np.zeros((v, L), np.float32), np.zeros(L, np.float32)
        spoken = np.zeros(L, np.float32)
        seen = np.zeros((v, L + 2 * margin), np.float32)
        given = np.zeros((v, L + 2 * margin), np.float32)
        needed = np.zeros(v, np.bool_)
        n = lengths[case]
        for g in range(len(dilation)):
            d = dilation[g]
            edge = _HALF * d
            if g == 0 or d != dilation[g - 1]:
                _need(g, dilation, n_channels, channels, needed)
                _prepare(values[case], n, d, needed, wide, total)
                seen[:] = 0
                for j in range(v):
                    for t in range(n):
                        seen[j, edge + t] = 1 if observed[case, j, t] else 0
            chosen = channels[g, : n_channels[g]]
            _respond(response, n, d, twos[g], chosen, wide, total)
            start, stop = _range(n, d, padded[g])
            gate = chosen[0] if masks.shape[2] > 1 else 0
            scale = np.float32(1) / np.float32(stop - start)
            for t in range(start, stop):
                spoken[t] = 0
            for b in range(bias_start[g], bias_start[g + 1]):
                bias = biases[b]
                for row in range(n_rows):
                    worth = weights[case, row, b] * scale
                    mask = masks[case, row, gate]
                    for t in range(start, stop):
                        spoken[t] += mask[t] * worth if response[t] > bias else np.float32(0)
            for t in range(start, stop):
                if spoken[t] == 0:
                    continue
                count = np.float32(0)
                for j in chosen:
                    for tap in range(TAPS):
                        count += seen[j, t + tap * d]
                if count > 0:
                    part = spoken[t] / count
                    for j in chosen:
                        for tap in range(TAPS):
                            given[j, t + tap * d] += part * seen[j, t + tap * d]
                else:  # nothing it looks at was observed: to what else was at this moment
                    for j in range(v):
                        count += seen[j, edge + t]
                    for j in range(v):
                        part = spoken[t] / max(count, np.float32(1))
                        given[j, edge + t] += part * seen[j, edge + t]
            if g + 1 == len(dilation) or dilation[g + 1] != d:
                for j in range(v):
                    for t in range(n):
                        shares[case, j, t] += given[j, edge + t]
                    for t in range(n + 2 * edge):
                        given[j, t] = 0
