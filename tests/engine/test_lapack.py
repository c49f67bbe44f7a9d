"""Factorisations by address: against NumPy, in place, on one triangle, while other threads run."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from mercer import config
from mercer.engine import lapack, routines, threads

RNG = np.random.default_rng(0)


def matrix(n: int, dtype: Any = np.float64) -> np.ndarray:
    G = RNG.normal(size=(n, n))
    return (G @ G.T + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 50, 128, 200, 513, pytest.param(1100, marks=pytest.mark.slow)])
def test_against_numpy(n: int, dtype: Any) -> None:
    A = matrix(n, dtype)
    close = {"rtol": 1e3 * np.finfo(dtype).eps, "atol": 1e2 * np.finfo(dtype).eps}
    factor = A.copy()
    assert lapack.factor_cholesky(factor) == 0
    below = np.tril_indices(n, -1)
    np.testing.assert_array_equal(factor[below], A[below])
    L = np.triu(factor).T.astype(np.float64)
    np.testing.assert_allclose(L @ L.T, A, rtol=1e3 * np.finfo(dtype).eps, atol=n * 1e2 * np.finfo(dtype).eps)
    inverse = factor.copy()
    assert lapack.invert_cholesky(inverse) == 0
    np.testing.assert_allclose(np.triu(inverse), np.triu(np.linalg.inv(A.astype(np.float64))), **close)
    triangle = factor.copy()
    assert lapack.invert_triangle(triangle) == 0
    np.testing.assert_allclose(np.triu(triangle), np.linalg.inv(L).T, **close)
    rows = RNG.normal(size=(7, n)).astype(dtype)
    for transposed in (False, True):
        result = rows.copy()
        lapack.solve_triangle(factor, result, transposed=transposed)
        np.testing.assert_allclose(result, np.linalg.solve(L.T if transposed else L, rows.T).T, **close)
    result = rows.copy()
    lapack.solve_cholesky(factor, result)
    np.testing.assert_allclose(result, np.linalg.solve(A.astype(np.float64), rows.T).T, **close)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [17, 50, 129])
def test_one_right_hand_side_by_strips(n: int, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is below the diagonal is not read, and any number of threads gives the same bits."""
    monkeypatch.setattr(lapack, "_LONG", 1)
    monkeypatch.setattr(lapack, "_HEIGHT", 16)
    monkeypatch.setattr(lapack, "_WIDE", 10)
    factor = np.triu(matrix(n, dtype))
    row = RNG.normal(size=(1, n)).astype(dtype)
    for transposed in (False, True):
        expected = np.linalg.solve(factor.astype(np.float64) if transposed else factor.T.astype(np.float64), row[0])
        answers = []
        for jobs in (1, 2):
            result, filled = row.copy(), factor + np.tril(np.full((n, n), np.nan, dtype), -1)
            with config(n_jobs=jobs):
                lapack.solve_triangle(filled, result, transposed=transposed)
            answers.append(result)
        np.testing.assert_array_equal(*answers)
        np.testing.assert_allclose(
            answers[0][0], expected, rtol=1e4 * np.finfo(dtype).eps, atol=10 * np.finfo(dtype).eps
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("left_turned", [False, True])
@pytest.mark.parametrize("right_turned", [False, True])
@pytest.mark.parametrize("shape", [(5, 7, 3), (1, 4, 2), (4, 1, 1), (40, 33, 64), (0, 3, 2), (3, 0, 2)])
def test_products_of_parts(dtype: Any, left_turned: bool, right_turned: bool, shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    whole = RNG.normal(size=(m + 2, n + 3)).astype(dtype)
    left = RNG.normal(size=(k + 1, m + 1) if left_turned else (m + 1, k + 1)).astype(dtype)[1:, 1:]
    right = RNG.normal(size=(n + 1, k + 1) if right_turned else (k + 1, n + 1)).astype(dtype)[1:, 1:]
    product = (left.T if left_turned else left).astype(np.float64) @ (right.T if right_turned else right)
    for alpha, beta in ((1.0, 1.0), (-1.0, 1.0), (2.0, 0.0)):
        expected, result = whole.astype(np.float64), whole.copy()
        expected[1 : m + 1, 2 : n + 2] = beta * whole[1 : m + 1, 2 : n + 2] + alpha * product
        lapack.add_product(
            result[1 : m + 1, 2 : n + 2],
            left,
            right,
            alpha=alpha,
            beta=beta,
            left_turned=left_turned,
            right_turned=right_turned,
        )
        np.testing.assert_allclose(result, expected, rtol=0, atol=100 * (k + 1) * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "arrays",
    [
        (np.eye(3), np.eye(3), np.eye(4)),
        (np.eye(3), np.ones((3, 2)), np.ones((3, 3))),
        (np.eye(3), np.eye(3, dtype=np.float32), np.eye(3)),
        (np.eye(3), np.eye(3), np.ones(3)),
        (np.eye(3), np.ones((3, 6))[:, ::2], np.eye(3)),
        (np.eye(3).T[::-1], np.eye(3), np.eye(3)),
        (np.broadcast_to(np.ones(3), (3, 3)), np.eye(3), np.eye(3)),
        (np.eye(3, dtype=int),) * 3,
    ],
)
def test_products_of_arrays_that_would_be_misread(arrays: tuple) -> None:
    with pytest.raises(TypeError):
        lapack.add_product(*arrays)


def test_what_has_no_factor() -> None:
    A = np.diag([1.0, -1.0, 1.0])
    assert lapack.factor_cholesky(A) == 2
    singular = np.diag([1.0, 0.0, 1.0])
    assert lapack.invert_triangle(singular.copy()) == 2
    assert lapack.invert_cholesky(singular.copy()) == 2


@pytest.mark.parametrize(
    "arrays",
    [
        (np.eye(3).T[::-1],),
        (np.eye(3, dtype=int),),
        (np.ones((2, 3)),),
        (np.eye(3), np.ones((2, 4))),
        (np.eye(3), np.ones((2, 3), np.float32)),
        (np.eye(4), np.ones((4, 8))[:, ::2]),
        (np.eye(3), np.ones(3)),
    ],
)
def test_arrays_that_would_be_misread(arrays: tuple) -> None:
    call = lapack.factor_cholesky if len(arrays) == 1 else lapack.solve_triangle
    with pytest.raises(TypeError):
        call(*arrays)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [20, 127, 400, 640])
def test_the_same_bits_on_any_number_of_threads(n: int, dtype: Any) -> None:
    A = matrix(n, dtype)

    def work() -> list[bytes]:
        factor = A.copy()
        lapack.factor_cholesky(factor)
        inverse, triangle, rows = factor.copy(), factor.copy(), np.ones((600, n), dtype)
        lapack.invert_cholesky(inverse)
        lapack.invert_triangle(triangle)
        lapack.solve_cholesky(factor, rows)
        lapack.multiply_triangle(factor, rows)
        return [array.tobytes() for array in (factor, inverse, triangle, rows, lapack.multiply(A, rows.T))]

    with threads.workers(1):
        expected = work()
    for jobs in (2, 5):
        with threads.workers(jobs):
            assert work() == expected
    assert work() == expected


@pytest.mark.parametrize("pivot", [3, 257, 299, 600])
def test_a_pivot_that_is_not_positive_is_named_in_any_block(pivot: int) -> None:
    A = np.eye(601)
    A[pivot, pivot] = -1.0
    assert lapack.factor_cholesky(A) == pivot + 1
    A = np.eye(601)
    A[pivot, pivot] = 0.0
    assert lapack.invert_triangle(A) == pivot + 1


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(5, 3), (1, 1), (3, 8)])
def test_squares_of_parts(turned: bool, shape: tuple[int, int]) -> None:
    n, k = shape
    part = RNG.normal(size=(k + 2, n + 1) if turned else (n + 2, k + 1))[2:, 1:]
    whole = RNG.normal(size=(n + 1, n + 2))
    result = whole.copy()
    routines.add_square(result[1:, 2:], part, alpha=-2.0, beta=0.5, turned=turned)
    expected = 0.5 * whole[1:, 2:] - 2.0 * (part.T @ part if turned else part @ part.T)
    below = np.tril_indices(n, -1)
    expected[below] = whole[1:, 2:][below]
    np.testing.assert_allclose(result[1:, 2:], expected, atol=100 * (k + 1) * np.finfo(float).eps)
    np.testing.assert_array_equal(result[0], whole[0])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
