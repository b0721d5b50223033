"""The fast network equals the dense page: logits and the gradients of all parameters."""

import torch
from hypothesis import given, settings

from problems import problems
from timesliver.network import dense


@settings(max_examples=60, deadline=None)
@given(problems())
def test_logits_and_gradients(problem):
    network = problem.network
    expected = dense.logits(network, problem.batch)
    logits = network(problem.batch)
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-12)

    direction = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    parameters = dict(network.named_parameters())
    fast, slow = (
        torch.autograd.grad((y * direction).sum(), list(parameters.values()))
        for y in (logits, expected)
    )
    for name, ours, textbook in zip(parameters, fast, slow, strict=True):
        torch.testing.assert_close(ours, textbook, rtol=1e-7, atol=1e-10, msg=name)


@settings(max_examples=40, deadline=None)
@given(problems(double=False))
def test_logits_in_single_precision(problem):
    logits = problem.network(problem.batch).detach().double()
    expected = dense.logits(problem.network.double(), problem.batch.to(torch.float64)).detach()
    scale = 1 + expected.abs().max()
    assert (logits - expected).abs().max() < 1e-5 * scale


@settings(max_examples=60, deadline=None)
@given(problems())
def test_features(problem):
    encoded = problem.network.each(problem.batch)
    terms = dense.terms(problem.network, problem.batch)
    for (term, moments), textbook in zip(encoded, terms, strict=True):
        P = term.features(moments)
        torch.testing.assert_close(P, textbook.P, rtol=1e-9, atol=1e-12)


@settings(max_examples=30, deadline=None)
@given(problems(symbolizers=("sax",)))
def test_gradient_of_the_input(problem):
    """The hand-written convolution gradient, checked by finite differences."""
    values = problem.view.values.requires_grad_()
    logits = problem.network(problem.batch)
    (gradient,) = torch.autograd.grad(logits.sum(), values)
    direction = torch.cos(torch.arange(values.numel(), dtype=values.dtype)).view_as(values)
    step = 1e-6
    with torch.no_grad():
        values += step * direction
        up = problem.network(problem.batch).sum()
        values -= 2 * step * direction
        down = problem.network(problem.batch).sum()
    slope = (up - down) / (2 * step)
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-3, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(problems())
def test_shares_can_be_learned_from(problem):
    """The gradient of shares, which the sparsity penalty needs, against the dense page's."""
    network, batch = problem.network, problem.batch
    targets = batch.lengths % network.n_classes
    weights = [term.weight() for term in network.terms]
    total = 0
    for (term, moments), W in zip(network.each(batch), weights, strict=True):
        shares = term.shares(moments, W, targets[:, None])
        pattern = torch.linspace(0.5, 2, shares.numel(), dtype=shares.dtype).view_as(shares)
        total = total + (shares * pattern).sum()
    expected = 0
    for term, W in zip(dense.terms(network, batch), weights, strict=True):
        Qt = torch.einsum("bkt,bjkq->bjtq", term.A, term.Q)
        shares = torch.einsum("bjtn,bjnq,bjtq->bjt", term.O, W[targets], Qt)
        if shares.shape[1] < batch.n_channels:
            seen = term.view.observed.double()
            shares = shares * (seen / seen.sum(1, keepdim=True).clamp(min=1))
        pattern = torch.linspace(0.5, 2, shares.numel(), dtype=shares.dtype).view_as(shares)
        expected = expected + (shares * pattern).sum()
    torch.testing.assert_close(total, expected, rtol=1e-9, atol=1e-11)
    parameters = list(network.parameters())
    fast, slow = (
        torch.autograd.grad(y, parameters, allow_unused=True, retain_graph=True)
        for y in (total, expected)
    )
    for ours, textbook in zip(fast, slow, strict=True):
        if textbook is not None:
            torch.testing.assert_close(ours, textbook, rtol=1e-7, atol=1e-10)
