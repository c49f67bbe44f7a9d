"""The level method on convex functions whose least value is known."""

from __future__ import annotations

import numpy as np
import pytest

from mercer.solvers.svm.kernel_weights import LevelMethod, Machine

RNG = np.random.default_rng(0)


def ridge(count: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    phis = [rng.normal(size=(15, 3)) for _ in range(count)]
    return [phi @ phi.T for phi in phis], rng.normal(size=15)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
def test_the_bounds_hold_the_least_value(count: int, tol: float) -> None:
    # J(w) = max_b b'y - b'b/2 - b' K(w) b / 2 = y' (I + K(w))^-1 y / 2.
    terms, y = ridge(count, count)

    def solve(weights: np.ndarray) -> Machine:
        K = sum(w * term for w, term in zip(weights, terms))
        b = np.linalg.solve(np.eye(15) + K, y)
        return Machine(0.5 * float(b @ y), float(b @ y - 0.5 * b @ b), np.array([b @ term @ b for term in terms]))

    result = LevelMethod(tol).minimise(solve, count)
    assert result.weights.sum() == pytest.approx(1.0) and (result.weights >= 0).all()
    assert result.upper == pytest.approx(solve(result.weights).primal, rel=1e-8)
    assert result.relative_gap <= tol and result.iterations < 60
    tried = [solve(RNG.dirichlet(np.full(count, 0.5))).primal for _ in range(500)]
    assert result.lower <= min(tried) + 1e-12
    assert result.upper <= min(tried) * (1 + tol)


def test_inexact_machines_keep_the_lower_bound() -> None:
    terms, y = ridge(3, 7)

    def solve(weights: np.ndarray, error: float = 0.0) -> Machine:
        K = sum(w * term for w, term in zip(weights, terms))
        exact = np.linalg.solve(np.eye(15) + K, y)
        b = exact * (1.0 + error)
        # Of the primal min_f |y - f|^2 / 2 + |f|^2 / 2 at the function of b.
        primal = 0.5 * float(((y - K @ b) ** 2).sum() + b @ K @ b)
        return Machine(primal, float(b @ y - 0.5 * b @ b), np.array([b @ term @ b for term in terms]))

    exact = LevelMethod(1e-8).minimise(solve, 3)
    rough = LevelMethod(1e-8).minimise(lambda weights: solve(weights, 0.01), 3)
    assert rough.lower <= exact.upper <= rough.upper
    # It ends early: more machines of this accuracy do not bring the bounds closer.
    assert 10 < rough.iterations < 20


def test_machines_without_digits_end_the_search() -> None:
    calls: list[int] = []

    def solve(weights: np.ndarray) -> Machine:
        calls.append(1)
        return Machine(1e30, -1e10, np.full(3, 1e-10))

    result = LevelMethod(1e-7).minimise(solve, 3)
    assert len(calls) == result.iterations <= 12
    assert result.relative_gap > 0.5
