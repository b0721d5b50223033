"""A job: one thing to compute, described in full, so that its hash names its result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any

from timesliver.errors import InvalidParameterError, check_choice, check_count
from timesliver.typing import JSONDict

__all__ = ["TASKS", "Job", "canonical", "digest"]

TASKS = ("train", "localise", "unmask", "negative", "axioms", "panel", "cost")


def canonical(value: Any) -> str:
    """Return JSON text that is the same for equal values, whatever the order of their keys.

    Examples
    --------
    >>> canonical({"b": (1, 2), "a": 2.0})
    '{"a":2,"b":[1,2]}'
    """
    try:
        return json.dumps(
            _whole(value),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"a description must hold finite numbers, text, lists and dictionaries only ({error})"
        ) from error


def digest(value: Any, digits: int = 16) -> str:
    """Return hexadecimal digits that stand for a value.

    Examples
    --------
    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1.0})
    True
    """
    return blake2b(canonical(value).encode()).hexdigest()[:digits]


@dataclass(frozen=True)
class Job:
    """What to compute. Two jobs are the same if, and only if, all of this is the same.

    Parameters
    ----------
    task : str
        What is done: one of `TASKS`.
    dataset, model, explainer : str
        Names in the suite's catalogue; no explainer for tasks that explain nothing.
    setting : str
        Which settings the explainer has: "", "paper" or "fair".
    seed, split : int
        Number of the trial, and of the split of the data.
    options : tuple of pairs
        More, such as a percentage; they are sorted by name.
    config : str
        The settings of the model and the data (see `canonical`); other settings, another job.

    Examples
    --------
    >>> job = Job("unmask", "FordA", "CNN", "grad_cam", "fair", options=(("percent", 20),))
    >>> job.label
    'unmask, FordA, grad_cam fair, CNN, seed 0, split 0, percent 20'
    >>> Job.from_dict(job.to_dict()) == job
    True
    """

    task: str
    dataset: str
    model: str
    explainer: str = ""
    setting: str = ""
    seed: int = 0
    split: int = 0
    options: tuple[tuple[str, Any], ...] = ()
    config: str = ""

    def __post_init__(self) -> None:
        check_choice("task", self.task, TASKS)
        check_count("seed", self.seed, 0)
        check_count("split", self.split, 0)
        options = tuple(sorted((str(name), _frozen(value)) for name, value in self.options))
        object.__setattr__(self, "options", options)
        canonical(self.to_dict())  # now, not in the middle of a run

    @cached_property
    def hash(self) -> str:
        """The 16 digits under which the result is stored."""
        return digest(self.to_dict())

    @property
    def label(self) -> str:
        """The job in words."""
        explained = f"{self.explainer} {self.setting}".strip()
        parts = [self.task, self.dataset, explained, self.model]
        parts += [f"seed {self.seed}", f"split {self.split}"]
        parts += [f"{name} {_words(value)}" for name, value in self.options]
        return ", ".join(part for part in parts if part)

    @property
    def training(self) -> Job | None:
        """The job that trains the model of this one; None if it needs no trained model."""
        if self.task in ("train", "cost"):
            return None
        config = json.loads(self.config)
        config = canonical({name: config[name] for name in ("data", "model")})
        return Job("train", self.dataset, self.model, "", "", self.seed, self.split, (), config)

    def matches(self, text: str) -> bool:
        """Whether a text is part of the label, or names a part of the job and its value.

        Case, ``-``, ``_`` and blanks make no difference.

        Examples
        --------
        >>> job = Job("localise", "LowVar", "CNN", "grad_cam")
        >>> job.matches("Grad-CAM, cnn"), job.matches("model=CNN"), job.matches("seed=1")
        (True, True, False)
        """
        name, is_part, wanted = text.partition("=")
        parts = {**self.to_dict(), **dict(self.options)}
        if is_part and name in parts:
            return _loose(_words(parts[name])) == _loose(wanted)
        return _loose(text) in _loose(self.label)

    def to_dict(self) -> JSONDict:
        """Return all of the job as JSON knows it."""
        content = {field.name: getattr(self, field.name) for field in fields(self)}
        return content | {"options": dict(self.options)}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Job:
        """Return the job that `to_dict` described, also after a way through a JSON file."""
        options = content.get("options") or {}
        try:
            return cls(**dict(content) | {"options": tuple(options.items())})
        except (TypeError, AttributeError) as error:
            raise InvalidParameterError(f"this describes no job ({error}): {content!r}") from error


def _frozen(value: Any) -> Any:
    """Return lists as tuples, and 20.0 as 20, so that equal jobs have equal hashes."""
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    return _whole(value)


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _words(value: Any) -> str:
    return "/".join(map(_words, value)) if isinstance(value, tuple) else str(value)


def _loose(text: str) -> str:
    return re.sub(r"[-_\s]+", " ", text).casefold().strip()
