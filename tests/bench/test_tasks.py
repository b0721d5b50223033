import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from timesliver import TimeSliverClassifier, metrics
from timesliver.bench.cache import Cache
from timesliver.bench.suites import load_suite
from timesliver.bench.tasks import data, models, perform, prerequisites
from timesliver.bench.tasks.choosing import Chosen, scaled
from timesliver.bench.tasks.models import build, trained
from timesliver.bench.tasks.pooling import MaxPooled
from timesliver.errors import InvalidInputError, NotApplicableError

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
explainers = ["timesliver", "additive", "random", "zscore", "untrained"]
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
    found = perform(job, cache)
    assert found["accuracy"] == np.mean(np.array(found["predictions"]) == found["labels"]) > 0.9
    assert found["epochs"] == 15
    files = sorted(cache.folder.glob("*.safetensors"))
    again = perform(job, cache)
    assert again["predictions"] == found["predictions"]
    assert again["seconds_fit"] == found["seconds_fit"] > 0
    assert again["n_parameters"] == sum(
        p.numel() for p in trained(job, cache).network_.parameters()
    )
    assert sorted(cache.folder.glob("*.safetensors")) == files
    other = replace(job, seed=1)
    perform(other, cache)
    assert len(list(cache.folder.glob("*.safetensors"))) == len(files) + 1


def test_what_a_job_needs_first(world):
    jobs, _ = world
    job = find(jobs, "localise", "timesliver")
    assert prerequisites(job) == [find(jobs, "train,", "Sliver")]
    assert prerequisites(find(jobs, "train,", "Net")) == []
    assert prerequisites(find(jobs, "unmask", "timesliver", "percent 30")) == prerequisites(job)


def test_localisation_is_that_of_the_metrics(world):
    jobs, cache = world
    job = find(jobs, "localise", "timesliver")
    found = perform(job, cache)
    test = data.load_parts(job).test
    scores = trained(job, cache).explain(test.X[:12])
    salient = test.salient[:12]
    assert found["n_cases"] == 12
    assert found["time_ap"] == pytest.approx(metrics.auprc(scores, salient).mean)
    total = metrics.auprc(scores, salient, part="magnitude", level="cell").mean
    assert found["cell_total_ap"] == pytest.approx(total)
    assert found["time_ap"] > perform(find(jobs, "localise", "random"), cache)["time_ap"]
    assert found["forward_passes"] == 1
    json.dumps(found)


def test_controls_know_nothing_of_the_class(world):
    jobs, cache = world
    found = perform(find(jobs, "localise", "zscore"), cache)
    test = data.load_parts(jobs[0]).test
    expected = metrics.auprc(metrics.controls(test.X[:12])["zscore"], test.salient[:12])
    assert found["time_ap"] == pytest.approx(expected.mean, abs=1e-6)
    assert found["seconds_per_case"] is None
    assert 0 < perform(find(jobs, "localise", "untrained"), cache)["time_ap"] < 1


def test_methods_that_do_not_apply_say_so(world):
    jobs, cache = world
    with pytest.raises(NotApplicableError, match="channel"):
        perform(find(jobs, "localise", "limesegment"), cache)


def test_retraining_on_all_points_is_done_once(world):
    jobs, cache = world
    ours = [job for job in jobs if job.task == "unmask" and job.explainer == "timesliver"]
    found = {dict(job.options)["percent"]: perform(job, cache) for job in ours}
    assert {percent: set(one) for percent, one in found.items()} == {
        30: {"accuracy", "agreement"},
        100: {"accuracy"},
    }
    kept_files = len(list(cache.folder.glob("*.json")))
    random = find(jobs, "unmask", "random", "percent 100")
    assert perform(random, cache) == found[100]
    assert len(list(cache.folder.glob("*.json"))) == kept_files


def test_masking_what_speaks_against_a_class(world):
    jobs, cache = world
    job = find(jobs, "negative", "timesliver")
    found = perform(job, cache)
    X = data.load_parts(job).test.X
    model = trained(job, cache)
    expected = metrics.logit_change(model, X, model.explain(X), 10)
    assert found["delta"] == pytest.approx(expected.mean, abs=1e-5)
    assert not found["reversed"]
    assert perform(find(jobs, "negative", "random"), cache)["reversed"]


