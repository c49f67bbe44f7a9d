"""The lazy Gram matrix against the dense block, and the precomputed one with the same interface."""

from __future__ import annotations

import copy
import gc
import pickle
import re
import weakref
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, cg, eigsh
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import RBF as SklearnRBF

import mercer
from mercer import kernels
from mercer._errors import DataError, KernelValueError, MemoryBudgetError, ParameterError
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.precomputed import check_square

RNG = np.random.default_rng(4)
X, Z = RNG.normal(size=(40, 3)), RNG.normal(size=(23, 3))
KERNEL = 0.5 * kernels.RBF([1.0, 2.0, 1.5]) + kernels.Linear().normalized() + kernels.White(0.3)


def _lazy(symmetric: bool) -> Gram:
    return Gram(KERNEL, X) if symmetric else Gram(KERNEL, X, Z)


def _precomputed(symmetric: bool) -> PrecomputedGram:
    return PrecomputedGram(KERNEL(X) if symmetric else KERNEL(X, Z), symmetric=symmetric)


MAKERS = pytest.mark.parametrize("make", [_lazy, _precomputed], ids=["lazy", "precomputed"])
SYMMETRIC = pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "block"])

INDEXES: list[Any] = [
    None,
    slice(None),
    slice(3, 17),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(-4, None),
    slice(9, 3),
    slice(15, 2, -3),
    slice(5, 1000),
    3,
    -2,
    [4],
    [7, 1, 1, -3],
    [],
    list(range(20, 0, -1)),
]


def _picked(K: np.ndarray, rows: Any, columns: Any) -> np.ndarray:
    positions = []
    for n, index in zip(K.shape, (rows, columns), strict=True):
        index = slice(None) if index is None else index if isinstance(index, slice) else np.asarray(index, int)
        positions.append(np.atleast_1d(np.arange(n)[index]))
    return K[np.ix_(*positions)]


def _id(index: Any) -> str:
    return repr(index)[:30]


@MAKERS
@SYMMETRIC
@pytest.mark.parametrize("rows", INDEXES, ids=_id)
def test_parts(make: Any, symmetric: bool, rows: Any) -> None:
    gram = make(symmetric)
    K = gram.dense()
    for columns in ([2, 0, 5], slice(1, 6), None, [], slice(None, None, -2)):
        expected = _picked(K, rows, columns)
        part = gram.restrict(rows, columns)
        assert part.shape == expected.shape
        assert part.nbytes == expected.nbytes
        np.testing.assert_allclose(part.dense(), expected, atol=1e-14)
        np.testing.assert_allclose(gram.block(rows, columns), expected, atol=1e-14)
        V = RNG.normal(size=(expected.shape[1], 2))
        np.testing.assert_allclose(part @ V, expected @ V, atol=1e-12)
        np.testing.assert_allclose(part @ V[:, 0], expected @ V[:, 0], atol=1e-12)
        out = np.full(expected.shape, np.nan)
        assert gram.block(rows, columns, out=out) is out
        np.testing.assert_allclose(out, expected, atol=1e-14)
    np.testing.assert_allclose(gram.rows(rows), _picked(K, rows, None), atol=1e-14)


@MAKERS
def test_masks_and_integer_arrays(make: Any) -> None:
    gram = make(True)
    K = gram.dense()
    mask = X[:, 0] > 0
    np.testing.assert_allclose(gram.rows(mask), K[mask], atol=1e-14)
    np.testing.assert_allclose(gram.block(mask, ~mask), K[np.ix_(mask, ~mask)], atol=1e-14)
    np.testing.assert_allclose(gram.rows(np.uint8([3, 9])), K[[3, 9]], atol=1e-14)
    np.testing.assert_allclose(gram.rows(mask.tolist()), K[mask], atol=1e-14)


