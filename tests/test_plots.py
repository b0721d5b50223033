"""The structure of the drawings; how they look is judged by eye. Warnings are errors here."""

import io
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from timesliver import Attribution
from timesliver.errors import InvalidInputError
from timesliver.plots.panel import AGAINST, FOR, as_text, column_starts, span_of
from timesliver.thinning import strongest


def make(n_cases=6, n_channels=2, n=50, n_classes=3, seed=0, labels=None):
    """Evidence for a class on a bump in one channel, evidence against on a bump in another."""
    rng = np.random.default_rng(seed)
    target = np.arange(n_cases) % n_classes
    series = rng.normal(size=(n_cases, n_channels, n))
    positive, negative = 0.01 * rng.random((2, *series.shape))
    bump = np.exp(-0.5 * ((np.arange(n) - n / 2) / (n / 10)) ** 2)
    for case, c in enumerate(target):
        positive[case, c % n_channels] += bump
        negative[case, (c + 1) % n_channels] += bump / 2
    probabilities = rng.dirichlet(np.ones(n_classes), n_cases)
    classes = np.array(labels or [f"class {c}" for c in range(n_classes)])
    zeros = np.zeros(n_cases)
    return Attribution(
        positive, negative, zeros, zeros, target, classes, "by hand",
        series=series, probabilities=probabilities,
    )  # fmt: skip


def drawn(figure):
    """Draw all of it and give its axes by what stands beside or above them."""
    assert isinstance(figure, Figure)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")
    return {ax.get_ylabel() or ax.get_title(): ax for ax in figure.axes}


def strips(ax):
    """Evidence for and against as heights from the line, by colour."""
    patches = {to_hex(p.get_facecolor()).upper(): p for p in ax.patches if type(p) is StepPatch}
    return {
        colour: patch.get_data().values - patch.get_data().baseline
        for colour, patch in patches.items()
    }


# --- a case -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_channels", [1, 6, 8])
def test_few_channels_have_a_panel_each(n_channels):
    attribution = make(n_channels=n_channels)
    axes = drawn(attribution.plot(1))
    assert list(axes) == [f"channel {c}" for c in range(n_channels)] + ["probability"]
    for c in range(n_channels):
        ax = axes[f"channel {c}"]
        line = max(ax.lines, key=lambda line: len(line.get_xdata()))
        np.testing.assert_array_equal(line.get_ydata(), attribution.series[1, c])
    assert axes[f"channel {n_channels - 1}"].get_xlabel() == "time point"


@pytest.mark.parametrize("n_channels", [9, 40])
def test_many_channels_have_a_map_below_the_strongest(n_channels):
    attribution = make(n_channels=n_channels, n_classes=30, n_cases=30)
    attribution.positive_by_channel[4, 7] += 0.2
    axes = drawn(attribution.plot(4))
    assert list(axes)[:4] == ["channel 4", "channel 5", "channel 7", "channel"]
    (image,) = axes["channel"].images
    np.testing.assert_allclose(
        image.get_array(), (attribution.positive_by_channel - attribution.negative_by_channel)[4]
    )
    low, high = image.get_clim()
    assert low == -high
    assert to_hex(image.cmap(1.0)).upper() == FOR
    assert to_hex(image.cmap(0.0)).upper() == AGAINST


def test_evidence_for_is_above_the_line_and_against_below_on_one_scale():
    attribution = make()
    axes = drawn(attribution.plot(0))
    units = []
    for c in (0, 1):
        heights = strips(axes[f"channel {c}"])
        assert (heights[FOR] >= 0).all()
        assert (heights[AGAINST] <= 0).all()
        units.append(heights[FOR] / attribution.positive_by_channel[0, c])
        units.append(-heights[AGAINST] / attribution.negative_by_channel[0, c])
    np.testing.assert_allclose(np.concatenate(units), units[0][0])


def test_channels_can_be_chosen():
    axes = drawn(make(n_channels=40).plot(channels=[31, 2]))
    assert list(axes) == ["channel 31", "channel 2", "probability"]
    axes = drawn(make(n_channels=40).plot(channels=range(10, 30)))
    assert axes["channel"].get_yticklabels()[0].get_text() == "10"


