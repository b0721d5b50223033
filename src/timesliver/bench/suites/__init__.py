"""Suites: TOML files that say which jobs make which tables and figures of the paper.

A group of jobs names a task and lists data sets, models, explainers and options; every combination
is a job. Values of one preset override those of the group; `training_cases` of a preset lets slow
models learn from so many cases only, spread evenly over all. `catalogue.toml` says what the names
of data sets, models and explainers stand for.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from timesliver.bench.jobs import TASKS, Job, canonical
from timesliver.encoders.presets import PRESETS
from timesliver.errors import InvalidInputError, check_choice
from timesliver.typing import JSONDict

__all__ = ["Catalogue", "Suite", "catalogue", "load_suite", "names"]

_CATALOGUE = "catalogue.toml"


@dataclass(frozen=True, eq=False)
class Catalogue:
    """What the names in the suites stand for.

    Attributes
    ----------
    datasets, models, explainers : dict
        Settings by name; those of a model may differ by data set, under "sets", where "preset"
        stands for the settings of that name in `timesliver.encoders.presets`.
    labels : dict
        How names are printed, where not as they are.
    """

    datasets: dict[str, JSONDict]
    models: dict[str, JSONDict]
    explainers: dict[str, JSONDict]
    labels: dict[str, str]

    def config(
        self,
        dataset: str,
        model: str,
        explainer: str,
        setting: str,
        backbone: str = "",
        cases: int | None = None,
    ) -> str:
        """Return all settings of a job in one line of JSON, so that other settings differ."""
        config: JSONDict = {
            "data": self._find("data set", self.datasets, dataset),
            "model": self.model(model, dataset),
        }
        if cases is not None:
            config["model"]["cases"] = cases
        if explainer:
            config["explainer"] = dict(self._find("explainer", self.explainers, explainer))
            if setting:
                config["explainer"]["setting"] = setting
        if backbone:
            config["backbone"] = self.model(backbone, dataset)
        return canonical(config)

    def model(self, name: str, dataset: str) -> JSONDict:
        """Return class and options of a model, as they are for a data set."""
        entry = self._find("model", self.models, name)
        base = self.model(entry["like"], dataset) if "like" in entry else {"options": {}}
        special = dict(entry.get("sets", {}).get(dataset, {}))
        preset = _in_one_row(special.pop("preset")) if "preset" in special else {}
        return {
            "class": entry.get("class", base.get("class")),
            "options": {**base["options"], **entry.get("options", {}), **preset, **special},
        }

    def label(self, name: str) -> str:
        """Return how a name is printed."""
        return self.labels.get(name, name)

    @staticmethod
    def _find(kind: str, table: dict[str, JSONDict], name: str) -> JSONDict:
        if name not in table:
            raise InvalidInputError(
                f"there is no {kind} {name!r} in the catalogue; known are {', '.join(table)}"
            )
        return table[name]


@dataclass(frozen=True, eq=False)
class Suite:
    """The jobs behind one part of the paper, and the tables and figures made of their records."""

    name: str
    title: str
    description: str
    catalogue: Catalogue
    presets: dict[str, JSONDict]
    groups: list[JSONDict]
    tables: list[JSONDict] = field(default_factory=list)
    figures: list[JSONDict] = field(default_factory=list)

    def jobs(self, preset: str = "quick") -> list[Job]:
        """Return the jobs of a preset, each once, in the order of the file."""
        check_choice("preset", preset, tuple(self.presets))
        jobs = (job for group in self.groups for job in self._expand(group, preset))
        return list(dict.fromkeys(jobs))

    def _expand(self, group: JSONDict, preset: str) -> Iterator[Job]:
        wanted = {**self.presets[preset], **group, **group.get(preset, {})}
        check_choice("task", wanted["task"], TASKS)
        if preset not in wanted.get("presets", self.presets):
            return
        few = wanted.get("training_cases", {})
        options = {name: _as_list(values) for name, values in wanted.get("options", {}).items()}
        for dataset, model, explainer, split, seed in itertools.product(
            wanted["datasets"],
            wanted["models"],
            wanted.get("explainers", [""]),
            wanted.get("splits", [0]),
            wanted.get("seeds", [0]),
        ):
            name, _, setting = explainer.partition("/")
            for values in itertools.product(*options.values()):
                chosen = dict(zip(options, map(_frozen, values), strict=True))
                backbone = str(chosen.get("backbone", ""))
                yield Job(
                    task=wanted["task"],
                    dataset=dataset,
                    model=model,
                    explainer=name,
                    setting=setting,
                    seed=seed,
                    split=split,
                    options=tuple(sorted(chosen.items())),
                    config=self.catalogue.config(
                        dataset, model, name, setting, backbone, few.get(model)
                    ),
                )


def names() -> list[str]:
    """Return the names of the built-in suites.

    Examples
    --------
    >>> "localisation" in names()
    True
    """
    files = resources.files("timesliver.bench.suites").iterdir()
    written = [Path(file.name) for file in files if file.name.endswith(".toml")]
    return sorted(file.stem for file in written if file.name != _CATALOGUE)


def load_suite(name: str | Path) -> Suite:
    """Load a built-in suite by its name, or one from a file.

    A file may have a section ``[catalogue]`` with data sets, models and explainers of its own.

    Examples
    --------
    >>> load_suite("axioms").jobs("quick")[0].task
    'axioms'
    """
    if str(name) in names():
        text = resources.files("timesliver.bench.suites").joinpath(f"{name}.toml").read_text("utf8")
    elif Path(name).suffix == ".toml" and Path(name).is_file():
        text = Path(name).read_text("utf8")
    else:
        raise InvalidInputError(
            f"there is no suite {str(name)!r}; choose one of {', '.join(names())}, or give the "
            f"path of a .toml file"
        )
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInputError(f"{name} is no TOML file: {error}") from error
    for part in ("title", "presets", "jobs"):
        if part not in content:
            raise InvalidInputError(f"the suite {name} has no {part!r}; see docs/benchmark.md")
    return Suite(
        name=Path(name).stem,
        title=content["title"],
        description=content.get("description", ""),
        catalogue=_extended(catalogue(), content.get("catalogue", {})),
        presets=content["presets"],
        groups=content["jobs"],
        tables=content.get("tables", []),
        figures=content.get("figures", []),
    )


@cache
def catalogue() -> Catalogue:
    """Return the built-in catalogue."""
    text = resources.files("timesliver.bench.suites").joinpath(_CATALOGUE).read_text("utf8")
    content = tomllib.loads(text)
    return Catalogue(
        content["datasets"], content["models"], content["explainers"], content["labels"]
    )


def _extended(known: Catalogue, more: JSONDict) -> Catalogue:
    parts = ("datasets", "models", "explainers", "labels")
    return Catalogue(*({**getattr(known, part), **more.get(part, {})} for part in parts))


def _in_one_row(preset: str) -> JSONDict:
    """Return the settings of a preset in the spelling of the records."""
    if preset not in PRESETS:
        raise InvalidInputError(f"there is no preset {preset!r}; known are {', '.join(PRESETS)}")
    settings = dict(PRESETS[preset])
    return {
        "n_bins": settings.pop("symbols").n_bins,
        "segment_sizes": settings.pop("sizes"),
        **settings,
    }


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
