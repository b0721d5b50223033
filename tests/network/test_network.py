import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from problems import make_problem
from timesliver import Segments
from timesliver.encoders import Shape
from timesliver.errors import InvalidInputError, InvalidParameterError, TimeSliverError
from timesliver.network import Batch, Symbols, TimeSliverNetwork, View, dense
from timesliver.network.segments import kernel_sizes
from timesliver.network.weights import Weights
from timesliver.network.windows import window_spread, window_sum, window_weights
from timesliver.series import as_series
from timesliver.symbols import SAX, Clock

RNG = np.random.default_rng(7)
X = RNG.normal(size=(6, 3, 25))


def interactions(problem):
    return [term.features(moments) for term, moments in problem.network.each(problem.batch)]


def drawn(*shape, **settings):
    """Weights as a layer has them, which begin at 0."""
    weights = Weights(*shape, **settings)
    torch.nn.init.normal_(weights.weight)
    return weights


def a_network(seed=0, n_channels=2, n_symbols=5, n_classes=2, **settings):
    shape = Shape(n_channels, n_classes, ((n_channels, n_symbols),))
    encoder = Segments(**{"positional_encoding": True} | settings)
    [(_, network)] = encoder.networks(shape, seed, can_choose=False)
    return network


@pytest.mark.parametrize("m", range(1, 41))
@pytest.mark.parametrize("depth", range(1, 5))
def test_receptive_field_is_m(m, depth):
    sizes = kernel_sizes(m, depth)
    assert len(sizes) == depth
    assert sum(size - 1 for size in sizes) + 1 == m
    assert max(sizes) - min(sizes) <= 1


def test_kernels_of_the_paper():
    assert [kernel_sizes(m, 3) for m in (1, 4, 7, 10)] == [(k, k, k) for k in (1, 2, 3, 4)]


@pytest.mark.parametrize("width", [1, 2, 3, 7, 16, 17, 23, 60])
def test_window_sum(width):
    x = torch.from_numpy(RNG.normal(size=(2, 60, 3)))
    naive = torch.stack([x[:, k : k + width].sum(1) for k in range(60 - width + 1)], 1)
    torch.testing.assert_close(window_sum(x, (width,)), naive)


@pytest.mark.parametrize("widths", [(1,), (2,), (7,), (16,), (17,), (50,), (2, 3, 3), (20, 1, 4)])
def test_window_spread_is_the_transpose_of_window_sum(widths):
    x = torch.from_numpy(RNG.normal(size=(2, 60, 3)))
    sums = window_sum(x, widths)
    y = torch.from_numpy(RNG.normal(size=sums.shape))
    torch.testing.assert_close((window_spread(y, widths) * x).sum(), (sums * y).sum())


def test_window_sum_of_several_widths_is_one_after_another():
    x = torch.from_numpy(RNG.normal(size=(2, 20, 3)))
    torch.testing.assert_close(
        window_sum(x, (2, 3, 3)), window_sum(window_sum(window_sum(x, (2,)), (3,)), (3,))
    )


@pytest.mark.parametrize("widths", [(1,), (7,), (2, 3, 3), (20, 1, 4)])
def test_the_window_is_the_average_of_the_textbook(widths):
    one = torch.ones(1, dtype=torch.float64)
    A = dense.averages(40, widths)
    weights = window_weights(widths, one)
    torch.testing.assert_close(A[3, 3 : 3 + len(weights)], weights)
    torch.testing.assert_close(A[3].sum(), one[0])


def test_pooling_in_the_weights_is_average_pooling_of_P():
    weights = drawn(2, n_channels=1, n_symbols=6, latent_dim=8, pooling=(3, 4))
    P = torch.randn(5, 1, 6, 8)
    pooled = F.avg_pool2d(P, (3, 4)).flatten(1)
    expected = pooled @ weights.weight.flatten(1).T
    torch.testing.assert_close(P.flatten(1) @ weights.full()[:, :, 1:].flatten(1).T, expected)


def test_a_group_that_is_not_full_averages_what_it_has():
    head = drawn(2, n_channels=1, n_symbols=5, latent_dim=1, pooling=(3, 1))
    weights = head.full()[:, 0, 1:, 0]
    torch.testing.assert_close(weights[:, :3], head.weight[:, 0, :1, 0].expand(2, 3) / 3)
    torch.testing.assert_close(weights[:, 3:], head.weight[:, 0, 1:, 0].expand(2, 2) / 2)


def test_no_symbol_has_no_weight():
    full = drawn(2, 3, 4, 5, pooling=(2, 2)).full()
    assert full.shape == (2, 3, 5, 5)
    assert (full[:, :, 0] == 0).all()
    assert (full[:, :, 1:] != 0).all()