def test_axioms_panels_and_cost(world):
    jobs, cache = world
    found = perform(find(jobs, "axioms"), cache)
    assert found["completeness"] < 1e-4
    assert set(found) == {"completeness", "sensitivity", "dummy", "symmetry", "scale"}
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
    assert models._plain(TinyRocket(), short).tolist() == [[[*filled, 0, 0]]]
    assert models._plain(object(), short).tolist() == [[filled]]
    assert models._plain(TimeSliverClassifier(), short) is short
    long = np.ones((1, 1, 10), dtype=np.float32)
    taken = models._plain(TinyRocket(), long)
    assert taken.dtype == np.float64  # aeon's DrCIF fails on single precision
    assert taken.tolist() == long.tolist()


# --- choosing -------------------------------------------------------------------------------------


SMALL = {"max_epochs": 6, "latent_dim": 8, "positional_encoding": False, "segment_sizes": (3,)}


def test_settings_are_chosen_on_training_cases():
    X, y, _ = make(80, np.random.default_rng(1))
    tried = [dict(SMALL, learning_rate=1e-6), dict(SMALL, learning_rate=0.02)]
    model = Chosen(tried, n_members=2, n_folds=2, random_state=3).fit(X, y)
    assert [settings["learning_rate"] for settings in model.chosen_] == [0.02]
    assert model.accuracies_[1] > model.accuracies_[0]
    members = [
        TimeSliverClassifier(**tried[1], random_state=seed).fit(X, y).logits(X) for seed in (6, 7)
    ]
    expected = model.classes_[np.mean(members, axis=0).argmax(axis=1)]
    np.testing.assert_array_equal(model.predict(X), expected)


class Prepared(Chosen):
    """Its candidates are the logits of held-out cases themselves."""

    def _fitted(self, settings, X, y, seed=0):
        class Model:
            classes_ = np.unique(y)

            def logits(self, X):
                return np.array(settings["logits"])[X[:, 0, 0].astype(int)][:, self.classes_]

        return Model()


def test_settings_that_do_better_together_are_taken_together():
    n, y = 80, np.arange(80) % 2
    right = np.where(np.eye(2)[y] == 1, 1.0, -1.0)
    knows = {  # the first two are wrong by little where the other is right by much
        "a": np.where(np.arange(n) % 8 < 3, -0.1, 1.0)[:, None] * right,
        "b": np.where(np.arange(n) % 8 > 3, -0.2, 1.0)[:, None] * right,
        "c": -right,
    }
    tried = [{"name": name, "logits": logits.tolist()} for name, logits in knows.items()]
    X = np.arange(n, dtype=float)[:, None, None] * np.ones((1, 1, 10))
    model = Prepared(tried, n_members=3, n_folds=2).fit(X, y)
    assert model.accuracies_ == [0.625, 0.5, 0.0]
    assert [settings["name"] for settings in model.chosen_] == ["a", "b"]
    assert len(model.members_) == 3  # a, b, a
    np.testing.assert_array_equal(model.predict(X), y)


@pytest.mark.filterwarnings("ignore:The least populated class")
def test_a_class_that_a_fold_does_not_know():
    y = np.arange(1100) % 2
    order = np.random.default_rng(0).permutation(len(y))
    y[order[[0, -1]]] = 2  # only one of them is among the 1,000 that decide
    logits = np.eye(3)[y] @ np.diag([1.0, 2.0, 3.0])
    X = np.arange(len(y), dtype=float)[:, None, None] * np.ones((1, 1, 10))
    tried = [{"logits": logits.tolist()}, {"logits": (-logits).tolist()}]
    model = Prepared(tried, n_members=1, n_folds=2).fit(X, y)
    assert model.accuracies_[0] == 0.999
    assert model.chosen_ == tried[:1]


def test_a_clock_tells_early_from_late():
    rng = np.random.default_rng(2)
    y = np.arange(120) % 2
    X = rng.normal(0, 0.1, (120, 1, 24))
    X[y == 0, 0, 3:7] += 2
    X[y == 1, 0, 17:21] += 2
    tried = [dict(SMALL, n_bins=3, learning_rate=0.02, clock=clock) for clock in (False, True)]
    model = Chosen(tried, n_members=1, n_folds=2).fit(X, y)
    assert model.chosen_[0]["clock"]
    assert model.accuracies_[1] > model.accuracies_[0] + 0.2
    assert np.mean(model.predict(X) == y) > 0.9


