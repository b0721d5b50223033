"""A model goes to a file and comes back, and no file can do harm."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, safe_open, save_file

from classifier.conftest import bumps, small
from timesliver import TimeSliverClassifier
from timesliver.errors import InvalidInputError, NotFittedError
from timesliver.symbols import SAX

GOLDEN = Path(__file__).parent.parent / "golden"
X, y, _ = bumps(n_channels=2)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.safetensors"
    small(max_epochs=2).fit(X, y).save(path)
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
        ({"channels": "shared", "symbolizer": "sfa", "class_weight": "balanced"}, [False, True]),
        ({"symbolizer": SAX(n_bins=4, normalize="global"), "window": "bell"}, [0.0, 1.0]),
        ({"symbolizer": "raw", "positional_encoding": True}, np.array(["a", "b"], dtype=object)),
        ({"pooling": (2, 3), "random_state": np.random.RandomState(0)}, [-7, 7]),
        ({"n_bins": np.int64(6), "learning_rate": np.float32(0.01)}, [0, 1]),
    ],
)
def test_round_trip(tmp_path, settings, labels):
    model = small(max_epochs=2, **settings).fit(X, np.asarray(labels)[y])
    model.save(tmp_path / "model.safetensors")
    again = TimeSliverClassifier.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(again.logits(X), model.logits(X))
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.explain(X).positive, model.explain(X).positive)
    timeless = [{k: v for k, v in r.items() if k != "seconds"} for r in model.history_]
    assert again.history_ == timeless
    kept = set(model.get_params()) - {"random_state", "symbolizer"}
    assert {k: again.get_params()[k] for k in kept} == {k: model.get_params()[k] for k in kept}
    assert repr(again.symbolizer_) == repr(model.symbolizer_)


def test_the_same_seed_gives_the_same_file(tmp_path):
    for name in ("one", "two"):
        small(max_epochs=2).fit(X, y).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_the_file_says_what_it_is(saved):
    _, header = parts(saved)
    assert header["kind"] == "TimeSliverClassifier"
    assert set(header["versions"]) == {"timesliver", "torch", "numpy"}
    assert header["parameters"]["latent_dim"] == 8


def test_a_model_of_the_first_format_still_loads():
    model = TimeSliverClassifier.load(GOLDEN / "model-format-1.safetensors")
    expected = np.load(GOLDEN / "model-format-1.npz")
    np.testing.assert_allclose(model.logits(expected["X"]), expected["logits"], atol=1e-5)
    scores = model.explain(expected["X"])
    np.testing.assert_allclose(scores.positive, expected["positive"], rtol=1e-3, atol=1e-5)
    np.testing.assert_array_equal(model.classes_, ["fast", "slow"])


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


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("format",), 2),
        (("format",), None),
        (("kind",), "Pickle"),
        (("parameters", "latent_dim"), 10**12),
        (("parameters", "latent_dim"), "8"),
        (("parameters", "depth"), 10**9),
        (("parameters", "segment_sizes"), list(range(1, 10**5))),
        (("parameters", "segment_sizes"), None),
        (("parameters", "channels"), "__import__('os')"),
        (("parameters", "evil"), 1),
        (("parameters",), None),
        (("classes",), ["<U1", ["a"]]),
        (("classes",), ["object", [{"a": 1}, None]]),
        (("classes",), "ab"),
        (("fitted", "n_channels_"), 3),
        (("fitted", "n_channels_"), 10**15),
        (("fitted",), {}),
        (("symbols", "name"), "os.system"),
        (("symbols", "settings"), {"n_bins": 10**30}),
        (("symbols", "settings"), {"command": "rm"}),
        (("symbols", "n_channels"), 5),
        (("symbols",), None),
        (("positional_encoding",), True),
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


def test_tensors_that_do_not_fit(tmp_path, saved):
    tensors, header = parts(saved)
    for name in tensors:
        missing = {k: v for k, v in tensors.items() if k != name}
        with pytest.raises(InvalidInputError, match="does not describe a model"):
            TimeSliverClassifier.load(rewritten(tmp_path, missing, header))
        wrong = tensors | {name: np.zeros((2, 2, 2), np.float32)}
        with pytest.raises(InvalidInputError, match="does not describe a model"):
            TimeSliverClassifier.load(rewritten(tmp_path, wrong, header))
