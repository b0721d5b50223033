"""What all classifiers of series share.

`base` trains and predicts, `inputs` checks labels and weights, `modelfile` saves and loads.
"""

from timesliver.estimator.base import SeriesClassifier
from timesliver.estimator.inputs import class_indices, target_indices

__all__ = ["SeriesClassifier", "class_indices", "target_indices"]
