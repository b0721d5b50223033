import numpy as np
import pytest
import torch
from sklearn.base import clone

from classifier.conftest import bumps
from timesliver.backbones import CNN, COLOR, FCN, LSTM, InceptionTime, ResNet, Transformer
from timesliver.errors import InvalidInputError, InvalidParameterError, NotFittedError

SMALL = {
    CNN: {"widths": (8, 16, 16), "head": (8,)},
    Transformer: {"stem_widths": (16, 16), "stem_kernels": (3, 2), "ff_width": 32, "head": (8,)},
    LSTM: {"width": 32, "n_layers": 2},
    FCN: {"widths": (8, 16, 8)},
    ResNet: {"widths": (8, 16, 16)},
    InceptionTime: {"width": 4, "kernel_sizes": (9, 5, 3), "depth": 3},
    COLOR: {"n_bins": 6, "latent_dim": 6, "batch_size": 16},
}


def small(kind, **settings):
    training = {"learning_rate": 0.01, "max_epochs": 2, "random_state": 0}
    return kind(**{**SMALL[kind], **training, **settings})


def unequal(n_cases=12, n_channels=2):
    rng = np.random.default_rng(1)
    lengths = [1, 2, 3, 5, 9, 17, *rng.integers(4, 33, size=n_cases - 6)]
    return [rng.normal(size=(n_channels, length)) - 1 for length in lengths]


each = pytest.mark.parametrize("kind", SMALL)


@each
def test_learns_an_easy_problem(kind):
    X, y, _ = bumps(n_cases=120)
    labels = np.array(["slow", "fast"])[y]
    model = small(kind, max_epochs=40).fit(X, labels)
    new, new_y, _ = bumps(n_cases=60, seed=5)
    assert model.score(new, np.array(["slow", "fast"])[new_y]) > 0.9


@each
def test_interface_and_file(kind, tmp_path):
    X, y, _ = bumps(n_cases=30, n_channels=2, n_classes=3)
    model = small(kind, class_weight={0: 1.0, 1: 2.0, 2: 1.0}).fit(X, y)
    assert model.logits(X).shape == model.predict_proba(X).shape == (30, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(1), 1)
    np.testing.assert_array_equal(model.decision_function(X), model.logits(X))
    model.save(tmp_path / "model.safetensors")
    again = kind.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.logits(X), model.logits(X))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()


@each
def test_a_case_does_not_depend_on_the_others(kind):
    X = unequal()
    model = small(kind).fit(X, np.arange(12) % 2)
    together = model.logits(X)
    alone = np.concatenate([model.logits([case]) for case in X])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)
    assert np.ptp(together, axis=0).min() > 1e-3


@each
def test_inference_in_pieces_changes_nothing(kind, monkeypatch):
    X, y, _ = bumps(n_cases=20)
    model = small(kind).fit(X, y)
    whole = model.logits(X)
    monkeypatch.setattr(type(model.network_), "numbers_per_case", lambda *_: 1 << 22)
    np.testing.assert_allclose(model.logits(X), whole, rtol=1e-4, atol=1e-5)


@each
def test_same_seed_same_weights_and_no_global_state(kind):
    X, y, _ = bumps(n_cases=30)
    before = torch.get_rng_state()
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    first = small(kind).fit(X, y)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.random.random() == expected  # noqa: NPY002
    torch.rand(3)
    second, other = small(kind).fit(X, y), small(kind, random_state=1).fit(X, y)
    np.testing.assert_array_equal(first.logits(X), second.logits(X))
    assert not np.allclose(first.logits(X), other.logits(X))


@each
def test_constructor_only_stores(kind):
    model = kind(**SMALL[kind], learning_rate=0.5)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert vars(model) == model.get_params()
    assert copy.set_params(patience=3).patience == 3
    with pytest.raises(NotFittedError, match="not fitted"):
        copy.predict(np.zeros((1, 1, 5)))


@each
@pytest.mark.parametrize("n_timepoints", [1, 2, 3])
def test_very_short_series(kind, n_timepoints):
    X = np.random.default_rng(0).normal(size=(9, 1, n_timepoints))
    model = small(kind, batch_size=1).fit(X, np.arange(9) % 2)
    assert np.isfinite(model.logits(X)).all()


@each
def test_missing_values_and_wrong_channels(kind):
    X, y, _ = bumps(n_cases=20, n_channels=2)
    X[3, 0, 4:9] = np.nan
    model = small(kind).fit(X, y)
    assert np.isfinite(model.logits(X)).all()
    with pytest.raises(InvalidInputError, match="1 channels, but the model was fitted on 2"):
        model.predict(X[:, :1])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (CNN(widths=()), "widths must list at least 1"),
        (CNN(widths=(8, 0)), "each of widths"),
        (CNN(pooled_layers=9), "pooled_layers"),
        (CNN(kernel_size=0), "kernel_size"),
        (CNN(max_epochs=0), "max_epochs"),
        (Transformer(n_heads=3), "n_heads=3 must divide"),
        (Transformer(stem_kernels=(2, 2)), "one entry for each"),
        (Transformer(dropout=1.0), "dropout"),
        (LSTM(width=0), "width"),
        (FCN(kernel_sizes=(3,)), "one entry for each"),
        (ResNet(kernel_sizes="8"), "kernel_sizes must list"),
        (InceptionTime(depth=0), "depth"),
        (COLOR(kernel_sizes=(2, 2)), "one entry for each"),
    ],
)
def test_impossible_settings(model, message):
    X, y, _ = bumps(n_cases=8)
    with pytest.raises(InvalidParameterError, match=message):
        model.fit(X, y)


def test_the_other_class_cannot_load(tmp_path):
    X, y, _ = bumps(n_cases=8)
    small(CNN).fit(X, y).save(tmp_path / "cnn")
    with pytest.raises(InvalidInputError, match="kind 'CNN', not 'FCN'"):
        FCN.load(tmp_path / "cnn")
