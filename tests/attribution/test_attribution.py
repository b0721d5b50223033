import numpy as np
import pytest
import torch

from problems import make_problem
from timesliver import Attribution
from timesliver.attribution import explain, join, options_of
from timesliver.attribution.phi import max_times, max_times_in_blocks
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.symbols import SAX

RNG = np.random.default_rng(11)
X = RNG.normal(size=(6, 3, 25)).cumsum(-1)
METHODS = ["timesliver", "additive"]


def scores(attribution):
    return attribution.positive_by_channel, attribution.negative_by_channel


def entries_of(problem):
    return [term.entries(moments) for term, moments in problem.network.each(problem.batch)]


@pytest.mark.parametrize("method", METHODS)
def test_shapes_signs_and_sums(method):
    problem = make_problem(X, double=False)
    attribution = explain(problem.network, problem.batch, method=method)
    assert attribution.positive_by_channel.shape == (6, 3, 25)
    for part in scores(attribution):
        assert np.isfinite(part).all()
        assert (part >= 0).all()
    np.testing.assert_allclose(attribution.positive, attribution.positive_by_channel.sum(1))
    np.testing.assert_allclose(attribution.net, attribution.positive - attribution.negative)
    np.testing.assert_allclose(attribution.magnitude, attribution.positive + attribution.negative)


@pytest.mark.parametrize("method", METHODS)
def test_the_predicted_class_is_explained_by_its_logit(method):
    problem = make_problem(X)
    logits = problem.network(problem.batch).detach().numpy()
    attribution = explain(problem.network, problem.batch, method=method)
    np.testing.assert_array_equal(attribution.target, logits.argmax(1))
    np.testing.assert_allclose(attribution.logit, logits.max(1))


