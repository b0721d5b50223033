import numpy as np
import pytest
import torch

from problems import make_problem
from timesliver import Attribution, explain
from timesliver.attribution.scores import segment_scores
from timesliver.attribution.sparse import max_times, max_times_in_blocks
from timesliver.errors import InvalidInputError, InvalidParameterError
from timesliver.network.stencils import stencils
from timesliver.symbols import SAX

RNG = np.random.default_rng(11)
X = RNG.normal(size=(6, 3, 25)).cumsum(-1)
METHODS = ["timesliver", "additive"]


def scores(attribution):
    return attribution.positive_by_channel, attribution.negative_by_channel


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
    for c, attribution in enumerate(together):
        alone = explain(problem.network, problem.batch, target=c, method=method)
        for got, want in zip(scores(attribution), scores(alone), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("method", METHODS)
def test_one_target_per_case(method):
    problem = make_problem(X)
    target = np.array([0, 2, 1, 0, 2, 2])
    mixed = explain(problem.network, problem.batch, target=target, method=method)
    by_class = explain(problem.network, problem.batch, target="all", method=method)
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
    problem = make_problem(np.tile(pattern, (1, 1, 3)), segment_sizes=(m,))
    Q = problem.network.encode(problem.batch)
    (phi,) = segment_scores(problem.network, problem.batch, Q, torch.zeros(2, 1, dtype=torch.long))
    for segments in (phi.positive, phi.negative):
        first, second = segments[..., :period], segments[..., period : 2 * period]
        torch.testing.assert_close(first, second)
        assert first.std() > 0


def test_position_breaks_the_symmetry():
    pattern = np.tile(RNG.normal(size=(1, 1, 12)), (1, 1, 3))
    problem = make_problem(pattern, segment_sizes=(5,), positional_encoding=True)
    Q = problem.network.encode(problem.batch)[0]
    assert not torch.allclose(Q[:, :12], Q[:, 12:24])


def test_rescaling_a_channel_changes_no_symbol_and_no_Z():
    rescaled = X.copy()
    rescaled[:, 1] *= 37.3
    rescaled[:, 2] = rescaled[:, 2] * 0.01 + 5
    problem, other = make_problem(X), make_problem(rescaled)
    np.testing.assert_array_equal(problem.codes, other.codes)
    Z, Z_other = stencils(problem.batch, 4, (4,)), stencils(other.batch, 4, (4,))
    for name in ("starts", "segment", "cell", "value"):
        assert torch.equal(getattr(Z, name), getattr(Z_other, name))


def test_opposite_weights_swap_for_and_against():
    problem = make_problem(X, n_classes=2)
    with torch.no_grad():
        problem.network.head.weight[1] = -problem.network.head.weight[0]
    one, other = explain(problem.network, problem.batch, target="all")
    np.testing.assert_allclose(one.positive_by_channel, other.negative_by_channel)
    np.testing.assert_allclose(one.negative_by_channel, other.positive_by_channel)


def test_scores_by_symbol_sum_to_the_scores_by_segment():
    problem = make_problem(X, segment_sizes=(4,))
    Q = problem.network.encode(problem.batch)
    targets = torch.zeros(6, 1, dtype=torch.long)
    (phi,) = segment_scores(problem.network, problem.batch, Q, targets)
    torch.testing.assert_close(phi.positive.sum(-1), phi.positive_by_symbol.sum(-1))
    torch.testing.assert_close(phi.negative.sum(-1), phi.negative_by_symbol.sum(-1))


def test_a_symbol_that_does_not_occur_has_no_score():
    problem = make_problem(np.abs(X), symbolizer=SAX(n_bins=6, normalize=None))
    attribution = explain(problem.network, problem.batch, target=0)
    absent = np.stack([(problem.codes == s).sum(2) == 0 for s in range(1, 7)], axis=2)
    assert absent.any()
    assert (attribution.positive_by_symbol[absent] == 0).all()
    assert (
        attribution.positive_by_symbol[~absent] + attribution.negative_by_symbol[~absent]
    ).min() > 0


def test_maxima_without_the_sparse_kernel():
    problem = make_problem(X, segment_sizes=(4,))
    Q = problem.network.encode(problem.batch)[0].detach().flatten(0, 1)
    Z = stencils(problem.batch, 4, (4,))
    torch.testing.assert_close(max_times_in_blocks(Z, Q), max_times(Z, Q))
    assert (max_times(Z, -Q.abs()) == 0).all()


def test_spreading_moves_mass_only_within_a_segment():
    problem = make_problem(X, double=False, segment_sizes=(5,))
    plain = explain(problem.network, problem.batch, target=0, method="additive")
    spread = explain(problem.network, problem.batch, target=0, method="additive", spread=True)
    np.testing.assert_allclose(
        spread.positive_by_channel.sum(-1), plain.positive_by_channel.sum(-1), rtol=1e-4
    )
    roughness = [np.abs(np.diff(a.positive)).sum() for a in (plain, spread)]
    assert roughness[1] < roughness[0]


def test_background_makes_a_typical_moment_silent():
    problem = make_problem(X, double=False)
    attribution = explain(
        problem.network, problem.batch, target=0, method="additive", background=True
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
    attribution = explain(problem.network, problem.batch, classes=np.array(["a", "b", "c"]))
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
        ({"activation": "gelu"}, InvalidParameterError, "activation='gelu' is unknown"),
        ({"background": True}, InvalidParameterError, "not an option of method='timesliver'"),
        ({"activation": "tanh", "max_scaling": True}, InvalidParameterError, "max_scaling=False"),
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
