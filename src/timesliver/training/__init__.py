"""Training any network that maps a batch to logits.

`split` sets validation cases aside, `loop` trains, `callbacks` watch, `sparsity` is a penalty,
`runtime` seeds, threads and devices.
"""

from timesliver.training.callbacks import Callback, Progress, Record, StopTraining, all_callbacks
from timesliver.training.loop import Cases, Settings, Training, train
from timesliver.training.runtime import draw_seed, pick_device, progress, thread_limit
from timesliver.training.sparsity import total_evidence
from timesliver.training.split import validation_split

__all__ = [
    "Callback",
    "Cases",
    "Progress",
    "Record",
    "Settings",
    "StopTraining",
    "Training",
    "all_callbacks",
    "draw_seed",
    "pick_device",
    "progress",
    "thread_limit",
    "total_evidence",
    "train",
    "validation_split",
]
