"""Files in the format of libsvm: indices, line ends, kernel matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from mercer import SVC, Blocks, config
from mercer._errors import DataError, MemoryBudgetError
from mercer.data import libsvm
from mercer.data.libsvm import read_parts
from mercer.data.readers import read_table
from mercer.data.text_files import TextFile

ROWS = "1 0:1.5 3:2\n-1 1:0.5 2:1 # a remark\n1 0:1 1:2\n"
EXPECTED = [[1.5, 0, 0, 2], [0, 0.5, 1, 0], [1, 2, 0, 0]]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, end):
    (tmp_path / "a.svm").write_bytes(ROWS.replace("\n", end).encode())
    assert read_table(tmp_path / "a.svm").columns.toarray().tolist() == EXPECTED
    (block,) = Blocks(tmp_path / "a.svm")
    assert block.X.toarray().tolist() == EXPECTED and block.y.tolist() == [1, -1, 1]


def test_parts_are_those_of_the_whole(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4)) * (rng.uniform(size=(50, 4)) < 0.5)
    dump_svmlight_file(X, np.arange(50), str(tmp_path / "a.svm"), zero_based=True)
    monkeypatch.setattr(libsvm, "_CHUNK", 100)
    assert len(list(read_parts(TextFile(tmp_path / "a.svm")))) > 5
    table = read_table(tmp_path / "a.svm")
    expected, y = load_svmlight_file(str(tmp_path / "a.svm"), zero_based=True)
    assert np.array_equal(table.columns.toarray(), expected.toarray())
    assert np.array_equal(table.targets["label"], y)


@pytest.mark.parametrize("index", [2**31 - 1, 2**31, 2**63, 10**30])
@pytest.mark.parametrize("read", [read_table, Blocks])
def test_indices_that_are_too_large_have_a_place(tmp_path, index, read):
    (tmp_path / "a.svm").write_text(f"1 0:1 1:2\n1 0:1 {index}:2\n")
    with pytest.raises(
        DataError, match=rf"line 2, column 7: the index {index} is too large; the largest is 2147483646"
    ):
        read(tmp_path / "a.svm")


def test_the_largest_index_is_read(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:1 2147483646:2\n-1 0:3\n")
    table = read_table(tmp_path / "a.svm")
    assert table.columns.shape == (2, 2**31 - 1) and table.columns.nnz == 3


@pytest.mark.parametrize("read", [read_table, Blocks])
def test_a_kernel_matrix_is_no_table_of_features(tmp_path, read):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(8, 2))
    K, y = X @ X.T, np.where(X[:, 0] > 0, 1, -1)
    path = tmp_path / "a.svm"
    dump_svmlight_file(np.column_stack([np.arange(1, 9), K]), y, str(path), zero_based=True)
    with pytest.raises(DataError, match="a kernel matrix of 8 rows in LIBSVM's form") as caught:
        read(path)
    # What the message tells to do.
    assert "X, y = sklearn.datasets.load_svmlight_file(file, zero_based=True)" in str(caught.value)
    assert 'SVC(kernel="precomputed").fit(X[:, 1:].toarray(), y)' in str(caught.value)
    loaded, labels = load_svmlight_file(str(path), zero_based=True)
    model = SVC(kernel="precomputed").fit(loaded[:, 1:].toarray(), labels)
    np.testing.assert_allclose(
        model.decision_function(K), SVC(kernel="linear").fit(X, y).decision_function(X), atol=0.05
    )


def test_tables_that_count_rows_are_tables(tmp_path):
    X = np.column_stack([np.arange(1, 9), np.ones((8, 3))])
    dump_svmlight_file(X, np.ones(8), str(tmp_path / "a.svm"), zero_based=True)
    assert read_table(tmp_path / "a.svm").columns.shape == (8, 4)


def test_the_first_feature():
    X = csr_matrix([[0.0, 2.0], [3.0, 0.0], [0.0, 0.0], [4.0, 1.0]])
    assert libsvm.first_feature(X).tolist() == [0, 3, 0, 4]


def test_rows_beyond_the_budget_are_refused(tmp_path):
    (tmp_path / "a.svm").write_text("1 0:1 1:2 2:3 3:4\n" * 50_000)
    with config(memory="4MiB"), pytest.raises(MemoryBudgetError, match=r"reading .*a\.svm would take"):
        read_table(tmp_path / "a.svm")