@pytest.mark.parametrize("method", METHODS)
def test_all_classes_at_once_equal_one_by_one(method):
    problem = make_problem(X)
    together = explain(problem.network, problem.batch, target="all", method=method)
    assert len(together) == 18
    assert together.target.tolist() == [c for c in range(3) for _ in range(6)]
    for c, attribution in enumerate(together.by_class()):
        alone = explain(problem.network, problem.batch, target=c, method=method)
        for got, want in zip(scores(attribution), scores(alone), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("method", METHODS)
def test_one_target_per_case(method):
    problem = make_problem(X)
    target = np.array([0, 2, 1, 0, 2, 2])
    mixed = explain(problem.network, problem.batch, target=target, method=method)
    by_class = explain(problem.network, problem.batch, target="all", method=method).by_class()
    for case, c in enumerate(target):
        for got, want in zip(scores(mixed[case]), scores(by_class[c][case]), strict=True):
            np.testing.assert_allclose(got, want)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("channels", ["mixed", "separate"])
def test_batches_and_order_change_nothing(method, channels):
    problem = make_problem(X, channels=channels)
    order = np.array([3, 1, 5, 0, 2, 4])
    attribution = explain(problem.network, problem.batch, method=method)
    shuffled = explain(problem.network, problem.batch[order], method=method)
    alone = [explain(problem.network, problem.batch[i : i + 1], method=method) for i in order]
    for i, want in enumerate(scores(attribution[order])):
        np.testing.assert_allclose(scores(shuffled)[i], want, rtol=1e-12)
        np.testing.assert_allclose(np.concatenate([scores(a)[i] for a in alone]), want, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("channels", ["mixed", "separate", "shared"])
def test_padding_changes_no_score(method, channels):
    ragged = [X[0, :, :12], X[1], X[2, :, :8]]
    together = make_problem(ragged, channels=channels)
    attribution = explain(together.network, together.batch, method=method)
    for i, case in enumerate(ragged):
        alone = make_problem([case], channels=channels)
        expected = explain(alone.network, alone.batch, method=method)
        for got, want in zip(scores(attribution[i]), scores(expected), strict=True):
            np.testing.assert_allclose(got[..., : case.shape[1]], want, rtol=1e-9, atol=1e-12)
            assert (got[..., case.shape[1] :] == 0).all()


def test_identical_segments_get_identical_scores():
    m, period = 5, 12
    pattern = RNG.normal(size=(2, 3, period))
    problem = make_problem(np.tile(pattern, (1, 1, 3)), sizes=(m,))
    attribution = explain(problem.network, problem.batch, 0, "timesliver")
    inside = slice(m - 1, m - 1 + period), slice(m - 1 + period, m - 1 + 2 * period)
    for points in scores(attribution):  # those that as many segments cover
        first, second = (points[..., part] for part in inside)
        np.testing.assert_allclose(first, second)
        assert first.std() > 0


def test_position_breaks_the_symmetry():
    pattern = np.tile(RNG.normal(size=(1, 1, 12)), (1, 1, 3))
    problem = make_problem(pattern, sizes=(5,), positional_encoding=True)
    [(_, moments)] = problem.network.each(problem.batch)
    assert not torch.allclose(moments.Q[:, :12], moments.Q[:, 12:24])


def test_rescaling_a_channel_changes_no_symbol_and_no_Z():
    rescaled = X.copy()
    rescaled[:, 1] *= 37.3
    rescaled[:, 2] = rescaled[:, 2] * 0.01 + 5
    problem, other = make_problem(X), make_problem(rescaled)
    codes = [one.view.symbols[0].codes for one in (problem, other)]
    assert torch.equal(*codes)
    Z, Z_other = (entries_of(one)[0] for one in (problem, other))
    for name in ("starts", "segment", "cell", "value"):
        assert torch.equal(getattr(Z, name), getattr(Z_other, name))


@pytest.mark.parametrize("method", METHODS)
def test_opposite_weights_swap_for_and_against(method):
    problem = make_problem(X, n_classes=2)
    with torch.no_grad():
        for term in problem.network.terms:
            term.weights.weight[1] = -term.weights.weight[0]
    one, other = explain(problem.network, problem.batch, "all", method).by_class()
    np.testing.assert_allclose(one.positive_by_channel, other.negative_by_channel)
    np.testing.assert_allclose(one.negative_by_channel, other.positive_by_channel)


def test_scores_by_symbol_sum_to_the_scores_by_segment():
    """Segments of one point, so that points are segments."""
    problem = make_problem(X, sizes=(1,), depth=1)
    attribution = explain(problem.network, problem.batch, 0, "timesliver")
    for by_channel, by_symbol in (
        (attribution.positive_by_channel, attribution.positive_by_symbol),
        (attribution.negative_by_channel, attribution.negative_by_symbol),
    ):
        assert by_symbol.shape == (6, 3, 4)
        np.testing.assert_allclose(by_channel.sum(-1), by_symbol.sum(-1))


@pytest.mark.parametrize("symbols", ["clock", ["sax", "sfa"], ["sax", "one"]], ids=str)
def test_scores_by_symbol_need_one_set_of_symbols_for_each_channel(symbols):
    problem = make_problem(X, symbols=symbols)
    attribution = explain(problem.network, problem.batch, 0, "timesliver")
    assert attribution.positive_by_symbol is None
    assert attribution.negative_by_symbol is None


def test_a_symbol_that_does_not_occur_has_no_score():
    problem = make_problem(np.abs(X), symbols=SAX(n_bins=6, normalize=None))
    attribution = explain(problem.network, problem.batch, target=0, method="timesliver")
    codes = problem.view.symbols[0].codes.numpy()
    absent = np.stack([(codes == s).sum(2) == 0 for s in range(1, 7)], axis=2)
    assert absent.any()
    assert (attribution.positive_by_symbol[absent] == 0).all()
    assert (
        attribution.positive_by_symbol[~absent] + attribution.negative_by_symbol[~absent]
    ).min() > 0


def test_maxima_without_the_sparse_kernel():
    [Z] = entries_of(make_problem(X, sizes=(4,)))
    Q = Z.Q.detach()
    torch.testing.assert_close(max_times_in_blocks(Z, Q), max_times(Z, Q))
    assert (max_times(Z, -Q.abs()) == 0).all()


def test_spreading_moves_mass_only_within_a_segment():
    problem = make_problem(X, double=False, sizes=(5,))
    plain = explain(problem.network, problem.batch, target=0, smoothing=0)
    spread = explain(problem.network, problem.batch, target=0, smoothing=5)
    np.testing.assert_allclose(
        spread.positive_by_channel.sum(-1), plain.positive_by_channel.sum(-1), rtol=1e-4
    )
    roughness = [np.abs(np.diff(a.positive)).sum() for a in (plain, spread)]
    assert roughness[1] < roughness[0]
    by_channel = spread.positive_by_channel, plain.positive_by_channel
    for one, other in zip(*(part.reshape(-1, 25) for part in by_channel), strict=True):
        for t in range(25):  # what lies before a point moves two points on at most
            assert one[: t + 1].sum() >= other[: max(t - 1, 0)].sum() * (1 - 1e-4) - 1e-6
            assert one[: t + 1].sum() <= other[: t + 3].sum() * (1 + 1e-4) + 1e-6


def test_an_even_width_is_the_next_odd_one_and_one_point_is_none():
    problem = make_problem(X)
    at = {
        width: explain(problem.network, problem.batch, 0, smoothing=width).positive_by_channel
        for width in (0, 1, 4, 5, 7)
    }
    np.testing.assert_array_equal(at[0], at[1])
    np.testing.assert_array_equal(at[4], at[5])
    assert not np.allclose(at[5], at[7])


@pytest.mark.parametrize(
    ("settings", "width"),
    [
        ({"sizes": (4, 7)}, 7),
        ({"sizes": (4, 7), "window": "bell"}, 7),
        ({"sizes": (4, 2), "step": 2}, 8),
        ({"sizes": (1,)}, 1),
    ],
)
def test_smoothing_follows_the_longest_stretch_that_an_encoder_sees(settings, width):
    problem = make_problem(X, **settings)
    auto, given = (
        explain(problem.network, problem.batch, 0, smoothing=width) for width in ("auto", width)
    )
    default = explain(problem.network, problem.batch, 0)
    for got, want, same in zip(scores(auto), scores(given), scores(default), strict=True):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(same, want)


def test_background_makes_a_typical_moment_silent():
    problem = make_problem(X, double=False)
    attribution = explain(
        problem.network, problem.batch, target=0, background="series", smoothing=0
    )
    net = attribution.positive_by_channel - attribution.negative_by_channel
    np.testing.assert_allclose(np.median(net, axis=-1), 0, atol=1e-6)


def test_explaining_leaves_no_gradient_and_does_not_train():
    problem = make_problem(X)
    before = {name: p.clone() for name, p in problem.network.named_parameters()}
    explain(problem.network, problem.batch)
    for name, parameter in problem.network.named_parameters():
        assert parameter.grad is None
        assert torch.equal(parameter, before[name])


def test_slicing():
    problem = make_problem(X)
    attribution = explain(
        problem.network, problem.batch, method="timesliver", classes=np.array(["a", "b", "c"])
    )
    assert len(attribution[2:5]) == 3
    assert len(attribution[-1]) == 1
    np.testing.assert_array_equal(attribution[-1].positive, attribution.positive[-1:])
    np.testing.assert_array_equal(attribution[2].classes, ["a", "b", "c"])
    assert repr(attribution[2:5]) == (
        "Attribution('timesliver', n_cases=3, n_channels=3, n_timepoints=25, n_classes=3)"
    )
    with pytest.raises(IndexError, match="case 6 asked for, but there are 6"):
        attribution[6]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "lime"}, InvalidParameterError, "method='lime' is unknown"),
        ({"activation": "relu"}, InvalidParameterError, "not an option of method='additive'"),
        (
            {"background": None, "method": "timesliver"},
            InvalidParameterError,
            "not an option of method='timesliver'; its options are max_scaling, centred",
        ),
        ({"background": True}, InvalidParameterError, "background=True is unknown"),
        ({"smoothing": -1}, InvalidParameterError, "smoothing must be a whole number, at least 0"),
        ({"smoothing": "much"}, InvalidParameterError, "smoothing must be a whole number"),
        ({"target": 3}, InvalidInputError, r"target must lie in 0\.\.2"),
        ({"target": "every"}, InvalidParameterError, "target='every' is unknown"),
        ({"target": [0, 1]}, InvalidInputError, "one index for each of the 6 cases"),
        ({"target": 0.5}, InvalidInputError, "class index"),
        ({"classes": np.array(["a"])}, InvalidInputError, "3 classes"),
    ],
)
def test_bad_requests(options, error, message):
    problem = make_problem(X)
    with pytest.raises(error, match=message):
        explain(problem.network, problem.batch, **options)


