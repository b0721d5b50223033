import json
from pathlib import Path

import pytest

from timesliver.bench import suites
from timesliver.bench.store import Store
from timesliver.bench.suites import catalogue, load_suite, names
from timesliver.encoders.presets import PRESETS
from timesliver.errors import InvalidInputError, InvalidParameterError

SUITE = """
title = "Small"
[presets.quick]
seeds = [0, 1]
training_cases = { Mine = 100 }
[presets.paper]
seeds = [0, 1, 2]
splits = [0, 1]
[[jobs]]
task = "localise"
datasets = ["LowVar"]
models = ["TimeSliver", "Mine"]
explainers = ["timesliver", "lime/fair"]
quick.options = { cases = 10 }
[[jobs]]
presets = ["paper"]
task = "unmask"
datasets = ["LowVar"]
models = ["Mine"]
explainers = ["random"]
options = { percent = [5, 20], backbone = ["Mine"] }
[catalogue.models.Mine]
like = "TimeSliver"
options = { n_bins = 7 }
[catalogue.models.Mine.sets]
LowVar = { latent_dim = 9 }
FreqSum = { preset = "FreqSum", latent_dim = 9 }
EEG = { preset = "ECG" }
"""


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(SUITE)
    return load_suite(path)


def test_every_built_in_suite_can_be_expanded():
    assert {"localisation", "faithfulness", "archive", "ablations"} < set(names())
    assert {"heartbeats", "panels", "axioms"} < set(names())
    for name in names():
        suite = load_suite(name)
        assert set(suite.presets) == {"quick", "paper"}
        for preset in suite.presets:
            jobs = suite.jobs(preset)
            assert len({job.hash for job in jobs}) == len(jobs) > 0
        assert len(suite.jobs("quick")) <= len(suite.jobs("paper"))
        tasks = {job.task for job in jobs} | {"train"}
        for shown in [*suite.tables, *suite.figures]:
            assert shown["task"] in tasks


# Records of the repository that belong to a job of today, by suite. They are found by the hash of
# all settings of the job: whatever changes a spelling or a setting loses them.
RECORDED = {
    "ablations": 110,
    "archive": 533,
    "axioms": 24,
    "faithfulness": 324,
    "heartbeats": 85,
    "localisation": 468,
    "panels": 30,
}


@pytest.mark.parametrize("name", RECORDED)
def test_the_records_belong_to_jobs(name):
    suite = load_suite(name)
    jobs = [job for preset in suite.presets for job in suite.jobs(preset)]
    hashes = {job.hash for job in (*jobs, *(job.training for job in jobs)) if job is not None}
    store = Store(Path(__file__).parents[2] / "benchmarks" / "results")
    assert len(hashes & set(store.records(name))) == RECORDED[name]


def test_the_products_of_a_group_are_its_jobs(suite):
    quick = suite.jobs("quick")
    assert len(quick) == 2 * 2 * 2
    assert quick[0].label == "localise, LowVar, timesliver, TimeSliver, seed 0, split 0, cases 10"
    assert [job.setting for job in quick[:4]] == ["", "", "fair", "fair"]
    paper = suite.jobs("paper")
    assert len(paper) == 2 * 2 * 3 * 2 + 3 * 2 * 2
    assert dict(paper[0].options) == {}
    assert dict(paper[-1].options) == {"backbone": "Mine", "percent": 20}


def test_a_job_carries_all_settings(suite):
    job = suite.jobs("paper")[-1]
    config = json.loads(job.config)
    assert config["data"] == {"load": "lowvar"}
    assert config["model"]["class"] == "TimeSliverClassifier"
    options = config["model"]["options"]
    assert (options["n_bins"], options["latent_dim"], options["segment_sizes"]) == (7, 9, [4])
    assert config["backbone"] == config["model"]
    few = json.loads(suite.jobs("quick")[-1].config)["model"]
    assert few == config["model"] | {"cases": 100}
    assert config["explainer"] == {"name": "random"}


def test_a_preset_stands_for_its_settings(suite):
    options = suite.catalogue.model("Mine", "FreqSum")["options"]
    preset = PRESETS["FreqSum"]
    assert options == {
        "n_bins": preset["symbols"].n_bins,
        "segment_sizes": preset["sizes"],
        **{name: preset[name] for name in preset if name not in ("symbols", "sizes")},
        "latent_dim": 9,
    }
    with pytest.raises(InvalidInputError, match="no preset 'ECG'; known are FreqSum"):
        suite.catalogue.model("Mine", "EEG")


def test_a_changed_setting_is_another_job(suite, tmp_path):
    path = tmp_path / "other.toml"
    path.write_text(SUITE.replace("n_bins = 7", "n_bins = 8"))
    before = {job.hash for job in suite.jobs("quick")}
    after = {job.hash for job in load_suite(path).jobs("quick")}
    assert len(before & after) == len(before) // 2


def test_names_are_printed_as_the_catalogue_says():
    assert catalogue().label("integrated_gradients") == "Integrated Gradients"
    assert catalogue().label("CNN") == "CNN"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("LowVar", "HighVar"), "no data set 'HighVar' in the catalogue"),
        (('"timesliver"', '"tea_leaves"'), "no explainer 'tea_leaves'"),
        (('like = "TimeSliver"', 'like = "Nothing"'), "no model 'Nothing'"),
        (('title = "Small"', ""), "has no 'title'"),
        (("[presets.quick]", "[presets.quick"), "is no TOML file"),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path, change, message):
    path = tmp_path / "wrong.toml"
    path.write_text(SUITE.replace(*change))
    with pytest.raises(InvalidInputError, match=message):
        load_suite(path).jobs("quick")


def test_unknown_suites_presets_and_tasks(suite, tmp_path):
    with pytest.raises(InvalidInputError, match="there is no suite 'nothing'; choose one of"):
        load_suite("nothing")
    with pytest.raises(InvalidParameterError, match="preset='slow' is unknown"):
        suite.jobs("slow")
    path = tmp_path / "wrong.toml"
    path.write_text(SUITE.replace('"localise"', '"guess"'))
    with pytest.raises(InvalidParameterError, match="task='guess' is unknown"):
        load_suite(path).jobs("quick")


def test_the_catalogue_is_not_changed_by_a_suite(suite):
    assert "Mine" in suite.catalogue.models
    assert "Mine" not in suites.catalogue().models
