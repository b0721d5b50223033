"""From a trained network to the evidence for and against a class.

`scores` holds the paper's equations, `additive` the exact shares of a logit, `explain` runs
either on any number of cases, `result` is what comes back: it slices, finds the intervals that
matter most (`intervals`), draws itself, and goes to files (`storage`).
"""

from timesliver.attribution.explain import explain, join
from timesliver.attribution.intervals import Interval
from timesliver.attribution.result import Attribution

__all__ = ["Attribution", "Interval", "explain", "join"]
