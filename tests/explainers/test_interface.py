"""What holds for every explainer, whatever its method."""

import time
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pytest
import torch

from classifier.conftest import bumps, small
from timesliver import Attribution
from timesliver.backbones import CNN, COLOR, Transformer
from timesliver.errors import NotApplicableError, NotFittedError
from timesliver.explainers import create, find, names

CLASSES = np.array(["cat", "dog", "eel"])
TRAINING = {
    "max_epochs": 30,
    "learning_rate": 0.01,
    "batch_size": 16,
    "validation_fraction": 0,
    "random_state": 0,
}


def cnn():
    return CNN(widths=(8, 8), head=(6,), pooled_layers=1, **TRAINING)


def transformer():
    sizes = {"stem_widths": (6, 8), "stem_kernels": (3, 2), "ff_width": 8, "n_heads": 2}
    return Transformer(**sizes, head=(6,), n_layers=2, **TRAINING)


def color():
    return COLOR(n_bins=4, latent_dim=4, widths=(4, 4), head=(6,), **TRAINING)


MODELS = {
    "attention_tracing": transformer,
    "grad_sam": transformer,
    "color": color,
    "timesliver": lambda: small(max_epochs=10),
    "additive": lambda: small(max_epochs=10),
}
OPTIONS = {
    "lime": {"n_samples": 40},
    "limesegment": {"n_samples": 20},
    "kernel_shap": {"n_samples": 40},
    "gradient_shap": {"n_samples": 5},
    "timex_plus_plus": {"schedule": "quick"},
}
# Methods that need series of one channel, of equal length; the extra; whose result is drawn.
ONE_CHANNEL = {"limesegment"}
EQUAL_LENGTH = {"timex_plus_plus"}
BY_CAPTUM = {"lime", "kernel_shap", "integrated_gradients", "deep_lift", "deep_lift_shap"}
DRAWN = {"random", "lime", "kernel_shap", "gradient_shap"}


@dataclass
class Subject:
    name: str
    model: Any
    train: Any
    X: Any

    def make(self, **options):
        """Return an explainer that is ready to explain."""
        explainer = create(self.name, self.model, **OPTIONS.get(self.name, {}) | options)
        return explainer.fit(*self.train)


@pytest.fixture(scope="module")
def fitted_models():
    return {}


@pytest.fixture(scope="module", params=names())
def subject(request, fitted_models):
    name = request.param
    if name in BY_CAPTUM:
        pytest.importorskip("captum")
    n_channels = 1 if name in ONE_CHANNEL else 2
    X, y, _ = bumps(n_cases=36, n_channels=n_channels, n_timepoints=24, n_classes=3)
    make = MODELS.get(name, cnn)
    key = make, n_channels
    if key not in fitted_models:
        fitted_models[key] = make().fit(5 * X + 2, CLASSES[y])
        fitted_models[key].network_.zero_grad()
    new, _, _ = bumps(n_cases=4, n_channels=n_channels, n_timepoints=24, n_classes=3, seed=9)
    return Subject(name, fitted_models[key], (5 * X + 2, CLASSES[y]), 5 * new + 2)


@pytest.fixture(scope="module")
def explainer(subject):
    return subject.make()


@pytest.fixture(scope="module")
def found(subject, explainer):
    return explainer.explain(subject.X)


def assert_same(one, other, atol=1e-5):
    for name in ("positive_by_channel", "negative_by_channel"):
        largest = max(1.0, getattr(one, name).max(initial=0))
        np.testing.assert_allclose(
            getattr(one, name) / largest, getattr(other, name) / largest, atol=atol
        )


