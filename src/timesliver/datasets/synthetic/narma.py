"""The noise that the LowVar and SeqComb sets are laid on."""

from __future__ import annotations

import numpy as np

from timesliver.typing import FloatArray, Shape

__all__ = ["narma"]

RUN_IN = 32  # steps until a NARMA series has forgotten its start: 0.3**32 < 1e-16


def narma(shape: Shape, rng: np.random.Generator) -> FloatArray:
    """Return stationary series of the process ``y_i = 0.3 y_{i-1} + 1.5 u_{i-2} u_i + 0.1``.

    The inputs ``u`` are uniform on [0, 0.5). This is what the generator that the published sets
    were made with computes; the textbook's NARMA has a quadratic term as well.

    Parameters
    ----------
    shape : tuple of int
        Shape of the result; time is the last axis.
    rng : numpy.random.Generator
        Source of the inputs.
    """
    u = rng.uniform(0, 0.5, size=(*shape[:-1], shape[-1] + RUN_IN + 2))
    series: FloatArray = 1.5 * u[..., :-2] * u[..., 2:] + 0.1
    for i in range(1, series.shape[-1]):
        series[..., i] += 0.3 * series[..., i - 1]
    return series[..., RUN_IN:]
