"""The penalty equals the sum of absolute evidence, and does what it is for."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from classifier.conftest import bumps, small
from problems import make_problem, problems
from timesliver.attribution.additive import evidence
from timesliver.training import total_evidence


def spread(problem):
    return problem.network.spread(problem.network.encode(problem.batch), problem.batch)


@settings(max_examples=40, deadline=None)
@given(problems(symbolizers=("sax", "sfa")))
def test_equals_the_sum_of_the_absolute_shares(problem):
    Qt = spread(problem)
    B, C = len(problem.batch), problem.network.config.n_classes
    every = torch.arange(C).expand(B, -1)
    shares = evidence(problem.network, problem.batch, Qt, every, centred=True)
    signed = shares.positive - shares.negative  # (B, C, v, L)
    if not problem.network.config.separate:
        signed = signed.sum(2)
    expected = signed.abs().flatten(2).sum(2).mean()
    found = total_evidence(problem.network, problem.batch, Qt)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("channels", ["mixed", "separate", "shared"])
def test_gradients_are_those_of_finite_differences(channels):
    X = np.random.default_rng(0).normal(size=(3, 2, 12))
    problem = make_problem(X, latent_dim=2, segment_sizes=(2, 3), channels=channels)
    total_evidence(problem.network, problem.batch, spread(problem)).backward()
    step = 1e-6
    for parameter in problem.network.parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        flat = parameter.data.view(-1)
        for i in range(0, len(flat), 7):
            values = []
            for sign in (1, -1):
                flat[i] += sign * step
                with torch.no_grad():
                    penalty = total_evidence(problem.network, problem.batch, spread(problem))
                values.append(penalty.item())
                flat[i] -= sign * step
            slope = (values[0] - values[1]) / (2 * step)
            assert float(gradient.view(-1)[i]) == pytest.approx(slope, abs=1e-5)


def test_the_scale_is_that_of_the_logit():
    """A series four times as long has the same total evidence."""
    X, y, _ = bumps(20)
    model = small().fit(X, y)

    def total(series):
        batch = model._batch(model._read(series))
        Qt = model.network_.spread(model.network_.encode(batch), batch)
        return total_evidence(model.network_, batch, Qt).item()

    assert total(np.tile(X, 4)) == pytest.approx(total(X), rel=0.05)


def test_silent_moments_fall_silent():
    X, y, where = bumps(200, n_timepoints=60)
    kwargs = {"max_epochs": 40, "channels": "separate"}
    loud = small(**kwargs).fit(X, y)
    quiet = small(sparsity=0.05, **kwargs).fit(X, y)
    assert quiet.score(X, y) >= loud.score(X, y) - 0.02

    def share_outside(model):
        scores = model.explain(X, method="additive", centred=True).magnitude
        return scores[~where[:, 0]].sum() / scores.sum()

    assert share_outside(quiet) < 0.8 * share_outside(loud)
