"""Every mistake in a file gets a message with its name, the line, and what was expected."""

import os

import numpy as np
import pytest

from timesliver.datasets import Dataset, read
from timesliver.errors import InvalidInputError, InvalidParameterError

TS = "@classLabel true a b\n@data\n"
ARFF = "@attribute t0 numeric\n@attribute c {a,b}\n@data\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("f.ts", "@timeStamps true\n@data\n(0,1):a\n", r"f\.ts:1: series with time stamps cannot"),
        ("f.ts", "@classLabel true a b\n1,2:a\n", r"f\.ts:2: '1,2:a' stands before the @data"),
        ("f.ts", "@classLabel true a b\n", r"f\.ts:2: no @data line; the file may be cut short"),
        ("f.ts", "@\n@classLabel true a\n", r"f\.ts:3: no @data line"),
        ("f.ts", TS, r"no case after the @data line"),
        ("f.ts", "@classLabel a b\n@data\n", r"f\.ts:1: @classLabel must be followed by true or"),
        ("f.ts", "@dimensions many\n@data\n", r"f\.ts:1: @dimensions needs the number"),
        ("f.ts", "@targetLabel true\n@data\n1:2\n", r"f\.ts:1: .*only classification"),
        ("f.ts", TS + "1,2:a\n1,2:3,4:b\n", r"f\.ts:4: 2 channels, expected 1 and a class label"),
        ("f.ts", TS + "1,2:c\n", r"f\.ts:3: the label 'c' is not among .*\(a, b\)"),
        ("f.ts", TS + "1,2:\n", r"f\.ts:3: no class label at the end"),
        ("f.ts", TS + "1,two:a\n", r"f\.ts:3: value 2 is 'two'; expected a number"),
        ("f.ts", TS + "1,,2:a\n", r"f\.ts:3: value 2 is empty; write \?"),
        ("f.ts", TS + "1,1_0:a\n", r"f\.ts:3: value 2 is '1_0'"),
        ("f.ts", TS + "1,inf:a\n", r"f\.ts:3: value 2 is infinite"),
        ("f.ts", "@equalLength true\n" + TS + "1,2:a\n1:b\n", r"f\.ts:5: a channel of 1 values"),
        ("f.ts", "@data\n1,2:walk\n", r"f\.ts:2: .*'walk'.*needs a line '@classLabel true'"),
        ("f.tsv", "1\t2\t3\n1\t2\n", r"f\.tsv:2: 1 values, but line 1 has 2; fill .* with NaN"),
        ("f.tsv", "1\t2\tx\n", r"f\.tsv:1: value 2 is 'x'"),
        ("f.tsv", "\t2\t3\n", r"f\.tsv:1: no class label"),
        ("f.txt", "1\n2\n", r"f\.txt:1: one cell only"),
        ("f.arff", "@relation x\n", r"f\.arff:2: no @data line"),
        ("f.arff", "@relation x\n@data\n1\n", r"f\.arff:2: no @attribute line"),
        ("f.arff", "hello\n", r"f\.arff:1: 'hello' stands before the @data line"),
        ("f.arff", "@attribute d date\n@data\n", r"f\.arff:1: attributes of the type 'date'"),
        ("f.arff", ARFF, r"no case after the @data line"),
        ("f.arff", ARFF + "1,a\n1\n", r"f\.arff:5: 1 cells, but the header names 2"),
        ("f.arff", ARFF + "1,?\n", r"f\.arff:4: no class label"),
        ("f.arff", ARFF + "'1,a\n", r"f\.arff:4: a quotation mark is not closed"),
        ("f.arff", ARFF + "{0 1}\n", r"f\.arff:4: sparse data"),
        ("f.csv", "1,2,a\n3,4,5,b\n", r"f\.csv:2: 4 cells, but line 1 has 3; every row needs"),
        ("f.csv", "1,2,a\n3,b\n", r"f\.csv:2: 2 cells, but line 1 has 3"),
        ("f.csv", "t0,t1,label\n1,2,a\n3,4,\n", r"f\.csv:3: the label is empty"),
        (
            "f.csv",
            "t0,t1,label\n1,2,a\n3,x,b\n",
            r"f\.csv:3: value 2 is 'x'; .*leave the cell empty",
        ),
        ("f.csv", "t0;t1;label\n1,5;2;a\n", r"f\.csv:2: value 1 is '1,5'; .*decimal point"),
        ("f.csv", "t0,t1,label\n", r"f\.csv:1: a header but no case"),
        ("f.csv", "label\na\n", r"f\.csv:1: no column of values"),
        ("f.csv", "label,1,target\na,1,b\n", r"'label' and 'target' could both be the labels"),
        ("f.csv", "a,1,b\nb,2,c\n", r"first and the last column both hold text"),
        ("f.csv", "case,time,v\n1,0,2\n1,0,3\n", r"f\.csv:3: case '1' has this time .*line 2"),
        ("f.csv", "case,time,channel,value\n1,0,a,2\n1,0,a,3\n", r"f\.csv:3: case '1' has this"),
        ("f.csv", "case,time,v,label\n1,0,2,a\n1,1,3,b\n", r"f\.csv:3: case '1' has the label 'b'"),
        ("f.csv", "case,time,v,label\n1,0,2,\n", r"f\.csv:2: case '1' has no label"),
        ("f.csv", "case,time,v\n1,0,2\n1,,3\n", r"f\.csv:3: the column 'time' is empty"),
        ("f.csv", "case,time,v\n1,soon,2\n", r"f\.csv:2: the time 'soon' is neither"),
        ("f.csv", "case,time,v\n1,0\n", r"f\.csv:2: 2 cells, but the header has 3"),
        ("f.csv", "case,time,v\n", r"f\.csv:1: a header but no row"),
        ("f.csv", "case,time,label\n1,0,a\n", r"f\.csv:1: no column of values"),
    ],
)
def test_mistakes_in_text(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        read(tmp_path / name)


@pytest.mark.parametrize("suffix", [".ts", ".tsv", ".txt", ".arff", ".csv", ".npy", ".npz"])
class TestJunk:
    def test_missing(self, tmp_path, suffix):
        with pytest.raises(InvalidInputError, match="there is no file"):
            read(tmp_path / f"absent{suffix}")

    @pytest.mark.parametrize(
        "content", [b"", b" \n\n", b"\x1e\n", b"\x00\x01\xff" * 50, b"PK\x03\x04junk"]
    )
    def test_no_data(self, tmp_path, suffix, content):
        path = tmp_path / f"junk{suffix}"
        path.write_bytes(content)
        with pytest.raises(InvalidInputError, match=path.name):
            read(path)

    def test_wrong_encoding(self, tmp_path, suffix):
        path = tmp_path / f"utf16{suffix}"
        path.write_bytes("a,1,2\nb,3,4\n".encode("utf-16"))
        with pytest.raises(InvalidInputError, match=path.name):
            read(path)

    def test_a_folder(self, tmp_path, suffix):
        path = tmp_path / f"folder{suffix}"
        path.mkdir()
        with pytest.raises(InvalidInputError, match="is a folder"):
            read(path)


def test_a_byte_that_is_not_utf8(tmp_path):
    (tmp_path / "f.csv").write_bytes(b"1,2,a\n3,4,\xe9t\xe9\n")
    with pytest.raises(InvalidInputError, match=r"f\.csv:2: not text in UTF-8"):
        read(tmp_path / "f.csv")


@pytest.mark.skipif(getattr(os, "geteuid", int)() == 0, reason="the superuser may read everything")
def test_a_file_that_may_not_be_read(tmp_path):
    (tmp_path / "f.csv").write_text("1,2,a\n")
    (tmp_path / "f.csv").chmod(0)
    with pytest.raises(InvalidInputError, match="cannot read"):
        read(tmp_path / "f.csv")


def test_an_unknown_ending(tmp_path):
    with pytest.raises(InvalidInputError, match=r"the ending '\.xlsx' is unknown; expected one of"):
        read(tmp_path / "f.xlsx")


@pytest.mark.parametrize("name", ["f.ts", "f.npz", "f.txt"])
def test_a_label_column_where_there_is_none(tmp_path, name):
    with pytest.raises(InvalidParameterError, match="leave it out"):
        read(tmp_path / name, label="kind")


@pytest.mark.parametrize("name", ["f.csv", "f.arff"])
def test_a_label_column_that_is_absent(tmp_path, name):
    (tmp_path / name).write_text(ARFF + "1,a\n" if name == "f.arff" else "t0,c\n1,a\n")
    with pytest.raises(InvalidParameterError, match=r"label='kind', but .* no such"):
        read(tmp_path / name, label="kind")


class TestNumpy:
    def save(self, tmp_path, **arrays):
        np.savez(tmp_path / "f.npz", **arrays)
        return tmp_path / "f.npz"

    def test_truncated(self, tmp_path):
        path = self.save(tmp_path, X=np.ones((50, 1, 50)), y=np.ones(50))
        path.write_bytes(path.read_bytes()[:5000])
        with pytest.raises(InvalidInputError, match="damaged, cut"):
            read(path)
        np.save(tmp_path / "X.npy", np.ones((50, 1, 50)))
        (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:5000])
        with pytest.raises(InvalidInputError, match="damaged, cut"):
            read(tmp_path / "X.npy")

    def test_damaged_inside(self, tmp_path):
        path = self.save(tmp_path, X=np.ones((50, 1, 50)))
        content = bytearray(path.read_bytes())
        content[3000] ^= 0xFF
        path.write_bytes(bytes(content))
        with pytest.raises(InvalidInputError, match=r"f\.npz \(Bad CRC.*damaged"):
            read(path)

    @pytest.mark.parametrize("key", ["X", "y"])
    def test_objects_are_never_loaded(self, tmp_path, key):
        arrays = {"X": np.ones((2, 1, 3)), "y": np.array(["a", "b"])}
        arrays[key] = np.array([{}, {}], dtype=object)
        with pytest.raises(InvalidInputError, match="holds Python objects, which are never loaded"):
            read(self.save(tmp_path, **arrays))

    def test_no_series(self, tmp_path):
        with pytest.raises(InvalidInputError, match=r"no array X.*its arrays are: data, labels"):
            read(self.save(tmp_path, data=np.ones(3), labels=np.ones(3)))

    def test_split_needed(self, tmp_path):
        path = self.save(tmp_path, X_train=np.ones((2, 3)), X_test=np.ones((2, 3)))
        with pytest.raises(InvalidParameterError, match=r"parts train and test: split=None"):
            read(path)

    @pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 0, 3)), np.array([["a", "b"]])])
    def test_not_series(self, tmp_path, X):
        with pytest.raises(InvalidInputError, match="X must be numbers of shape"):
            read(self.save(tmp_path, X=X))

    def test_infinite(self, tmp_path):
        with pytest.raises(InvalidInputError, match="case 1 holds an infinite value"):
            read(self.save(tmp_path, X=np.array([[1.0, 2.0], [np.inf, 1.0]])))

    def test_labels_of_the_wrong_length(self, tmp_path):
        with pytest.raises(InvalidInputError, match=r"one label for each of the 2 cases.*\(3,\)"):
            read(self.save(tmp_path, X=np.ones((2, 3)), y=np.ones(3)))
        (tmp_path / "y.txt").write_text("a\n")
        with pytest.raises(
            InvalidInputError, match=r"y\.txt: expected one label for each of the 2"
        ):
            read(self.save(tmp_path, X=np.ones((2, 3))), tmp_path / "y.txt")

    def test_salient_of_another_shape(self, tmp_path):
        with pytest.raises(InvalidInputError, match="salient must be a boolean array"):
            read(self.save(tmp_path, X=np.ones((2, 3)), salient=np.ones((2, 3))))

    def test_confused_endings(self, tmp_path):
        with (tmp_path / "f.npz").open("wb") as file:
            np.save(file, np.ones((2, 3)))
        with pytest.raises(InvalidInputError, match=r"must end in \.npy"):
            read(tmp_path / "f.npz")
        with (tmp_path / "g.npy").open("wb") as file:
            np.savez(file, X=np.ones((2, 3)))
        with pytest.raises(InvalidInputError, match=r"must end in \.npz"):
            read(tmp_path / "g.npy")


class TestDataset:
    def test_shapes_must_agree(self):
        X = np.zeros((2, 1, 3))
        with pytest.raises(InvalidInputError, match="n_cases, n_channels, n_timepoints"):
            Dataset(X[0])
        with pytest.raises(InvalidInputError, match="2 series need 2 labels"):
            Dataset(X, np.zeros(3))
        with pytest.raises(InvalidInputError, match="mask of salient moments"):
            Dataset(X, None, np.zeros((2, 3), bool))

    def test_len_and_repr(self):
        data = Dataset(np.zeros((2, 1, 3)), name="a")
        assert len(data) == 2
        assert repr(data) == "Dataset('a', n_cases=2, n_channels=1, n_timepoints=3, no labels)"
