"""What every symbolizer promises, whichever it is."""

import json
from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import clone

from timesliver import symbols
from timesliver.errors import InvalidInputError, InvalidParameterError, NotFittedError
from timesliver.series import as_series
from timesliver.symbols import ABBA, NO_SYMBOL, SAX, SFA, Clock, One, Symbolizer
from timesliver.symbols.base import code_dtype

needs_fabba = pytest.mark.skipif(find_spec("fABBA") is None, reason="needs fABBA (extra abba)")

KINDS = {
    "sax": lambda: SAX(n_bins=5),
    "sax-window": lambda: SAX(n_bins=4, window=3),
    "sfa": lambda: SFA(window=4, word_length=3, alphabet_size=3),
    "abba": lambda: ABBA(n_bins=5),
    "clock": lambda: Clock(n_bins=5),
    "one": One,
}
SHARED = ("clock", "one")  # one channel of codes for all channels of the series
every_symbolizer = pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=needs_fabba if name == "abba" else ())
        for name, make in KINDS.items()
    ],
)
#: Of the symbolizers whose symbols differ by channel.
each_of_its_own = pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=name, marks=needs_fabba if name == "abba" else ())
        for name, make in KINDS.items()
        if name not in SHARED
    ],
)


def missing(symbolizer, observed):
    """Where a symbolizer gives no symbol."""
    observed = np.asarray(observed)
    return ~(observed.any(axis=1, keepdims=True) if symbolizer.shared else observed)


@pytest.fixture
def X():
    """Three cases of two channels with missing values; the second case is shorter."""
    X = np.random.default_rng(0).normal(size=(3, 2, 30)).cumsum(axis=-1)
    X[0, 1, 3] = X[1, :, 20:] = X[2, 0, :5] = np.nan
    return X


#: Series of whole numbers, with missing values; whole numbers make ties likely.
series = array_shapes(min_dims=3, max_dims=3, max_side=12).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(-9, 9) | st.just(np.nan))
)


@every_symbolizer
def test_codes_are_small_integers_of_the_shape_of_the_series(make, X):
    symbolizer = make()
    codes = symbolizer.fit_transform(X)
    assert codes.shape == ((3, 1, 30) if symbolizer.shared else X.shape)
    assert codes.dtype == np.uint8
    assert codes.max() <= symbolizer.n_symbols


@every_symbolizer
@settings(deadline=None, max_examples=30)
@given(X=series)
def test_exactly_the_unobserved_points_have_no_symbol(make, X):
    symbolizer = make()
    codes = symbolizer.fit_transform(X)
    np.testing.assert_array_equal(codes == NO_SYMBOL, missing(symbolizer, ~np.isnan(X)))
    assert codes.max() <= symbolizer.n_symbols


@pytest.mark.parametrize(("n_symbols", "dtype"), [(2, np.uint8), (255, np.uint8), (256, np.int16)])
def test_code_dtype_is_the_smallest_that_fits(n_symbols, dtype):
    assert code_dtype(n_symbols) is dtype
    assert np.iinfo(dtype).max >= n_symbols


@pytest.mark.parametrize(
    "symbolizer", [SAX(n_bins=300), SFA(window=4, word_length=2, alphabet_size=20)]
)
def test_many_symbols_do_not_overflow(symbolizer):
    X = np.random.default_rng(0).normal(size=(1, 1, 5000))
    codes = symbolizer.fit_transform(X)
    assert codes.dtype == np.int16
    assert codes.min() == 1
    assert 256 < codes.max() <= symbolizer.n_symbols


@every_symbolizer
def test_state_is_plain_and_rebuilds_the_symbolizer(make, X):
    symbolizer = make().fit(X)
    config, arrays = symbolizer.state()
    assert all(array.dtype.kind in "fiu" for array in arrays.values())
    rebuilt = symbols.from_state(json.loads(json.dumps(config)), arrays)
    assert type(rebuilt) is type(symbolizer)
    assert repr(rebuilt) == repr(symbolizer)
    np.testing.assert_array_equal(rebuilt.transform(X), symbolizer.transform(X))


