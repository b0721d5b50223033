"""The closed form equals the double loop over rows and columns of P."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from problems import problems
from timesliver import explain

VARIANTS = [
    ("relu", True),
    ("relu", False),
    ("abs", True),
    ("abs", False),
    ("none", False),
    ("sigmoid", False),
    ("tanh", False),
]


def assert_scores(problem, attribution, c, tolerance, **variant):
    textbook = problem.textbook()
    for case, (x, codes) in enumerate(problem.cases()):
        expected = textbook.phi(x, codes, c, **variant)
        scores = (attribution.positive_by_channel, attribution.negative_by_channel)
        for got, want in zip(scores, expected, strict=True):
            want = want.numpy()
            np.testing.assert_allclose(
                got[case, :, : x.shape[1]],
                want,
                rtol=tolerance,
                atol=tolerance * want.max(initial=1),
            )


@settings(max_examples=60, deadline=None)
@given(problems(latent_dim=2, pooling=(1, 1)), st.sampled_from(VARIANTS), st.booleans())
def test_scores(problem, variant, centred):
    activation, max_scaling = variant
    options = {"activation": activation, "max_scaling": max_scaling}
    c = problem.network.config.n_classes - 1
    attribution = explain(problem.network, problem.batch, target=c, centred=centred, **options)
    contrast = "mean" if centred else "logit"
    assert_scores(problem, attribution, c, 1e-9, contrast=contrast, **options)


@settings(max_examples=30, deadline=None)
@given(problems())
def test_scores_with_pooling(problem):
    attribution = explain(problem.network, problem.batch, target=0)
    assert_scores(problem, attribution, 0, 1e-9)


@settings(max_examples=30, deadline=None)
@given(problems(double=False, latent_dim=2, pooling=(1, 1), symbolizers=("sax", "sfa", "abba")))
def test_scores_in_single_precision(problem):
    """Without max-scaling: dividing by a maximum that is itself rounding noise has no answer."""
    attribution = explain(problem.network, problem.batch, target=1, max_scaling=False)
    assert_scores(problem, attribution, 1, 1e-5, max_scaling=False)


@settings(max_examples=30, deadline=None)
@given(problems(symbolizers=("sax", "sfa", "abba")))
def test_additive_shares(problem):
    textbook = problem.textbook()
    for c, attribution in enumerate(explain(problem.network, problem.batch, "all", "additive")):
        net = attribution.positive_by_channel - attribution.negative_by_channel
        for case, (x, codes) in enumerate(problem.cases()):
            expected = textbook.evidence(x, codes, c).numpy()
            np.testing.assert_allclose(net[case, :, : x.shape[1]], expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("centred", [False, True])
@settings(max_examples=25, deadline=None)
@given(problem=problems(double=False))
def test_additive_is_complete_for_every_class(problem, centred, background, spread):
    options = {"centred": centred, "background": background, "spread": spread}
    logits = problem.network(problem.batch).detach().numpy().astype(np.float64)
    if centred:
        logits -= logits.mean(axis=1, keepdims=True)
    for c, attribution in enumerate(
        explain(problem.network, problem.batch, "all", "additive", **options)
    ):
        assert (attribution.positive_by_channel >= 0).all()
        assert (attribution.negative_by_channel >= 0).all()
        total = attribution.net.sum(axis=1, dtype=np.float64) + attribution.bias
        scale = 1 + attribution.magnitude.sum(axis=1).max()
        assert np.abs(total - logits[:, c]).max() < 1e-5 * scale
        np.testing.assert_allclose(attribution.logit, logits[:, c], rtol=1e-5, atol=1e-5)
