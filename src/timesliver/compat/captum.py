"""The explanations as a captum attribution, so that captum's metrics accept them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from timesliver.classifier import TimeSliverClassifier
from timesliver.errors import InvalidInputError, MissingExtraError

try:
    from captum.attr import Attribution
except ImportError:
    raise MissingExtraError("captum", "explain") from None

__all__ = ["TimeSliverAttribution"]


class TimeSliverAttribution(Attribution):
    """Net evidence of a fitted classifier, with captum's verb.

    Parameters
    ----------
    model : TimeSliverClassifier
        The fitted classifier.
    method : {"additive", "timesliver"}
        How to explain; additive shares and captum's own methods are on the scale of the logit.
    **options
        Those of the method, see `TimeSliverClassifier.explain`.

    Examples
    --------
    ``captum.metrics.infidelity(a.forward_func, perturb, x, a.attribute(x, target=1), target=1)``
    with ``a = TimeSliverAttribution(model, "additive")``.
    """

    def __init__(self, model: TimeSliverClassifier, method: str = "additive", **options: Any):
        super().__init__(self._logits)
        self.model, self.method, self.options = model, method, options

    def _logits(self, inputs: Tensor) -> Tensor:
        """Return the logits of series (n_cases, n_channels, n_timepoints)."""
        return torch.from_numpy(self.model.logits(inputs.detach().cpu().numpy())).to(inputs.device)

    def attribute(
        self, inputs: Tensor | tuple[Tensor], target: int | Tensor | list[int] | None = None
    ) -> Tensor | tuple[Tensor]:
        """Return the net evidence of every channel and time point, in the shape of the inputs.

        Parameters
        ----------
        inputs : tensor of shape (n_cases, n_channels, n_timepoints), or a tuple of it
            The series.
        target : int, one int per case, or None
            Index of the class to explain; None is the predicted one.
        """
        if isinstance(inputs, tuple):  # captum's metrics wrap every input
            (inputs,) = inputs
            return (self.attribute(inputs, target),)  # type: ignore[return-value]
        if inputs.ndim != 3:
            raise InvalidInputError(
                f"inputs must have shape (n_cases, n_channels, n_timepoints), "
                f"got {tuple(inputs.shape)}"
            )
        classes = self.model.classes_
        wanted = None
        if target is not None:
            index = np.asarray(target.cpu() if isinstance(target, Tensor) else target)
            if index.dtype.kind not in "iu" or not ((index >= 0) & (index < len(classes))).all():
                raise InvalidInputError(
                    f"target must be class indices in 0..{len(classes) - 1}, got {target!r}"
                )
            wanted = (
                np.broadcast_to(classes[index], len(inputs)) if index.ndim == 0 else classes[index]
            )
        series = inputs.detach().cpu().numpy()
        scores = self.model.explain(series, wanted, self.method, **self.options)
        net = scores.positive_by_channel - scores.negative_by_channel
        return torch.from_numpy(net).to(inputs)
