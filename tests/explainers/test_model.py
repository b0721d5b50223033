import numpy as np
import pytest
import torch
from torch import nn

from classifier.conftest import bumps, small
from timesliver.backbones import CNN, COLOR, CNNNetwork, COLORNetwork
from timesliver.backbones.layers import seeded
from timesliver.errors import (
    InvalidInputError,
    InvalidParameterError,
    NotApplicableError,
    NotFittedError,
)
from timesliver.explainers import as_model, create
from timesliver.explainers.inputs import case_seed, repeated
from timesliver.network.batch import Batch


@pytest.fixture(scope="module")
def data():
    return bumps(n_cases=24, n_channels=2, n_timepoints=16)


@pytest.fixture(scope="module")
def cnn(data):
    X, y, _ = data
    return CNN(widths=(4, 4), head=(4,), max_epochs=1, random_state=0).fit(3 * X + 5, y)


class Foreign(nn.Module):
    """A module of a user: series (B, v, L) to logits (B, C)."""

    def __init__(self, n_classes=3):
        super().__init__()
        self.conv = nn.Conv1d(2, 5, 3)
        self.norm = nn.BatchNorm1d(5)
        self.out = nn.Linear(5, n_classes)

    def forward(self, x):
        return self.out(self.norm(self.conv(x)).relu().mean(2))


def a_function(X):
    return np.stack([X[:, 0, :4].sum(1), X[:, 1].max(1)], 1)


# --- what a model is ------------------------------------------------------------------------------