def test_the_weight_is_the_gradient_of_the_logits():
    problem = make_problem(X, sizes=(3, 5), pooling=(2, 3), latent_dim=6)
    P = [p.detach().requires_grad_() for p in interactions(problem)]
    terms = problem.network.terms
    logits = sum(dense.head(term.weights, p) for term, p in zip(terms, P, strict=True))
    for c in range(3):
        gradients = torch.autograd.grad(logits[:, c].sum(), P, retain_graph=True)
        for term, gradient in zip(terms, gradients, strict=True):
            torch.testing.assert_close(gradient, term.weight()[c].expand_as(gradient))
            torch.testing.assert_close(term.weight(), term.weights.full()[:, :, 1:])


def test_setting_and_scaling_the_weights_of_a_term():
    problem = make_problem(X, latent_dim=3)
    network, batch = problem.network, problem.batch
    logits = network(batch).detach()
    network.scale(2.5)
    torch.testing.assert_close(network(batch), 2.5 * logits)
    for term in network.terms:
        weight = torch.randn_like(term.weight())
        term.set_weight(weight)
        torch.testing.assert_close(term.weight(), weight)
    expected = network.bias + sum(
        torch.einsum("bjnq,cjnq->bc", P, term.weight())
        for term, P in zip(network.terms, interactions(problem), strict=True)
    )
    torch.testing.assert_close(network(batch), expected)


def test_shared_is_separate_with_the_same_weights_for_all_channels():
    shared = make_problem(X, channels="shared", pooling=(2, 1))
    separate = make_problem(X, channels="separate", pooling=(2, 1))
    state = shared.network.state_dict()
    for name in [name for name in state if name.endswith("weights.weight")]:
        assert state[name].shape[1] == 1
        state[name] = state[name].expand(-1, 3, -1, -1)
    separate.network.load_state_dict(state)
    torch.testing.assert_close(separate.network(separate.batch), shared.network(shared.batch))


@pytest.mark.parametrize("channels", ["separate", "shared"])
def test_a_channel_of_its_own_is_not_moved_by_another(channels):
    changed = X.copy()
    changed[:, 1] = RNG.normal(size=changed[:, 1].shape)
    P, P_changed = (
        interactions(problem)[0]
        for problem in (
            make_problem(X, channels=channels),
            make_problem(changed, channels=channels),
        )
    )
    torch.testing.assert_close(P[:, [0, 2]], P_changed[:, [0, 2]])
    assert not torch.allclose(P[:, 1], P_changed[:, 1])


@pytest.mark.parametrize("symbols", ["sax", "clock", "one", ["sax", "one", Clock(3)]], ids=str)
@pytest.mark.parametrize("positional_encoding", [False, True])
def test_forward_uses_every_parameter(symbols, positional_encoding):
    problem = make_problem(
        X[:, :, :20], symbols=symbols, positional_encoding=positional_encoding, step=2
    )
    assert len(problem.network.terms) == 2 * (len(symbols) if isinstance(symbols, list) else 1)
    problem.network(problem.batch).square().sum().backward()
    for name, parameter in problem.network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_head_parameters_are_all_but_those_of_the_encoders():
    network = a_network(symbols=["sax", "one"])
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    head = {names[id(parameter)] for parameter in network.head_parameters()}
    rest = {name for name in names.values() if name not in head}
    assert head == {"bias", *(name for name in names.values() if ".weights." in name)}
    assert {name.split(".")[2] for name in rest} == {"encoders", "stem"}


def test_no_buffers_but_averages_and_no_device_are_stored():
    network = a_network(sizes=(4, 16))
    names = [name for name, _ in network.named_buffers()]
    assert names == [f"parts.0.terms.{size}.0.average" for size in range(2)]
    meta = network.to("meta")
    assert {p.device.type for p in meta.state_dict().values()} == {"meta"}


