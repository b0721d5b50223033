"""Each format as it is met in the archives and at people's desks."""

import numpy as np
import pytest

from timesliver.datasets import Dataset, read

nan = np.nan


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def expect(data: Dataset, X, y=None):
    np.testing.assert_array_equal(data.X, np.array(X, dtype=float))
    if y is None:
        assert data.y is None
    else:
        assert data.y.tolist() == y


class TestTS:
    def test_multivariate(self, write):
        path = write(
            "two.ts",
            "# a comment\n@problemName Gestures\n@timeStamps false\n@missing false\n"
            "@univariate false\n@dimensions 2\n@equalLength true\n@seriesLength 3\n"
            "@classLabel true up down\n@data\n1,2,3:4,5,6:up\n7,8,9:-1e1,0.5,2:down\n",
        )
        data = read(path)
        expect(data, [[[1, 2, 3], [4, 5, 6]], [[7, 8, 9], [-10, 0.5, 2]]], ["up", "down"])
        assert data.name == "Gestures"

    def test_header_in_other_case_and_windows_line_ends(self, write):
        text = "@PROBLEMNAME a\n@Univariate TRUE\n@ClassLabel True 1 2\n\n@Data\n1,2:1\n\n3,4:2\n"
        expect(read(write("a.ts", text.replace("\n", "\r\n"))), [[[1, 2]], [[3, 4]]], ["1", "2"])

    def test_unequal_lengths_and_missing_values(self, write):
        path = write(
            "u.ts",
            "@univariate false\n@equalLength false\n@missing true\n@classLabel true a b\n@data\n"
            "1,?,3:1:a\n4:NaN,6:b\n",
        )
        expect(read(path), [[[1, nan, 3], [1, nan, nan]], [[4, nan, nan], [nan, 6, nan]]], [*"ab"])

    @pytest.mark.parametrize("header", ["", "@classLabel false\n"])
    def test_without_labels(self, write, header):
        expect(read(write("n.ts", f"{header}@data\n1,2:3,4\n")), [[[1, 2], [3, 4]]])

    def test_labels_written_as_another_kind_of_number(self, write):
        expect(read(write("l.ts", "@classLabel true 1.0 2.0\n@data\n1,2:1\n")), [[[1, 2]]], ["1"])

    def test_comments_in_a_foreign_encoding(self, tmp_path):
        path = tmp_path / "c.ts"
        path.write_bytes(b"# M\xfcller\n@classLabel true a\n@data\n1,2:a\n")
        expect(read(path), [[[1, 2]]], ["a"])


class TestUCR:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("t.tsv", "1\t0.5\t2\n-1\t3\tNaN\n"),
            ("t.txt", "  1.0000000e+00  5.0000000e-01  2\n -1.0000000e+00  3  NaN\n"),
            ("t.txt", "1,0.5,2\n-1,3,NaN\n"),
            ("t.txt", "\ufeff1,0.5,2\r\n-1,3,\r\n"),
        ],
    )
    def test_separators(self, write, name, text):
        expect(read(write(name, text)), [[[0.5, 2]], [[3, nan]]], ["1", "-1"])

    def test_labels_that_are_words(self, write):
        expect(
            read(write("t.tsv", "walk\t1\t2\n1.0\t3\t4\n")), [[[1, 2]], [[3, 4]]], ["walk", "1.0"]
        )

    def test_without_labels(self, write):
        expect(read(write("t.txt", "1 2\n3 4\n"), label=None), [[[1, 2]], [[3, 4]]])


class TestARFF:
    def test_univariate(self, write):
        path = write(
            "a.arff",
            "% made by hand\n@relation Uni\n\n@attribute att0 numeric\n@attribute 'att 1' REAL\n"
            "@attribute target {1,2}\n\n@data\n0.5,?,2\n3,4,1\n",
        )
        data = read(path)
        expect(data, [[[0.5, nan]], [[3, 4]]], ["2", "1"])
        assert data.name == "Uni"

    @pytest.mark.parametrize("quote", ["'", '"'])
    def test_multivariate(self, write, quote):
        path = write(
            "m.arff",
            "@relation Multi\n@attribute relationalAtt relational\n@attribute att0 numeric\n"
            "@attribute att1 numeric\n@end relationalAtt\n@attribute classAttribute {on,off}\n"
            f"@data\n{quote}1,2\\n3,?{quote},on\n{quote}5,6\\n7,8{quote}, off\n",
        )
        expect(read(path), [[[1, 2], [3, nan]], [[5, 6], [7, 8]]], ["on", "off"])

    def test_without_class(self, write):
        text = "@attribute a numeric\n@attribute b numeric\n@data\n1,2\n"
        expect(read(write("n.arff", text)), [[[1, 2]]])

    def test_class_by_its_name(self, write):
        text = "@attribute kind string\n@attribute b numeric\n@data\n'one two',2\n"
        expect(read(write("n.arff", text), label="kind"), [[[2]]], ["one two"])


