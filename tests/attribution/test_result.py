import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from timesliver import Attribution
from timesliver.attribution.intervals import Interval, strong_stretches
from timesliver.errors import InvalidInputError, InvalidParameterError, MissingExtraError


def make(positive, negative=None, target=None, classes=("a", "b"), **parts):
    positive = np.asarray(positive, dtype=float)
    n = len(positive)
    return Attribution(
        positive,
        np.zeros_like(positive) if negative is None else np.asarray(negative, dtype=float),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, dtype=int) if target is None else np.asarray(target),
        np.asarray(classes),
        "by hand",
        **parts,
    )


@st.composite
def maps(draw):
    """Draw evidence of one case; few distinct values make ties, zeros and constant maps likely."""
    shape = (1, draw(st.integers(1, 4)), draw(st.integers(1, 40)))
    few = st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0])
    elements = draw(st.sampled_from([few, st.floats(0, 1e6, allow_subnormal=False)]))
    return tuple(draw(hnp.arrays(np.float64, shape, elements=elements)) for _ in range(2))


# --- checks -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"series": np.zeros((2, 3, 4))}, r"series must have shape \(2, 3, 5\), got \(2, 3, 4\)"),
        ({"probabilities": np.zeros((2, 3))}, r"probabilities must have shape \(2, 2\)"),
        ({"positive_by_symbol": np.zeros((2, 4, 6))}, r"positive_by_symbol .* \(2, 3, 6\)"),
        (
            {"positive_by_symbol": np.zeros((2, 3, 6)), "negative_by_symbol": np.zeros((2, 3, 7))},
            r"negative_by_symbol must have shape \(2, 3, 6\), got \(2, 3, 7\)",
        ),
        ({"target": [0, 2]}, r"target must point to one of the 2 classes, got 0\.\.2"),
        ({"target": [-1, 0]}, r"target must point .* got -1\.\.0"),
        ({"classes": [["a", "b"]]}, "classes must be a list of labels"),
    ],
)
def test_parts_that_do_not_fit(parts, message):
    with pytest.raises(InvalidInputError, match=message):
        make(np.zeros((2, 3, 5)), **parts)


def test_slicing_carries_series_and_probabilities():
    attribution = make(
        np.zeros((3, 1, 2)),
        series=np.arange(6.0).reshape(3, 1, 2),
        probabilities=np.arange(6.0).reshape(3, 2),
    )
    np.testing.assert_array_equal(attribution[1].series, [[[2, 3]]])
    np.testing.assert_array_equal(attribution[[2, 0]].probabilities, [[4, 5], [0, 1]])


def test_lengths_are_those_of_the_series():
    series = np.zeros((3, 2, 5))
    series[0, :, 3:] = np.nan
    series[0, 0] = np.nan  # one channel is enough
    series[1, 1, 4] = np.nan
    series[2] = np.nan
    attribution = make(np.zeros((3, 2, 5)), series=series)
    assert attribution.lengths.tolist() == [3, 5, 1]
    assert replace(attribution, series=None).lengths.tolist() == [5, 5, 5]


def test_entries_know_their_case_and_come_apart_by_class():
    alone = make(np.zeros((3, 1, 2)))
    assert alone.case.tolist() == [0, 1, 2]
    assert alone[[2, 0]].case.tolist() == [2, 0]
    assert [len(one) for one in alone.by_class()] == [3]
    positive = np.arange(12.0).reshape(6, 1, 2)
    every = make(positive, target=[1, 1, 1, 0, 0, 0], case=np.array([4, 5, 6, 4, 5, 6]))
    first, second = every.by_class()
    assert first.target.tolist() == [0, 0, 0]
    assert second.target.tolist() == [1, 1, 1]
    assert first.case.tolist() == second.case.tolist() == [4, 5, 6]
    np.testing.assert_array_equal(first.positive_by_channel, positive[3:])
    with pytest.raises(InvalidInputError, match=r"case must have shape \(6,\)"):
        make(positive, case=np.arange(5))
    frame = every.to_frame()
    assert frame["case"].tolist() == [case for case in [4, 5, 6] * 2 for _ in range(2)]
    assert frame["class"].tolist() == ["b"] * 6 + ["a"] * 6


