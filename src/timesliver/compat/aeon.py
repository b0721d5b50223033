"""`TimeSliverClassifier` as an aeon classifier."""

from __future__ import annotations

from inspect import signature
from typing import Any

from timesliver import classifier
from timesliver.encoders import Segments
from timesliver.errors import MissingExtraError
from timesliver.typing import FloatArray

try:
    from aeon.classification import BaseClassifier
except ImportError:
    raise MissingExtraError("aeon", "archive") from None

__all__ = ["TimeSliverClassifier"]

_SIGNATURE = signature(classifier.TimeSliverClassifier.__init__)
_SIGNATURE = _SIGNATURE.replace(  # an aeon estimator uses one thread unless told otherwise
    parameters=[
        parameter.replace(default=1) if name == "n_jobs" else parameter
        for name, parameter in _SIGNATURE.parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
)


class TimeSliverClassifier(BaseClassifier):
    """Classify time series with aeon's interface.

    Parameters
    ----------
    **parameters
        Those of `timesliver.TimeSliverClassifier`; `n_jobs` is 1 unless it is set.

    Attributes
    ----------
    model_ : timesliver.TimeSliverClassifier
        The fitted classifier, which can explain.
    """

    _tags = {  # noqa: RUF012 - aeon reads it from the class
        "X_inner_type": ["np-list", "numpy3D"],
        "capability:multivariate": True,
        "capability:unequal_length": True,
        "capability:missing_values": True,
        "capability:multithreading": True,
        "algorithm_type": "deeplearning",
    }

    def __init__(self, **parameters: Any) -> None:
        bound = _SIGNATURE.bind(self, **parameters)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name != "self":
                setattr(self, name, value)
        super().__init__()

    # One list of parameters, in one place: get_params and clone read it from here.
    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]

    def _fit(self, X: Any, y: Any) -> TimeSliverClassifier:
        self.model_ = classifier.TimeSliverClassifier(**self.get_params(deep=False)).fit(X, y)
        return self

    def _predict(self, X: Any) -> Any:
        return self.model_.predict(X)

    def _predict_proba(self, X: Any) -> FloatArray:
        return self.model_.predict_proba(X)

    @classmethod
    def _get_test_params(cls, parameter_set: str = "default") -> dict[str, Any]:  # noqa: ARG003
        """Return settings that train in no time, for aeon's own checks."""
        return {"encoder": Segments(latent_dim=6, positional_encoding=False, max_epochs=3)}
