import hashlib

import numpy as np
import pytest
from sklearn.metrics import auc, average_precision_score, precision_recall_curve

from timesliver.datasets import Dataset
from timesliver.datasets.paper import PAPER_SETS, load_paper_set
from timesliver.datasets.synthetic import (
    make_farfield,
    make_freqsum,
    make_lowvar,
    make_seqcomb_mv,
    make_seqcomb_uv,
)
from timesliver.datasets.synthetic.narma import narma
from timesliver.errors import InvalidParameterError

SHAPES = {  # n_channels, n_timepoints, n_classes
    make_freqsum: (6, 500, 2),
    make_seqcomb_uv: (1, 200, 4),
    make_seqcomb_mv: (4, 200, 4),
    make_lowvar: (2, 200, 4),
    make_farfield: (1, 100, 2),
}
every_set = pytest.mark.parametrize("make", list(SHAPES))


def windows(case_mask):
    """Return channel, start and stop of each stretch of a (n_channels, n_timepoints) mask."""
    edges = np.diff(case_mask.astype(int), axis=1, prepend=0, append=0)
    starts, stops = np.argwhere(edges == 1), np.argwhere(edges == -1)
    found = [(c, a, b) for (c, a), (_, b) in zip(starts, stops, strict=True)]
    return sorted(found, key=lambda stretch: stretch[1])


def fit_ramp(ramp):
    """Return the height of the line round zero, and what line and best sine leave unexplained."""
    step = np.arange(len(ramp))
    line = (step / step[-1] - 0.5)[:, None]
    fits = [np.linalg.lstsq(line, ramp - np.sin(a * step), rcond=None)[:2] for a in range(32)]
    return min(((height, rest) for (height,), (rest,) in fits), key=lambda fit: fit[1])


def test_narma_follows_its_equation():
    series = narma((2, 50), np.random.default_rng(3))
    u = np.random.default_rng(3).uniform(0, 0.5, size=(2, 50 + 34))
    for i in range(1, 50):
        # the last time point of the series belongs to the last input
        expected = 0.3 * series[:, i - 1] + 1.5 * u[:, i + 32] * u[:, i + 34] + 0.1
        np.testing.assert_allclose(series[:, i], expected)


def test_narma_is_stationary_with_the_known_moments():
    series = narma((4000, 20), np.random.default_rng(0))
    assert series.mean() == pytest.approx(0.277, abs=0.002)
    assert series.std() == pytest.approx(0.089, abs=0.002)
    assert series[:, 0].mean() == pytest.approx(series[:, -1].mean(), abs=0.01)


