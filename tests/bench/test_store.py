import json
import multiprocessing
from dataclasses import replace

import numpy as np
import pytest

from timesliver.bench.jobs import Job
from timesliver.bench.store import Record, Store
from timesliver.errors import InvalidInputError, InvalidParameterError

JOBS = [Job("train", f"set{i}", "CNN") for i in range(4)]


def record(i=0, status="done", finished="2026-01-01T00:00:00", **result):
    made = Record.of(JOBS[i], status, result, error="why" if status != "done" else "")
    return replace(made, finished=finished)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


def test_records_come_back(store):
    assert store.records("a") == {}
    assert store.suites() == []
    kept = [record(0, accuracy=0.5), record(1, "na"), record(2, "failed")]
    for one in kept:
        store.append("a", one)
    store.append("b", record(3))
    assert store.records("a") == {one.hash: one for one in kept}
    assert store.suites() == ["a", "b"]
    first = store.records("a")[JOBS[0].hash]
    assert Job.from_dict(first.job) == JOBS[0]
    assert first.version
    assert set(first.machine) == {"python", "torch", "cpus"}


def test_results_become_json():
    made = Record.of(JOBS[0], "done", {"a": np.float32(0.5), "b": np.arange(2), "c": [np.nan, 1.0]})
    assert made.result == {"a": 0.5, "b": [0, 1], "c": [None, 1.0]}
    assert made.finished.endswith("+00:00")


def test_status_is_checked():
    with pytest.raises(InvalidParameterError, match="status='ok' is unknown"):
        Record.of(JOBS[0], "ok")


def test_later_wins_but_no_failure_replaces_an_answer(store):
    for one in (record(0, "failed"), record(0, value=1), record(0, value=2), record(0, "failed")):
        store.append("a", one)
    assert store.records("a")[JOBS[0].hash].result == {"value": 2}
    store.append("a", record(1, "failed"))
    last = replace(record(1, "failed"), error="again")
    store.append("a", last)
    assert store.records("a")[JOBS[1].hash].error == "again"


@pytest.mark.parametrize("cut", [1, 2, 20, 100])
def test_a_torn_last_line_is_lost_and_nothing_else(store, cut):
    store.append("a", record(0))
    store.append("a", record(1))
    path = store.path("a")
    path.write_bytes(path.read_bytes()[:-cut])
    whole = {JOBS[0].hash} | ({JOBS[1].hash} if cut == 1 else set())
    assert set(store.records("a")) == whole
    store.append("a", record(2))
    store.append("a", record(3))
    assert set(store.records("a")) == whole | {JOBS[2].hash, JOBS[3].hash}


def test_lines_that_are_no_records_are_skipped(store):
    store.append("a", record(0))
    with store.path("a").open("ab") as file:
        file.write(b'\n[1]\n3\n{"hash": "x"}\n\xff\xfe\n')
    store.append("a", record(1))
    assert set(store.records("a")) == {JOBS[0].hash, JOBS[1].hash}


def write_many(folder, start, n):
    store = Store(folder)
    for i in range(n):
        job = Job("train", "x" * 5000, "CNN", seed=start * n + i)
        store.append("a", Record.of(job, "done", {"writer": start}))


def test_several_processes_append_at_once(tmp_path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=write_many, args=(tmp_path, k, 50)) for k in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    lines = Store(tmp_path).path("a").read_bytes().splitlines()
    assert len([json.loads(line) for line in lines if line]) == 200
    assert len(Store(tmp_path).records("a")) == 200


class TestMerge:
    def test_union(self, tmp_path):
        a, b, c = (Store(tmp_path / name) for name in "abc")
        a.append("x", record(0))
        b.append("x", record(1))
        b.append("y", record(2))
        assert c.merge(a, b) == 3
        assert set(c.records("x")) == {JOBS[0].hash, JOBS[1].hash}
        assert set(c.records("y")) == {JOBS[2].hash}
        assert c.merge(a, b) == 0

    @pytest.mark.parametrize(
        ("mine", "theirs", "wins"),
        [
            (("failed", 2), ("done", 1), "theirs"),
            (("done", 1), ("failed", 2), "mine"),
            (("done", 1), ("done", 2), "theirs"),
            (("done", 2), ("done", 1), "mine"),
            (("failed", 2), ("na", 1), "theirs"),
            (("failed", 1), ("failed", 2), "theirs"),
        ],
    )
    def test_the_better_record_wins(self, tmp_path, mine, theirs, wins):
        records = {}
        for name, (status, day) in (("mine", mine), ("theirs", theirs)):
            records[name] = record(0, status, f"2026-01-0{day}T00:00:00", name=name)
            Store(tmp_path / name).append("x", records[name])
        store = Store(tmp_path / "mine")
        store.merge(Store(tmp_path / "theirs"))
        assert store.records("x")[JOBS[0].hash] == records[wins]

    def test_an_empty_folder_is_no_store(self, store, tmp_path):
        with pytest.raises(InvalidInputError, match="no store with records"):
            store.merge(Store(tmp_path))
