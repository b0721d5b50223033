import numpy as np
import pytest

from timesliver.datasets import info, load, names
from timesliver.errors import InvalidInputError, InvalidParameterError

TS = "@classLabel true a b\n@data\n{}:a\n{}:b\n"


@pytest.fixture
def archive(tmp_path_factory, tmp_path, monkeypatch):
    monkeypatch.setenv("TIMESLIVER_CACHE", str(tmp_path_factory.mktemp("cache")))
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
    beside = set(names())
    assert {"Motions", "Plain", "Wave"} < beside
    assert len(beside) == len(names())
    assert (info("motions").name, info("motions").source) == ("Motions", "local")
    assert info("Motions").splits == ("train", "test")
    np.savez(archive / "basicmotions.npz", X=np.ones((1, 1, 1)))
    assert set(names()) == beside - {"BasicMotions"} | {"basicmotions"}


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
    with pytest.raises(InvalidInputError, match=r"no set 'Motoins'.*did you mean Motions"):
        load("Motoins")
    with pytest.raises(InvalidInputError, match=r"no set 'qqq'; list the known ones"):
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
    with pytest.raises(InvalidParameterError, match="Motions has the parts train, test: split='va"):
        load("Motions", "validation")
    with pytest.raises(InvalidParameterError, match=r"Wave_TEST\.ts is a file: split='validation'"):
        load(archive / "ucr/Wave/Wave_TEST.ts", "validation")
    monkeypatch.delenv("TIMESLIVER_DATA")
    with pytest.raises(InvalidInputError, match="TIMESLIVER_DATA"):
        load("Motions")


def test_a_draw_from_a_set_at_hand(archive):
    """FordA_paper: train and validation from the archive's train part, test from its test part."""
    rng = np.random.default_rng(0)
    sizes = {"train": 1200, "test": 400}
    arrays = {
        f"y_{part}": np.array(["-1", "1"])[rng.permutation(size) % 2]
        for part, size in sizes.items()
    }
    arrays["X_train"] = np.arange(1200.0)[:, None, None]
    arrays["X_test"] = -1 - np.arange(400.0)[:, None, None]
    np.savez(archive / "ucr/FordA.npz", **arrays)
    parts = {split: load("FordA_paper", split) for split in ("train", "validation", "test")}
    assert [len(part) for part in parts.values()] == [853, 106, 119]
    assert len(np.unique(np.concatenate([part.X.ravel() for part in parts.values()]))) == 1078
    assert (parts["train"].X >= 0).all()
    assert (parts["validation"].X >= 0).all()
    assert (parts["test"].X < 0).all()
    assert abs((parts["train"].y == "1").mean() - 0.5) < 0.01
    assert parts["train"].name == "FordA_paper"
    again, other = (load("FordA_paper", "test", seed=seed).X for seed in (0, 1))
    np.testing.assert_array_equal(again, parts["test"].X)
    assert not np.array_equal(other, again)
    np.savez(archive / "ucr/FordA.npz", X_train=np.ones((9, 1, 2)), y_train=list("abcabcabc"))
    with pytest.raises(InvalidInputError, match="from 9; check that the set is whole"):
        load("FordA_paper")


def test_a_folder_that_does_not_exist(monkeypatch):
    monkeypatch.setenv("TIMESLIVER_DATA", "/no/such/folder")
    with pytest.raises(InvalidInputError, match="'/no/such/folder', which is not a folder"):
        names()
