"""Files from the network: they arrive whole and checked in the cache folder, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.status import Status

from timesliver.datasets.dataset import Dataset
from timesliver.datasets.places import cache_folder, temporary_folder, write_arrays
from timesliver.datasets.reading import read
from timesliver.datasets.registry import Info
from timesliver.errors import InvalidInputError, MissingExtraError
from timesliver.io import replacing

__all__ = ["download_archive", "fetch", "show_status"]

PARTS = ("train", "test")
TIMEOUT = 60  # seconds without a byte


def fetch(url: str, path: Path, checksum: str | None = None, *, remedy: str) -> None:
    """Download a file.

    Parameters
    ----------
    url : str
        Where it is.
    path : Path
        Where it goes. Nothing appears there before the transfer is complete and checked.
    checksum : str or None
        What the file must hash to, like ``"sha1:adab..."``. None: not checked here.
    remedy : str
        What to do by hand when there is no network; it ends the message of the error.

    Raises
    ------
    InvalidInputError
        If the server cannot be reached, the transfer breaks, or the checksum differs.
    """
    try:
        import pooch
    except ImportError:
        raise MissingExtraError("pooch", "archive") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as draft:
        with _Bar(path.name) as bar:
            try:
                pooch.HTTPDownloader(progressbar=bar, chunk_size=2**16, timeout=TIMEOUT)(
                    url, str(draft), None
                )
            except OSError as error:  # all of the errors of requests are of this kind
                raise InvalidInputError(
                    f"cannot download {url} ({_reason(error)}); {remedy}"
                ) from None
        if checksum is None:
            return
        method, _, expected = checksum.rpartition(":")
        actual = pooch.file_hash(str(draft), alg=method or "sha256")
        if actual != expected.lower():
            raise InvalidInputError(
                f"the download of {url} has the {method or 'sha256'} checksum {actual}, expected "
                f"{expected}; try again, and if it stays so the file was changed there: {remedy}"
            )


def download_archive(known: Info) -> Path:
    """Download a set of the UEA or UCR archive through aeon into the cache.

    Returns
    -------
    Path
        An ``.npz`` file with both parts.
    """
    try:
        from aeon.datasets import load_classification
    except ImportError:
        raise MissingExtraError("aeon", "archive") from None
    name, target = known.name, cache_folder() / known.source / f"{known.name}.npz"
    remedy = (
        f"without a network, put {name}_TRAIN.ts and {name}_TEST.ts of the archive "
        f"(https://timeseriesclassification.com) into {cache_folder() / known.source / name}"
    )
    with temporary_folder() as folder, show_status(f"Downloading {name}"):
        try:
            load_classification(
                name,
                split="test",
                extract_path=str(folder),
                load_equal_length=False,
                load_no_missing=False,
            )
            parts = {part: read(folder / name / f"{name}_{part.upper()}.ts") for part in PARTS}
        except Exception as error:  # aeon wraps what urllib, json and its parser raise
            raise InvalidInputError(
                f"cannot download the set {name} ({str(error)[:300]}); {remedy}"
            ) from None
    for part, data in parts.items():
        expected = (known.sizes or {}).get(part)
        if expected not in (None, len(data)):
            raise InvalidInputError(
                f"the download of the set {name} has {len(data)} {part} cases, expected "
                f"{expected}; the transfer may be cut short: try again, or {remedy}"
            )
    write_arrays(target, **_arrays(parts))
    return target


def show_status(message: str) -> Status:
    """Show people at a terminal, until the end of the context, what takes so long."""
    return Console(stderr=True).status(message)


def _arrays(parts: dict[str, Dataset]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for part, data in parts.items():
        arrays[f"X_{part}"] = data.X.astype(np.float32)
        arrays[f"y_{part}"] = data.y
    return arrays


def _reason(error: OSError) -> str:
    from requests.exceptions import ConnectionError, Timeout

    if isinstance(error, Timeout):
        return f"no answer within {TIMEOUT} s"
    if isinstance(error, ConnectionError):
        return "the server cannot be reached"
    return str(error)[:200]


class _Bar:
    """A progress bar, as pooch drives one; drawn only where somebody watches."""

    def __init__(self, title: str) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(title, total=None)
        self._total = 0

    def __enter__(self) -> _Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @property
    def total(self) -> int:
        return self._total

    @total.setter
    def total(self, size: int) -> None:
        self._total = size
        self._progress.update(self._task, total=size or None)  # 0: the server did not say

    def update(self, size: int) -> None:
        self._progress.advance(self._task, size)

    def reset(self) -> None:
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        pass
