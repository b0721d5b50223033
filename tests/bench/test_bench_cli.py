"""The commands of the benchmark, with jobs that cost nothing."""

import json
import os
import subprocess
import sys
import types

import pytest
from typer.testing import CliRunner

from bench import stand_in
from timesliver.bench.jobs import Job
from timesliver.bench.store import Record, Store
from timesliver.cli import app

SUITE = """
title = "A small suite"

[presets.quick]
seeds = [0]
[presets.paper]
seeds = [0, 1, 2]

[[jobs]]
task = "train"
datasets = ["LowVar", "FreqSum"]
models = ["CNN", "FCN"]

[[jobs]]
task = "train"
presets = ["paper"]
datasets = ["LowVar"]
models = ["LSTM"]

[[tables]]
name = "accuracy"
title = "Accuracy"
task = "train"
rows = ["model"]
columns = "dataset"
value = "accuracy"

[[tables]]
name = "size"
title = "Parameters"
task = "train"
rows = ["model"]
columns = "dataset"
value = "n_parameters"
"""

MISTAKE, USAGE, INTERRUPTED = 1, 2, 130


def perform(job, cache):
    if job.model == "FCN" and job.dataset == "FreqSum":
        raise ValueError("it\ndiverged")
    return {"accuracy": 0.75, "balanced_accuracy": 0.5, "n_parameters": 1234}


@pytest.fixture
def tasks(monkeypatch):
    module = types.ModuleType("timesliver.bench.tasks")
    module.perform, module.prerequisites = perform, stand_in.no_prerequisites
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


@pytest.fixture
def run(tmp_path, monkeypatch, tasks):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TIMESLIVER_DEBUG", raising=False)
    (tmp_path / "small.toml").write_text(SUITE)

    def run(text):
        result = CliRunner().invoke(app, ["bench", *text.split()])
        result.err = " ".join(result.stderr.replace("│", " ").split())
        return result

    return run


def test_run_and_run_again(run, tmp_path):
    result = run("run small.toml --backend sequential -v")
    assert result.exit_code == MISTAKE  # a job failed
    assert result.stdout.strip() == (
        "small, quick: 3 done, 1 failed, 0 do not apply; 0 not run now"
    )
    lines = result.stderr.splitlines()
    assert lines[0].startswith("[1/4] done   train, LowVar, CNN, seed 0, split 0 (0.0 s)")
    assert lines[3].endswith("ValueError: it diverged")
    assert lines[4] == "See why with: timesliver bench status small.toml --store bench-results"
    assert len(Store(tmp_path / "bench-results").records("small")) == 4

    again = run("run small.toml --backend sequential --json")
    assert again.exit_code == 0
    assert json.loads(again.stdout) == {
        "suite": "small", "preset": "quick", "done": 0, "failed": 0, "na": 0, "skipped": 4,
    }  # fmt: skip
    retried = run("run small.toml --backend sequential --retry --json")
    assert json.loads(retried.stdout)["failed"] == 1


def test_only_and_limit(run, tmp_path):
    store = Store(tmp_path / "r")
    assert run("run small.toml --backend sequential --store r --only lowvar -q").exit_code == 0
    assert {record.job["dataset"] for record in store.records("small").values()} == {"LowVar"}
    run("run small.toml --backend sequential --store r --only freqsum --only cnn -q")
    assert len(store.records("small")) == 3
    run("run small.toml --backend sequential --store r --preset paper --limit 2 -q")
    assert len(store.records("small")) == 5


def test_quiet(run):
    result = run("run small.toml --backend sequential --only CNN -q -v")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_interruption_keeps_what_is_done(run, tasks, tmp_path):
    def interrupt(job, cache):
        if job.dataset == "FreqSum":
            raise KeyboardInterrupt
        return {}

    tasks.perform = interrupt
    result = run("run small.toml --backend sequential")
    assert result.exit_code == INTERRUPTED
    assert "the same command goes on from there" in result.err
    assert len(Store(tmp_path / "bench-results").records("small")) == 2


