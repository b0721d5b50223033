"""Training stops, repeats, is watched, and leaves the caller's world alone."""

import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from classifier.conftest import bumps, small
from timesliver.errors import TrainingError
from timesliver.training import Callback, StopTraining, draw_seed, validation_split

X, y, _ = bumps(160)


def same_weights(a, b):
    pairs = zip(a.network_.state_dict().values(), b.network_.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


def has_position(model):
    [part] = model.network_.parts
    return part.stem is not None and part.stem.positional_encoding


def test_same_seed_same_model():
    assert same_weights(small().fit(X, y), small().fit(X, y))
    assert not same_weights(small().fit(X, y), small(random_state=1).fit(X, y))
    generator = np.random.RandomState(5)
    first, second = (small(random_state=generator).fit(X, y) for _ in range(2))
    assert not same_weights(first, second)
    assert same_weights(first, small(random_state=np.random.RandomState(5)).fit(X, y))


@pytest.mark.parametrize("random_state", [None, 0])
def test_global_random_states_are_untouched(random_state):
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    expected = np.random.random(), torch.rand(1).item()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    torch.manual_seed(3)
    small(random_state=random_state, max_epochs=2).fit(X, y).explain(X[:2])
    assert (np.random.random(), torch.rand(1).item()) == expected  # noqa: NPY002


def test_fresh_seeds_differ():
    assert len({draw_seed(None) for _ in range(5)}) > 1
    assert len({draw_seed(np.random.default_rng(0)) for _ in range(5)}) == 1


def test_history_is_plain_and_the_best_epoch_is_kept():
    model = small(max_epochs=12).fit(X, y)
    assert [record["epoch"] for record in model.history_] == list(range(model.n_iter_))
    assert {record["member"] for record in model.history_} == {0}
    assert all(type(v) in (int, float, bool) for r in model.history_ for v in r.values())
    held_out = validation_split(y, 0.1, draw_seed(0))[1]
    best = [record for record in model.history_ if record["best"]][-1]
    top = max(r["validation_accuracy"] for r in model.history_)
    assert best["validation_accuracy"] == top
    assert best["validation_loss"] == min(
        r["validation_loss"] for r in model.history_ if r["validation_accuracy"] == top
    )
    assert model.score(X[held_out], y[held_out]) == best["validation_accuracy"]


def test_patience_ends_training():
    model = small(max_epochs=200, patience=3, learning_rate=0.05).fit(X, y)
    best = [record["epoch"] for record in model.history_ if record["best"]][-1]
    assert model.n_iter_ < 200
    assert model.n_iter_ - 1 - best == 3


@pytest.mark.parametrize(
    "labels", [[0] * 11 + [1], [0, 1] * 6, [0, 1], [*range(11), 0], ["a", "b", "b", "b"]]
)
def test_tiny_training_sets(labels):
    model = small().fit(X[: len(labels)], labels)
    assert set(model.predict(X)) <= set(labels)
    assert "validation_loss" not in model.history_[0]
    if labels == [0, 1] * 6:
        assert model.score(X, y) > 0.9


def test_split_is_stratified_and_leaves_each_class_a_training_case():
    rng = np.random.default_rng(0)
    for _ in range(50):
        labels = rng.choice(6, size=rng.integers(50, 300), p=[0.5, 0.3, 0.1, 0.05, 0.03, 0.02])
        fraction = rng.uniform(0.1, 0.5)
        train, held_out = validation_split(labels, fraction, seed=1)
        assert len(np.intersect1d(train, held_out)) == 0
        assert len(train) + len(held_out) == len(labels)
        if len(held_out):
            assert abs(len(held_out) - fraction * len(labels)) <= 1.5
        assert set(labels[train]) == set(labels)
        counts = np.bincount(labels, minlength=6)
        taken = np.bincount(labels[held_out], minlength=6)
        assert (np.abs(taken - fraction * counts)[counts > 1] <= 1.5).all() or not len(held_out)


def test_callbacks_see_the_run_and_can_end_it():
    seen = []

    class Watcher(Callback):
        def on_train_begin(self, max_epochs):
            seen.append(max_epochs)

        def on_epoch_end(self, record):
            seen.append(record["epoch"])
            if record["epoch"] == 2:
                raise StopTraining

        def on_train_end(self, history):
            seen.append(len(history))

    losses = []
    model = small(callbacks=[Watcher(), lambda record: losses.append(record["train_loss"])])
    model.fit(X, y)
    assert seen == [20, 0, 1, 2, 3]
    assert len(losses) == 2  # the first callback ended the third epoch
    assert model.n_iter_ == 3


def interrupt_at(epoch):
    def callback(record):
        if record["epoch"] == epoch:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_keeps_the_best_model_so_far():
    model = small(callbacks=[interrupt_at(4)])
    with pytest.warns(ConvergenceWarning, match="interrupted after 5 epochs"):
        model.fit(X, y)
    assert model.n_iter_ == 5
    assert model.predict(X).shape == (160,)


def test_an_interrupt_before_the_first_epoch_ends_is_passed_on():
    class Impatient(Callback):
        def on_train_begin(self, max_epochs):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        small(callbacks=[Impatient()]).fit(X, y)


def test_an_interrupt_of_auto_leaves_out_the_second_choice():
    model = small(positional_encoding="auto", callbacks=[interrupt_at(2)])
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert len(model.history_) == 3
    assert not has_position(model)


def test_auto_uses_the_position_only_where_it_helps():
    rng = np.random.default_rng(0)
    late = 0.1 * rng.normal(size=(200, 1, 40))
    labels = np.arange(200) % 2
    for case, label in zip(late, labels, strict=True):
        start = rng.integers(2, 12) + 22 * label  # the same bump, early or late
        case[0, start : start + 4] += 3
    settings = {"max_epochs": 60, "positional_encoding": "auto", "latent_dim": 16}
    placed = small(**settings).fit(late, labels)
    assert has_position(placed)
    assert placed.score(late, labels) > 0.95
    tiny = small(**settings | {"max_epochs": 2}).fit(late[:20], labels[:20])
    assert has_position(tiny)  # no validation cases to decide by


def test_a_loss_that_is_not_finite():
    weights = np.ones(160)
    weights[0] = 1e38
    with pytest.raises(TrainingError, match="lower learning_rate"):
        small(learning_rate=1e30).fit(X, y, sample_weight=weights)


def test_threads():
    before = torch.get_num_threads()
    used = []
    model = small(
        n_jobs=2, max_epochs=1, callbacks=[lambda r: used.append(torch.get_num_threads())]
    )
    model.fit(X, y)
    assert used == [2]
    assert torch.get_num_threads() == before
    with pytest.raises(TrainingError):
        small(n_jobs=2, learning_rate=1e30).fit(X, y, sample_weight=np.full(160, 1e30))
    assert torch.get_num_threads() == before


def test_verbose_draws_a_progress_bar(capsys):
    small(max_epochs=2).fit(X, y)
    assert capsys.readouterr() == ("", "")
    small(max_epochs=2, verbose=1).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "epoch 2/2" in shown.err


def test_no_warnings_in_a_normal_run():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(max_epochs=2).fit(X, y).explain(X)
