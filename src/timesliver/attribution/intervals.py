"""From scores per time point to the few intervals that matter most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from timesliver.typing import FloatArray

__all__ = ["Interval", "strong_stretches", "top_intervals"]


@dataclass(frozen=True, repr=False)
class Interval:
    """A stretch of time points that spoke for or against a class.

    Attributes
    ----------
    start, stop : int
        The time points ``start <= t < stop``.
    channel : int
        The channel that carries most of the evidence there.
    label : Any
        The class explained.
    sign : {"for", "against"}
        Which way the stretch spoke.
    share : float
        Its part of the net evidence of the case, for and against together: 0 to 1.

    Examples
    --------
    >>> Interval(start=3, stop=9, channel=0, label="walk", sign="for", share=0.4121)
    Interval(3:9, channel 0, for 'walk', share 0.412)
    """

    start: int
    stop: int
    channel: int
    label: Any
    sign: Literal["for", "against"]
    share: float

    def __repr__(self) -> str:
        return (
            f"Interval({self.start}:{self.stop}, channel {self.channel}, "
            f"{self.sign} {self.label!r}, share {self.share:.3g})"
        )


def top_intervals(net: FloatArray, label: Any, k: int, by_channel: bool) -> list[Interval]:
    """Return the k intervals of a case that carry most evidence; see `Attribution.top`.

    Parameters
    ----------
    net : array of shape (n_channels, n_timepoints)
        Evidence for minus evidence against.
    label : Any
        The class explained.
    k : int
        How many intervals at most.
    by_channel : bool
        Look at each channel by itself, not at their sum.
    """
    largest = np.abs(net).max(initial=0)
    if largest == 0:
        return []
    net = net.astype(np.float64) / largest
    rows = net if by_channel else net.sum(axis=0, keepdims=True)
    level, total = np.abs(rows).max() / 2, np.abs(rows).sum()
    signs: tuple[tuple[Literal["for", "against"], int], ...] = (("for", 1), ("against", -1))
    intervals = []
    for sign, direction in signs:
        for channel, row in enumerate(direction * rows):
            for start, stop in strong_stretches(row, level) if level > 0 else ():
                by_each = direction * net[:, start:stop].sum(axis=1)
                intervals.append(
                    Interval(
                        start,
                        stop,
                        channel if by_channel else int(by_each.argmax()),
                        label,
                        sign,
                        float(row[start:stop].clip(min=0).sum() / total),
                    )
                )
    return sorted(intervals, key=lambda interval: -interval.share)[:k]


def strong_stretches(scores: FloatArray, level: float) -> list[tuple[int, int]]:
    """Return the disjoint stretches of a sequence that lie above a level on the whole.

    Points at or above the level start a stretch. A dip is bridged where the points on either side
    exceed the level by more than the dip falls short of it. These are the maximal scoring
    subsequences of ``scores - level``, found in linear time [1]_.

    Parameters
    ----------
    scores : array of shape (n_timepoints,)
        One score per time point.
    level : float
        What a point must reach to count.

    Returns
    -------
    list of (start, stop)
        In the order of time; ``stop`` is not part of the stretch.

    References
    ----------
    .. [1] W. L. Ruzzo and M. Tompa, "A linear time algorithm for finding all maximal scoring
       subsequences", ISMB 1999.

    Examples
    --------
    >>> import numpy as np
    >>> strong_stretches(np.array([0, 9, 4, 9, 0, 0, 0, 6, 0]), level=5)
    [(1, 4), (7, 8)]
    """
    above = np.concatenate([[False], scores >= level, [False]])
    edges = np.flatnonzero(above[1:] != above[:-1])  # start, stop, start, stop, ...
    height = np.concatenate([[0.0], np.cumsum(scores - level)])[edges].tolist()
    stretches: list[tuple[int, int, int]] = []  # first edge, last edge, nearest that begins lower
    for first in range(0, len(edges), 2):
        last, lower = first + 1, len(stretches) - 1
        while lower >= 0 and height[stretches[lower][0]] >= height[first]:
            lower = stretches[lower][2]
        while lower >= 0 and height[stretches[lower][1]] < height[last]:  # join all in between
            first, _, nearest = stretches[lower]
            del stretches[lower:]
            lower = nearest
        stretches.append((first, last, lower))
    return [(int(edges[first]), int(edges[last])) for first, last, _ in stretches]
