"""Encoders: settings of the part of a network that describes every moment.

`Segments` is the paper's learnt convolution, `Kernels` a bank of fixed kernels; `auto` chooses
between them by cases held out from training. `base` says what any encoder must give, so that
another package can bring one.
"""

from timesliver.encoders.auto import choose_encoders
from timesliver.encoders.base import Encoder, FixedEncoder, Shape
from timesliver.encoders.kernels import Kernels
from timesliver.encoders.segments import Segments
from timesliver.registry import Registry

__all__ = [
    "Encoder",
    "FixedEncoder",
    "Kernels",
    "Segments",
    "Shape",
    "choose_encoders",
    "create",
    "names",
]

_REGISTRY = Registry(
    "encoder",
    "timesliver.encoders",
    Encoder,  # type: ignore[type-abstract]
    {cls.name: f"{cls.__module__}:{cls.__name__}" for cls in (Segments, Kernels)},
)


def names() -> list[str]:
    """Return the names of all encoders, ours first.

    Examples
    --------
    >>> names()[0]
    'segments'
    """
    return _REGISTRY.names()


def create(encoder: str | Encoder) -> Encoder:
    """Return the encoder of this name with its default settings, or the instance given.

    Examples
    --------
    >>> create("segments")
    Segments()
    """
    return encoder if isinstance(encoder, Encoder) else _REGISTRY.find(encoder)()
