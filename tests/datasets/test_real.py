"""The real sets, where TIMESLIVER_DATA points to them."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from timesliver.datasets import audio, eeg, info, load
from timesliver.datasets.registry import registered

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("TIMESLIVER_DATA" not in os.environ, reason="TIMESLIVER_DATA is not set"),
]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TIMESLIVER_CACHE", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def root():
    return Path(os.environ["TIMESLIVER_DATA"])


def there(path):
    return path if path.exists() else pytest.skip(f"there is no {path}")


@pytest.mark.parametrize(
    "name", [one.name for one in registered().values() if one.source in ("uea", "ucr", "localised")]
)
def test_the_registry_tells_the_truth(root, name):
    known = info(name)
    if not name.endswith("_paper"):
        there(root / known.source / f"{name}.npz")
    parts = {split: load(name, split) for split in known.splits}
    assert {split: len(part) for split, part in parts.items()} == known.sizes
    assert {part.X.shape[1] for part in parts.values()} == {known.n_channels}
    assert max(part.X.shape[2] for part in parts.values()) == known.n_timepoints
    assert len(np.unique(np.concatenate([part.y for part in parts.values()]))) == known.n_classes


def test_forda_of_the_paper(root):
    there(root / "ucr/FordA.npz")
    parts = [load("FordA_paper", split).X for split in ("train", "validation", "test")]
    series = {case.tobytes() for part in parts for case in part}
    assert len(series) == 853 + 106 + 119


def test_premature_beats(root):
    with np.load(there(root / "localised/MITBIH_PVC.npz")) as arrays:
        assert not set(arrays["record_train"]) & set(arrays["record_test"])  # patients
    for split in ("train", "test"):
        data = load("MITBIH_PVC", split)
        assert data.salient.shape == data.X.shape
        marked = data.salient.any(axis=(1, 2))
        np.testing.assert_array_equal(marked, data.y == "PVC")
        assert data.salient[marked].sum(axis=(1, 2)).max() <= 110  # 300 ms at 360 Hz


class TestNight:
    NAME = "SleepEDF_SC4001E0"

    def test_parts(self, root):
        with np.load(there(root / "eeg" / f"{self.NAME}.npz")) as arrays:
            position = {
                case.tobytes(): i
                for case, i in zip(arrays["X"], arrays["epoch_index"], strict=True)
            }
        places = {}
        for split in info(self.NAME).splits:
            data = load(self.NAME, split)
            assert set(data.y) == {"W", "N1", "N2", "N3", "REM"}
            places[split] = np.array([position[case.tobytes()] for case in data.X])
        assert len(places["train"]) > 2 * len(places["test"])
        for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
            assert np.abs(places[one] - places[other][:, None]).min() > 1

    def test_epochs_are_chosen_as_in_the_prepared_file(self, root):
        with np.load(there(root / "eeg" / f"{self.NAME}.npz")) as arrays:
            stages = np.array(["W", "N1", "N2", "N3", "REM"])[arrays["all_stages"]]
            np.testing.assert_array_equal(eeg.epochs_of_interest(stages), arrays["epoch_index"])


class TestAnimals:
    @pytest.fixture
    def meta(self, root):
        pytest.importorskip("librosa")
        with there(root / audio.FOLDER / "meta.csv").open(newline="") as file:
            return list(csv.DictReader(file))

    def test_coefficients(self, root, meta):
        found = audio.mfcc(root / audio.FOLDER / meta[0]["filename"])
        assert found.shape == (40, 501)
        assert np.isfinite(found).all()

    def test_parts(self, root, meta, monkeypatch):
        """With the number of the clip in place of its sound."""
        number = {root / audio.FOLDER / row["filename"]: i for i, row in enumerate(meta)}
        monkeypatch.setattr(audio, "mfcc", lambda path: np.full((40, 501), number[path]))
        sources = np.array([row["src_file"] for row in meta])
        categories = np.array([row["category"] for row in meta])
        for name in ("ESC50_animals", "ESC50_animals_paper"):
            parts = [load(name, split) for split in info(name).splits]
            clips = [part.X[:, 0, 0].astype(int) for part in parts]
            assert [len(part) for part in parts] == list(info(name).sizes.values())
            assert len(np.unique(np.concatenate(clips))) == 400
            for part, chosen in zip(parts, clips, strict=True):
                np.testing.assert_array_equal(part.y, categories[chosen])
            if name == "ESC50_animals":
                where = [set(sources[chosen]) for chosen in clips]
                assert len(set.union(*where)) == sum(map(len, where))
