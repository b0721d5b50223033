"""From a trained network to the evidence for and against a class.

`scores` holds the paper's equations, `additive` the exact shares of a logit, `explain` runs
either on any number of cases, `result` is what comes back.
"""

from timesliver.attribution.explain import explain
from timesliver.attribution.result import Attribution

__all__ = ["Attribution", "explain"]
