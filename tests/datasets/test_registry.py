import numpy as np
import pytest

from timesliver.datasets import info, load, names
from timesliver.datasets.paper import PAPER_SETS
from timesliver.datasets.registry import SOURCES, registered
from timesliver.datasets.splits import at_random, balanced, by_blocks
from timesliver.errors import InvalidInputError, InvalidParameterError


@pytest.fixture(autouse=True)
def no_folders(tmp_path, monkeypatch):
    monkeypatch.delenv("TIMESLIVER_DATA", raising=False)
    monkeypatch.setenv("TIMESLIVER_CACHE", str(tmp_path / "cache"))


class TestInfo:
    def test_the_papers_categories(self):
        categories = [one.category for one in registered().values() if one.category]
        assert len(categories) == 26
        counts = {one: categories.count(one) for one in set(categories)}
        assert counts == {"Bio.": 8, "Motion": 7, "Audio": 3, "Coord.": 3, "Misc.": 5}
        assert all(one.source == "uea" for one in registered().values() if one.category)

    def test_the_papers_sizes(self):
        sizes = {
            "FordA_paper": (853, 106, 119),
            "ESC50_animals_paper": (280, 60, 60),
            "SleepEDF": (5005, 1295, 3515),
        }
        for name, expected in sizes.items():
            assert info(name).sizes == dict(
                zip(("train", "validation", "test"), expected, strict=True)
            )
        assert info("FordA").sizes == {"train": 3601, "test": 1320}

    def test_every_set_says_where_it_comes_from(self):
        for known in registered().values():
            assert known.source in SOURCES
            assert known.origin
            assert known.licence
            assert known.citation
            assert known.splits[0] == "train"
            assert known.splits[-1] == "test"

    def test_spelling(self):
        assert info("pems_sf").name == "PEMS-SF"
        assert info("LowVar").name == "lowvar"

    def test_synthetic(self):
        assert set(PAPER_SETS) <= {one.name for one in registered().values()}
        for name, sizes in PAPER_SETS.items():
            assert info(name).sizes == sizes
            data = load(name, "test")
            assert len(data) == sizes["test"]
            assert data.X.shape[1:] == (info(name).n_channels, info(name).n_timepoints)
            assert len(np.unique(data.y)) == info(name).n_classes

    def test_any_name_of_the_archives(self):
        pytest.importorskip("aeon")
        assert (info("adiac").name, info("adiac").source) == ("Adiac", "ucr")
        assert info("InsectWingbeat").source == "uea"
        assert info("Adiac").splits == ("train", "test")

    def test_unknown(self):
        with pytest.raises(InvalidInputError, match=r"no set 'Baiscmotions'; did you mean BasicMo"):
            info("Baiscmotions")
        with pytest.raises(InvalidInputError, match="TIMESLIVER_DATA"):
            info("qqqqqq")

    def test_without_aeon(self, monkeypatch):
        monkeypatch.setattr("timesliver.datasets.registry._archives", dict)
        with pytest.raises(InvalidInputError, match=r"no set 'Adiac'.*timesliver\[archive\]"):
            info("Adiac")

    def test_names(self):
        assert {"BasicMotions", "FordA_paper", "lowvar", "SleepEDF"} < set(names())
        assert names() == sorted(names(), key=str.lower)


class TestLoad:
    def test_seeds(self):
        first, again, other = (load("lowvar", "test", seed=seed).X for seed in (0, 0, 1))
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)
        with pytest.raises(InvalidParameterError, match="seed"):
            load("lowvar", seed=-1)

    def test_splits(self):
        with pytest.raises(InvalidParameterError, match="split='valid' is unknown"):
            load("lowvar", "valid")
        with pytest.raises(
            InvalidParameterError, match=r"BasicMotions has the parts train, test: split='valid"
        ):
            load("BasicMotions", "validation")

    def test_what_cannot_be_downloaded(self, tmp_path):
        with pytest.raises(InvalidInputError, match=r"put the file at .*localised/MITBIH_PVC\.npz"):
            load("MITBIH_PVC")


class TestSplits:
    def test_at_random(self):
        y = np.array(["a"] * 60 + ["b"] * 40)
        parts = at_random(y, {"train": 50, "validation": 20, "test": 30}, seed=3)
        together = np.concatenate(list(parts.values()))
        assert sorted(together) == list(range(100))  # disjoint, and nothing lost
        assert [(y[part] == "a").sum() for part in parts.values()] == [30, 12, 18]
        again = at_random(y, {"train": 50, "validation": 20, "test": 30}, seed=3)
        other = at_random(y, {"train": 50, "validation": 20, "test": 30}, seed=4)
        np.testing.assert_array_equal(parts["test"], again["test"])
        assert not np.array_equal(parts["test"], other["test"])

    def test_too_few_cases(self):
        with pytest.raises(InvalidInputError, match="parts of 9, 3 cases from 10"):
            at_random(np.arange(10) % 2, {"train": 9, "test": 3}, seed=0)

    @pytest.mark.parametrize("seed", range(5))
    def test_by_blocks(self, seed):
        position = np.r_[100:400, 500:700]  # a gap, as where epochs were not scored
        y = np.random.default_rng(seed).integers(3, size=500)
        parts = by_blocks(y, position, length=20, seed=seed)
        assert all(len(np.unique(y[part])) == 3 for part in parts.values())
        for one, other in (("train", "validation"), ("train", "test"), ("validation", "test")):
            distance = np.abs(position[parts[one]] - position[parts[other]][:, None])
            assert distance.min() > 1
            blocks = [set((position[parts[part]] // 20).tolist()) for part in (one, other)]
            assert not blocks[0] & blocks[1]
        assert sum(map(len, parts.values())) >= 500 - 25  # at most one case of each block is lost

    def test_balanced(self):
        y = np.array(["a"] * 5 + ["b"] * 9 + ["c"] * 7)
        for most, expected in ((None, 5), (3, 3), (100, 5)):
            cases = balanced(y, most, seed=0)
            assert np.unique(y[cases], return_counts=True)[1].tolist() == [expected] * 3
            assert len(set(cases)) == len(cases)
