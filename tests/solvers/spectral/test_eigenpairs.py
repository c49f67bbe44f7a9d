"""Leading eigenpairs of centred and of scaled matrices, by every method, beside NumPy's eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest

import mercer
from mercer._errors import MemoryBudgetError, ParameterError
from mercer._types import Matrix, Vector
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.spectral.eigenpairs import SOLVERS, Eigenpairs, Eigenproblem, solve

N = 300
X = np.random.default_rng(0).normal(size=(N, 3))
K = RBF(1.5)(X)
WEIGHTS = np.random.default_rng(1).uniform(0.2, 1.0, N)


def of_problem(scale: Vector | None) -> Matrix:
    if scale is not None:
        return scale[:, None] * K * scale
    H = np.eye(N) - 1.0 / N
    return H @ K @ H


def check(pairs: Eigenpairs, expected: Matrix, k: int, tol: float) -> None:
    values = np.linalg.eigvalsh(expected)[::-1]
    np.testing.assert_allclose(pairs.values, values[:k], rtol=0, atol=tol * values[0])
    np.testing.assert_allclose(pairs.vectors.T @ pairs.vectors, np.eye(k), atol=1e-10)
    residual = expected @ pairs.vectors - pairs.vectors * pairs.values
    assert np.abs(residual).max() <= max(tol, 1e-10) ** 0.5 * values[0]


@pytest.mark.parametrize("scale", [None, WEIGHTS], ids=["centred", "scaled"])
@pytest.mark.parametrize("solver", [*SOLVERS, "lanczos"])
def test_every_method_finds_the_eigenpairs(solver: str, scale: Vector | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if solver == "lanczos":
        # What "auto" takes for many rows.
        monkeypatch.setattr("mercer.solvers.spectral.eigenpairs._DENSE_UP_TO", 10)
        monkeypatch.setattr("mercer.solvers.spectral.eigenpairs._SHARE", 1.0)
    problem = Eigenproblem(PrecomputedGram(K), 4, "auto" if solver == "lanczos" else solver, scale=scale)
    solution = solve(problem)
    check(solution.value, of_problem(scale), 4, 1e-4 if solver == "randomized" else 1e-10)
    assert not solution.value.negative.size
    if solver == "lanczos":
        assert solution.state.method == "block Lanczos"


@pytest.mark.parametrize("scale", [None, WEIGHTS], ids=["centred", "scaled"])
def test_all_eigenpairs_leave_nothing(scale: Vector | None) -> None:
    solution = solve(Eigenproblem(PrecomputedGram(K), scale=scale))
    check(solution.value, of_problem(scale), N, 1e-12)
    assert abs(solution.certificate.primal) <= 1e-9 * solution.value.values[0]


def test_a_matrix_that_does_not_fit_is_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mercer.solvers.spectral.eigenpairs._DENSE_UP_TO", 10)
    rows = np.random.default_rng(2).normal(size=(900, 2))
    problem = Eigenproblem(Gram(RBF(2.0), rows), 3)
    whole = solve(problem)
    with mercer.config(memory=5 * 900 * 900):
        products = solve(problem)
    assert products.certificate.peak_bytes < whole.certificate.peak_bytes
    np.testing.assert_allclose(products.value.values, whole.value.values, rtol=1e-10)


def test_negative_eigenvalues_are_found() -> None:
    spectrum = np.concatenate([[5.0, 3.0, -2.0], np.full(N - 3, 0.1)])
    Q = np.linalg.qr(np.random.default_rng(3).normal(size=(N, N)))[0]
    matrix = (Q * spectrum) @ Q.T
    solution = solve(Eigenproblem(PrecomputedGram((matrix + matrix.T) / 2), 2, scale=np.ones(N)))
    np.testing.assert_allclose(solution.value.values, [5.0, 3.0], rtol=1e-10)
    assert solution.value.negative[0] == pytest.approx(-2.0, rel=1e-6)


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(ParameterError, match="ARPACK finds fewer eigenpairs than there are rows"):
        solve(Eigenproblem(PrecomputedGram(np.eye(4)), None, "arpack"))
    with mercer.config(memory=1000), pytest.raises(MemoryBudgetError, match="eigenvectors of 300 rows"):
        solve(Eigenproblem(PrecomputedGram(K), 4))