@pytest.mark.parametrize("kind", [SAX, Clock, ABBA])
def test_settings_given_as_numpy_numbers_are_still_plain(kind):
    config, _ = kind(n_bins=np.int64(5)).state()
    assert json.loads(json.dumps(config))["settings"]["n_bins"] == 5


@every_symbolizer
def test_transform_needs_fit(make, X):
    with pytest.raises(NotFittedError, match="call fit"):
        make().transform(X)


@every_symbolizer
def test_another_number_of_channels_is_refused(make, X):
    with pytest.raises(InvalidInputError, match=r"1 channels.*fitted on 2"):
        make().fit(X).transform(X[:, :1])


@every_symbolizer
@settings(deadline=None, max_examples=30)
@given(X=series, factor=st.floats(0.1, 10), shift=st.integers(-10, 10))
def test_scale_and_offset_of_a_channel_change_no_code(make, X, factor, shift):
    symbolizer = make()
    codes = symbolizer.fit_transform(X)
    Y = X.copy()
    Y[:, 0] = Y[:, 0] * factor + shift
    np.testing.assert_array_equal(symbolizer.transform(Y), codes)
    np.testing.assert_array_equal(make().fit_transform(Y), codes)


@every_symbolizer
@pytest.mark.parametrize("factor", [1e300, 1e-300])
def test_huge_and_tiny_values_are_values_like_others(make, X, factor):
    symbolizer = make().fit(X)
    np.testing.assert_array_equal(symbolizer.transform(X * factor), symbolizer.transform(X))


@every_symbolizer
def test_cases_do_not_see_each_other(make, X):
    symbolizer = make().fit(X)
    codes = symbolizer.transform(X)
    np.testing.assert_array_equal(symbolizer.transform(X[::-1]), codes[::-1])
    for case in range(len(X)):
        np.testing.assert_array_equal(symbolizer.transform(X[case : case + 1])[0], codes[case])
    np.testing.assert_array_equal(make().fit(X[::-1]).transform(X), codes)


@pytest.mark.parametrize("name", ["sax", "sax-window", "sfa"])
def test_the_size_of_the_blocks_changes_nothing(name, X, monkeypatch):
    codes = KINDS[name]().fit_transform(X)
    monkeypatch.setattr(f"timesliver.symbols.{name[:3]}.BLOCK", 1)
    np.testing.assert_array_equal(KINDS[name]().fit_transform(X), codes)


@every_symbolizer
@settings(deadline=None, max_examples=30)
@given(X=series, padding=st.integers(1, 9))
def test_padding_changes_no_code(make, X, padding):
    padded = np.pad(X, ((0, 0), (0, 0), (0, padding)), constant_values=np.nan)
    symbolizer = make()
    codes = symbolizer.fit_transform(X)
    n_timepoints = X.shape[-1]
    np.testing.assert_array_equal(symbolizer.transform(padded)[..., :n_timepoints], codes)
    np.testing.assert_array_equal(make().fit_transform(padded)[..., :n_timepoints], codes)


@every_symbolizer
def test_unequal_lengths_give_the_codes_of_each_case_alone(make, X):
    cases = [X[0], X[1, :, :20], X[2, :, :3]]
    symbolizer = make().fit(X)
    together = symbolizer.transform(cases)
    for codes, case in zip(together, cases, strict=True):
        np.testing.assert_array_equal(
            codes[:, : case.shape[-1]], symbolizer.transform(case[None])[0]
        )
        assert np.all(codes[:, case.shape[-1] :] == NO_SYMBOL)


@every_symbolizer
def test_masked_points_have_no_symbol(make, X):
    symbolizer = make().fit(X)
    keep = np.arange(X.shape[-1]) % 3 > 0
    masked = as_series(X).mask(np.tile(keep, (len(X), 1)))
    np.testing.assert_array_equal(
        symbolizer.transform(masked) == NO_SYMBOL, missing(symbolizer, ~np.isnan(X) & keep)
    )


