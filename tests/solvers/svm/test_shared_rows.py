"""Problems over each row twice, on the matrix of the rows once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mercer
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF
from mercer.solvers.solution import Status
from mercer.solvers.svm import shared_rows
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.smo import SMO


def problem(m: int = 300, *, weighted: bool = False) -> tuple[np.ndarray, BoxQP]:
    """A nu-SVR over m rows, whose doubled matrix is of more than 512 rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 2))
    K, y = RBF(1.0)(X), np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=m)
    bound, zero, twice = (1.0 + np.arange(m) % 3 if weighted else np.ones(m)), np.zeros(m), np.tile(np.arange(m), 2)
    total = 0.2 * float(bound.sum())
    gram = PrecomputedGram(K)
    return K, BoxQP(
        gram.restrict(twice, twice),
        np.tile(y, 2),
        np.concatenate([zero, -bound]),
        np.concatenate([bound, zero]),
        totals=(total, -total),
        groups=np.repeat(np.array([0, 1], dtype=np.int8), m),
        once=gram,
    )


class Unread:
    """A matrix of which only the shape is known."""

    dtype, expensive = np.dtype(np.float64), False

    def __init__(self, n: int) -> None:
        self.shape = n, n

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} of the doubled matrix was asked for")


@pytest.mark.parametrize("weighted", [False, True])
def test_the_answer_is_that_of_the_doubled_matrix_of_which_nothing_is_read(
    weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How many steps it takes, 4,500 to more than 6,000, depends on the rounding of K.
    monkeypatch.setattr(shared_rows, "_STEPS", 100)
    K, shared = problem(weighted=weighted)
    expected = SMO(tol=1e-9).solve(replace(shared, once=None))
    solution = SMO(tol=1e-5).solve(replace(shared, gram=Unread(600)))
    assert solution.status is expected.status is Status.converged
    assert solution.certificate.dual == pytest.approx(expected.certificate.dual, rel=1e-8)
    assert solution.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-5)
    assert solution.value.offsets == pytest.approx(expected.value.offsets, abs=1e-4)
    weights, others = (answer.value.beta.reshape(2, -1).sum(axis=0) for answer in (solution, expected))
    np.testing.assert_allclose(K @ weights, K @ others, atol=1e-4)
    np.testing.assert_allclose(solution.value.gradient, np.tile(shared.linear[:300] - K @ weights, 2), atol=1e-12)
    assert max(solution.certificate.violations.values()) <= 1e-4


def test_a_limit_of_steps_is_honoured() -> None:
    _, shared = problem()
    limited = SMO(tol=1e-9, max_iter=7).solve(replace(shared, gram=Unread(600)))
    assert limited.status is Status.iteration_limit and limited.certificate.iterations == 7


def test_what_steps_do_not_solve_is_gone_on_with(monkeypatch: pytest.MonkeyPatch) -> None:
    _, shared = problem()
    expected = SMO(tol=1e-6).solve(shared)
    monkeypatch.setattr(shared_rows, "_STEPS", 0.1)
    solution = SMO(tol=1e-6).solve(shared)
    assert solution.status is Status.converged
    assert solution.certificate.dual == pytest.approx(expected.certificate.dual, rel=1e-6)


def test_nu_svr_on_a_matrix_and_on_rows(rng: np.random.Generator) -> None:
    X = rng.normal(size=(400, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=400)
    given = mercer.NuSVR(kernel="precomputed", tol=1e-6).fit(RBF(1.0)(X), y)
    rows = mercer.NuSVR(kernel=RBF(1.0), tol=1e-6).fit(X, y)
    assert given.certificate_.dual == pytest.approx(rows.certificate_.dual, rel=1e-9)
    assert given.epsilon_ == pytest.approx(rows.epsilon_, abs=1e-5)
    assert given.certificate_.peak_bytes < 8 * 400**2
