"""The data and the text of the page; how it behaves is in test_browser.py."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser

import numpy as np
import pytest

from timesliver import report
from timesliver.errors import InvalidInputError
from timesliver.report import packing
from timesliver.report.cases import read_cases
from timesliver.report.choosing import choose_cases
from timesliver.report.sums import sum_as_text

HOSTILE = "</script><script>document.title='taken'</script>\"'&<b>é\u2028🙂"


class _Reader(HTMLParser):
    """Collects the tags, the attributes and the text of scripts."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.scripts, self.texts = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, text):
        (self.scripts if self.lasttag == "script" else self.texts).append(text)

    @property
    def data(self):
        return json.loads(self.scripts[0])

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def page(tmp_path):
    """Write a page and read it again."""

    def written(*args, **kwargs):
        path = report.write(tmp_path / "page.html", *args, **kwargs)
        return _Reader(path.read_text("utf-8"))

    return written


def unpacked(text, dtype, *shape):
    return np.frombuffer(base64.b64decode(text), f"<{dtype}").reshape(shape)


def values_of(case):
    """Return (channels, lowest/highest, columns) with NaN for gaps."""
    n_channels = len(case["channels"])
    ranges = unpacked(case["ranges"], "f8", n_channels, 2)
    codes = unpacked(case["values"], "i2", n_channels, -1, -(-case["length"] // case["step"]))
    low, high = ranges[:, :1, None], ranges[:, 1:, None]
    values = low + (codes.astype(float) + 32767) / 65534 * (high - low)
    return np.where(codes == -32768, np.nan, values)


def scores_of(case, k=0, dtype="u2"):
    """Return (for/against, channels, columns)."""
    codes = unpacked(case["explained"][k]["scores"], dtype, 2, len(case["channels"]), -1)
    return codes / np.iinfo(dtype).max * case["scale"]


def test_short_series_come_back_whole(page, explanations):
    found, y = explanations()
    before = [e.positive_by_channel.copy() for e in found]
    data = page(found, y=y).data
    assert [case["id"] for case in data["cases"]] == list(range(12))
    for case in data["cases"]:
        i, step = case["id"], case["step"]
        assert step == 1
        np.testing.assert_allclose(values_of(case)[:, 0], found[0].series[i], atol=2e-4)
        for k, entry in enumerate(case["explained"]):
            explanation = found[entry["class"]]
            expected = explanation.positive_by_channel[i], explanation.negative_by_channel[i]
            np.testing.assert_allclose(scores_of(case, k), expected, atol=2e-5)
    for old, explanation in zip(before, found, strict=True):
        np.testing.assert_array_equal(old, explanation.positive_by_channel)


def test_thinning_keeps_every_peak(page, explanations):
    found, y = explanations(n_cases=2, n_channels=2, n_timepoints=7001)
    explanation, other = found[0], found[1]
    explanation.series[0, 1, 4321] = 99.0
    explanation.series[0, 1, 4999] = -77.0
    explanation.positive_by_channel[0, 0, 6543] = 8.0
    other.negative_by_channel[0, 1, 17] = 6.0
    case = page(found, y=y).data["cases"][0]
    step = case["step"]
    assert step == 4
    values = values_of(case)
    assert values[1, 1, 4321 // step] == pytest.approx(99, abs=0.01)
    assert values[1, 0, 4999 // step] == pytest.approx(-77, abs=0.01)
    assert (values[:, 0] <= values[:, 1]).all()
    scores = {entry["class"]: scores_of(case, k) for k, entry in enumerate(case["explained"])}
    assert scores[0][0, 0, 6543 // step] == pytest.approx(8, abs=0.001)
    assert scores[1][1, 1, 17 // step] == pytest.approx(6, abs=0.001)


def test_thinning_keeps_the_strongest_net_evidence(page, explanations):
    found, _ = explanations(n_cases=1, n_channels=2, n_timepoints=4000)
    explanation = found[0]
    explanation.positive_by_channel[0, 0, 1001] = 3.0  # these two are one column,
    explanation.negative_by_channel[0, 0, 1000] = 4.0  # but not one moment
    case = page([explanation]).data["cases"][0]
    assert case["step"] == 2
    net = unpacked(case["explained"][0]["net"], "i2", 2, -1) / 32767 * case["scale"]
    assert net[0, 500] == pytest.approx(-4, abs=0.001)
    total = unpacked(case["explained"][0]["total_net"], "i2", -1) / 32767 * case["total_scale"]
    pairs = explanation.net[0].reshape(-1, 2)
    expected = np.take_along_axis(pairs, np.abs(pairs).argmax(axis=1)[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(total, expected, atol=0.001)


def test_totals_are_sums_over_channels(page, explanations):
    found, y = explanations()
    case = page(found, y=y).data["cases"][5]
    for entry in case["explained"]:
        total = unpacked(entry["total"], "u2", 2, -1) / 65535 * case["total_scale"]
        explanation = found[entry["class"]]
        expected = explanation.positive[5], explanation.negative[5]
        np.testing.assert_allclose(total, expected, atol=5e-5)
        sums = unpacked(entry["sums"], "f4", 2, 3)
        np.testing.assert_allclose(sums[0], explanation.positive_by_channel[5].sum(-1), rtol=1e-6)


def test_missing_values_and_unequal_lengths(page, explanations):
    found, y = explanations()
    series = found[0].series
    series[0, 1, 10:20] = np.nan
    series[1, :, 50:] = np.nan
    series[2] = np.nan
    series[3, 0] = 4.25
    first, second, third, fourth = page(found, y=y).data["cases"][:4]
    assert np.isnan(values_of(first)[1, 0]).nonzero()[0].tolist() == list(range(10, 20))
    assert second["length"] == 50
    assert scores_of(second).shape == (2, 3, 50)
    assert third["length"] == 1
    assert np.isnan(values_of(third)).all()
    np.testing.assert_array_equal(values_of(fourth)[0, 0], 4.25)


@pytest.mark.parametrize("budget", [60_000, 250_000, 1_000_000])
def test_size_is_bounded(page, tmp_path, explanations, monkeypatch, budget):
    """The shape stands for 500 cases x 40 channels x 5,000 points with the whole budget."""
    monkeypatch.setattr(packing, "BUDGET", budget)
    found, y = explanations(40, 6, 2500, classes=list("abcdefghij"), dtype=np.float32)
    read = page(found, y=y)
    size = (tmp_path / "page.html").stat().st_size
    empty = len(report.write(tmp_path / "one.html", [found[0][:1]]).read_bytes())
    packed = sum(len(json.dumps(case, separators=(",", ":"))) for case in read.data["cases"])
    assert packed <= budget
    assert size <= budget + empty
    n_cases = len(read.data["cases"])
    detail, n_kept = packing.choose_detail((40, 6, 2500), 10, budget)
    assert n_cases == n_kept
    assert (n_cases < 40) == (f"{n_cases} of 40 cases are shown" in "".join(read.texts))
    for case in read.data["cases"]:
        assert len(case["explained"]) == detail.classes
        kept = [entry["class"] for entry in case["explained"]]
        assert {case["true"], case["predicted"]} <= set(kept)


def test_the_whole_budget_is_enough_for_any_shape():
    for shape, n_classes in (
        ((500, 40, 5000), 10),
        ((10_000, 963, 144), 7),
        ((1, 100_000, 100_000), 1000),
        ((100_000, 1, 10), 2),
    ):
        detail, n_cases = packing.choose_detail(shape, n_classes, packing.BUDGET)
        assert n_cases >= 1
        assert n_cases * detail.size(shape, n_classes) <= packing.BUDGET


def test_some_of_many_cases_are_mistakes_and_some_are_not(explanations):
    found, y = explanations(n_cases=200, n_timepoints=12)
    cases = read_cases(found, y)
    kept = choose_cases(cases.predicted, cases.mistaken, 20)
    assert len(set(kept.tolist())) == 20
    assert cases.mistaken[kept].sum() == 10
    for part in (kept[cases.mistaken[kept]], kept[~cases.mistaken[kept]]):  # all classes in turn
        assert sorted(np.bincount(cases.predicted[part])) == [3, 3, 4]
    assert len(choose_cases(cases.predicted, cases.mistaken, 180)) == 180
    assert choose_cases(cases.predicted, cases.mistaken, 201).tolist() == list(range(200))
    nothing_known = np.zeros(200, bool)
    assert len(set(choose_cases(cases.predicted, nothing_known, 20).tolist())) == 20


def test_few_mistakes_leave_room_and_few_others_are_filled_up():
    predicted = np.array(["a"] * 50 + ["b"] * 50)
    mistaken = np.zeros(100, bool)
    mistaken[[10, 20, 30, 40]] = True
    chosen = choose_cases(predicted, mistaken, 6)
    assert set(chosen) >= {10, 20, 30}
    assert len(set(chosen)) == 6
    assert (chosen >= 50).any()
    assert choose_cases(predicted, ~mistaken, 50).tolist().count(10) == 1
    assert set(choose_cases(predicted, ~mistaken, 50)) >= {10, 20, 30, 40}
    assert choose_cases(predicted, mistaken, 1).tolist() == [0]


def test_many_channels_keep_the_most_important(page, explanations):
    found, y = explanations(n_cases=2, n_channels=200, n_timepoints=20)
    read = page(found, y=y)
    first, second = read.data["cases"]
    assert len(first["channels"]) == packing.MOST_CHANNELS
    assert 0 in first["channels"]
    assert 1 in second["channels"]
    assert "128 of 200 channels" in "".join(read.texts)


def test_predicted_class(explanations):
    found, _ = explanations()
    expected = found[0].probabilities.argmax(axis=1)
    np.testing.assert_array_equal(read_cases(found).predicted, expected)
    bare, _ = explanations(with_probabilities=False)
    np.testing.assert_array_equal(read_cases(bare[::-1]).predicted, expected)
    single = replace(bare[0], target=np.arange(12) % 3)
    np.testing.assert_array_equal(read_cases([single]).predicted, np.arange(12) % 3)


def test_text_is_escaped(page, explanations):
    found, y = explanations(classes=(HOSTILE, "plain", ""))
    read = page(found, y=y, title=HOSTILE, settings={HOSTILE: HOSTILE, "list": [HOSTILE]})
    assert len(read.all("script")) == 2
    assert not any("taken" in script for script in read.scripts[1:])
    assert read.data["labels"] == [HOSTILE, "plain", "(empty)"]
    assert read.texts.count(HOSTILE) >= 2
    options = [attributes["value"] for attributes in read.all("option")]
    assert options.count("2") == 2


def test_nothing_is_loaded(tmp_path, explanations):
    found, y = explanations()
    text = report.write(tmp_path / "page.html", found, y=y).read_text("utf-8")
    read = _Reader(text)
    policy = next(m for m in read.all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    assert policy["content"] == (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    )
    assert not re.search(r"https?:|//[a-z]+\.|url\(|@import|import\(|fetch\(", text)
    assert all(not ({"src", "srcset"} & set(attributes)) for _, attributes in read.tags)
    assert [attributes.get("href") for attributes in read.all("link")] == ["data:,"]


def test_settings_of_any_kind(page, explanations):
    found, _ = explanations()
    settings = {
        "name": "sax", "sizes": (4, 7), "rate": float("nan"), "odd": {1, }, "long": "x" * 5000,
        "none": None, "number": np.float64(0.5),
    }  # fmt: skip
    text = " ".join(page(found, settings=settings).texts)
    assert "[4, 7]" in text
    assert "NaN" in text
    assert "{1}" in text
    assert "null" in text
    assert "x" * 1000 not in text


def test_labels_may_be_missing_unknown_or_numbers(page, explanations):
    found, _ = explanations(n_cases=4, classes=(1, 2, 3))
    data = page(found, y=[2.0, float("nan"), 9, None]).data
    assert [case["true"] for case in data["cases"]] == [1, -1, 3, -1]
    assert data["labels"] == ["1", "2", "3", "9"]


def test_many_labels_shorten_the_confusion_matrix(page, explanations):
    classes = [f"class {i:03}" for i in range(100)]
    found, _ = explanations(n_cases=2, n_timepoints=12, classes=classes)
    rng = np.random.default_rng(0)
    true = rng.choice(classes, 3000)
    read = page(found[:1], overall=(true, rng.permutation(true)))
    assert "The 30 of 100 classes" in "".join(read.texts)
    assert len([a for a in read.all("button") if "data-count" in a]) <= 900


@pytest.mark.parametrize("options", [{"with_series": False}, {"with_probabilities": False}, {}])
@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 2, 3), (2, 1, 30)])
def test_small_inputs(page, explanations, shape, options):
    found, y = explanations(*shape, **options)
    for given, labels in ((found, y), (found[:1], None), (found, None)):
        assert len(page(given, y=labels).data["cases"]) == shape[0]


BAD = {
    "empty list": (lambda e: [], {}, "at least one Attribution"),
    "not a list": (lambda e: e[0], {}, "wrap a single one"),
    "not explanations": (lambda e: [1], {}, "a value of type int"),
    "an array": (lambda e: [np.zeros((2, 3, 4))], {}, "ndarray"),
    "no cases": (lambda e: [e[0][:0]], {}, "nothing to show"),
    "other cases": (lambda e: [e[0], e[1][:5]], {}, "same cases"),
    "other numbers": (
        lambda e: [e[0], replace(e[1], case=np.arange(12)[::-1])],
        {},
        "number their cases differently",
    ),
    "other classes": (lambda e: [e[0], replace(e[1], classes=np.arange(3))], {}, "same cases"),
    "one class twice": (lambda e: [e[0], e[0]], {}, "same class"),
    "labels too few": (lambda e: e, {"y": ["sit"]}, "12 labels"),
    "labels of two dimensions": (lambda e: e, {"y": [["sit"]] * 12}, "one per case"),
    "labels of another type": (lambda e: e, {"y": [0] * 12}, "no label in y"),
    "not a pair": (lambda e: e, {"overall": ["sit"]}, "pair"),
    "unequal pair": (lambda e: e, {"overall": (["sit"], ["run"] * 2)}, "1 labels"),
    "negative evidence": (
        lambda e: [replace(e[0], positive_by_channel=e[0].positive_by_channel - 1)],
        {},
        "negative",
    ),
    "infinite series": (lambda e: [replace(e[0], series=e[0].series + np.inf)], {}, "infinite"),
    "no prediction": (
        lambda e: [replace(part, probabilities=None) for part in e[:2]],
        {},
        "which class was predicted",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(tmp_path, explanations, name):
    spoil, options, message = BAD[name]
    with pytest.raises(InvalidInputError, match=message):
        report.write(tmp_path / "page.html", spoil(explanations()[0]), **options)
    assert list(tmp_path.iterdir()) == []


def test_an_older_page_is_replaced(tmp_path, explanations):
    found, _ = explanations()
    path = tmp_path / "page.html"
    path.write_text("old")
    assert report.write(str(path), found) == path
    assert path.read_text("utf-8").startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


def test_cases_keep_their_numbers(page, explanations):
    found, _ = explanations(n_cases=50)
    data = page([part[[7, 2, 40]] for part in found]).data
    assert [case["id"] for case in data["cases"]] == [7, 2, 40]


def test_base_and_evidence_add_up_on_the_page(page, explanations):
    found, y = explanations()
    read = page(found, y=y)
    assert "Base + evidence = logit." in read.texts
    for case in read.data["cases"]:
        for entry in case["explained"]:
            base, evidence, logit = (Decimal(text.replace("−", "-")) for text in entry["sum"])
            assert base + evidence == logit
            explanation = found[entry["class"]][case["id"]]
            assert float(logit) == pytest.approx(explanation.logit[0], rel=1e-3, abs=1e-3)
            assert float(evidence) == pytest.approx(explanation.net.sum(), abs=2e-3)


def test_scores_that_are_no_parts_of_the_logit_are_not_said_to_be(page, explanations):
    found, y = explanations()
    scores = [replace(part, base=np.full(12, 0.0049), method="timesliver") for part in found]
    read = page(scores, y=y)
    assert all(entry["sum"] is None for case in read.data["cases"] for entry in case["explained"])
    assert "Base + evidence = logit." not in read.texts
    assert "Scores have no unit." in read.texts


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((0.0, 0.0, 0.0), ["0.000", "0.000", "0.000"]),
        ((-1e-9, 1.0, 1.0), ["0.000", "1.000", "1.000"]),
        ((1.0004, -3.0004, -2.0), ["1.000", "−3.000", "−2.000"]),
        ((1234.6, 1.4, 1236.0), ["1235", "1", "1236"]),
        ((2e-5, 1e-5, 3e-5), ["0.00002000", "0.00001000", "0.00003000"]),
        ((0.1, float("nan"), 0.1), None),
        ((0.1, 0.2, float("inf")), None),
        ((0.1, 0.2, 0.31), None),
    ],
)
def test_sums_as_text(numbers, expected):
    assert sum_as_text(*numbers) == expected
