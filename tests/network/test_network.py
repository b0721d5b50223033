import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from problems import make_problem
from timesliver import Batch, NetworkConfig, TimeSliverNetwork
from timesliver.errors import InvalidInputError, InvalidParameterError, TimeSliverError
from timesliver.network.composition import window_spread, window_sum
from timesliver.network.head import LinearHead
from timesliver.network.segments import kernel_sizes

RNG = np.random.default_rng(7)
X = RNG.normal(size=(6, 3, 25))


def interactions(problem):
    network, batch = problem.network, problem.batch
    return network.interact(network.spread(network.encode(batch), batch), batch)


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


def test_pooling_in_the_weights_is_average_pooling_of_P():
    head = LinearHead(2, 1, n_channels=1, n_symbols=6, latent_dim=8, pooling=(3, 4))
    P = torch.randn(5, 7, 8)
    pooled = F.avg_pool2d(P[:, None, 1:], (3, 4)).flatten(1)
    expected = pooled @ head.weight.flatten(1).T + head.bias
    torch.testing.assert_close(head([P], [torch.ones(5)]), expected)


def test_a_group_that_is_not_full_averages_what_it_has():
    head = LinearHead(2, 1, n_channels=1, n_symbols=5, latent_dim=1, pooling=(3, 1))
    weights = head.full_weight()[:, 0, 0, 1:, 0]
    torch.testing.assert_close(weights[:, :3], head.weight[:, 0, 0, :1, 0].expand(2, 3) / 3)
    torch.testing.assert_close(weights[:, 3:], head.weight[:, 0, 0, 1:, 0].expand(2, 2) / 2)


def test_no_symbol_has_no_weight():
    head = LinearHead(2, 2, 3, 4, 5, pooling=(2, 2))
    assert (head.full_weight()[:, :, :, 0] == 0).all()


