import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from timesliver import Segments, TimeSliverClassifier, backbones, metrics
from timesliver.bench.cache import Cache
from timesliver.bench.jobs import TASKS
from timesliver.bench.suites import catalogue, load_suite
from timesliver.bench.tasks import data, models, perform, prerequisites
from timesliver.bench.tasks.explaining import explained, explainer
from timesliver.bench.tasks.models import build, trained
from timesliver.bench.tasks.pooling import MaxSegments
from timesliver.bench.tasks.raw import RawSegments
from timesliver.errors import InvalidInputError, NotApplicableError
from timesliver.symbols import ABBA, SAX, SFA, Clock

SUITE = """
title = "Tiny"
[presets.quick]
[[jobs]]
task = "train"
datasets = ["Tiny"]
models = ["Sliver", "Net"]
[[jobs]]
task = "localise"
datasets = ["Tiny"]
models = ["Sliver"]
explainers = ["timesliver", "timesliver-abs", "additive", "additive-refined", "random", "zscore", "untrained"]
options = { cases = 12 }
[[jobs]]
task = "localise"
datasets = ["Tiny"]
models = ["Net"]
explainers = ["integrated_gradients/fair", "limesegment"]
options = { cases = 12 }
[[jobs]]
task = "unmask"
datasets = ["Tiny"]
models = ["Sliver"]
explainers = ["timesliver", "random"]
options = { percent = [30, 100], backbone = ["Net"] }
[[jobs]]
task = "negative"
datasets = ["Tiny"]
models = ["Sliver"]
explainers = ["timesliver", "random"]
options = { percent = [10] }
[[jobs]]
task = "axioms"
datasets = ["Tiny"]
models = ["Sliver"]
explainers = ["additive"]
options = { cases = 4 }
[[jobs]]
task = "panel"
datasets = ["Tiny"]
models = ["Sliver"]
explainers = ["timesliver"]
[[jobs]]
task = "cost"
datasets = ["Tiny"]
models = ["Sliver"]
options = { n_bins = [2, 20] }
[catalogue.datasets.Tiny]
load = "Tiny"
[catalogue.models.Sliver]
class = "TimeSliverClassifier"
options = { max_epochs = 15, positional_encoding = false, segment_sizes = [3], latent_dim = 8, learning_rate = 0.01 }
[catalogue.models.Net]
class = "CNN"
options = { max_epochs = 3, widths = [8, 8], head = [], batch_size = 16 }
"""  # noqa: E501


def make(n_cases, rng):
    X = rng.normal(size=(n_cases, 2, 40)).astype(np.float32)
    y = np.arange(n_cases) % 2
    salient = np.zeros(X.shape, dtype=bool)
    for case, label in enumerate(y):
        start = rng.integers(5, 25)
        X[case, label, start : start + 10] += 4
        salient[case, label, start : start + 10] = True
    return X, y.astype(str), salient


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    arrays = {}
    for part, size in (("train", 60), ("test", 24)):
        names = (f"X_{part}", f"y_{part}", f"salient_{part}")
        arrays |= dict(zip(names, make(size, rng), strict=True))
    (folder / "localised").mkdir()
    np.savez(folder / "localised" / "Tiny.npz", **arrays)
    (folder / "tiny.toml").write_text(SUITE)
    return folder


@pytest.fixture(scope="module")
def world(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIMESLIVER_DATA", str(folder))
        data._load.cache_clear()
        jobs = load_suite(folder / "tiny.toml").jobs("quick")
        cache = Cache(folder / "cache")
        yield jobs, cache
    data._load.cache_clear()


def find(jobs, *texts):
    (job,) = [job for job in jobs if all(text in job.label for text in texts)]
    return job


def test_training_is_kept_and_tested(world):
    jobs, cache = world
    job = find(jobs, "train,", "Sliver")
    result = perform(job, cache)
    assert result["accuracy"] == np.mean(np.array(result["predictions"]) == result["labels"]) > 0.9
    assert result["epochs"] == 15
    files = sorted(cache.folder.glob("*.safetensors"))
    again = perform(job, cache)
    assert again["predictions"] == result["predictions"]
    assert again["seconds_fit"] == result["seconds_fit"] > 0
    assert again["n_parameters"] == sum(
        p.numel() for p in trained(job, cache).network_.parameters()
    )
    assert sorted(cache.folder.glob("*.safetensors")) == files
    other = replace(job, seed=1)
    perform(other, cache)
    assert len(list(cache.folder.glob("*.safetensors"))) == len(files) + 1


def test_what_a_job_needs_first(world):
    jobs, _ = world
    job = find(jobs, "localise", "timesliver,")
    assert prerequisites(job) == [find(jobs, "train,", "Sliver")]
    assert prerequisites(find(jobs, "train,", "Net")) == []
    assert prerequisites(find(jobs, "unmask", "timesliver", "percent 30")) == prerequisites(job)


def test_localisation_is_that_of_the_metrics(world):
    jobs, cache = world
    job = find(jobs, "localise", "timesliver,")
    result = perform(job, cache)
    test = data.load_parts(job).test
    scores = trained(job, cache).explain(test.X[:12], method="timesliver")
    salient = test.salient[:12]
    assert result["n_cases"] == 12
    assert result["time_ap"] == pytest.approx(metrics.auprc(scores, salient).mean)
    total = metrics.auprc(scores, salient, part="magnitude", level="cell").mean
    assert result["cell_total_ap"] == pytest.approx(total)
    assert result["time_ap"] > perform(find(jobs, "localise", "random"), cache)["time_ap"]
    assert result["forward_passes"] == 1
    json.dumps(result)


def test_every_task_has_a_module():
    for task in TASKS:
        assert callable(import_module(f"timesliver.bench.tasks.{task}").perform)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("additive", {"background": None, "smoothing": 0}),
        ("additive-refined", {"centred": True, "background": "series", "smoothing": 3}),
    ],
)
def test_shares_are_those_of_the_records(world, name, options):
    """Plain, or measured against the middle moment and spread over the longest segment."""
    jobs, cache = world
    job = find(jobs, "localise", f"{name},")
    X = data.tested(job).X
    expected = trained(job, cache).explain(X, **options)
    np.testing.assert_array_equal(explained(job, cache).net, expected.net)


