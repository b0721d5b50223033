import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timesliver.errors import InvalidParameterError
from timesliver.symbols import Clock, One

nan = np.nan


@settings(deadline=None)
@given(length=st.integers(1, 60), n_bins=st.integers(1, 12), padding=st.integers(0, 5))
def test_a_part_holds_every_point_of_its_share_of_the_series(length, n_bins, padding):
    X = np.pad(np.zeros((1, 2, length)), ((0, 0), (0, 0), (0, padding)), constant_values=nan)
    codes = Clock(n_bins).fit_transform(X)
    expected = [1 + int(n_bins * t / length) for t in range(length)]
    assert codes.tolist() == [[expected + [0] * padding]]


def test_every_case_has_its_own_length():
    codes = Clock(2).fit_transform([[1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [1.0]])
    assert codes.tolist() == [[[1, 2, 0, 0]], [[1, 1, 2, 2]], [[1, 0, 0, 0]]]


def test_the_values_play_no_part():
    rng = np.random.default_rng(0)
    clock = Clock(3).fit(rng.normal(size=(2, 2, 9)))
    one, other = (clock.transform(rng.normal(size=(2, 2, 9))) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("symbolizer", [Clock(1), One()])
def test_a_point_has_a_symbol_if_any_channel_was_observed(symbolizer):
    X = np.array([[[1.0, nan, 3.0, nan], [nan, nan, 1.0, 1.0]]])
    assert symbolizer.fit_transform(X).tolist() == [[[1, 0, 1, 1]]]


def test_one_is_the_same_whatever_number_of_symbols_is_asked_for():
    assert One.with_bins(20).n_symbols == One().n_symbols == 1
    assert One().get_params() == {}


@pytest.mark.parametrize("n_bins", [0, -1, 2.5, True, 32767])
def test_bad_settings_are_named(n_bins):
    with pytest.raises(InvalidParameterError, match="n_bins"):
        Clock(n_bins)