# --- top ----------------------------------------------------------------------------------------


def test_top_names_place_channel_class_sign_and_share():
    positive, negative = np.zeros((2, 3, 30)), np.zeros((2, 3, 30))
    positive[1, 2, 5:10] = 4
    positive[1, 0, 5:10] = 1
    negative[1, 1, 20:25] = 3
    attribution = make(positive, negative, target=[0, 1])
    strong, weak = attribution.top(k=5, case=1)
    assert strong == Interval(5, 10, 2, "b", "for", 25 / 40)
    assert weak == Interval(20, 25, 1, "b", "against", 15 / 40)
    assert attribution.top(k=1, case=-1) == [strong]
    assert repr(weak) == "Interval(20:25, channel 1, against 'b', share 0.375)"
    assert attribution.top(case=0) == []


def test_top_by_channel_looks_at_each_channel():
    positive = np.zeros((1, 2, 30))
    positive[0, 0, 5:15] = 4
    positive[0, 1, 10:20] = 3
    assert [(i.start, i.stop) for i in make(positive).top()] == [(5, 15)]
    found = make(positive).top(by_channel=True)
    assert [(i.channel, i.start, i.stop) for i in found] == [(0, 5, 15), (1, 10, 20)]
    assert sum(i.share for i in found) == pytest.approx(1)


def test_a_dip_is_bridged_if_both_sides_outweigh_it():
    row = np.array([0, 9, 9, 1, 9, 9, 0, 0, 0, 9, 0.0])
    assert [(i.start, i.stop) for i in make(row[None, None]).top()] == [(1, 6), (9, 10)]


def test_for_and_against_at_the_same_moment_cancel():
    positive = np.array([[[5.0, 5, 5, 9]]])
    assert [(i.start, i.stop) for i in make(positive, [[[5, 5, 5, 1]]]).top()] == [(3, 4)]


def test_constant_evidence_is_one_interval_and_a_single_point_too():
    for n in (1, 7):
        assert make(np.full((1, 1, n), 0.1)).top() == [Interval(0, n, 0, "a", "for", 1.0)]


def test_labels_in_intervals_are_plain():
    for classes, label in ((np.array([3, 5]), 3), (np.array([True, False]), True)):
        (interval,) = make(np.ones((1, 1, 4)), classes=classes).top()
        assert interval.label is label or (interval.label == label and type(interval.label) is int)


def test_bad_requests_for_intervals():
    attribution = make(np.ones((2, 1, 4)))
    with pytest.raises(InvalidParameterError, match="k must be a whole number, at least 1; got 0"):
        attribution.top(0)
    with pytest.raises(IndexError, match="case 2 asked for"):
        attribution.top(case=2)
    with pytest.raises(TypeError):
        attribution.top(case=slice(2))


@settings(deadline=None)
@given(maps(), st.integers(1, 6), st.booleans())
def test_intervals_are_disjoint_sorted_and_inside(scores, k, by_channel):
    attribution = make(*scores)
    found = attribution.top(k, by_channel=by_channel)
    everything = attribution.top(1000, by_channel=by_channel)
    assert found == everything[:k]
    shares = [interval.share for interval in everything]
    assert shares == sorted(shares, reverse=True)
    assert all(0 < share <= 1 + 1e-12 for share in shares)
    assert sum(shares) <= 1 + 1e-9
    n_channels, n = scores[0].shape[1:]
    taken = set()
    for interval in everything:
        assert 0 <= interval.start < interval.stop <= n
        assert 0 <= interval.channel < n_channels
        lane = interval.channel if by_channel else None
        points = {(lane, interval.sign, t) for t in range(interval.start, interval.stop)}
        assert not points & taken
        taken |= points
    net = scores[0][0] - scores[1][0]
    net = net if by_channel else net.sum(0, keepdims=True)
    assert bool(everything) == bool(np.abs(net).max() > 0)
    if everything:  # the strongest point is in an interval of its sign
        row, t = np.unravel_index(np.abs(net).argmax(), net.shape)
        sign = "for" if net[row, t] > 0 else "against"
        assert (int(row) if by_channel else None, sign, int(t)) in taken


