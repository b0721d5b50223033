"""The inner loops of the bank, compiled by numba: one case and one kernel after another.

Responses are plain additions in a fixed order, so that they are the same to the last bit wherever
they are computed. The arguments are those of `timesliver.network.bank`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["HALF", "TAPS", "count_cases", "fill_biases", "share_cases"]

TAPS = 9
HALF = TAPS // 2
# Sums may be taken in another order, so that several are taken at once.
_FAST: Any = {"nsz", "contract", "reassoc", "arcp"}

Array = NDArray[Any]


@njit(cache=True)
def _prepare(x: Array, length: int, d: int, needed: Array, wide: Array, total: Array) -> None:
    """Put zeros around the needed channels, and add up their nine taps with the weight -1."""
    for j in range(x.shape[0]):
        if needed[j]:
            for t in range(length + 2 * HALF * d):
                wide[j, t] = 0
            for t in range(length):
                wide[j, HALF * d + t] = x[j, t]
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
    if padded or length <= 2 * HALF * d:
        return 0, length
    return HALF * d, length - HALF * d


@njit(cache=True)
def _bounds(masks: Array, length: int) -> Array:
    """Return where each mask of a case, (R, J, L), begins and ends: (R, J, 2)."""
    n_rows, n_channels = masks.shape[:2]
    bounds = np.zeros((n_rows, n_channels, 2), np.int64)
    for row in range(n_rows):
        for j in range(n_channels):
            for t in range(length):
                if masks[row, j, t] != 0:
                    if bounds[row, j, 1] == 0:
                        bounds[row, j, 0] = t
                    bounds[row, j, 1] = t + 1
    return bounds


@njit(cache=True)
def fill_biases(
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
    """Write the quantiles of each kernel's responses to one case, as `draw_bank` wants them."""
    v, L = values.shape[1:]
    wide = np.zeros((v, L + 2 * HALF * dilation.max()), np.float32)
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
def count_cases(
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
    """Do the work of `count`, for some cases."""
    n_cases, v, L = values.shape
    n_rows = masks.shape[1]
    for case in range(n_cases):
        wide = np.zeros((v, L + 2 * HALF * dilation.max()), np.float32)
        total, response = np.zeros((v, L), np.float32), np.zeros(L, np.float32)
        needed = np.zeros(v, np.bool_)
        n = lengths[case]
        bounds = _bounds(masks[case], n)
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
                    first, last = max(start, bounds[row, gate, 0]), min(stop, bounds[row, gate, 1])
                    for t in range(first, last):
                        above += mask[t] if response[t] > bias else np.float32(0)
                    out[case, row, b] = above * scale


@njit(cache=True, nogil=True, fastmath=_FAST)
def share_cases(
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
    """Do the work of `share`, for some cases."""
    n_cases, v, L = values.shape
    n_rows = masks.shape[1]
    for case in range(n_cases):
        margin = HALF * dilation.max()
        wide = np.zeros((v, L + 2 * margin), np.float32)
        total, response = np.zeros((v, L), np.float32), np.zeros(L, np.float32)
        spoken = np.zeros(L, np.float32)
        seen = np.zeros((v, L + 2 * margin), np.float32)
        given = np.zeros((v, L + 2 * margin), np.float32)
        needed = np.zeros(v, np.bool_)
        n = lengths[case]
        bounds = _bounds(masks[case], n)
        for g in range(len(dilation)):
            d = dilation[g]
            edge = HALF * d
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
                    first, last = max(start, bounds[row, gate, 0]), min(stop, bounds[row, gate, 1])
                    for t in range(first, last):
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
