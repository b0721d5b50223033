"""DeepLIFT's rescale rule, such that the shares add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

__all__ = ["rescaling"]

_ELEMENTWISE = (
    nn.ReLU,
    nn.ReLU6,
    nn.LeakyReLU,
    nn.PReLU,
    nn.ELU,
    nn.SELU,
    nn.CELU,
    nn.GELU,
    nn.SiLU,
    nn.Mish,
    nn.Softplus,
    nn.Sigmoid,
    nn.Tanh,
    nn.Hardtanh,
    nn.Hardsigmoid,
    nn.Hardswish,
)
_SAME = 1e-6  # differences below this are none


@contextmanager
def rescaling(network: nn.Module) -> Iterator[None]:
    """Let gradients of a network be DeepLIFT's multipliers; afterwards it is as before.

    The first half of the rows that it is given are series and the second half their references,
    in the same order. Activations and `MaxPool1d` modules then have the slope between series and
    reference in place of their derivative, with respect to the series. Whatever else is not
    linear, such as functions that are no modules, keeps its derivative.
    """
    changed = [module for module in network.modules() if getattr(module, "inplace", False) is True]
    hooks = []
    try:
        for module in changed:
            module.inplace = False  # type: ignore[assignment]
        for module in network.modules():
            rule = _rule(module)
            if rule is not None:
                hooks.append(module.register_forward_hook(rule))
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for module in changed:
            module.inplace = True  # type: ignore[assignment]


def _rule(module: nn.Module) -> Callable[[Any, tuple[Any, ...], Any], Any] | None:
    if isinstance(module, _ELEMENTWISE):
        return _through_activation
    if isinstance(module, nn.MaxPool1d) and not module.return_indices:
        return _through_pool
    return None


def _through_activation(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
    x, reference = args[0].chunk(2)
    y, y_reference = output.detach().chunk(2)
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        (derivative,) = torch.autograd.grad(type(module).forward(module, at).sum(), at)
    change = (x - reference).detach()
    slope = torch.where(change.abs() < _SAME, derivative, (y - y_reference) / change)
    return torch.cat([y + slope * (x - x.detach()), y_reference])  # adds 0, with a gradient


def _through_pool(module: nn.MaxPool1d, args: tuple[Any, ...], output: Tensor) -> Tensor:
    """Give the change of a maximum to one point, so that no share is lost.

    That is the largest of the series if the maximum has risen, else the largest of the reference:
    the value there has changed at least as much as the maximum.
    """
    x, reference = args[0].chunk(2)
    y, y_reference = output.detach().chunk(2)
    _, largest = F.max_pool1d(
        args[0].detach(),
        module.kernel_size,
        module.stride,
        module.padding,
        module.dilation,
        ceil_mode=module.ceil_mode,
        return_indices=True,
    )
    at, at_reference = largest.chunk(2)
    chosen = torch.where(y >= y_reference, at, at_reference)  # (n, width, T)
    change = (x - reference).detach().gather(2, chosen)
    slope = torch.where(change.abs() < _SAME, 1.0, (y - y_reference) / change)
    return torch.cat([y + slope * (x - x.detach()).gather(2, chosen), y_reference])
