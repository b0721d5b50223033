"""Module II.a: every point of every channel becomes a symbol.

`SAX` is the paper's default; `SFA` and `ABBA` are its alternatives, `Raw` its ablation.
"""

from typing import Any

from numpy.typing import NDArray

from timesliver.errors import InvalidParameterError, check_count
from timesliver.symbols.abba import ABBA
from timesliver.symbols.base import NO_SYMBOL, Symbolizer
from timesliver.symbols.raw import Raw
from timesliver.symbols.sax import SAX
from timesliver.symbols.sfa import SFA
from timesliver.typing import JSONDict

__all__ = ["ABBA", "NO_SYMBOL", "SAX", "SFA", "Raw", "Symbolizer", "create", "from_state"]

_KINDS: dict[str, type[Symbolizer]] = {kind.name: kind for kind in (SAX, SFA, ABBA, Raw)}


def create(symbolizer: str | Symbolizer, n_bins: int) -> Symbolizer:
    """Return the symbolizer of this name with about ``n_bins`` symbols, or the instance given.

    Examples
    --------
    >>> create("sax", 8)
    SAX(n_bins=8, normalize='instance', window=1)
    """
    if isinstance(symbolizer, Symbolizer):
        return symbolizer
    kind = _kind(symbolizer)
    check_count("n_bins", n_bins, 2)
    return kind.with_bins(n_bins)


def from_state(config: JSONDict, arrays: dict[str, NDArray[Any]]) -> Symbolizer:
    """Rebuild any symbolizer from what its ``state`` returned."""
    return _kind(config["name"]).from_state(config, arrays)


def _kind(name: str) -> type[Symbolizer]:
    if not isinstance(name, str) or name not in _KINDS:
        known = ", ".join(repr(kind) for kind in _KINDS)
        raise InvalidParameterError(
            f"symbolizer={name!r} is unknown; choose one of {known}, or give an instance"
        )
    return _KINDS[name]
