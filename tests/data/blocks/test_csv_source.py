"""CSV files in blocks: types from the first rows, and errors that name file, line and column."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest

from mercer import Blocks
from mercer._errors import DataError, ParameterError
from mercer.data.blocks.block import join
from mercer.data.readers import read_table


def put(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


def fails(words, folder, **options):
    with pytest.raises(DataError, match=words):
        list(Blocks.from_csv(folder, rows_per_block=2, **options))


def test_columns_come_in_the_order_of_the_first_file(tmp_path):
    put(tmp_path, a="x,y,z\n1,2,3\n", b="z,x,y\n3,1,2\n")
    blocks = Blocks(tmp_path, "y")
    assert blocks.columns == ("x", "z")
    assert join(list(blocks)).X.tolist() == [[1, 3], [1, 3]]


def test_digits_after_a_leading_zero_are_text_as_in_whole_files(tmp_path):
    put(tmp_path, a="zip,x\n007,01.5\n120,2\n", b="zip,x\n7,3\n")
    frame = join(list(Blocks(tmp_path).frames())).X
    assert frame["zip"].tolist() == ["007", "120", "7"] and frame["x"].tolist() == [1.5, 2.0, 3.0]
    assert read_table(tmp_path / "a.csv").columns["zip"].tolist() == ["007", "120"]


def test_an_unnamed_column_has_the_name_of_whole_files(tmp_path):
    put(tmp_path, a=",x\n0,1\n1,2\n")
    assert Blocks(tmp_path).columns == ("Unnamed: 0", "x") == tuple(read_table(tmp_path / "a.csv").names)


def test_files_without_rows_are_skipped(tmp_path):
    put(tmp_path, a="", b="x,y\n", c="x,y\n1,2\n\n", d="other\n", e="x,y\n3,4\n")
    assert join(list(Blocks(tmp_path))).X.tolist() == [[1, 2], [3, 4]]
    put(tmp_path, c="x,y\n", e="")
    fails("has no rows of data", tmp_path)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ("x,z\n1,2\n", r"b\.csv has no column 'y', which .*a\.csv has. Its columns are 'x', 'z'"),
        ("x,y,z\n1,2,3\n", r"b\.csv has a column 'z', which .*a\.csv lacks.*columns="),
        ("x,y\n1,2\n3,4\n5,abc\n", r"b\.csv, line 4: the column 'y' holds 'abc', but numbers in the first rows of"),
        ("x,y\n1,2\n3,4\n5,\n", r"b\.csv, row 3, column 'y': a value is missing \(NaN\)\. Remove"),
        ("x,y\n,2\n,4\n", r"b\.csv, row 1, column 'x': a value is missing \(NaN\), and 1 more in the rows"),
        ("x,y\n1,2\ninf,4\n5,6\n", r"b\.csv, row 2, column 'x': a value is infinite"),
        ("x,y\n1,2\n3,4\n5,6\n7,8,9\n", r"b\.csv, line 5, column 3: the header has 2 columns, but this line has 3"),
        ("x,y\n1,2,3\n", r"b\.csv, line 2, column 3: the header has 2 columns"),
        ("x,y\n1,2\n3\n5,6\n", r"b\.csv, line 3: the header has 2 columns, but this line has 1\. Correct"),
        ("x,y\n1,2\n3,4\n5", r"b\.csv, line 4: the header has 2 columns, but this line has 1\. It is the last line"),
        ('x,y\n1,2\n"3,4\n', r"b\.csv, line 3, column 1: a quotation mark .* never closed"),
        ("1,2\n3,4\n", "appear in place of column names"),
    ],
)
def test_a_second_file_that_does_not_fit(tmp_path, second, words):
    put(tmp_path, a="x,y\n1,2\n", b=second)
    fails(words, tmp_path)


def test_columns_that_are_chosen_may_have_others_beside_them(tmp_path):
    put(tmp_path, a="x,t,y\n1,u,2\n", b="y,x,more\n3,4,v\n")
    blocks = Blocks(tmp_path, "y", columns=["x"])
    assert join(list(blocks)).X.tolist() == [[1], [4]] and blocks.columns == ("x",)
    fails("has no column 'z'. Its columns are", tmp_path, columns=["z"])
    fails("has no column 'Y'. Did you mean 'y'", tmp_path, target="Y")
    with pytest.raises(ParameterError, match="'x' is both one of the columns of X and target"):
        Blocks(tmp_path, "x", columns=["x"])
    with pytest.raises(ParameterError, match="names a column twice"):
        Blocks(tmp_path, "y", columns=["x", "x"])
    with pytest.raises(ParameterError, match="target must be the name of a column"):
        Blocks(tmp_path, target=3)


def test_text_is_told_from_the_first_rows_or_by_dtype(tmp_path):
    first = "zip,y\n" + "123,1\n" * 1000
    put(tmp_path, a=first, b="zip,y\n0A1,1\n")
    fails(r"b\.csv, line 2: the column 'zip' holds '0A1'.*dtype=\{'zip': 'str'\}", tmp_path, target="y")
    blocks = Blocks.from_csv(tmp_path, "y", dtype={"zip": "str"}, rows_per_block=300)
    table = join(list(blocks.frames())).X
    assert table["zip"].tolist() == ["123"] * 1000 + ["0A1"]
    recommended = Blocks(tmp_path, "y", dtype={"zip": "str"}).encoded(kinds={"zip": "category"})
    assert sum(len(X) for X, _, _ in recommended) == 1001
    with pytest.raises(ParameterError, match="dtype names the column 'zap'"):
        Blocks.from_csv(tmp_path, dtype={"zap": "str"})
    with pytest.raises(ParameterError, match="dtype must be a dict"):
        Blocks.from_csv(tmp_path, dtype="str")
    fails("given types of columns", tmp_path, dtype={"zip": "no type"}, target="y")


def test_digits_with_leading_zeros_are_text(tmp_path):
    put(tmp_path, a="zip,x,y\n007,0.5,012\n120,10,120\n", b="zip,x,y\n120,7,120\n")
    table = join(list(Blocks(tmp_path, "y").frames()))
    assert table.X["zip"].tolist() == ["007", "120", "120"] and table.X["x"].tolist() == [0.5, 10.0, 7.0]
    assert table.y.tolist() == ["012", "120", "120"]


def test_types_do_not_depend_on_the_blocks(tmp_path):
    put(tmp_path, a="a,b,c,y\n1,true,x,1\n2,false,2,0\n0.5,,3,1\n")
    for rows in (1, 2, 3):
        table = join(list(Blocks(tmp_path, "y", rows_per_block=rows).frames()))
        assert table.X["a"].dtype == np.float64 and table.X["c"].tolist() == ["x", "2", "3"]
        assert table.X["b"].isna().tolist() == [False, False, True]
        assert table.y.tolist() == [1.0, 0.0, 1.0]
    with pytest.raises(DataError, match=r"the column 'c' of .* holds text"):
        list(Blocks(tmp_path, "y"))


@pytest.mark.parametrize(
    ("text", "labels"), [("x,y\n1,u\n2,v\n", ["u", "v"]), ("x,y\n1,true\n2,False\n", [True, False])]
)
def test_targets_that_are_classes(tmp_path, text, labels):
    put(tmp_path, a=text)
    survey = Blocks(tmp_path, "y", rows_per_block=1).survey()
    assert survey.classes.tolist() == sorted(labels)
    put(tmp_path, b="x,y\n1,\n")
    fails(r"b\.csv, row 1: the target 'y' is missing", tmp_path, target="y")


def test_dialects(tmp_path):
    for number, text in enumerate(["x;y\n0,5;2\n", "x,y\n0.5,2\n", " x , y \n0.5, 2\n", "\ufeffx|y\r\n0.5|2\r\n"]):
        path = tmp_path / f"{number}.csv"
        path.write_text(text, newline="")
        assert join(list(Blocks(path))).X.tolist() == [[0.5, 2.0]]
        assert Blocks(path).columns == ("x", "y")
    (tmp_path / "a.tsv").write_text("x\ty\n0.5\t2\n")
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("x,y\n0.5,2\n")
    for name in ("a.tsv", "a.csv.gz"):
        assert join(list(Blocks(tmp_path / name))).X.tolist() == [[0.5, 2.0]]
    content = (tmp_path / "a.csv.gz").read_bytes()
    (tmp_path / "cut.csv.gz").write_bytes(content[:-12])
    with pytest.raises(DataError, match="damaged or was cut short"):
        list(Blocks(tmp_path / "cut.csv.gz"))
    (tmp_path / "latin.csv").write_bytes("x,y\n1,é\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 2, column 3: the byte 0xe9 is not UTF-8"):
        list(Blocks(tmp_path / "latin.csv"))


def test_filters_of_warnings_stay(tmp_path):
    put(tmp_path, a="x,y\n1,2\n3,4\n")
    blocks = Blocks(tmp_path, rows_per_block=1)
    before = list(warnings.filters)
    for _ in blocks:
        assert warnings.filters == before


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (",Unnamed: 0,b", ("Unnamed: 0.1", "Unnamed: 0", "b")),
        ('"a\nx",b,c', ("a\nx", "b", "c")),
        ('a,b,"c\nunit"', ("a", "b", "c\nunit")),
        ("   \n\na,b,c", ("a", "b", "c")),
    ],
)
def test_headers_are_records_with_names_of_their_own(tmp_path, header, names):
    (tmp_path / "a.csv").write_text(header + "\n1,2,3\n4,5,6\n")
    assert Blocks(tmp_path / "a.csv").columns == names == tuple(read_table(tmp_path / "a.csv").names)
    assert [block.X.shape for block in Blocks(tmp_path / "a.csv").frames()] == [(2, 3)]


def test_a_line_of_separators_before_the_header_is_the_header(tmp_path):
    (tmp_path / "a.tsv").write_text("\t\t\na\tb\tc\n1\t2\t3\n")
    with pytest.raises(DataError, match="line 1: the column name '' appears in columns 1 and 2"):
        read_table(tmp_path / "a.tsv")
