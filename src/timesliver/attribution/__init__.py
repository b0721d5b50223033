"""From a trained network to the evidence for and against a class.

`shares` has the exact shares of a logit, `phi` the paper's scores, `explain` runs either on a
batch, `result` is what comes back: it slices, finds the intervals that
matter most (`intervals`), draws itself, and goes to files (`storage`).
"""

from timesliver.attribution.explain import explain, options_of
from timesliver.attribution.intervals import Interval
from timesliver.attribution.result import Attribution, join

__all__ = ["Attribution", "Interval", "explain", "join", "options_of"]
