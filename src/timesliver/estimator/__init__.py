"""What all classifiers of series share.

`base` trains and predicts, `inputs` checks labels and weights, `modelfile` saves and loads.
"""

from timesliver.estimator.base import SeriesClassifier, Trained
from timesliver.estimator.inputs import class_indices, target_indices

__all__ = ["SeriesClassifier", "Trained", "class_indices", "target_indices"]