class TestNumpy:
    def test_npz_with_splits(self, tmp_path):
        path = tmp_path / "s.npz"
        X = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
        np.savez(path, X_train=X, y_train=["a", "b"], X_test=-X, salient_test=X > 5)
        train, test = read(path, split="train"), read(path, split="test")
        expect(train, X, ["a", "b"])
        assert train.X.dtype == np.float32
        expect(test, -X)
        np.testing.assert_array_equal(test.salient, X > 5)

    def test_npz_of_one_part(self, tmp_path):
        np.savez(tmp_path / "s.npz", X=[[1, 2], [3, 4]], y=[[0], [1]])
        expect(read(tmp_path / "s.npz"), [[[1, 2]], [[3, 4]]], [0, 1])

    @pytest.mark.parametrize(
        ("x_name", "y_name"),
        [("X.npy", "y.npy"), ("a_X.npy", "a_y.npy"), ("X_a.npy", "y_a.npy"), ("a.npy", "a_y.npy")],
    )
    def test_npy_pairs(self, tmp_path, x_name, y_name):
        np.save(tmp_path / x_name, np.array([[1.0, 2.0], [3.0, nan]]))
        expect(read(tmp_path / x_name), [[[1, 2]], [[3, nan]]])
        np.save(tmp_path / y_name, np.array(["a", "b"]))
        expect(read(tmp_path / x_name), [[[1, 2]], [[3, nan]]], ["a", "b"])

    def test_labels_from_a_text_file(self, tmp_path, write):
        np.save(tmp_path / "X.npy", np.ones((2, 1, 2)))
        expect(
            read(tmp_path / "X.npy", write("l.txt", "on\noff\n\n")),
            np.ones((2, 1, 2)),
            ["on", "off"],
        )


class TestWideCSV:
    X = [[[0.5, 2]], [[3, nan]]]  # noqa: RUF012

    @pytest.mark.parametrize(
        "text",
        [
            "t0,t1,label\n0.5,2,a\n3,,b\n",
            "0,1,Class\n0.5,2,a\n3,,b\n",
            "target,0.0,0.5\na,0.5,2\nb,3,\n",
            ",0,1,y\n0,0.5,2,a\n1,3,,b\n",  # as pandas writes a frame with its index
            "case_id,t0,t1,label\nx,0.5,2,a\nz,3,,b\n",
            "t0;t1;label\n0.5;2;a\n3;NA;b\n",
            "t0,t1,outcome\n0.5,2,a\n3,?,b\n",
            "a,0.5,2\nb,3,\n",
            "0.5,2,a\n3,,b\n\n",
            'x1,x2,label\n0.5,2,"a"\n3,nan, b\n',
        ],
    )
    def test_where_labels_are_found(self, write, text):
        expect(read(write("w.csv", text)), self.X, ["a", "b"])

    @pytest.mark.parametrize("text", ["0,1\n0.5,2\n3,\n", "t0,t1\n0.5,2\n3,\n", "0.5,2\n3,\n"])
    def test_without_labels(self, write, text):
        expect(read(write("w.csv", text)), self.X)

    @pytest.mark.parametrize(
        ("text", "label"),
        [
            ("7,0.5,2\n8,3,\n", "first"),
            ("0.5,2,7\n3,,8\n", "last"),
            ("kind,t0,t1\n7,0.5,2\n8,3,\n", "kind"),
            ("kind,0,1\n7,0.5,2\n8,3,\n", "kind"),
        ],
    )
    def test_labels_said_by_the_caller(self, write, text, label):
        expect(read(write("w.csv", text), label=label), self.X, ["7", "8"])

    def test_a_label_called_y_is_no_header(self, write):
        text = "y,0.5,2\nn,3,\ny,1,1\n"
        expect(read(write("w.csv", text)), [*self.X, [[1, 1]]], ["y", "n", "y"])

    def test_no_labels_on_request(self, write):
        expect(read(write("w.csv", "y,t\n1,2\n"), label=None), [[[1, 2]]])


class TestLongCSV:
    def test_one_column_per_channel(self, write):
        path = write(
            "l.csv",
            "case,time,x,y,label\n"
            "b,1,10,20,up\nb,0,11,21,up\na,0,1,,down\nb,2,12,22,up\na,5,2,4,\n",
        )
        data = read(path)
        expect(data, [[[11, 10, 12], [21, 20, 22]], [[1, 2, nan], [nan, 4, nan]]], ["up", "down"])
        assert data.channel_names == ("x", "y")

    def test_channel_and_value(self, write):
        path = write(
            "l.csv",
            "id,t,channel,value,class\n"
            "1,0,10,5,a\n1,0,9,6,a\n1,1,10,7,a\n2,0,9,8,b\n2,1,9,,b\n2,1,10,3,b\n",
        )
        data = read(path)
        expect(data, [[[6, nan], [5, 7]], [[8, nan], [nan, 3]]], ["a", "b"])
        assert data.channel_names == ("9", "10")

    def test_dates(self, write):
        text = "case,timestamp,v\n1,2024-01-01T10:00,2\n1,2024-01-01 09:00:00Z,1\n1,2023-12-31,0\n"
        expect(read(write("l.csv", text)), [[[0, 1, 2]]])

    def test_without_labels(self, write):
        expect(read(write("l.csv", "case,time,v\n1,0,2\n2,0,3\n")), [[[2]], [[3]]])