@MAKERS
def test_parts_of_parts(make: Any) -> None:
    gram = make(True)
    K = gram.dense()
    index = np.array([9, 3, 3, 30, 12])
    part = gram.restrict(index, index)
    assert part.symmetric
    assert not gram.restrict(index, index.copy()).symmetric
    again = part.restrict([4, 0, 1], slice(None, None, -1))
    expected = K[np.ix_(index, index)]
    np.testing.assert_allclose(part.dense(), expected, atol=1e-14)
    np.testing.assert_allclose(part.diagonal(), expected.diagonal(), atol=1e-14)
    np.testing.assert_allclose(again.dense(), expected[np.ix_([4, 0, 1], [4, 3, 2, 1, 0])], atol=1e-14)
    np.testing.assert_allclose(gram.restrict(slice(4, 20), None).restrict([0, -1], [5]).dense(), K[[4, 19]][:, [5]])


@MAKERS
@SYMMETRIC
def test_the_interface(make: Any, symmetric: bool) -> None:
    gram = make(symmetric)
    K = KERNEL(X) if symmetric else KERNEL(X, Z)
    assert gram.shape == K.shape
    assert gram.dtype == np.float64
    assert gram.symmetric is symmetric
    assert gram.nbytes == K.nbytes
    np.testing.assert_array_equal(gram.dense(), K)
    own = gram.dense()
    own[...] = 0
    np.testing.assert_array_equal(gram.dense(), K)
    if symmetric:
        np.testing.assert_allclose(gram.diagonal(), K.diagonal())
        assert gram.diagonal().dtype == np.float64
    else:
        with pytest.raises(DataError, match="only the Gram matrix of rows with themselves has a diagonal"):
            gram.diagonal()
    single = gram.astype(np.float32)
    assert single.dtype == np.float32
    assert single.dense().dtype == np.float32
    assert single.symmetric is symmetric
    np.testing.assert_allclose(single.dense(), K, rtol=1e-5, atol=1e-5)
    assert single.nbytes == K.nbytes // 2
    np.testing.assert_array_equal(single.astype(np.float64).dense().dtype, np.float64)


@MAKERS
@SYMMETRIC
def test_products(make: Any, symmetric: bool) -> None:
    gram = make(symmetric)
    K, m = gram.dense(), gram.shape[1]
    V = RNG.normal(size=(m, 3))
    forms = (V, V[:, 0], V[:, :0], np.asfortranarray(V), V[:, ::2], V.tolist(), np.ones(m, int), np.ones((m, 1), bool))
    for form in forms:
        np.testing.assert_allclose(gram @ form, K @ np.asarray(form), atol=1e-12)
        assert (gram @ form).dtype == np.float64
    single = gram.astype(np.float32)
    assert (single @ V.astype(np.float32)).dtype == np.float32
    assert (single @ V).dtype == np.float64
    assert (gram @ V.astype(np.float32)).dtype == np.float64
    np.testing.assert_allclose(single @ V, K @ V, rtol=1e-4, atol=1e-4)


@MAKERS
def test_linear_operators(make: Any) -> None:
    gram, block = make(True), make(False)
    K, B = gram.dense(), block.dense()
    operator = block.as_linear_operator()
    assert isinstance(operator, LinearOperator)
    u, v = RNG.normal(size=40), RNG.normal(size=23)
    np.testing.assert_allclose(operator @ v, B @ v, atol=1e-12)
    np.testing.assert_allclose(operator.T @ u, B.T @ u, atol=1e-12)
    np.testing.assert_allclose(operator @ np.column_stack([v, v]), np.column_stack([B @ v] * 2), atol=1e-12)
    np.testing.assert_allclose(operator.H @ np.column_stack([u, u]), np.column_stack([B.T @ u] * 2), atol=1e-12)
    solution, failed = cg(gram.as_linear_operator(), u, rtol=1e-10)
    assert failed == 0
    np.testing.assert_allclose(K @ solution, u, atol=1e-7)
    largest = eigsh(gram.as_linear_operator(), k=2, return_eigenvectors=False)
    np.testing.assert_allclose(np.sort(largest), np.linalg.eigvalsh(K)[-2:], rtol=1e-9)


