"""The runner, with jobs that cost nothing (`stand_in`)."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import Counter
from pathlib import Path
from types import MappingProxyType

import pytest

from bench import stand_in
from timesliver.bench.cache import Cache
from timesliver.bench.engines import engine
from timesliver.bench.estimate import Durations, Estimate
from timesliver.bench.jobs import Job
from timesliver.bench.runner import attempt, make_plan, run
from timesliver.bench.store import Record, Store
from timesliver.errors import InvalidParameterError, TimeSliverError

TESTS = Path(__file__).parents[1]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "results")


@pytest.fixture
def log(tmp_path):
    """Count what was done so far, by hash or data set."""

    def count(word):
        lines = (tmp_path / "log").read_text().splitlines()
        return Counter(line.split()[1] for line in lines if line.split()[0] == word)

    return count


def go(store, jobs, name="sequential", n_jobs=None, **options):
    settings = {"perform": "bench.stand_in:perform", "prerequisites": stand_in.no_prerequisites}
    cache = Cache(store.folder.parent / "cache")
    return run("s", jobs, store, cache, engine(name, n_jobs), **settings | options)


def results(store):
    return {key: (record.status, record.result) for key, record in store.records("s").items()}


def test_only_what_is_missing_is_run(store, log):
    jobs = stand_in.jobs(5)
    assert go(store, jobs[:2]) == (2, 0, 0, 0)
    assert go(store, jobs) == (3, 0, 0, 2)
    assert go(store, jobs) == (0, 0, 0, 5)
    assert log("begin") == {job.hash: 1 for job in jobs}


def test_the_same_job_twice_is_run_once(store, log):
    job = stand_in.jobs(1)[0]
    assert go(store, [job, job]) == (1, 0, 0, 0)
    assert log("begin") == {job.hash: 1}


def test_a_changed_configuration_is_a_new_job(store):
    go(store, stand_in.jobs(2))
    assert go(store, stand_in.jobs(2, colour="red")) == (2, 0, 0, 0)
    assert len(store.records("s")) == 4


def test_failures_are_stored_with_their_traceback_and_retried_on_request(store, monkeypatch):
    jobs = [*stand_in.jobs(2, fails="CNN"), *stand_in.jobs(2)]
    assert go(store, jobs) == (2, 2, 0, 0)
    record = store.records("s")[jobs[0].hash]
    assert record.error.startswith("Traceback")
    assert "in perform" in record.error
    assert record.error.endswith("ZeroDivisionError: no way\n")
    assert go(store, jobs) == (0, 0, 0, 4)
    assert go(store, jobs, retry=True) == (0, 2, 0, 2)
    assert go(store, jobs, retry=True, perform=lambda job, cache: {"x": 1}) == (2, 0, 0, 2)
    assert store.records("s")[jobs[0].hash].result == {"x": 1}
    assert store.records("s")[jobs[0].hash].error == ""


def test_what_does_not_apply_is_na_and_final(store):
    jobs = stand_in.jobs(2, na="CNN")
    assert go(store, jobs) == (0, 0, 2, 0)
    assert store.records("s")[jobs[0].hash].error == "this needs attention"
    assert go(store, jobs, retry=True) == (0, 0, 0, 2)


def test_limit(store):
    jobs = stand_in.jobs(5)
    assert go(store, jobs, limit=2) == (2, 0, 0, 3)
    assert go(store, jobs, limit=2) == (2, 0, 0, 3)
    with pytest.raises(InvalidParameterError, match="limit"):
        go(store, jobs, limit=0)


def test_nothing_to_do(store):
    assert go(store, []) == (0, 0, 0, 0)
    assert store.suites() == []


def test_an_unknown_function(store):
    with pytest.raises(TimeSliverError, match="no function 'nowhere:f'"):
        go(store, stand_in.jobs(1), prerequisites="nowhere:f")


def test_loky_gives_what_sequential_gives(store, tmp_path):
    jobs = [*stand_in.jobs(4), *stand_in.jobs(2, fails="CNN"), *stand_in.jobs(1, na="CNN")]
    other = Store(tmp_path / "loky")
    assert go(store, jobs) == go(other, jobs, "loky", 2) == (4, 2, 1, 0)
    assert results(store) == results(other)


class TestPrerequisites:
    options = MappingProxyType(
        {"perform": "bench.stand_in:perform_with_model", "prerequisites": stand_in.training}
    )

    def jobs(self, *names):
        return [
            Job("localise", name, "CNN", explainer)
            for explainer in ("lime", "color", "random")
            for name in names
        ]

    def test_models_are_trained_once_and_stored(self, store, log):
        summary = go(store, self.jobs("a", "b"), "loky", 2, **self.options)
        assert summary == (8, 0, 0, 0)
        trains = [Job("train", name, "CNN") for name in "ab"]
        assert log("trains") == {"a": 1, "b": 1}
        assert {job.hash for job in trains} < set(store.records("s"))

    def test_a_training_that_is_in_the_suite_is_not_run_twice(self, store):
        jobs = [*self.jobs("a"), Job("train", "a", "CNN")]
        assert go(store, jobs, **self.options) == (4, 0, 0, 0)

    @pytest.mark.parametrize("name", ["sequential", "loky"])
    def test_without_its_model_a_job_is_not_tried(self, store, name):
        assert go(store, self.jobs("a", "bad"), name, 2, **self.options).done >= 4
        failed = [r for r in store.records("s").values() if r.status == "failed"]
        early = [r for r in failed if "not run, as what it needs is failed" in r.error]
        assert {r.job["dataset"] for r in failed} == {"bad"}
        if name == "sequential":
            assert len(early) == len(failed) - 1 == 3
            assert early[0].error.endswith("ValueError: diverged")
            again = go(store, self.jobs("a", "bad"), name, 2, retry=True, **self.options)
            assert again == (0, 4, 0, 3)

    def test_a_training_known_to_have_failed(self, store):
        train = Job("train", "a", "CNN")
        store.append("s", Record.of(train, "failed", error="ValueError: diverged"))
        assert go(store, self.jobs("a"), **self.options) == (0, 3, 0, 0)

    def test_where_training_does_not_apply_nothing_does(self, store):
        store.append("s", Record.of(Job("train", "a", "CNN"), "na", error="no"))
        assert go(store, self.jobs("a"), **self.options) == (0, 0, 3, 0)

    def test_order(self):
        records = {}
        for name, seconds in (("a", 1.0), ("b", 9.0)):
            done = Record.of(Job("train", name, "FCN"), "done", seconds=seconds)
            records[done.hash] = done
        plan = make_plan(self.jobs("a", "b"), records, prerequisites=stand_in.training)
        assert [job.dataset for job in plan.first] == ["b", "a"]  # the longest first
        assert [job.dataset for job in plan.then] == ["b"] * 3 + ["a"] * 3
        done = Record.of(Job("train", "b", "CNN"), "done")
        plan = make_plan(
            self.jobs("a", "b"), records | {done.hash: done}, prerequisites=stand_in.training
        )
        assert [job.dataset for job in plan.first] == ["a"]
        assert [job.dataset for job in plan.then] == ["b"] * 3 + ["a"] * 3

    def test_ready_jobs_go_before_those_that_would_wait(self):
        from timesliver.bench.runner import _startable_first

        plan = make_plan(self.jobs("a", "b", "c"), {}, prerequisites=stand_in.training)
        known = {}
        turn = _startable_first(plan, known)
        trains = [next(turn) for _ in range(3)]
        assert [job.task for job in trains] == ["train"] * 3
        known[trains[1].hash] = Record.of(trains[1], "done")
        assert next(turn).dataset == "b"
        known[trains[2].hash] = Record.of(trains[2], "done")
        assert [next(turn).dataset for _ in range(5)] == ["b", "b", "c", "c", "c"]
        assert [job.dataset for job in turn] == ["a"] * 3  # nothing else is left: they wait


SCRIPT = textwrap.dedent(
    """
    import sys
    from bench import stand_in
    from timesliver.bench.cache import Cache
    from timesliver.bench.engines import engine
    from timesliver.bench.runner import run
    from timesliver.bench.store import Store

    if __name__ == "__main__":
        folder, name = sys.argv[1:]
        run("s", stand_in.jobs(12, sleep=0.2), Store(folder + "/results"), Cache(folder + "/cache"),
            engine(name, 2), perform="bench.stand_in:perform",
            prerequisites=stand_in.no_prerequisites)
    """
)


@pytest.mark.parametrize("name", ["sequential", "loky"])
def test_kill_nine(store, log, tmp_path, name):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, script, tmp_path, name],
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while len(store.records("s")) < 3:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = store.records("s")
    ended = set(log("end"))
    n_running = 1 if name == "sequential" else 2
    assert 3 <= len(before) < 12
    assert len(ended - set(before)) <= n_running
    with store.path("s").open("ab") as file:  # as if it had been killed while writing
        file.write(b'{"hash": "12')

    jobs = stand_in.jobs(12, sleep=0.2)
    assert go(store, jobs) == (12 - len(before), 0, 0, len(before))
    after = store.records("s")
    assert set(after) == {job.hash for job in jobs}
    assert all(after[key] == record for key, record in before.items())


def test_waiting_for_others_is_no_work(tmp_path):
    def wait(job, cache):
        time.sleep(0.1)
        cache.waited += 5.0
        time.sleep(0.1)
        return {}

    cache = Cache(tmp_path)
    cache.waited = 3.0
    begin = time.perf_counter()
    record = attempt(wait, stand_in.jobs(1)[0], cache)
    assert record.seconds == pytest.approx(time.perf_counter() - begin - 5.0, abs=0.1)


class TestEstimate:
    def records(self):
        times = {("a", "CNN"): 10.0, ("b", "CNN"): 20.0, ("a", "FCN"): 60.0}
        for (dataset, model), seconds in times.items():
            yield Record.of(Job("train", dataset, model), "done", seconds=seconds)
        yield Record.of(Job("train", "a", "CNN", seed=9), "failed", seconds=1e6)

    def test_the_most_alike_decide(self):
        durations = Durations(self.records())
        assert durations.seconds(Job("train", "a", "CNN", seed=5)) == 10.0
        assert durations.seconds(Job("train", "c", "CNN")) == 15.0  # the same model
        assert durations.seconds(Job("train", "a", "LSTM")) == 35.0  # the same set
        assert durations.seconds(Job("train", "c", "LSTM")) == 30.0  # any training
        assert durations.seconds(Job("cost", "a", "CNN")) is None

    def test_sum(self):
        records = {record.hash: record for record in self.records()}
        jobs = [Job("train", "a", "CNN", seed=1), Job("train", "b", "CNN"), Job("cost", "a", "CNN")]
        assert Durations(records.values()).estimate(jobs) == Estimate(30.0, 2, 1)
        assert Durations().estimate(jobs) == Estimate(0, 0, 3)


def test_a_line_for_each_job_and_no_bar_in_a_file(store, capsys):
    go(store, [*stand_in.jobs(1), *stand_in.jobs(1, fails="CNN")], verbose=1, progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    first, second = err.splitlines()
    assert first.startswith("[1/2] done   localise, set0, random, CNN, seed 0, split 0 (0.")
    assert second.endswith("s): ZeroDivisionError: no way")


def test_the_bar_shows_failures_rate_and_time_left(store, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    go(store, stand_in.jobs(3), progress=True)
    err = capsys.readouterr().err
    assert "3/3" in err
    assert "0 failed, 0 na" in err
    assert "per minute" in err


def test_a_job_that_kills_its_worker_fails_and_the_others_are_done(store, log):
    deadly = stand_in.jobs(1, kills="CNN")
    jobs = [*deadly, *stand_in.jobs(6)]
    assert go(store, jobs, "loky", 2) == (6, 1, 0, 0)
    record = store.records("s")[deadly[0].hash]
    assert record.status == "failed"
    assert "died" in record.error
    assert log("begin")[deadly[0].hash] == 3  # among the others, after the others, alone
