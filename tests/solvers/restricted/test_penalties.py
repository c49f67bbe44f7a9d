"""Criteria of penalties over landmarks, beside fits without each row and dense formulas."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._errors import MemoryBudgetError
from mercer.engine.settings import config
from mercer.gram import Gram
from mercer.kernels import RBF
from mercer.solvers.restricted.passes import StoredRows
from mercer.solvers.restricted.penalties import DecomposedRows
from mercer.solvers.restricted.whitening import Whitening

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.stack([np.sin(X[:, 0]), RNG.normal(size=60)], axis=1)
Z = X[:12]
ALPHAS = np.array([0.01, 0.3, 10.0])


def decomposed(weights: np.ndarray, targets: np.ndarray = Y) -> DecomposedRows:
    rows = StoredRows(Gram(RBF(1.0), X, Z), targets, weights)
    return DecomposedRows.of(rows, Whitening.of(RBF(1.0)(Z)))


def features() -> np.ndarray:
    return np.linalg.solve(np.linalg.cholesky(RBF(1.0)(Z)), RBF(1.0)(Z, X)).T


@pytest.mark.parametrize("weights", [np.ones(60), RNG.integers(1, 4, 60) * 1.0, RNG.uniform(0.2, 2.5, 60)])
def test_leave_one_out_is_that_of_fits_without_one_observation(weights: np.ndarray) -> None:
    phi, found = features(), decomposed(weights).left_out_errors(ALPHAS)
    for alpha, errors in zip(ALPHAS, found, strict=True):
        sums = np.zeros(2)
        for i in range(60):
            less = weights.copy()
            less[i] -= min(1.0, weights[i])
            H = phi.T @ (less[:, None] * phi) + alpha * np.eye(12)
            sums += weights[i] * (Y[i] - phi[i] @ np.linalg.solve(H, phi.T @ (less[:, None] * Y))) ** 2
        np.testing.assert_allclose(errors, sums / weights.sum(), rtol=1e-7)


def test_gcv_evidence_and_solutions_are_those_of_repeated_rows() -> None:
    counts = RNG.integers(1, 4, 60)
    found = decomposed(counts * 1.0)
    gcv, evidence = found.of_sums(ALPHAS)
    phi, targets, n = np.repeat(features(), counts, axis=0), np.repeat(Y, counts, axis=0), counts.sum()
    for j, alpha in enumerate(ALPHAS):
        A = phi @ phi.T + alpha * np.eye(n)
        residual = alpha * np.linalg.solve(A, targets)
        share = np.trace(alpha * np.linalg.inv(A)) / n
        np.testing.assert_allclose(gcv[j], (residual**2).mean(axis=0) / share**2, rtol=1e-7)
        form = (targets * np.linalg.solve(A, targets)).sum(axis=0)
        density = -0.5 * (n * (1 + np.log(2 * np.pi * form / n)) + np.linalg.slogdet(A)[1])
        np.testing.assert_allclose(evidence[j], density, rtol=1e-9)
        gamma = found.coordinates(np.full(2, alpha))
        np.testing.assert_allclose(phi @ gamma, targets - residual, atol=1e-8)


def test_rows_that_are_interpolated_have_no_finite_error() -> None:
    X1 = np.arange(3.0)[:, None] * 100
    rows = StoredRows(Gram(RBF(1.0), X1, X1), np.ones((3, 1)), np.ones(3))
    found = DecomposedRows.of(rows, Whitening.of(RBF(1.0)(X1)))
    assert np.isinf(found.left_out_errors(np.array([1e-300]))).all()
    assert np.isinf(found.of_sums(np.array([1e-300]))[0]).all()


def test_memory_is_asked_for() -> None:
    with config(memory="3 KiB"), pytest.raises(MemoryBudgetError, match="decomposed features of 12"):
        decomposed(np.ones(60))
