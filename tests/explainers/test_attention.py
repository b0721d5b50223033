import numpy as np
import pytest
import torch
from torch import nn

from batches import batch_of
from timesliver.backbones import Transformer, TransformerNetwork
from timesliver.backbones.layers import seeded
from timesliver.errors import InvalidParameterError, NotApplicableError
from timesliver.explainers import as_model, create
from timesliver.explainers.attention import AttentionTracing, GradSAM
from timesliver.explainers.windows import mean_of_covering


def network(n_layers=2, kernels=(3, 2), strides=(2, 1), **sizes):
    settings = Transformer(
        stem_widths=(6, 8),
        stem_kernels=kernels,
        stem_strides=strides,
        n_layers=n_layers,
        **{"n_heads": 2, "ff_width": 8, "head": (5,)} | sizes,
    )
    made = TransformerNetwork(settings, 2, 3, seed=3).eval()
    with torch.no_grad(), seeded(1):  # sharper than the initial weights, so that heads differ
        for layer in made.layers:
            layer.attention.project.weight.mul_(4)
            layer.norm1.weight.copy_(torch.randn(8))
    return made


def series(n_cases=4, n_timepoints=17, seed=0):
    return np.random.default_rng(seed).normal(size=(n_cases, 2, n_timepoints)).astype(np.float32)


def one(X, case=0):
    return batch_of(torch.from_numpy(X[case : case + 1]), torch.tensor([X.shape[2]]))


def to_time(tokens, span, stride, n_timepoints):
    """The mean over the tokens whose span covers a point, by plain loops."""
    scores = np.zeros(n_timepoints)
    for t in range(n_timepoints):
        covering = [r for j, r in enumerate(tokens) if j * stride <= t <= j * stride + span - 1]
        scores[t] = np.mean(covering) if covering else 0
    return scores


def traced(A, mode):
    """The token scores of the definition; A holds one (heads, T, T) array per layer."""
    if mode == "rollout":
        R = np.eye(A[0].shape[1])
        for weights in A:  # R = (last) ... (first)
            R = (0.5 * weights.mean(0) + 0.5 * np.eye(len(R))) @ R
        return R.mean(0)
    layers = A[-1:] if mode == "last" else A
    return np.mean([weights.mean(0).mean(0) for weights in layers], axis=0)


@pytest.mark.parametrize("mode", ["last", "mean", "rollout"])
def test_tracing_is_the_definition(mode):
    model, X = network(), series()
    found = AttentionTracing(model, mode=mode).explain(X)
    for case in range(len(X)):
        _, attention = model(one(X, case), return_attention=True)
        tokens = traced([weights[0].detach().double().numpy() for weights in attention], mode)
        expected = to_time(tokens, model.span, model.stride, 17)
        np.testing.assert_allclose(found.positive[case], expected / expected.max(), rtol=1e-5)
    assert found.positive.max(1) == pytest.approx(1)
    assert not found.negative.any()


def test_the_modes_with_one_layer():
    model, X = network(n_layers=1), series()
    last, mean, rollout = (
        AttentionTracing(model, mode=mode).explain(X).positive
        for mode in ("last", "mean", "rollout")
    )
    np.testing.assert_array_equal(last, mean)
    np.testing.assert_array_equal(last.argsort(1), rollout.argsort(1))
    assert not np.allclose(last, rollout)


def test_uniform_attention_is_received_by_all_alike():
    model = network()
    with torch.no_grad():
        for layer in model.layers:
            layer.attention.project.weight.zero_()
    explainer = AttentionTracing(model)
    X = series(n_timepoints=18)
    tokens, _ = explainer._window_scores(one(X), torch.tensor([0]))
    assert tokens.shape == (1, 1, 7)
    np.testing.assert_allclose(tokens.numpy(), 1 / 7, rtol=1e-6)
    np.testing.assert_allclose(explainer.explain(X).positive[:, :17], 1, rtol=1e-6)
    assert not explainer.explain(X).positive[:, 17].any()  # no token reads the last point


@pytest.mark.parametrize("center", [False, True])
def test_grad_sam_is_the_definition(center):
    model, X = network(), series()
    target = 2
    found = GradSAM(model, center=center).explain(X, target=target)
    for case in range(len(X)):
        logits, attention = model(one(X, case), return_attention=True)
        gradients = torch.autograd.grad(logits[0, target], attention)
        tokens = np.zeros(attention[0].shape[2])
        for weights, gradient in zip(attention, gradients, strict=True):
            A, g = weights[0].detach().double().numpy(), gradient[0].double().numpy()
            for h in range(2):
                for i in range(len(tokens)):
                    row = g[h, i] - (A[h, i] @ g[h, i] if center else 0)
                    tokens += A[h, i] * np.maximum(row, 0)
        expected = to_time(tokens / (2 * 2 * len(tokens)), model.span, model.stride, 17)
        np.testing.assert_allclose(found.positive[case], expected / expected.max(), rtol=1e-4)
    assert (found.target == target).all()


