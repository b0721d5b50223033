"""The penalty equals the sum of absolute evidence, and does what it is for."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from classifier.conftest import bumps, small
from problems import make_problem, problems
from timesliver.attribution.shares import additive_shares
from timesliver.training import total_evidence


def penalty_of(network, batch):
    encoded = list(network.each(batch))
    return total_evidence(encoded, by_channel=network.parts[0].separate)


@settings(max_examples=40, deadline=None)
@given(problems(symbolizers=("sax", "sfa", "clock", "one"), step=1))
def test_equals_the_sum_of_the_absolute_shares(problem):
    network, batch = problem.network, problem.batch
    B, C = len(batch), network.n_classes
    every = torch.arange(C).expand(B, -1)
    positive, negative, _ = additive_shares(
        network, batch, network.each(batch), every, centred=True, background=None, smoothing=0
    )
    signed = positive - negative  # (B, C, v, L)
    if not network.parts[0].separate:
        signed = signed.sum(2)
    expected = signed.abs().flatten(2).sum(2).mean()
    torch.testing.assert_close(penalty_of(network, batch), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("channels", ["mixed", "separate", "shared"])
@pytest.mark.parametrize("symbols", ["sax", ["sax", "clock"]], ids=str)
@pytest.mark.parametrize("step", [1, 2])
def test_gradients_are_those_of_finite_differences(channels, symbols, step):
    X = np.random.default_rng(0).normal(size=(3, 2, 12))
    problem = make_problem(
        X, latent_dim=2, sizes=(2, 3), channels=channels, symbols=symbols, step=step
    )
    penalty_of(problem.network, problem.batch).backward()
    step = 1e-6
    for parameter in problem.network.parameters():
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        flat = parameter.data.view(-1)
        for i in range(0, len(flat), 7):
            values = []
            for sign in (1, -1):
                flat[i] += sign * step
                with torch.no_grad():
                    penalty = penalty_of(problem.network, problem.batch)
                values.append(penalty.item())
                flat[i] -= sign * step
            slope = (values[0] - values[1]) / (2 * step)
            assert float(gradient.view(-1)[i]) == pytest.approx(slope, abs=1e-5)


def test_the_scale_is_that_of_the_logit():
    """A series four times as long has the same total evidence."""
    X, y, _ = bumps(20)
    model = small().fit(X, y)

    def total(series):
        return penalty_of(model.network_, model._batch(model._read(series))).item()

    assert total(np.tile(X, 4)) == pytest.approx(total(X), rel=0.05)


def test_silent_moments_fall_silent():
    X, y, where = bumps(200, n_timepoints=60)
    kwargs = {"max_epochs": 40, "channels": "separate"}
    loud = small(**kwargs).fit(X, y)
    quiet = small(sparsity=0.05, **kwargs).fit(X, y)
    assert quiet.score(X, y) >= loud.score(X, y) - 0.02

    def share_outside(model):
        scores = model.explain(X, centred=True, background=None, smoothing=0).magnitude
        return scores[~where[:, 0]].sum() / scores.sum()

    assert share_outside(quiet) < 0.8 * share_outside(loud)
