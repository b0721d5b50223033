from copy import deepcopy

import numpy as np
import pytest

from timesliver import Segments, TimeSliverClassifier
from timesliver.symbols import SAX

SMALL = {
    "symbols": SAX(5),
    "latent_dim": 8,
    "sizes": (2, 3),
    "positional_encoding": False,
    "learning_rate": 0.01,
    "max_epochs": 20,
}
OF_THE_CLASSIFIER = set(TimeSliverClassifier().get_params(deep=False))


def small_segments(**settings):
    """Return an encoder that trains in a second."""
    return Segments(**deepcopy(SMALL) | settings)


def small(**settings):
    """Return a classifier that trains in a second."""
    own = {name: value for name, value in settings.items() if name in OF_THE_CLASSIFIER}
    rest = {name: value for name, value in settings.items() if name not in own}
    if "encoder" not in own:
        own["encoder"] = small_segments(**rest)
    return TimeSliverClassifier(**{"random_state": 0} | own)


def bumps(n_cases=60, n_channels=1, n_timepoints=30, n_classes=2, seed=0):
    """Noise with a bump whose place tells the class, and where it is."""
    rng = np.random.default_rng(seed)
    X = 0.3 * rng.normal(size=(n_cases, n_channels, n_timepoints))
    y = np.arange(n_cases) % n_classes
    where = np.zeros(X.shape, dtype=bool)
    for case, label in enumerate(y):
        start = rng.integers(0, n_timepoints - 6)
        where[case, :, start : start + 6] = True
        shape = np.full(6, 3.0) if label == 0 else 3.0 * (-1.0) ** np.arange(6) * label
        X[case, :, start : start + 6] += shape
    return X, y, where


@pytest.fixture(scope="session")
def fitted():
    X, y, _ = bumps()
    return small(max_epochs=30).fit(X, np.array(["slow", "fast"])[y])
