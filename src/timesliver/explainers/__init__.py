"""Ways to explain a classifier of series, ours and its rivals, under one interface.

``create(name, model).explain(X)`` gives an `Attribution`, whatever the method; so do the classes by
themselves, such as ``LIME(model)``. One file holds each kind of method; `base` is what they share,
`model` how they ask any classifier.
"""

from typing import Any

from timesliver.explainers.base import AnyExplainer, Case, Explainer, Scores
from timesliver.explainers.model import Model, as_model
from timesliver.explainers.registry import PLACES, create, find, load, names

__all__ = [
    "AnyExplainer",
    "Case",
    "Explainer",
    "Model",
    "Scores",
    "as_model",
    "create",
    "find",
    "names",
    *PLACES,
]


def __getattr__(name: str) -> Any:
    """Import the class of an explainer when it is first asked for."""
    if name in PLACES:
        return load(PLACES[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
