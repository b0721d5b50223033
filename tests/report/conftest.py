"""Explanations whose evidence lies on a planted bump."""

from __future__ import annotations

import numpy as np
import pytest

from timesliver import Attribution

WIDTH = 10


def explanations(
    n_cases=12,
    n_channels=3,
    n_timepoints=80,
    classes=("sit", "walk", "run"),
    with_series=True,
    with_probabilities=True,
    dtype=np.float64,
):
    """Return one explanation per class and the true labels; every fourth prediction is wrong.

    Case i has a bump in channel i % n_channels. It speaks for the predicted class, and against
    the others.
    """
    rng = np.random.default_rng(0)
    shape = (n_cases, n_channels, n_timepoints)
    n_classes = len(classes)
    true = np.arange(n_cases) % n_classes
    predicted = np.where(np.arange(n_cases) % 4 == 3, (true + 1) % n_classes, true)
    X = rng.normal(scale=0.3, size=shape).astype(dtype)
    starts = rng.integers(0, max(1, n_timepoints - WIDTH), size=n_cases)
    bump = np.hanning(WIDTH + 2)[1:-1][:n_timepoints].astype(dtype)
    evidence = np.zeros(shape, dtype)
    for i, start in enumerate(starts):
        X[i, i % n_channels, start : start + WIDTH] += 5 * bump
        evidence[i, i % n_channels, start : start + WIDTH] = bump
    logits = rng.normal(size=(n_cases, n_classes))
    logits[np.arange(n_cases), predicted] += 5
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = np.array(classes)
    found = []
    for k in range(n_classes):
        chosen = (predicted == k)[:, None, None]
        positive = np.where(chosen, evidence, 0)
        negative = np.where(chosen, 0, 0.5 * evidence) + dtype(0.01)
        net = positive.astype(np.float64) - negative
        found.append(
            Attribution(
                positive,
                negative,
                logit=logits[:, k],
                base=logits[:, k] - net.sum(axis=(1, 2)),
                target=np.full(n_cases, k),
                classes=labels,
                method="additive",
                series=X if with_series else None,
                probabilities=probabilities if with_probabilities else None,
            )
        )
    return found, labels[true]


@pytest.fixture(name="explanations")
def explanations_fixture():
    return explanations