@settings(deadline=None)
@given(maps(), st.sampled_from([2.0**-40, 0.5, 2.0**30]), st.booleans())
def test_intervals_do_not_depend_on_the_scale(scores, factor, by_channel):
    scaled = make(*(factor * part for part in scores)).top(9, by_channel=by_channel)
    assert scaled == make(*scores).top(9, by_channel=by_channel)


@given(maps())
def test_swapping_for_and_against_swaps_the_signs(scores):
    def intervals(attribution):
        return {(i.start, i.stop, i.sign) for i in attribution.top(1000)}

    other = {"for": "against", "against": "for"}
    swapped = {(a, b, other[sign]) for a, b, sign in intervals(make(*reversed(scores)))}
    assert swapped == intervals(make(*scores))


@settings(deadline=None)
@given(st.lists(st.integers(-6, 6).filter(bool), min_size=1, max_size=14))
def test_stretches_are_the_maximal_ones(scores):
    """Ruzzo and Tompa: take the best stretch, then do the same on its left and its right."""

    def best_first(begin, end):
        options = [
            (-sum(scores[i:j]), j - i, i, j)
            for i in range(begin, end)
            for j in range(i + 1, end + 1)
            if sum(scores[i:j]) > 0
        ]
        if not options:
            return []
        _, _, i, j = min(options)
        return [*best_first(begin, i), (i, j), *best_first(j, end)]

    def total(stretches):
        return [sum(scores[i:j]) for i, j in stretches]

    found = strong_stretches(np.array(scores, dtype=float), level=0)
    assert total(found) == total(best_first(0, len(scores)))


# --- to_frame -----------------------------------------------------------------------------------


def test_frame_is_tidy_and_without_padding():
    rng = np.random.default_rng(0)
    positive, negative = rng.random((2, 2, 2, 4))
    series = rng.normal(size=(2, 2, 4))
    series[0, :, 3:] = np.nan
    series[1, 0, 1] = np.nan  # missing, but no padding
    frame = make(positive, negative, target=[1, 0], series=series).to_frame()
    assert list(frame) == [
        "case", "channel", "time", "class", "value", "positive", "negative", "net",
    ]  # fmt: skip
    assert len(frame) == 2 * 3 + 2 * 4
    assert not frame.duplicated(["case", "channel", "time"]).any()
    for row in frame.itertuples(index=False):
        where = row.case, row.channel, row.time
        assert row[3] == ("b", "a")[row.case]
        np.testing.assert_equal(row.value, series[where])
        assert (row.positive, row.negative) == (positive[where], negative[where])
        assert row.net == positive[where] - negative[where]
    assert frame["value"].isna().sum() == 1


def test_frame_without_series_has_no_values():
    frame = make(np.zeros((2, 1, 3)), classes=np.array([1.5, 2.5])).to_frame()
    assert "value" not in frame
    assert len(frame) == 6
    assert frame["class"].tolist() == [1.5] * 6
    assert make(np.zeros((0, 1, 3))).to_frame().empty


def test_frame_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="timesliver\\[pandas\\]"):
        make(np.zeros((1, 1, 3))).to_frame()


# --- the rest -----------------------------------------------------------------------------------


def test_html_is_written_by_the_report(monkeypatch):
    report = pytest.importorskip("timesliver.report")
    calls = []
    monkeypatch.setattr(report, "write", lambda *args, **named: calls.append((args, named)))
    attribution = make(np.zeros((1, 1, 3)))
    attribution.to_html("page.html", y=["a"], title="t", settings={"s": 1})
    ((path, explanations), named) = calls[0]
    assert path == "page.html"
    assert explanations == [attribution]
    assert named == {"y": ["a"], "title": "t", "settings": {"s": 1}}
    every = make(np.zeros((2, 1, 3)), target=[0, 1], case=np.array([0, 0]))
    every.to_html("page.html")
    ((_, explanations), _) = calls[1]
    assert [len(one) for one in explanations] == [1, 1]
    assert [one.target.tolist() for one in explanations] == [[0], [1]]


def test_import_needs_neither_matplotlib_nor_pandas():
    code = (
        "import sys, timesliver; "
        "assert not {'matplotlib', 'pandas', 'timesliver.plots'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
