"""The bank against ten lines of numpy: counts to the last bit, shares to rounding."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from timesliver.network import bank as bank_module
from timesliver.network.bank import bank_shapes, count, draw_bank, share


def responses(x, bank, g):
    """The responses of kernel g at all moments of a case (v, L), and which of them count."""
    L = x.shape[1]
    d, total = bank.dilation[g], np.zeros(L, np.float32)
    for j in bank.channels[g, : bank.n_channels[g]]:
        taps = [np.pad(x[j], 4 * d)[i * d : i * d + L] for i in range(9)]
        minus = np.zeros(L, np.float32)
        for tap in taps:
            minus -= tap
        a, b, c = (taps[i] for i in bank.twos[g])
        total = total + (minus + np.float32(3) * (a + b + c))
    inside = np.ones(L, bool)
    if not bank.padded[g] and 8 * d < L:
        inside[: 4 * d] = inside[L - 4 * d :] = False
    return total, inside


def counts(x, masks, bank):
    """What `count` gives for one case without padding; masks (M, J, L)."""
    out = np.zeros((len(masks), len(bank.biases)))
    for g in range(len(bank.dilation)):
        response, inside = responses(x, bank, g)
        gate = bank.channels[g, 0] if masks.shape[1] > 1 else 0
        for b in range(bank.bias_start[g], bank.bias_start[g + 1]):
            above = (response > bank.biases[b]) & inside
            out[:, b] = (masks[:, gate] * above).sum(1) / inside.sum()
    return out


def shares(x, observed, masks, bank, weights):
    """What `share` gives for one case: every moment's share, one after another."""
    v, L = x.shape
    out = np.zeros((v, L))
    for g in range(len(bank.dilation)):
        response, inside = responses(x, bank, g)
        gate, d = bank.channels[g, 0] if masks.shape[1] > 1 else 0, bank.dilation[g]
        chosen = bank.channels[g, : bank.n_channels[g]]
        for b in range(bank.bias_start[g], bank.bias_start[g + 1]):
            worth = (masks[:, gate] * weights[:, b, None]).sum(0) / inside.sum()
            for t in np.flatnonzero((response > bank.biases[b]) & inside):
                taps = [(j, t + (i - 4) * d) for j in chosen for i in range(9)]
                taps = [(j, s) for j, s in taps if 0 <= s < L and observed[j, s]]
                taps = taps or [(j, t) for j in range(v) if observed[j, t]]
                for j, s in taps:
                    out[j, s] += worth[t] / len(taps)
    return out


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    v, L = draw(st.integers(1, 4)), draw(st.integers(1, 30))
    n = draw(st.integers(1, 3))
    values = rng.normal(size=(n, v, L)).astype(np.float32)
    lengths = np.array([L, *(rng.integers(1, L + 1) for _ in range(n - 1))])
    for case, length in zip(values, lengths, strict=True):
        case[:, length:] = 0
    J = draw(st.sampled_from([1, v]))
    codes = rng.integers(0, 3, (n, J, L))
    masks = np.stack([codes == 1, codes == 2, codes >= 0], axis=1).astype(np.float32)
    observed = rng.random((n, v, L)) < 0.8
    n_kernels = draw(st.sampled_from([84, 2 * 84]))
    bank = draw_bank(n_kernels, values, lengths, draw(st.integers(0, 99)))
    return values, lengths, observed, masks, bank, rng


@settings(max_examples=15, deadline=None)
@given(problems())
def test_counts(problem):
    values, lengths, _, masks, bank, _ = problem
    out = np.empty((len(values), 3, len(bank.biases)), np.float32)
    count(values, lengths, masks, bank, out)
    for case, length in enumerate(lengths):
        expected = counts(values[case, :, :length], masks[case, :, :, :length], bank)
        np.testing.assert_allclose(out[case], expected, rtol=1e-6)
        inside = out[case] * 0 + 1
        assert (out[case] <= inside + 1e-6).all()


@settings(max_examples=8, deadline=None)
@given(problem=problems())
def test_shares(problem):
    values, lengths, observed, masks, bank, rng = problem
    observed = observed & (np.arange(values.shape[2]) < lengths[:, None, None])
    masks = masks * observed.any(1)[:, None, None]  # a moment without any value carries no symbol
    weights = rng.normal(size=(len(values), 3, len(bank.biases))).astype(np.float32)
    shared = share(values, lengths, observed, masks, bank, weights)
    out = np.empty((len(values), 3, len(bank.biases)), np.float32)
    count(values, lengths, masks, bank, out)
    for case, n in enumerate(lengths):
        parts = values[case, :, :n], observed[case, :, :n], masks[case, :, :, :n]
        expected = shares(*parts, bank, weights[case])
        np.testing.assert_allclose(shared[case, :, :n], expected, atol=1e-4)
        assert (shared[case, :, n:] == 0).all()
        assert (shared[case][~observed[case]] == 0).all()
        np.testing.assert_allclose(shared[case].sum(), (weights[case] * out[case]).sum(), atol=1e-3)


def test_one_case_at_a_time_and_threads_change_nothing():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(7, 2, 50)).astype(np.float32)
    lengths, masks = np.full(7, 50), np.ones((7, 1, 1, 50), np.float32)
    bank = draw_bank(500, values, lengths, 0)
    together, alone = (np.empty((7, 1, len(bank.biases)), np.float32) for _ in range(2))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        count(values, lengths, masks, bank, together)
    finally:
        torch.set_num_threads(before)
    for i in range(7):
        some = slice(i, i + 1)
        count(values[some], lengths[some], masks[some], bank, alone[some])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    ("n_kernels", "v", "L"), [(84, 1, 1), (2500, 1, 8), (300, 12, 9), (2500, 2, 500)]
)
def test_shapes_are_known_without_data(n_kernels, v, L):
    drawn = draw_bank(n_kernels, np.zeros((2, v, L), np.float32), np.full(2, L), 0)
    for array, known in zip(drawn, bank_shapes(n_kernels, v, L), strict=True):
        assert (array.shape, array.dtype) == (known.shape, known.dtype)
    assert len(drawn.biases) == n_kernels // 84 * 84
    assert (np.diff(drawn.dilation) >= 0).all()
    assert drawn.dilation.max() <= max(1, (L - 1) // 8)


def test_there_are_84_kernels_of_weight_zero():
    kernels = bank_module._KERNELS
    assert len({tuple(kernel) for kernel in kernels}) == 84
    assert -9 + 3 * 3 == 0
