"""Files to tables: each format, and errors that name the file, the line and the column."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file

from mercer import config
from mercer._errors import DataError, MemoryBudgetError
from mercer.data.readers import read_table


def _write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def _fails(path, *words):
    with pytest.raises(DataError) as caught:
        read_table(path)
    for word in (path.name, *words):
        assert word in str(caught.value)


def test_csv(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", "size,town,new\n1.5,Ulm,true\n2,Zug,false\n"))
    assert table.names == ["size", "town", "new"]
    assert table.columns["size"].tolist() == [1.5, 2.0]
    assert table.columns["town"].tolist() == ["Ulm", "Zug"]
    assert table.columns["new"].dtype == bool


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tab.tsv", "a\tb\n1.5\tx\n2.5\ty\n"),
        ("semicolon.csv", "a;b\n1.5;x\n2.5;y\n"),
        ("decimal_comma.csv", "a;b\n1,5;x\n2,5;y\n"),
        ("bar.csv", "a|b\n1.5|x\n2.5|y\n"),
        ("spaces.csv", "a, b\n1.5, x\n2.5, y\n"),
        ("bom.csv", "\ufeffa,b\n1.5,x\n2.5,y\n"),
        ("cr.csv", "a,b\r1.5,x\r2.5,y\r"),
        ("crlf.csv", "a,b\r\n1.5,x\r\n2.5,y\r\n"),
        ("blank_lines.csv", "a,b\n\n1.5,x\n\n2.5,y\n\n"),
        ("trailing.csv", "a,b\n1.5,x,\n2.5,y,\n"),
        ("spaces_in_names.csv", " a , b \n1.5,x\n2.5,y\n"),
        ("quotes.csv", '"a","b"\n"1.5","x"\n"2.5","y"\n'),
    ],
)
def test_separated_values_in_their_dialects(tmp_path, name, text):
    table = read_table(_write(tmp_path / name, text))
    assert table.names == ["a", "b"]
    assert table.columns["a"].tolist() == [1.5, 2.5]
    assert table.columns["b"].tolist() == ["x", "y"]


def test_decimal_commas_may_begin_in_a_later_row(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", 'a;b\n1;"x,1,y"\n2,5;y\n'))
    assert table.columns["a"].tolist() == [1.0, 2.5] and table.columns["b"].tolist() == ["x,1,y", "y"]


def test_decimal_commas_with_exponents(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", "a;b\n1,28e+04;x\n-3E2;y\n2,5e-1;x\n"))
    assert table.columns["a"].tolist() == [12800.0, -300.0, 0.25]


def test_separators_within_quotes_do_not_count(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", '"a;b;c",y\n1,2\n3,4\n'))
    assert table.names == ["a;b;c", "y"]


def test_compressed_csv(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n"))
    assert read_table(path).columns.to_numpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_leading_zeros_stay_whatever_ends_the_lines(tmp_path, end):
    table = read_table(_write(tmp_path / "a.csv", end.join(["zip,n", "007,1", "120,2", "003,3", ""])))
    assert table.columns["zip"].tolist() == ["007", "120", "003"] and table.columns["n"].tolist() == [1, 2, 3]


def test_blank_lines_and_missing_last_fields_are_no_short_lines(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", 'a,b\n1,\n\n2,"x\ny"\n   \n3,\n'))
    assert table.columns["b"].isna().tolist() == [True, False, True]
    alone = read_table(_write(tmp_path / "b.csv", "a\n1\nNA\n\n2\n"))
    assert alone.n_rows == 3


def test_missing_values_stay_missing(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", "a,b\n1,?\n,x\nNA,y\n"))
    assert table.columns.isna().to_numpy().tolist() == [[False, True], [True, False], [True, False]]


def test_rows_behind_very_long_fields_are_located_by_number(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", f"a,b\n{'x' * 200_000},1\ny,\n"))
    assert table.locate(1) == "row 2"


def test_rows_are_located_by_the_line_where_their_record_ends(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", 'a,b\n1,"two\nlines"\n\n3,x\n'))
    assert [table.locate(0), table.locate(1)] == ["line 3", "line 5"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty (0 bytes)"]),
        ("\n\n  \n", ["only blank lines"]),
        ("a,b\n", ["has no rows of data"]),
        ("a,b\n1,2\n3,4,5\n", ["line 3, column 3", "the header has 2 columns", "'5'"]),
        ("a,b\n1,2,3\n4,5,6\n", ["line 2, column 3", "the header has 2 columns", "'3'"]),
        ("a,b,c\n1,2,3\n4,5\n6,7,8\n9\n", ["line 3: the header has 3 columns", "this line has 2", "a later line"]),
        ("a,b\n\n1,2\n3\n4,5\n6\n7\n", ["line 4", "this line has 1, and so have 2 later lines"]),
        ("a,b,c\n1,2,x\n4,5", ["line 3", "this line has 2", "last line", "cut short"]),
        ('a,b\n1,2\n3,"open\n5,6\n', ["line 3, column 2", "never closed"]),
        ("1.0,2.0\n3.0,4.0\n", ["line 1", "in place of column names"]),
        ("a,b,a\n1,2,3\n", ["line 1", "'a' appears in columns 1 and 3"]),
        ("a,b, a \n1,2,3\n", ["line 1", "'a' appears in columns 1 and 3"]),
        ("0,0,x\n1,1,y\n", ["line 1", "in place of column names"]),
    ],
)
def test_unreadable_csv(tmp_path, text, words):
    _fails(_write(tmp_path / "bad.csv", text), *words)


def test_text_that_is_not_utf8(tmp_path):
    path = _write(tmp_path / "latin.csv", "a,b\n1,x\n2,Zürich\n", "latin-1")
    _fails(path, "line 3, column 4", "0xfc", "not UTF-8")


def test_binary_file_under_the_name_of_a_text_file(tmp_path):
    path = tmp_path / "binary.csv"
    path.write_bytes(b"\x00\x01\x02\x00abc\n")
    _fails(path, "line 1", "not a text file")


@pytest.mark.parametrize("begin", [b"\x1f\x8b\x08\x00", b"PK\x03\x04\xff"])
def test_compressed_file_under_the_name_of_a_text_file(tmp_path, begin):
    path = tmp_path / "a.csv"
    path.write_bytes(begin + b"\xff\n1,2\n")
    _fails(path, "a compressed file or a workbook")


def test_truncated_gzip(tmp_path):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 1000)[:-20])
    _fails(path, "damaged or was cut short")


def test_parquet(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet")
    assert table.columns["a"].tolist() == [1.0, 2.0]
    assert table.columns["b"].isna().tolist() == [False, True]
    assert table.locate(1) == "row 2"


def test_parquet_beyond_the_budget_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "zeros.parquet"
    pd.DataFrame({"a": np.zeros(1_000_000), "y": np.zeros(1_000_000)}).to_parquet(path)
    assert path.stat().st_size < 20_000
    with config(memory="10MiB"), pytest.raises(MemoryBudgetError, match=r"the table of 1,000,000 rows in .*zeros"):
        read_table(path)


def test_named_index_of_a_parquet_file_is_a_column(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).set_index("a").to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").names == ["a", "b"]


@pytest.mark.parametrize("suffix", [".arrow", ".feather", ".ipc"])
def test_arrow(tmp_path, suffix):
    frame = pd.DataFrame({"size": [1.5, 2.0], "town": ["Ulm", None]})
    frame.to_feather(tmp_path / f"a{suffix}")
    table = read_table(tmp_path / f"a{suffix}")
    assert table.names == ["size", "town"] and table.columns["size"].tolist() == [1.5, 2.0]
    (tmp_path / f"b{suffix}").write_bytes(b"not arrow")
    _fails(tmp_path / f"b{suffix}", "cannot be read as Arrow")


def test_parquet_that_is_none(tmp_path):
    _fails(_write(tmp_path / "a.parquet", "a,b\n1,2\n"), "cannot be read as Parquet")


@pytest.mark.parametrize("name", ["a.libsvm", "a.svmlight", "a9a", "a9a.t"])
def test_libsvm_with_and_without_a_suffix(tmp_path, name):
    X = np.array([[0.0, 1.0, 0.0, 2.0], [3.0, 0.0, 0.0, 0.5]])
    dump_svmlight_file(X, [1, -1], str(tmp_path / name), zero_based=True)
    table = read_table(tmp_path / name)
    assert table.is_sparse and table.default_target == "label"
    assert np.array_equal(table.columns.toarray(), X)
    assert table.targets["label"].tolist() == [1.0, -1.0]


def test_features_keep_the_number_that_the_file_gives_them(tmp_path):
    table = read_table(_write(tmp_path / "a.libsvm", "1 3:1.5\n-1 5:2.5\n"))
    assert table.columns[0, 3] == 1.5 and table.columns[1, 5] == 2.5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 1:2\nyes 1:3\n", ["line 2, column 1", "'yes'", "label index:value"]),
        ("1 1:2\n1 1:2 2:x\n", ["line 2, column 7", "'2:x'", "index:value"]),
        ("1 1:2\n1 3:1 2:1\n", ["line 2, column 7", "the index 2 follows 3"]),
        ("1 1:2\n1 1\n", ["line 2, column 3", "'1'"]),
    ],
)
def test_unreadable_libsvm(tmp_path, text, words):
    _fails(_write(tmp_path / "bad.libsvm", text), *words)


def test_npz(tmp_path):
    X = np.arange(6.0).reshape(3, 2)
    np.savez(tmp_path / "a.npz", X=X, y=[1, 2, 3], fold=[0, 0, 1], feature_names=["age", "size"])
    table = read_table(tmp_path / "a.npz")
    assert table.names == ["age", "size"] and table.default_target == "y"
    assert np.array_equal(table.columns.to_numpy(), X)
    assert set(table.targets) == {"y", "fold"}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"X": np.zeros((2, 2, 2, 2))}, ["images (n, height, width, channels)", "(2, 2, 2, 2)"]),
        ({"a": np.zeros((2, 2)), "b": np.zeros((2, 3))}, ["two-dimensional array X", "a (2, 2), b (2, 3)"]),
        ({"X": np.array([["a"], ["b"]])}, ["must hold numbers"]),
        ({"X": np.zeros((4, 2)), "columns": ["a", "a"]}, ["must be unique", "'a', 'a'"]),
        ({"X": np.zeros((2, 2)), "y": np.array([print, 1], dtype=object)}, ["array of Python objects"]),
        ({"X": np.array([[None], [1]], dtype=object)}, ["array of Python objects"]),
    ],
)
def test_unreadable_npz(tmp_path, arrays, words):
    np.savez(tmp_path / "a.npz", **arrays)
    _fails(tmp_path / "a.npz", *words)


def test_npz_of_the_other_byte_order(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.eye(3, dtype=">f4"), y=np.arange(3, dtype=">i4"))
    table = read_table(tmp_path / "a.npz")
    assert table.columns["x0"].dtype.isnative and table.targets["y"].dtype.isnative
    assert table.columns.to_numpy().tolist() == np.eye(3).tolist()


def test_npz_that_is_none(tmp_path):
    _fails(_write(tmp_path / "a.npz", "not a zip file at all"), "cannot be read as a NumPy archive")


def test_single_array_under_the_name_of_an_archive(tmp_path):
    with (tmp_path / "a.npz").open("wb") as file:
        np.save(file, np.zeros((2, 2)))
    _fails(tmp_path / "a.npz", "a single array", "numpy.savez")


def test_file_that_does_not_exist_offers_its_neighbours(tmp_path):
    _write(tmp_path / "houses.csv", "a,b\n1,2\n")
    _fails(tmp_path / "house.csv", "does not exist", "'houses.csv'", "sample:NAME")


def test_directory_and_unknown_format(tmp_path):
    _fails(tmp_path, "is a directory")
    _fails(_write(tmp_path / "a.docx", "x"), "the format .docx is unknown", ".csv", ".xlsx")


def test_target_is_split_off(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", "size,price\n1,10\n2,20\n"))
    columns, target, name = table.split("price")
    assert list(columns.columns) == ["size"] and target.tolist() == [10, 20] and name == "price"


def test_target_that_is_missing_offers_the_nearest_column(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", "size,Price\n1,10\n2,20\n"))
    with pytest.raises(DataError, match=r"no column 'pric' to be the target\. Did you mean 'Price'\?"):
        table.split("pric")
    with pytest.raises(DataError, match=r"--target COLUMN.*'size', 'Price'"):
        table.split(None)


def test_nothing_beside_the_target(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", "price\n1\n2\n"))
    with pytest.raises(DataError, match=r"nothing to learn from"):
        table.split("price")


def test_columns_can_be_dropped(tmp_path):
    table = read_table(_write(tmp_path / "a.csv", "id,size,price\n1,2,3\n4,5,6\n"))
    assert table.drop(["id"]).names == ["size", "price"]
    with pytest.raises(DataError, match=r"no column 'idd' to drop. Did you mean 'id'"):
        table.drop(["idd"])
    with pytest.raises(DataError, match=r"has no named columns, so '3' cannot be dropped"):
        read_table(_write(tmp_path / "a.libsvm", "1 3:1\n")).drop(["3"])


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_header_of_more_than_128_KiB(tmp_path, separator):
    """Tried with another separator it is one field, which Python's reader refuses."""
    d = 13_000
    names = [f"column{i}" for i in range(d)]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(separator.join(row) for row in (names, ["1"] * d, ["2.5"] * d)) + "\n")
    table = read_table(path)
    assert table.columns.shape == (2, d) and list(table.columns)[-1] == names[-1]
    assert table.columns.iloc[1, -1] == 2.5


def test_long_text_in_a_file_with_semicolons(tmp_path):
    path = tmp_path / "long.csv"
    path.write_text(f"text;y\n{'a' * 200_000};1,5\nb;2,5\n")
    table = read_table(path)
    assert table.columns["y"].tolist() == [1.5, 2.5] and len(table.columns["text"][0]) == 200_000
