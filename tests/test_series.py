import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from timesliver.errors import InvalidInputError, TimeSliverError
from timesliver.series import PaddedSeries, as_series, equal_slices, observed_lengths

nan = np.nan


def test_three_dimensions_are_taken_as_they_are():
    X = np.arange(24.0).reshape(2, 3, 4)
    series = as_series(X)
    np.testing.assert_array_equal(series.values, X)
    assert series.observed.all()
    assert series.lengths.tolist() == [4, 4]
    assert (len(series), series.n_channels, series.n_timepoints) == (2, 3, 4)


def test_two_dimensions_are_one_channel():
    X = np.arange(8.0).reshape(2, 4)
    np.testing.assert_array_equal(as_series(X).values, X[:, None, :])


def test_a_list_of_unequal_cases_is_padded():
    series = as_series([np.array([[1, 2], [3, 4]]), np.array([[5, 6, 7], [8, 9, 10]])])
    assert series.values.tolist() == [[[1, 2, 0], [3, 4, 0]], [[5, 6, 7], [8, 9, 10]]]
    assert series.observed[0].tolist() == [[True, True, False]] * 2
    assert series.observed[1].all()
    assert series.lengths.tolist() == [2, 3]


@pytest.mark.parametrize(
    "X",
    [
        [[1, 2, 3], [4, 5]],
        ([1, 2, 3], (4, 5)),
        [np.array([1.0, 2.0, 3.0]), np.array([[4.0, 5.0]])],
        [torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0])],
        np.array([[1.0, 2.0, 3.0], [4.0, 5.0, nan]]),
        np.array([[1, 2, 3], [4, 5, None]], dtype=object),
        torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, nan]]),
    ],
)
def test_every_form_of_the_same_series_reads_alike(X):
    series = as_series(X)
    assert series.values.tolist() == [[[1, 2, 3]], [[4, 5, 0]]]
    assert series.observed.tolist() == [[[True] * 3], [[True, True, False]]]
    assert series.lengths.tolist() == [3, 2]


def test_a_data_frame_is_one_channel_with_a_case_per_row():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame([[1.0, 2.0], [3.0, nan]])
    assert as_series(frame).values.tolist() == [[[1, 2]], [[3, 0]]]


# o marks an observed point, . a missing one; one string per channel
@pytest.mark.parametrize(
    ("channels", "length"),
    [
        (["oooo"], 4),
        (["oo.."], 2),
        (["..oo"], 4),
        (["o.o."], 3),
        (["oo..", "ooo."], 3),
        (["....", "o..."], 1),
        (["....", "...."], 1),
    ],
)
def test_the_length_ends_with_the_last_point_observed_in_any_channel(channels, length):
    observed = np.array([[mark == "o" for mark in channel] for channel in channels])
    series = as_series(np.where(observed, 7.0, nan)[None])
    assert series.lengths.tolist() == [length]
    np.testing.assert_array_equal(series.observed[0], observed)
    np.testing.assert_array_equal(series.values[0], np.where(observed, 7.0, 0.0))


@given(
    array_shapes(min_dims=3, max_dims=3, max_side=6).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.floats(-9, 9) | st.just(nan))
    )
)
def test_values_are_finite_and_nothing_observed_is_lost(X):
    series = as_series(X)
    assert np.isfinite(series.values).all()
    np.testing.assert_array_equal(np.where(series.observed, series.values, nan), X)
    for case, length in enumerate(series.lengths):
        assert not series.observed[case, :, length:].any()
        assert length == 1 or series.observed[case, :, length - 1].any()


