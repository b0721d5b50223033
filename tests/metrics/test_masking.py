import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from classifier.conftest import bumps, small
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.metrics.masking import (
    count_points,
    mask_points,
    rank_points,
    read_scores,
    to_plain,
    top_points,
)
from timesliver.metrics.summary import Summary
from timesliver.series import as_series

rng = np.random.default_rng(0)


def test_the_highest_scores_are_marked():
    scores = np.array([[0.1, 0.9, 0.5, 0.2], [4.0, 3.0, 2.0, 1.0]])
    found = top_points(scores, 50)
    np.testing.assert_array_equal(found, [[0, 1, 1, 0], [1, 1, 0, 0]])
    assert found.dtype == bool


def test_nothing_for_0_and_everything_for_100():
    scores = rng.normal(size=(5, 7))
    lengths = np.array([7, 1, 3, 6, 7])
    assert not top_points(scores, 0).any()
    assert top_points(scores, 100).all()
    np.testing.assert_array_equal(top_points(scores, 100, lengths).sum(axis=1), lengths)
    assert not top_points(scores, 0, lengths).any()


@pytest.mark.parametrize("length", [1, 30, 100, 200, 3000])
def test_the_number_of_points_is_the_exact_ceiling(length):
    percents = np.arange(101)
    exact = -(-percents * length // 100)
    assert [int(count_points(np.array([length]), float(p))[0]) for p in percents] == exact.tolist()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**31), st.floats(0, 100), st.integers(1, 4))
def test_as_sorting_each_case_by_hand(seed, percent, levels):
    random = np.random.default_rng(seed)
    scores = random.integers(0, levels, size=(4, 9)).astype(float)
    lengths = random.integers(1, 10, size=4)
    marked = top_points(scores, percent, lengths, seed)
    for row, length, mask in zip(scores, lengths, marked, strict=True):
        assert not mask[length:].any()
        chosen, left = row[:length][mask[:length]], row[:length][~mask[:length]]
        assert len(chosen) == count_points(length, percent)
        assert len(chosen) == 0 or len(left) == 0 or chosen.min() >= left.max()


def test_padding_is_never_marked_whatever_its_score():
    scores = np.array([[1.0, 2.0, 9.0, 9.0], [1.0, 2.0, 3.0, 4.0]])
    found = top_points(scores, 50, lengths=[2, 4])
    np.testing.assert_array_equal(found, [[0, 1, 0, 0], [0, 0, 1, 1]])


def test_ties_favour_no_place():
    n_cases = 4000
    share = top_points(np.zeros((n_cases, 10)), 20).mean(axis=0)
    # five standard deviations of a share of 0.2
    np.testing.assert_allclose(share, 0.2, atol=5 * np.sqrt(0.2 * 0.8 / n_cases))


def test_ties_are_broken_alike_by_one_seed_and_not_by_another():
    scores = np.zeros((20, 50))
    once = top_points(scores, 30, random_state=3)
    np.testing.assert_array_equal(once, top_points(scores, 30, random_state=3))
    np.testing.assert_array_equal(once[:7], top_points(scores[:7], 30, random_state=3))
    assert (once != top_points(scores, 30, random_state=4)).any()
    assert (once[0] != once[1]).any()


def test_fewer_points_are_among_more():
    scores = rng.integers(0, 3, size=(10, 40))
    fewer = np.zeros(scores.shape, dtype=bool)
    for percent in range(0, 101, 5):
        more = top_points(scores, percent)
        assert more[fewer].all()
        fewer = more


def test_ranks_are_a_permutation():
    ranks = rank_points(rng.integers(0, 2, size=(6, 11)))
    np.testing.assert_array_equal(np.sort(ranks, axis=1), np.tile(np.arange(11), (6, 1)))


def test_scores_are_not_changed():
    scores = rng.normal(size=(2, 5))
    before = scores.copy()
    top_points(scores, 40, lengths=[2, 5])
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize("masking", ["no_symbol", "zero"])
def test_nothing_is_left_of_masked_values(masking):
    X, y, _ = bumps(n_channels=2)
    model = small().fit(X, y)
    keep = top_points(rng.normal(size=(len(X), X.shape[2])), 40)
    changed = np.where(keep[:, None], X, 100 * rng.normal(size=X.shape))
    one, other = mask_points(X, keep, masking), mask_points(changed, keep, masking)
    ((symbolizer,),) = model.symbolizers_
    codes = symbolizer.transform(one)
    np.testing.assert_array_equal(codes, symbolizer.transform(other))
    np.testing.assert_array_equal(model.logits(one), model.logits(other))
    assert (codes != symbolizer.transform(as_series(X))).any()
    assert ((codes == 0) == ~np.broadcast_to(keep[:, None], X.shape)).all() == (
        masking == "no_symbol"
    )
    if masking == "zero":
        np.testing.assert_array_equal(
            model.logits(one), model.logits(np.where(keep[:, None], X, 0))
        )


