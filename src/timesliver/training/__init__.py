"""Finding the weights of a network: by descent or in closed form, behind one call.

`solve` does either and returns the same record. `split` sets validation cases aside, `callbacks`
watch, `sparsity` is a penalty, `runtime` seeds, threads and devices.
"""

from timesliver.training.callbacks import (
    Callback,
    Progress,
    Record,
    StopTraining,
    TimeLimit,
    all_callbacks,
)
from timesliver.training.descent import Cases, Descent, Training
from timesliver.training.runtime import draw_seed, pick_device, progress, thread_limit
from timesliver.training.solve import Ridge, solve
from timesliver.training.sparsity import total_evidence
from timesliver.training.split import validation_split

__all__ = [
    "Callback",
    "Cases",
    "Descent",
    "Progress",
    "Record",
    "Ridge",
    "StopTraining",
    "TimeLimit",
    "Training",
    "all_callbacks",
    "draw_seed",
    "pick_device",
    "progress",
    "solve",
    "thread_limit",
    "total_evidence",
    "validation_split",
]
