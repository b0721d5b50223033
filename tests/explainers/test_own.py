import numpy as np
import pytest
import torch
from torch.nn import functional as F

from batches import batch_of
from classifier.conftest import bumps, small
from timesliver.backbones import CNN, COLOR, COLORNetwork
from timesliver.errors import InvalidInputError, InvalidParameterError, NotApplicableError
from timesliver.explainers import create
from timesliver.explainers.own import ColorImportance


@pytest.fixture(scope="module")
def data():
    return bumps(n_cases=40, n_channels=2, n_timepoints=25, n_classes=3)


@pytest.fixture(scope="module")
def timesliver(data):
    X, y, _ = data
    return small(max_epochs=5).fit(X, np.array(["a", "b", "c"])[y])


def color(data, **settings):
    X, y, _ = data
    sizes = {"n_bins": 4, "latent_dim": 3, "widths": (4, 5), "head": (6,)}
    training = {"max_epochs": 3, "batch_size": 16, "learning_rate": 0.01, "random_state": 0}
    return COLOR(**sizes | training | settings).fit(X, y)


# --- TimeSliver ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("timesliver", {}),
        ("timesliver", {"max_scaling": False, "centred": True}),
        ("additive", {}),
        ("additive", {"centred": True, "background": None, "smoothing": 0}),
        ("additive", {"background": "series", "smoothing": 5}),
    ],
)
def test_timesliver_is_asked_itself(timesliver, data, name, options):
    X = data[0][:7]
    for target in (None, "b", np.array(list("abcabca"))):
        found = create(name, timesliver, **options).explain(X, target=target)
        expected = timesliver.explain(X, target, name, **options)
        for field in ("positive_by_channel", "negative_by_channel", "logit", "base", "target"):
            np.testing.assert_array_equal(getattr(found, field), getattr(expected, field))
        np.testing.assert_array_equal(found.probabilities, expected.probabilities)
    assert found.method == name
    assert found.forward_passes.tolist() == [1] * 7
    assert (found.seconds > 0).all()


@pytest.mark.parametrize("background", ["training", "series", None])
def test_additive_shares_add_up(timesliver, data, background):
    found = create("additive", timesliver, background=background).explain(data[0])
    np.testing.assert_allclose(found.net.sum(1) + found.base, found.logit, atol=1e-4)
    np.testing.assert_allclose(found.logit, timesliver.logits(data[0]).max(1), rtol=1e-5, atol=1e-6)


def test_timesliver_mistakes(timesliver, data):
    X, y, _ = data
    cnn = CNN(widths=(4, 4), head=(4,), max_epochs=1).fit(X, y)
    with pytest.raises(
        NotApplicableError, match=r"TimeSliverClassifier explains itself, but .* CNN"
    ):
        create("timesliver", cnn)
    with pytest.raises(InvalidParameterError, match="'smoothing' is not an option"):
        create("timesliver", timesliver, smoothing=5)
    with pytest.raises(InvalidParameterError, match="background='zero' is unknown"):
        create("additive", timesliver, background="zero")
    with pytest.raises(InvalidParameterError, match="smoothing must be a whole number"):
        create("additive", timesliver, smoothing=-1)
    with pytest.raises(InvalidInputError, match="one class at a time"):
        create("additive", timesliver).explain(X, target="all")
    with pytest.raises(InvalidInputError, match="1 channels, but the model was fitted on 2"):
        create("additive", timesliver).explain(X[:, :1])


# --- COLOR --------------------------------------------------------------------------------------


def importances(model, X, target, objective="logit"):
    """Section by section as COLOR defines it, with a (kappa, A, q) array, by channel."""
    network = model.network_
    batch = model._batch(model._read(X))
    D, Q = (part[0].detach().double() for part in network.encode(batch))
    P = (D.T @ Q).float().requires_grad_()
    logits = network.classify(P[None])
    label = torch.tensor([target])
    T = logits[0, target] if objective == "logit" else F.cross_entropy(logits, label)
    G = torch.autograd.grad(T, P)[0].double().abs()
    G = G / (G.max() + 1e-18)
    a = (D[:, :, None] * Q[:, None, :]).abs()
    a = (a - a.amin(0)) / (a.amax(0) - a.amin(0) + 1e-18)
    by_row = (a * G).sum(2).numpy()  # (kappa, A)
    segments = by_row.reshape(len(by_row), network.n_channels, -1).sum(2)  # (kappa, v)
    scores = np.zeros(X.shape[1:])
    for t in range(X.shape[2]):
        covering = [k for k in range(len(segments)) if k <= t <= k + network.span - 1]
        scores[:, t] = segments[covering].mean(0)
    return scores


