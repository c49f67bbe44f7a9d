"""Text files: packed, encoded, and in memory at a time."""

from __future__ import annotations

import gzip
import io
import json
import zipfile

import pandas as pd
import pytest

from mercer import Blocks, config
from mercer._errors import DataError, MemoryBudgetError, ParameterError
from mercer.data.readers import read_table
from mercer.data.text_files import TextFile, suffix_of

TEXT = "town,size\nZürich,1\nÉvian,2\n"
TOWNS = ["Zürich", "Évian"]


def towns(path, encoding=None):
    """Those of a file that is read whole, which are those that are read in blocks."""
    whole = read_table(path, encoding=encoding).columns["town"].tolist()
    (block,) = Blocks.from_csv(path, encoding=encoding).frames()
    assert block.X["town"].tolist() == whole
    return whole


@pytest.mark.parametrize("encoding", [None, "utf-8", "utf-8-sig", "UTF8", "utf-16", "cp1252", "latin-1", "mac_roman"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".zip"])
def test_encodings(tmp_path, encoding, suffix):
    path, data = tmp_path / f"a{suffix}", TEXT.encode(encoding or "utf-8")
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside/b.csv", data)
            archive.writestr("__MACOSX/inside/._b.csv", b"other")
    else:
        path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    assert towns(path, encoding) == TOWNS


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_tell_the_encoding(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes(TEXT.encode(encoding))
    assert towns(tmp_path / "a.csv") == TOWNS == towns(tmp_path / "a.csv", "utf-8")


def test_the_wrong_encoding_has_a_place_and_a_remedy(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    for read in (read_table, Blocks):
        with pytest.raises(DataError, match="line 2, column 2: the byte 0xfc is not UTF-8 text") as caught:
            read(path)
        assert 'Blocks.from_csv(..., encoding="cp1252")' in str(caught.value)
    assert towns(path, "cp1252") == TOWNS
    with pytest.raises(DataError, match="line 2, column 2: the byte 0xfc is not ascii text"):
        read_table(path, encoding="ascii")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_places_count_all_ends_of_lines(tmp_path, end):
    path = tmp_path / "a.csv"
    # Beyond the first part that is searched.
    path.write_bytes(end.join(["a,b", *["1,2"] * 300_000, "3,\xff", "4,5"]).encode("latin-1"))
    with pytest.raises(DataError, match="line 300002, column 3: the byte 0xff"):
        read_table(path)


def test_text_that_is_cut_within_a_letter(tmp_path):
    (tmp_path / "a.csv").write_bytes(TEXT.encode("utf-16")[:-1])
    with pytest.raises(DataError, match=r"a\.csv is not UTF-16 text\. Name its encoding"):
        read_table(tmp_path / "a.csv")


@pytest.mark.parametrize("encoding", ["klingon", "base64", "a\0b"])
def test_encodings_that_do_not_exist(tmp_path, encoding):
    (tmp_path / "a.csv").write_text(TEXT, encoding="utf-8")
    for read in (read_table, Blocks.from_csv):
        with pytest.raises(ParameterError, match=r"there is no encoding of text .* examples are cp1252"):
            read(tmp_path / "a.csv", encoding=encoding)


def test_files_that_have_no_encoding(tmp_path):
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="is not a text file, so it has no encoding; leave --encoding out"):
        read_table(tmp_path / "a.parquet", encoding="cp1252")


@pytest.mark.parametrize("names", [[], ["a.csv", "b.csv"]])
def test_archives_that_do_not_hold_one_table(tmp_path, names):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    for read in (read_table, Blocks):
        with pytest.raises(DataError, match=r"no file|2 files") as caught:
            read(tmp_path / "a.zip")
        assert "unpack it" in str(caught.value)


def test_damaged_archives(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(DataError, match="damaged"):
        read_table(tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "b.csv.zip", "w") as archive:
        archive.writestr("b.csv", TEXT * 10)
    raw = (tmp_path / "b.csv.zip").read_bytes()
    (tmp_path / "b.csv.zip").write_bytes(raw.replace(b"Z\xc3\xbcrich,1", b"Z\xc3\xbcrich,7"))
    with pytest.raises(DataError, match="damaged"):
        read_table(tmp_path / "b.csv.zip")


def test_tables_of_other_forms_are_not_read_from_archives(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.parquet", b"PAR1")
    with pytest.raises(DataError, match=r"holds a \.parquet file, and only text is read from such a file; unpack it"):
        read_table(tmp_path / "a.zip")


def test_packed_series_and_graphs(tmp_path):
    graph = {"graph": {"label": 1}, "nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps([graph, graph]).encode()))
    (tmp_path / "b.ts.gz").write_bytes(gzip.compress(b"@classLabel true a b\n@data\n1,2,3:a\n4,5,6:b\n"))
    assert read_table(tmp_path / "a.json.gz").n_rows == read_table(tmp_path / "b.ts.gz").n_rows == 2


@pytest.mark.parametrize("separator", ["\t", ",", ";"])
def test_txt_files(tmp_path, separator):
    path = tmp_path / "a.txt"
    path.write_text(TEXT.replace(",", separator), encoding="utf-8")
    assert towns(path) == TOWNS
    path.write_text("1 0:1.5\n-1 2:1\n")
    assert read_table(path).columns.shape == Blocks(path).shape == (2, 3)


def test_notes_beside_tables_are_not_read(tmp_path):
    (tmp_path / "a.csv").write_text(TEXT, encoding="utf-8")
    (tmp_path / "readme.txt").write_text("Towns and sizes.")
    assert sum(block.rows for block in Blocks(tmp_path, columns=["size"])) == 2


def test_suffixes(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("b.CSV", TEXT)
    assert suffix_of(tmp_path / "a.zip") == ".csv"
    assert suffix_of(tmp_path / "a.zip", inside=False) == ".zip"
    assert suffix_of(tmp_path / "c.tsv.zip", inside=False) == ".tsv"


BOMBS = {
    "one field": b"a,b\n" + b"x" * 8_000_000 + b",1\n",
    "after a row": b"a,b\n1,2\n" + b"x" * 8_000_000 + b",1\n",
    "a header": b"a" * 8_000_000 + b",b\n1,2\n",
    "a quotation of many lines": b'a,b\n1,2\n"' + b"x\n" * 4_000_000 + b'",1\n',
    "no end of a line": b"x" * 8_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".zip"])
def test_text_beyond_the_budget_is_refused_before_it_is_in_memory(tmp_path, name, suffix):
    path = tmp_path / f"bomb{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("bomb.csv", BOMBS[name])
    else:
        path.write_bytes(gzip.compress(BOMBS[name]) if suffix.endswith(".gz") else BOMBS[name])
    for read in (read_table, lambda path: list(Blocks(path).frames())):
        with config(memory="10MiB"), pytest.raises(MemoryBudgetError, match=r"bomb\.[a-z.]+ \(.* of text\) would take"):
            read(path)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_many_lines_are_refused_whole_and_read_in_blocks(tmp_path, suffix):
    path, data = tmp_path / f"a{suffix}", b"a,b\n" + b"1.5,2.25\n" * 300_000
    path.write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    with config(memory="10MiB"):
        with pytest.raises(MemoryBudgetError, match="would have to be at least"):
            read_table(path)
        assert sum(block.rows for block in Blocks(path, rows_per_block=10_000)) == 300_000
    assert read_table(path).n_rows == 300_000


@pytest.mark.parametrize("name", ["a.svm.gz", "a.json.gz", "a.ts.gz"])
def test_other_text_beyond_the_budget(tmp_path, name):
    begin = {"a.svm.gz": b"1 0:1\n1 0:", "a.json.gz": b'["', "a.ts.gz": b"@data\n"}[name]
    (tmp_path / name).write_bytes(gzip.compress(begin + b"9" * 8_000_000))
    with config(memory="10MiB"), pytest.raises(MemoryBudgetError, match="of text"):
        read_table(tmp_path / name)


def test_bytes_are_read_as_asked(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\ntwo\r\nthree\rfour")
    with TextFile(tmp_path / "a.txt").open() as lines:
        assert list(lines) == ["one\n", "two\r\n", "three\r", "four"]
        assert not lines.buffer.closed
    assert lines.buffer.closed
    with TextFile(tmp_path / "a.txt").open(newline=None) as lines:
        assert lines.read() == "one\ntwo\nthree\nfour"
    with TextFile(tmp_path / "a.txt").open("whole") as lines:
        assert io.StringIO(lines.read(4)).read() == "one\n"
