"""What the classifier takes by itself: the bank, or learnt segments if held-out cases say so."""

import time

import numpy as np
import pytest
import torch

from classifier.conftest import bumps
from timesliver import TimeSliverClassifier
from timesliver.encoders import Kernels, Segments, auto, choose_encoders
from timesliver.errors import InvalidParameterError
from timesliver.series import as_series
from timesliver.training import Cases, StopTraining, TimeLimit


def cases(n=60, seed=0):
    X, y, _ = bumps(n, seed=seed)
    return Cases(as_series(X), torch.from_numpy(y), torch.ones(n))


def judged(accuracies):
    """A stand-in for training: each kind of encoder is right so often, on other cases each."""

    def fit(encoder, some):
        def logits(series):
            n = len(series)
            y = fit.y[:n]
            wrong = round((1 - accuracies[encoder.name]) * n)
            where = np.arange(wrong) if encoder.name == "kernels" else n - 1 - np.arange(wrong)
            scores = np.zeros((n, 2))
            scores[np.arange(n), y] = 2.0
            scores[where] = -0.5 * scores[where]  # wrong, but less sure of it
            return scores

        fit.trained.append((encoder.name, len(some)))
        return logits

    fit.trained = []
    return fit


@pytest.mark.parametrize(
    ("accuracies", "chosen"),
    [
        ({"kernels": 0.9, "segments": 0.6}, ["kernels", "segments"]),  # they make up for each other
        ({"kernels": 1.0, "segments": 0.6}, ["kernels"]),
        ({"kernels": 0.6, "segments": 1.0}, ["segments"]),
        ({"kernels": 1.0, "segments": 1.0}, ["kernels"]),
    ],
)
def test_held_out_cases_decide_and_the_simpler_wins_a_tie(monkeypatch, accuracies, chosen):
    monkeypatch.setattr(auto, "_MANY", 50)
    train, held_out = cases(60), cases(40, seed=1)
    fit = judged(accuracies)
    fit.y = held_out.y.numpy()
    taken, report = choose_encoders(train, held_out, 10.0, 0, fit)
    assert [one.name for one in taken] == chosen
    assert [one["encoder"] for one in report] == ["kernels", "segments", "kernels + segments"]
    assert report[0]["accuracy"] == pytest.approx(accuracies["kernels"])
    assert {one["n_held_out"] for one in report} == {40}
    assert fit.trained == [("kernels", 60), ("segments", 60)]


def test_a_fifth_is_held_out_where_no_cases_are_given(monkeypatch):
    monkeypatch.setattr(auto, "_MANY", 50)
    fit = judged({"kernels": 1.0, "segments": 0.5})
    fit.y = np.zeros(12, dtype=int)
    _, report = choose_encoders(cases(60), None, 10.0, 0, fit)
    assert {one["n_held_out"] for one in report} == {12}
    assert fit.trained == [("kernels", 48), ("segments", 48)]


def test_few_cases_take_the_bank_without_a_trial():
    X, y, _ = bumps(40)
    clf = TimeSliverClassifier(random_state=0, n_jobs=1).fit(X, y)
    assert [type(one) for one in clf.encoders_] == [Kernels]
    assert clf.report_ == []


def test_many_cases_through_the_front_door(monkeypatch, tmp_path):
    monkeypatch.setattr(auto, "_MANY", 60)
    X, y, _ = bumps(80)
    clf = TimeSliverClassifier(random_state=0, n_jobs=1, time_budget=4).fit(X, y)
    best = max(clf.report_, key=lambda one: one["accuracy"])
    assert " + ".join(one.name for one in clf.encoders_) == best["encoder"]
    assert all(one["n_held_out"] == 16 for one in clf.report_)
    clf.save(tmp_path / "model.safetensors")
    again = TimeSliverClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.logits(X), clf.logits(X))


def test_a_time_limit_ends_training():
    limit = TimeLimit(0.05)
    limit.on_train_begin(10)
    limit.on_epoch_end({})
    time.sleep(0.06)
    with pytest.raises(StopTraining):
        limit.on_epoch_end({})
    X, y, _ = bumps(60)
    encoder = Segments(max_epochs=10_000, patience=10_000, callbacks=[TimeLimit(0.5)])
    start = time.perf_counter()
    TimeSliverClassifier(encoder, random_state=0, n_jobs=1).fit(X, y)
    assert time.perf_counter() - start < 60


def test_a_budget_of_no_time():
    X, y, _ = bumps(20)
    with pytest.raises(InvalidParameterError, match="time_budget must be a number, above 0"):
        TimeSliverClassifier(time_budget=0).fit(X, y)
