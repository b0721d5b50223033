"""Base, evidence and logit of a case, as numbers that add up on the page as well."""

from __future__ import annotations

import math

__all__ = ["sum_as_text"]

_EXACT = 1e-3  # a difference below this part of the largest number is rounding
_DIGITS, _MOST_PLACES = 4, 12


def sum_as_text(base: float, evidence: float, logit: float) -> list[str] | None:
    """Return the three numbers, rounded such that they add up, or None if they do not.

    Parameters
    ----------
    base : float
        What belongs to no moment.
    evidence : float
        All evidence for a class minus all evidence against it.
    logit : float
        What the two should add up to.

    Examples
    --------
    >>> sum_as_text(0.00494, 8.22046, 8.2254)
    ['0.005', '8.220', '8.225']
    >>> sum_as_text(0.0049, 516.7, 8.225) is None
    True
    """
    largest = max(abs(base), abs(evidence), abs(logit))
    if not all(map(math.isfinite, (base, evidence, logit))):
        return None
    if abs(base + evidence - logit) > _EXACT * largest:
        return None
    magnitude = math.floor(math.log10(largest)) if largest else 0
    places = min(max(0, _DIGITS - 1 - magnitude), _MOST_PLACES)
    first, total = round(base, places), round(logit, places)
    numbers = (first, round(total - first, places), total)
    return [f"{number + 0.0:.{places}f}".replace("-", "−") for number in numbers]  # never "-0"
