"""Files by path, pattern, folder and list."""

from __future__ import annotations

import os

import pytest

from mercer._errors import DataError, ParameterError
from mercer.data.blocks.files import Files, find_files

CSV = (".csv",)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "_log").mkdir()
    for name in ("b.csv", "a.csv", "in/c.CSV.gz", "_left.csv", ".hidden.csv", "notes.txt", "_log/d.csv", "[x].csv"):
        (tmp_path / name).write_text("x\n1\n")
    return tmp_path


def names(folder, source):
    return [path.relative_to(folder).as_posix() for path in find_files(source, CSV)]


def test_what_is_found(folder):
    assert names(folder, folder) == ["[x].csv", "a.csv", "b.csv", "in/c.CSV.gz"]
    assert names(folder, str(folder / "*.csv")) == ["[x].csv", "_left.csv", "a.csv", "b.csv"]
    assert names(folder, str(folder / "**" / "[cd].*")) == ["_log/d.csv", "in/c.CSV.gz"]
    # Files that are named are read, in the order given, also if the name looks like a pattern.
    assert names(folder, [folder / "b.csv", folder / "_left.csv"]) == ["b.csv", "_left.csv"]
    assert names(folder, folder / "[x].csv") == ["[x].csv"]


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("none.csv", r"none\.csv does not exist. .* holds '\[x\]\.csv', '_left\.csv', '_log', 'a\.csv', .* and 2 more"),
        ("no/none.csv", r"none\.csv does not exist\.$"),
        ("*.txt.csv", r"no file matches '.*\*\.txt\.csv'"),
        (["a.csv", "a.csv"], r"a\.csv is named twice"),
        (["a.csv", "*.csv"], r"a\.csv is named twice"),
        ("x" * 300 + ".csv", "cannot be a file: File name too long"),
        ([], "the list of files is empty"),
    ],
)
def test_what_is_not_found(folder, source, words):
    paths = [str(folder / one) for one in source] if isinstance(source, list) else str(folder / source)
    with pytest.raises(DataError, match=words):
        find_files(paths, CSV)


def test_folders_without_files_of_the_kind(folder):
    with pytest.raises(DataError, match=r"the folder .* has no files with the suffix \.npy or \.pq"):
        find_files(folder, (".npy", ".pq"))


def test_names_that_are_no_names():
    with pytest.raises(ParameterError, match="a file must be named by a str or a Path, but one is '3'"):
        find_files([3], CSV)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_pipes_cannot_be_read_twice(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(DataError, match="is a pipe or a device"):
        find_files(tmp_path / "pipe.csv", CSV)


def test_a_file_of_the_same_size_at_another_time(folder):
    files = Files.of([folder / "a.csv"])
    files.check()
    os.utime(folder / "a.csv", ns=(0, 1))
    with pytest.raises(DataError, match=r"a\.csv has changed since these Blocks were made; make new Blocks"):
        files.check()
