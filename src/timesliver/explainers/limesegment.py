"""LIMESegment (2022): LIME on segments found in the series, with a background of its own rhythm."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from scipy.signal import istft, stft
from sklearn.linear_model import Ridge

from timesliver.errors import NotApplicableError, check_choice, check_count
from timesliver.explainers.base import Case, Explainer, Scores
from timesliver.explainers.distances import dtw_distances, nearest_subsequences
from timesliver.explainers.inputs import repeated
from timesliver.explainers.surrogate import count_distinct
from timesliver.network.batch import Batch
from timesliver.typing import BoolArray, FloatArray, IntArray

__all__ = ["LIMESegment", "change_points", "locality_weights", "persistent_background"]

_LONGEST = 500
_SHORTEST_WINDOW = 4
_BAND = 0.1  # of the series, for dynamic time warping
_ALPHA = 1.0
_ROUNDING = 1e-9  # what is smaller than this share is no more than an error of rounding


class LIMESegment(Explainer):
    """Cut a series where its patterns change, and regress the logit on the segments kept.

    A segment that is not kept is replaced by the most persistent frequency of the series. Samples
    count by their distance from the series under dynamic time warping: most where it is average.
    For series of one channel and up to 500 points.

    Parameters
    ----------
    model : SeriesClassifier, Module, function or Model
        What to explain, see `as_model`.
    n_samples : int
        How many samples are drawn. The model is asked once about equal ones: with three change
        points at most 16 times.
    n_change_points : int
        Most places to cut at.
    window : int or None
        Length of the subsequences that are compared to find these; None is a fifth of the series.
        Series of less than two windows are not cut, and get scores of 0.
    nperseg : int
        Points per frame of the short-time Fourier transform.
    target : {"logit", "label"}
        What is regressed: the logit of the class explained, or, as the authors' program does, the
        index of the predicted class, which means little with more than two classes.
    **shared
        Those of `Explainer`.
    """

    name = "limesegment"
    has_channels: ClassVar[bool] = False
    cases_at_once: ClassVar[int] = 1

    def __init__(
        self,
        model: Any,
        *,
        n_samples: int = 100,
        n_change_points: int = 3,
        window: int | None = None,
        nperseg: int = 40,
        target: str = "logit",
        **shared: Any,
    ) -> None:
        super().__init__(model, **shared)
        check_count("n_samples", n_samples, 1)
        check_count("n_change_points", n_change_points, 1)
        if window is not None:
            check_count("window", window, _SHORTEST_WINDOW)
        check_count("nperseg", nperseg, 2)
        check_choice("target", target, ("logit", "label"))
        self.n_samples, self.n_change_points = n_samples, n_change_points
        self.window, self.nperseg, self.target = window, nperseg, target

    def _scores(self, inputs: Batch, cases: list[Case]) -> Scores:
        v, longest = inputs.n_channels, int(inputs.lengths.max())
        if v != 1 or longest > _LONGEST:
            raise NotApplicableError(
                f"{self.name} is for series of one channel and up to {_LONGEST} points, these "
                f"have {v} channels and {longest} points; use lime or kernel_shap"
            )
        scores = torch.zeros(len(cases), inputs.n_timepoints)
        for i, case in enumerate(cases):
            of_case = self._explain_case(inputs[i : i + 1], case)
            scores[i, : len(of_case)] = torch.from_numpy(of_case)
        return Scores(scores)

    def _explain_case(self, one: Batch, case: Case) -> FloatArray:
        length = int(one.lengths[0])
        x = one.values[0, 0, :length].double().cpu().numpy()
        window = self.window or max(length // 5, _SHORTEST_WINDOW)
        cuts = change_points(x, window, self.n_change_points)
        if not cuts:
            return np.zeros(length)
        segment = np.searchsorted(cuts, np.arange(length), side="right")
        rng = np.random.default_rng(case.seed)
        kept, counts = count_distinct(rng.random((self.n_samples, len(cuts) + 1)) < 0.5)
        series = np.where(kept[:, segment], x, persistent_background(x, self.nperseg))
        distances = dtw_distances(x, series, math.ceil(_BAND * length))
        weights = counts * locality_weights(distances, counts)
        ridge = Ridge(_ALPHA).fit(kept, self._ask(one, case, series), sample_weight=weights)
        scores: FloatArray = ridge.coef_[segment]
        return scores

    def _ask(self, one: Batch, case: Case, series: FloatArray) -> FloatArray:
        """Return the output that is regressed, (n,), for each of some series (n, length)."""
        values = one.values.new_zeros(len(series), 1, one.n_timepoints)
        values[:, 0, : series.shape[1]] = torch.from_numpy(series)
        values = values * one.observed
        outputs = []
        for part in values.split(self.batch_size):
            logits = self.model.infer(repeated(one, len(part)), part)
            outputs.append(logits.argmax(1) if self.target == "label" else logits[:, case.target])
        return torch.cat(outputs).double().cpu().numpy()


def change_points(x: FloatArray, window: int, most: int) -> list[int]:
    """Return where a series changes, in order: at most so many points, perhaps none.

    A candidate is a point where the nearest neighbours of two successive subsequences do not
    follow each other. Its score is the difference of the means, times that of the deviations over
    their mean, of the half windows before and after it. The best are taken, at least half a window
    from each other and from the start.

    Parameters
    ----------
    x : array of shape (L,)
        The series.
    window : int
        Length of the subsequences, 4 or more.
    most : int
        How many points at most.
    """
    if len(x) < 2 * window:
        return []
    half = window // 2
    nearest = nearest_subsequences(x, window)
    candidates = np.flatnonzero(nearest[1:] != nearest[:-1] + 1)
    candidates = candidates[candidates >= half]
    parts = sliding_window_view(x, half)
    mean, deviation = parts.mean(axis=1), parts.std(axis=1)
    before, after = candidates - half, candidates
    spread = (deviation[before] + deviation[after]) / 2
    scores = np.abs(mean[before] - mean[after]) * np.abs(deviation[before] - deviation[after])
    scores = np.divide(scores, spread, out=np.zeros_like(scores), where=spread > 0)
    chosen: list[int] = []
    for best in np.argsort(-scores, kind="stable"):
        point = int(candidates[best])
        if len(chosen) == most or scores[best] == 0:
            break
        if all(abs(point - other) >= half for other in chosen):
            chosen.append(point)
    return sorted(chosen)


def persistent_background(x: FloatArray, nperseg: int) -> FloatArray:
    """Return the series with nothing left but its most persistent frequency.

    That is the one whose magnitude over the frames of a short-time Fourier transform has the
    largest ratio of mean to standard deviation.
    """
    nperseg = min(nperseg, len(x))
    frames = {"fs": 1.0, "window": "hann", "nperseg": nperseg, "noverlap": nperseg // 2}
    spectrum = stft(x, **frames)[2]  # (frequencies, frames)
    mean, deviation = np.abs(spectrum).mean(axis=1), np.abs(spectrum).std(axis=1)
    heard = mean > _ROUNDING * mean.max()
    if not heard.any():
        return np.zeros_like(x)
    ratio = np.divide(mean, deviation, out=np.full_like(mean, np.inf), where=deviation > 0)
    strongest: BoolArray = np.arange(len(mean)) == np.where(heard, ratio, -1.0).argmax()
    background: FloatArray = istft(spectrum * strongest[:, None], **frames)[1][: len(x)]
    return background


def locality_weights(distances: FloatArray, counts: IntArray) -> FloatArray:
    """Return ``exp(-|(d - mean) / std|)``, with mean and deviation over all samples drawn.

    Parameters
    ----------
    distances, counts : arrays of shape (n,)
        Distance of each different sample from the series, and how often it was drawn.
    """
    mean = np.average(distances, weights=counts)
    deviation = np.sqrt(np.average((distances - mean) ** 2, weights=counts))
    if deviation <= _ROUNDING * mean:
        return np.ones_like(distances)
    weights: FloatArray = np.exp(-np.abs((distances - mean) / deviation))
    return weights
