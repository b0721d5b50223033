"""The closed form equals the dense page, which multiplies everything out."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import make_problem, problems
from timesliver.attribution import explain
from timesliver.network import TimeSliverNetwork, dense
from timesliver.symbols import SAX

PLAIN = {"background": None, "smoothing": 0}
BACKGROUNDS = [None, "series", "training"]
SMOOTHING = [0, 1, 2, 5, "auto"]


def to_channels(points, view, n_timepoints):
    """Scores of symbol channels as those of channels; the observed ones share alike."""
    if points.shape[1] < view.n_channels:
        seen = view.observed.to(points)
        points = points * (seen / seen.sum(1, keepdim=True).clamp(min=1))
    return points[..., :n_timepoints].detach().numpy()


def textbook_phi(problem, c, **options):
    """Return phi+ and phi- of channels: those of every term, while the others are silent."""
    terms = problem.network.terms
    kept = [term.weights.weight.detach().clone() for term in terms]
    totals = [0, 0]
    with torch.no_grad():
        for loud in range(len(terms)):
            for i, (term, weight) in enumerate(zip(terms, kept, strict=True)):
                term.weights.weight.copy_(weight if i == loud else 0 * weight)
            found = dense.phi(problem.network, problem.batch, c, **options)
            J = terms[loud].weights.n_channels
            for i, points in enumerate(found):
                totals[i] += to_channels(points[:, :J], problem.view, problem.batch.n_timepoints)
        for term, weight in zip(terms, kept, strict=True):
            term.weights.weight.copy_(weight)
    return totals


def assert_scores(problem, attribution, c, tolerance, **options):
    expected = textbook_phi(problem, c, **options)
    scores = (attribution.positive_by_channel, attribution.negative_by_channel)
    for got, want in zip(scores, expected, strict=True):
        for case in range(len(got)):
            np.testing.assert_allclose(
                got[case],
                want[case],
                rtol=tolerance,
                atol=tolerance * want[case].max(initial=1),
            )


@pytest.mark.parametrize("max_scaling", [True, False])
@pytest.mark.parametrize("centred", [True, False])
@settings(max_examples=40, deadline=None)
@given(problem=problems(latent_dim=2, pooling=(1, 1), step=1))
def test_scores(problem, max_scaling, centred):
    options = {"max_scaling": max_scaling, "centred": centred}
    c = problem.network.n_classes - 1
    attribution = explain(problem.network, problem.batch, c, "timesliver", **options)
    assert_scores(problem, attribution, c, 1e-9, **options)


@settings(max_examples=30, deadline=None)
@given(problems(step=1))
def test_scores_with_pooling(problem):
    attribution = explain(problem.network, problem.batch, target=0, method="timesliver")
    assert_scores(problem, attribution, 0, 1e-9)


@settings(max_examples=30, deadline=None)
@given(problems(double=False, latent_dim=2, pooling=(1, 1), step=1))
def test_scores_in_single_precision(problem):
    """Without max-scaling: dividing by a maximum that is itself rounding noise has no answer."""
    attribution = explain(problem.network, problem.batch, 1, "timesliver", max_scaling=False)
    exact = replace(problem, network=problem.network.double(), batch=problem.batch.to(torch.double))
    assert_scores(exact, attribution, 1, 1e-5, max_scaling=False)


@pytest.mark.parametrize("max_scaling", [True, False])
@settings(max_examples=30, deadline=None)
@given(problem=problems(symbolizers=("sax", "sfa", "abba"), step=1))
def test_scores_by_symbol(problem, max_scaling):
    attribution = explain(problem.network, problem.batch, 1, "timesliver", max_scaling=max_scaling)
    if attribution.positive_by_symbol is None:
        return  # several sets of symbols
    positive, negative = 0, 0
    for term, book in zip(
        problem.network.terms, dense.terms(problem.network, problem.batch), strict=True
    ):
        g = term.weight()[1][None, :, None]
        product = g.sign() * book.Z[..., None] * book.Q[..., None, :]
        both = [product.clamp(min=0), (-product).clamp(min=0)]
        if max_scaling:
            both = [zeta / (zeta.amax(2, keepdim=True) + 1e-18) for zeta in both]
        sums = [(g.abs() * zeta).sum((2, 4)).detach().numpy() for zeta in both]
        positive, negative = positive + sums[0], negative + sums[1]
    for got, want in (
        (attribution.positive_by_symbol, positive),
        (attribution.negative_by_symbol, negative),
    ):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9 * want.max(initial=1))


def textbook_shares(problem, c):
    """Return the shares of the channels and points of the view, (B, v, L of the view)."""
    shares = dense.additive(problem.network, problem.batch, c)
    n = problem.view.n_timepoints
    return sum(to_channels(of_term, problem.view, n) for of_term in shares)


@settings(max_examples=40, deadline=None)
@given(problems(step=1))
def test_additive_shares(problem):
    every = explain(problem.network, problem.batch, "all", **PLAIN)
    for c, attribution in enumerate(every.by_class()):
        net = attribution.positive_by_channel - attribution.negative_by_channel
        expected = textbook_shares(problem, c)[..., : net.shape[2]]
        np.testing.assert_allclose(net, expected, rtol=1e-9, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(problems(), st.sampled_from([2, 3, 4]))
def test_points_that_were_averaged_share_alike(problem, step):
    problem = make_problem(problem.series, step=step, sizes=(2, 3), symbols=["sax", "clock"])
    L = problem.batch.n_timepoints
    net = explain(problem.network, problem.batch, 1, **PLAIN)
    net = net.positive_by_channel - net.negative_by_channel
    expected = textbook_shares(problem, 1)
    observed = problem.series.observed
    for t in range(L):
        block = slice(t // step * step, t // step * step + step)
        count = observed[:, :, block].sum(2)
        share = np.where(observed[:, :, t], expected[:, :, t // step] / np.maximum(count, 1), 0)
        np.testing.assert_allclose(net[:, :, t], share, rtol=1e-9, atol=1e-12)


def other_cases(batch):
    """The same symbols with other values."""
    views = tuple(replace(view, values=view.values.flip(2) * view.observed) for view in batch.views)
    return replace(batch, values=batch.values.flip(2) * batch.observed, views=views)


def assert_complete(network, batch, **options):
    """Base and shares are the logit of every class, and nothing is said where nothing is."""
    logits = network(batch).detach().numpy().astype(np.float64)
    if options.get("centred"):
        logits -= logits.mean(axis=1, keepdims=True)
    every = explain(network, batch, "all", "additive", **options)
    unseen = ~batch.observed.numpy()
    for c, attribution in enumerate(every.by_class()):
        assert (attribution.positive_by_channel >= 0).all()
        assert (attribution.negative_by_channel >= 0).all()
        assert (attribution.positive_by_channel[unseen] == 0).all()
        assert (attribution.negative_by_channel[unseen] == 0).all()
        total = attribution.net.sum(axis=1, dtype=np.float64) + attribution.base
        scale = 1 + attribution.magnitude.sum(axis=1).max()
        assert np.abs(total - logits[:, c]).max() < 1e-5 * scale
        np.testing.assert_allclose(attribution.logit, logits[:, c], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHING)
@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize("centred", [False, True])
@settings(max_examples=15, deadline=None)
@given(problem=problems(double=False), learned=st.booleans())
def test_additive_is_complete_for_every_class(problem, learned, centred, background, smoothing):
    if learned:
        problem.network.learn_average(other_cases(problem.batch))
    assert_complete(
        problem.network,
        problem.batch,
        centred=centred,
        background=background,
        smoothing=smoothing,
    )


def several(problem, n):
    """Networks like that of a problem, one of another encoder, and a batch that all can see."""
    X = problem.series
    alike = [
        make_problem(X, symbols=["sax", "clock"], double=False, seed=seed, n_classes=3)
        for seed in range(n)
    ]
    other = make_problem(
        X, symbols=SAX(3), step=2, sizes=(2,), channels="separate", double=False, n_classes=3
    )
    other.network.parts[0].view = 1
    batch = replace(alike[0].batch, views=(alike[0].view, other.view))
    return [*(one.network for one in alike), other.network], batch


@pytest.mark.parametrize("background", BACKGROUNDS)
@settings(max_examples=15, deadline=None)
@given(
    problem=problems(),
    centred=st.booleans(),
    smoothing=st.sampled_from(SMOOTHING),
    learned=st.booleans(),
)
def test_averages_of_networks_are_complete(problem, background, centred, smoothing, learned):
    networks, batch = several(problem, 2)
    together = TimeSliverNetwork.mean(networks)
    if learned:
        together.learn_average(other_cases(batch))
    options = {"centred": centred, "background": background, "smoothing": smoothing}
    assert_complete(together, batch, **options)


@pytest.mark.parametrize("background", [None, "training"])
@pytest.mark.parametrize("centred", [False, True])
@settings(max_examples=15, deadline=None)
@given(problem=problems())
def test_the_mean_of_networks_says_what_they_say_on_average(problem, background, centred):
    networks, batch = several(problem, 3)
    for network in networks:
        network.learn_average(other_cases(batch))
    together = TimeSliverNetwork.mean(networks)  # which keeps what each learned
    options = {"centred": centred, "background": background, "smoothing": 0}
    got = explain(together, batch, "all", **options)
    each = [explain(network, batch, "all", **options) for network in networks]

    def mean(name):
        return np.mean([getattr(one, name) for one in each], axis=0)

    for name in ("logit", "base", "net"):
        np.testing.assert_allclose(getattr(got, name), mean(name), rtol=1e-4, atol=1e-5)
    by_channel = [one.positive_by_channel - one.negative_by_channel for one in (got, *each)]
    np.testing.assert_allclose(by_channel[0], np.mean(by_channel[1:], axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("centred", [False, True])
@settings(max_examples=30, deadline=None)
@given(problem=problems(), seed=st.integers(0, 2**32 - 1))
def test_the_base_is_the_mean_training_logit(centred, problem, seed):
    """Where everything was observed, for every case, and on the average of those learned from."""
    X = np.random.default_rng(seed).normal(size=problem.series.values.shape)
    settings = {"symbols": ["sax", "clock", "one"], "sizes": (1, 2), "step": 1 + seed % 3}
    whole = make_problem(X, **settings)
    network, batch = whole.network, whole.batch
    network.learn_average(batch)
    logits = network(batch).detach().numpy()
    if centred:
        logits = logits - logits.mean(axis=1, keepdims=True)
    every = explain(network, batch, "all", centred=centred, background="training", smoothing=0)
    for c, attribution in enumerate(every.by_class()):
        np.testing.assert_allclose(attribution.base, logits[:, c].mean(), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(attribution.net.sum(axis=1).mean(), 0, atol=1e-9)


def test_a_channel_that_was_not_observed_has_no_part_in_the_base():
    X = np.random.default_rng(0).normal(size=(4, 3, 20))
    problem = make_problem(X, channels="separate")
    problem.network.learn_average(problem.batch)
    holes = X.copy()
    holes[0, 1] = np.nan
    some = make_problem(holes, channels="separate")
    some.network.load_state_dict(problem.network.state_dict())
    options = {"target": 2, "smoothing": 0}
    first = explain(some.network, some.batch, background="training", **options)[0]
    plain = explain(some.network, some.batch, background=None, **options)[0]
    typical = sum(
        (term.average * term.weight()[2]).sum((2, 3)) for term in problem.network.terms
    )  # (1, v)
    expected = problem.network.bias[2] + typical[0, [0, 2]].sum()
    np.testing.assert_allclose(first.base, expected.detach(), rtol=1e-9)
    net, was = (a.positive_by_channel - a.negative_by_channel for a in (first, plain))
    for channel in (0, 2):
        shift = typical[0, channel].detach().numpy() / 20
        np.testing.assert_allclose(net[0, channel], was[0, channel] - shift, rtol=1e-9, atol=1e-12)
    assert (net[0, 1] == 0).all()