def test_triangles_on_either_side(right: bool, transposed: bool) -> None:
    U = np.triu(RNG.normal(size=(6, 6))) + 6 * np.eye(6)
    B = RNG.normal(size=(4, 6) if right else (6, 4))
    form = U.T if transposed else U
    for routine, op in (("trmm", form), ("trsm", np.linalg.inv(form))):
        result = B.copy()
        routines.by_triangle(routine, U, result, right=right, transposed=transposed, alpha=-1.0)
        np.testing.assert_allclose(result, -(B @ op if right else op @ B), atol=1e-14)


def test_other_threads_run_meanwhile() -> None:
    A = matrix(1200)
    counted, end = [0], threading.Event()

    def work() -> None:
        lapack.factor_cholesky(A)
        end.set()

    thread = threading.Thread(target=work)
    thread.start()
    # Where the interpreter were kept, this loop would begin after the end.
    while not end.is_set():
        counted[0] += 1
    thread.join()
    assert counted[0] > 10


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 300, 1100])
def test_squares_by_blocks(n: int, dtype: Any) -> None:
    rows = RNG.normal(size=(n, 40)).astype(dtype)
    before = RNG.normal(size=(n, n)).astype(dtype)
    of_rows, of_columns = before.copy(), before.copy()
    lapack.add_square_of_rows(of_rows, rows)
    lapack.add_square_of_columns(of_columns, np.ascontiguousarray(rows.T))
    expected = before + np.triu(rows.astype(np.float64) @ rows.T)
    for result in (of_rows, of_columns):
        np.testing.assert_allclose(result, expected, atol=1e3 * np.finfo(dtype).eps)