def test_an_activation_is_an_option_of_the_catalogue(world):
    jobs, cache = world
    job = find(jobs, "localise", "timesliver-abs")
    scores = explainer(job, cache).explain(data.tested(job).X)
    np.testing.assert_array_equal(scores.positive, scores.negative)
    assert 0 < perform(job, cache)["time_ap"] < 1


def test_controls_know_nothing_of_the_class(world):
    jobs, cache = world
    result = perform(find(jobs, "localise", "zscore"), cache)
    test = data.load_parts(jobs[0]).test
    expected = metrics.auprc(metrics.controls(test.X[:12])["zscore"], test.salient[:12])
    assert result["time_ap"] == pytest.approx(expected.mean, abs=1e-6)
    assert result["seconds_per_case"] is None
    assert 0 < perform(find(jobs, "localise", "untrained"), cache)["time_ap"] < 1


def test_methods_that_do_not_apply_say_so(world):
    jobs, cache = world
    with pytest.raises(NotApplicableError, match="channel"):
        perform(find(jobs, "localise", "limesegment"), cache)


def test_retraining_on_all_points_is_done_once(world):
    jobs, cache = world
    ours = [job for job in jobs if job.task == "unmask" and job.explainer == "timesliver"]
    result = {dict(job.options)["percent"]: perform(job, cache) for job in ours}
    assert {percent: set(one) for percent, one in result.items()} == {
        30: {"accuracy", "agreement"},
        100: {"accuracy"},
    }
    kept_files = len(list(cache.folder.glob("*.json")))
    random = find(jobs, "unmask", "random", "percent 100")
    assert perform(random, cache) == result[100]
    assert len(list(cache.folder.glob("*.json"))) == kept_files


def test_masking_what_speaks_against_a_class(world):
    jobs, cache = world
    job = find(jobs, "negative", "timesliver")
    result = perform(job, cache)
    X = data.load_parts(job).test.X
    model = trained(job, cache)
    expected = metrics.logit_change(model, X, model.explain(X, method="timesliver"), 10)
    assert result["delta"] == pytest.approx(expected.mean, abs=1e-5)
    assert not result["reversed"]
    assert perform(find(jobs, "negative", "random"), cache)["reversed"]


def test_axioms_panels_and_cost(world):
    jobs, cache = world
    result = perform(find(jobs, "axioms"), cache)
    assert result["completeness"] < 1e-4
    assert set(result) == {"completeness", "sensitivity", "dummy", "symmetry", "scale"}
    panel = perform(find(jobs, "panel"), cache)
    assert np.shape(panel["series"]) == np.shape(panel["salient"]) == (2, 40)
    assert np.max(panel["positive"]) == 1
    few, many = (perform(job, cache) for job in jobs if job.task == "cost")
    assert 0 < few["gflops"] < many["gflops"] < 3 * few["gflops"]


def test_mistakes_are_named(world):
    jobs, _ = world
    with pytest.raises(InvalidInputError, match="there is no model class 'Oracle'"):
        build({"class": "Oracle", "options": {}}, 0)
    job = find(jobs, "train,", "Net")
    with pytest.raises(InvalidInputError, match="ask for split 0"):
        data._load("BasicMotions", 1)
    config = json.loads(job.config) | {"data": {"load": "freqsum"}}
    assert data.load_parts(replace(job, config=json.dumps(config))).validation is not None


