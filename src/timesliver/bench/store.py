"""The store: one line of JSON per finished job, only ever added to.

A line is written whole, in one go, so that several processes may add to one file. Whatever is
killed in the middle of a line leaves a torn one, which is never read.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from timesliver.bench.jobs import Job
from timesliver.errors import InvalidInputError, check_choice
from timesliver.io import as_json
from timesliver.typing import JSONDict

__all__ = ["STATUSES", "Record", "Store", "machine"]

STATUSES = ("done", "failed", "na")


@dataclass(frozen=True)
class Record:
    """What became of a job.

    Parameters
    ----------
    hash, job : str and dict
        The job's hash and its description.
    status : str
        "done", "failed", or "na" where the method does not apply.
    result : dict
        Numbers, text and lists; what they are depends on the task.
    error : str
        The traceback of a failure, or why the method does not apply.
    seconds : float
        How long it took.
    finished : str
        When it was finished, in ISO format and UTC.
    version : str
        The version of this package.
    machine : dict
        The versions and the number of cores it ran on.
    """

    hash: str
    job: JSONDict
    status: str
    result: JSONDict = field(default_factory=dict)
    error: str = ""
    seconds: float = 0.0
    finished: str = ""
    version: str = ""
    machine: JSONDict = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_choice("status", self.status, STATUSES)

    @classmethod
    def of(
        cls,
        job: Job,
        status: str,
        result: Mapping[str, Any] | None = None,
        error: str = "",
        seconds: float = 0.0,
    ) -> Record:
        """Return the record of a job that is finished now, here."""
        from timesliver import __version__

        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        return cls(
            hash=job.hash,
            job=job.to_dict(),
            status=status,
            result=as_json(dict(result or {})),
            error=error,
            seconds=round(seconds, 4),
            finished=now,
            version=__version__,
            machine=machine(),
        )


class Store:
    """Records in a folder, one file per suite.

    Parameters
    ----------
    folder : path
        It is made when the first record is added.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(folder)
    ...     store.append("uea", Record.of(Job("train", "FordA", "CNN"), "done", {"accuracy": 1}))
    ...     [record.result for record in store.records("uea").values()]
    [{'accuracy': 1}]
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()

    def path(self, suite: str) -> Path:
        """Return the file of a suite."""
        return self.folder / f"{suite}.jsonl"

    def suites(self) -> list[str]:
        """Return the names of the suites with records."""
        return sorted(path.stem for path in self.folder.glob("*.jsonl"))

    def append(self, suite: str, record: Record) -> None:
        """Add a record, which is on the disk when this returns."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(record), ensure_ascii=False, allow_nan=False)
        with self.path(suite).open("ab+", buffering=0) as file:
            # a torn last line gets an end of its own, and does not spoil this one
            line = f"\n{text}\n" if _is_torn(file) else f"{text}\n"
            encoded = line.encode()
            if file.write(encoded) != len(encoded):
                raise OSError(28, "the record could not be written whole", str(self.path(suite)))
            os.fsync(file.fileno())

    def records(self, suite: str) -> dict[str, Record]:
        """Return the records of a suite by the hash of their job.

        Of several records of a job the last one counts; but a failure replaces no answer.
        """
        records: dict[str, Record] = {}
        for record in self._lines(suite):
            earlier = records.get(record.hash)
            if earlier is None or record.status != "failed" or earlier.status == "failed":
                records[record.hash] = record
        return records

    def merge(self, *others: Store) -> int:
        """Add what other stores know better; return how many records that were.

        An answer is better than a failure, a later record better than an earlier one.
        """
        added = 0
        for other in others:
            if not other.suites():
                raise InvalidInputError(
                    f"{other.folder} is no store with records; a store is a folder of .jsonl files"
                )
            for suite in other.suites():
                mine = self.records(suite)
                for record in other.records(suite).values():
                    if record.hash not in mine or _preference(record) > _preference(
                        mine[record.hash]
                    ):
                        self.append(suite, record)
                        added += 1
        return added

    def _lines(self, suite: str) -> Iterator[Record]:
        if not self.path(suite).is_file():
            return
        with self.path(suite).open("rb") as file:
            for line in file:
                try:
                    yield Record(**json.loads(line))
                except (ValueError, TypeError):  # torn, or empty
                    continue


def machine() -> JSONDict:
    """Return what a result may depend on."""
    return {
        "python": platform.python_version(),
        "torch": version("torch"),
        "cpus": os.cpu_count(),
    }


def _is_torn(file: Any) -> bool:
    size = file.seek(0, os.SEEK_END)
    if not size:
        return False
    file.seek(size - 1)
    return bool(file.read(1) != b"\n")


def _preference(record: Record) -> tuple[bool, str]:
    return record.status != "failed", record.finished