def test_values_are_standardised_and_logits_are_the_models(data, cnn):
    X = 3 * data[0] + 5
    X[2, 1, 4:7] = np.nan
    model = as_model(cnn)
    inputs = model.read(X)
    expected = (X - cnn.mean_[:, None]) / cnn.scale_[:, None]
    np.testing.assert_allclose(inputs.values, np.nan_to_num(expected), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(inputs.observed, ~np.isnan(X))
    np.testing.assert_allclose(model.infer(inputs), cnn.logits(X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        model.logits(inputs[:3]).detach(), cnn.logits(X[:3]), rtol=1e-5, atol=1e-6
    )
    assert model.n_rows == 24 + 3
    assert model.classes.tolist() == [0, 1]
    assert (model.kind, model.has_gradients, model.n_channels) == ("CNN", True, 2)


@pytest.mark.parametrize("make", [small, lambda **how: COLOR(n_bins=5, latent_dim=4, **how)])
def test_symbols_are_made_anew(data, make):
    X, y, _ = data
    X = 3 * X + 5
    fitted = make(max_epochs=1, random_state=0).fit(X, y)
    model = as_model(fitted)
    inputs = model.read(X)
    assert not model.has_gradients
    np.testing.assert_allclose(model.infer(inputs), fitted.logits(X), rtol=1e-4, atol=1e-5)
    silenced = inputs.values.clone()
    silenced[:, 0, 3:9] = 0  # the training mean
    changed = X.copy()
    changed[:, 0, 3:9] = fitted.mean_[0]
    np.testing.assert_allclose(
        model.infer(inputs, silenced), fitted.logits(changed), rtol=1e-4, atol=1e-5
    )


def test_color_in_raw_mode_has_gradients(data):
    X, y, _ = data
    model = as_model(COLOR(mode="raw", max_epochs=1).fit(X, y))
    inputs = model.read(X[:3])
    values = inputs.values.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model.logits(inputs, values).sum(), values)
    assert model.has_gradients
    assert gradient.abs().max() > 0


def test_networks_without_their_estimator(data):
    X = data[0].astype(np.float32)
    network = CNNNetwork(CNN(widths=(4, 4)), 2, 3).eval()
    model = as_model(network, ["a", "b", "c"])
    unequal = [X[0], X[1][:, :5], X[2][:, :1]]
    alone = [model.infer(model.read([case])) for case in unequal]
    torch.testing.assert_close(model.infer(model.read(unequal)), torch.cat(alone))
    assert model.classes.tolist() == ["a", "b", "c"]
    assert not as_model(COLORNetwork(COLOR(), 2, 3).eval()).has_gradients
    assert as_model(COLORNetwork(COLOR(mode="raw"), 2, 3).eval()).has_gradients
    with pytest.raises(InvalidInputError, match="3 channels, but the model was fitted on 2"):
        model.read(np.zeros((1, 3, 5)))


def test_many_cases_are_asked_about_in_parts(monkeypatch):
    sizes = []

    def watched(X):
        sizes.append(len(X))
        return X[:, 0, :2]

    monkeypatch.setattr("timesliver.explainers.model._NUMBERS", 25 * 32)
    model = as_model(watched)
    X = np.random.default_rng(0).normal(size=(7, 1, 10)).astype(np.float32)
    np.testing.assert_array_equal(model.infer(model.read(X)), X[:, 0, :2])
    assert sizes == [2, 2, 2, 1]


def test_a_backbone_says_itself_how_many_cases_fit(monkeypatch):
    sizes = []
    network = CNNNetwork(CNN(widths=(4, 4)), 1, 2).eval()
    network.register_forward_hook(lambda _, batch, __: sizes.append(len(batch[0])))
    monkeypatch.setattr(CNNNetwork, "numbers_per_case", lambda *_: 1 << 22)
    model = as_model(network)
    model.infer(model.read(np.zeros((5, 1, 10))))
    assert sizes == [2, 2, 1]


def test_one_case_many_times():
    values = torch.randn(1, 2, 9, generator=torch.Generator().manual_seed(0))
    one = Batch(values, values > 0, torch.tensor([9]))
    many = repeated(one, 3)
    assert len(many) == 3
    for field in ("values", "observed", "lengths"):
        assert all(torch.equal(each, getattr(one, field)[0]) for each in getattr(many, field))
    assert len(repeated(one, 0)) == 0


def test_the_seed_of_a_case_follows_from_its_values_alone():
    values = torch.randn(3, 2, 9, generator=torch.Generator().manual_seed(0))
    values[1, :, 6:] = 0
    observed = torch.ones(3, 2, 9, dtype=torch.bool)
    inputs = Batch(values, observed, torch.tensor([9, 6, 9]))
    alone = Batch(values[1:2, :, :6], observed[1:2, :, :6], torch.tensor([6]))
    assert case_seed(inputs, 1, 5) == case_seed(alone, 0, 5)
    assert len({case_seed(inputs, case, seed) for case in range(3) for seed in (5, 6)}) == 6
    assert 0 <= case_seed(inputs, 0, 2**31) < 2**63


# --- foreign models -------------------------------------------------------------------------------


def test_a_foreign_module_is_explained(data):
    X = data[0][:6].astype(np.float32)
    module = Foreign().eval()
    found = create("random", as_model(module, list("xyz"))).explain(X)
    logits = module(torch.from_numpy(X)).detach()
    np.testing.assert_allclose(found.logit, logits.max(1).values, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found.target, logits.argmax(1))
    np.testing.assert_allclose(found.probabilities, logits.softmax(1), rtol=1e-5)
    assert found.classes.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(found.series, X)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_module_of_another_precision(data, dtype):
    X = data[0][:6].astype(np.float32)
    with seeded(0):
        module = Foreign().eval().to(dtype)
    model = as_model(module)
    logits = model.infer(model.read(X))
    assert logits.dtype == torch.float32
    torch.testing.assert_close(logits, module(torch.from_numpy(X).to(dtype)).detach().float())
    for name in ("integrated_gradients", "deep_lift", "grad_cam", "gradient_shap", "lime"):
        for setting in ("fair", "paper"):
            explainer = create(name, model, setting=setting, random_state=0).fit(X)
            found = explainer.explain(X[:2])
            assert found.net.dtype == np.float32
            if name != "lime":  # the library's sparse regression may find nothing
                assert np.abs(found.net).max() > 0


def test_a_function_is_explained(data):
    X = data[0][:6]
    found = create("random", a_function).explain(X, target=1)
    np.testing.assert_allclose(found.logit, X[:, 1].max(1), rtol=1e-6)
    assert found.classes.tolist() == [0, 1]
    assert found.forward_passes.tolist() == [1] * 6


def test_missing_values_reach_a_module_as_zero():
    X = np.ones((1, 2, 6))
    X[0, 0, 3] = np.nan
    found = create("random", a_function).explain(X, target=0)
    assert found.logit[0] == 3
    assert np.isnan(found.series[0, 0, 3])


# --- mistakes ------------------------------------------------------------------------------------


def test_training_mode(data, cnn):
    module = Foreign()
    with pytest.raises(InvalidInputError, match=r"in training mode.* call model\.eval\(\) first"):
        create("random", module)
    explainer = create("random", module.eval())
    module.norm.train()
    with pytest.raises(InvalidInputError, match="in training mode"):
        explainer.explain(data[0])
    cnn.network_.train()
    try:
        with pytest.raises(InvalidInputError, match=r"call model\.network_\.eval\(\) first"):
            create("random", cnn)
    finally:
        cnn.network_.eval()


def test_training_mode_of_a_model_that_explains_itself(data):
    X, y, _ = data
    fitted = small(max_epochs=1).fit(X, y)
    explainer = create("additive", fitted)
    fitted.network_.train()
    with pytest.raises(InvalidInputError, match="in training mode"):
        explainer.explain(X)


@pytest.mark.parametrize("name", ["random", "timesliver", "color", "attention_tracing"])
@pytest.mark.parametrize("kind", [CNN, COLOR, small])
def test_unfitted(name, kind):
    with pytest.raises(NotFittedError, match=r"is not fitted yet; call fit\(X, y\) first"):
        create(name, kind())


@pytest.mark.parametrize("thing", [3, "cnn", None, np.zeros(3)])
def test_things_that_are_no_model(thing):
    with pytest.raises(InvalidParameterError, match="a model is a fitted classifier"):
        as_model(thing)


def test_a_timesliver_network_without_its_symbols(data):
    X, y, _ = data
    with pytest.raises(InvalidParameterError, match="give the fitted TimeSliverClassifier"):
        as_model(small(max_epochs=1).fit(X, y).network_)


def test_classes_of_a_model_that_knows_them(cnn):
    with pytest.raises(InvalidParameterError, match="knows its classes"):
        as_model(cnn, ["a", "b"])


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (9, "9"),
        ("all", "one class at a time"),
        ([0, 1], "target must be one label or one label for each of the 24 cases"),
    ],
)
def test_impossible_targets(data, cnn, target, message):
    with pytest.raises(InvalidInputError, match=message):
        create("random", cnn).explain(data[0], target=target)


