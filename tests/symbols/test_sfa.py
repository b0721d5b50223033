import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from timesliver.errors import InvalidParameterError
from timesliver.symbols import SFA

nan = np.nan


def z_scores(x):
    """Z-scores of one series; a missing value is the mean."""
    spread = np.nanstd(x)
    z = (x - np.nanmean(x)) / (spread if spread > 1e-9 else 1.0)
    return np.where(np.isnan(x), 0.0, z)


def windows(x, window):
    """All windows inside one series, which is extended by zeros to at least one."""
    z = z_scores(x)
    z = np.append(z, np.zeros(max(window - len(z), 0)))
    return [z[start : start + window] for start in range(len(z) - window + 1)]


def fourier_numbers(points, word_length):
    """Re0, Re1, Im1, Re2, Im2, ..."""
    numbers = []
    for k, coefficient in enumerate(np.fft.rfft(points)):
        numbers += [coefficient.real] if k == 0 else [coefficient.real, coefficient.imag]
    return numbers[:word_length]


def textbook_sfa(cases, window, word_length, alphabet_size):
    """Breakpoints and codes of a list of complete univariate series, from the definition."""
    numbers = [fourier_numbers(w, word_length) for x in cases for w in windows(x, window)]
    shares = [k / alphabet_size for k in range(1, alphabet_size)]
    columns = np.array(numbers).T
    breakpoints = [[np.quantile(column, share) for share in shares] for column in columns]
    codes = []
    for x in cases:
        inside = windows(x, window)
        codes.append([])
        for t in range(len(x)):
            start = min(max(t - window // 2, 0), len(inside) - 1)
            code = 1
            for i, number in enumerate(fourier_numbers(inside[start], word_length)):
                # a number on a breakpoint, up to rounding, belongs above it
                letter = sum(number >= cut - 1e-6 for cut in breakpoints[i])
                code += letter * alphabet_size**i
            codes[-1].append(code)
    return breakpoints, codes


@settings(deadline=None)
@given(data=st.data(), window=st.integers(1, 9), alphabet_size=st.integers(2, 4))
def test_equals_the_textbook(data, window, alphabet_size):
    word_length = data.draw(st.integers(1, min(window, 5)))
    values = arrays(np.float64, st.integers(1, 25), elements=st.integers(-20, 20))
    cases = data.draw(st.lists(values, min_size=1, max_size=4))
    sfa = SFA(window, word_length, alphabet_size)
    codes = sfa.fit_transform(cases)
    breakpoints, expected = textbook_sfa(cases, window, word_length, alphabet_size)
    np.testing.assert_allclose(sfa.breakpoints_[0], breakpoints, atol=1e-9)
    for i, x in enumerate(cases):
        assert codes[i, 0, : len(x)].tolist() == expected[i]


def test_a_missing_value_counts_as_the_mean():
    x = np.random.default_rng(0).normal(size=30)
    x[[4, 11, 12]] = nan
    expected = np.array(textbook_sfa([x], 6, 2, 4)[1][0])
    codes = SFA(6, 2, 4).fit_transform(x[None])
    np.testing.assert_array_equal(codes[0, 0], np.where(np.isnan(x), 0, expected))


def test_channels_have_their_own_breakpoints():
    X = np.random.default_rng(0).normal(size=(3, 2, 20))
    X[:, 1] = X[:, 1] ** 3
    sfa = SFA(window=5, word_length=2, alphabet_size=3)
    codes = sfa.fit_transform(X)
    assert sfa.breakpoints_.shape == (2, 2, 2)
    for channel in range(2):
        alone = SFA(window=5, word_length=2, alphabet_size=3).fit_transform(X[:, channel])
        np.testing.assert_array_equal(codes[:, channel], alone[:, 0])


def test_windows_without_any_observed_point_are_not_learnt_from():
    X = np.random.default_rng(0).normal(size=(2, 2, 20))
    X[1, 1] = nan
    X[0, 1, 10:] = nan  # windows 0 to 9 see one of the points 0 to 9
    sfa = SFA(window=4, word_length=2, alphabet_size=3).fit(X)
    numbers = [fourier_numbers(w, 2) for w in windows(X[0, 1], 4)[:10]]
    expected = np.quantile(numbers, [1 / 3, 2 / 3], axis=0).T
    np.testing.assert_allclose(sfa.breakpoints_[1], expected)


def test_all_windows_inside_the_cases_are_learnt_from_up_to_a_limit(monkeypatch):
    lengths = np.array([4, 1, 6])
    sfa = SFA(window=3, word_length=1)
    # 2 windows in the first case, 1 (extended) in the second, 4 in the third
    cases, starts = sfa._training_windows(lengths)
    assert cases.tolist() == [0, 0, 1, 2, 2, 2, 2]
    assert starts.tolist() == [0, 1, 0, 0, 1, 2, 3]
    monkeypatch.setattr("timesliver.symbols.sfa._MOST_WINDOWS", 4)
    cases, starts = sfa._training_windows(lengths)  # windows 0, 7/4, 14/4, 21/4, rounded down
    assert cases.tolist() == [0, 0, 2, 2]
    assert starts.tolist() == [0, 1, 0, 2]


def test_letters_are_equally_frequent_in_training():
    X = np.random.default_rng(0).normal(size=(40, 1, 60))
    sfa = SFA(window=1, word_length=1, alphabet_size=4)  # one window per point
    shares = np.bincount(sfa.fit_transform(X).ravel())[1:] / X.size
    np.testing.assert_allclose(shares, 1 / 4, atol=1 / X.size)


def test_new_series_are_cut_where_the_training_series_were():
    # mean 1/4 and variance 3/16; the low value comes three times of four: it is the median
    sfa = SFA(window=1, word_length=1, alphabet_size=2).fit(np.array([[0.0, 0.0, 0.0, 1.0]]))
    low, high = (0 - 1 / 4) / np.sqrt(3 / 16), (1 - 1 / 4) / np.sqrt(3 / 16)
    assert sfa.breakpoints_[0, 0, 0] == pytest.approx(low)
    # z-scores of the mirrored series: -high, then -low, of which only the latter reach the cut
    assert -high < low < -low
    assert sfa.transform(np.array([[0.0, 1.0, 1.0, 1.0]])).tolist() == [[[1, 2, 2, 2]]]


@pytest.mark.parametrize(
    ("n_bins", "n_symbols"), [(2, 4), (4, 4), (15, 9), (16, 16), (32766, 181**2)]
)
def test_with_bins_makes_the_largest_square_that_fits(n_bins, n_symbols):
    sfa = SFA.with_bins(n_bins)
    assert sfa.word_length == 2
    assert sfa.n_symbols == n_symbols


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"window": 0}, "window"),
        ({"word_length": 0}, "word_length"),
        ({"alphabet_size": 1}, "alphabet_size"),
        ({"window": 3, "word_length": 4}, "word_length=4 is more than the 3"),
        ({"word_length": 8, "alphabet_size": 4}, r"4\*\*8 symbols"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        SFA(**settings)


def test_the_last_word_fits_the_limit():
    assert SFA(word_length=1, alphabet_size=32766).n_symbols == 32766
    with pytest.raises(InvalidParameterError):
        SFA(word_length=1, alphabet_size=32767)
