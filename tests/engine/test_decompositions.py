"""Single calls of LAPACK beside the main thread: their answers, and what happens to them at Ctrl-C."""

from __future__ import annotations

import _thread
import threading
import time

import numpy as np
import pytest

from mercer.engine import decompositions, threads

EPS = float(np.finfo(np.float64).eps)


def _symmetric(n: int, rng: np.random.Generator) -> np.ndarray:
    A = rng.normal(size=(n, n))
    return A + A.T


@pytest.mark.parametrize("n", [1, 2, 30, 140])
def test_eigenpairs(n: int, rng: np.random.Generator) -> None:
    A = _symmetric(n, rng)
    size = float(np.linalg.norm(A))
    expected = np.linalg.eigvalsh(A)
    count = max(1, n // 2)
    values, vectors = decompositions.largest_eigenpairs(A.copy(), count)
    assert values.shape == (count,) and vectors.shape == (count, n)
    np.testing.assert_allclose(values, expected[n - count :], atol=10 * n * EPS * size)
    np.testing.assert_allclose(A @ vectors.T, vectors.T * values, atol=30 * n * EPS * size)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(count), atol=30 * n * EPS)
    values, vectors = decompositions.all_eigenpairs(A.copy())
    np.testing.assert_allclose(values, expected, atol=10 * n * EPS * size)
    np.testing.assert_allclose((vectors.T * values) @ vectors, A, atol=30 * n * EPS * size)


def test_eigenpairs_of_one_value(monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator) -> None:
    values, vectors = decompositions.largest_eigenpairs(np.eye(90), 5)
    assert values.tolist() == pytest.approx([1.0] * 5, abs=90 * EPS)
    np.testing.assert_allclose(vectors @ vectors.T, np.eye(5), atol=90 * EPS)
    # As where LAPACK loses one of them.
    A, decompose = _symmetric(40, rng), decompositions._decompose

    def lose(routine: str, *arguments: object) -> None:
        decompose(routine, *arguments)
        if routine == "syevr":
            count = arguments[11]
            assert isinstance(count, np.ndarray) and count[0] == 7
            count[0] = 6

    monkeypatch.setattr(decompositions, "_decompose", lose)
    values, vectors = decompositions.largest_eigenpairs(A.copy(), 7)
    size = float(np.linalg.norm(A))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[-7:], atol=400 * EPS * size)
    np.testing.assert_allclose(A @ vectors.T, vectors.T * values, atol=1200 * EPS * size)


@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 5), (120, 70), (70, 120), (0, 3)])
def test_singular_values(shape: tuple[int, int], rng: np.random.Generator) -> None:
    A = rng.normal(size=shape)
    U, s, Vt = decompositions.singular_values(A.copy())
    assert (np.diff(s) <= 0).all() and U.shape == (shape[0], min(shape)) and Vt.shape == (min(shape), shape[1])
    np.testing.assert_allclose(U * s @ Vt, A, atol=30 * max(shape) * EPS * (1.0 + float(np.linalg.norm(A))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_indefinite_matrix(dtype: type, rng: np.random.Generator) -> None:
    A = _symmetric(60, rng).astype(dtype)
    factor = A.copy()
    pivots, failed = decompositions.factor_indefinite(factor)
    assert failed == 0 and (pivots != 0).all()
    decompositions.invert_indefinite(factor, pivots)
    inverse = np.triu(factor) + np.triu(factor, 1).T
    error = np.abs(A.astype(np.float64) @ inverse.astype(np.float64) - np.eye(60)).max()
    assert error <= 60 * float(np.finfo(dtype).eps) * float(np.linalg.cond(A.astype(np.float64)))
    assert decompositions.factor_indefinite(np.zeros((3, 3), dtype))[1] == 1


def test_pivoted_cholesky_ends_at_the_rank(rng: np.random.Generator) -> None:
    half = rng.normal(size=(50, 7))
    A = half @ half.T
    factor = A.copy()
    order, rank = decompositions.factor_pivoted(factor, 1e-10)
    upper = np.triu(factor)[:7]
    assert rank == 7 and sorted(order.tolist()) == list(range(50))
    np.testing.assert_allclose(upper.T @ upper, A[np.ix_(order, order)], atol=1e3 * EPS * float(np.trace(A)))


def test_only_matrices_that_lapack_can_overwrite() -> None:
    for matrix in (np.eye(3, dtype=np.float32), np.asfortranarray(np.ones((3, 2))), np.ones((3, 2))):
        with pytest.raises(TypeError):
            decompositions.all_eigenpairs(matrix)


def test_ctrl_c_abandons_a_call_that_goes_on_by_itself() -> None:
    ended, release = threading.Event(), threading.Event()

    def call() -> int:
        threading.Timer(0.05, _thread.interrupt_main).start()
        release.wait(20)
        ended.set()
        return 1

    with pytest.raises(KeyboardInterrupt):
        threads.abandonable(call)
    assert not ended.is_set()
    release.set()
    assert ended.wait(10)
    assert threads.abandonable(lambda: 7) == 7


def test_what_a_call_raises_comes_out_and_other_threads_make_it_in_place() -> None:
    with pytest.raises(ZeroDivisionError):
        threads.abandonable(lambda: 1 // 0)
    pairs: list[tuple[str, str]] = []

    def task() -> None:
        time.sleep(0.05)
        pairs.append((threading.current_thread().name, threads.abandonable(lambda: threading.current_thread().name)))

    threads.run([task] * 8, n_jobs=2)
    main = threading.main_thread().name
    assert len(pairs) == 8 and all(caller == ("mercer-lapack" if own == main else own) for own, caller in pairs)