def test_rivals_get_series_that_they_can_take():
    class TinyRocket:
        pass

    short = np.arange(1, 9, dtype=float).reshape(1, 1, 8)
    short[0, 0, 3] = np.nan
    filled = [1, 2, 3, 3, 5, 6, 7, 8]
    assert models.suited(short, TinyRocket()).tolist() == [[[*filled, 0, 0]]]
    assert models.suited(short, object()).tolist() == [[filled]]
    assert models.suited(short, TimeSliverClassifier()) is short
    long = np.ones((1, 1, 10), dtype=np.float32)
    taken = models.suited(long, TinyRocket())
    assert taken.dtype == np.float64  # aeon's DrCIF fails on single precision
    assert taken.tolist() == long.tolist()


# --- the spelling of the records ------------------------------------------------------------------


def made(options, name="TimeSliverClassifier"):
    return build({"class": name, "options": options}, 7)


def test_options_in_one_row_are_those_of_the_encoder():
    model = made(
        {"n_bins": 8, "segment_sizes": [4, 9], "pooling": [2, 1], "class_weight": "balanced"}
    )
    assert (model.random_state, model.n_jobs, model.device) == (7, 1, "cpu")
    assert model.class_weight == "balanced"
    assert model.get_params()["encoder__symbols"].get_params() == SAX(8).get_params()
    assert (model.encoder.sizes, model.encoder.pooling) == ((4, 9), (2, 1))
    plain, usual = made({}).encoder, Segments()
    assert repr(plain.symbolizers()) == repr(usual.symbolizers())
    assert repr(plain.set_params(symbols=usual.symbols)) == repr(usual)
    with pytest.raises(TypeError, match="colour"):
        made({"colour": 1})


@pytest.mark.parametrize(
    ("symbolizer", "kind", "n_symbols"), [("sax", SAX, 16), ("sfa", SFA, 16), ("abba", ABBA, 16)]
)
def test_symbolizers_by_name(symbolizer, kind, n_symbols):
    symbols = made({"symbolizer": symbolizer, "n_bins": 16}).encoder.symbols
    assert isinstance(symbols, kind)
    assert symbols.n_symbols == n_symbols


def test_ablations_by_name():
    assert type(made({"symbolizer": "raw", "n_bins": 4}).encoder) is RawSegments
    assert type(made({"pooling": [2, 2]}, "MaxPooled").encoder) is MaxSegments


@pytest.mark.parametrize("name", ["FreqSum", "SeqComb-UV", "SeqComb-MV", "LowVar", "Audio", "EEG"])
def test_presets_come_back(name):
    model = build(catalogue().model("TimeSliver", name), 0)
    assert repr(model.encoder) == repr(Segments.preset(name))


def test_the_paper_has_a_preset_for_another_ford():
    model = build(catalogue().model("TimeSliver", "FordA-paper"), 0)
    assert repr(model.encoder) == repr(Segments.preset("FordA"))
    assert build(catalogue().model("TimeSliver", "FordA"), 0).encoder.sizes == (64,)


def test_settings_together():
    model = build(catalogue().model("TimeSliver-chosen", "ERing"), 0)
    assert model.n_estimators == 1
    assert [one.step for one in model.encoder] == ["auto"] * 5
    assert [one.sizes for one in model.encoder[1:3]] == [(1 / 16, 1 / 4), (1 / 8, 1 / 2)]
    assert [one.symbols.n_bins for one in model.encoder[:3]] == [5, 5, 3]
    assert [type(one) for one in model.encoder[3].symbols] == [SAX, Clock]
    ford = build(catalogue().model("TimeSliver-chosen", "FordA"), 0)
    assert ford.n_estimators == 3  # five networks were asked for, of two settings
    assert [one.augment for one in ford.encoder] == ["mirror"] * 2


def test_segments_scale_with_the_series():
    model = build(catalogue().model("TimeSliver-chosen", "ERing"), 0)
    for n_timepoints in (16, 30, 3000):
        for encoder in model.encoder:
            sizes = encoder.resolved(n_timepoints).sizes
            assert 1 <= min(sizes) <= max(sizes) <= n_timepoints


def test_settings_together_can_be_explained_and_kept(tmp_path):
    X, y, _ = make(40, np.random.default_rng(1))
    few = {"max_epochs": 2, "latent_dim": 4, "positional_encoding": False}
    candidates = [{**few, "segment_shares": [8]}, {**few, "segment_shares": [4], "clock": True}]
    model = made({"n_members": 3, "n_folds": 2, "candidates": candidates}, "Chosen").fit(X, y)
    assert len(model.network_.parts) == 4
    why = model.explain(X[:3])
    np.testing.assert_allclose(why.base + why.net.sum(axis=1), why.logit, atol=1e-4)
    model.save(tmp_path / "model.safetensors")
    loaded = TimeSliverClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.logits(X), model.logits(X))


def test_every_model_of_the_catalogue_can_be_made():
    known = catalogue()
    for name, entry in known.models.items():
        for dataset in ("LowVar", *entry.get("sets", {})):
            model = known.model(name, dataset)
            if not model["class"].startswith("aeon"):
                made = build(model, 0)
                assert isinstance(made, TimeSliverClassifier | backbones.BackboneClassifier)
