"""Infidelity and sensitivity of explanations, computed by captum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from timesliver.attribution import Attribution
from timesliver.errors import MissingExtraError, check_choice, check_count, check_number
from timesliver.metrics.masking import PARTS, InteractionPart, count_points, read_scores
from timesliver.metrics.outputs import ClassOutput
from timesliver.metrics.summary import Summary
from timesliver.series import as_series
from timesliver.training import draw_seed
from timesliver.typing import FloatArray

__all__ = ["infidelity", "sensitivity_max"]


def infidelity(
    model: Any,
    X: Any,
    scores: FloatArray | Attribution,
    percent: float = 10,
    n_perturbations: int = 20,
    masking: str = "zero",
    normalize: bool = False,
    random_state: Any = 0,
) -> Summary:
    """Return how far scores are from what happens when a window of the series is removed.

    A window that covers ``percent`` of the points is masked at a random place. The sum of the
    scores inside it should be what the logit of the predicted class loses. Infidelity is the mean
    squared difference; 0 is perfect.

    Parameters
    ----------
    model : SeriesClassifier, or a function from series to logits (n_cases, n_classes)
        What predicts.
    X : series of any accepted form
        The cases.
    scores : array of shape (n_cases, n_timepoints), or Attribution
        Signed shares of the logit; of an `Attribution` the net evidence.
    percent : float
        Width of the window, above 0.
    n_perturbations : int
        Number of windows for each case.
    masking : {"zero", "no_symbol"}
        What removed points become; see `logit_change`.
    normalize : bool
        Whether to multiply the scores of each case by the number that fits best, so that methods
        whose scores are not on the scale of the logit can be compared.
    random_state : int, numpy generator or None
        Where the windows lie.

    Returns
    -------
    Summary
        One number for each case.
    """
    captum = _captum_metrics()
    check_count("n_perturbations", n_perturbations, 1)
    check_number("percent", percent, above=0, most=100)
    output = ClassOutput(model, X, "logit", masking)
    series = output.series
    rng = np.random.default_rng(draw_seed(random_state))
    removed_value = np.nan if masking == "no_symbol" else 0.0

    def remove_window(inputs: Tensor) -> tuple[Tensor, Tensor]:
        lengths = np.repeat(series.lengths, len(inputs) // len(series))
        width = count_points(lengths, percent)
        start = rng.integers(0, lengths - width + 1)
        time = np.arange(series.n_timepoints)
        inside = (time >= start[:, None]) & (time < (start + width)[:, None])
        window = torch.from_numpy(np.broadcast_to(inside[:, None], tuple(inputs.shape)).copy())
        return window.to(inputs), inputs.masked_fill(window, removed_value)

    def logits(inputs: Tensor, lengths: Tensor) -> Tensor:
        given = replace(as_series(inputs.numpy()), lengths=lengths.numpy())
        return torch.from_numpy(output.all_classes(given))

    # Captum wants scores in the shape of the series: the channels of a point share its score.
    shares = read_scores(scores, series, "net")[:, None] / series.n_channels
    per_case = captum.infidelity(
        logits,
        remove_window,
        torch.from_numpy(series.with_gaps),
        torch.from_numpy(np.broadcast_to(shares, series.values.shape).copy()),
        additional_forward_args=torch.from_numpy(series.lengths),
        target=torch.from_numpy(output.target),
        n_perturb_samples=n_perturbations,
        max_examples_per_batch=len(series),
        normalize=normalize,
    )
    return Summary(per_case.numpy())


def sensitivity_max(
    explainer: Any,
    X: Any,
    radius: float = 0.02,
    n_perturbations: int = 10,
    part: InteractionPart = "net",
    random_state: Any = 0,
    **options: Any,
) -> Summary:
    """Return by how much an explanation changes at most when the series hardly do.

    Noise, uniform within ``radius`` times the standard deviation of a channel, is added to the
    series. The number of a case is the largest norm of the change of its scores, over the norm of
    the scores; small is good. The class explained stays the one predicted without noise.

    Parameters
    ----------
    explainer : TimeSliverClassifier, or any explainer
        Anything with ``explain(X, target=labels)`` that returns an `Attribution`.
    X : series of any accepted form
        The cases.
    radius : float
        Largest noise, in standard deviations of each channel over X.
    n_perturbations : int
        Number of noisy copies of each case.
    part : {"positive", "negative", "net", "magnitude"}
        Which scores.
    random_state : int, numpy generator or None
        The noise.
    **options
        Given to ``explain``, such as ``method="additive"``.

    Returns
    -------
    Summary
        One number for each case.
    """
    captum = _captum_metrics()
    check_choice("part", part, PARTS)
    check_count("n_perturbations", n_perturbations, 1)
    check_number("radius", radius, above=0)
    series = as_series(X)
    predicted = explainer.explain(X, **options)
    largest = radius * series.moments()[1][:, None]
    rng = np.random.default_rng(draw_seed(random_state))

    def add_noise(inputs: Tensor) -> Tensor:
        noise = largest * rng.uniform(-1, 1, size=tuple(inputs.shape))
        return inputs + torch.from_numpy(noise).to(inputs)

    def explain(inputs: Tensor | tuple[Tensor, ...], target: Tensor) -> tuple[Tensor]:
        (values,) = inputs if isinstance(inputs, tuple) else (inputs,)
        labels = predicted.classes[target.numpy()]
        scores = explainer.explain(values.numpy(), target=labels, **options)
        return (torch.from_numpy(np.array(getattr(scores, part), dtype=np.float64)),)

    per_case = captum.sensitivity_max(
        explain,
        torch.from_numpy(series.with_gaps),  # noise does not change NaN
        add_noise,
        n_perturb_samples=n_perturbations,
        max_examples_per_batch=len(series),
        target=torch.from_numpy(predicted.target),
    )
    return Summary(per_case.numpy())


def _captum_metrics() -> Any:
    try:
        import captum.metrics
    except ImportError:
        raise MissingExtraError("captum", "explain") from None
    return captum.metrics
