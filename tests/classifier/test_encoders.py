"""One estimator for all encoders: lists of them, seeds, steps, mirrored cases, closed form."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import RidgeClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from classifier.conftest import bumps, small, small_segments
from timesliver import Segments, TimeSliverClassifier, encoders
from timesliver.encoders import FixedEncoder
from timesliver.encoders.presets import PRESETS
from timesliver.errors import InvalidParameterError
from timesliver.network import TimeSliverNetwork, dense
from timesliver.series import as_series
from timesliver.symbols import SAX, Clock, Symbolizer
from timesliver.training import Ridge, draw_seed, validation_split
from timesliver.training.solve import solve

X, y, _ = bumps(n_channels=2)


class Slopes(FixedEncoder):
    """Value, slope and their squares."""

    name = "slopes"
    size = 2

    def __init__(self, symbols="clock", step=1, separate=False):
        self.symbols = symbols
        self.step = step
        self.separate = separate

    def rows(self, x):
        rows = torch.cat([x[:, 1:], x[:, 1:] - x[:, :-1]], 2)
        return torch.cat([rows, rows**2], 2)


class Sign(Symbolizer):
    """Below or above 0."""

    name = "sign"
    n_symbols = 2

    def _transform(self, series):
        return np.where(series.values < 0, 1, 2)


# --- parameters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"segment_sizes": (4, 16)}, r"Segments\(sizes="),
        ({"n_bins": 5}, r"Segments\(symbols=SAX\("),
        ({"symbolizer": "sfa"}, r"Segments\(symbols="),
        ({"latent_dim": 8}, r"Segments\(latent_dim="),
        ({"max_epochs": 8}, r"Segments\(max_epochs="),
        ({"callbacks": []}, r"Segments\(callbacks="),
        ({"encoder": "auto", "positional_encoding": True}, r"Segments\(positional_encoding="),
    ],
)
def test_old_parameters_name_the_new_ones(old, new):
    with pytest.raises(InvalidParameterError, match=f"TimeSliverClassifier\\({new}"):
        TimeSliverClassifier(**old)


def test_every_parameter_of_segments_is_known_to_have_moved():
    for name in Segments().get_params(deep=False):
        with pytest.raises(InvalidParameterError, match=f"{name!r} is a parameter of the encoder"):
            TimeSliverClassifier(**{name: None})


def test_unknown_parameters_are_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'segments'"):
        TimeSliverClassifier(segments=3)
    with pytest.raises(TypeError, match="projection"):
        Segments(projection_dim=3)


@pytest.mark.parametrize("name", list(PRESETS))
def test_presets(name):
    encoder = Segments.preset(name)
    encoder.check()
    assert repr(encoder) == repr(Segments(**PRESETS[name]))


def test_a_preset_that_is_changed_stays_as_it_was_for_others():
    Segments.preset("LowVar").set_params(symbols__n_bins=3)
    assert Segments.preset("LowVar").symbols.n_bins == 20


def test_an_unknown_preset():
    with pytest.raises(InvalidParameterError, match="'FreqSum', 'SeqComb-UV'"):
        Segments.preset("Freqsum")


def test_encoders_by_name():
    assert encoders.names()[0] == "segments"
    assert repr(encoders.create("segments")) == "Segments()"
    encoder = Segments(depth=1)
    assert encoders.create(encoder) is encoder


# --- several networks -----------------------------------------------------------------------------


def test_seeds_are_averaged_exactly():
    model = small(n_estimators=3, max_epochs=3).fit(X, y)
    assert len(model.network_.parts) == 3
    assert sorted({record["member"] for record in model.history_}) == [0, 1, 2]
    assert model.n_iter_ == len(model.history_) == 9
    batch = model._batch(model._read(X))
    parts = [TimeSliverNetwork([part], 2) for part in model.network_.parts]
    together = sum(part(batch) for part in parts) + model.network_.bias
    np.testing.assert_allclose(model.logits(X), together.detach(), rtol=1e-4, atol=1e-5)
    textbook = dense.logits(model.network_, batch).detach()
    np.testing.assert_allclose(model.logits(X), textbook, rtol=1e-4, atol=1e-5)
    weights = [part.terms[0][0].weight() for part in model.network_.parts]
    assert not torch.allclose(weights[0], weights[1])
    assert not torch.allclose(weights[1], weights[2])
    # the first seed is that of a model with one
    single = small(max_epochs=3).fit(X, y).network_
    torch.testing.assert_close(weights[0] * 3, single.parts[0].terms[0][0].weight())
    first = model.network_.parts[0].encoders.state_dict()
    for name, weight in single.parts[0].encoders.state_dict().items():
        assert torch.equal(first[name], weight)


def test_a_model_of_several_seeds_is_the_mean_of_its_members(monkeypatch):
    trained = []
    mean = TimeSliverNetwork.mean
    monkeypatch.setattr(
        TimeSliverNetwork, "mean", lambda networks: trained.extend(networks) or mean(networks)
    )
    several = [small_segments(max_epochs=2), Slopes(), small_segments(max_epochs=2, step=2)]
    model = small(encoder=several, n_estimators=2).fit(X, y)
    assert len(trained) == 6
    assert [part.view for part in model.network_.parts] == [0, 0, 1, 1, 2, 2]
    batch = model._batch(model._read(X))
    logits = torch.stack([network(batch) for network in trained]).mean(0)
    np.testing.assert_allclose(model.logits(X), logits.detach(), rtol=1e-4, atol=1e-5)
    shares = model.explain(X, target="all")
    np.testing.assert_allclose(shares.base + shares.net.sum(axis=1), shares.logit, atol=1e-4)


def test_a_list_of_encoders():
    several = [
        small_segments(symbols=["sax", Clock(3)], channels="separate"),
        small_segments(sizes=(0.2,), depth=1),
        small_segments(symbols="one", step=3),
    ]
    model = small(encoder=several).fit(X, y)
    assert [len(part.terms) for part in model.network_.parts] == [2, 1, 2]
    assert [encoder.sizes for encoder in model.encoders_] == [(2, 3), (6,), (2, 3)]
    assert [len(of_view) for of_view in model.symbolizers_] == [2, 1, 1]
    assert [view.step for view in model._batch(model._read(X)).views] == [1, 1, 3]
    assert model.score(X, y) > 0.9
    alone = [small(encoder=one).fit(X, y) for one in several]
    mean = np.mean([one.logits(X) for one in alone], axis=0)
    np.testing.assert_allclose(model.logits(X), mean, rtol=1e-4, atol=1e-5)
    base = np.mean([one.explain(X, target=1).base for one in alone], axis=0)
    np.testing.assert_allclose(model.explain(X, target=1).base, base, rtol=1e-4, atol=1e-5)
    plain = {"target": 1, "background": None, "smoothing": 0}
    net = np.mean([one.explain(X, **plain).net for one in alone], axis=0)
    np.testing.assert_allclose(model.explain(X, **plain).net, net, rtol=1e-3, atol=1e-5)


# --- sizes and steps ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "length", "sizes"),
    [
        ({"sizes": (4, 1 / 8)}, 80, (4, 10)),
        ({"sizes": (0.1, 0.5)}, 33, (4, 17)),
        ({"sizes": (0.01,)}, 50, (2,)),
        ({"sizes": (0.1, 5, 0.09)}, 50, (5,)),
        ({"sizes": [np.int64(3), np.float64(0.1)]}, 100, (3, 10)),
        ({"sizes": (0.1,), "step": 4}, 100, (3,)),
        ({"sizes": (0.9999,)}, 1, (2,)),
    ],
)
def test_sizes_may_be_shares_of_the_length(settings, length, sizes):
    encoder = Segments(**settings)
    encoder.check()
    resolved = encoder.resolved(length)
    assert resolved.sizes == sizes
    assert encoder.sizes is settings["sizes"]
    assert resolved.resolved(length).sizes == sizes


@pytest.mark.parametrize(
    ("length", "step"), [(1, 1), (256, 1), (257, 2), (512, 2), (513, 3), (2560, 10)]
)
def test_the_automatic_step_leaves_at_most_256_points(length, step):
    assert Segments(step="auto").resolved(length).step == step


def test_long_series_are_seen_in_steps():
    long, labels, _ = bumps(n_timepoints=300)
    model = small(step="auto", sizes=(2, 0.02)).fit(long, labels)
    [encoder] = model.encoders_
    assert encoder.step == 2
    assert encoder.sizes == (2, 3)
    [view] = model._batch(model._read(long)).views
    assert view.values.shape == (60, 1, 150)
    assert model.encoder.step == "auto"
    shares = model.explain(long)
    assert shares.positive.shape == (60, 300)
    np.testing.assert_allclose(shares.base + shares.net.sum(axis=1), shares.logit, atol=1e-4)


# --- mirrored cases -------------------------------------------------------------------------------


def test_every_case_is_learned_from_in_four_versions():
    cases = [np.array([[1.0, 2.0, np.nan, 8.0]]), np.array([[5.0, 3.0]])]
    series = as_series(cases)
    turned, of_case = Segments(augment="mirror").augmented(series, np.array([2.0]))
    assert of_case.tolist() == [0, 1] * 4
    assert turned.lengths.tolist() == [4, 2] * 4
    nan = np.nan
    np.testing.assert_array_equal(
        turned.with_gaps[:, 0],
        [
            [1, 2, nan, 8],
            [5, 3, nan, nan],
            [8, nan, 2, 1],
            [3, 5, nan, nan],
            [3, 2, nan, -4],
            [-1, 1, nan, nan],
            [-4, nan, 2, 3],
            [1, -1, nan, nan],
        ],
    )
    assert (turned.values[~turned.observed] == 0).all()
    same, of_case = Segments().augmented(series, np.array([2.0]))
    assert same is series
    assert of_case.tolist() == [0, 1]


def test_channels_are_mirrored_about_their_own_means():
    values = np.random.default_rng(0).normal(size=(3, 2, 5)).astype(np.float32)
    mean = np.array([1.0, -3.0])
    turned, _ = Segments(augment="mirror").augmented(as_series(values), mean)
    assert turned.values.dtype == np.float32
    np.testing.assert_allclose(turned.values[:3], values)
    np.testing.assert_allclose(turned.values[3:6], values[:, :, ::-1])
    np.testing.assert_allclose(turned.values[6:9], 2 * mean[:, None] - values, rtol=1e-6)
    mirrored = 2 * mean[:, None] - values[:, :, ::-1]
    np.testing.assert_allclose(turned.values[9:], mirrored, rtol=1e-6)


@pytest.mark.parametrize("own", [False, True])
def test_only_training_cases_are_mirrored(own, monkeypatch):
    given, labels, _ = bumps(160)
    seen = []

    def watched(network, cases, validation, how, seed, callbacks=()):
        seen.append((cases, validation))
        return solve(network, cases, validation, how, seed, callbacks)

    monkeypatch.setattr("timesliver.estimator.base.solve", watched)
    weight = np.linspace(0.5, 1.5, 160)
    train, held_out = validation_split(labels, 0.1, draw_seed(0))
    data = {}
    if own:
        train, held_out = np.arange(160), np.arange(20)
        data = {"validation_data": (given[:20], labels[:20])}
    model = small(augment="mirror", max_epochs=1)
    model.fit(given, labels, sample_weight=weight, **data)
    [(cases, validation)] = seen
    n = len(train)
    assert len(cases) == 4 * n
    batch = model._batch(as_series(given))
    assert torch.equal(cases.batch.values[:n], batch.values[train])
    assert torch.equal(validation.batch.values, batch.values[held_out])
    np.testing.assert_array_equal(cases.y.reshape(4, n), np.tile(cases.y[:n], (4, 1)))
    weights = cases.weight.reshape(4, n)
    np.testing.assert_array_equal(weights, np.tile(weights[0], (4, 1)))
    values = cases.batch.values
    torch.testing.assert_close(values[2 * n : 3 * n], -values[:n], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values[n : 2 * n], values[:n].flip(2))
    torch.testing.assert_close(cases.batch.views[0].values, values)
    # the average of explanations is that of the cases as they are
    everything = model.network_.terms[0].average.clone()
    model.network_.learn_average(batch)
    torch.testing.assert_close(everything, model.network_.terms[0].average)


# --- closed form ----------------------------------------------------------------------------------


def features(model, series):
    """P of all terms, in double precision, one term after another."""
    batch = model._batch(as_series(series)).to(torch.float64)
    network = model.network_.double()
    P = [term.P.flatten(1).detach().numpy() for term in dense.terms(network, batch)]
    model.network_.float()
    return np.concatenate(P, axis=1)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "encoder",
    [
        Slopes(),
        Slopes(["sax", "one", Clock(3)]),
        Slopes("one", separate=True),
        Slopes(SAX(3), step=2, separate=True),
    ],
    ids=str,
)
def test_weights_in_closed_form_are_those_of_scikit_learn(encoder, n_classes):
    given, labels, _ = bumps(90, n_channels=2, n_classes=n_classes)
    given[3, 0, 4:9] = np.nan
    given[5, :, 20:] = np.nan
    model = TimeSliverClassifier(encoder, random_state=0).fit(given, labels)
    [record] = model.history_
    assert model.n_iter_ == 1
    alphas = Ridge().strengths
    expected = make_pipeline(StandardScaler(), RidgeClassifierCV(alphas))
    P = features(model, given)
    expected.fit(P, labels)
    assert record["strength"] == pytest.approx(expected[-1].alpha_)
    decisions = expected.decision_function(P)
    if n_classes == 2:
        decisions = np.stack([-decisions, decisions], axis=1)
    factor = record["temperature"]
    assert factor > 0
    scale = np.abs(factor * decisions).max()
    np.testing.assert_allclose(model.logits(given), factor * decisions, atol=1e-4 * scale)
    np.testing.assert_array_equal(model.predict(given), expected.predict(P))
    for method in ("additive", "timesliver"):
        scores = model.explain(given[:7], method=method)
        assert (scores.magnitude > 0).any()
    shares = model.explain(given, target="all")
    scale = 1 + shares.magnitude.sum(axis=1).max()
    total = shares.base + shares.net.sum(axis=1)
    np.testing.assert_allclose(total, shares.logit, atol=1e-5 * scale)


def test_closed_form_learns_and_repeats():
    given, labels, _ = bumps(90)
    model = TimeSliverClassifier(Slopes(), random_state=0).fit(given, labels)
    assert model.score(given, labels) > 0.9
    assert model.history_[0]["validation_accuracy"] > 0.8
    again = TimeSliverClassifier(Slopes(), random_state=1, verbose=1).fit(given, labels)
    np.testing.assert_array_equal(again.logits(given), model.logits(given))
    with_validation = TimeSliverClassifier(Slopes()).fit(
        given, labels, validation_data=(given[:10], labels[:10])
    )
    np.testing.assert_array_equal(with_validation.logits(given), model.logits(given))
    unsure = np.where(np.random.default_rng(0).random(90) < 0.3, 1 - labels, labels)
    shares = [
        TimeSliverClassifier(Slopes(), class_weight={0: weight, 1: 1.0})
        .fit(given, unsure)
        .predict_proba(given)[:, 0]
        .mean()
        for weight in (0.3, 1.0, 3.0)
    ]
    assert shares[0] < shares[1] - 0.1 < shares[2] - 0.2


def test_rows_of_the_wrong_shape():
    class Flat(Slopes):
        def rows(self, x):
            return x.mean(2)

    with pytest.raises(InvalidParameterError, match=r"Flat.rows must give one row per stretch"):
        TimeSliverClassifier(Flat()).fit(X, y)


# --- parts of other packages ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoder", "group", "kind"),
    [
        (Slopes(), "timesliver.encoders", "Slopes is no registered encoder"),
        ([small_segments(max_epochs=1), Slopes()], "timesliver.encoders", "Slopes is no"),
        (
            small_segments(max_epochs=1, symbols=Sign()),
            "timesliver.symbols",
            "Sign is no registered symbolizer",
        ),
        (
            small_segments(max_epochs=1, symbols=["sax", Sign()]),
            "timesliver.symbols",
            "Sign is no registered symbolizer",
        ),
    ],
    ids=["encoder", "one of several", "symbolizer", "one of two"],
)
def test_unregistered_parts_work_but_are_not_saved(tmp_path, encoder, group, kind):
    model = small(encoder=encoder).fit(X, y)
    assert set(model.predict(X)) <= {0, 1}
    shares = model.explain(X)
    np.testing.assert_allclose(shares.base + shares.net.sum(axis=1), shares.logit, atol=1e-4)
    assert (model.explain(X, method="timesliver").magnitude > 0).any()
    with pytest.raises(InvalidParameterError, match=kind) as error:
        model.save(tmp_path / "model")
    assert f'[project.entry-points."{group}"]' in str(error.value)
    assert not list(tmp_path.iterdir())


class EntryPoint:
    """What importlib finds of an installed package."""

    def __init__(self, name, part):
        self.name, self.part = name, part

    def load(self):
        return self.part


def test_registered_parts_of_another_package_are_saved(tmp_path, monkeypatch):
    brought = {
        "timesliver.encoders": [EntryPoint("slopes", Slopes)],
        "timesliver.symbols": [EntryPoint("sign", Sign), EntryPoint("wrong", dict)],
    }
    monkeypatch.setattr("timesliver.registry.entry_points", lambda group: brought[group])
    assert encoders.names()[0] == "segments"
    assert encoders.names()[-1] == "slopes"
    model = TimeSliverClassifier(["slopes", Slopes(symbols=["sign", "sax"], step=2)]).fit(X, y)
    model.save(tmp_path / "model")
    again = TimeSliverClassifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.logits(X), model.logits(X))
    np.testing.assert_array_equal(again.explain(X).net, model.explain(X).net)
    assert repr(again.encoders_) == repr(model.encoders_)
    with pytest.raises(InvalidParameterError, match="which is no subclass of Symbolizer"):
        small(symbols="wrong").fit(X, y)
    monkeypatch.setattr("timesliver.registry.entry_points", lambda group: [])
    with pytest.raises(ValueError, match="there is no encoder 'slopes'"):
        TimeSliverClassifier.load(tmp_path / "model")
