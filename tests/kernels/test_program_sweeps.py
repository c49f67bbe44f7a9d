"""Compiled passes that use each entry twice, against explicit matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mercer
from mercer import kernels as k
from mercer.engine import threads
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import program
from mercer.solvers.restricted.passes import Residuals, StoredRows


@pytest.fixture(autouse=True)
def also_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LEAST_ENTRIES", 0)


def rows(n: int, t: int, dtype: Any, unit: float = 1.0) -> StoredRows:
    random = np.random.default_rng(n)
    X = random.normal(size=(n, 3)).astype(dtype)
    weights = random.uniform(0.0, 2.0, size=n)
    return StoredRows(Gram(k.RBF(1.0), X, X[: max(n // 3, 1)]), unit * random.normal(size=(n, t)), weights)


@pytest.mark.parametrize("unit", [1.0, 1e60])
@pytest.mark.parametrize(("n", "t"), [(1, 1), (5, 2), (700, 1), (2500, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("visit", [Residuals(), Residuals(beside_zero=True), Residuals(of_zero=True)], ids=repr)
def test_passes_are_what_is_written_out(visit: Residuals, dtype: Any, n: int, t: int, unit: float) -> None:
    passes = rows(n, t, dtype, unit)
    if dtype == np.float32 and unit > 1:
        visit = Residuals(np.full(t, 199), visit.beside_zero, visit.of_zero)
    V = np.random.default_rng(1).normal(size=(passes.shape[1], t))
    K, T = passes.gram.block().astype(float), visit.targets(passes.targets)
    left = T - np.pad(K @ V, ((0, 0), (0, T.shape[1] - t)))
    found, sums = passes.sweep(V, visit, (T.shape[1], T.shape[1]))
    U = passes.weights[:, None] * left
    size = np.abs(K).T @ np.abs(U) + np.finfo(float).tiny
    assert (np.abs(found - K.T @ U) <= 2000 * np.finfo(dtype).eps * (size + size.max())).all()
    np.testing.assert_allclose(sums, (U * left).sum(axis=0), rtol=2000 * np.finfo(dtype).eps)


@pytest.mark.parametrize("n", [64, 700, 3000])
def test_same_bits_for_any_number_of_threads(n: int) -> None:
    passes, V = rows(n, 2, np.float32), np.random.default_rng(1).normal(size=(max(n // 3, 1), 2))
    found = []
    for jobs in (1, 2, 3, 8, 16, 64):
        with mercer.config(n_jobs=jobs):
            found.append([array.tobytes() for array in passes.sweep(V, Residuals(), (2, 2))])
    assert all(one == found[0] for one in found)


def test_a_deadline_ends_a_pass() -> None:
    X = np.random.default_rng(0).normal(size=(400_000, 20)).astype(np.float32)
    passes = StoredRows(Gram(k.RBF(4.0), X, X[:3000]), np.ones((len(X), 1)), np.ones(len(X)))
    with pytest.raises(TimeoutError), threads.until(0.3):
        passes.sweep(np.ones((3000, 1)), Residuals(), (1, 1))


def test_a_matrix_that_python_evaluates_takes_the_same_visits() -> None:
    passes = rows(300, 2, np.float64)
    V = np.random.default_rng(1).normal(size=(100, 2))
    whole = StoredRows(PrecomputedGram(passes.gram.block()), passes.targets, passes.weights)
    for visit in (Residuals(), Residuals(beside_zero=True), Residuals(np.array([3, -2])), Residuals(of_zero=True)):
        t = visit.targets(passes.targets).shape[1]
        for ours, theirs in zip(passes.sweep(V, visit, (t, t)), whole.sweep(V, visit, (t, t)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)
