"""The fast network equals the textbook: logits and the gradients of all parameters."""

import torch
from hypothesis import given, settings

from problems import problems


def textbook_logits(problem, textbook):
    return torch.stack([textbook.logits(x, codes) for x, codes in problem.cases()])


@settings(max_examples=60, deadline=None)
@given(problems())
def test_logits_and_gradients(problem):
    textbook = problem.textbook()
    expected = textbook_logits(problem, textbook)
    logits = problem.network(problem.batch)
    torch.testing.assert_close(logits, expected, rtol=1e-9, atol=1e-12)

    direction = torch.linspace(-1, 1, logits.numel(), dtype=logits.dtype).view_as(logits)
    (logits * direction).sum().backward()
    (expected * direction).sum().backward()
    for name, parameter in problem.network.named_parameters():
        torch.testing.assert_close(
            parameter.grad, textbook.params[name].grad, rtol=1e-7, atol=1e-10, msg=name
        )


@settings(max_examples=40, deadline=None)
@given(problems(double=False))
def test_logits_in_single_precision(problem):
    expected = textbook_logits(problem, problem.textbook()).detach()
    logits = problem.network(problem.batch).detach().double()
    scale = 1 + expected.abs().max()
    assert (logits - expected).abs().max() < 1e-5 * scale


@settings(max_examples=30, deadline=None)
@given(problems(symbolizers=("sax",)))
def test_gradient_of_the_input(problem):
    """The hand-written convolution gradient, checked by finite differences."""
    problem.batch.values.requires_grad_()
    logits = problem.network(problem.batch)
    (gradient,) = torch.autograd.grad(logits.sum(), problem.batch.values)
    values = problem.batch.values
    direction = torch.cos(torch.arange(values.numel(), dtype=values.dtype)).view_as(values)
    step = 1e-6
    with torch.no_grad():
        values += step * direction
        up = problem.network(problem.batch).sum()
        values -= 2 * step * direction
        down = problem.network(problem.batch).sum()
    slope = (up - down) / (2 * step)
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-3, atol=1e-5)