@pytest.mark.parametrize(
    "kernel", [kernels.RBF(1.2), kernels.Laplacian() + kernels.Linear(), kernels.White()], ids=repr
)
def test_parts_and_products_across_tiles(kernel: kernels.Kernel) -> None:
    A = RNG.normal(size=(1030, 2))
    gram = Gram(kernel, A)
    K, index, V = gram.dense(), RNG.permutation(1030)[:600], RNG.normal(size=(1030, 2))
    np.testing.assert_allclose(gram @ V, K @ V, atol=1e-9)
    part = gram.restrict(index, None)
    np.testing.assert_allclose(part.dense(), K[index], atol=1e-12)
    np.testing.assert_allclose(part @ V, K[index] @ V, atol=1e-9)
    square = gram.restrict(index, index)
    np.testing.assert_allclose(square @ V[:600], K[np.ix_(index, index)] @ V[:600], atol=1e-9)


def test_sums_are_taken_in_float64() -> None:
    """2^24 + 1, a term from either of two tiles, is no number of float32."""
    A, V = np.zeros((1025, 1), np.float32), np.zeros(1025)
    V[[0, 600]] = 2**24, 1
    for gram in (Gram(kernels.Constant(1.0), A), Gram(kernels.Constant(1.0), A, A)):
        assert gram.dtype == np.float32
        np.testing.assert_array_equal(gram @ V, 2.0**24 + 1)


