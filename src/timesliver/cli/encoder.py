"""From the options of ``timesliver fit`` to an encoder, or to one sentence on what is wrong."""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from timesliver.errors import InvalidParameterError

if TYPE_CHECKING:
    from timesliver.encoders import Encoder
__all__ = ["chosen_encoder", "complete_encoder", "complete_symbols", "read_settings"]

_AUTO = "auto"


def chosen_encoder(
    name: str,
    preset: str | None,
    symbols: str | None,
    bins: int | None,
    of_segments: dict[str, tuple[str, Any]],
    more: dict[str, Any],
) -> Encoder | str:
    """Return the encoder that the command line asks for, or "auto" if it says nothing at all.

    Parameters
    ----------
    name : str
        The encoder, or "auto".
    preset : str or None
        The name of a ready setting of `Segments`.
    symbols : str or None
        Names of symbolizers, with commas between them.
    bins : int or None
        About how many symbols each has.
    of_segments : dict
        Parameters of `Segments` that have options of their own: option -> (parameter, value),
        where None is what was not said.
    more : dict
        Any parameters of the encoder, by name.
    """
    own = {option: pair for option, pair in of_segments.items() if pair[1] is not None}
    said = (preset, symbols, bins, own or None, more or None)
    if name == _AUTO and all(one is None for one in said):
        return _AUTO
    encoder = _created(name, preset)
    _refuse_those_of_segments(encoder, list(own))
    options = {parameter: option for option, (parameter, _) in own.items()}
    if symbols is not None or bins is not None:
        options["symbols"] = "--bins" if symbols is None else "--symbols"
        encoder.set_params(symbols=_symbolizers(encoder, symbols, bins))
    encoder.set_params(**dict(own.values()))
    for parameter, option in options.items():
        if parameter in more:
            raise InvalidParameterError(
                f"{option} and --set both say what {parameter} is; leave one of them out"
            )
    _set(encoder, more)
    encoder.check()
    return encoder


def complete_encoder(incomplete: str) -> list[str]:
    """Return the names of encoders that begin like this, for the shell."""
    from timesliver import encoders

    return [name for name in [_AUTO, *encoders.names()] if name.startswith(incomplete)]


def complete_symbols(incomplete: str) -> list[str]:
    """Return the names of symbolizers that begin like the last of these, for the shell."""
    from timesliver import symbols

    first, comma, last = incomplete.rpartition(",")
    return [f"{first}{comma}{name}" for name in symbols.names() if name.startswith(last)]


def read_settings(texts: Iterable[str]) -> dict[str, Any]:
    """Read settings: Python's numbers, tuples and so on as such, anything else as text.

    Examples
    --------
    >>> read_settings(["depth=1", "sizes=4,0.25", "window=bell"])
    {'depth': 1, 'sizes': (4, 0.25), 'window': 'bell'}
    """
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not (equals and name):
            raise InvalidParameterError(f"--set needs NAME=VALUE, like --set depth=1; got {text!r}")
        if name in settings:
            raise InvalidParameterError(f"--set says twice what {name} is; leave one of them out")
        try:
            settings[name] = literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            settings[name] = value.strip()
    return settings


def _created(name: str, preset: str | None) -> Encoder:
    """Return an encoder of its own: the default values of a class may be shared."""
    from timesliver.encoders import Segments, create

    if preset is None:
        return deepcopy(create(Segments.name if name == _AUTO else name))
    if name not in (_AUTO, Segments.name):
        raise InvalidParameterError(
            f"--preset is a setting of the encoder {Segments.name!r}, but --encoder says {name!r}; "
            f"leave one of them out"
        )
    return Segments.preset(preset)


def _refuse_those_of_segments(encoder: Encoder, options: Sequence[str]) -> None:
    from timesliver.encoders import Segments

    if options and not isinstance(encoder, Segments):
        raise InvalidParameterError(
            f"{options[0]} is a setting of the encoder {Segments.name!r}, but --encoder says "
            f"{encoder.name!r}, which has the parameters {_known(encoder)}; give these by --set"
        )


def _symbolizers(encoder: Encoder, names: str | None, bins: int | None) -> Any:
    """Return the symbolizers of these names, or those of the encoder, with so many symbols."""
    from timesliver.symbols import create

    known = [one.name for one in encoder.symbolizers()]
    chosen = known if names is None else [one.strip() for one in names.split(",")]
    for name in chosen if bins is not None else ():
        if create(name, 2).n_symbols == create(name, 100).n_symbols:
            raise InvalidParameterError(
                f"--bins cannot say how many symbols {name!r} has; leave it out"
            )
    made = [name if bins is None else create(name, bins) for name in chosen]
    return made if len(made) > 1 else made[0]


def _set(encoder: Encoder, settings: dict[str, Any]) -> None:
    """Set parameters of the encoder, then those of its symbolizers, such as symbols__n_bins."""
    for name in sorted(settings, key=lambda name: name.count("__")):
        if "__" in name and isinstance(encoder.symbols, str):
            encoder.set_params(symbols=encoder.symbolizers()[0])
        if name not in _settable(encoder):
            raise InvalidParameterError(
                f"{name!r} is not a parameter of the encoder {encoder.name!r}; its parameters are "
                f"{_known(encoder)}"
            )
        encoder.set_params(**{name: settings[name]})


def _known(encoder: Encoder) -> str:
    return ", ".join(_settable(encoder))


def _settable(encoder: Encoder) -> list[str]:
    from timesliver.estimator.modelfile import PASSING

    return sorted(name for name in encoder.get_params() if name not in PASSING)
