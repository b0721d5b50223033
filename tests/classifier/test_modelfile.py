"""A model goes to a file and comes back, and no file can do harm."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, safe_open, save_file

from classifier.conftest import bumps, small, small_segments
from timesliver import TimeSliverClassifier
from timesliver.encoders import Encoder
from timesliver.errors import InvalidInputError, NotFittedError
from timesliver.registry import to_description
from timesliver.symbols import SAX, Clock, Symbolizer

GOLDEN = Path(__file__).parent.parent / "golden"
X, y, _ = bumps(n_channels=2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    small(max_epochs=2).fit(X, y).save(path)
    return path


@pytest.fixture(scope="module")
def saved_several(tmp_path_factory):
    """Two encoders, one of them with two sets of symbols, which learned something."""
    path = tmp_path_factory.mktemp("models") / "several.safetensors"
    encoders = [
        small_segments(max_epochs=1, symbols=[SAX(4, "global"), Clock(3)]),
        small_segments(max_epochs=1, symbols="sfa", positional_encoding=True, step=2),
    ]
    small(encoder=encoders, n_estimators=2).fit(X, y).save(path)
    return path


def parts(path):
    with safe_open(path, "numpy") as file:
        return load_file(path), json.loads(file.metadata()["timesliver"])


def rewritten(tmp_path, tensors, header):
    path = tmp_path / "changed.safetensors"
    save_file(tensors, path, {"timesliver": json.dumps(header)})
    return path


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ({}, [0, 1]),
        ({"channels": "separate", "class_weight": {"a": 1.0, "b": 2.0}}, ["a", "b"]),
        ({"channels": "shared", "symbols": "sfa", "class_weight": "balanced"}, [False, True]),
        ({"symbols": SAX(n_bins=4, normalize="global"), "window": "bell"}, [0.0, 1.0]),
        ({"symbols": "one", "positional_encoding": True}, np.array(["a", "b"], dtype=object)),
        ({"pooling": (2, 3), "random_state": np.random.RandomState(0)}, [-7, 7]),
        ({"symbols": SAX(np.int64(6)), "learning_rate": np.float32(0.01)}, [0, 1]),
        ({"latent_dim": np.int32(5), "sparsity": np.float32(0.01)}, [0, 1]),
        ({"symbols": ["sax", Clock(3)], "sizes": [0.2, 3], "n_estimators": 2}, [0, 1]),
        ({"positional_encoding": "auto", "step": "auto", "augment": "mirror"}, [0, 1]),
        ({"callbacks": [lambda record: None]}, [0, 1]),
        ({"encoder": "auto"}, [0, 1]),
        ({"encoder": [small_segments(symbols="one", step=3), small_segments(depth=1)]}, [0, 1]),
    ],
)
def test_round_trip(tmp_path, settings, labels):
    if settings.get("encoder") == "auto":
        settings = {"encoder": "segments"}
    else:
        settings = {"max_epochs": 2} | settings
    model = small(**settings).fit(X, np.asarray(labels)[y])
    model.save(tmp_path / "model.safetensors")
    again = TimeSliverClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.logits(X), model.logits(X))
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for method in ("additive", "timesliver"):
        ours, theirs = again.explain(X, method=method), model.explain(X, method=method)
        np.testing.assert_array_equal(ours.positive, theirs.positive)
        np.testing.assert_array_equal(ours.base, theirs.base)
    timeless = [{k: v for k, v in r.items() if k != "seconds"} for r in model.history_]
    assert again.history_ == timeless
    kept = {
        name
        for name, value in model.get_params().items()
        if name not in ("random_state", "encoder__callbacks")
        and not isinstance(value, Encoder | Symbolizer | list | np.random.RandomState)
    }
    assert {k: again.get_params()[k] for k in kept} == {k: model.get_params()[k] for k in kept}
    assert type(again.encoder) is type(model.encoder)
    for ours, theirs in zip(again.encoders_, model.encoders_, strict=True):
        assert to_description(ours) == to_description(theirs)
        assert ours.sizes == theirs.sizes
    for ours, theirs in zip(again.symbolizers_, model.symbolizers_, strict=True):
        assert to_description(ours) == to_description(theirs)
    small(encoder=again.encoder).fit(X, y)  # what was read can be learned with again


def test_watchers_are_not_written(tmp_path):
    """They belong to the moment, not to the model."""
    model = small(max_epochs=1, callbacks=[lambda record: None]).fit(X, y)
    model.save(tmp_path / "model")
    again = TimeSliverClassifier.load(tmp_path / "model")
    assert again.encoder.callbacks is None
    assert again.encoders_[0].callbacks is None


def test_the_same_seed_gives_the_same_file(tmp_path):
    for name in ("one", "two"):
        small(max_epochs=2).fit(X, y).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_file_says_what_it_is(saved):
    _, header = parts(saved)
    assert header["kind"] == "TimeSliverClassifier"
    assert set(header["versions"]) == {"timesliver", "torch", "numpy"}
    assert header["format"] == 2
    assert header["parameters"]["encoder"]["encoder"] == "segments"
    assert header["parameters"]["encoder"]["settings"]["latent_dim"] == 8


def test_a_model_of_the_first_format_still_loads():
    model = TimeSliverClassifier.load(GOLDEN / "model-format-1.safetensors")
    expected = np.load(GOLDEN / "model-format-1.npz")
    np.testing.assert_allclose(model.logits(expected["X"]), expected["logits"], atol=1e-5)
    scores = model.explain(expected["X"], method="timesliver")
    np.testing.assert_allclose(scores.positive, expected["positive"], rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(model.classes_, ["fast", "slow"])
    assert model.encoder.sizes == (3, 6)
    assert repr(model.encoder.symbols) == "SAX(n_bins=4)"
    assert model.class_weight == {"slow": 1.0, "fast": 2.0}
    shares = model.explain(expected["X"], target="all")
    np.testing.assert_array_equal(shares.target, np.repeat([0, 1], 40))
    np.testing.assert_allclose(shares.net.sum(axis=1) + shares.base, shares.logit, atol=1e-4)


def test_a_model_of_the_second_format_loads():
    model = TimeSliverClassifier.load(GOLDEN / "model-format-2.safetensors")
    expected = np.load(GOLDEN / "model-format-2.npz")
    np.testing.assert_allclose(model.logits(expected["X"]), expected["logits"], atol=1e-5)
    for method in ("timesliver", "additive"):
        scores = model.explain(expected["X"], method=method).positive_by_channel
        stored = expected[f"{method}_positive"]
        np.testing.assert_allclose(scores, stored, rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(model.classes_, ["fast", "slow"])
    assert [one.sizes for one in model.encoder] == [(3, 0.25), (2,)]
    assert [one.sizes for one in model.encoders_] == [(3, 6), (2,)]
    assert repr(model.symbolizers_) == "[[SAX(n_bins=4)], [Clock(n_bins=3), SFA(alphabet_size=2)]]"
    assert len(model.network_.parts) == 4
    assert model.class_weight == {"slow": 1.0, "fast": 2.0}


def test_unfitted_models_have_nothing_to_save(tmp_path):
    with pytest.raises(NotFittedError):
        small().save(tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_keeps_the_old_file(tmp_path, saved, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")
    model = TimeSliverClassifier.load(saved)

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        model.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["model.safetensors"]
    assert path.read_bytes() == b"old"


def test_places_that_cannot_be_written(tmp_path, saved):
    model = TimeSliverClassifier.load(saved)
    with pytest.raises(InvalidInputError, match="does not exist"):
        model.save(tmp_path / "nowhere" / "model.safetensors")
    with pytest.raises(InvalidInputError, match="is a folder"):
        model.save(tmp_path)


def test_truncated_and_foreign_files(tmp_path, saved):
    whole = saved.read_bytes()
    path = tmp_path / "model.safetensors"
    for length in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(InvalidInputError, match="is not a whole safetensors file"):
            TimeSliverClassifier.load(path)
    for content in (b"PK\x03\x04 a zip file", b"\x80\x04. a pickle", b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match="is not a whole safetensors file"):
            TimeSliverClassifier.load(path)
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(InvalidInputError, match="not a timesliver model"):
        TimeSliverClassifier.load(path)
    save_file({"a": np.zeros(3)}, path, {"timesliver": "[1]"})
    with pytest.raises(InvalidInputError, match="damaged header"):
        TimeSliverClassifier.load(path)
    save_file({"a": np.zeros(3)}, path, {"timesliver": "[" * 100_000})
    with pytest.raises(InvalidInputError, match="not a whole"):
        TimeSliverClassifier.load(path)
    with pytest.raises(InvalidInputError, match="there is no model file"):
        TimeSliverClassifier.load(tmp_path / "missing.safetensors")


ENCODER = ("parameters", "encoder", "settings")
VIEW = ("views", 0)
PART = ("parts", 0, "encoder", "settings")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), 3),
        (("format",), 1),
        (("format",), None),
        (("format",), "2"),
        (("kind",), "Pickle"),
        ((*ENCODER, "evil"), 1),
        (("parameters", "evil"), 1),
        (("parameters", "n_bins"), 5),
        (("parameters",), None),
        (("parameters", "encoder", "encoder"), "os.system"),
        ((*PART, "latent_dim"), 10**12),
        ((*PART, "latent_dim"), "8"),
        ((*PART, "latent_dim"), 9),
        ((*PART, "depth"), 10**9),
        ((*PART, "depth"), 2),
        ((*PART, "sizes"), list(range(1, 10**5))),
        ((*PART, "sizes"), None),
        ((*PART, "sizes"), [2]),
        ((*PART, "channels"), "__import__('os')"),
        ((*PART, "positional_encoding"), True),
        (("parts", 0, "encoder", "encoder"), "os.system"),
        (("parts", 0, "view"), 1),
        (("parts", 0, "view"), -2),
        (("parts", 0, "view"), "a"),
        (("parts",), []),
        (("parts",), None),
        (("classes",), ["<U1", ["a"]]),
        (("classes",), ["object", [{"a": 1}, None]]),
        (("classes",), "ab"),
        (("fitted", "n_channels_"), 3),
        (("fitted", "n_channels_"), 10**15),
        (("fitted",), {}),
        ((*VIEW, "symbols", 0, "name"), "os.system"),
        ((*VIEW, "symbols", 0, "settings"), {"n_bins": 10**30}),
        ((*VIEW, "symbols", 0, "settings"), {"n_bins": 6}),
        ((*VIEW, "symbols", 0, "settings"), {"command": "rm"}),
        ((*VIEW, "symbols", 0, "n_channels"), 5),
        ((*VIEW, "symbols", 0), None),
        ((*VIEW, "symbols"), []),
        ((*VIEW, "symbols"), None),
        ((*VIEW, "encoder"), None),
        (("views",), []),
        (("views",), None),
    ],
)
def test_headers_that_lie(tmp_path, saved, path, value):
    tensors, header = parts(saved)
    place = header
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InvalidInputError):
        TimeSliverClassifier.load(rewritten(tmp_path, tensors, header))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("parameters", "latent_dim"), 10**12),
        (("parameters", "latent_dim"), "8"),
        (("parameters", "depth"), 10**9),
        (("parameters", "segment_sizes"), list(range(1, 10**5))),
        (("parameters", "segment_sizes"), None),
        (("parameters", "channels"), "__import__('os')"),
        (("parameters", "evil"), 1),
        (("parameters",), None),
        (("classes",), "ab"),
        (("fitted", "n_channels_"), 3),
        (("fitted",), {}),
        (("symbols", "name"), "os.system"),
        (("symbols", "name"), "raw"),
        (("symbols", "settings"), {"n_bins": 10**30}),
        (("symbols", "settings"), {"command": "rm"}),
        (("symbols", "n_channels"), 5),
        (("symbols",), None),
        (("positional_encoding",), False),
    ],
)
def test_headers_of_the_first_format_that_lie(tmp_path, path, value):
    tensors, header = parts(GOLDEN / "model-format-1.safetensors")
    place = header
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(InvalidInputError):
        TimeSliverClassifier.load(rewritten(tmp_path, tensors, header))


@pytest.mark.parametrize("which", ["saved", "saved_several", "first format"])
def test_tensors_that_do_not_fit(tmp_path, request, which):
    first = GOLDEN / "model-format-1.safetensors"
    tensors, header = parts(first if "first" in which else request.getfixturevalue(which))
    for name in tensors:
        if name.startswith("input.symbols"):
            continue
        missing = {k: v for k, v in tensors.items() if k != name}
        with pytest.raises(InvalidInputError, match="does not describe a model"):
            TimeSliverClassifier.load(rewritten(tmp_path, missing, header))
        wrong = tensors | {name: np.zeros((2, 2, 2), np.float32)}
        with pytest.raises(InvalidInputError, match="does not describe a model"):
            TimeSliverClassifier.load(rewritten(tmp_path, wrong, header))