@MAKERS
@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda g: g @ np.ones(39), r"K has 40 columns, so it cannot multiply an array of shape \(39,\)"),
        (lambda g: g @ np.ones((40, 1, 1)), "cannot multiply an array of shape"),
        (lambda g: g @ 2.0, r"cannot multiply an array of shape \(\)"),
        (lambda g: g @ (1j * np.ones(40)), "arrays of real numbers, not of complex128"),
        (lambda g: g @ np.array(["a"] * 40), "arrays of real numbers"),
        (lambda g: g.rows([40]), "row positions range from 40 to 40, but there are only 40"),
        (lambda g: g.rows([-41, 2]), "row positions range from -41 to 2"),
        (lambda g: g.restrict(None, [99]), "column positions range from 99 to 99"),
        (lambda g: g.rows([0.5]), "must be a slice, a list of whole numbers or a mask of length 40, .* float64"),
        (lambda g: g.rows([True, False]), r"a mask of length 40, but are an array of bool of shape \(2,\)"),
        (lambda g: g.rows([[1, 2]]), r"of shape \(1, 2\)"),
        (lambda g: g.rows(["a"]), "must be a slice, a list of whole numbers"),
        (lambda g: g.dense(np.empty((3, 3))), r"out has shape \(3, 3\), but the (block|matrix) has shape \(40, 40\)"),
        (lambda g: g.block([1], [2], out=np.empty((2, 2))), r"out has shape \(2, 2\)"),
    ],
)
def test_what_is_refused(make: Any, use: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        use(make(True))


def test_what_the_lazy_one_refuses() -> None:
    with pytest.raises(ParameterError, match="float32 or float64, not in float16"):
        Gram(KERNEL, X, dtype=np.float16)
    with pytest.raises(DataError, match="the same number of columns"):
        Gram(KERNEL, X, Z[:, :2])
    with pytest.raises(DataError, match="X contains NaN"):
        Gram(KERNEL, [[np.nan, 1.0, 1.0]])
    with np.errstate(over="ignore"), pytest.raises(KernelValueError, match=r"returned inf; scale the columns"):
        Gram(kernels.ExponentialDot(), 100 * X) @ np.ones(40)
    with np.errstate(over="ignore"), pytest.raises(KernelValueError, match="returned inf"):
        Gram(kernels.ExponentialDot(), 100 * X).diagonal()
    assert np.isnan(Gram(KERNEL, X) @ np.full(40, np.nan)).all()


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones(3), "must be a two-dimensional array of real numbers, but is ndarray of float64 and shape"),
        (np.ones((2, 3)), r"must be square, .* but has shape \(2, 3\)"),
        (np.empty((0, 0)), r"is empty: its shape is \(0, 0\)"),
        (1j * np.eye(2), "array of real numbers"),
        ([["a"]], "array of real numbers"),
        (sp.eye(2), "array of real numbers"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), r"has nan at \[0, 1\]; every entry must be finite"),
        (np.array([[1.0, 2.0], [3.0, 1.0]]), r"not symmetric: K\[0, 1\] = 2 and K\[1, 0\] = 3; pass \(K \+ K.T\) / 2"),
    ],
)
def test_precomputed_matrices_that_are_refused(K: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        check_square(K)


def test_precomputed_matrices_that_are_taken() -> None:
    assert check_square([[1, 2], [2, 1]]).dtype == np.float64
    assert check_square(np.eye(2, dtype=bool)).dtype == np.float64
    assert check_square(np.zeros((2, 2))).shape == (2, 2)
    K = kernels.RBF()(X.astype(np.float32))
    assert check_square(K) is K
    noisy = K + np.float32(1e-7) * RNG.normal(size=K.shape).astype(np.float32)
    assert check_square(noisy) is noisy


def test_other_kinds_of_rows() -> None:
    words = ["gram", "mercer", "ram", "kernel"]
    same = kernels.from_function(lambda x, z: float(len(set(x) & set(z))), pairwise=True)
    gram = Gram(same, words)
    np.testing.assert_array_equal(gram.block([3, 0], slice(None, None, -1)), same(words)[[3, 0], ::-1])
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": "x"}, index=np.arange(40)[::-1] * 3)
    kernel = kernels.RBF().on("b") + kernels.Linear().on(["a"]).scaled_by(lambda T: 1 + T["a"] ** 2)
    named = Gram(kernel, table)
    K = named.dense()
    np.testing.assert_allclose(K, kernels.RBF()(X[:, [1]]) + np.outer(s := X[:, 0] * (1 + X[:, 0] ** 2), s))
    np.testing.assert_allclose(named.block([5, 2], [7, 7, 0]), K[np.ix_([5, 2], [7, 7, 0])])
    np.testing.assert_allclose(named.restrict([5, 2], None) @ X, K[[5, 2]] @ X, atol=1e-12)


def test_prints_what_it_is() -> None:
    assert repr(Gram(kernels.RBF(2.0), X, Z)) == "Gram(RBF(2.0), 40 x 23, float64)"


@pytest.mark.parametrize("columns", [3, 60, 90])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_with_themselves_and_rows_that_overlap(columns: int, dtype: Any) -> None:
    rows = np.random.default_rng(0).normal(size=(700, columns)).astype(dtype)
    gram = Gram(kernels.RBF(columns**0.5), rows)
    whole = gram.dense()
    np.testing.assert_array_equal(whole, whole.T)
    np.testing.assert_array_equal(whole.diagonal(), 1.0)
    expected = np.exp(-0.5 * cdist(rows.astype(float), rows.astype(float), "sqeuclidean") / columns)
    np.testing.assert_allclose(whole, expected, atol=30 * np.finfo(dtype).eps)
    shifted = gram.block(slice(0, 600), slice(100, 700))
    np.testing.assert_allclose(shifted, expected[:600, 100:], atol=30 * np.finfo(dtype).eps)


@MAKERS
@SYMMETRIC
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_as_an_array_of_numpy(make: Any, symmetric: bool, dtype: Any) -> None:
    K = make(symmetric).astype(dtype)
    expected = K.dense()
    for result in (np.asarray(K), np.array(K), np.asarray(K, copy=None), np.array(K, copy=True)):
        assert result.dtype == dtype and result.shape == K.shape
        np.testing.assert_array_equal(result, expected)
    other = np.asarray(K, dtype=np.float32)
    assert other.dtype == np.float32
    np.testing.assert_array_equal(other, expected.astype(np.float32))
    rounding = 100 * float(np.finfo(dtype).eps) * float(np.abs(expected).max())
    np.testing.assert_allclose(np.linalg.norm(K), np.linalg.norm(expected), atol=40 * rounding)
    np.testing.assert_allclose(np.asarray(K.T), expected.T, rtol=0, atol=rounding)
    assert K.T.shape == K.shape[::-1]


@MAKERS
def test_sums_and_extremes_are_those_of_the_entries_and_arithmetic_says_what_to_pass(make: Any) -> None:
    K = make(True)
    expected = K.dense()
    for reduce in (np.sum, np.max, np.min, np.prod, np.any, np.all):
        for options in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}):
            np.testing.assert_array_equal(reduce(K, **options), reduce(expected, **options))
    np.testing.assert_allclose(np.matmul(expected, K), expected @ expected, rtol=1e-12)
    for by_elements in (np.exp, lambda K: expected + K, lambda K: np.multiply(K, 2.0)):
        with pytest.raises(TypeError, match=r"works elementwise.*Pass the entries, numpy\.asarray\(K\)"):
            by_elements(K)


