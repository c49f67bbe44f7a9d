"""Compiled programs of kernels against tiles that Python evaluates, on ordinary and on hostile rows."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import mercer
from mercer import kernels as k
from mercer._errors import KernelValueError
from mercer.engine import threads
from mercer.gram import Gram
from mercer.kernels import program
from mercer.kernels.kernel import Kernel
from mercer.kernels.program import Program
from mercer.loops import programs

LOWERED: list[Kernel] = [
    k.Linear() + 2.0,
    k.RBF(1.3),
    k.RBF([0.5, 2.0, 1.0]),
    k.Matern(1.0, nu=0.5),
    k.Matern(2.0, nu=1.5),
    k.Matern([1.0, 2.0, 3.0], nu=2.5),
    k.Matern(1.5, nu=np.inf),
    k.RationalQuadratic(1.0, alpha=0.7),
    k.Laplacian(2.0),
    k.ChiSquared(),
    k.Periodic(1.0, period=2.0),
    k.NegativeDistance(0.7),
    k.NegativeDistance(),
    k.NegativeDistance(2.0),
    k.Polynomial(degree=1),
    k.Polynomial(degree=7, scale=0.1),
    k.ExponentialDot(0.2),
    2.0 * k.RBF(1.0) + k.Polynomial(2) * k.Matern(1.0) + k.Linear() ** 3,
    k.exp(0.1 * k.Linear()) * k.RBF(2.0) ** 1.5,
    k.RBF(1.0).on([0]) + 0.5 * k.Matern(1.0).on([1, 2]) + k.RBF(1.0).on([0]) * k.Matern(2.0).on([0]),
    k.RBF(1.0).warped(np.abs),
]
SHAPES = [(1, 1), (2, 1), (1, 3), (255, 257), (700, 300), (300, 1100)]


@pytest.fixture(autouse=True)
def also_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LEAST_ENTRIES", 0)


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has tiles evaluated by Python."""

    def switch() -> None:
        monkeypatch.setattr(Program, "of", lambda plan, dtype: None)

    return switch


