"""Where the parameters are that the classifier had in version 0.1."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from timesliver.encoders.segments import Segments
from timesliver.errors import InvalidParameterError

__all__ = ["naming_what_has_moved"]

# What used to be parameters of the classifier, and how a `Segments` calls them.
_MOVED = {name: f"{name}=..." for name in Segments().get_params(deep=False)} | {
    "n_bins": "symbols=SAX(...)",
    "symbolizer": "symbols=...",
    "segment_sizes": "sizes=...",
}

P = ParamSpec("P")


def naming_what_has_moved(init: Callable[P, None]) -> Callable[P, None]:
    """Say where an old parameter is now; to scikit-learn the others are all there are."""

    @wraps(init)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        for name in _MOVED.keys() & kwargs:
            raise InvalidParameterError(
                f"{name!r} is a parameter of the encoder: write "
                f"TimeSliverClassifier(Segments({_MOVED[name]}))"
            )
        init(*args, **kwargs)

    return checked
