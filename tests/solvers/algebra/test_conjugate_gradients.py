"""Conjugate gradients against direct solutions, for systems side by side and in the space of a kernel."""

from __future__ import annotations

import numpy as np
import pytest

from mercer._types import Matrix
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients, of_pair, pair, refine


def _positive(n: int, rank: int, seed: int) -> Matrix:
    factor = np.random.default_rng(seed).normal(size=(n, rank))
    product: Matrix = factor @ factor.T
    return product


def _identity(R: Matrix) -> Matrix:
    return R


def test_columns_are_systems_of_their_own() -> None:
    A, b = _positive(30, 40, 0), np.random.default_rng(1).normal(size=(30, 3))
    b[:, 1] = 0.0
    search = ConjugateGradients(lambda V: A @ V, lambda R: R / A.diagonal()[:, None], b)
    while search.advance() and np.abs(search.residual).max() > 1e-11:
        assert search.steps < 200
    np.testing.assert_allclose(search.x, np.linalg.solve(A, b), atol=1e-9)
    np.testing.assert_allclose(search.residual, b - A @ search.x, atol=1e-9)
    alone = ConjugateGradients(lambda V: A @ V, lambda R: R / A.diagonal()[:, None], b[:, 2:])
    for _ in range(search.steps):
        alone.advance()
    np.testing.assert_allclose(alone.x, search.x[:, 2:], atol=1e-9)


def test_a_pair_solves_without_the_inverse_of_a_singular_matrix() -> None:
    """``(I + W K) x = b`` in the space of K, in as many steps as K has eigenvalues and two."""
    n, rank = 40, 5
    K, rng = _positive(n, rank, 2), np.random.default_rng(3)
    w, b = rng.uniform(0.1, 1.0, (n, 1)), rng.normal(size=(n, 2))
    products = [0]

    def precondition(R: Matrix) -> Matrix:
        products[0] += 1
        return pair(K @ R, R)

    search = ConjugateGradients(lambda V: V[1] + w * V[0], precondition, b, of_pair, first=pair(K @ b, b))
    while search.advance() and np.abs(search.preconditioned[0]).max() > 1e-9:
        assert search.steps < 60
    Kx, x = search.x
    np.testing.assert_allclose(Kx, K @ np.linalg.solve(np.eye(n) + w * K, b), atol=1e-7)
    np.testing.assert_allclose(K @ x, Kx, atol=1e-7)
    assert products[0] == search.steps <= 2 * (rank + 1) + 2


def test_the_inner_products_of_a_preconditioner_that_is_not_symmetric() -> None:
    """The flexible form still solves; a preconditioner of float32 has such errors."""
    A, rng = _positive(25, 60, 4), np.random.default_rng(5)
    b = rng.normal(size=(25, 1))
    M = np.linalg.inv(A) + 1e-6 * rng.normal(size=(25, 25))
    search = ConjugateGradients(lambda V: A @ V, lambda R: M @ R, b)
    while search.advance() and np.abs(search.residual).max() > 1e-12:
        assert search.steps < 15
    np.testing.assert_allclose(search.x, np.linalg.solve(A, b), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("A", [np.zeros((3, 3)), -np.eye(3), np.full((3, 3), np.nan)])
def test_a_matrix_that_is_not_positive_ends_the_search_with_the_answer_so_far(A: Matrix) -> None:
    b = np.ones((3, 1))
    search = ConjugateGradients(lambda V: A @ V, _identity, b)
    assert not search.advance()
    assert search.steps == 1 and not search.x.any()
    np.testing.assert_array_equal(search.preconditioned, b)
    paired = ConjugateGradients(lambda V: A @ V[0], lambda R: pair(R, R), b, of_pair)
    assert not paired.advance() and not paired.x.any()


def test_nothing_is_to_be_done_for_zeros() -> None:
    search = ConjugateGradients(lambda V: 2.0 * V, _identity, np.zeros((4, 2)))
    assert not search.advance() and not search.x.any()
    assert refine(lambda V: 2.0 * V, _identity, np.zeros((4, 2))).converged


def test_refinement_reaches_float64_with_a_float32_inverse() -> None:
    A, b = _positive(50, 80, 6), np.random.default_rng(7).normal(size=(50, 4))
    inverse = np.linalg.inv(A).astype(np.float32)
    refined = refine(lambda V: A @ V, lambda R: (inverse @ R.astype(np.float32)).astype(np.float64), b)
    assert refined.converged
    np.testing.assert_allclose(refined.x, np.linalg.solve(A, b), rtol=1e-9, atol=1e-11)
