"""Krylov spaces against all eigenvalues, also where the space ends early."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mercer.solvers.algebra.lanczos import Krylov, largest_eigenvalue, tridiagonal


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30))
def test_the_largest_eigenvalue_and_what_its_residual_promises(seed: int, n: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, rank))
    K = A @ A.T
    value, residual = largest_eigenvalue(lambda v: K @ v, n)
    values = np.linalg.eigvalsh(K)
    assert value <= values[-1] * (1 + 1e-12)
    assert np.abs(values - value).min() <= residual + 1e-12 * values[-1]
    assert value == pytest.approx(values[-1], rel=1e-8)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("distinct", [1, 2, 5])
def test_a_whole_space_has_all_eigenvalues_although_few_are_different(balanced: bool, distinct: int) -> None:
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.normal(size=(20, 20)))[0]
    K = Q @ np.diag(np.arange(20.0) % distinct + 1.0) @ Q.T
    space = Krylov(lambda v: K @ v, rng.normal(size=20), 100, balanced=balanced)
    while not space.is_full:
        space.extend()
    centre = np.eye(20) - 1 / 20
    expected = np.linalg.eigvalsh(centre @ K @ centre)[1:] if balanced else np.linalg.eigvalsh(K)
    assert space.size == 20 - balanced
    np.testing.assert_allclose(space.ritz()[0], expected, atol=1e-10)


def test_the_zero_matrix() -> None:
    assert largest_eigenvalue(lambda v: 0.0 * v, 4) == (0.0, 0.0)
    assert largest_eigenvalue(lambda v: 3.0 * v, 1) == pytest.approx((3.0, 0.0))


def test_quadrature_by_all_steps_is_exact() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    K, v = A @ A.T, rng.normal(size=(12, 1))
    diagonal, beside = (part[:, 0] for part in tridiagonal(K, v, 6))
    T = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    # Six steps integrate polynomials of degree eleven.
    unit = v[:, 0] / np.linalg.norm(v)
    for power in (1, 4, 11):
        expected = unit @ np.linalg.matrix_power(K, power) @ unit
        assert np.linalg.matrix_power(T, power)[0, 0] == pytest.approx(expected, rel=1e-8)
