import sys
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timesliver.errors import InvalidParameterError, MissingExtraError, NotFittedError
from timesliver.symbols import ABBA

needs_fabba = pytest.mark.skipif(find_spec("fABBA") is None, reason="needs fABBA (extra abba)")
nan = np.nan


@pytest.fixture
def walks():
    return np.random.default_rng(0).normal(size=(6, 2, 80)).cumsum(axis=-1)


def textbook_pieces(z, tol):
    """Chain of the longest straight pieces within the tolerance: (length, increment)."""
    pieces, start, end = [], 0, 1
    while end < len(z):
        while end + 1 < len(z):
            line = np.linspace(z[start], z[end + 1], end + 2 - start)
            if np.sum((line - z[start : end + 2]) ** 2) > tol * (end - start):
                break
            end += 1
        pieces.append((end - start, z[end] - z[start]))
        start, end = end, end + 1
    return pieces or [(1, 0.0)]


def textbook_codes(x, abba):
    """Symbols of one complete series: for each piece, the nearest centre of the first channel."""
    spread = np.std(x)
    z = np.round((x - np.mean(x)) / (spread if spread > 1e-9 else 1.0), 8)
    codes = []
    for length, increment in textbook_pieces(z, abba.tol):
        distances = [
            (abba.scale * (length - centre[0]) / abba.deviations_[0, 0]) ** 2
            + ((increment - centre[1]) / abba.deviations_[0, 1]) ** 2
            for centre in abba.centres_[0]
        ]
        codes += [1 + int(np.nanargmin(distances))] * length
    return (codes[:1] + codes)[: len(x)]


@needs_fabba
@pytest.mark.parametrize("tol", [0.01, 0.1, 0.5])
def test_equals_the_textbook(walks, tol):
    abba = ABBA(n_bins=7, tol=tol, scale=0.7)
    codes = abba.fit_transform(walks)
    for case, x in enumerate(walks[:, 0]):
        assert codes[case, 0].tolist() == textbook_codes(x, abba)


