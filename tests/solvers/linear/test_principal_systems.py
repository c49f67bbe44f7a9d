"""Systems over parts of one matrix with many penalties, against a dense solve of each."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from mercer.engine import settings
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.evaluated import EvaluatedGram
from mercer.kernels import RBF, Kernel
from mercer.solvers.linear.linear_system import LinearSystem, ScaledGram
from mercer.solvers.linear.partial_factor import partial_factor
from mercer.solvers.linear.principal_systems import PartSolution, PrincipalSystems, SharedGradients, _Factors, _Work

RNG = np.random.default_rng(0)
X = RNG.standard_normal((240, 3))
T = np.column_stack([np.sin(X[:, 0]) + X[:, 1], np.ones(240)])
PARTS = tuple(np.setdiff1d(np.arange(240), np.arange(i, 240, 3)) for i in range(3))
SHIFTS = np.array([1e-4, 1e-2, 1.0, 100.0])


def solve(kernel: Kernel, weights: np.ndarray | None = None) -> list[PartSolution]:
    with ExitStack() as stack:
        gram = EvaluatedGram.evaluate(Gram(kernel, X), stack)
        assert gram is not None
        return SharedGradients().solve(PrincipalSystems(gram, T, PARTS, SHIFTS, weights))


@pytest.mark.parametrize("length", [30.0, 3.0, 1.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_system_is_solved_as_by_a_dense_solve(length: float, weighted: bool) -> None:
    weights = np.linspace(0.2, 3.0, 240) if weighted else None
    kernel = RBF(length)
    scale = np.ones(240) if weights is None else np.sqrt(weights)
    K = kernel(X) * scale * scale[:, None]
    for part, answer in zip(PARTS, solve(kernel, weights), strict=True):
        assert answer.solved.all() and answer.z.shape == (4, 160, 2)
        b = (scale[:, None] * T)[part]
        largest = np.linalg.norm(K[np.ix_(part, part)], 2)
        for shift, z, residual in zip(SHIFTS, answer.z, answer.residual, strict=True):
            A = K[np.ix_(part, part)] + shift * np.eye(160)
            size = np.linalg.norm(b, axis=0)
            rounding = 1e-14 * (largest + shift) * np.linalg.norm(z, axis=0)
            assert (np.linalg.norm(b - A @ z, axis=0) <= 2e-12 * size + rounding).all()
            # A z is rounded at b's size here, too.
            np.testing.assert_allclose(residual, b - A @ z, atol=1e-13 * float(size.max()) + float(rounding.max()))


def test_the_certificate_is_that_of_the_part() -> None:
    part, answer = PARTS[0], solve(RBF(1.0))[0]
    with ExitStack() as stack:
        gram = EvaluatedGram.evaluate(Gram(RBF(1.0), X), stack)
        assert gram is not None
        system = LinearSystem(gram.restrict(part, part), T[part], np.full(2, 1.0))
        solution = answer.solution(system, 2)
    alone = np.linalg.solve(RBF(1.0)(X[part]) + np.eye(160), T[part])
    np.testing.assert_allclose(solution.value, alone, atol=1e-10)
    assert solution.certificate.kkt_violation < 2e-12
    assert solution.certificate.primal == pytest.approx(float((T[part] * alone).sum()), rel=1e-9)


def test_bits_are_those_of_one_thread() -> None:
    with settings.config(n_jobs=1):
        one = solve(RBF(1.0))
    with settings.config(n_jobs=3):
        three = solve(RBF(1.0))
    for a, b in zip(one, three, strict=True):
        assert np.array_equal(a.z, b.z)


def test_what_is_not_solved_is_said() -> None:
    # Eigenvalues of both signs: conjugate gradients meet a direction without curvature, and no factor exists.
    K = RNG.standard_normal((240, 240))
    problem = PrincipalSystems(PrecomputedGram(K + K.T), T, PARTS, np.array([1e-3, 1e-2]))
    assert not any(answer.solved.any() for answer in SharedGradients().solve(problem))


def test_a_partial_factor_has_the_rank_of_the_least_cost() -> None:
    K = RBF(3.0)(X)
    G, left = partial_factor(ScaledGram(PrecomputedGram(K)), 100, lambda rank, largest: float(rank) + 1e3 * largest)
    np.testing.assert_allclose(np.diag(K) - (G**2).sum(axis=0), left, atol=1e-12)
    assert 0 < len(G) < 100
    none, everything = partial_factor(ScaledGram(PrecomputedGram(K)), 100, lambda rank, largest: float(rank))
    assert len(none) == 0 and np.array_equal(everything, np.diag(K))


def test_the_factors_of_one_penalty_are_gone_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    factors: list[weakref.ref[_Factors]] = []
    alive: list[bool] = []
    factored = _Work._factored

    def noted(work: _Work, *arguments: Any) -> _Factors | None:
        alive.append(any(factor() is not None for factor in factors))
        made = factored(work, *arguments)
        assert made is not None
        factors.append(weakref.ref(made))
        return made

    monkeypatch.setattr(_Work, "_factored", noted)
    solve(RBF(0.2))
    assert len(alive) > 1 and not any(alive)
