"""What people and machines get wrong: one line, the right exit code, nothing half-written."""

import json
import os
import subprocess
import sys

import pytest

from timesliver.cli.app import app, command

MISTAKE, USAGE, INTERRUPTED = 1, 2, 130


def check(result, code, message):
    assert result.code == code
    assert message in " ".join(result.err.replace("│", " ").split())
    assert "Traceback" not in result.err
    assert result.out == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t0,t1,label\n1,2,a\n3,4,5,b\n", "bad.csv:3: 4 cells, but line 1 has 3"),
        ("t0,t1\n1,2\n3,4\n", "has no labels, and a classifier needs them"),
        ("t0,t1,label\n1,2,a\n3,4,a\n", "at least two classes"),
        ("t0,t1,label\n1,x,a\n", "bad.csv:2: value 2 is 'x'"),
        ("", "bad.csv is empty"),
    ],
)
def test_training_data(run, tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    check(run("fit", tmp_path / "bad.csv", "-o", tmp_path / "m.safetensors"), MISTAKE, message)
    assert [file.name for file in tmp_path.iterdir()] == ["bad.csv"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("fit {train} -o {folder}/no/m.safetensors", USAGE, "does not exist; make it first"),
        ("fit {train} -o {folder}/m.pkl", USAGE, "must end in .safetensors"),
        ("fit {train} -o {folder}", USAGE, "must end in .safetensors"),
        ("fit {train} --segments 4,x", USAGE, "write it like 4,7"),
        ("fit {train} --bins 1", USAGE, "--bins"),
        ("fit {train} --segments 4,1.5", USAGE, "write it like 4,7 (time points) or 4,0.25"),
        ("fit {train} --segments 4,-0.5", USAGE, "write it like 4,7"),
        ("fit {train} --segments nan", USAGE, "write it like 4,7"),
        ("fit {train} --segments 0", MISTAKE, "must be a whole number, at least 1; got 0"),
        ("fit {train} --symbols sux", MISTAKE, "no symbolizer 'sux'; choose one of 'sax', 'sfa'"),
        ("fit {train} --symbols sax,", MISTAKE, "no symbolizer ''; choose one of 'sax'"),
        ("fit {train} --symbols sux --bins 5", MISTAKE, "no symbolizer 'sux'"),
        ("fit {train} --encoder segmnts", MISTAKE, "no encoder 'segmnts'; choose one of 'segm"),
        ("fit {train} --preset Low", MISTAKE, "preset='Low' is unknown; choose one of 'FreqSum'"),
        ("fit {train} --set depth", MISTAKE, "--set needs NAME=VALUE, like --set depth=1; got"),
        ("fit {train} --set =3", MISTAKE, "--set needs NAME=VALUE"),
        ("fit {train} --set symbols__n_bins=x", MISTAKE, "n_bins must be a whole number"),
        (
            "fit {train} --set dept=1",
            MISTAKE,
            "'dept' is not a parameter of the encoder 'segments'",
        ),
        ("fit {train} --set dept=1", MISTAKE, "augment, batch_size, channels, depth, head_rate"),
        ("fit {train} --set callbacks=x", MISTAKE, "'callbacks' is not a parameter"),
        ("fit {train} --set symbols__bins=3", MISTAKE, "'symbols__bins' is not a parameter"),
        ("fit {train} --set depth=deep", MISTAKE, "depth must be a whole number"),
        ("fit {train} --set depth=1 --set depth=2", MISTAKE, "--set says twice what depth is"),
        ("fit {train} --latent 4 --set latent_dim=3", MISTAKE, "--latent and --set both say what"),
        ("fit {train} --bins 4 --set symbols=sax", MISTAKE, "--bins and --set both say what"),
        ("fit {train} --set symbols__n_bins=1", MISTAKE, "n_bins must be a whole number"),
        ("fit {train} --estimators 0", USAGE, "--estimators"),
        ("fit {train} --lr 0", MISTAKE, "learning_rate must be a number, above 0"),
        ("fit {train} --label kind", MISTAKE, "label='kind', but"),
        ("fit {train} --test {folder}/none.csv", MISTAKE, "there is no file"),
        ("fit {train} --test {unlabelled}", MISTAKE, "has no labels"),
        ("fit {train} --test {two}", MISTAKE, "2 channels, the training series 1"),
        ("fit Wave", MISTAKE, "TIMESLIVER_DATA"),
        ("fit", USAGE, "Missing argument"),
        ("predict {folder}/none.safetensors {test}", MISTAKE, "make one with: timesliver fit"),
        ("predict {train} {test}", MISTAKE, "train.csv is not a whole safetensors file"),
        ("predict {model} {two}", MISTAKE, "2 channels, but the model was fitted on 1"),
        ("predict {model} {test} -o p.xlsx", USAGE, "must end in .csv"),
        ("explain {model} {test} -o s.pdf", USAGE, "must end in .npz, .csv or .html"),
        ("explain {model} {test} --target huge", MISTAKE, "classes are bump, flat"),
        ("explain {model} {test} --method lime", USAGE, "--method"),
        ("explain {model} {test} --cases 3-1", USAGE, "ends before it begins"),
        ("explain {model} {test} --cases a", USAGE, "write it like 0,3,10-20"),
        ("explain {model} {test} --cases 7,8", MISTAKE, "has 8: 0 to 7"),
        ("report {model} {test} --cases 0", USAGE, "--cases"),
        ("report {model} {test} -o r.pdf", USAGE, "must end in .html"),
        ("data {folder}/none.csv", MISTAKE, "there is no file"),
        ("data {test} --split valid", USAGE, "--split"),
    ],
)
def test_arguments(run, files, model, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.ts").write_text("@classLabel true bump flat\n@data\n1,2,3:4,5,6:bump\n")
    names = {name: files / f"{name}.csv" for name in ("train", "test", "unlabelled")}
    names |= {"model": model, "folder": tmp_path, "two": tmp_path / "two.ts"}
    check(run(*arguments.format(**names).split()), code, message)
    assert [file.name for file in tmp_path.iterdir()] == ["two.ts"]


def test_a_failed_write_leaves_the_old_file(run, files, model, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path / "p.csv"))

    (tmp_path / "p.csv").write_text("old")
    monkeypatch.setattr("csv.writer", full)
    result = run("predict", model, files / "test.csv", "-o", tmp_path / "p.csv")
    check(result, MISTAKE, "No space left on device")
    assert [file.name for file in tmp_path.iterdir()] == ["p.csv"]
    assert (tmp_path / "p.csv").read_text() == "old"