@pytest.mark.parametrize("objective", ["logit", "loss"])
@pytest.mark.parametrize("mode", ["symbols", "raw"])
def test_color_is_the_definition(mode, objective):
    data = bumps(n_cases=30, n_channels=4, n_timepoints=25, n_classes=3)
    model = color(data, mode=mode, row_norm=mode == "raw")
    X = data[0][:4]
    found = create("color", model, objective=objective).explain(X)
    assert np.ptp(found.positive, axis=1).min() > 0.1
    for case in range(len(X)):
        expected = importances(model, X[case : case + 1], found.target[case], objective)
        np.testing.assert_allclose(found.positive_by_channel[case], expected, rtol=1e-3, atol=1e-4)
    assert not found.negative.any()


def test_color_finds_the_only_symbol_that_counts():
    network = COLORNetwork(COLOR(n_bins=3, latent_dim=4, head=()), 1, 2).eval()
    with torch.no_grad():
        network.head[0].weight.unflatten(1, (3, 4))[:, :2] = 0
    codes = np.random.default_rng(0).integers(1, 3, size=(4, 1, 30)).astype(np.float32)
    codes[:, :, 10:14] = 3
    found = create("color", network).explain(codes).positive
    reach = slice(10 - 3, 14 + 3)  # of segments of four points
    assert (found[:, reach] > 0).all()
    assert (found[:, 10:14].min(1) > found[:, [7, 16]].max(1)).all()
    found[:, reach] = 0
    assert not found.any()


def test_color_does_not_depend_on_the_order_of_symbols():
    n, q, v = 3, 4, 2
    sizes = {"n_bins": n, "latent_dim": q, "positional_encoding": False, "head": (5,)}
    first, second = (
        COLORNetwork(COLOR(**sizes), v, 2).eval(),
        COLORNetwork(COLOR(**sizes), v, 2).eval(),
    )
    order = [2, 0, 1]  # of the symbols of each channel
    rows = [channel * n + symbol for channel in range(v) for symbol in order]
    with torch.no_grad():
        weight = first.convolutions[0].weight
        second.convolutions[0].weight.copy_(weight[:, rows])
        weight = first.head[0].weight.unflatten(1, (v * n, q))
        second.head[0].weight.copy_(weight[:, rows].flatten(1))
    codes = np.random.default_rng(0).integers(0, n + 1, size=(5, v, 20)).astype(np.float32)
    renamed = codes.copy()
    for new, old in enumerate(order):
        renamed[codes == old + 1] = new + 1
    expected = create("color", first).explain(codes)
    found = create("color", second).explain(renamed)
    np.testing.assert_allclose(found.logit, expected.logit, atol=1e-6)
    np.testing.assert_allclose(
        found.positive_by_channel, expected.positive_by_channel, rtol=1e-4, atol=1e-5
    )


def test_color_without_symbols_says_nothing():
    network = COLORNetwork(COLOR(n_bins=3, latent_dim=4), 1, 2).eval()
    codes = np.zeros((2, 1, 20), dtype=np.float32)
    codes[1] = 2  # the same symbol everywhere: no segment stands out
    network.positional_encoding = False
    assert not create("color", network).explain(codes).positive.any()


def test_color_segments_of_the_padding_are_zero():
    network = COLORNetwork(COLOR(n_bins=3, latent_dim=4), 1, 2).eval()
    values = torch.randint(1, 4, (2, 1, 12), generator=torch.Generator().manual_seed(0)).float()
    values[1, :, 7:] = 0
    batch = batch_of(values, torch.tensor([12, 7]))
    found, n_segments = ColorImportance(network)._window_scores(batch, torch.tensor([0, 1]))
    assert n_segments.tolist() == [9, 4]
    assert found.shape == (2, 1, 9)
    assert (found >= 0).all()
    assert found[0, 0, 4:].any()
    assert not found[1, 0, 4:].any()


def test_color_of_a_case_alone_and_among_longer_ones():
    network = COLORNetwork(
        COLOR(latent_dim=4, mode="raw"), 2, 3
    ).eval()  # its products are rarely 0
    rng = np.random.default_rng(0)
    X = [3 + rng.normal(size=(2, length)).astype(np.float32) for length in (30, 12, 5, 2)]
    explainer = create("color", network)
    together = explainer.explain(X).positive_by_channel
    for case, values in enumerate(X):
        alone = explainer.explain([values]).positive_by_channel[0]
        np.testing.assert_allclose(together[case, :, : values.shape[1]], alone, atol=1e-5)


def test_color_in_parts(data, monkeypatch):
    model, X = color(data), data[0]
    whole = create("color", model).explain(X).positive
    monkeypatch.setattr("timesliver.explainers.windows._NUMBERS", 1)
    np.testing.assert_allclose(create("color", model).explain(X).positive, whole, atol=1e-5)


def test_color_mistakes(timesliver, data):
    with pytest.raises(NotApplicableError, match=r"COLOR explains itself, but .* TimeSliverCl"):
        create("color", timesliver)
    with pytest.raises(InvalidParameterError, match="objective='label' is unknown"):
        create("color", color(data), objective="label")
    with pytest.raises(NotApplicableError, match=r"needs the gradient .* a COLOR does not have"):
        create("integrated_gradients", color(data))
