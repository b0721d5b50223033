import io
import json
import pickle
import zipfile
from dataclasses import fields

import numpy as np
import pytest

from timesliver import Attribution
from timesliver.attribution.storage import FORMAT
from timesliver.errors import InvalidInputError

RNG = np.random.default_rng(3)


def objects(*labels):
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array


def make(classes=None, dtype=np.float64, full=True):
    classes = np.array(["a", "b", "ü"]) if classes is None else classes
    scores = RNG.random((2, 2, 3, 4)).astype(dtype)
    optional = {}
    if full:
        series = RNG.normal(size=(2, 3, 4)).astype(dtype)
        series[0, :, 3] = np.nan
        optional = {
            "positive_by_symbol": RNG.random((2, 3, 5)).astype(dtype),
            "negative_by_symbol": RNG.random((2, 3, 5)).astype(dtype),
            "series": series,
            "probabilities": RNG.random((2, len(classes))).astype(dtype),
            "seconds": RNG.random(2).astype(dtype),
            "forward_passes": RNG.random(2).astype(dtype),
            "case": np.array([7, 3]),
            "has_sign": False,
            "has_channels": False,
        }
    numbers = RNG.random((2, 2)).astype(dtype)
    return Attribution(*scores, *numbers, np.array([1, 0]), classes, "additive", **optional)


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "scores.npz"
    make().save(path)
    return path


def rewrite(path, **changes):
    """Write the arrays of a file again, with some replaced, or left out where None."""
    with np.load(path) as archive:
        arrays = dict(archive) | changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


def header(**changes):
    return np.array(json.dumps({"format": FORMAT, "method": "additive"} | changes))


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "classes",
    [
        np.array(["a", "b", "ü\n"]),
        np.array([1, 2, 3], dtype=np.int16),
        np.array([0.5, np.inf, 2]),
        np.array([True, False]),
        objects("a", 1, 2.5, True),
        objects("1", 1, "True", float("inf")),
        objects("a", "b"),
    ],
    ids=str,
)
def test_round_trip(tmp_path, classes, dtype, full):
    attribution = make(classes, dtype, full)
    attribution.save(tmp_path / "any name")
    assert [file.name for file in tmp_path.iterdir()] == ["any name"]
    loaded = Attribution.load(tmp_path / "any name")
    for field in fields(Attribution):
        want, got = getattr(attribution, field.name), getattr(loaded, field.name)
        assert type(got) is type(want)
        if isinstance(want, np.ndarray):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)
        else:
            assert got == want
    assert [type(label) for label in loaded.classes] == [type(label) for label in classes]


def test_numpy_labels_among_objects_become_plain(tmp_path):
    make(objects(np.int64(3), np.str_("x"), np.float32(0.5))).save(tmp_path / "a.npz")
    loaded = Attribution.load(tmp_path / "a.npz").classes
    assert [type(label) for label in loaded] == [int, str, float]
    assert loaded.tolist() == [3, "x", 0.5]


def test_the_file_holds_no_pickle_and_a_format_number(tmp_path):
    make(objects("a", 1)).save(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    assert json.loads(str(arrays["header"]))["format"] == FORMAT == 3


def test_a_file_of_the_first_format_still_reads(saved):
    with np.load(saved) as archive:
        written = json.loads(str(archive["header"]))
    old = {name: written[name] for name in ("method", "classes")} | {"format": 1}
    with np.load(saved) as archive:
        base = archive["base"]
    gone = dict.fromkeys(("seconds", "forward_passes", "case", "base"))
    rewrite(saved, header=np.array(json.dumps(old)), bias=base, **gone)
    loaded = Attribution.load(saved)
    assert loaded.seconds is None
    assert loaded.forward_passes is None
    assert loaded.has_sign
    assert loaded.has_channels
    assert (loaded.method, loaded.classes.tolist()) == ("additive", ["a", "b", "ü"])
    assert loaded.case.tolist() == [0, 1]
    np.testing.assert_array_equal(loaded.base, base)


def test_a_file_of_the_second_format_still_reads(saved):
    """The base was called bias, which also held a background if there was one."""
    expected = Attribution.load(saved)
    with np.load(saved) as archive:
        written, base = json.loads(str(archive["header"])), archive["base"]
    old = np.array(json.dumps(written | {"format": 2}))
    rewrite(saved, header=old, bias=base, base=None, case=None)
    loaded = Attribution.load(saved)
    np.testing.assert_array_equal(loaded.base, expected.base)
    assert loaded.case.tolist() == [0, 1]
    assert not loaded.has_sign
    rewrite(saved, header=header())
    with pytest.raises(InvalidInputError, match="missing are base, unknown are bias"):
        Attribution.load(saved)


@pytest.mark.parametrize("label", [None, (1, 2), b"bytes", 1j])
def test_labels_that_cannot_be_saved(tmp_path, label):
    with pytest.raises(InvalidInputError, match=r"the class label .* cannot be saved; use labels"):
        make(objects("a", label)).save(tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())


def test_a_failed_save_keeps_the_older_file(saved):
    before = saved.read_bytes()
    with pytest.raises(InvalidInputError):
        make(objects("a", None)).save(saved)
    assert saved.read_bytes() == before
    with pytest.raises(InvalidInputError, match=r"the folder .* does not exist"):
        make().save(saved.parent / "nowhere" / "a.npz")


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(InvalidInputError, match=r"there is no file .*scores\.npz; check the name"):
        Attribution.load(tmp_path / "scores.npz")
    with pytest.raises(InvalidInputError, match="cannot be read as an attribution"):
        Attribution.load(tmp_path)


def array_file():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK\x03\x04", b"some text", pickle.dumps([1, 2]), array_file()],
    ids=["empty", "start", "text", "pickle", "npy"],
)
def test_files_of_another_kind(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="not an npz file, or it is cut short"):
        Attribution.load(path)