@each_of_its_own
def test_a_constant_channel_has_one_symbol(make, X):
    X[0, 0] = 0.1
    codes = make().fit_transform(X)
    assert len(np.unique(codes[0, 0])) == 1
    assert NO_SYMBOL not in codes[0, 0]


@every_symbolizer
@pytest.mark.parametrize("n_timepoints", [1, 2])
def test_one_or_two_time_points_have_symbols(make, n_timepoints):
    X = np.arange(3.0 * n_timepoints).reshape(3, 1, n_timepoints)
    codes = make().fit_transform(X)
    assert codes.shape == X.shape
    assert codes.min() >= 1


@each_of_its_own
def test_a_channel_missing_in_training_can_come_later(make, X):
    Y = X.copy()
    Y[:, 1] = np.nan
    symbolizer = make().fit(Y)
    assert np.all(symbolizer.transform(Y)[:, 1] == NO_SYMBOL)
    codes = symbolizer.transform(X)[:, 1]
    np.testing.assert_array_equal(codes == NO_SYMBOL, np.isnan(X[:, 1]))
    assert codes.max() <= symbolizer.n_symbols


@every_symbolizer
def test_infinite_values_are_refused(make, X):
    symbolizer = make().fit(X)
    X[1, 0, 7] = -np.inf
    for method in (symbolizer.fit, symbolizer.transform):
        with pytest.raises(InvalidInputError, match="case 1, channel 0, time point 7"):
            method(X)


@every_symbolizer
def test_the_series_given_stay_as_they_are(make, X):
    before = X.copy()
    make().fit_transform(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", ["sax", "sfa", "abba", "clock", "one"])
def test_create_by_name(name):
    symbolizer = symbols.create(name, 9)
    assert symbolizer.name == name
    assert symbolizer.n_symbols == (1 if name == "one" else 9)
    assert repr(symbols.create(name)) == repr(type(symbolizer)())
    assert name in symbols.names()


def test_create_returns_the_instance_given():
    symbolizer = SAX(n_bins=3)
    assert symbols.create(symbolizer, 9) is symbolizer


@pytest.mark.parametrize("name", ["SAX", "", None, ["sax"]])
def test_create_names_the_known_ones_when_the_name_is_unknown(name):
    with pytest.raises(InvalidParameterError, match="'sax', 'sfa', 'abba', 'clock', 'one'"):
        symbols.create(name, 9)


@pytest.mark.parametrize(
    ("name", "n_bins"),
    [
        *product(["sax", "sfa", "abba"], [1, 0, -3, 2.5, True, "5", 40_000]),
        *product(["clock"], [0, -3, 2.5, True, "5", 40_000]),
    ],
)
def test_impossible_numbers_of_bins_are_refused(name, n_bins):
    with pytest.raises(InvalidParameterError):
        symbols.create(name, n_bins)


@every_symbolizer
def test_settings_are_those_of_scikit_learn(make, X):
    symbolizer = make()
    again = clone(symbolizer.fit(X))
    assert again.get_params() == symbolizer.get_params()
    assert again.n_channels_ is None
    for name, value in symbolizer.get_params().items():
        assert getattr(again.set_params(**{name: value}), name) == value


@pytest.mark.parametrize("kind", [SAX, ABBA, Clock])
def test_settings_changed_later_are_checked_by_fit(kind, X):
    with pytest.raises(InvalidParameterError, match="n_bins must be a whole number"):
        kind().set_params(n_bins=0).fit(X)


def test_a_symbolizer_of_the_user(X):
    class Sign(Symbolizer):
        name = "sign"
        n_symbols = 2

        def _transform(self, series):
            return np.where(series.values < 0, 1, 2)

    codes = Sign().fit_transform(X)
    np.testing.assert_array_equal(codes, np.where(np.isnan(X), 0, np.where(X < 0, 1, 2)))
    assert symbols.create(Sign()).name == "sign"
    with pytest.raises(InvalidParameterError, match="there is no symbolizer 'sign'"):
        symbols.create("sign")
