"""Which encoders a classifier takes by itself: the kernel bank, and learnt segments if they pay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from timesliver.encoders.base import Encoder
from timesliver.encoders.kernels import Kernels
from timesliver.encoders.segments import Segments
from timesliver.training import Cases, TimeLimit
from timesliver.typing import FloatArray, JSONDict

__all__ = ["choose_encoders"]

_MANY = 1000  # cases from which on learning an encoder is tried
_HELD_OUT = 0.2  # share of them to judge by


def choose_encoders(
    cases: Cases,
    validation: Cases | None,
    time_budget: float,
    seed: int,
    fit: Callable[[Encoder, Cases], Callable[[Any], FloatArray]],
) -> tuple[list[Encoder], list[JSONDict]]:
    """Choose among the kernel bank, learnt segments and both together.

    With fewer than 1,000 cases it is the bank. With more, all are judged by the accuracy on cases
    held out from training; among equals the simpler one is taken.

    Parameters
    ----------
    cases, validation : Cases
        The training series, and cases to judge by; None holds a fifth of them out.
    time_budget : float
        Seconds that learning may take; half of them for the trial.
    seed : int
        Decides which cases are held out.
    fit : callable
        Trains an encoder on cases and returns a function from series to logits.

    Returns
    -------
    encoders, report
        What is taken; and what was tried, with accuracy and seconds.
    """
    if len(cases) < _MANY:
        return [Kernels()], []
    train, held_out = cases.split(_HELD_OUT, seed) if validation is None else (cases, validation)
    assert held_out is not None  # a fifth of many
    y, weight = held_out.y.numpy(), held_out.weight.numpy()
    limit = time_budget / 2
    single: list[Encoder] = [
        Kernels(),
        Segments(positional_encoding=True, step="auto", callbacks=[TimeLimit(limit)]),
    ]
    report: list[JSONDict] = []
    logits: list[FloatArray] = []
    contenders = [[single[0]], [single[1]], single]
    for together in contenders:
        start = time.perf_counter()
        if len(together) == 1:
            logits.append(fit(together[0], train)(held_out.batch))
            scores = logits[-1]
        else:
            scores = np.mean(logits, axis=0)
        right = scores.argmax(axis=1) == y
        report.append(
            {
                "encoder": " + ".join(one.name for one in together),
                "accuracy": float(right @ weight / weight.sum()),
                "n_held_out": len(y),
                "seconds": time.perf_counter() - start,
            }
        )
    best = int(np.argmax([one["accuracy"] for one in report]))
    return contenders[best], report
