"""TimeX++: a network that learns from training series which entries another model needs.

`networks` has its parts, `losses` what they are trained for, `training` how, `explainer` the rest.
"""

from timesliver.explainers.timex.explainer import TimeXPlusPlus

__all__ = ["TimeXPlusPlus"]