def test_the_weight_is_the_gradient_of_the_logits():
    problem = make_problem(X, segment_sizes=(3, 5), pooling=(2, 3), latent_dim=6)
    R = [torch.randn(6, 3 * 5, 6, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    logits = problem.network.head(R, [torch.ones(6)] * 2)
    W = problem.network.head.full_weight()
    for c in range(3):
        gradients = torch.autograd.grad(logits[:, c].sum(), R, retain_graph=True)
        for size, gradient in enumerate(gradients):
            expected = W[c, size].flatten(0, 1).expand_as(gradient)
            torch.testing.assert_close(gradient, expected)


def test_shared_is_separate_with_the_same_weights_for_all_channels():
    shared = make_problem(X, channels="shared", pooling=(2, 1))
    separate = make_problem(X, channels="separate", pooling=(2, 1))
    state = shared.network.state_dict()
    state["head.weight"] = state["head.weight"].expand(-1, -1, 3, -1, -1)
    separate.network.load_state_dict(state)
    torch.testing.assert_close(separate.network(separate.batch), shared.network(shared.batch))


@pytest.mark.parametrize("channels", ["separate", "shared"])
def test_a_channel_of_its_own_is_not_moved_by_another(channels):
    changed = X.copy()
    changed[:, 1] = RNG.normal(size=changed[:, 1].shape)
    R, R_changed = (
        interactions(problem)[0].view(6, 3, -1)
        for problem in (
            make_problem(X, channels=channels),
            make_problem(changed, channels=channels),
        )
    )
    torch.testing.assert_close(R[:, [0, 2]], R_changed[:, [0, 2]])
    assert not torch.allclose(R[:, 1], R_changed[:, 1])


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("positional_encoding", [False, True])
def test_forward_uses_every_parameter(raw, positional_encoding):
    problem = make_problem(
        X, symbolizer="raw" if raw else "sax", positional_encoding=positional_encoding
    )
    problem.network(problem.batch).square().sum().backward()
    for name, parameter in problem.network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_no_buffers_and_no_device_are_stored():
    network = TimeSliverNetwork(NetworkConfig(2, 5, 2))
    assert list(network.buffers()) == []
    meta = network.to("meta")
    assert {p.device.type for p in meta.parameters()} == {"meta"}


def test_the_seed_decides_the_weights_and_the_global_state_stays():
    config = NetworkConfig(2, 5, 2)
    before = torch.get_rng_state()
    first, again, other = (TimeSliverNetwork(config, seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(first.head.weight, again.head.weight)
    assert not torch.equal(first.head.weight, other.head.weight)


@pytest.mark.parametrize("channels", ["mixed", "separate", "shared"])
@pytest.mark.parametrize("window", ["box", "bell"])
@pytest.mark.parametrize("positional_encoding", [False, True])
def test_padding_changes_no_logit(channels, window, positional_encoding):
    settings = {
        "channels": channels,
        "window": window,
        "positional_encoding": positional_encoding,
        "segment_sizes": (4, 6),
    }
    ragged = [X[0, :, :11], X[1], X[2, :, :6]]
    together = make_problem(ragged, **settings)
    logits = together.network(together.batch)
    for case, expected in zip(ragged, logits, strict=True):
        alone = make_problem([case], **settings)
        torch.testing.assert_close(alone.network(alone.batch)[0], expected)


def test_a_case_shorter_than_a_segment_is_one_segment():
    together = make_problem([X[0, :, :3], X[1]], segment_sizes=(4,))
    extended = make_problem(X[:1, :, :4], segment_sizes=(4,))
    codes = together.codes[:1, :, :4]
    values = together.series.values[:1, :, :4]
    batch = Batch.prepare(values, codes, 4)
    expected = extended.network.double()(
        Batch(batch.values.double(), *list(vars(batch).values())[1:])
    )
    torch.testing.assert_close(together.network(together.batch)[:1], expected)


def test_batches_and_order_change_nothing():
    problem = make_problem(X, double=False, segment_sizes=(4, 7))
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


def test_rows_of_Z_sum_to_the_number_of_observed_channels():
    holes = X.copy()
    holes[RNG.random(X.shape) < 0.3] = np.nan
    holes[:, :, -1] = X[:, :, -1]  # or the case would be shorter
    m = 5
    problem = make_problem(holes, segment_sizes=(m,))
    from timesliver.network.stencils import stencils

    Z = stencils(problem.batch, m, (m,))
    sums = torch.zeros(6 * 21, dtype=torch.float64).index_add_(0, Z.segment, Z.value)
    observed = torch.from_numpy(problem.series.observed.sum(1).astype(float))
    expected = observed.unfold(1, m, 1).mean(2)
    torch.testing.assert_close(sums.view(6, 21), expected)


def test_a_case_without_any_value_gets_the_bias():
    problem = make_problem([np.full((3, 9), np.nan), X[0, :, :9]])
    torch.testing.assert_close(problem.network(problem.batch)[0], problem.network.head.bias)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_classes": 1}, "n_classes must be a whole number, at least 2"),
        ({"segment_sizes": ()}, "segment_sizes must hold 1 to 32"),
        ({"segment_sizes": (0,)}, "segment_sizes"),
        ({"segment_sizes": (3, 3)}, "repeats"),
        ({"latent_dim": 2.5}, "latent_dim must be a whole number"),
        ({"depth": 0}, "depth"),
        ({"window": "round"}, "window='round' is unknown; choose one of 'box', 'bell'"),
        ({"channels": "own"}, "'mixed', 'separate', 'shared'"),
        ({"pooling": (9, 1)}, "pooling over symbols"),
        ({"pooling": (1,)}, "pair"),
        ({"projection_dim": 0}, "projection_dim"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InvalidParameterError, match=message) as error:
        NetworkConfig(**({"n_channels": 2, "n_symbols": 5, "n_classes": 2} | settings))
    assert isinstance(error.value, TimeSliverError)
    assert isinstance(error.value, ValueError)


def test_segments_longer_than_the_series():
    problem = make_problem(X, segment_sizes=(4, 26))
    with pytest.raises(InvalidInputError, match=r"m=26 points does not fit series of L=25"):
        problem.network(problem.batch)


def test_a_batch_of_another_shape():
    problem = make_problem(X)
    other = make_problem(X[:, :2])
    with pytest.raises(InvalidInputError, match="2 channels, 4 symbols and 1 streams"):
        problem.network(other.batch)


def test_codes_that_do_not_fit():
    with pytest.raises(InvalidInputError, match=r"shape \(6, 3, 25\).*\(6, 3, 24\)"):
        Batch.prepare(X, np.ones((6, 3, 24), np.uint8), 4)
    with pytest.raises(InvalidInputError, match=r"codes must lie in 0\.\.4.*1\.\.5"):
        Batch.prepare(X, np.where(X > 0, 5, 1).astype(np.uint8), 4)


def test_codes_that_are_not_whole_numbers():
    with pytest.raises(InvalidInputError, match=r"whole numbers.*got float64"):
        Batch.prepare(X, np.ones(X.shape), 4)


def test_codes_are_kept_small_and_missing_points_lose_theirs():
    holes = X.copy()
    holes[0, 1, 3] = np.nan
    batch = Batch.prepare(holes, np.ones(X.shape, np.int64), 4)
    assert batch.codes.dtype == torch.uint8
    assert (batch.codes == 0).nonzero().tolist() == [[0, 1, 3]]
    assert Batch.prepare(X, np.ones(X.shape, np.int64), 300).codes.dtype == torch.int16


def test_values_beyond_single_precision():
    with pytest.raises(InvalidInputError, match="rescale"):
        Batch.prepare(X * 1e300, np.ones(X.shape, np.uint8), 4)


def test_parameter_count_of_a_convolution_stack():
    network = TimeSliverNetwork(NetworkConfig(6, 15, 2, 36, (7,), pooling=(5, 4)))
    convolutions = (6 * 16 + 16 * 32 + 32 * 36) * 3 + 16 + 32 + 36
    head = 6 * math.ceil(15 / 5) * (36 // 4) * 2 + 2
    assert sum(p.numel() for p in network.parameters()) == convolutions + 2 * 36 + head