class _Fixed(nn.Module):
    """Stands in for the head: logits are given multiples of the mean of the tokens."""

    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return x[:, :2] * self.factor


def test_the_gradient_of_the_attention_is_that_of_a_perturbation():
    model, X = network(n_layers=1), series()
    logits, (attention,) = model(one(X), return_attention=True)
    (gradient,) = torch.autograd.grad(logits[0, 1], attention)
    step = 1e-2

    def changed(sign):
        softmax = torch.Tensor.softmax

        def shifted(scores, axis):
            weights = softmax(scores, axis)
            bump = torch.zeros_like(weights)
            bump[0, 1, 2, 3] = sign * step
            return weights + bump

        with pytest.MonkeyPatch.context() as patch, torch.no_grad():
            patch.setattr(torch.Tensor, "softmax", shifted)
            return model(one(X))[0, 1].item()

    slope = (changed(1) - changed(-1)) / (2 * step)
    assert slope == pytest.approx(gradient[0, 1, 2, 3].item(), rel=0.05, abs=1e-5)


def test_grad_sam_without_any_gradient_upwards_is_zero():
    model = network(n_layers=1, head=())
    with torch.no_grad():  # of every token only the first feature counts, and it only falls
        layer = model.layers[0]
        layer.attention.project.bias[16:] = 5.0
        layer.attention.project.weight[16:] = 0.0  # all values alike and positive
        layer.attention.out.weight.fill_(0.0)
        layer.attention.out.weight[0].fill_(1.0)
        for norm in (layer.norm1, layer.norm2):
            norm.forward = lambda x: x
        for weight in layer.feed_forward.parameters():
            weight.zero_()
    for factor, is_zero in ((-1.0, True), (1.0, False)):
        model.head = _Fixed(factor).eval()
        found = GradSAM(as_model(model)).explain(series(), target=0)
        assert found.positive.any() != is_zero


def test_frozen_weights_and_no_gradient_outside():
    model, X = network(), series()
    expected = GradSAM(model).explain(X)
    model.requires_grad_(False)
    with torch.no_grad():
        found = GradSAM(model).explain(X)
    # on some machines torch multiplies matrices in another order where no gradient is wanted
    np.testing.assert_allclose(found.positive, expected.positive, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["attention_tracing", "grad_sam"])
def test_short_and_unequal_cases_alone_and_together(name):
    model = network()
    X = [case[:, :length] for case, length in zip(series(5, 17), (17, 1, 3, 9, 14), strict=True)]
    explainer = create(name, model)
    together = explainer.explain(X)
    for case, values in enumerate(X):
        alone = explainer.explain([values]).positive[0]
        np.testing.assert_allclose(together.positive[case, : len(alone)], alone, atol=1e-5)
        assert not together.positive[case, len(values[0]) :].any()


def test_many_tokens_are_taken_in_parts(monkeypatch):
    model, X = network(), series(6)
    whole = GradSAM(model).explain(X).positive
    monkeypatch.setattr("timesliver.explainers.windows._NUMBERS", 1)
    sizes = []
    encode = TransformerNetwork._encode

    def watched(self, batch):
        sizes.append(len(batch))
        return encode(self, batch)

    monkeypatch.setattr(TransformerNetwork, "_encode", watched)
    found = GradSAM(model).explain(X)
    np.testing.assert_allclose(found.positive, whole, atol=1e-5)
    assert sizes == [6, 1, 1, 1, 1, 1, 1]
    assert found.forward_passes.tolist() == [2] * 6


def test_mean_of_covering_windows():
    rng = np.random.default_rng(0)
    for span, stride, n_timepoints in ((3, 1, 9), (4, 2, 10), (2, 3, 12), (5, 4, 4)):
        scores = rng.random((2, 3, 7))
        found = mean_of_covering(
            torch.from_numpy(scores), torch.tensor([7, 2]), span, stride, n_timepoints
        )
        for case, n in enumerate((7, 2)):
            for channel in range(3):
                expected = to_time(scores[case, channel, :n], span, stride, n_timepoints)
                np.testing.assert_allclose(found[case, channel], expected)


def test_only_transformers_and_known_options():
    with pytest.raises(NotApplicableError, match=r"attention of a Transformer.* is a Linear"):
        create("attention_tracing", nn.Linear(3, 2).eval())
    with pytest.raises(NotApplicableError, match="needs the gradient"):
        create("grad_sam", lambda X: X[:, 0])
    with pytest.raises(InvalidParameterError, match="mode='flow' is unknown"):
        create("attention_tracing", network(), mode="flow")
    with pytest.raises(InvalidParameterError, match="center='yes' is unknown"):
        create("grad_sam", network(), center="yes")
