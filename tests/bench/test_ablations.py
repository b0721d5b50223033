"""What differs from the paper's model is compared with the equations, written out."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from timesliver import Segments, TimeSliverClassifier, encoders
from timesliver.attribution import explain
from timesliver.bench.tasks.activations import ACTIVATIONS, ActivatedScores
from timesliver.bench.tasks.pooling import MaxSegments
from timesliver.bench.tasks.raw import RawSegments
from timesliver.encoders import Shape
from timesliver.errors import InvalidParameterError, NotApplicableError
from timesliver.io import read_tensors
from timesliver.network import Batch, dense
from timesliver.series import as_series
from timesliver.symbols import SAX

N = 4  # symbols, or columns


def problem(encoder, X, n_classes=3):
    """An untrained network of an encoder, in double precision, with some series."""
    series, symbolizer = as_series(X), SAX(N).fit(X)
    mean, scale = series.moments()
    encoder = encoder.resolved(series.n_timepoints)
    shape = Shape(series.n_channels, n_classes, ((series.n_channels, N),))
    [(_, network), *_] = encoder.networks(shape, 0, can_choose=False)
    view = encoder.view(series, [symbolizer], mean, scale)
    batch = Batch.of(series.standardized(mean, scale), series, views=(view,))
    return network.double(), batch.to(torch.float64)


@st.composite
def problems(draw, kind, **fixed):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    L, v = draw(st.integers(8, 24)), draw(st.integers(1, 3))
    X = rng.normal(size=(2, v, L))
    if draw(st.booleans()):
        X[rng.random(X.shape) < 0.2] = np.nan
    if draw(st.booleans()):
        X[1, :, rng.integers(2, L) :] = np.nan
    X[:, :, 0] = 1.0
    drawn = {
        "symbols": SAX(N),
        "latent_dim": draw(st.integers(1, 5)),
        "sizes": tuple(draw(st.sets(st.integers(1, 8), min_size=1, max_size=2))),
        "positional_encoding": draw(st.booleans()),
        "channels": draw(st.sampled_from(["mixed", "separate", "shared"])),
        "window": draw(st.sampled_from(["box", "bell"])),
        "depth": draw(st.sampled_from([1, 3])),
    }
    return problem(kind(**{**drawn, **fixed}), X)


def net_by_channel(scores):
    return scores.positive_by_channel - scores.negative_by_channel


def raw_terms(network, batch):
    """The terms of the dense page, with the learnt columns in place of O: (O, Z, P, term)."""
    [part], [view] = network.parts, batch.views
    slope, offset = part.columns.slope, part.columns.offset
    x = view.values[..., None]  # (B, v, L, 1)
    O = (slope[:, None] * x + offset[:, None]) * view.observed[..., None]
    for term in dense.terms(network, batch):
        Z = torch.einsum("bkt,bjtn->bjkn", term.A, O)
        P = torch.einsum("bjkn,bjkq->bjnq", Z, term.Q)
        yield term._replace(O=O, Z=Z, P=P)


class TestRaw:
    @settings(deadline=None)
    @given(problems(RawSegments))
    def test_logits(self, drawn):
        network, batch = drawn
        with torch.no_grad():
            expected = network.bias + sum(
                dense.head(term.weights, term.P) for term in raw_terms(network, batch)
            )
            torch.testing.assert_close(network(batch), expected)

    @settings(deadline=None)
    @given(problems(RawSegments))
    def test_shares(self, drawn):
        network, batch = drawn
        c = 1
        scores = explain(network, batch, c, background=None, smoothing=0)
        expected = torch.zeros_like(batch.values)
        for term in raw_terms(network, batch):
            W = term.weights.weight[c].expand(batch.n_channels, -1, -1)
            Qt = torch.einsum("bkt,bjkq->bjtq", term.A, term.Q)
            expected += torch.einsum("bjtn,jnq,bjtq->bjt", term.O, W, Qt)[
                ..., : batch.n_timepoints
            ].detach()
        np.testing.assert_allclose(net_by_channel(scores), expected.numpy(), atol=1e-10)
        np.testing.assert_allclose(scores.base + scores.net.sum(axis=1), scores.logit, atol=1e-10)

    @settings(deadline=None)
    @given(problems(RawSegments), st.booleans())
    def test_scores(self, drawn, max_scaling):
        network, batch = drawn
        c = 2
        scores = explain(network, batch, c, method="timesliver", max_scaling=max_scaling)
        expected = [torch.zeros_like(batch.values) for _ in range(2)]
        for term in raw_terms(network, batch):
            g = term.weights.weight[c].detach().expand(batch.n_channels, -1, -1)
            cover = (term.A > 0).double()  # (B, kappa, L)
            for i, sign in enumerate((1, -1)):
                products = g.sign()[None, :, None] * term.Z[..., None] * term.Q[..., None, :]
                zeta = torch.relu(sign * products.detach())
                if max_scaling:
                    zeta = zeta / (zeta.amax(2, keepdim=True) + 1e-18)
                segments = (g.abs()[None, :, None] * zeta).sum((3, 4))
                points = torch.einsum("bjk,bkt->bjt", segments, cover)
                points = points / cover.sum(1).clamp(min=1)[:, None]
                expected[i] += points[..., : batch.n_timepoints]
        np.testing.assert_allclose(scores.positive_by_channel, expected[0].numpy(), atol=1e-9)
        np.testing.assert_allclose(scores.negative_by_channel, expected[1].numpy(), atol=1e-9)

    def test_one_set_of_columns_serves_all_sizes(self):
        network, _ = problem(RawSegments(symbols=SAX(N), sizes=(2, 3)), np.ones((1, 2, 9)))
        ordinary, _ = problem(Segments(symbols=SAX(N), sizes=(2, 3)), np.ones((1, 2, 9)))
        count = sum(p.numel() for p in network.parameters())
        assert count - sum(p.numel() for p in ordinary.parameters()) == 2 * 2 * N
        head = {id(p) for p in network.head_parameters()}
        assert id(network.parts[0].columns.slope) not in head


def largest(P, pooling):
    """Maxima of groups of P: (B, J, n, q) to (B, J, rows, columns)."""
    missing = (0, -P.shape[3] % pooling[1], 0, -P.shape[2] % pooling[0])
    return F.max_pool2d(F.pad(P, missing, value=-torch.inf), pooling)


def max_logits(network, features):
    """Logits from P of each term."""
    return network.bias + sum(
        torch.einsum(
            "bjnq,cjnq->bc",
            largest(P, term.weights.pooling),
            term.weights.weight.expand(-1, P.shape[1], -1, -1),
        )
        for P, term in zip(features, network.terms, strict=True)
    )


def assume_one_maximum(network, batch, pooling):
    """Two entries of a group that are equal share the maximum, and either may have the gradient."""
    for term in dense.terms(network, batch):
        groups = F.pad(term.P, (0, 0, 0, -N % pooling[0]), value=-np.inf)
        groups = groups.detach().unflatten(2, (-1, pooling[0]))
        top = groups.topk(2, dim=3).values
        tied = (top[:, :, :, 0] - top[:, :, :, 1] < 1e-9) & (top[:, :, :, 0].abs() > 1e-12)
        assume(not bool(tied.any()))


class TestMaximum:
    # Four columns: of two, normed, one is the other's negative, and groups have several maxima.
    @settings(deadline=None)
    @given(problems(MaxSegments, pooling=(3, 1), latent_dim=4), st.sampled_from([0, 2]))
    def test_logits_and_gradients(self, drawn, c):
        network, batch = drawn
        assume_one_maximum(network, batch, (3, 1))
        P = [term.P.detach().requires_grad_() for term in dense.terms(network, batch)]
        expected = max_logits(network, P)
        torch.testing.assert_close(network(batch), expected)
        gradients = torch.autograd.grad(expected[:, c].sum(), P)
        for (term, moments), g, p in zip(network.each(batch), gradients, P, strict=True):
            counted = term.features(moments) * term.weight()[c]
            torch.testing.assert_close(counted, g * p)

    @settings(deadline=None)
    @given(problems(MaxSegments, pooling=(2, 1), latent_dim=4))
    def test_shares(self, drawn):
        network, batch = drawn
        assume_one_maximum(network, batch, (2, 1))
        scores = explain(network, batch, "all", background=None, smoothing=0)
        np.testing.assert_allclose(scores.base + scores.net.sum(axis=1), scores.logit, atol=1e-10)
        for c, by_class in enumerate(scores.by_class()):
            expected = torch.zeros_like(batch.values)
            for term, g in self.gradients(network, batch, c):
                Qt = torch.einsum("bkt,bjkq->bjtq", term.A, term.Q)
                shares = torch.einsum("bjtn,bjnq,bjtq->bjt", term.O, g, Qt)
                expected += shares[..., : batch.n_timepoints].detach()
            np.testing.assert_allclose(net_by_channel(by_class), expected.numpy(), atol=1e-10)

    @settings(deadline=None)
    @given(problems(MaxSegments, pooling=(2, 1), latent_dim=4), st.booleans())
    def test_scores(self, drawn, max_scaling):
        network, batch = drawn
        assume_one_maximum(network, batch, (2, 1))
        c = 0
        scores = explain(network, batch, c, method="timesliver", max_scaling=max_scaling)
        expected = torch.zeros_like(batch.values)
        for term, g in self.gradients(network, batch, c):
            cover = (term.A > 0).double()
            zeta = torch.relu(g.sign()[:, :, None] * term.Z[..., None] * term.Q[..., None, :])
            if max_scaling:
                zeta = zeta / (zeta.amax(2, keepdim=True) + 1e-18)
            segments = (g.abs()[:, :, None] * zeta).sum((3, 4)).detach()
            points = torch.einsum("bjk,bkt->bjt", segments, cover)
            points = points / cover.sum(1).clamp(min=1)[:, None]
            expected += points[..., : batch.n_timepoints]
        np.testing.assert_allclose(scores.positive_by_channel, expected.numpy(), atol=1e-9)

    def gradients(self, network, batch, c):
        terms = list(dense.terms(network, batch))
        P = [term.P.detach().requires_grad_() for term in terms]
        gradients = torch.autograd.grad(max_logits(network, P)[:, c].sum(), P)
        return zip(terms, gradients, strict=True)


# --- activations ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2, 30))
    X[20:, 1, 5:15] += 3
    X[3, 0, 5:9] = np.nan
    X[4, :, 20:] = np.nan
    return X, np.repeat(["flat", "bump"], 20)


def fitted(data, kind=Segments, **settings):
    few = {"sizes": (3, 4), "latent_dim": 4, "max_epochs": 3, "positional_encoding": False}
    model = TimeSliverClassifier(kind(**{**few, **settings}), random_state=0)
    return model.fit(*data)


@pytest.fixture(scope="module")
def model(data):
    return fitted(data)


@pytest.mark.parametrize("max_scaling", [True, False])
@pytest.mark.parametrize("centred", [True, False])
def test_relu_gives_the_scores_of_the_paper(model, data, max_scaling, centred):
    options = {"max_scaling": max_scaling, "centred": centred}
    slow = ActivatedScores(model, activation="relu", **options).explain(data[0][:25])
    fast = model.explain(data[0][:25], method="timesliver", **options)
    for name in ("positive_by_channel", "negative_by_channel", "logit", "base", "series"):
        np.testing.assert_allclose(getattr(slow, name), getattr(fast, name), atol=1e-5)
    np.testing.assert_array_equal(slow.target, fast.target)


@pytest.mark.parametrize("name", ["abs", "sigmoid", "tanh", "none"])
def test_activations_are_applied_to_every_product(model, data, name):
    """The definition once more, entry by entry, for one case."""
    X = data[0][20:21]
    scores = ActivatedScores(model, activation=name, max_scaling=name == "abs").explain(X)
    c = int(scores.target[0])
    expected = np.zeros((2, 2, 30))
    for term in dense.terms(model.network_, model._batch(as_series(X))):
        W = term.weights.weight[c].detach()
        m = int((term.A[0, 0] > 0).sum())
        for i, sign in enumerate((1, -1)):
            for j in range(2):
                g, Z, Q = W[j], term.Z[0, j], term.Q[0, j].detach()
                zeta = ACTIVATIONS[name](
                    sign * g.sign()[None] * Z[:, :, None] * Q[:, None]
                )  # (kappa, n, q)
                if name == "abs":
                    zeta = zeta / (zeta.amax(0) + 1e-18)
                segments = (g.abs() * zeta).sum((1, 2)).numpy()
                for t in range(30):
                    expected[i, j, t] += segments[max(0, t - m + 1) : t + 1].mean()
    np.testing.assert_allclose(scores.positive_by_channel[0], expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(scores.negative_by_channel[0], expected[1], rtol=1e-4, atol=1e-5)


def test_parts_of_the_cases_make_no_difference(model, data, monkeypatch):
    made = ActivatedScores(model, activation="sigmoid", max_scaling=False)
    whole = made.explain(data[0], data[1])
    monkeypatch.setattr("timesliver.bench.tasks.activations._NUMBERS", 1)
    parts = made.explain(data[0], data[1])
    np.testing.assert_allclose(parts.positive_by_channel, whole.positive_by_channel, rtol=1e-5)
    np.testing.assert_array_equal(model.classes_[parts.target], data[1])


def test_what_activations_cannot_do(model, data):
    with pytest.raises(InvalidParameterError, match="max_scaling needs"):
        ActivatedScores(model, activation="tanh")
    with pytest.raises(InvalidParameterError, match="activation='gelu' is unknown"):
        ActivatedScores(model, activation="gelu")
    others = (
        fitted(data, RawSegments),
        fitted(data, MaxSegments, pooling=(2, 2)),
        fitted(data, symbols="clock"),
        fitted(data, step=2),
    )
    for other in (*others, lambda X: X[:, 0, :2]):
        with pytest.raises(NotApplicableError, match="other activations"):
            ActivatedScores(other, activation="abs")


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "settings"), [(RawSegments, {}), (MaxSegments, {"pooling": (2, 3)})]
)
def test_trained_ablations_are_kept(data, tmp_path, kind, settings):
    model = fitted(data, kind, **settings)
    path = tmp_path / "model.safetensors"
    model.save(path)
    loaded = TimeSliverClassifier.load(path)
    assert type(loaded.encoder) is kind
    np.testing.assert_array_equal(loaded.logits(data[0]), model.logits(data[0]))
    for method in ("additive", "timesliver"):
        a, b = (one.explain(data[0][:4], method=method) for one in (model, loaded))
        np.testing.assert_array_equal(a.positive, b.positive)
    _, header = read_tensors(path)
    assert kind.name in json.dumps(header)
    assert type(encoders.create(kind.name)) is kind


@pytest.mark.parametrize("kind", [RawSegments, MaxSegments])
def test_evidence_can_be_made_sparse(data, kind):
    model = fitted(data, kind, sparsity=0.01, channels="separate")
    why = model.explain(data[0][:3])
    np.testing.assert_allclose(why.base + why.net.sum(axis=1), why.logit, atol=1e-4)
    assert replace(why, series=None).net.shape == (3, 30)
