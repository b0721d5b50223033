import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from timesliver.errors import InvalidParameterError
from timesliver.symbols import SAX

nan = np.nan


def textbook_sax(x, n_bins, window=1):
    """Symbols of one series without missing values, straight from the definition."""
    mean = sum(x) / len(x)
    std = (sum((value - mean) ** 2 for value in x) / len(x)) ** 0.5
    z = [(value - mean) / std if std > 1e-9 else 0.0 for value in x]
    breakpoints = [norm.ppf(k / n_bins) for k in range(1, n_bins)]
    codes = []
    for t in range(len(x)):
        first = t - t % window
        around = z[first : first + window]
        paa = sum(around) / len(around)
        # a value on a breakpoint, up to rounding, belongs above it
        codes.append(1 + sum(paa >= cut - 1e-6 for cut in breakpoints))
    return codes


@settings(deadline=None)
@given(
    x=st.lists(st.integers(-20, 20), min_size=1, max_size=40),
    n_bins=st.integers(2, 12),
    window=st.integers(1, 5),
)
def test_equals_the_textbook(x, n_bins, window):
    codes = SAX(n_bins=n_bins, window=window).fit_transform(np.array([x], dtype=float))
    assert codes[0, 0].tolist() == textbook_sax(x, n_bins, window)


# The z-scores of -3, -1, 1, 3 are -1.34, -0.45, 0.45, 1.34 (the variance is 5).
# Breakpoints: 0 (2 bins); -0.43, 0.43 (3 bins); -0.67, 0, 0.67 (4 bins).
@pytest.mark.parametrize(
    ("n_bins", "window", "expected"),
    [
        (2, 1, [1, 1, 2, 2]),
        (3, 1, [1, 1, 3, 3]),
        (4, 1, [1, 2, 3, 4]),
        (4, 2, [1, 1, 4, 4]),  # window means -0.89 and 0.89
        (4, 3, [2, 2, 2, 4]),  # window means -0.45 and 1.34
        (4, 9, [3, 3, 3, 3]),  # window mean 0, on a breakpoint
    ],
)
def test_symbols_computed_by_hand(n_bins, window, expected):
    codes = SAX(n_bins=n_bins, window=window).fit_transform(np.array([[-3.0, -1.0, 1.0, 3.0]]))
    assert codes.tolist() == [[expected]]


def test_a_window_takes_the_mean_of_its_observed_points():
    # z-scores as above; window means -1.34, (0.45 - 0.45) / 2 = 0 and 1.34
    X = np.array([[nan, -3.0, 1.0, -1.0, 3.0, nan]])
    assert SAX(n_bins=4, window=2).fit_transform(X).tolist() == [[[0, 1, 3, 3, 4, 0]]]


@pytest.mark.parametrize(("n_bins", "middle"), [(2, 2), (3, 2), (4, 3), (5, 3)])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300, 1e-300])
def test_a_constant_series_has_the_middle_symbol(n_bins, middle, value):
    codes = SAX(n_bins=n_bins).fit_transform(np.full((1, 1, 7), value))
    assert np.all(codes == middle)


def test_gaussian_values_share_the_symbols_equally():
    n_bins, n = 8, 100_000
    codes = SAX(n_bins=n_bins).fit_transform(np.random.default_rng(0).normal(3, 2, (1, 1, n)))
    shares = np.bincount(codes.ravel(), minlength=n_bins + 1)[1:] / n
    standard_error = np.sqrt((1 / n_bins) * (1 - 1 / n_bins) / n)
    np.testing.assert_allclose(shares, 1 / n_bins, atol=5 * standard_error)


def test_global_normalisation_uses_the_training_mean_and_deviation_of_each_channel():
    # channel 0 has mean 1 and deviation 1, channel 1 mean 0 and deviation 10
    X = np.array([[[0.0, 2.0], [-10.0, 10.0]], [[2.0, 0.0], [10.0, -10.0]]])
    sax = SAX(n_bins=4, normalize="global").fit(X)
    # z-scores -2, -0.5, 0.5, 2 against the breakpoints -0.67, 0, 0.67
    new = np.array([[[-1.0, 0.5, 1.5, 3.0], [-20.0, -5.0, 5.0, 20.0]]])
    assert sax.transform(new).tolist() == [[[1, 2, 3, 4]] * 2]
    assert sax.transform(np.full((1, 2, 2), 3.0)).tolist() == [[[4, 4], [3, 3]]]


def test_global_normalisation_ignores_missing_values_and_padding():
    X = np.array([[0.0, 2.0, nan, 0.0, 2.0, nan]])
    _, arrays = SAX(normalize="global").fit(X).state()
    assert arrays["mean_"].tolist() == [1.0]
    assert arrays["scale_"].tolist() == [1.0]


def test_global_normalisation_of_a_constant_channel_gives_the_middle_symbol():
    X = np.full((2, 1, 3), 0.1)
    assert np.all(SAX(n_bins=3, normalize="global").fit_transform(X) == 2)


def test_without_normalisation_the_values_themselves_are_cut():
    X = np.array([[-1.0, -0.5, 0.5, 1.0, 0.0]])  # breakpoints -0.67, 0, 0.67
    assert SAX(n_bins=4, normalize=None).fit_transform(X).tolist() == [[[1, 2, 3, 4, 3]]]


@pytest.mark.parametrize("normalize", ["instance", "global", None])
@pytest.mark.parametrize("window", [1, 2])
def test_the_largest_numbers_overflow_nowhere(normalize, window):
    largest = np.finfo(np.float64).max
    sax = SAX(n_bins=4, normalize=normalize, window=window)
    # The training series of the global case are ordinary ones.
    sax.fit(np.array([[-1.0, 1.0]]) if normalize == "global" else np.array([[-largest, largest]]))
    codes = sax.transform(np.array([[-largest, -largest, largest, largest]]))
    assert codes.tolist() == [[[1, 1, 4, 4]]]


@pytest.mark.parametrize("normalize", ["instance", "global"])
def test_the_smallest_numbers_divide_by_zero_nowhere(normalize):
    smallest = np.nextafter(0, 1)
    codes = SAX(n_bins=4, normalize=normalize).fit_transform(np.array([[0.0] * 3 + [smallest]]))
    assert codes.min() >= 1


def test_float32_and_float64_give_the_same_symbols():
    X = np.random.default_rng(0).normal(size=(4, 2, 50)).astype(np.float32)
    np.testing.assert_array_equal(SAX().fit_transform(X), SAX().fit_transform(X.astype(np.float64)))


@pytest.mark.parametrize(
    "settings",
    [{"n_bins": 1}, {"n_bins": 32767}, {"normalize": "z"}, {"window": 0}, {"window": 1.5}],
)
def test_bad_settings_are_named(settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        SAX(**settings)
