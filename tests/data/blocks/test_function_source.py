"""User-defined functions as sources."""

from __future__ import annotations

import gc
import threading
import weakref
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mercer import Blocks, KernelRidge
from mercer._errors import DataError
from mercer.data.blocks.block import join

X = np.arange(12.0).reshape(6, 2)
y = np.arange(6.0)
TABLE = pd.DataFrame(X, columns=["a", "b"])


def blocks_of(*items, **options):
    def load():
        yield from items

    return Blocks(load, rows_per_block=4, **options)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([], r"load\(\) yields no rows"),
        ([X[:0]], "yields no rows"),
        ([X, X[:, :1]], r"block 1 of load\(\) has 1 columns, but the first block has 2"),
        ([(X, y), (X, y[:5])], r"block 1 of load\(\) has 6 rows, but y has shape \(5,\)"),
        ([(X, y, y[:2])], r"has 6 rows, but sample_weight has shape \(2,\)"),
        ([(X, y), X], "block 1 of load.. *: y is given for some blocks and not for others"),
        ([(X, y), (X, y, y)], "sample_weight is given for some blocks"),
        ([(X, y, y, y)], "is a tuple of 4"),
        ([y], r"must have two dimensions \(rows, columns\), but has shape \(6,\)"),
        ([X, sp.csr_matrix(X)], "block 1 of load.. is a csr_matrix, but the first block is a ndarray"),
        ([TABLE, X], "block 1 of load.. is a ndarray, but the first block is a DataFrame"),
        ([TABLE, TABLE[["a"]]], "block 1 of load.. has no column 'b', which the first block has"),
        ([TABLE, TABLE.assign(c=1)], "block 1 of load.. has a column 'c'"),
        ([TABLE, TABLE.assign(a=["1", "2", "u", "", "", ""])], "block 1 of load.., row 1: the column 'a' holds text"),
        ([X.astype(np.float32), X], "block 1 of load.. is of float64, but the first block of float32"),
        ([(X, y.astype(int)), (X, y + 0.5)], "the target y holds numbers with fractions from here on"),
        ([(X, y.astype(str)), (X, y)], "the target y holds numbers with fractions .* but text in the first"),
        ([(X, y), (X, np.where(y == 3, np.nan, y))], "block 1 of load.., row 4: the target y is missing"),
        ([X, np.where(X == 5, np.nan, X)], "block 1 of load.., row 3, column 1: a value is missing"),
        ([sp.csr_matrix(X), sp.csr_matrix(np.where(X == 5, -np.inf, X))], "row 3, column 1: a value is infinite"),
        (
            [(X, y), (X, np.c_[y, y])],
            r"block 1 of load.., row 1: y is of shape \(n, 2\) from here on, but of shape \(n,\)",
        ),
        ([(X, np.c_[y, y]), (X, y)], r"y is of shape \(n,\) from here on, but of shape \(n, 2\) in the first"),
        ([(X, y[:, None]), (X, y)], r"y is of shape \(n,\) from here on, but of shape \(n, 1\) in the first"),
        ([(X, y, -y)], "row 2: the sample weight sample_weight is -1.0"),
        ([(X, y, ["u"] * 6)], "the sample weights sample_weight are not numbers"),
        ([X.astype(complex)], "Complex data not supported"),
        ([np.array([["a", "b"]])], "must be a table of numbers"),
    ],
)
def test_blocks_that_do_not_fit(items, words):
    with pytest.raises(DataError, match=words):
        list(blocks_of(*items))


def test_blocks_of_every_form():
    assert join(list(blocks_of(X, X[:0], X[:1]))).X.shape == (7, 2)
    assert join(list(blocks_of((X,), (X,)))).y is None
    found = join(list(blocks_of((TABLE, y), (TABLE, y))))
    assert found.y.tolist() == [*y, *y] and found.X.tolist() == [*X.tolist(), *X.tolist()]
    named = blocks_of(TABLE.assign(y=y), target="y", sample_weight="a")
    assert named.columns == ("b",) and join(list(named)).sample_weight.tolist() == X[:, 0].tolist()
    assert blocks_of(X.astype(np.int8), X.astype(np.float32)).dtype == np.float64
    assert join(list(blocks_of((X, y), (X, y.astype(int))))).y.dtype == np.float64
    assert blocks_of([[1, 2]], [[3, 4]]).n == 2


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, pd.DataFrame])
def test_the_first_block_is_not_kept(form):
    alive = []

    def load():
        rows = form(np.zeros((1000, 50)))
        if not alive:
            alive.append(weakref.ref(rows))
        yield rows

    blocks = Blocks(load)
    del load
    gc.collect()
    assert alive[0]() is None and blocks.d == 50


def test_names_that_do_not_apply():
    with pytest.raises(DataError, match="yields arrays, whose columns have no names"):
        blocks_of((X, y), target="y")
    with pytest.raises(DataError, match="yields targets, so leave out target='a'"):
        blocks_of((TABLE, y), target="a")


@pytest.mark.parametrize("answer", [None, X, TABLE, "text", {"X": X}])
def test_functions_that_return_no_iterator(answer):
    with pytest.raises(DataError, match="must return an iterator of blocks"):
        Blocks(lambda: answer)


def _rows_of(blocks):
    return blocks.n


def _survey(blocks):
    return blocks.survey()


def _predictions(blocks):
    return KernelRidge().fit(X, y).predict(blocks)


def _frames(blocks):
    return list(blocks.frames())


@pytest.mark.parametrize("use", [_rows_of, _survey, _predictions, list])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_an_iterator_that_can_be_read_once_is_refused(use, form):
    for parts in ([X, X + 1, X + 2], [X]):
        once = (form(part) for part in parts)
        blocks = Blocks(lambda once=once: once, rows_per_block=4)
        with pytest.raises(DataError, match=r"the first 6 rows .* must return a new iterator over the same rows"):
            use(blocks)


@pytest.mark.parametrize("use", [_rows_of, _survey, _frames, list])
def test_a_new_iterator_over_one_that_is_used_up_is_refused(use):
    once = iter([TABLE.assign(y="u"), TABLE.assign(y="v", a=7.0)])
    blocks = Blocks(lambda: (part for part in once), target="y", rows_per_block=4)
    with pytest.raises(DataError, match=r"the first 6 rows .* are not those of its first call"):
        use(blocks)


def test_blocks_may_be_cut_anew_in_each_pass():
    cuts = iter([[0, 4, 6], [0, 1, 6], [0, 6], [0, 3, 4, 6]])

    def load():
        cut = next(cuts)
        for start, stop in pairwise(cut):
            yield X[start:stop], y[start:stop]

    blocks = Blocks(load, rows_per_block=4)
    for _ in range(3):
        assert join(list(blocks)).X.tolist() == X.tolist()


def test_columns_that_are_not_used_may_hold_anything():
    table = TABLE.assign(c=[[1], [], {}, None, set(), "u"])
    assert blocks_of(table, table, columns=["a", "b"]).survey().n == 12


def test_errors_of_the_function_come_through():
    def load():
        yield X
        raise RuntimeError("the data base is gone")

    with pytest.raises(RuntimeError, match="data base is gone"):
        list(Blocks(load))


def test_the_function_runs_in_the_thread_of_the_caller():
    def load():
        seen.append(threading.current_thread())
        yield X

    seen = []
    list(Blocks(load))
    assert set(seen) == {threading.current_thread()}
