"""Time series classification that explains itself by a symbolic-linear decomposition."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timesliver.attribution import Attribution
    from timesliver.classifier import TimeSliverClassifier
    from timesliver.encoders import Kernels, Segments

__version__ = "0.1.0"
__all__ = ["Attribution", "Kernels", "Segments", "TimeSliverClassifier"]

# Loaded when first asked for, so that `timesliver --help` need not wait for torch.
_HOME = {
    "Attribution": "attribution",
    "Kernels": "encoders",
    "Segments": "encoders",
    "TimeSliverClassifier": "classifier",
}
_MODULES = ("backbones", "datasets", "encoders", "explainers", "metrics", "symbols")


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