def test_status(run, tmp_path):
    assert "not known, 4 jobs" in run("status small.toml").stdout
    run("run small.toml --backend sequential -q")
    store = Store(tmp_path / "bench-results")
    for record in list(store.records("small").values()):
        if record.status == "done":
            job = Job.from_dict(record.job)
            store.append("small", Record.of(job, "done", record.result, seconds=3600.0))
    result = run("status small.toml")
    quick, paper = (line.split() for line in result.stdout.splitlines()[1:3])
    assert quick == ["small", "quick", "4", "3", "1", "0", "0"]
    assert paper == ["small", "paper", "15", "3", "1", "0", "11", "about", "11.0", "h"]
    assert "train, FreqSum, FCN, seed 0, split 0  ValueError: it diverged" in result.stdout
    found = json.loads(run("status small.toml --preset paper --json").stdout)
    assert found["suites"][0]["seconds_left"] == pytest.approx(11 * 3600)
    assert found["failures"] == {
        "small": {"train, FreqSum, FCN, seed 0, split 0": "ValueError: it diverged"}
    }


def test_status_of_all_suites(run):
    from timesliver.bench.suites import names

    found = json.loads(run("status --preset quick --json").stdout)
    assert [row["suite"] for row in found["suites"]] == names()


def test_merge(run, tmp_path):
    run("run small.toml --backend sequential --store a --only LowVar -q")
    run("run small.toml --backend sequential --store b --only FreqSum -q")
    assert run("merge a b --store c").stdout.strip() == "4 records added to c"
    assert run("merge a b --store c --json").stdout == '{"added": 0, "store": "c"}\n'
    assert len(Store(tmp_path / "c").records("small")) == 4


def test_tables(run, tmp_path):
    run("run small.toml --backend sequential -q")
    shown = run("table small.toml").stdout
    assert "Accuracy" in shown
    assert "Parameters" in shown
    assert "0.75" in shown
    one = run("table small.toml --name size --format csv").stdout
    assert "1234" in one
    assert "0.75" not in one
    for form, name in (("latex", "t.tex"), ("html", "t.html"), ("markdown", "t.md")):
        done = run(f"table small.toml --format {form} --out {name}")
        assert done.stdout.strip() == f"2 tables are in {name}"
        assert (tmp_path / name).read_text().strip()
    missing = run("table small.toml --name accuracy --preset paper").stdout
    assert "LSTM" in missing
    assert "LSTM" not in run("table small.toml --name accuracy --preset all").stdout


def test_figure_of_a_suite_without_figures(run, tmp_path):
    run("run small.toml --backend sequential -q")
    assert run("figure small.toml --out drawn").exit_code == 0
    assert list((tmp_path / "drawn").iterdir()) == []


def test_export(run, tmp_path):
    run("run small.toml --backend sequential -q")
    done = run("export small.toml --out out")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert done.stdout.strip() == f"{len(files)} files are in out"
    assert files


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("run nothing", USAGE, "there is no suite 'nothing'"),
        ("status nothing", USAGE, "there is no suite 'nothing'"),
        ("run small.toml --preset huge", USAGE, "has no preset 'huge', only quick, paper"),
        ("status small.toml --preset huge", USAGE, "has no preset 'huge'"),
        ("table small.toml --preset huge", USAGE, "has no preset 'huge'"),
        ("run small.toml --only Ford", USAGE, "no job has 'Ford' in its label; labels look like"),
        ("run small.toml --backend mpi", USAGE, "--backend"),
        ("run small.toml --scheduler tcp://h:1", USAGE, "only --backend dask or ray"),
        ("run small.toml --jobs 0", USAGE, "--jobs"),
        ("run small.toml --limit 0", USAGE, "--limit"),
        ("run", USAGE, "Missing argument"),
        ("merge nowhere", USAGE, "does not exist"),
        ("merge .", MISTAKE, "is no store with records"),
        ("table small.toml", MISTAKE, "make some with: timesliver bench run small"),
        ("table small.toml --name huge", USAGE, "has no table 'huge', only accuracy, size"),
        ("table small.toml --out t.xlsx", USAGE, "must end in .md"),
        ("figure small.toml --name huge", USAGE, "has no figure 'huge', only none"),
        ("export small.toml", USAGE, "Missing option"),
    ],
)
def test_mistakes(run, tmp_path, text, code, message):
    result = run(text)
    assert result.exit_code == code
    assert message in result.err
    assert "Traceback" not in result.err
    assert result.stdout == ""
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_help_is_quick():
    script = (
        "import sys\nfrom timesliver.cli import app\n"
        "try:\n    app(['bench', 'run', '--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'sklearn', 'joblib', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200"},
    )
    assert "--scheduler" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