def test_wrong_channels(data, cnn):
    with pytest.raises(InvalidInputError, match="1 channels, but the model was fitted on 2"):
        create("random", cnn).explain(data[0][:, :1])


def test_unequal_lengths_of_a_plain_module(data):
    unequal = [data[0][0], data[0][1][:, :9]]
    for model in (Foreign().eval(), a_function):
        with pytest.raises(NotApplicableError, match="must be of equal length"):
            create("random", model).explain(unequal)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: X[:, 0, 0], r"logits of shape \(4, n_classes\), got \(4,\)"),
        (lambda X: X[:2, 0], r"logits of shape \(4, n_classes\), got \(2, 5\)"),
        (lambda X: np.array([["a", "b"]] * len(X)), "must return numbers"),
        (lambda X: X[:, 0] / 0 * 0, "logits that are no numbers"),
    ],
)
def test_functions_that_return_something_else(function, message):
    with np.errstate(all="ignore"), pytest.raises(InvalidInputError, match=message):
        create("random", function).explain(np.ones((4, 1, 5)))


def test_a_module_that_returns_something_else():
    class Pair(nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(InvalidInputError, match="got tuple"):
        create("random", Pair().eval()).explain(np.ones((4, 1, 5)))


def test_labels_that_do_not_fit_the_logits():
    model = as_model(a_function, ["only", "three", "labels"])
    with pytest.raises(InvalidInputError, match="returned 2 logits, but there are 3 classes"):
        create("random", model).explain(np.ones((4, 2, 5)))
    with pytest.raises(InvalidInputError, match="known once the model was asked"):
        as_model(a_function).classes  # noqa: B018


def test_labels_of_another_number_of_cases(cnn, data):
    with pytest.raises(InvalidInputError, match="y must have one label for each of the 24 cases"):
        create("random", cnn).fit(data[0], [0, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"setting": "best"}, "setting='best' is unknown; choose one of 'fair', 'paper'"),
        ({"batch_size": 0}, "batch_size must be a whole number, at least 1"),
        ({"random_state": "x"}, "random_state='x' cannot seed anything"),
    ],
)
def test_impossible_settings(cnn, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        create("random", cnn, **options)