def test_the_attribution_is_whole(subject, explainer, found):
    X, model = subject.X, subject.model
    assert isinstance(found, Attribution)
    assert found.positive_by_channel.shape == found.negative_by_channel.shape == X.shape
    for part in (found.positive_by_channel, found.negative_by_channel):
        assert np.isfinite(part).all()
        assert (part >= 0).all()
    assert found.magnitude.max(1).min() > 0.01
    np.testing.assert_array_equal(found.classes, CLASSES)
    np.testing.assert_array_equal(found.classes[found.target], model.predict(X))
    np.testing.assert_allclose(found.logit, model.logits(X).max(1), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.probabilities, model.predict_proba(X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.series, X, rtol=1e-6)
    assert np.isfinite(found.base).all()
    assert found.seconds.shape == found.forward_passes.shape == (len(X),)
    assert (found.seconds > 0).all()
    assert (found.forward_passes >= 1).all()
    assert found.method == subject.name


def test_what_the_method_knows_is_what_it_says(explainer, found):
    assert (found.has_sign, found.has_channels) == (explainer.has_sign, explainer.has_channels)
    if not found.has_sign:
        assert not found.negative.any()
    if not found.has_channels:
        first = found.positive_by_channel[:, :1] - found.negative_by_channel[:, :1]
        both = found.positive_by_channel - found.negative_by_channel
        np.testing.assert_array_equal(both, np.broadcast_to(first, both.shape))


@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_batches_change_nothing(subject, explainer, found, batch_size):
    before = explainer.batch_size
    explainer.batch_size = batch_size
    try:
        assert_same(explainer.explain(subject.X[:2]), found[:2])
    finally:
        explainer.batch_size = before


def test_neither_order_nor_company_matters(subject, explainer, found):
    order = [3, 0, 1, 2]
    assert_same(explainer.explain(subject.X[order]), found[order])
    assert_same(explainer.explain(subject.X[2:3]), found[2])


def test_more_cases_than_are_explained_at_once(subject, explainer, found, monkeypatch):
    monkeypatch.setattr(type(explainer), "cases_at_once", 2, raising=False)
    again = explainer.explain(subject.X)
    assert_same(again, found)
    np.testing.assert_allclose(again.forward_passes.mean(), found.forward_passes.mean())


def test_same_seed_same_map(subject, found):
    again = subject.make().explain(subject.X)
    for name, part in found.by_case().items():
        if name != "seconds":
            np.testing.assert_array_equal(getattr(again, name), part)
    if subject.name in DRAWN:
        other = subject.make(random_state=1).explain(subject.X)
        assert not np.allclose(other.positive, found.positive)


def test_nothing_else_is_changed(subject):
    network = subject.model.network_
    weights = {name: value.clone() for name, value in network.state_dict().items()}
    wanting = [weight.requires_grad for weight in network.parameters()]
    torch_state, X = torch.get_rng_state(), subject.X.copy()
    numpy_state = np.random.get_state()  # noqa: NPY002
    subject.make().explain(subject.X)
    assert torch.equal(torch.get_rng_state(), torch_state)
    for now, before in zip(np.random.get_state(), numpy_state, strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(now, before)
    for name, value in network.state_dict().items():
        assert torch.equal(value, weights[name])
    assert [weight.requires_grad for weight in network.parameters()] == wanting
    assert all(weight.grad is None for weight in network.parameters())
    for module in network.modules():
        assert not module.training
        for kind in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks"):
            assert not getattr(module, kind)
    np.testing.assert_array_equal(subject.X, X)


def test_another_class(subject, explainer):
    X, logits = subject.X, subject.model.logits(subject.X)
    for target in ("dog", CLASSES[[0, 1, 2, 0]]):
        found = explainer.explain(X, target=target)
        indices = np.broadcast_to(np.searchsorted(CLASSES, target), len(X))
        np.testing.assert_array_equal(found.target, indices)
        np.testing.assert_allclose(found.logit, logits[np.arange(4), indices], rtol=1e-4, atol=1e-5)
    one, other = (explainer.explain(X, target=label) for label in ("cat", "dog"))
    if subject.name in ("random", "attention_tracing", "timex_plus_plus"):
        assert_same(one, other)  # they do not look at the class
    else:
        assert not np.allclose(one.net, other.net)


def test_missing_values(subject, explainer, found):
    X = subject.X.copy()
    X[1, 0, 3:6] = np.nan
    with_gaps = explainer.explain(X)
    assert np.isfinite(with_gaps.magnitude).all()
    assert np.isnan(with_gaps.series[1, 0, 3:6]).all()
    assert_same(with_gaps[[0, 2, 3]], found[[0, 2, 3]])


def test_unequal_lengths(subject, explainer):
    lengths = (24, 10, 17, 4)
    X = [case[:, :length] for case, length in zip(subject.X, lengths, strict=True)]
    if subject.name in EQUAL_LENGTH:
        with pytest.raises(NotApplicableError):
            explainer.explain(X)
        return
    together = explainer.explain(X)
    for case, length in enumerate(lengths):
        assert not together.magnitude[case, length:].any()
        alone = explainer.explain([X[case]])
        for name in ("positive_by_channel", "negative_by_channel"):
            np.testing.assert_allclose(
                getattr(together, name)[case, :, :length], getattr(alone, name)[0], atol=1e-5
            )


def test_slicing_saving_and_loading(found, tmp_path):
    some = found[1:3]
    assert len(some) == 2
    np.testing.assert_array_equal(some.positive_by_channel, found.positive_by_channel[1:3])
    np.testing.assert_array_equal(some.forward_passes, found.forward_passes[1:3])
    some.save(tmp_path / "some.npz")
    loaded = Attribution.load(tmp_path / "some.npz")
    for field in fields(Attribution):
        np.testing.assert_array_equal(getattr(loaded, field.name), getattr(some, field.name))


def test_without_gradients_around_it(subject, explainer, found):
    with torch.no_grad():
        assert_same(explainer.explain(subject.X), found)


def test_fit_comes_first(subject):
    if not find(subject.name).needs_fit:
        create(subject.name, subject.model).explain(subject.X[:1])
        return
    with pytest.raises(NotFittedError, match=r"call fit\(X_train\) before explain"):
        create(subject.name, subject.model).explain(subject.X[:1])


def test_the_setting_of_the_paper(subject, found):
    paper = subject.make(setting="paper").explain(subject.X)
    assert np.isfinite(paper.magnitude).all()
    if find(subject.name).has_settings:
        assert not np.allclose(paper.net, found.net)
    else:
        assert_same(paper, found)


@pytest.mark.parametrize("name", ["lime", "limesegment", "kernel_shap", "gradient_shap"])
def test_slow_methods_show_how_far_they_are(name, monkeypatch, capsys):
    monkeypatch.setattr("timesliver.training.runtime._LONG", 0.01)
    monkeypatch.setenv("FORCE_COLOR", "1")  # lets rich draw where there is no terminal
    X, y, _ = bumps(n_cases=12, n_timepoints=24)
    model = CNN(widths=(4,), pooled_layers=0, max_epochs=1, random_state=0).fit(X, y)
    for verbose in (0, 1):
        explainer = create(name, model, verbose=verbose, **OPTIONS[name]).fit(X, y)
        score = explainer._scores

        def slowly(*args, score=score):
            time.sleep(0.02)
            return score(*args)

        explainer._scores = slowly
        explainer.explain(X[:3])
        shown = capsys.readouterr().err
        assert (f"Explaining by {name}" in shown) == bool(verbose)
    assert "33%" in shown  # after the first of three cases


def test_passes_do_not_depend_on_company():
    pytest.importorskip("captum")

    class Steep(torch.nn.Module):
        def forward(self, X):
            return torch.stack([torch.tanh(400 * (X[:, 0, 0] - 1.5)) + X[:, 0, 1], X[:, 0, 0]], 1)

    X = np.ones((3, 1, 4))
    X[1, 0, 0] = 3  # its way crosses the step: 50 + 100 + 200 passes, the others need 50
    explainer = create("integrated_gradients", Steep().eval())
    together = explainer.explain(X, target=0).forward_passes
    alone = [explainer.explain(X[i : i + 1], target=0).forward_passes[0] for i in range(3)]
    np.testing.assert_array_equal(together, alone)
    assert together[1] - together[0] == 300


def test_one_channel_only():
    X, y, _ = bumps(n_cases=12, n_channels=2, n_timepoints=24)
    model = CNN(widths=(4,), pooled_layers=0, max_epochs=1).fit(X, y)
    for name in ONE_CHANNEL:
        with pytest.raises(NotApplicableError):
            create(name, model).explain(X[:1])


@pytest.mark.parametrize("name", ["attention_tracing", "grad_sam", "color", "timesliver"])
def test_methods_of_other_models(name):
    X, y, _ = bumps(n_cases=12)
    model = CNN(widths=(4,), pooled_layers=0, max_epochs=1).fit(X, y)
    with pytest.raises(NotApplicableError, match="but the model is a CNN"):
        create(name, model)


@pytest.mark.parametrize("name", [name for name in names() if find(name).needs_gradients])
def test_gradients_of_a_function(name):
    with pytest.raises(NotApplicableError, match=r"gradient .* which a function does not have"):
        create(name, lambda X: X[:, 0])