def test_zeros_are_observed_and_stay_inside_the_case():
    X = [np.array([1.0, np.nan, 3.0]), np.array([1.0, 2.0, 3.0, 4.0, 5.0])]
    keep = np.array([[True, True, False, True, True], [True, False, False, False, False]])
    masked = mask_points(X, keep, "zero")
    np.testing.assert_array_equal(masked.lengths, [3, 5])
    np.testing.assert_array_equal(masked.observed[:, 0], [[1, 0, 1, 0, 0], [1, 1, 1, 1, 1]])
    short, long = to_plain(masked, X)
    np.testing.assert_array_equal(short, [1, np.nan, 0])
    np.testing.assert_array_equal(long, [1, 0, 0, 0, 0])
    nothing = mask_points(X, keep)
    np.testing.assert_array_equal(nothing.observed[1, 0], keep[1])
    np.testing.assert_array_equal(nothing.lengths, [3, 5])


def test_plain_series_have_the_form_they_came_in():
    table, cube = rng.normal(size=(3, 4)), rng.normal(size=(3, 2, 4))
    np.testing.assert_array_equal(to_plain(as_series(table), table), table)
    np.testing.assert_array_equal(to_plain(as_series(cube), cube), cube)
    cases = [cube[0, :, :2], cube[1]]
    for found, given_case in zip(to_plain(as_series(cases), cases), cases, strict=True):
        np.testing.assert_array_equal(found, given_case)
    np.testing.assert_array_equal(to_plain(as_series(table), as_series(table)), table[:, None])


@pytest.mark.parametrize("percent", [-1, 100.5, np.nan, np.inf, "5", None])
def test_bad_percentages(percent):
    with pytest.raises(InvalidParameterError, match="number, at least 0 and at most 100"):
        top_points(np.zeros((2, 3)), percent)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ([[1.0, np.nan]], "case 0, time point 1 is nan"),
        ([[1.0, 2.0], [-np.inf, 0.0]], "case 1, time point 0 is -inf"),
        (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"),
        (np.zeros(3), r"shape \(3,\)"),
        (np.zeros((0, 3)), r"shape \(0, 3\)"),
        ([["a", "b"]], "must be numbers"),
    ],
)
def test_bad_scores(scores, message):
    with pytest.raises(InvalidInputError, match=message):
        top_points(scores, 10)


def test_scores_that_do_not_fit():
    with pytest.raises(InvalidInputError, match=r"scores of shape \(2, 5\) do not fit 2 series"):
        read_scores(np.zeros((2, 5)), as_series(np.zeros((2, 6))))
    for lengths in ([1, 2, 3], [0, 3], [3, 4]):
        with pytest.raises(InvalidInputError, match="lengths must be one whole number from 1 to 3"):
            top_points(np.zeros((2, 3)), 10, lengths)
    with pytest.raises(InvalidParameterError, match="masking='mean' is unknown"):
        mask_points(np.zeros((2, 3)), np.ones((2, 3), dtype=bool), "mean")
    with pytest.raises(InvalidInputError, match="must be a boolean array"):
        mask_points(np.zeros((2, 3)), np.ones((2, 3)))


def test_scores_of_another_class_than_the_predicted_are_refused(fitted_bumps):
    model, X = fitted_bumps
    read_scores(model.explain(X))
    with pytest.raises(InvalidInputError, match="must explain the predicted classes"):
        read_scores(model.explain(X, target=1 - model.predict(X)))


@pytest.fixture(scope="module")
def fitted_bumps():
    X, y, _ = bumps()
    return small(max_epochs=5).fit(X, y), X


def test_a_summary():
    found = Summary(np.array([1.0, 2.0, 6.0]))
    assert float(found) == found.mean == 3
    assert found.spread == pytest.approx(np.sqrt((4 + 1 + 9) / 2))
    assert np.isnan(Summary(np.array([1.0])).spread)
