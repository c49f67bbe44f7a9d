"""The compiled loop of nu-SVMs over tiny pairs against the same problems solved one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics.pairwise import rbf_kernel

import mercer
from mercer.gram import PrecomputedGram
from mercer.solvers.solution import Status
from mercer.solvers.svm import pairwise, tiny_pairs
from mercer.solvers.svm.nu_margin import NuMargin
from mercer.solvers.svm.pair_answers import PairAnswers
from mercer.solvers.svm.pairwise import solve_pairs
from mercer.solvers.svm.smo import SMO

NU = 0.3


MACHINE = NuMargin(SMO(), nu=NU)


@dataclass(frozen=True)
class Single(NuMargin):
    """The same machine, of which no pair goes through the loop."""

    def is_compiled(self, from_zero: bool) -> bool:
        return False


def made(k: int = 5) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    rng = np.random.default_rng(1)
    sizes = rng.integers(8, 14, k)
    X = np.repeat(rng.standard_normal((k, 3)), sizes, axis=0) + rng.standard_normal((sizes.sum(), 3))
    return rbf_kernel(X, gamma=0.4), sizes


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of pairs that are left by each call of the loop."""
    numbers: list[int] = []

    def spy(*args: Any) -> NDArray[np.bool_]:
        solved = tiny_pairs.solve_tiny_pairs(*args)
        numbers.append(int((~solved).sum()))
        return solved

    monkeypatch.setattr(pairwise, "solve_tiny_pairs", spy)
    return numbers


def assert_same(result: PairAnswers, expected: PairAnswers, atol: float = 1e-7) -> None:
    for name in ("beta", "gradient", "state", "offsets"):
        np.testing.assert_allclose(getattr(result, name), getattr(expected, name), atol=atol, err_msg=name)
    for one, other in zip(result.certificates, expected.certificates, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=1e-8, abs=1e-10)
        assert one.dual == pytest.approx(other.dual, rel=1e-8, abs=1e-10)
        assert (one.status, one.convex) == (other.status, other.convex)
        assert one.violations.keys() == other.violations.keys()
        assert one.kkt_violation <= 1e-9 and max(one.violations.values()) <= 1e-8


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighted", [False, True])
def test_answers_are_those_of_the_pairs_one_by_one(left: list[int], weighted: bool, dtype: type) -> None:
    K, sizes = made()
    K = K.astype(dtype)
    upper = 1.0 + np.arange(len(K)) % 3 if weighted else np.ones(len(K))
    expected = solve_pairs(PrecomputedGram(K), sizes, upper, Single(SMO(), nu=NU))
    assert left == []
    # Rows that lie together are picked as steps ask for them; others are read by strips.
    for matrix in (K, np.asfortranarray(K)):
        assert_same(solve_pairs(PrecomputedGram(matrix), sizes, upper, MACHINE), expected)
    assert left == [0, 0]


def test_the_sums_of_the_weights_are_those_of_nu(left: list[int]) -> None:
    K, sizes = made(2)
    answers = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE)
    first = np.arange(len(K)) < sizes[0]
    assert left == [0]
    state, total = answers.state[0], 0.5 * NU * len(K)
    np.testing.assert_allclose([state[first].sum(), -state[~first].sum()], total)
    assert (state[first] >= 0).all() and (state[~first] <= 0).all() and np.abs(state).max() <= 1.0
    # On the margin values are 1 and -1: that is what rho is for.
    free = (np.abs(state) > 1e-6) & (np.abs(state) < 1 - 1e-6)
    values = K @ answers.beta[0] + answers.offsets[0]
    np.testing.assert_allclose(values[free], np.where(first, 1.0, -1.0)[free], atol=1e-8)


def test_no_margin_and_starts_are_left_to_the_solver_of_single_pairs(left: list[int]) -> None:
    K, sizes = np.tile(rbf_kernel(np.random.default_rng(0).standard_normal((8, 2))), (2, 2)), np.array([8, 8])
    flat = solve_pairs(PrecomputedGram(K), sizes, np.ones(16), MACHINE)
    assert left == [1]
    np.testing.assert_allclose(K @ flat.beta[0], 0.0, atol=1e-6)
    K, sizes = made(2)
    once = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE)
    again = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE, starts=once.state.copy())
    assert left == [1, 0]
    assert_same(again, once)


def test_a_limit_of_steps_and_indefinite_matrices() -> None:
    K, sizes = made()
    limited = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), NuMargin(SMO(max_iter=3), nu=NU))
    assert limited.certificates.iterations.max() <= 3
    assert Status.iteration_limit in {part.status for part in limited.certificates}
    loose = solve_pairs(PrecomputedGram(K), sizes, np.ones(len(K)), MACHINE, convex=False)
    assert {part.status for part in loose.certificates} == {Status.stationary}


def test_nu_svc_takes_the_loop_unless_classes_are_weighted(left: list[int]) -> None:
    K, sizes = made()
    y = np.repeat(np.arange(len(sizes)), sizes)
    model = mercer.NuSVC(nu=NU, kernel="precomputed", allow_indefinite=False).fit(K, y)
    assert left == [0]
    mercer.NuSVC(nu=NU, kernel="precomputed", class_weight={0: 2.0}).fit(K, y)
    assert left == [0]
    # The same function as that of the C-SVC at 1 / rho, which is the bound of the weights.
    for j in range(1, len(sizes)):
        rows = np.flatnonzero((y == 0) | (y == j))
        bound = float(np.abs(model.dual_coef_[j - 1, : model.n_support_[0]]).max())
        pair = mercer.SVC(C=bound, kernel="precomputed", tol=1e-8).fit(K[np.ix_(rows, rows)], y[rows])
        assert -pair.intercept_[0] == pytest.approx(model.intercept_[j - 1], abs=1e-5)