def test_the_title_says_class_probability_and_truth():
    attribution = make()
    title = attribution.plot(-2, y=["x"] * 4 + ["walk", "x"]).get_suptitle()
    p = attribution.probabilities[4, 1]
    assert title == f"case 4, class explained: class 1 (probability {p:.3f}), true class: walk"


def test_probabilities_are_sorted_and_the_class_explained_is_marked():
    attribution = make(n_classes=26, n_cases=26)
    least = int(attribution.probabilities[0].argmin())
    attribution.target[0] = least
    ax = drawn(attribution.plot(0))["probability (8 of 26)"]
    labels = ax.get_yticklabels()
    assert [label.get_fontweight() for label in labels] == ["normal"] * 7 + ["bold"]
    assert labels[-1].get_text() == f"class {least}"
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == attribution.probabilities[0].max()


def test_without_series_and_probabilities_the_evidence_is_drawn():
    attribution = replace(make(), series=None, probabilities=None)
    axes = drawn(attribution.plot(0))
    assert list(axes) == ["channel 0", "channel 1"]
    assert not axes["channel 0"].images
    assert strips(axes["channel 0"])[FOR].max() > 0.5
    drawn(replace(make(n_channels=12), series=None).plot())


def test_padding_is_not_drawn_and_gaps_stay_open():
    attribution = make()
    attribution.series[0, :, 30:] = np.nan
    attribution.series[0, 0, [4, 6]] = np.nan
    ax = drawn(attribution.plot(0))["channel 0"]
    assert ax.get_xlim() == (-0.5, 29.5)
    assert len(strips(ax)[FOR]) == 30
    dots = [line for line in ax.lines if line.get_marker() == "."]
    assert [line.get_xdata().tolist() for line in dots] == [[5]]


@pytest.mark.parametrize("value", [0.0, 5.0, -3e8, np.nan])
def test_a_single_time_point_and_constant_values(value):
    for n in (1, 20):
        attribution = make(n_cases=1, n_channels=1, n=n)
        attribution.series[:] = value
        drawn(attribution.plot())
        drawn(attribution.plot_class_average())


def test_no_evidence_at_all():
    attribution = make(n_channels=10, n_cases=1)
    attribution.positive_by_channel[:] = attribution.negative_by_channel[:] = 0
    drawn(attribution.plot())
    drawn(attribution.plot_class_average())


def test_long_series_are_thinned_but_keep_their_peaks():
    attribution = make(n_cases=2, n=100_000)
    attribution.series[0, 0, 77_777] = 50
    attribution.positive_by_channel[0, 0, 33_333] = 9
    ax = drawn(attribution.plot(0))["channel 0"]
    assert max(len(line.get_xdata()) for line in ax.lines) <= 3000
    assert max(np.nanmax(line.get_ydata(), initial=0) for line in ax.lines) == 50
    heights = strips(ax)[FOR]
    assert len(heights) <= 1500
    assert heights.argmax() == 33_333 // 67
    assert ax.get_xlim() == (-0.5, 99_999.5)
    drawn(attribution.plot_class_average())


def test_labels_are_taken_literally():
    attribution = make(labels=[r"$\frac{", "a\n b", "x" * 99])
    axes = drawn(attribution.plot(0, y=["$a$"] * 6))
    shown = [label.get_text() for label in axes["probability"].get_yticklabels()]
    assert sorted(shown)[-1] == "x" * 23 + "…"
    assert as_text("a\n b") == "a b"
    drawn(attribution.plot_class_average())


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        ({"case": 6}, IndexError, "case 6 asked for, but there are 6"),
        ({"channels": [2]}, InvalidInputError, r"channels must lie in 0\.\.1, got \[2\]"),
        ({"channels": []}, InvalidInputError, "list of whole numbers"),
        ({"channels": 1}, InvalidInputError, "list of whole numbers"),
        ({"y": ["a"]}, InvalidInputError, r"one label for each of the 6 cases, got shape \(1,\)"),
    ],
)
def test_bad_requests(request_, error, message):
    with pytest.raises(error, match=message):
        make().plot(**request_)
    if "case" not in request_:
        with pytest.raises(error, match=message):
            make().plot_class_average(**request_)


# --- averages -----------------------------------------------------------------------------------


