"""What a position of a layer sees, read off the kernels, strides and padding before it."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import nn

__all__ = ["Sight"]


class Sight(NamedTuple):
    """Which points of a series position u of a layer sees: step*u + first to step*u + last.

    Examples
    --------
    >>> Sight().through(nn.Conv1d(1, 1, 5, padding=2), nn.MaxPool1d(2))
    Sight(step=2, first=-2, last=3)
    """

    step: float = 1
    first: float = 0
    last: float = 0

    @property
    def centre(self) -> float:
        """The middle of what position 0 sees."""
        return (self.first + self.last) / 2

    @classmethod
    def even(cls, n_timepoints: int, n_positions: int) -> Sight:
        """Return that of positions spread evenly over a series."""
        step = n_timepoints / n_positions
        return cls(step, 0, step - 1)

    def through(self, *layers: nn.Module) -> Sight:
        """Return what positions see after these layers, of those that backbones are made of.

        A layer with parts passes them one after another; one without a window sees one position.
        """
        sight = self
        for layer in layers:
            if isinstance(layer, nn.ConstantPad1d):
                before = sight.step * layer.padding[0]
                sight = Sight(sight.step, sight.first - before, sight.last - before)
            elif isinstance(layer, nn.Conv1d | nn.MaxPool1d):
                sight = sight._window(layer)
            else:
                sight = sight.through(*layer.children())
        return sight

    def beside(self, *others: Sight) -> Sight:
        """Return what positions see that add up, or put side by side, several layers."""
        every = [self, *others]
        return Sight(self.step, min(one.first for one in every), max(one.last for one in every))

    def _window(self, layer: Any) -> Sight:
        width, stride, before, apart = (
            value[0] if isinstance(value, tuple) else value
            for value in (layer.kernel_size, layer.stride, layer.padding, layer.dilation)
        )
        first = self.first - self.step * before
        last = self.last + self.step * (apart * (width - 1) - before)
        return Sight(self.step * stride, first, last)
