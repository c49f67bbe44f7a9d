"""Folders and archives of series, damaged or made to harm: series, or a documented error."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mercer._errors import DataError, MercerError
from mercer.data.readers import read_table
from mercer.data.roles import read_objects

SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}

# ---- folders

LABELS = b"file,kind\na.csv,slow\nb.csv,fast\nc.csv,slow\n"
FILES = {
    "labels.csv": LABELS,
    "a.csv": b"x,y\n1,2\n3,4\n5,6\n",
    "b.csv": b"x,y\n1.5,2\n3,-4e3\n",
    "c.csv": b"x,y\n0,0\n",
}
PIECES = st.sampled_from(
    [
        b"\0",
        b'"',
        b",",
        b"\n",
        b"\r",
        b";",
        b"\xff",
        b"nan",
        b"inf",
        b"1e999",
        b"1e200",
        b"-",
        b"2020-01-01",
        b"9" * 400,
        b"\xef\xbb\xbf",
        b"true",
        b"a.csv",
        b"../a.csv",
        b"/etc/hostname",
        b".",
        b"..",
        b"labels.csv",
        b"nothing.csv",
        b"inside",
        b"file",
        b"series",
        b"c.csv\0",
        b"x" * 300,
        b"a.npz",
        b"sample:iris",
        b"\xc3\xa4.csv",
    ]
)
EDITS = st.lists(
    st.tuples(st.sampled_from(sorted(FILES)), st.integers(0, 60), st.integers(0, 8), PIECES | st.binary(max_size=4)),
    max_size=4,
)
LOST = st.sets(st.sampled_from(sorted(FILES)), max_size=1)


def reads_or_says_why(path: Path, axes: str | None = None) -> None:
    try:
        table = read_table(path, axes=axes)
        if "series" not in table.roles:
            assert path.suffix == ".npz"
            return
        series = read_objects(table.columns["series"], "series", "series", table.source, table.locate)
    except MercerError as error:
        assert 10 < len(str(error)) < 2000
        return
    assert len(series) == table.n_rows > 0
    assert (series.lengths > 0).all()
    assert all(item.shape[1] == series.channels and np.isfinite(item).all() for item in series)


def _folder(root: Path, edits: list[Any], lost: set[str]) -> Path:
    folder = root / "waves"
    (folder / "inside").mkdir(parents=True, exist_ok=True)
    files = dict(FILES)
    for name, place, cut, piece in edits:
        raw = files[name]
        place %= len(raw) + 1
        files[name] = raw[:place] + piece + raw[place + cut :]
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    for name in lost:
        (folder / name).unlink()
    return folder


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("series")
    (root / "a.csv").write_bytes(b"secret\n1\n2\n")
    return root


def test_the_honest_folder_is_read(root):
    table = read_table(_folder(root, [], set()))
    assert table.n_rows == 3 and table.roles == {"series": "series"}
    assert [len(item) for item in table.columns["series"]] == [3, 2, 1]


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (("labels.csv", 10, 5, b""), "line 2: the name of the file is missing"),
        (("labels.csv", 10, 5, b"x" * 300), "line 2: the file 'xxx"),
        (("labels.csv", 10, 5, b"../a.csv"), "line 2: the file '../a.csv' does not exist"),
    ],
)
def test_folders_that_were_edited_in_one_place(root, edit, words):
    with pytest.raises(DataError, match=re.escape(words)):
        read_table(_folder(root, [edit], set()))


def test_a_number_of_hundreds_of_digits_is_refused_by_the_name_of_its_file(root):
    # pandas 3.0 refuses the table; by others it is read, and refused as a series.
    words = r"a\.csv (is not a series: |has a whole number of over 300 digits)"
    with pytest.raises(DataError, match=words):
        read_table(_folder(root, [("a.csv", 4, 0, b"9" * 400)], set()))


@settings(max_examples=80, derandomize=True, **SETTINGS)
@given(edits=EDITS, lost=LOST)
def test_edited_folders(root, edits, lost):
    reads_or_says_why(_folder(root, edits, lost))


@pytest.mark.slow
@settings(max_examples=800, **SETTINGS)
@given(edits=EDITS, lost=LOST)
def test_many_edited_folders(root, edits, lost):
    reads_or_says_why(_folder(root, edits, lost))


# ---- archives

DTYPES = st.sampled_from(["<f8", ">f8", "<f4", "<f2", "<i4", ">i2", "u1", "?", "<c16", "<M8[s]", "<U3", "S2", "<u8"])
SIZES = st.integers(0, 4)
NUMBERS = st.sampled_from([0.0, 1.0, -2.5, 3e4, float("nan"), float("inf"), -1e200, 1e308, 7.0])


@st.composite
def arrays(draw: st.DrawFn, ndim: st.SearchStrategy[int]) -> np.ndarray:
    shape = tuple(draw(SIZES) for _ in range(draw(ndim)))
    values = draw(st.lists(NUMBERS, min_size=1, max_size=8))
    array = np.resize(np.array(values), shape)
    with np.errstate(all="ignore"):
        return np.array(array, order=draw(st.sampled_from("CF"))).astype(draw(DTYPES))


@st.composite
def archives(draw: st.DrawFn) -> dict[str, np.ndarray]:
    contents = {"X": draw(arrays(st.sampled_from([3, 3, 3, 2, 4, 0])))}
    n = contents["X"].shape[0] if contents["X"].ndim else 0
    if draw(st.booleans()):
        targets = [np.arange(n), np.array(["a", "b"] * n)[:n], np.zeros((n, 1)), np.float64(1)]
        contents["y"] = draw(st.sampled_from(targets))
    if draw(st.booleans()):
        counts = st.lists(st.integers(-1, 5) | st.just(2**40), min_size=n, max_size=n)
        whole = np.array(draw(counts)).astype(draw(st.sampled_from(["<i8", ">i4", "<u8", "<f8"])))
        contents["lengths"] = draw(st.just(whole) | arrays(st.integers(0, 2)))
    if draw(st.booleans()):
        texts = st.sampled_from(["ntc", "nct", "tcn", "", "ntc\0", "n" * 300]) | st.text(max_size=4)
        contents["axes"] = np.array(draw(texts))
    if draw(st.booleans()):
        contents[draw(st.sampled_from(["label", "target", "columns", "X2", "times", "series"]))] = np.arange(n)
    return contents


def _archive(members: dict[str, np.ndarray]) -> bytes:
    out = io.BytesIO()
    np.savez(out, **members)
    return out.getvalue()


AXES = st.sampled_from([None, None, "ntc", "nct", "tcn", ""])


@settings(max_examples=150, derandomize=True, **SETTINGS)
@given(members=archives(), axes=AXES)
def test_archives_of_any_arrays(root, members, axes):
    path = root / "any.npz"
    path.write_bytes(_archive(members))
    reads_or_says_why(path, axes)


@pytest.mark.slow
@settings(max_examples=1_300, **SETTINGS)
@given(members=archives(), axes=AXES)
def test_many_archives_of_any_arrays(root, members, axes):
    path = root / "many.npz"
    path.write_bytes(_archive(members))
    reads_or_says_why(path, axes)


HONEST = _archive(
    {"X": np.arange(24.0).reshape(3, 4, 2), "y": np.arange(3), "lengths": np.array([4, 1, 2]), "axes": np.array("ntc")}
)


@settings(max_examples=80, derandomize=True, **SETTINGS)
@given(edits=st.lists(st.tuples(st.integers(0, len(HONEST)), st.integers(0, 6), st.binary(max_size=4)), max_size=3))
def test_edited_archives(root, edits):
    path, raw = root / "edited.npz", HONEST
    for place, cut, piece in edits:
        raw = raw[:place] + piece + raw[place + cut :]
    path.write_bytes(raw)
    reads_or_says_why(path)
