import os

import numpy as np
import pytest

from timesliver.datasets import load, names
from timesliver.errors import InvalidInputError, InvalidParameterError

TS = "@classLabel true a b\n@data\n{}:a\n{}:b\n"


@pytest.fixture
def archive(tmp_path, monkeypatch):
    X = np.ones((2, 1, 3), dtype=np.float32)
    for folder in ("uea", "ucr/Wave", "Plain"):
        (tmp_path / folder).mkdir(parents=True)
    np.savez(
        tmp_path / "uea/Motions.npz", X_train=X, y_train=["a", "b"], X_test=2 * X, y_test=["b", "a"]
    )
    (tmp_path / "ucr/Wave/Wave_TRAIN.ts").write_text(TS.format(1, 2))
    (tmp_path / "ucr/Wave/Wave_TEST.ts").write_text(TS.format(3, 4))
    (tmp_path / "Plain/Plain_TRAIN.txt").write_text("1 5 6\n2 7 8\n")
    monkeypatch.setenv("TIMESLIVER_DATA", str(tmp_path))
    return tmp_path


def test_names(archive):
    assert names() == ["Motions", "Plain", "Wave"]


def test_names_without_a_folder(monkeypatch):
    monkeypatch.delenv("TIMESLIVER_DATA", raising=False)
    assert names() == []


def test_by_name(archive):
    assert load("Motions").X[0, 0, 0] == 1
    assert load("motions", "test").X[0, 0, 0] == 2
    assert load("Wave").X.ravel().tolist() == [1, 2]
    assert load("Wave", "test").X.ravel().tolist() == [3, 4]
    assert load("Plain").y.tolist() == ["1", "2"]
    assert load("wave").name == "Wave"


def test_by_path(archive):
    assert load(archive / "ucr/Wave/Wave_TEST.ts").X.ravel().tolist() == [3, 4]
    assert load(archive / "ucr/Wave", "test").X.ravel().tolist() == [3, 4]
    assert load(str(archive / "uea/Motions.npz"), "test").X[0, 0, 0] == 2


def test_unknown(archive, monkeypatch):
    with pytest.raises(InvalidInputError, match=r"no set 'Motoins'.*did you mean Motions\?"):
        load("Motoins")
    with pytest.raises(InvalidInputError, match=r"no set 'qqq'.*3 sets are there"):
        load("qqq")
    with pytest.raises(InvalidInputError, match="there is no file"):
        load("Motions.ts")
    with pytest.raises(InvalidInputError, match="there is no file"):
        load("elsewhere/Motions")
    with pytest.raises(InvalidInputError, match="Plain has no test part"):
        load("Plain", "test")
    with pytest.raises(InvalidInputError, match=r"holds no uea_TRAIN\.ts"):
        load(archive / "uea")
    with pytest.raises(InvalidParameterError, match="split='valid' is unknown"):
        load("Motions", "valid")
    monkeypatch.delenv("TIMESLIVER_DATA")
    with pytest.raises(InvalidInputError, match="TIMESLIVER_DATA"):
        load("Motions")


def test_a_folder_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("TIMESLIVER_DATA", "/no/such/folder")
    with pytest.raises(InvalidInputError, match="'/no/such/folder', which is not a folder"):
        names()


@pytest.mark.data
@pytest.mark.skipif("TIMESLIVER_DATA" not in os.environ, reason="TIMESLIVER_DATA is not set")
def test_the_real_archives():
    assert load("BasicMotions").X.shape == (40, 6, 100)
    assert load("ECG200", "test").y.shape == (100,)
    assert load("MITBIH_PVC", "test").salient is not None