@needs_fabba
@settings(deadline=None, max_examples=50)
@given(x=st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_new_series_get_the_symbols_of_the_nearest_training_pieces(x):
    training = np.random.default_rng(0).normal(size=(4, 1, 60)).cumsum(axis=-1)
    abba = ABBA(n_bins=6, tol=0.1).fit(training)
    x = np.round(np.array(x), 2)
    assert abba.transform(x[None])[0, 0].tolist() == textbook_codes(x, abba)


@needs_fabba
def test_equal_pieces_have_equal_symbols():
    # up 4 in 2 steps, down 4 in 4 steps, up again: two kinds of pieces, the fall comes first
    X = np.array([[0.0, 2.0, 4.0, 3.0, 2.0, 1.0, 0.0, 2.0, 4.0]])
    abba = ABBA(n_bins=5, tol=0.01)
    assert abba.fit_transform(X).tolist() == [[[2, 2, 2, 1, 1, 1, 1, 2, 2]]]
    increment = 4 / X.std()
    np.testing.assert_allclose(abba.centres_[0, :2], [(4, -increment), (2, increment)], atol=1e-7)
    assert np.isnan(abba.centres_[0, 2:]).all()
    # lengths 2, 4, 2; increments up, down, up
    deviations = [np.std([2, 4, 2]), np.std([increment, -increment, increment])]
    np.testing.assert_allclose(abba.deviations_[0], deviations, atol=1e-7)


@needs_fabba
def test_missing_points_are_left_out_of_the_chain():
    X = np.array([[0.0, 2.0, 4.0, 3.0, 2.0, 1.0, 0.0, 2.0, 4.0]])
    gaps = [0, 1, 1, 4, 9]
    codes = ABBA(n_bins=5, tol=0.01).fit_transform(X)
    with_gaps = ABBA(n_bins=5, tol=0.01).fit_transform(np.insert(X, gaps, nan, axis=1))
    np.testing.assert_array_equal(with_gaps, np.insert(codes, gaps, 0, axis=2))


@needs_fabba
def test_at_most_n_bins_symbols_are_used_and_all_of_them(walks):
    abba = ABBA(n_bins=6)
    codes = abba.fit_transform(walks)
    assert not np.isnan(abba.centres_).any()
    for channel in range(2):
        assert np.unique(codes[:, channel]).tolist() == [1, 2, 3, 4, 5, 6]


@needs_fabba
def test_symbols_go_from_the_steepest_fall_to_the_steepest_rise(walks):
    abba = ABBA(n_bins=6).fit(walks)
    assert np.all(np.diff(abba.centres_[..., 1], axis=1) > 0)


@needs_fabba
def test_scale_zero_compares_increments_only():
    # rises by 4 in one step and in four, a fall by 4 in two
    X = np.array([[0.0, 4.0, 2.0, 0.0, 1.0, 2.0, 3.0, 4.0]])
    with_length = ABBA(n_bins=5, tol=0.01, scale=1).fit_transform(X)
    without = ABBA(n_bins=5, tol=0.01, scale=0).fit_transform(X)
    assert len(np.unique(with_length)) == 3
    assert without.tolist() == [[[2, 2, 1, 1, 2, 2, 2, 2]]]


@needs_fabba
def test_a_greater_tolerance_makes_longer_pieces(walks):
    fine, coarse = (ABBA(tol=tol).fit(walks).centres_[..., 0] for tol in (0.01, 1.0))
    assert np.nanmax(fine) < np.nanmax(coarse)


@needs_fabba
def test_the_order_of_the_training_cases_plays_no_part(walks):
    there, back = ABBA(n_bins=6).fit(walks), ABBA(n_bins=6).fit(walks[::-1])
    np.testing.assert_array_equal(there.centres_, back.centres_)
    np.testing.assert_array_equal(there.deviations_, back.deviations_)


@needs_fabba
@pytest.mark.parametrize("factor", [0.1, 1 / 3, 3.7, 7.1, 123.4])
def test_a_piece_on_the_edge_of_the_tolerance_ends_there_at_every_scale(factor):
    # Mean 1 and variance 1: the z-scores are 1, 0, 0, 1, 0, -2. The points 1, 0, 0 and 1, 0, -2
    # are both at a squared distance of exactly 1/4 from a straight line.
    X = np.array([[2.0, 1.0, 1.0, 2.0, 1.0, -1.0]])
    # increments -1, 1 and -3, numbered from the steepest fall
    expected = [[[2, 2, 2, 3, 1, 1]]]
    assert ABBA(n_bins=9, tol=1 / 4).fit_transform(X * factor + 1.3).tolist() == expected


@needs_fabba
def test_learning_from_a_sample_of_the_pieces(walks, monkeypatch):
    monkeypatch.setattr("timesliver.symbols.abba._MOST_PIECES", 3)
    abba = ABBA(n_bins=6).fit(walks)
    assert np.sum(~np.isnan(abba.centres_[0, :, 0])) == 3
    assert abba.transform(walks).min() == 1


@needs_fabba
def test_nothing_is_printed_and_no_global_random_number_is_drawn(walks, capfd):
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = ABBA(n_bins=4).fit(walks)
    second = ABBA(n_bins=4).fit(walks)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(first.centres_, second.centres_)
    assert capfd.readouterr() == ("", "")


@pytest.fixture
def no_fabba(monkeypatch):
    monkeypatch.setitem(sys.modules, "fABBA", None)


def test_without_fabba_fit_names_the_extra(no_fabba, walks):
    abba = ABBA(n_bins=4)
    with pytest.raises(MissingExtraError, match=r"fABBA.*timesliver\[abba\]"):
        abba.fit(walks)
    with pytest.raises(NotFittedError):
        abba.transform(walks)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_bins": 1},
        {"tol": -0.1},
        {"tol": nan},
        {"tol": "0.1"},
        {"scale": -1},
        {"scale": np.inf},
        {"random_state": -1},
        {"random_state": None},
    ],
)
def test_bad_settings_are_named(settings):
    with pytest.raises(InvalidParameterError, match=next(iter(settings))):
        ABBA(**settings)