def test_an_attribution_checks_its_parts():
    one = np.zeros(2)
    with pytest.raises(InvalidInputError, match=r"\(n_cases, n_channels, n_timepoints\)"):
        Attribution(
            np.zeros((2, 5)), np.zeros((2, 5)), one, one, one.astype(int), np.arange(2), "m"
        )
    with pytest.raises(InvalidInputError, match="logit must have one entry for each of the 2"):
        Attribution(
            np.zeros((2, 1, 5)),
            np.zeros((2, 1, 5)),
            np.zeros(3),
            one,
            one.astype(int),
            np.arange(2),
            "m",
        )


def test_options_are_the_given_ones_and_the_defaults():
    assert options_of("additive", {"smoothing": 3}) == {
        "centred": False,
        "background": "training",
        "smoothing": 3,
    }
    assert options_of("timesliver", {}) == {"max_scaling": True, "centred": False}


def test_joining():
    problem = make_problem(X)
    whole = explain(problem.network, problem.batch, target="all")
    again = join([whole[:5], whole[5:]])
    assert join([whole]) is whole
    for name, part in whole.by_case().items():
        np.testing.assert_array_equal(getattr(again, name), part, err_msg=name)


@pytest.mark.parametrize("method", METHODS)
def test_probabilities_and_lengths_go_with_every_class(method):
    problem = make_problem([X[0, :, :12], X[1], X[2, :, :8]])
    every = explain(problem.network, problem.batch, "all", method)
    logits = problem.network(problem.batch).detach().numpy()
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(every.probabilities, np.tile(p, (3, 1)))


def test_single_cases_of_several_channels():
    """A batch of one case lies in memory as no other does."""
    for symbols in ("sax", "clock", ["sax", "one"]):
        problem = make_problem(X[:1], symbols=symbols)
        for method in METHODS:
            assert explain(problem.network, problem.batch, method=method).positive.any()