class TestAllSets:
    @every_set
    def test_shapes_and_types(self, make):
        n_channels, n_timepoints, n_classes = SHAPES[make]
        data = make(50, random_state=0)
        assert isinstance(data, Dataset)
        assert data.X.shape == (50, n_channels, n_timepoints)
        assert data.X.dtype == np.float64
        assert data.X.flags.c_contiguous
        assert np.isfinite(data.X).all()
        assert data.y.dtype.kind == "i"
        assert set(data.y) == set(range(n_classes))
        if make is make_farfield:
            assert data.salient is None
        else:
            assert data.salient.shape == data.X.shape
            assert data.salient.dtype == bool

    @every_set
    def test_classes_are_balanced_in_random_order(self, make):
        n_classes = SHAPES[make][-1]
        y = make(200, random_state=0).y
        assert np.bincount(y).tolist() == [200 // n_classes] * n_classes
        assert len(set(y[: 10 * n_classes : n_classes])) > 1
        sizes = np.bincount(make(4 * n_classes + 1, random_state=1).y)
        assert sorted(sizes) == [4] * (n_classes - 1) + [5]

    @every_set
    def test_seed(self, make):
        first, again, other = make(8, random_state=5), make(8, random_state=5), make(8, 6)
        assert first.X.tobytes() == again.X.tobytes()
        np.testing.assert_array_equal(first.y, again.y)
        np.testing.assert_array_equal(first.salient, again.salient)
        assert not np.array_equal(first.X, other.X)

    @every_set
    def test_a_generator_is_used_on(self, make):
        rng = np.random.default_rng(0)
        assert not np.array_equal(make(8, rng).X, make(8, rng).X)

    @every_set
    def test_global_random_state_is_untouched(self, make):
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        make(4)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002

    @every_set
    def test_one_case(self, make):
        assert len(make(1, random_state=0)) == 1

    @every_set
    @pytest.mark.parametrize("n_cases", [0, -3, 2.5, "8"])
    def test_wrong_number_of_cases(self, make, n_cases):
        with pytest.raises(InvalidParameterError, match="n_cases must be a whole number"):
            make(n_cases)


@pytest.fixture(scope="module")
def freqsum():
    return make_freqsum(600, random_state=0)


@pytest.fixture(scope="module")
def fast(freqsum):
    """Each channel without its slow wave, which is the one that leaves most of it at zero."""
    time = np.arange(500) / 500
    slow = 0.5 * np.sin(2 * np.pi * np.arange(2, 6)[:, None] * time)
    rest = freqsum.X[:, :, None, :] - slow
    at_zero = (np.abs(rest) < 1e-9).sum(axis=3)
    assert (at_zero.max(axis=2) >= 400).all()
    assert set(at_zero.argmax(axis=2).ravel()) == {0, 1, 2, 3}
    return np.take_along_axis(rest, at_zero.argmax(axis=2)[:, :, None, None], axis=2)[:, :, 0]


class TestFreqSum:
    def test_two_salient_windows_of_100_points(self, freqsum):
        on_channel = freqsum.salient.sum(axis=2)
        assert set(on_channel.ravel()) == {0, 100}
        assert ((on_channel > 0).sum(axis=1) == 2).all()
        assert (on_channel > 0).mean(axis=0) == pytest.approx(np.full(6, 1 / 3), abs=0.07)
        stretches = [stretch for mask in freqsum.salient for stretch in windows(mask)]
        starts = np.array([start for _, start, _ in stretches])
        assert len(stretches) == 1200  # each in one piece
        assert starts.min() < 10
        assert starts.max() > 390

    def test_share_of_salient_time(self, freqsum):
        assert freqsum.salient.any(axis=1).mean() == pytest.approx(0.354, abs=0.01)

    def test_frequencies_make_the_class(self, freqsum, fast):
        # the waves of all frequencies, of which exactly one is the salient part of a channel
        frequencies = np.arange(10, 51)
        waves = np.sin(2 * np.pi * frequencies[:, None] * np.arange(500) / 500)
        pairs = []
        for x, mask, label in zip(fast, freqsum.salient, freqsum.y, strict=True):
            found = []
            for channel, start, stop in windows(mask):
                same = np.isclose(waves[:, start:stop], x[channel, start:stop], atol=1e-9)
                assert same.all(axis=1).sum() == 1
                found.append(frequencies[same.all(axis=1).argmax()])
                spectrum = np.abs(np.fft.rfft(x[channel]))
                assert abs(spectrum.argmax() - found[-1]) <= 1
            assert (sum(found) > 60) == label
            pairs.append(found)
        assert np.min(pairs) == 10
        assert np.max(pairs) == 50
        assert np.mean(pairs) == pytest.approx(30, abs=1.5)
        assert np.std(pairs) == pytest.approx(np.std(frequencies), abs=1)

    def test_square_waves_are_not_salient(self, freqsum, fast):
        others = ~freqsum.salient.any(axis=2)
        square = others & (np.abs(fast) > 1e-9).any(axis=2)
        assert square[others].mean() == pytest.approx(0.5, abs=0.03)
        in_window = np.abs(fast[square]) > 1e-9
        assert (in_window.sum(axis=1) == 100).all()
        np.testing.assert_allclose(np.abs(fast[square][in_window]), 1)
        flips = (np.abs(np.diff(fast[square], axis=1)) > 1.5).sum(axis=1)
        assert flips.min() >= 3  # 2 f flips in 500 steps, f = 10 to 50
        assert flips.max() in (19, 20, 21)
        labels = np.broadcast_to(freqsum.y[:, None], square.shape)
        assert square[labels == 1].mean() == pytest.approx(square[labels == 0].mean(), abs=0.06)

    def test_channels_do_not_tell_the_class(self, freqsum):
        marked = freqsum.salient.any(axis=2)
        difference = marked[freqsum.y == 1].mean(axis=0) - marked[freqsum.y == 0].mean(axis=0)
        assert np.abs(difference).max() < 0.12


@pytest.fixture(
    scope="module",
    params=[
        (make_seqcomb_uv, {}, range(15, 30), 0.22),
        (make_seqcomb_uv, {"ramps": "short"}, range(10, 20), 0.143),
        (make_seqcomb_mv, {}, range(15, 30), 0.22),
    ],
    ids=["uv", "uv-short", "mv"],
)
def setting(request):
    make, options, lengths, share = request.param
    data = make(1200, random_state=0, **options)
    ramps = [windows(mask) for mask in data.salient]
    return data, ramps, lengths, share


class TestSeqComb:
    def test_class_0_has_no_ramp_and_the_others_two(self, setting):
        data, _, _, _ = setting
        assert not data.salient[data.y == 0].any()
        assert data.salient[data.y > 0].any(axis=(1, 2)).all()

    def test_share_of_salient_time(self, setting):
        data, _, _, share = setting
        assert data.salient[data.y > 0].any(axis=1).mean() == pytest.approx(share, abs=0.01)

    def test_lengths_and_places(self, setting):
        data, ramps, lengths, _ = setting
        found = [stretches for stretches in ramps if len(stretches) == 2]
        assert len(found) > 0.98 * (data.y > 0).sum()  # a few touch, and count as one on a channel
        assert {b - a for stretches in found for _, a, b in stretches} == set(lengths)
        assert {first[1] for first, _ in found} >= set(range(0, 100, 10))
        assert max(first[1] for first, _ in found) == 99
        assert max(second[2] for _, second in found) == 200

    def test_ramps_do_not_overlap(self, setting):
        data, _, lengths, _ = setting
        with_ramps = data.salient[data.y > 0]
        assert (with_ramps.sum(axis=1) <= 1).all()
        assert with_ramps.sum(axis=(1, 2)).min() >= 2 * lengths[0]

    def test_direction_makes_the_class(self, setting):
        data, ramps, _, _ = setting
        rising = {1: [False, False], 2: [True, True], 3: [True, False]}
        for x, label, stretches in zip(data.X, data.y, ramps, strict=True):
            if len(stretches) == 2:
                slopes = [np.polyfit(np.arange(b - a), x[c, a:b], 1)[0] for c, a, b in stretches]
                assert [slope > 0 for slope in slopes] == rising[label]

    def test_ramps_are_lines_round_zero_plus_a_sine(self, setting):
        data, ramps, _, _ = setting
        exact = []
        for i in [i for i, stretches in enumerate(ramps) if len(stretches) == 2][:100]:
            fits = [fit_ramp(data.X[i, c, a:b]) for c, a, b in ramps[i]]
            assert max(rest for _, rest in fits) < 1e-12
            first, second = np.abs([height for height, _ in fits])
            assert first == pytest.approx(second)  # they share the case, if not the channel
            base = data.X[i][~data.salient[i]]
            expected = 5 * (np.abs(base.min()) + np.abs(base.max()))
            assert first == pytest.approx(expected, rel=0.3)
            exact.append(first == pytest.approx(expected))
        # a ramp may lie where the smallest or the largest value was
        assert np.mean(exact) > 0.5

    def test_the_rest_is_the_process(self, setting):
        data, _, _, _ = setting
        base = data.X[~data.salient]
        assert base.mean() == pytest.approx(0.277, abs=0.005)
        assert base.std() == pytest.approx(np.hypot(0.089, 0.01), abs=0.005)

    def test_ramps_of_the_multivariate_set_lie_on_two_channels(self):
        data = make_seqcomb_mv(1200, random_state=0)
        used = data.salient[data.y > 0].any(axis=2)
        assert (used.sum(axis=1) == 2).all()
        assert used.mean(axis=0) == pytest.approx(np.full(4, 0.5), abs=0.06)
        first = [windows(mask)[0][0] for mask in data.salient[data.y > 0]]
        assert np.bincount(first) / len(first) == pytest.approx(np.full(4, 0.25), abs=0.06)

    def test_unknown_ramps(self):
        with pytest.raises(InvalidParameterError, match="ramps='steep' is unknown"):
            make_seqcomb_uv(4, ramps="steep")


@pytest.fixture(scope="module")
def lowvar():
    return make_lowvar(2000, random_state=0)


class TestLowVar:
    def test_salient_stretch(self, lowvar):
        one_channel = lowvar.salient.any(axis=2)
        assert (one_channel.sum(axis=1) == 1).all()
        np.testing.assert_array_equal(one_channel.argmax(axis=1), lowvar.y // 2)
        time = lowvar.salient.any(axis=1)
        assert time.mean() == pytest.approx(0.0725, abs=0.001)
        assert set(time.sum(axis=1)) == set(range(10, 20))
        assert set(time.argmax(axis=1)) <= set(range(20, 160))
        edges = np.diff(time.astype(int), axis=1)
        assert ((edges == 1).sum(axis=1) == 1).all()

    def test_levels_and_noise(self, lowvar):
        for label, level in enumerate((-1.5, 1.5, -1.5, 1.5)):
            calm = lowvar.X[lowvar.y == label][lowvar.salient[lowvar.y == label]]
            assert calm.mean() == pytest.approx(level, abs=0.01)
            assert calm.std() == pytest.approx(0.1, abs=0.01)
        noise = lowvar.X[~lowvar.salient]
        assert noise.mean() == pytest.approx(0.277, abs=0.01)
        assert noise.std() == pytest.approx(1.0, abs=0.02)


class TestFarField:
    @pytest.mark.parametrize("noise", [0.0, 0.02, 1.0])
    def test_class_rule(self, noise):
        data = make_farfield(500, random_state=0, noise=noise)
        for x, label in zip(data.X[:, 0], data.y, strict=True):
            # the paper counts from 1
            interaction = sum(x[j - 1] * x[100 - j] for j in range(1, 51))
            assert (interaction > 0) == label

    def test_noise_grows_from_the_middle(self):
        x = make_farfield(4000, random_state=0, noise=2.0).X[:, 0]
        spread = np.sqrt(0.5 + (2.0 * (np.arange(1, 101) - 50)) ** 2)  # of sine and noise
        np.testing.assert_allclose(x.std(axis=0), spread, rtol=0.06)

    def test_without_noise_it_is_a_sine_wave(self):
        x = make_farfield(50, random_state=0, noise=0.0).X[:, 0]
        # x(t + 1) + x(t - 1) = 2 cos(f) x(t)
        centre = x[:, 1:-1]
        factor = ((x[:, 2:] + x[:, :-2]) * centre).sum(axis=1) / (centre**2).sum(axis=1)
        np.testing.assert_allclose(x[:, 2:] + x[:, :-2], factor[:, None] * centre, atol=1e-9)
        assert (np.abs(x).max(axis=1) <= 1).all()

    @pytest.mark.parametrize("noise", [-0.1, np.nan, np.inf, "much"])
    def test_wrong_noise(self, noise):
        with pytest.raises(
            InvalidParameterError, match="noise must be a number, at least 0 and at most 1000"
        ):
            make_farfield(4, noise=noise)


@pytest.mark.parametrize(
    ("make", "options", "step_sum", "trapezoid", "spread"),
    [
        (make_freqsum, {}, 0.362, 0.358, 0.068),
        (make_seqcomb_uv, {}, 0.238, 0.229, 0.045),
        (make_seqcomb_uv, {"ramps": "short"}, 0.166, 0.155, 0.038),
        (make_seqcomb_mv, {}, 0.238, 0.229, 0.045),
        (make_lowvar, {}, 0.095, 0.084, 0.037),
    ],
    ids=["freqsum", "seqcomb_uv", "seqcomb_uv-short", "seqcomb_mv", "lowvar"],
)
def test_noise_as_scores_has_the_known_areas(make, options, step_sum, trapezoid, spread):
    # the trapezoids are the paper's row of random scores: 0.35, 0.23, 0.22 and 0.08
    truth = make(400, random_state=0, **options).salient.any(axis=1)
    truth = truth[truth.any(axis=1)]
    scores = np.random.default_rng(1).uniform(size=truth.shape)
    steps = [average_precision_score(*case) for case in zip(truth, scores, strict=True)]
    curves = [precision_recall_curve(*case)[:2] for case in zip(truth, scores, strict=True)]
    trapezoids = [auc(recall, precision) for precision, recall in curves]
    assert np.mean(steps) == pytest.approx(step_sum, abs=0.01)
    assert np.mean(trapezoids) == pytest.approx(trapezoid, abs=0.01)
    assert np.std(trapezoids) == pytest.approx(spread, abs=0.01)


@pytest.fixture(scope="module", params=list(PAPER_SETS))
def parts(request):
    return {split: load_paper_set(request.param, split) for split in PAPER_SETS[request.param]}


class TestPaperSets:
    def test_sizes(self, parts):
        sizes = {split: len(data) for split, data in parts.items()}
        cases = tuple(sizes.values())
        expected = {
            "FreqSum": (5000, 500, 500),
            "SeqComb-UV": (5000, 1000, 1000),
            "SeqComb-MV": (5000, 1000, 1000),
            "LowVar": (5000, 1000, 1000),
            "FarField": (700, 150, 150),
        }
        assert tuple(sizes) == ("train", "validation", "test")
        assert cases == expected[parts["train"].name]

    def test_parts_are_balanced(self, parts):
        for data in parts.values():
            sizes = np.bincount(data.y)
            assert sizes.max() - sizes.min() <= 1

    def test_no_case_is_in_two_parts(self, parts):
        prints = [
            hashlib.sha256(case.tobytes()).digest() for data in parts.values() for case in data.X
        ]
        assert len(set(prints)) == len(prints)

    @pytest.mark.parametrize("name", list(PAPER_SETS))
    def test_the_same_call_gives_the_same_bytes(self, name):
        first, again = load_paper_set(name, "test"), load_paper_set(name, "test", seed=0)
        assert first.X.tobytes() == again.X.tobytes()
        np.testing.assert_array_equal(first.y, again.y)
        np.testing.assert_array_equal(first.salient, again.salient)

    @pytest.mark.parametrize("name", list(PAPER_SETS))
    def test_seeds_differ(self, name):
        drawn = [load_paper_set(name, "test", seed).X for seed in (0, 1, 2)]
        cases = {case.tobytes() for X in drawn for case in X}
        assert len(cases) == 3 * len(drawn[0])

    def test_wrong_names(self):
        with pytest.raises(InvalidParameterError, match="name='freqsums' is unknown"):
            load_paper_set("freqsums", "train")
        with pytest.raises(InvalidParameterError, match="choose one of 'train', 'validation'"):
            load_paper_set("lowvar", "valid")
        with pytest.raises(InvalidParameterError, match="seed must be a whole number"):
            load_paper_set("lowvar", "train", seed=-1)
