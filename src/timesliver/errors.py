"""Errors whose message says what was wrong, what was expected and what to do.

Every error derives from `TimeSliverError` and from the built-in that callers would
otherwise have caught.
"""

from math import inf
from numbers import Integral, Real
from typing import Any

__all__ = [
    "InvalidInputError",
    "InvalidParameterError",
    "InvalidTypeError",
    "MissingExtraError",
    "NotApplicableError",
    "NotFittedError",
    "TimeSliverError",
    "TrainingError",
    "check_choice",
    "check_count",
    "check_number",
]


class TimeSliverError(Exception):
    """Base class of all errors raised on purpose by this package."""


class InvalidInputError(TimeSliverError, ValueError):
    """The data given cannot be used as they are."""


class InvalidTypeError(InvalidInputError, TypeError):
    """The data given hold things of a kind that cannot be used."""


class InvalidParameterError(TimeSliverError, ValueError):
    """A setting has a value that makes no sense, alone or together with the data."""


class NotApplicableError(TimeSliverError, ValueError):
    """A method does not work for this kind of model or series, whatever its settings."""


class NotFittedError(TimeSliverError, ValueError, AttributeError):
    """Something learned in ``fit`` was asked for before ``fit`` was called."""


class TrainingError(TimeSliverError, RuntimeError):
    """Training went wrong in a way that more of it would not mend."""


class MissingExtraError(TimeSliverError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"this needs the package {package!r}, which is not installed; "
            f"install it with: pip install 'timesliver[{extra}]'"
        )


def check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    """Raise if a setting is none of the known ones."""
    if value not in choices:
        known = ", ".join(repr(choice) for choice in choices)
        raise InvalidParameterError(f"{name}={value!r} is unknown; choose one of {known}")


def check_count(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Raise unless a setting is a whole number in its range."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        limit = f"at least {least}" if most is None else f"between {least} and {most}"
        raise InvalidParameterError(f"{name} must be a whole number, {limit}; got {value!r}")


def check_number(
    name: str,
    value: Any,
    *,
    above: float = -inf,
    least: float = -inf,
    below: float = inf,
    most: float = inf,
) -> None:
    """Raise unless a setting is a finite number in its range.

    Examples
    --------
    >>> check_number("sparsity", -1, least=0)
    Traceback (most recent call last):
    ...
    timesliver.errors.InvalidParameterError: sparsity must be a number, at least 0; got -1
    """
    number = isinstance(value, Real) and not isinstance(value, bool)
    if number and above < value < below and least <= value <= most:
        return
    limits = [("above", above), ("at least", least), ("below", below), ("at most", most)]
    said = [f"{words} {limit:g}" for words, limit in limits if abs(limit) != inf]
    where = f", {' and '.join(said)}" if said else ""
    raise InvalidParameterError(f"{name} must be a number{where}; got {value!r}")