def test_averages_are_over_the_cases_explained_as_the_class():
    attribution = make(n_cases=7)
    attribution.target[:] = [0, 2, 2, 0, 2, 2, 2]
    figure = attribution.plot_class_average(y=["class 2"] * 7)
    assert figure.axes[0].get_title() == "channel 0"
    assert figure.axes[0].get_ylabel() == "class 0\n2 cases, 0 correct"
    assert figure.axes[2].get_ylabel() == "class 2\n5 cases, 5 correct"
    assert len(figure.axes) == 4
    drawn(figure)
    line = max(figure.axes[3].lines, key=lambda line: len(line.get_xdata()))
    np.testing.assert_allclose(
        line.get_ydata(), attribution.series[[1, 2, 4, 5, 6], 1].mean(axis=0)
    )
    assert figure.axes[0].get_ylim() == figure.axes[2].get_ylim()
    heights = np.stack([strips(figure.axes[i])[FOR] for i in (1, 3)])
    means = attribution.positive_by_channel[:, 1]
    want = np.stack([means[[0, 3]].mean(0), means[[1, 2, 4, 5, 6]].mean(0)])
    np.testing.assert_allclose(heights / want, heights[0, 0] / want[0, 0])


def test_averages_count_only_the_cases_that_are_long_enough():
    attribution = make(n_cases=2, n_channels=1, n_classes=2)
    attribution.target[:] = 0
    attribution.series[1, :, 20:] = np.nan
    attribution.positive_by_channel[:] = 1
    attribution.positive_by_channel[1, :, 20:] = 0
    attribution.negative_by_channel[:] = 0
    figure = attribution.plot_class_average()
    np.testing.assert_allclose(np.ptp(strips(figure.axes[0])[FOR]), 0, atol=1e-12)
    line = max(figure.axes[0].lines, key=lambda line: len(line.get_xdata()))
    np.testing.assert_allclose(line.get_ydata()[20:], attribution.series[0, 0, 20:])
    drawn(figure)


def test_many_channels_and_classes_are_limited():
    figure = make(n_cases=8, n_channels=40, n_classes=4).plot_class_average()
    assert len(figure.axes) == 4 * 6
    figure = make(n_cases=52, n_channels=40, n_classes=26, n=20).plot_class_average()
    assert len(figure.axes) == 26
    assert figure.axes[25].get_title() == "class 25\n2 cases, channel 25"
    figure = make(n_cases=9, n_channels=40, n_classes=9).plot_class_average(channels=[3])
    assert [ax.get_ylabel().split("\n")[0] for ax in figure.axes] == [
        f"class {c}" for c in range(9)
    ]


def test_averages_without_series_and_without_cases():
    drawn(replace(make(), series=None).plot_class_average())
    with pytest.raises(InvalidInputError, match="no case to average"):
        make()[[]].plot_class_average()


# --- small parts --------------------------------------------------------------------------------


def test_thinning_keeps_the_largest_of_either_sign():
    scores = np.zeros((2, 4000))
    scores[0, 1700], scores[1, 3999] = -5, 2
    thinned = strongest(scores, column_starts(4000))
    assert thinned.shape == (2, 1334)
    assert (thinned[0].min(), thinned[0].argmin()) == (-5, 1700 // 3)
    assert (thinned[1].max(), thinned[1].argmax()) == (2, 1333)
    np.testing.assert_array_equal(column_starts(7), np.arange(7))


def test_a_span_is_never_empty():
    for values in ([], [np.nan], [3.0], [0.0], [1e9, 1e9 + 1e-6]):
        low, high = span_of(np.array(values))
        assert low < high
    assert span_of(np.array([1.0, np.nan]), np.array([4.0])) == (1, 4)


def test_drawing_leaves_pyplot_and_the_backend_alone():
    code = (
        "import io, sys, matplotlib, numpy as np; from timesliver import Attribution; "
        "matplotlib.use('svg'); "
        "one = np.zeros(1); scores = np.ones((1, 1, 5)); "
        "a = Attribution(scores, scores, one, one, one.astype(int), np.arange(2), 'm'); "
        "a.plot().savefig(io.BytesIO()); a.plot_class_average().savefig(io.BytesIO()); "
        "assert 'matplotlib.pyplot' not in sys.modules; "
        "assert matplotlib.get_backend() == 'svg'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
