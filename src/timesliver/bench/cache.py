"""The cache: files that are expensive to make, such as trained models, shared between jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from timesliver.bench.jobs import digest
from timesliver.io import replacing
from timesliver.typing import JSONDict

__all__ = ["Cache"]

T = TypeVar("T")


class Cache:
    """Files in a folder, each named by what it was made from.

    Parameters
    ----------
    folder : path
        It is made when the first file is written.

    Attributes
    ----------
    waited : float
        Seconds spent waiting for files that others were making.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder).absolute()
        self.waited = 0.0

    def path(self, key: JSONDict, suffix: str) -> Path:
        """Return the file of a key: a dictionary that says all the content depends on."""
        return self.folder / f"{digest(key, 32)}{suffix}"

    def get_or_make(
        self,
        key: JSONDict,
        make: Callable[[], T],
        write: Callable[[T, Path], Any],
        read: Callable[[Path], T],
        suffix: str = "",
    ) -> T:
        """Return what a file holds; make the file first if it is missing or damaged.

        Of several processes that need it one makes it, and the others wait. What is returned is
        always what `read` gives, so that a result cannot depend on who made the file.
        """
        path = self.path(key, suffix)
        content = _try(read, path)
        if content is not None:
            return content
        locks = self.folder / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        begin = time.perf_counter()
        with _locked(locks / f"{path.stem}.lock"):
            self.waited += time.perf_counter() - begin
            content = _try(read, path)  # somebody may have made it while we waited
            if content is not None:
                return content
            content = make()
            with replacing(path) as draft:
                write(content, draft)
            return read(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until no other process or thread is inside with the same file, and keep them out.

    Where a file system has no locks, nobody waits: the same file may be made twice, but never half.
    """
    lock = FileLock(path)
    with suppress(OSError, NotImplementedError):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _try(read: Callable[[Path], T], path: Path) -> T | None:
    if not path.is_file():
        return None
    try:
        return read(path)
    except Exception:  # however a damaged file shows itself
        return None