def test_the_seed_decides_the_weights_and_the_global_state_stays():
    before = torch.get_rng_state()
    first, again, other = (a_network(seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    for name, weight in first.items():
        assert torch.equal(weight, again[name])
    head = "parts.0.terms.0.0.weights.weight"
    assert first[head].abs().sum() > 0
    assert not torch.equal(first[head], other[head])


@pytest.mark.parametrize("channels", ["mixed", "separate", "shared"])
@pytest.mark.parametrize("window", ["box", "bell"])
@pytest.mark.parametrize("positional_encoding", [False, True])
def test_padding_changes_no_logit(channels, window, positional_encoding):
    settings = {
        "channels": channels,
        "window": window,
        "positional_encoding": positional_encoding,
        "sizes": (4, 6),
    }
    ragged = [X[0, :, :11], X[1], X[2, :, :6]]
    together = make_problem(ragged, **settings)
    logits = together.network(together.batch)
    for case, expected in zip(ragged, logits, strict=True):
        alone = make_problem([case], **settings)
        torch.testing.assert_close(alone.network(alone.batch)[0], expected)


@pytest.mark.parametrize("step", [2, 3])
@pytest.mark.parametrize("symbols", ["sax", "clock", "one"])
def test_padding_changes_no_logit_of_means(step, symbols):
    settings = {"step": step, "symbols": symbols, "sizes": (2, 3)}
    ragged = [X[0, :, :11], X[1], X[2, :, :9]]
    together = make_problem(ragged, **settings)
    logits = together.network(together.batch)
    for case, expected in zip(ragged, logits, strict=True):
        alone = make_problem([case], **settings)
        torch.testing.assert_close(alone.network(alone.batch)[0], expected)


def test_a_case_shorter_than_a_segment_is_one_segment():
    together = make_problem([X[0, :, :3], X[1]], sizes=(4,))
    view = together.view
    whole = as_series(np.full((1, 3, 4), 1.0))
    codes = view.symbols[0].codes[:1, :, :4].numpy()
    values = view.values[:1, :, :4].numpy()
    assert (codes[..., 3] == 0).all()
    symbols = Symbols.of(codes, whole.observed, 4)
    extended = View.of(values, whole, symbols=(symbols,))
    batch = Batch.of(values, whole, views=(extended,)).to(torch.float64)
    batch.views[0].values[:] = view.values[:1, :, :4]  # without rounding to single precision
    expected = together.network(batch)
    torch.testing.assert_close(together.network(together.batch)[:1], expected)


def test_batches_and_order_change_nothing():
    problem = make_problem(X, double=False, sizes=(4, 7))
    logits = problem.network(problem.batch)
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    torch.testing.assert_close(problem.network(problem.batch[order]), logits[order])
    one_by_one = torch.cat([problem.network(problem.batch[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(one_by_one, logits)


def test_infer_in_parts_equals_forward():
    problem = make_problem(X, double=False)
    parts = list(problem.batch.split(100, budget=250))
    assert [len(part) for part in parts] == [2, 2, 2]
    with torch.no_grad():
        torch.testing.assert_close(
            torch.cat([problem.network(part) for part in parts]),
            problem.network.infer(problem.batch),
        )


@pytest.mark.parametrize("window", ["box", "bell"])
def test_rows_of_Z_sum_to_the_number_of_observed_channels(window):
    holes = X.copy()
    holes[RNG.random(X.shape) < 0.3] = np.nan
    holes[:, :, -1] = X[:, :, -1]  # or the case would be shorter
    m = 5
    problem = make_problem(holes, sizes=(m,), window=window)
    [(term, moments)] = problem.network.each(problem.batch)
    Z = term.entries(moments)
    sums = torch.zeros(6 * 21, dtype=torch.float64).index_add_(0, Z.segment, Z.value)
    observed = torch.from_numpy(problem.series.observed.sum(1).astype(float))
    weights = dense.averages(m, moments.widths)[0]
    expected = observed.unfold(1, m, 1) @ weights
    torch.testing.assert_close(sums.view(6, 21), expected)
    by_segment = Z.by_segment(Z.value)
    torch.testing.assert_close(by_segment.sum(1), expected)


def test_a_case_without_any_value_gets_the_bias():
    for symbols in ("sax", "one", ["sax", Clock(2)]):
        problem = make_problem([np.full((3, 9), np.nan), X[0, :, :9]], symbols=symbols)
        torch.testing.assert_close(problem.network(problem.batch)[0], problem.network.bias)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sizes": ()}, "sizes must list at least one segment size and at most 32"),
        ({"sizes": tuple(range(1, 34))}, "at most 32"),
        ({"sizes": (0,)}, "sizes"),
        ({"sizes": (-0.5,)}, "sizes"),
        ({"sizes": (2.5,)}, "sizes"),
        ({"sizes": (3, 3)}, "repeats"),
        ({"sizes": "44"}, "sizes must list"),
        ({"latent_dim": 2.5}, "latent_dim must be a whole number"),
        ({"depth": 0}, "depth"),
        ({"window": "round"}, "window='round' is unknown; choose one of 'box', 'bell'"),
        ({"channels": "own"}, "'mixed', 'separate', 'shared'"),
        ({"pooling": (9, 1)}, "pooling over symbols"),
        ({"symbols": [SAX(5), "one"], "pooling": (2, 1)}, "pooling over symbols"),
        ({"pooling": (1, 99)}, "pooling over latent columns"),
        ({"pooling": (1,)}, "pair"),
        ({"symbols": []}, "symbols must name at least one symbolizer"),
        ({"step": 0}, "step must be a whole number, at least 1"),
        ({"step": "often"}, "step must be a whole number"),
        ({"augment": "noise"}, "augment='noise' is unknown"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InvalidParameterError, match=message) as error:
        Segments(**settings).check()
    assert isinstance(error.value, TimeSliverError)
    assert isinstance(error.value, ValueError)


def test_segments_longer_than_the_series():
    network = make_problem(X, sizes=(4, 26)).network
    batch = make_problem(X, sizes=(4,)).batch
    with pytest.raises(InvalidInputError, match="26 points does not fit series of 25 points"):
        network(batch)


def test_a_batch_of_another_shape():
    problem = make_problem(X)
    for other, given in (
        (make_problem(X[:, :2]), "2 symbol channels of 4 symbols"),
        (make_problem(X, symbols=SAX(6)), "3 symbol channels of 6 symbols"),
        (make_problem(X, symbols=Clock(4)), "1 symbol channels of 4 symbols"),
    ):
        with pytest.raises(InvalidInputError, match=f"{given}; the network was made for 3 of 4"):
            problem.network(other.batch)


ALL = np.ones(X.shape, bool)


def test_codes_that_do_not_fit():
    with pytest.raises(InvalidInputError, match=r"shape \(6, 3, 25\).*\(6, 3, 24\)"):
        Symbols.of(np.ones((6, 3, 24), np.uint8), ALL, 4)
    with pytest.raises(InvalidInputError, match=r"codes must lie in 0\.\.4.*1\.\.5"):
        Symbols.of(np.where(X > 0, 5, 1).astype(np.uint8), ALL, 4)


def test_codes_that_are_not_whole_numbers():
    with pytest.raises(InvalidInputError, match=r"whole numbers.*got float64"):
        Symbols.of(np.ones(X.shape), ALL, 4)


def test_codes_are_kept_small_and_missing_points_lose_theirs():
    seen = ALL.copy()
    seen[0, 1, 3] = False
    codes = Symbols.of(np.ones(X.shape, np.int64), seen, 4).codes
    assert codes.dtype == torch.uint8
    assert (codes == 0).nonzero().tolist() == [[0, 1, 3]]
    assert Symbols.of(np.ones(X.shape, np.int64), ALL, 300).codes.dtype == torch.int16


def test_codes_that_channels_share_are_missing_where_all_channels_are():
    seen = ALL.copy()
    seen[0, 1, 3] = False
    seen[2, :, 7] = False
    shared = np.ones((6, 1, 25), np.int64)
    together = Symbols.of(shared, seen, 4)
    assert together.n_channels == 1
    assert (together.codes == 0).nonzero().tolist() == [[2, 0, 7]]
    apart = Symbols.of(shared, seen, 4, separate=True)
    assert apart.n_channels == 3
    missing = (apart.codes == 0).nonzero().tolist()
    assert missing == [[0, 1, 3], *([2, channel, 7] for channel in range(3))]


def test_values_beyond_single_precision():
    with pytest.raises(InvalidInputError, match="rescale"):
        Batch.of(X * 1e300, as_series(X))


def test_the_average_is_that_of_the_features():
    problem = make_problem(X, symbols=["sax", "clock"], step=2, sizes=(2, 3))
    network, batch = problem.network, problem.batch
    network.learn_average(batch)
    network.learn_average(batch)  # starts anew
    for term, P in zip(network.terms, interactions(problem), strict=True):
        torch.testing.assert_close(term.average, P.mean(0, keepdim=True))


def test_the_mean_of_networks():
    problems = [make_problem(X, seed=seed, symbols=["sax", "one"]) for seed in range(3)]
    batch = problems[0].batch
    networks = [problem.network for problem in problems]
    before = [network(batch).detach() for network in networks]
    together = TimeSliverNetwork.mean(networks)
    torch.testing.assert_close(together(batch), torch.stack(before).mean(0))
    torch.testing.assert_close(together.infer(batch), torch.stack(before).mean(0))
    for network, logits in zip(networks, before, strict=True):  # which stay as they are
        assert torch.equal(network(batch), logits)
    assert TimeSliverNetwork.mean(networks[:1]) is networks[0]


def test_parameter_count_of_a_convolution_stack():
    network = a_network(
        n_channels=6,
        n_symbols=15,
        latent_dim=36,
        sizes=(7,),
        pooling=(5, 4),
        positional_encoding=False,
    )
    convolutions = (6 * 16 + 16 * 32 + 32 * 36) * 3 + 16 + 32 + 36
    head = 6 * math.ceil(15 / 5) * (36 // 4) * 2 + 2
    assert sum(p.numel() for p in network.parameters()) == convolutions + 2 * 36 + head
