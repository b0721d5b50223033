"""Which explainers there are, ours and those that other packages register."""

from __future__ import annotations

import inspect
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from timesliver.errors import InvalidParameterError
from timesliver.explainers.base import AnyExplainer

__all__ = ["GROUP", "PLACES", "create", "find", "load", "names"]

#: Entry point group under which another package names its explainers.
GROUP = "timesliver.explainers"

_CLASSES = {
    "random": "chance:Random",
    "grad_cam": "grad_cam:GradCAM",
    "lime": "lime:LIME",
    "limesegment": "limesegment:LIMESegment",
    "kernel_shap": "kernel_shap:KernelSHAP",
    "integrated_gradients": "gradients:IntegratedGradients",
    "gradient_shap": "gradients:GradientSHAP",
    "deep_lift": "deep_lift:DeepLIFT",
    "deep_lift_shap": "deep_lift:DeepLIFTSHAP",
    "attention_tracing": "attention:AttentionTracing",
    "grad_sam": "attention:GradSAM",
    "color": "own:ColorImportance",
    "timex_plus_plus": "timex:TimeXPlusPlus",
    "timesliver": "own:TimeSliverScores",
    "additive": "own:AdditiveShares",
}

#: Where each of our classes is, by the name of the class.
PLACES = {place.partition(":")[2]: place for place in _CLASSES.values()}


def names() -> list[str]:
    """Return the names of all explainers, ours first.

    Examples
    --------
    >>> names()[:4]
    ['random', 'grad_cam', 'lime', 'limesegment']
    """
    others = sorted({point.name for point in entry_points(group=GROUP)} - _CLASSES.keys())
    return [*_CLASSES, *others]


def load(place: str) -> Any:
    """Import one of our classes."""
    module, _, cls = place.partition(":")
    return getattr(import_module(f"timesliver.explainers.{module}"), cls)


def find(name: str) -> type[AnyExplainer]:
    """Return the class of an explainer."""
    if name in _CLASSES:
        cls = load(_CLASSES[name])
    else:
        points = [point for point in entry_points(group=GROUP) if point.name == name]
        if not points:
            raise InvalidParameterError(
                f"there is no explainer {name!r}; choose one of {', '.join(names())}"
            )
        cls = points[0].load()
    if not (isinstance(cls, type) and issubclass(cls, AnyExplainer)):
        raise InvalidParameterError(
            f"the explainer {name!r} is registered as {cls!r}, which is no subclass of Explainer"
        )
    return cls


def create(name: str, model: Any, **options: Any) -> AnyExplainer:
    """Make an explainer for a model.

    Parameters
    ----------
    name : str
        One of `names`.
    model : SeriesClassifier, Module, function or Model
        What to explain, see `as_model`.
    **options
        Those of `AnyExplainer` and of the method.

    Examples
    --------
    >>> import numpy as np
    >>> explainer = create("random", lambda X: X[:, 0, :2])
    >>> explainer.explain(np.ones((3, 1, 8))).positive.shape
    (3, 8)
    """
    cls = find(name)
    known = _options(cls)
    for option in options:
        if option not in known:
            raise InvalidParameterError(
                f"{option!r} is not an option of the explainer {name!r}; its options are "
                f"{', '.join(known)}"
            )
    return cls(model, **options)


def _options(cls: type[AnyExplainer]) -> list[str]:
    """Return the keyword arguments that a class and those it builds on take."""
    options: list[str] = []
    for part in cls.__mro__:
        if "__init__" in vars(part) and part is not object:
            parameters = inspect.signature(vars(part)["__init__"]).parameters.values()
            options += [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return list(dict.fromkeys(options))
