"""Ways to explain a classifier of series, ours and its rivals, under one interface.

``create(name, model).explain(X)`` gives an `Attribution`, whatever the method. One file holds each
kind of method; `base` is what they share, `model` how they ask any classifier.
"""

from timesliver.explainers.base import AnyExplainer, Case, Explainer, Scores
from timesliver.explainers.model import Model, as_model
from timesliver.explainers.registry import create, find, names

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
]
