"""What a model, ours or any other, says of a class when some points are masked."""

from __future__ import annotations

from typing import Any

import numpy as np

from timesliver.errors import InvalidInputError, InvalidParameterError, check_choice
from timesliver.estimator import SeriesClassifier
from timesliver.metrics.masking import mask_points, to_plain
from timesliver.series import PaddedSeries, as_series
from timesliver.typing import BoolArray, FloatArray

__all__ = ["ClassOutput"]


class ClassOutput:
    """What a model says of the class that it predicts for the unchanged series.

    Parameters
    ----------
    model : SeriesClassifier, an object with the method of the output, or a function
        A function takes series in the form of X and returns (n_cases, n_classes).
    X : series of any accepted form
        The unchanged cases.
    output : {"logit", "probability"}
        What is asked for: ``logits`` or ``predict_proba``.
    masking : {"zero", "no_symbol"}
        See `timesliver.metrics.masking.mask_points`.
    """

    def __init__(self, model: Any, X: Any, output: str, masking: str) -> None:
        check_choice("output", output, ("logit", "probability"))
        check_choice("masking", masking, ("zero", "no_symbol"))
        method = "logits" if output == "logit" else "predict_proba"
        self.function = getattr(model, method, model)
        if not callable(self.function):
            raise InvalidParameterError(
                f"the model must have the method {method}, or be a function from series to an "
                f"array (n_cases, n_classes); got {model!r}"
            )
        self.ours = isinstance(model, SeriesClassifier)
        if masking == "no_symbol" and not self.ours:
            raise InvalidParameterError(
                f"masking='no_symbol' needs a classifier of this package, which knows symbols; "
                f"use masking='zero' for {type(model).__name__}"
            )
        self.masking, self.X, self.series = masking, X, as_series(X)
        outputs = self.all_classes(self.series)
        self.target = outputs.argmax(axis=1)
        self.unchanged: FloatArray = outputs[np.arange(len(outputs)), self.target]

    def all_classes(self, series: PaddedSeries) -> FloatArray:
        """Return the outputs of all classes, (n_cases, n_classes)."""
        outputs = np.asarray(self.function(series if self.ours else to_plain(series, self.X)))
        if outputs.ndim != 2 or len(outputs) != len(series) or outputs.dtype.kind not in "biuf":
            raise InvalidInputError(
                f"the model must return numbers of shape ({len(series)}, n_classes), got "
                f"{outputs.dtype} of shape {outputs.shape}"
            )
        if not np.isfinite(outputs).all():
            raise InvalidInputError("the model returned NaN or infinite outputs; mend it first")
        return outputs.astype(np.float64)

    def keeping(self, keep: BoolArray) -> FloatArray:
        """Return the output of the explained class with only these points kept: (n_cases,)."""
        outputs = self.all_classes(mask_points(self.series, keep, self.masking))
        of_class: FloatArray = outputs[np.arange(len(outputs)), self.target]
        return of_class
