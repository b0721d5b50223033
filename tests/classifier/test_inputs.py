"""Any form of series, any kind of label; and what cannot be used is refused with advice."""

import numpy as np
import pandas as pd
import pytest
import torch

from classifier.conftest import bumps, small, small_segments
from timesliver.errors import InvalidInputError, InvalidParameterError, NotFittedError
from timesliver.symbols import SAX

X, y, _ = bumps()


@pytest.fixture(scope="module")
def model():
    return small().fit(X, y)


@pytest.mark.parametrize(
    "form",
    [
        lambda X: X.astype(np.float32),
        lambda X: X[:, 0],
        lambda X: X[:, 0].tolist(),
        lambda X: list(X),
        lambda X: list(X[:, 0]),
        lambda X: pd.DataFrame(X[:, 0]),
        lambda X: torch.from_numpy(X),
        lambda X: np.concatenate([X, np.full_like(X, np.nan)], axis=2),
    ],
)
def test_every_form_gives_the_same_model(model, form):
    other = small().fit(form(X), y)
    np.testing.assert_allclose(other.logits(form(X)), model.logits(X), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(model.logits(form(X)), model.logits(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "labels",
    [
        ["no", "yes"],
        [False, True],
        [-1.0, 1.0],
        [3, 7],
        np.array(["no", "yes"], dtype=object),
        pd.Categorical(["no", "yes"]),
    ],
)
def test_any_kind_of_label(labels):
    given = np.asarray(labels)[y]
    model = small().fit(X, pd.Series(given))
    np.testing.assert_array_equal(model.classes_, np.unique(given))
    assert (model.predict(X) == given).mean() > 0.9
    explained = model.explain(X[:3], target=np.asarray(labels)[1])
    assert (explained.classes[explained.target] == np.asarray(labels)[1]).all()


def test_unequal_lengths_and_missing_values():
    cut = [case[:, : 20 + i % 10] for i, case in enumerate(X)]
    cut[0] = cut[0].copy()
    cut[0][0, 3] = np.nan
    model = small().fit(cut, y)
    assert model.predict(cut).shape == (60,)
    together = model.logits(cut)
    alone = np.concatenate([model.logits([case]) for case in cut])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


def test_lengths_never_seen_are_fine_with_three_axes(model):
    longer = np.concatenate([X, X], axis=2)
    assert model.predict(longer).shape == (60,)
    assert model.predict(X[:, :, :1]).shape == (60,)  # shorter than a segment
    assert model.explain(X[:, :, :1]).positive.shape == (60, 1)


def test_series_shorter_than_the_segments_train():
    model = small(sizes=(2, 9)).fit(X[:, :, 10:14], y)
    assert model.explain(X[:5, :, 10:14]).positive.shape == (5, 4)


def test_magnitudes_do_not_matter(model):
    for factor in (1e-30, 1e30):
        scaled = small().fit(X * factor, y)
        np.testing.assert_allclose(scaled.logits(X * factor), model.logits(X), atol=1e-3)
    assert np.isfinite(model.logits(X * 1e30)).all()
    assert np.isfinite(model.logits(np.full_like(X, 5.0))).all()


def test_a_channel_that_never_changes():
    flat = np.concatenate([X, np.full_like(X, 7.0), np.full_like(X, np.nan)], axis=1)
    assert small().fit(flat, y).score(flat, y) > 0.9


def test_weights():
    heavy = small().fit(X, y, sample_weight=np.where(y == 0, 10.0, 0.1))
    light = small().fit(X, y, sample_weight=np.where(y == 0, 0.1, 10.0))
    assert heavy.predict_proba(X)[:, 0].mean() > light.predict_proba(X)[:, 0].mean()
    same = small(class_weight={0: 10.0, 1: 0.1}).fit(X, y)
    np.testing.assert_array_equal(same.logits(X), heavy.logits(X))
    kept = small().fit(X, y, sample_weight=(np.arange(60) < 40).astype(float))
    np.testing.assert_array_equal(kept.logits(X), small().fit(X[:40], y[:40]).logits(X))


@pytest.mark.parametrize("weights", ["x", np.ones(3), -np.ones(60), np.full(60, np.nan)])
def test_weights_that_make_no_sense(weights):
    with pytest.raises(InvalidInputError, match="sample_weight must"):
        small().fit(X, y, sample_weight=weights)


def test_a_symbolizer_instance_is_not_changed():
    symbolizer = SAX(n_bins=4, normalize="global")
    encoder = small_segments(symbols=[symbolizer, "clock"], sizes=(0.1, 3))
    given = repr(encoder)
    model = small(encoder=encoder).fit(X, y)
    assert symbolizer.n_channels_ is None
    [[sax, clock]] = model.symbolizers_
    assert (sax.n_symbols, sax.n_channels_) == (4, 1)
    assert (clock.name, clock.n_channels_) == ("clock", 1)
    assert model.encoder is encoder
    assert repr(encoder) == given


@pytest.mark.parametrize(
    ("series", "labels", "message"),
    [
        (X, y[:-1], "there are 60 series but 59 labels"),
        (X, np.zeros(60), "at least two classes, got one class only"),
        (X, None, "requires y to be passed"),
        (X, np.where(y == 0, None, "a"), "case 0 has no label"),
        (X, np.where(y == 0, np.nan, 1.0), "case 0 has no label"),
        (X, np.linspace(0, 1, 60), "continuous"),
        (X, np.array([1, "a"] * 30, dtype=object), "cannot be compared|Unknown label type"),
        (X[:0], y[:0], "empty"),
        ([], y, "list of series is empty"),
        (np.array([[1, 2], [3]], dtype=object), [0, 1], "cannot be read"),
        ([np.zeros((1, 4)), np.zeros((2, 4))], [0, 1], "same number of channels"),
        (np.where(y[:, None] == 0, np.inf, X[:, 0]), y, "infinite value in case 0"),
        (X[0, 0], y, "Reshape your data"),
        (np.array([["a", "b"], ["c", "d"]]), [0, 1], "must hold real numbers|cannot be read"),
    ],
)
def test_what_cannot_be_learned_from(series, labels, message):
    with pytest.raises(ValueError, match=message):
        small().fit(series, labels)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_epochs": 0}, "max_epochs"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"patience": -1}, "patience"),
        ({"learning_rate": 0}, "learning_rate must be a number, above 0"),
        ({"validation_fraction": 1.0}, "validation_fraction"),
        ({"sparsity": -1}, "sparsity must be a number, at least 0"),
        ({"positional_encoding": "yes"}, "positional_encoding"),
        ({"symbols": "paa"}, "there is no symbolizer 'paa'; choose one of 'sax', 'sfa'"),
        ({"symbols": "raw"}, "there is no symbolizer 'raw'"),
        ({"symbols": []}, "symbols must name at least one"),
        ({"sizes": ()}, "sizes must list at least one"),
        ({"sizes": 4}, "sizes"),
        ({"encoder": "rocket"}, "there is no encoder 'rocket'; choose one of 'segments'"),
        ({"encoder": []}, "encoder must name at least one encoder"),
        ({"n_estimators": 0}, "n_estimators must be a whole number, at least 1"),
        ({"channels": "both"}, "channels"),
        ({"pooling": (1,)}, "pooling must be a pair"),
        ({"device": "gpu7"}, "device='gpu7' cannot be used"),
        ({"n_jobs": 0}, "n_jobs=0 is not a number of threads"),
        ({"random_state": "seed"}, "random_state='seed' cannot seed"),
        ({"callbacks": [3]}, "callbacks must hold"),
        ({"callbacks": print}, "callbacks must be a list"),
        ({"symbols": SAX(5).set_params(n_bins="7")}, "n_bins must be a whole number"),
        ({"class_weight": "even"}, "class_weight='even' does not fit"),
        ({"class_weight": {2: 1.0}}, "does not fit the classes"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, "finite numbers, at least 0"),
        ({"class_weight": {0: np.nan}}, "finite numbers, at least 0"),
        ({"class_weight": {0: 0.0, 1: 0.0}}, "leaves no case any weight"),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(InvalidParameterError, match=message):
        small(**settings).fit(X, y)


def test_series_of_another_kind_at_predict(model):
    with pytest.raises(InvalidInputError, match="2 channels, but the model was fitted on 1"):
        model.predict(np.zeros((3, 2, 30)))
    table = small().fit(X[:, 0], y)
    with pytest.raises(InvalidInputError, match=r"expecting 30 features .* with three axes"):
        table.predict(X[:, 0, :20])
    assert table.predict(X[:, :, :20]).shape == (60,)
    with pytest.raises(NotFittedError, match="call fit"):
        small().predict(X)


def test_targets_of_an_explanation(model):
    every = model.explain(X[:4], target="all")
    every = every.by_class()
    assert [a.target.tolist() for a in every] == [[0] * 4, [1] * 4]
    named = small(max_epochs=1).fit(X, np.array(["all", "b"])[y])
    assert named.explain(X[:2], target="all").target.tolist() == [0, 0, 1, 1]
    assert named.explain(X[:2], target=["all"] * 2).target.tolist() == [0, 0]
    mixed = model.explain(X[:4], target=[0, 1, 1, 0])
    np.testing.assert_array_equal(mixed.positive[1], every[1].positive[1])
    with pytest.raises(InvalidInputError, match="label 5 is none of the classes"):
        model.explain(X[:4], target=5)
    with pytest.raises(InvalidInputError, match="one label for each of the 4 cases"):
        model.explain(X[:4], target=[0, 1])


def test_a_fit_that_fails_leaves_no_half_old_model():
    again = small(max_epochs=1).fit(X, y)
    with pytest.raises(InvalidInputError):
        again.fit(X[:, [0, 0]], np.zeros(60))
    with pytest.raises(NotFittedError):
        again.predict(X)


def test_validation_data(model):
    fitted = small().fit(X, y, validation_data=(X[:20], y[:20]))
    assert {"validation_accuracy", "validation_loss"} <= set(fitted.history_[0])
    for data, message in (
        (3, "must be a pair"),
        ((X, y[:3]), "60 series but labels of shape"),
        ((X, y + 5), "none of the classes"),
        ((X[:, [0, 0]], y), "2 channels"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            small().fit(X, y, validation_data=data)