def rows(n: int, d: int = 3, dtype: Any = float) -> np.ndarray:
    X = np.abs(np.random.default_rng(n).normal(size=(n, d)))
    # Some rows lie so near others that products have no digits of their distance.
    X[n // 2 :] = X[: n - n // 2] * (1 + 1e-9)
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", LOWERED, ids=repr)
def test_values_and_products_are_those_of_python(kernel: Kernel, dtype: Any, by_python: Any) -> None:
    blocks = [Gram(kernel, rows(n, dtype=dtype), None if n == m else rows(m, dtype=dtype)) for n, m in SHAPES]
    blocks += [Gram(kernel, rows(600, dtype=dtype))]
    chosen = np.array([3, 0, 599, 3])
    V = [np.random.default_rng(1).normal(size=(gram.shape[1], 2)).astype(dtype) for gram in blocks]
    assert any(gram._plan.program(gram.dtype) for gram in blocks)
    ours = [(gram.dense(), gram @ v) for gram, v in zip(blocks, V, strict=True)]
    part, tile = blocks[-1].restrict(chosen, None).dense(), np.empty((4, 100), dtype)
    blocks[-1].fill(chosen, slice(500, 600), tile)
    by_python()
    eps = np.finfo(dtype).eps
    for gram, v, (dense, product) in zip(blocks, V, ours, strict=True):
        exact = Gram(kernel, gram._plan.left.raw, None if gram.symmetric else gram._plan.right.raw, dtype=float).dense()
        size = np.abs(exact).max()
        # A function of a distance has the digits of the distance, of which two may be lost.
        np.testing.assert_allclose(dense, exact, rtol=0, atol=500 * eps * size)
        np.testing.assert_allclose(product, exact @ v, rtol=0, atol=500 * eps * size * np.abs(v).sum())
        if gram.symmetric:
            np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_allclose(part, ours[-1][0][chosen], rtol=0, atol=500 * eps * size)
    np.testing.assert_allclose(tile, ours[-1][0][chosen, 500:], rtol=0, atol=500 * eps * size)


@pytest.mark.parametrize("columns", [2, 12, 300])
def test_same_bits_for_any_number_of_threads(columns: int) -> None:
    X = np.random.default_rng(0).normal(size=(1500, columns)).astype(np.float32)
    kernel, V = k.RBF(float(columns) ** 0.5), np.random.default_rng(1).normal(size=(1500, 3)).astype(np.float32)
    grams = Gram(kernel, X), Gram(kernel, X, X[::-1].copy()), Gram(kernel, X[:3], X)
    results = []
    for jobs in (1, 2, 3, 8, 16, 64):
        with mercer.config(n_jobs=jobs):
            results.append([(gram @ V).tobytes() + gram.dense().tobytes() for gram in grams])
    assert all(result == results[0] for result in results)


def test_many_threads_share_a_product_at_once() -> None:
    """Callers of one matrix do not meet, and each has its own flag that ends it."""
    X = np.random.default_rng(0).normal(size=(900, 4))
    gram, v = Gram(k.RBF(1.0), X, n_jobs=3), np.ones(900)
    expected, found = gram @ v, []
    callers = [threading.Thread(target=lambda: found.append(gram @ v)) for _ in range(6)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(found) == 6 and all((one == expected).all() for one in found)


def test_a_deadline_ends_a_product_within_tiles() -> None:
    X = np.random.default_rng(0).normal(size=(60_000, 40))
    with pytest.raises(TimeoutError), threads.until(0.3):
        Gram(k.RBF(1.0), X) @ np.ones(len(X))


@pytest.mark.parametrize("kernel", [k.ExponentialDot(1.0), k.exp(k.Linear()) + k.NegativeDistance()], ids=repr)
def test_values_that_are_not_finite_are_named(kernel: Kernel) -> None:
    X = np.ones((600, 2))
    X[599] = 40.0
    for call in (lambda: kernel(X), lambda: Gram(kernel, X) @ np.ones(600)):
        with pytest.raises(KernelValueError, match=r"the kernel .* returned (nan|inf); scale the columns"):
            call()


@dataclasses.dataclass(frozen=True, repr=False)
class _Halved(k.RBF):
    """Another function than its parent's, of which it has the steps of a program."""

    def _finish(self, t: np.ndarray) -> None:
        super()._finish(t)
        t *= 0.5


@dataclasses.dataclass(frozen=True, repr=False)
class _Filled(type(k.RBF(1.0) + k.Linear())):
    """The same for a kernel that is made of others."""

    def _fill(self, pairs: Any, out: np.ndarray) -> None:
        super()._fill(pairs, out)
        out *= 0.5


def test_a_subclass_with_its_own_function_keeps_it() -> None:
    X = rows(5)
    np.testing.assert_allclose(_Halved(1.0)(X), 0.5 * k.RBF(1.0)(X))
    np.testing.assert_allclose(_Filled((k.RBF(1.0), k.Linear()))(X), 0.5 * (k.RBF(1.0) + k.Linear())(X))


@pytest.mark.parametrize(
    ("kernel", "X"),
    [
        (k.RBF(1.0), np.zeros((0, 3))),
        (k.RBF(1.0), np.ones((4, 3))),
        (k.RBF(1.0), (rows(6) > 0.5).astype(float)),
        (k.Linear() + 1.0, sp.random(6, 5_000_000, density=1e-6, format="csr", random_state=0)),
        (k.RBF(1e-140), rows(6)),
        (k.RBF(1e140), rows(6)),
        (k.Linear() ** 2**40, np.full((2, 1), 0.5)),
        (k.Linear() ** 2**70, np.array([[1.0], [-1.0]])),
        (k.RBF(1.0) + k.Linear() * k.RBF(1.0).normalized(), rows(6)),
        (sum((k.RBF(1.0 + i) for i in range(100)), start=k.Linear()), rows(6)),
    ],
    ids=["no rows", "constant", "bits", "sparse", "tiny", "huge", "exponent", "power", "normalised", "many terms"],
)
def test_what_programs_do_not_compute_goes_by_python(kernel: Kernel, X: Any, by_python: Any) -> None:
    n = X.shape[0]
    found = Gram(kernel, X).dense() if n else np.zeros((0, 0))
    by_python()
    expected = Gram(kernel, X).dense() if n else np.zeros((0, 0))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", [k.RBF(300.0), k.Laplacian(100_000.0)], ids=repr)
def test_wide_rows(kernel: Kernel) -> None:
    X = np.random.default_rng(0).normal(size=(40, 100_000)).astype(np.float32)
    gram = Gram(kernel, X)
    K = gram.dense()
    chosen = np.empty((2, 40), np.float32)
    gram.fill(np.array([7, 3]), slice(0, 40), chosen)
    np.testing.assert_allclose(chosen, K[[7, 3]], atol=1e-5)
    np.testing.assert_allclose(gram @ np.ones(40, np.float32), K.sum(axis=1), rtol=1e-5)


def test_positions_count_from_the_end_and_stay_inside() -> None:
    # Equal rows: every distance is computed from the rows as they were given.
    X = np.random.default_rng(0).normal(size=(7, 5))[np.arange(300) % 7]
    gram = Gram(k.RBF(2.0), X)
    K, back, tile = gram.dense(), np.arange(-1, -301, -1), np.empty((2, 300))
    np.testing.assert_allclose(gram.block(back), K[::-1])
    np.testing.assert_allclose(gram.restrict(back).restrict(np.array([-1, 3])).dense(), K[[0, -4]])
    gram.fill(np.array([-1, -2]), slice(0, 300), tile)
    np.testing.assert_allclose(tile, K[[-1, -2]])
    with pytest.raises(IndexError, match=r"positions of rows range from 1 to 1000000000000, but there are 300"):
        gram.fill(np.array([10**12, 1]), slice(0, 300), tile)


@pytest.mark.parametrize("symmetric", [True, False])
def test_arrays_to_write_to(symmetric: bool) -> None:
    n = 600
    X = np.random.default_rng(0).normal(size=(n, 5))
    gram = Gram(k.RBF(3.0), X, None if symmetric else X.copy())
    K, fields = gram.dense(), np.zeros(n, np.dtype([("row", "f8", (n,)), ("tag", "i4")]))
    fields["tag"] = 7
    wide, single = np.zeros((n, 3 * n)), np.zeros((n, n), np.float32)
    for out in (fields["row"], np.zeros((n, n))[::-1], np.zeros((n, n)).T, wide[:, n : 2 * n], wide[:, ::3], single):
        np.testing.assert_allclose(gram.dense(out), K, atol=1e-6)
    assert (fields["tag"] == 7).all() and not wide[:, 2 * n + 1 :: 3].any()
    one = np.zeros((1, n))[::-1]
    gram.fill(slice(5, 6), slice(0, n), one)
    np.testing.assert_allclose(one, K[5:6])


def test_read_only_arrays_need_no_other_code() -> None:
    X = np.random.default_rng(0).normal(size=(300, 5))
    gram, v = Gram(k.RBF(2.0), X), np.ones((300, 1))
    expected, known = gram @ v, len(programs.multiply.overloads)
    v.setflags(write=False)
    np.testing.assert_array_equal(gram @ v, expected)
    np.testing.assert_array_equal(gram @ np.broadcast_to(1.0, (300, 1)), expected)
    assert len(programs.multiply.overloads) == known


def test_where_the_main_thread_is_a_worker_another_one_runs_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C reaches the main thread between calls alone."""
    monkeypatch.setattr(threads, "_LONG", 0)
    X = np.random.default_rng(0).normal(size=(300, 5))
    gram, callers = Gram(k.RBF(2.0), X), []
    call = programs.multiply

    def seen(*arguments: Any) -> None:
        callers.append(threading.current_thread())
        call(*arguments)

    monkeypatch.setattr(programs, "multiply", seen)
    threads.run([lambda: gram @ np.ones(300)] * 2, 2)
    assert len(callers) == 2 and threading.main_thread() not in callers