@pytest.mark.parametrize(
    ("given_type", "kept_as"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (">f4", np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
        (np.int8, np.float64),
        (np.int64, np.float64),
        (bool, np.float64),
        (object, np.float64),
    ],
)
def test_values_are_float32_or_float64(given_type, kept_as):
    X = np.array([[0, 1, 1]], dtype=given_type)
    for form in (X, list(X)):
        series = as_series(form)
        assert series.values.dtype == np.dtype(kept_as)
        assert series.values.tolist() == [[[0, 1, 1]]]


def test_missing_values_keep_float32():
    X = np.array([[1, nan]], dtype=np.float32)
    series = as_series(X)
    assert series.values.dtype == np.float32
    assert series.mask(np.array([[True, False]])).values.dtype == np.float32


def test_the_array_given_stays_as_it_is():
    X = np.array([[1.0, nan, 2.0]])
    as_series(X).mask(np.zeros((1, 3), dtype=bool))
    np.testing.assert_array_equal(X, [[1.0, nan, 2.0]])


def test_padded_series_pass_unchanged():
    series = as_series(np.ones((2, 3)))
    assert as_series(series) is series


@pytest.mark.parametrize("cases", [slice(1, 3), np.array([2, 0]), np.array([True, False, True])])
def test_choosing_cases(cases):
    series = as_series([[1.0], [2.0, 3.0], [4.0, nan, 5.0]])
    chosen = series[cases]
    assert isinstance(chosen, PaddedSeries)
    np.testing.assert_array_equal(chosen.values, series.values[cases])
    np.testing.assert_array_equal(chosen.observed, series.observed[cases])
    np.testing.assert_array_equal(chosen.lengths, np.array([1, 2, 3])[cases])


def test_masking_time_points_of_all_channels():
    series = as_series(np.arange(1.0, 7.0).reshape(1, 2, 3))
    masked = series.mask(np.array([[True, False, False]]))
    assert masked.values.tolist() == [[[1, 0, 0], [4, 0, 0]]]
    assert masked.observed.tolist() == [[[True, False, False]] * 2]
    assert masked.lengths.tolist() == [3]


def test_masking_points_of_single_channels_brings_nothing_missing_back():
    series = as_series(np.array([[[1.0, nan], [3.0, 4.0]]]))
    masked = series.mask(np.array([[[True, True], [False, True]]]))
    assert masked.values.tolist() == [[[1, 0], [0, 4]]]
    assert masked.observed.tolist() == [[[True, False], [False, True]]]


@pytest.mark.parametrize(
    "keep",
    [
        np.ones((2, 3)),
        np.ones((2, 4), dtype=bool),
        np.ones((1, 3), dtype=bool),
        np.ones(3, dtype=bool),
        np.ones((2, 2, 3), dtype=bool),
    ],
)
def test_a_mask_of_another_type_or_shape_is_refused(keep):
    with pytest.raises(InvalidInputError, match=r"boolean array of shape \(2, 3\)"):
        as_series(np.ones((2, 3))).mask(keep)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(5), r"got shape \(5,\).*leading axis"),
        (np.ones((1, 2, 3, 4)), r"got shape \(1, 2, 3, 4\)"),
        (3.0, r"got shape \(\)"),
        (None, r"got shape \(\)"),
        ([], "empty"),
        (np.ones((0, 1, 5)), r"empty.*\(0, 1, 5\)"),
        (np.ones((2, 1, 0)), r"empty.*\(2, 1, 0\)"),
        ([[], []], "empty"),
        ([1.0, 2.0, 3.0], r"case 0 has shape \(\)"),
        ([np.ones((2, 3)), np.ones((1, 3))], r"case 0 .*\(2, 3\).*case 1 .*\(1, 3\)"),
        ([np.ones((1, 2, 3))], r"case 0 has shape \(1, 2, 3\)"),
        ([[1.0, 2.0], ["a", "b"]], "case 1 must hold real numbers"),
        (np.array([["a", "b"]]), "must hold real numbers"),
        (np.ones((1, 2), dtype=complex), "Complex data not supported: the series"),
        ({"x": [1.0]}, "cannot be read as an array of numbers"),
        (np.array([[1.0, "a"]], dtype=object), "cannot be read as an array of numbers"),
        (torch.ones(1, 2, requires_grad=True), "cannot be read.*detach"),
        (np.array([[1.0, np.inf]]), "infinite value in case 0, channel 0, time point 1"),
        ([np.ones((2, 2)), np.array([[1.0], [-np.inf]])], "case 1, channel 1, time point 0"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(X, message):
    with pytest.raises(InvalidInputError, match=message):
        as_series(X)


def test_the_error_is_one_of_the_package_and_a_value_error():
    assert issubclass(InvalidInputError, TimeSliverError)
    assert issubclass(InvalidInputError, ValueError)


def test_values_with_gaps_read_as_they_were():
    X = np.array([[[1.0, nan, 3.0], [nan, 2.0, nan]]], dtype=np.float32)
    gaps = as_series(X).with_gaps
    np.testing.assert_array_equal(gaps, X)
    assert gaps.dtype == np.float32


def test_padding_to_a_length():
    series = as_series([[1.0, 2.0], [3.0]])
    longer = series.padded_to(4)
    assert longer.values.tolist() == [[[1, 2, 0, 0]], [[3, 0, 0, 0]]]
    assert longer.observed.sum() == 3
    assert longer.lengths.tolist() == [2, 1]
    assert series.padded_to(2) is series
    assert series.padded_to(1) is series


@given(
    X=array_shapes(min_dims=3, max_dims=3, max_side=7).flatmap(
        lambda shape: arrays(np.float64, shape, elements=st.floats(-9, 9) | st.just(nan))
    ),
    step=st.integers(1, 9),
)
def test_means_of_successive_points(X, step):
    series = as_series(X)
    means = series.averaged(step)
    n = -(-X.shape[2] // step)
    assert means.values.shape == (*X.shape[:2], n)
    assert means.lengths.tolist() == [-(-length // step) for length in series.lengths.tolist()]
    for i in range(n):
        block = X[:, :, i * step : (i + 1) * step]
        count = (~np.isnan(block)).sum(2)
        np.testing.assert_array_equal(means.observed[:, :, i], count > 0)
        expected = np.nansum(block, 2) / np.maximum(count, 1)
        np.testing.assert_allclose(means.values[:, :, i], expected, atol=1e-12)
    if step == 1:
        assert means is series


def test_means_keep_the_type():
    X = np.ones((1, 1, 4), dtype=np.float32)
    assert as_series(X).averaged(2).values.dtype == np.float32


def test_moments_and_standardised_values():
    X = np.array([[[0.0, 4.0, nan], [5.0, 5.0, 5.0]], [[2.0, 2.0, 2.0], [5.0, 5.0, nan]]])
    series = as_series(X)
    mean, scale = series.moments()
    assert mean.tolist() == [2, 5]
    np.testing.assert_allclose(scale, [np.std([0, 4, 2, 2, 2]), 5])  # without spread: the size
    z = series.standardized(mean, scale)
    np.testing.assert_allclose(z[0, 0], [-2 / scale[0], 2 / scale[0], 0])
    assert (z[:, 1] == 0).all()
    assert (z[~series.observed] == 0).all()
    assert np.abs(as_series(1e30 * X).standardized(mean, scale)).max() == 1e4


@given(
    arrays(bool, array_shapes(min_dims=3, max_dims=3, max_side=6)),
)
def test_the_length_is_that_up_to_the_last_observed_point(observed):
    for case, length in zip(observed, observed_lengths(observed), strict=True):
        seen = np.flatnonzero(case.any(axis=0))
        assert length == (seen[-1] + 1 if len(seen) else 1)


@given(st.integers(1, 200), st.integers(1, 100), st.integers(1, 1000))
def test_slices_cover_all_cases_within_the_budget(n_cases, numbers, budget):
    slices = equal_slices(n_cases, numbers, budget)
    sizes = [len(range(n_cases)[part]) for part in slices]
    assert sum(sizes) == n_cases
    assert [i for part in slices for i in range(n_cases)[part]] == list(range(n_cases))
    assert max(sizes) <= max(1, budget // numbers)
    assert min(sizes) > 0
