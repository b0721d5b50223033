"""Drawings of an `Attribution` with matplotlib, without pyplot and its global state."""

from timesliver.plots.averages import draw_class_averages
from timesliver.plots.case import draw_case

__all__ = ["draw_case", "draw_class_averages"]
