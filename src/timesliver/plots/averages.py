"""The mean case of each class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from timesliver.errors import InvalidInputError
from timesliver.plots.panel import (
    Scale,
    add_legend,
    as_channels,
    as_labels,
    as_text,
    draw_panel,
    most_telling,
    span_of,
)
from timesliver.typing import FloatArray

if TYPE_CHECKING:
    from timesliver.attribution.result import Attribution

__all__ = ["draw_class_averages"]

_MOST_ROWS, _MOST_COLUMNS = 8, 6  # classes and channels of a table


def draw_class_averages(
    attribution: Attribution, channels: Sequence[int] | None, y: ArrayLike | None
) -> Figure:
    """Draw the mean case of each class explained; see `Attribution.plot_class_average`."""
    if not len(attribution):
        raise InvalidInputError("there is no case to average; explain at least one")
    true = None if y is None else as_labels(y, len(attribution))
    averages = [_Average.of(attribution, target, true) for target in np.unique(attribution.target)]
    weights = np.stack([np.abs(a.positive - a.negative).sum(axis=1) for a in averages])
    in_table = channels is not None or len(averages) <= _MOST_ROWS
    if in_table:  # a row per class, a column per channel
        chosen = as_channels(channels, weights.shape[1])
        if channels is None:
            chosen = most_telling(weights.sum(axis=0), _MOST_COLUMNS)
        n_rows, n_columns = len(averages), len(chosen)
        shown = [(average, int(channel)) for average in averages for channel in chosen]
    else:  # a panel per class, with the channel that says most about it
        n_rows, n_columns = math.ceil(len(averages) / 4), 4
        shown = list(zip(averages, weights.argmax(axis=1).tolist(), strict=True))
    width = max(2.7, min(8.0, 11 / n_columns))
    figure = Figure(figsize=(width * n_columns, 1.7 * n_rows + 1.2), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, sharex=True, squeeze=False).ravel()
    scale = Scale.of(
        np.stack([average.positive[channel] for average, channel in shown]),
        np.stack([average.negative[channel] for average, channel in shown]),
    )
    for place, (average, channel) in enumerate(shown):
        ax = axes[place]
        alike = averages if in_table else [average]  # one scale in each column
        ranges = [part[channel] for a in alike if a.series is not None for part in a.series[1:]]
        mean, *band = (None,) if average.series is None else (p[channel] for p in average.series)
        draw_panel(
            ax,
            average.positive[channel],
            average.negative[channel],
            scale,
            mean,
            band,
            span_of(*ranges) if ranges else None,
        )
        if not in_table:
            ax.set_title(f"{average.name}, channel {channel}", fontsize="medium")
        elif place < n_columns:
            ax.set_title(f"channel {channel}", fontsize="medium")
        if in_table and place % n_columns == 0:
            ax.set_ylabel(average.name)
        if place + n_columns >= len(shown):
            ax.set_xlabel("time point")
            ax.tick_params(labelbottom=True)
    for ax in axes[len(shown) :]:
        ax.remove()
    figure.suptitle("mean series and mean evidence of the cases explained as each class")
    add_legend(figure, spread=attribution.series is not None)
    return figure


@dataclass(frozen=True)
class _Average:
    """The mean case of a class; all arrays are (n_channels, n_timepoints)."""

    name: str
    positive: FloatArray
    negative: FloatArray
    series: tuple[FloatArray, FloatArray, FloatArray] | None  # mean, and one deviation around it

    @classmethod
    def of(cls, attribution: Attribution, target: int, true: NDArray[Any] | None) -> _Average:
        members = attribution.target == target
        part, n = attribution[members], int(attribution.lengths.max())
        name = f"{as_text(part.classes[target])}\n{len(part)} case{'s' * (len(part) > 1)}"
        if true is not None:
            name += f", {np.count_nonzero(true[members] == part.classes[target])} correct"
        inside = (np.arange(n) < part.lengths[:, None]).sum(axis=0).clip(min=1)
        positive, negative = (  # nothing is said in the padding
            scores[..., :n].clip(min=0).sum(axis=0) / inside
            for scores in (part.positive_by_channel, part.negative_by_channel)
        )
        if part.series is None:
            return cls(name, positive, negative, None)
        values = part.series[..., :n]
        seen = np.count_nonzero(~np.isnan(values), axis=0)
        with np.errstate(invalid="ignore"):  # 0 / 0: no case has this point
            mean = np.nansum(values, axis=0) / seen
            spread = np.sqrt(np.nansum((values - mean) ** 2, axis=0) / seen)
        return cls(name, positive, negative, (mean, mean - spread, mean + spread))
