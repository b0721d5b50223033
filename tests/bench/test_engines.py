"""Every engine runs the same jobs to the same results."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import joblib
import pytest

from bench import stand_in
from timesliver.bench import engines
from timesliver.bench.cache import Cache
from timesliver.bench.engines import engine
from timesliver.bench.runner import run
from timesliver.bench.store import Store
from timesliver.errors import InvalidInputError, InvalidParameterError, MissingExtraError

TESTS = Path(__file__).parents[1]


@pytest.fixture
def go(tmp_path):
    """Run jobs with an engine, and return their records."""

    def go(jobs, chosen):
        store = Store(tmp_path / "results")
        perform, prerequisites = "bench.stand_in:perform", stand_in.no_prerequisites
        run(
            "s",
            jobs,
            store,
            Cache(tmp_path / "cache"),
            chosen,
            perform=perform,
            prerequisites=prerequisites,
        )
        return store.records("s")

    return go


def values(records):
    return {key: (record.status, record.result) for key, record in records.items()}


def expected(jobs):
    import torch

    generators = [torch.Generator().manual_seed(job.seed) for job in jobs]
    return {
        job.hash: ("done", {"value": torch.randn(3, generator=generator).tolist()})
        for job, generator in zip(jobs, generators, strict=True)
    }


def test_sequential_is_this_process(go):
    records = go(stand_in.jobs(2, pid=1), engine("sequential"))
    assert {record.result["pid"] for record in records.values()} == {os.getpid()}


def test_loky_is_as_many_processes_as_asked_for():
    with engine("loky", 3):
        assert joblib.effective_n_jobs(None) == 3
    with engine("loky"):
        assert joblib.effective_n_jobs(None) == joblib.cpu_count()


class TestDask:
    @pytest.fixture(autouse=True)
    def installed(self):
        pytest.importorskip("distributed", reason="dask is not installed")

    def test_two_workers_one_of_which_is_killed(self, go, tmp_path):
        jobs = stand_in.jobs(10, sleep=0.3)
        killed = []

        def kill_the_first():
            log = tmp_path / "log"
            while not log.exists() or "begin" not in log.read_text():
                time.sleep(0.02)
            killed.append(int(log.read_text().split()[2]))
            os.kill(killed[0], signal.SIGKILL)

        killer = threading.Thread(target=kill_the_first, daemon=True)
        killer.start()
        records = go(jobs, engine("dask", 2))
        killer.join()
        assert killed[0] != os.getpid()
        assert values(records) == expected(jobs)
        lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
        first = next(line[1] for line in lines if line[2] == str(killed[0]))
        begun = [line[2] for line in lines if line[:2] == ["begin", first]]
        assert begun[0] == str(killed[0])  # the job was lost with its worker
        assert len(begun) == 2  # and begun once more by another

    def test_a_cluster_that_is_already_there(self, go):
        from distributed import LocalCluster

        settings = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(processes=False, protocol="tcp", **settings) as cluster:
            jobs = stand_in.jobs(3)
            records = go(jobs, engine("dask", scheduler=cluster.scheduler_address))
            assert cluster.status.name == "running"  # it is not ours to end
        assert values(records) == expected(jobs)

    def test_nobody_answers(self, go, monkeypatch):
        monkeypatch.setattr(engines, "_CONNECT_SECONDS", 0.5)
        with pytest.raises(InvalidInputError, match="no Dask scheduler answers at tcp://127"):
            go(stand_in.jobs(1), engine("dask", scheduler="tcp://127.0.0.1:1"))


class TestRay:
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch):
        ray = pytest.importorskip("ray", reason="ray is not installed")
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        monkeypatch.setenv("PYTHONPATH", path)
        yield
        assert not ray.is_initialized()

    def test_two_workers(self, go):
        jobs = stand_in.jobs(4)
        assert values(go(jobs, engine("ray", 2))) == expected(jobs)

    @pytest.mark.slow
    def test_a_job_that_kills_its_worker(self, go):
        jobs, deadly = stand_in.jobs(4), stand_in.jobs(1, kills="CNN")
        records = values(go([*deadly, *jobs], engine("ray", 2)))
        assert records.pop(deadly[0].hash) == ("failed", {})
        assert records == expected(jobs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("threads",), "engine='threads' is unknown"),
        (("loky", 0), "n_jobs must be a whole number"),
        (("loky", 2, "tcp://host:1"), "is for the engines 'dask' and 'ray'"),
    ],
)
def test_mistakes(arguments, message):
    with pytest.raises(InvalidParameterError, match=message), engine(*arguments):
        pass


@pytest.mark.parametrize(("name", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_package_is_named(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"timesliver\[cluster\]"), engine(name):
        pass
