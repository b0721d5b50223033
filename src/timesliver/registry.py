"""Kinds of parts that have names: ours, and those that other packages bring as entry points.

What has a name can be chosen on the command line and written to a model file.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

import numpy as np

from timesliver.errors import InvalidParameterError

__all__ = ["Registry", "from_description", "to_description"]

T = TypeVar("T")

_REGISTRIES: dict[str, Registry[Any]] = {}


class Registry(Generic[T]):
    """Classes of one kind by their names.

    Parameters
    ----------
    kind : str
        What the classes are, in words: it stands in messages and in model files.
    group : str
        The entry point group under which another package names classes of its own.
    base : type
        What they all derive from.
    ours : dict
        Where our own are, as "package.module:Class".
    """

    def __init__(self, kind: str, group: str, base: type[T], ours: Mapping[str, str]) -> None:
        self.kind, self.group, self.base, self.ours = kind, group, base, ours
        _REGISTRIES[kind] = self

    def names(self) -> list[str]:
        """Return all names, ours first."""
        others = {point.name for point in entry_points(group=self.group)} - self.ours.keys()
        return [*self.ours, *sorted(others)]

    def find(self, name: Any) -> type[T]:
        """Return the class of this name."""
        if isinstance(name, str) and name in self.ours:
            module, _, cls = self.ours[name].partition(":")
            loaded = getattr(import_module(module), cls)
        else:
            points = [point for point in entry_points(group=self.group) if point.name == name]
            if not points:
                known = ", ".join(map(repr, self.names()))
                raise InvalidParameterError(
                    f"there is no {self.kind} {name!r}; choose one of {known}, or install the "
                    f"package that brings it"
                )
            loaded = points[0].load()
        if not (isinstance(loaded, type) and issubclass(loaded, self.base)):
            raise InvalidParameterError(
                f"the {self.kind} {name!r} is registered as {loaded!r}, which is no subclass of "
                f"{self.base.__name__}"
            )
        return loaded

    def name_of(self, part: T) -> str:
        """Return the name of a part; it must be registered, or a file could not be read again."""
        name: str = getattr(type(part), "name", "")
        if name not in self.names() or self.find(name) is not type(part):
            place = f"{type(part).__module__}:{type(part).__qualname__}"
            raise InvalidParameterError(
                f"{type(part).__name__} is no registered {self.kind}, so a file that names it "
                f"could not be read again; register it in its package's pyproject.toml, under "
                f'[project.entry-points."{self.group}"]: {name or "its-name"} = "{place}"'
            )
        return name


def to_description(value: Any) -> Any:
    """Return a setting as JSON knows it; parts with a name keep their own settings.

    Examples
    --------
    >>> from timesliver.symbols import SAX
    >>> to_description([SAX(5, window=2), np.int64(3)])
    [{'symbolizer': 'sax', 'settings': {'n_bins': 5, 'normalize': 'instance', 'window': 2}}, 3]
    """
    for registry in _REGISTRIES.values():
        if isinstance(value, registry.base):
            settings = value.get_params(deep=False)
            return {
                registry.kind: registry.name_of(value),
                "settings": {name: to_description(part) for name, part in settings.items()},
            }
    if isinstance(value, list | tuple | np.ndarray):
        parts = [to_description(part) for part in value]
        lost = any(
            part is None and given is not None for part, given in zip(parts, value, strict=True)
        )
        return None if lost else parts  # callbacks, for one, belong to the moment
    if isinstance(value, np.generic):
        return value.item()
    return value if isinstance(value, str | int | float | bool | None) else None


def from_description(value: Any) -> Any:
    """Return what `to_description` was given, in which numbers in a row are a tuple."""
    if isinstance(value, list):
        parts = [from_description(part) for part in value]
        numbers = all(isinstance(part, int | float) for part in parts)
        return tuple(parts) if numbers else parts
    if isinstance(value, dict):
        for kind, registry in _REGISTRIES.items():
            if kind in value:
                settings = {k: from_description(v) for k, v in value["settings"].items()}
                return registry.find(value[kind])(**settings)
    return value
