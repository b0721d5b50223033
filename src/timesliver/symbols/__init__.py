"""Module II.a: every moment gets a symbol on every symbol channel.

`SAX` is the paper's default, `SFA` and `ABBA` its alternatives: a symbol per point and channel.
`Clock` and `One` give all channels the same symbols, which tell the time or nothing at all.
"""

from typing import Any

from numpy.typing import NDArray

from timesliver.registry import Registry
from timesliver.symbols.abba import ABBA
from timesliver.symbols.base import NO_SYMBOL, Symbolizer
from timesliver.symbols.clock import Clock, One
from timesliver.symbols.sax import SAX
from timesliver.symbols.sfa import SFA
from timesliver.typing import JSONDict

__all__ = [
    "ABBA",
    "NO_SYMBOL",
    "SAX",
    "SFA",
    "Clock",
    "One",
    "Symbolizer",
    "create",
    "from_state",
    "names",
]

_REGISTRY = Registry(
    "symbolizer",
    "timesliver.symbols",
    Symbolizer,  # type: ignore[type-abstract]
    {cls.name: f"{cls.__module__}:{cls.__name__}" for cls in (SAX, SFA, ABBA, Clock, One)},
)


def names() -> list[str]:
    """Return the names of all symbolizers, ours first.

    Examples
    --------
    >>> names()[:5]
    ['sax', 'sfa', 'abba', 'clock', 'one']
    """
    return _REGISTRY.names()


def create(symbolizer: str | Symbolizer, n_bins: int | None = None) -> Symbolizer:
    """Return the symbolizer of this name with about ``n_bins`` symbols, or the instance given.

    Examples
    --------
    >>> create("sax", 8)
    SAX(n_bins=8)
    """
    if isinstance(symbolizer, Symbolizer):
        return symbolizer
    cls = _REGISTRY.find(symbolizer)
    return cls() if n_bins is None else cls.with_bins(n_bins)


def from_state(config: JSONDict, arrays: dict[str, NDArray[Any]]) -> Symbolizer:
    """Rebuild any symbolizer from what its ``state`` returned."""
    return _REGISTRY.find(config["name"]).from_state(config, arrays)
