"""Files in the svmlight format."""

from __future__ import annotations

import gzip

import pytest
import scipy.sparse as sp

from mercer import Blocks
from mercer._errors import DataError
from mercer.data import libsvm
from mercer.data.blocks.block import join


def test_widths_are_those_of_all_files(tmp_path, monkeypatch):
    # A line or two at a time.
    monkeypatch.setattr(libsvm, "_CHUNK", 8)
    (tmp_path / "a.svm").write_text("# a remark\n1 0:2 3:4\n\n-1 1:1\n2\n")
    (tmp_path / "b.svmlight").write_text("")
    with gzip.open(tmp_path / "c.libsvm.gz", "wt") as file:
        file.write("1 5:1.5\n")
    blocks = Blocks(tmp_path, rows_per_block=3)
    assert blocks.shape == (4, 6)
    found = join(list(blocks))
    assert sp.issparse(found.X) and found.y.tolist() == [1, -1, 2, 1]
    assert found.X.toarray().tolist() == [[2, 0, 0, 4, 0, 0], [0, 1, 0, 0, 0, 0], [0] * 6, [0, 0, 0, 0, 0, 1.5]]
    assert Blocks.from_svmlight(tmp_path, n_features=6).fingerprint == blocks.fingerprint
    with pytest.raises(DataError, match=r"c\.libsvm\.gz has the feature 5, but n_features is 4"):
        list(Blocks.from_svmlight(tmp_path, n_features=4))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 0:2\nx 1:1\n", "line 2, column 1: the label 'x' is not a number"),
        ("1 0:2\n1 1:y\n", "line 2, column 3: '1:y' is not of the form index:value"),
        ("1 0:nan\n", r"a\.svm, row 1, column 0: a value is missing"),
        ("nan 0:1\n", r"a\.svm, row 1: the target y is missing"),
        ("", "has no rows"),
        ("1\n2\n", "has no features"),
        ("1 0:1 1:4 2:6\n-1 0:2 1:6 2:9\n", "a kernel matrix of 2 rows in LIBSVM's form"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, text, words):
    (tmp_path / "a.svm").write_text(text)
    with pytest.raises(DataError, match=words):
        list(Blocks(tmp_path / "a.svm"))


def test_damaged_files(tmp_path):
    with gzip.open(tmp_path / "a.svm.gz", "wt") as file:
        file.write("1 0:2\n" * 100)
    (tmp_path / "a.svm.gz").write_bytes((tmp_path / "a.svm.gz").read_bytes()[:-10])
    with pytest.raises(DataError, match="damaged or was cut short"):
        Blocks(tmp_path / "a.svm.gz")