def test_a_file_cut_short_anywhere(saved):
    content = saved.read_bytes()
    for length in range(0, len(content), 41):
        saved.write_bytes(content[:length])
        with pytest.raises(InvalidInputError, match=r"scores\.npz"):
            Attribution.load(saved)


def test_a_damaged_file_gives_our_error_or_loads(saved):
    content = saved.read_bytes()
    n_refused = 0
    for place in range(0, len(content), 13):
        damaged = bytearray(content)
        damaged[place] ^= 0xFF
        saved.write_bytes(damaged)
        try:
            Attribution.load(saved)
        except InvalidInputError:
            n_refused += 1
    assert n_refused > 50


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('code in the file was run')",)


@pytest.mark.parametrize("name", ["header", "logit", "series"])
def test_pickled_objects_are_refused(saved, name):
    rewrite(saved, **{name: objects(Bomb(), Bomb())})
    with pytest.raises(InvalidInputError, match="allow_pickle=False"):
        Attribution.load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"header": None}, "holds no attribution"),
        (
            {"header": header(format=FORMAT + 1)},
            f"has format {FORMAT + 1}, but this version reads formats up to {FORMAT}; install",
        ),
        ({"header": header(format=0)}, "without a format number"),
        ({"header": header(format="1")}, "without a format number"),
        ({"header": np.array("[1]")}, "without a format number"),
        ({"header": np.array("{")}, "cannot be read as an attribution"),
        ({"header": np.array("[" * 100_000)}, "cannot be read as an attribution"),
        ({"header": header(classes="abc")}, "class labels are damaged"),
        ({"header": header(classes=["object", ["a", None]])}, "class labels are damaged"),
        ({"header": header(classes=["<M8[D]", [1, 2]])}, "class labels are damaged"),
        ({"header": header(classes=["object", ["a"]])}, "target must point to one of the 1"),
        ({"logit": None, "extra": np.zeros(1)}, "missing are logit, unknown are extra"),
        ({"logit": np.zeros(3)}, "logit must have one entry for each of the 2 cases"),
        ({"logit": np.array(["a", "b"])}, "logit in .* has the type <U1, expected real numbers"),
        ({"target": np.zeros(2)}, "target in .* has the type float64, expected whole numbers"),
        ({"target": np.array([0, 9])}, "target must point to one of the 3 classes"),
        ({"series": np.zeros((2, 3, 5))}, "series must have shape"),
        ({"case": np.zeros(3, int)}, r"case must have shape \(2,\), got \(3,\)"),
        ({"case": np.zeros(2)}, "case in .* has the type float64, expected whole numbers"),
    ],
)
def test_files_with_the_wrong_content(saved, changes, message):
    rewrite(saved, **changes)
    with pytest.raises(InvalidInputError, match=message):
        Attribution.load(saved)


def test_members_that_are_no_arrays(saved):
    with np.load(saved) as archive:
        names = archive.files
    with zipfile.ZipFile(saved, "w") as archive:
        for name in names:
            archive.writestr(name, "text")
    with pytest.raises(InvalidInputError, match="cannot be read as an attribution"):
        Attribution.load(saved)
