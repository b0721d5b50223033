import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from timesliver.bench.cache import Cache


def write(value, path):
    path.write_text(value)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "cache")


def files(cache):
    return [path for path in cache.folder.iterdir() if path.is_file()]


def get(cache, value="made", key=None, read=Path.read_text, calls=None):
    def make():
        if calls is not None:
            calls.append(value)
        return value

    return cache.get_or_make(key or {"a": 1}, make, write, read, ".txt")


def test_it_is_made_once(cache):
    assert get(cache, "first") == "first"
    assert get(cache, "second") == "first"
    assert get(cache, "other", {"a": 2}) == "other"
    assert len(files(cache)) == 2


def test_everybody_gets_what_the_file_says(cache):
    def read(path):
        return path.read_text().upper()

    assert get(cache, read=read) == get(cache, read=read) == "MADE"


def test_a_damaged_file_is_made_anew(cache):
    def read(path):
        return {"made": "whole"}[path.read_text()]

    get(cache)
    files(cache)[0].write_text("mad")
    assert get(cache, read=read) == "whole"
    assert files(cache)[0].read_text() == "made"


def test_a_failure_leaves_nothing_and_does_not_block(cache):
    def fail():
        raise ZeroDivisionError

    def fail_to_write(value, path):
        path.write_text("half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cache.get_or_make({"a": 1}, fail, write, Path.read_text, ".txt")
    with pytest.raises(ZeroDivisionError):
        cache.get_or_make({"a": 1}, str, fail_to_write, Path.read_text, ".txt")
    assert files(cache) == []
    assert get(cache) == "made"


def test_threads_wait_for_the_first(cache):
    calls, results = [], []

    def make():
        calls.append(1)
        time.sleep(0.1)
        return "slow"

    def work():
        results.append(cache.get_or_make({"a": 1}, make, write, Path.read_text, ".txt"))

    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]
    assert results == ["slow"] * 5


HOLDER = """
import sys, time
from pathlib import Path
from timesliver.bench.cache import Cache
folder, seconds = sys.argv[1:]
def make():
    Path(folder, "holding").touch()
    time.sleep(float(seconds))
    return "theirs"
Cache(Path(folder, "cache")).get_or_make(
    {"a": 1}, make, lambda v, p: p.write_text(v), Path.read_text, ".txt"
)
"""


def hold(tmp_path, seconds):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path, str(seconds)])
    while not (tmp_path / "holding").exists():
        assert holder.poll() is None
        time.sleep(0.01)
    return holder


def test_a_process_waits_for_another(cache, tmp_path):
    holder = hold(tmp_path, 0.5)
    assert get(cache, "mine") == "theirs"
    assert holder.wait() == 0
    assert 0.2 < cache.waited < 10


def test_a_killed_holder_holds_nothing(cache, tmp_path):
    holder = hold(tmp_path, 100)
    waiting = threading.Timer(0.3, os.kill, (holder.pid, signal.SIGKILL))
    waiting.start()
    begin = time.monotonic()
    assert get(cache, "mine") == "mine"  # it waited, and then took over at once
    assert 0.2 < time.monotonic() - begin < 10
    assert holder.wait() == -signal.SIGKILL
    waiting.join()


def test_without_locks_nobody_waits(cache, monkeypatch):
    import errno
    import fcntl

    def unsupported(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    assert get(cache) == "made"