def test_mirrored_series_teach_what_the_mirror_does_not_change():
    rng = np.random.default_rng(2)
    y = np.arange(120) % 2
    X = rng.normal(0, 0.1, (120, 1, 24))
    X[:, 0, 3:15] += np.where(y == 0, np.linspace(0, 3, 12)[:, None], 0).T  # class 0 has a ramp up
    tried = [dict(SMALL, n_bins=3, learning_rate=0.02, mirrored=way) for way in (False, True)]
    without, with_mirror = (Chosen([one], n_members=1).fit(X, y) for one in tried)
    downwards = X[:, :, ::-1]
    assert np.mean(with_mirror.predict(downwards) == y) > 0.95
    assert np.mean(with_mirror.predict(-downwards) == y) > 0.95
    assert np.mean(without.predict(-downwards) == y) < 0.9


def test_few_cases_decide_nothing():
    tried = [{"n_bins": 3}, {"n_bins": 4}]
    assert Chosen(tried)._choose(tried, np.zeros((10, 1, 20)), np.arange(10) % 2) == ([], [0, 1])


def test_segments_scale_with_the_series():
    jobs = load_suite("archive").jobs("quick")
    options = json.loads(next(j.config for j in jobs if j.model == "TimeSliver-chosen"))
    for n_timepoints in (8, 30, 3000):
        for settings in options["model"]["options"]["candidates"]:
            sizes = scaled(settings, n_timepoints).get("segment_sizes", (1,))
            assert 1 <= min(sizes) <= max(sizes) <= n_timepoints


# --- maximum pooling ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pooled():
    X, y, _ = make(60, np.random.default_rng(2))
    return MaxPooled(
        n_bins=5,
        pooling=(2, 3),
        latent_dim=8,
        segment_sizes=(3, 4),
        max_epochs=5,
        positional_encoding=False,
        learning_rate=0.01,
        random_state=0,
    ).fit(X, y), X


def interactions(model, X):
    network, batch = model.network_, model._batch(model._read(X))
    P, scales = network.interactions(batch)
    shape = (len(batch), model.n_channels_, model.n_bins + 1, model.latent_dim)
    return [(p * s[:, None, None]).view(shape)[:, :, 1:] for p, s in zip(P, scales, strict=True)]


def textbook(model, P):
    head = model.network_.head
    logits = head.bias
    for size, p in enumerate(P):
        by_case = []
        for case in p:
            rows = []
            for channel in case:  # (n, q)
                padded = F.pad(channel, (0, 1, 0, 1), value=-torch.inf)  # 5 x 8 to 6 x 9
                rows.append(F.max_pool2d(padded[None], (2, 3))[0])
            by_case.append(torch.stack(rows).flatten())
        logits = logits + torch.stack(by_case) @ head.weight[:, size].flatten(1).T
    return logits


@torch.no_grad()
def test_logits_see_the_largest_of_each_group(pooled):
    model, X = pooled
    expected = textbook(model, interactions(model, X[:5]))
    np.testing.assert_allclose(model.logits(X[:5]), expected.numpy(), atol=1e-5)


def test_the_gradient_is_that_of_the_largest(pooled):
    model, X = pooled
    P = [p.detach().requires_grad_() for p in interactions(model, X[:1])]
    target = int(model.logits(X[:1]).argmax())
    gradients = torch.autograd.grad(textbook(model, P)[0, target], P)
    head = model.network_.head
    with torch.no_grad():
        head.selected = head.largest(*model.network_.interactions(model._batch(model._read(X[:1]))))
        W = head.full_weight()[target, :, :, 1:]
        head.selected = None
    for size, gradient in enumerate(gradients):
        torch.testing.assert_close(W[size], gradient[0])


def test_explanations_of_maximum_pooling(pooled, tmp_path):
    model, X = pooled
    scores = model.explain(X[:4], method="additive")
    np.testing.assert_allclose(scores.net.sum(axis=1) + scores.bias, scores.logit, atol=1e-4)
    np.testing.assert_allclose(scores.logit, model.logits(X[:4]).max(axis=1), atol=1e-5)
    model.save(tmp_path / "model.safetensors")
    loaded = MaxPooled.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.logits(X), model.logits(X))