def test_copies_of_a_stored_matrix() -> None:
    K = _precomputed(True)
    assert np.asarray(K) is K.matrix and np.asarray(K, copy=False) is K.matrix
    assert not np.shares_memory(np.array(K, copy=True), K.matrix)
    assert not np.shares_memory(np.array(K, dtype=np.float32), K.matrix)
    for matrix, dtype in ((K, np.float32), (_lazy(True), None), (_lazy(True), np.float64)):
        with pytest.raises(ValueError, match="copy=False needs a stored array"):
            np.array(matrix, dtype=dtype, copy=False)
    assert np.shares_memory(PrecomputedGram(K.matrix[:, :4], symmetric=False).T.matrix, K.matrix)


@MAKERS
@SYMMETRIC
def test_products_from_the_left(make: Any, symmetric: bool) -> None:
    K = make(symmetric)
    expected = K.dense()
    n = K.shape[0]
    for V in (RNG.normal(size=n), RNG.normal(size=(6, n)), np.ones((1, n), dtype=np.float32), np.arange(n)):
        result = V @ K
        assert isinstance(result, np.ndarray) and result.shape == (V @ expected).shape
        # What n products of two rounded numbers may lose.
        size = n * float(np.abs(V).max()) * float(np.abs(expected).max())
        eps = float(np.finfo(np.float32 if V.dtype == np.float32 else np.float64).eps)
        np.testing.assert_allclose(result, V @ expected, rtol=0, atol=4 * n * eps * size)
    with pytest.raises(DataError, match=rf"K has {n} rows, so an array of shape \(5,\) cannot multiply it"):
        np.ones(5) @ K
    with pytest.raises(TypeError):
        np.ones(K.shape) + K


def test_an_array_that_does_not_fit_the_budget() -> None:
    with mercer.config(memory="4KiB"), pytest.raises(MemoryBudgetError, match="40 x 40 kernel matrix"):
        np.asarray(_lazy(True))


def test_learners_take_a_gram_matrix_as_a_precomputed_one() -> None:
    y = np.sin(X[:, 0])
    lazy = mercer.KernelRidge(kernel="precomputed").fit(_lazy(True), y)
    plain = mercer.KernelRidge(kernel="precomputed").fit(KERNEL(X), y)
    np.testing.assert_array_equal(lazy.dual_coef_, plain.dual_coef_)


@pytest.mark.parametrize(
    "kernel, columns, binary, cheap",
    [
        (kernels.RBF(1.0), 5, False, True),
        (kernels.RBF(1.0), 40, False, False),
        (kernels.RBF(1.0), 40, True, True),
        (kernels.Polynomial(3), 5, True, True),
        (kernels.Polynomial(3), 5, False, False),
        (kernels.Laplacian(1.0), 5, False, False),
        (kernels.RBF(1.0) + kernels.RBF(2.0), 5, False, False),
    ],
)
def test_entries_that_cost_less_than_to_store_them(kernel, columns, binary, cheap, rng):
    X = rng.integers(0, 2, (6, columns)) if binary else rng.normal(size=(6, columns))
    assert Gram(kernel, X).cheap == cheap


def test_entries_of_objects_are_worth_storing():
    assert not Gram(kernels.Spectrum(2), ["abc", "bcd"]).cheap


@pytest.mark.parametrize("kernel", [kernels.RBF(1.0), kernels.Polynomial(2), KERNEL, kernels.Spectrum(2)])
def test_rows_are_freed_without_the_collector_of_cycles(kernel: Any) -> None:
    """Blocks of many rows follow each other: what waits for the collector fills the memory."""
    rows: Any = ["gram", "gramme", "ram"] if isinstance(kernel, kernels.Spectrum) else X.copy()
    gc.collect()
    gc.disable()
    try:
        matrix = Gram(kernel, rows, rows[:2])
        assert (matrix @ np.ones(2)).shape == (len(rows),)
        sides = [weakref.ref(side) for side in (matrix._plan.left, matrix._plan.right)]
        del matrix
        assert [side() for side in sides] == [None, None]
    finally:
        gc.enable()