@pytest.fixture
def failing(monkeypatch):
    """Add a command that raises what it is told."""
    monkeypatch.setattr(app, "registered_commands", list(app.registered_commands))

    def add(problem):
        @command("timesliver fail")
        def fail(quiet: bool = False, debug: bool = False) -> None:
            raise problem

    return add


def test_a_bug_is_called_a_bug(run, failing):
    failing(ZeroDivisionError("by\nzero"))
    result = run("fail")
    check(result, MISTAKE, "this is a bug in timesliver (ZeroDivisionError: by zero)")
    assert "--debug" in result.err


def test_out_of_memory(run, failing):
    failing(MemoryError())
    check(run("fail"), MISTAKE, "not enough memory")


def test_interruption(run, failing):
    failing(KeyboardInterrupt())
    check(run("fail"), INTERRUPTED, "interrupted")


def test_text_that_looks_like_markup_is_shown_as_it_is(run, failing):
    from timesliver.errors import InvalidInputError

    failing(InvalidInputError("the label [red]x[/blue] is odd"))
    check(run("fail"), MISTAKE, "the label [red]x[/blue] is odd")


def shell(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "timesliver", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


class TestInAShell:
    def test_json_alone_on_stdout_and_progress_beside_it(self, files, tmp_path):
        path = tmp_path / "m.safetensors"
        done = shell("fit", files / "train.csv", "-o", path, "--epochs", 2, "--json")
        assert done.returncode == 0
        assert json.loads(done.stdout)["epochs"] == 2
        assert "Training" in done.stderr

    def test_a_mistake(self, tmp_path):
        done = shell("fit", tmp_path / "none.csv", "--json")
        assert (done.returncode, done.stdout) == (MISTAKE, "")
        assert done.stderr.startswith("error: there is no file")
        assert done.stderr.count("\n") == 1

    def test_debug_shows_where(self, tmp_path):
        done = shell("data", tmp_path / "none.csv", TIMESLIVER_DEBUG="1")
        assert done.returncode == MISTAKE
        assert "Traceback" in done.stderr

    def test_version_and_help_load_nothing_heavy(self):
        script = (
            "import sys\nfrom timesliver.cli import app\n"
            "try:\n    app(['--version'])\nexcept SystemExit: pass\n"
            "print(sorted({'torch', 'sklearn', 'scipy'} & set(sys.modules)))"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[0].startswith("timesliver 0.")
        assert done.stdout.splitlines()[1] == "[]"
