"""DeepLIFT's rescale rule, such that the shares add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from timesliver.errors import NotApplicableError

__all__ = ["check_apart", "rescaling"]

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


Rule = Callable[[Any, tuple[Any, ...], Any], Any]


@contextmanager
def rescaling(network: nn.Module, n_rows: int) -> Iterator[list[Tensor]]:
    """Let gradients of a network be DeepLIFT's multipliers; afterwards it is as before.

    The first half of the rows that it is given are series and the second half their references,
    in the same order. Activations and `MaxPool1d` modules then have the slope between series and
    reference in place of their derivative, with respect to the series. Whatever else is not
    linear, such as functions that are no modules, keeps its derivative.

    Parameters
    ----------
    network : Module
        It must keep the rows in the first axis; `check_apart` tells whether it did.
    n_rows : int
        How many rows it will be given, series and references.

    Yields
    ------
    list of tensors
        Filled with what the rules took for the part of the references.
    """
    of_references: list[Tensor] = []

    def watched(rule: Rule) -> Rule:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
            if len(args[0]) % n_rows:
                raise _not_first(f"{tuple(args[0].shape)} for {n_rows} rows")
            of_references.append(args[0].chunk(2)[1])
            changed: Tensor = rule(module, args, output)
            return changed

        return hook

    changed = [module for module in network.modules() if getattr(module, "inplace", False) is True]
    hooks = []
    try:
        for module in changed:
            module.inplace = False  # type: ignore[assignment]
        for module in network.modules():
            rule = _rule(module)
            if rule is not None:
                hooks.append(module.register_forward_hook(watched(rule)))
        yield of_references
    finally:
        for hook in hooks:
            hook.remove()
        for module in changed:
            module.inplace = True  # type: ignore[assignment]


def check_apart(of_references: list[Tensor], values: Tensor) -> None:
    """Raise `NotApplicableError` if what was taken for references depends on the series.

    Parameters
    ----------
    of_references : list of tensors
        What `rescaling` gave.
    values : tensor of shape (n, v, L)
        The series, of which the rows of the references must know nothing.
    """
    traced = [part for part in of_references if part.requires_grad]
    if not traced:
        return
    # weights that differ, as a plain sum of normalised features would not change
    weights = [torch.linspace(1, 2, part.numel()).to(part).view_as(part) for part in traced]
    (leak,) = torch.autograd.grad(traced, values, weights, retain_graph=True, allow_unused=True)
    if leak is not None and (leak.abs() > 0).any():
        raise _not_first("with series among the rows of the references")


def _not_first(got: str) -> NotApplicableError:
    return NotApplicableError(
        f"DeepLIFT needs activations that have the cases in their first axis, but the network "
        f"gives one {got}; keep the batch first, or use integrated_gradients"
    )


def _rule(module: nn.Module) -> Rule | None:
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