@pytest.mark.parametrize("size", [1e39, 1e300, 1e-39, 1e-60, 1e-300])
def test_factors_beyond_single_precision_are_not_rounded_to_it(size):
    X = np.array([[0.0], [1.0]], np.float32)
    K = kernels.RBF(1.0)(X.astype(float))
    for V in (np.array([size, 0.0]), np.array([[size, 1.0], [0.0, 2.0]]), np.array([[0.0, size], [0.0, -size]])):
        np.testing.assert_allclose(Gram(kernels.RBF(1.0), X) @ V, K @ V, rtol=1e-6)


@pytest.mark.parametrize(
    "again", [lambda gram: pickle.loads(pickle.dumps(gram)), copy.deepcopy], ids=["pickle", "copy"]
)
def test_a_matrix_can_be_copied_and_sent_to_another_process(again):
    X = np.random.default_rng(0).normal(size=(20, 3))
    whole = Gram(kernels.RBF(1.0) + kernels.White(0.1), X, dtype=np.float32, n_jobs=1)
    across = Gram(kernels.RBF([1.0, 2.0, 3.0]), X, X[:5])
    part = whole.restrict([3, 4, 5], [4, 5, 6])
    for gram in (whole, across, part):
        same = again(gram)
        assert (same.shape, same.dtype, same.symmetric, same.n_jobs) == (
            (gram.shape, gram.dtype, gram.symmetric, gram.n_jobs)
        )
        np.testing.assert_array_equal(same.dense(), gram.dense())


def test_kernels_in_all_forms():
    X = np.random.default_rng(0).normal(size=(6, 2))
    rate = kernels.as_kernel("rbf", X=X)
    for given, kernel in (
        ("rbf", rate),
        ("2.0 * RBF(3.0)", 2.0 * kernels.RBF(3.0)),
        (lambda A, B: A @ B.T, kernels.Linear()),
        (SklearnRBF(2.0), kernels.RBF(2.0)),
    ):
        np.testing.assert_allclose(Gram(given, X).dense(), kernel(X), rtol=1e-13)
    for wrong, words in (("rbfx", "did you mean 'rbf'"), (None, "but is None"), (kernels.RBF, r"such as RBF\(\)")):
        with pytest.raises(ParameterError, match=words):
            Gram(wrong, X)
    with pytest.raises(ParameterError, match="in float32 or float64, not in 'nonsense'"):
        Gram("rbf", X, dtype="nonsense")


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        ([[0.0] * 3] * 3, DataError, "out must be a NumPy array of shape (3, 3), but is"),
        (np.empty((3, 3), int), ParameterError, "float32 or float64, not in int64"),
        (np.empty((3, 3), complex), ParameterError, "not in complex128"),
        (np.broadcast_to(0.0, (3, 3)), DataError, "out is read-only; pass a copy, or np.empty((3, 3))."),
        (np.empty((3, 2)), DataError, "out has shape (3, 2), but the block has shape (3, 3)."),
    ],
)
def test_arrays_that_a_matrix_cannot_be_written_to(out, error, words):
    gram = Gram("rbf", np.eye(3))
    for write in (gram.dense, lambda out: gram.block(out=out), lambda out: kernels.RBF(1.0).block(np.eye(3), out=out)):
        with pytest.raises(error, match=re.escape(words)):
            write(out)
    # What the messages recommend.
    right = np.empty((3, 3))
    assert gram.dense(out=right) is right


def test_the_same_precision_is_the_same_matrix() -> None:
    gram = Gram(KERNEL, X, Z)
    assert gram.astype(np.float64) is gram
    assert gram.astype(np.float32).astype(np.float64).dense().tolist() == gram.dense().tolist()


def test_all_rows_and_columns_share_what_is_prepared() -> None:
    gram = Gram(KERNEL, X, Z)
    assert gram.restrict(slice(0, 40), None)._plan is gram._plan
    assert gram.restrict(slice(0, 39), None).dense().tolist() == gram.dense()[:39].tolist()
