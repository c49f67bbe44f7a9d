"""Hard margins against a general solver, and what proves that there is none."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from mercer._errors import InfeasibleError, ParameterError
from mercer.gram import Gram, PrecomputedGram
from mercer.kernels import RBF, Linear, NegativeDistance
from mercer.solvers.solution import Status
from mercer.solvers.svm import rescaled, shrinking
from mercer.solvers.svm.hard_margin import HardMargin
from mercer.solvers.svm.pair_problem import PairProblem
from mercer.solvers.svm.signed import SignedGram
from mercer.solvers.svm.smo import SMO
from mercer.solvers.svm.solver import Start


def solve_hard_margin(gram, y, start=None, intercept=True, convex=True, **changes):
    problem = PairProblem(gram, y, np.full(len(y), np.inf), convex)
    return HardMargin(SMO(n_jobs=1, **changes), intercept).solve(problem, Start(start))


def separable(n, seed=0, offset=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(X @ [1.0, 0.5] > 0, 1.0, -1.0)
    return X + 0.4 * y[:, None] * [1.0, 0.5] + offset, y


def widest(K, y, intercept):
    """The hard margin's objective, by SLSQP on its dual."""
    Q = np.outer(y, y) * K
    constraints = [{"type": "eq", "fun": lambda a: a @ y, "jac": lambda a: y}] if intercept else []
    optimum = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.full(len(y), 1.0 / len(y)),
        jac=lambda a: Q @ a - 1.0,
        method="SLSQP",
        bounds=[(0.0, None)] * len(y),
        constraints=constraints,
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    return -optimum.fun, optimum.x


def least_sum_of_slacks(X, y, intercept):
    """For the linear kernel, where it is a linear programme."""
    n = len(X)
    columns = np.column_stack([X, np.ones(n)]) if intercept else X
    A = np.hstack([-y[:, None] * columns, -np.eye(n)])
    cost = np.r_[np.zeros(columns.shape[1]), np.ones(n)]
    bounds = [(None, None)] * columns.shape[1] + [(0, None)] * n
    return linprog(cost, A_ub=A, b_ub=-np.ones(n), bounds=bounds).fun


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", [Linear(), RBF(1.0)])
def test_against_a_general_solver(kernel, intercept):
    X, y = separable(30, offset=0.0)
    K = kernel(X)
    best, alpha = widest(K, y, intercept)
    answer = solve_hard_margin(PrecomputedGram(K), y, tol=1e-8, intercept=intercept)
    assert answer.status is Status.converged
    assert answer.certificate.primal == pytest.approx(best, rel=1e-6)
    assert answer.certificate.dual == pytest.approx(best, rel=1e-6)
    np.testing.assert_allclose(K @ answer.value.beta, K @ (y * alpha), atol=1e-4)
    margins = y * (K @ answer.value.beta + answer.value.offset)
    assert margins.min() == pytest.approx(1.0, abs=1e-7)
    np.testing.assert_allclose(y - answer.value.gradient, K @ answer.value.beta, atol=1e-9)
    assert (answer.value.offset == 0.0) is (not intercept)


def test_the_certificate_holds_at_any_tolerance():
    X, y = separable(700)
    gram = Gram(RBF(1.5), X)
    best = solve_hard_margin(gram, y, tol=1e-9).certificate.dual
    for tol in (0.3, 1e-2, 1e-4):
        answer = solve_hard_margin(gram, y, tol=tol)
        certificate = answer.certificate
        assert certificate.kkt_violation <= tol and certificate.status is Status.converged
        assert certificate.dual <= best * (1 + 1e-9) and best <= certificate.primal * (1 + 1e-9)
        margins = 1.0 - y * (answer.value.gradient - answer.value.offset)
        assert margins.min() >= 1.0 - tol
        assert certificate.violations["margin"] == pytest.approx(max(0.0, 1.0 - margins.min()), abs=1e-12)
    gap = solve_hard_margin(gram, y, tol=1e-5, stop="gap").certificate
    assert gap.relative_gap <= 1e-5


def test_a_start_saves_steps_and_a_limit_is_kept():
    X, y = separable(700)
    gram = Gram(RBF(1.5), X)
    first = solve_hard_margin(gram, y)
    again = solve_hard_margin(gram, y, start=7.0 * first.value.beta)
    assert again.certificate.iterations < first.certificate.iterations / 4
    stopped = solve_hard_margin(gram, y, max_iter=10)
    assert stopped.status is Status.iteration_limit and stopped.certificate.iterations == 10


def test_two_rows():
    answer = solve_hard_margin(PrecomputedGram(np.diag([1.0, 3.0])), np.array([1.0, -1.0]))
    np.testing.assert_allclose(answer.value.beta, [0.5, -0.5])
    assert answer.value.offset == pytest.approx(0.5)
    assert answer.certificate.primal == pytest.approx(0.5)


def test_conditionally_positive_kernels_have_a_distance_of_hulls():
    X, y = separable(40)
    kernels = (NegativeDistance(), NegativeDistance().centered(X))
    plain, centred = (solve_hard_margin(Gram(kernel, X), y) for kernel in kernels)
    assert plain.certificate.dual == pytest.approx(centred.certificate.dual, rel=1e-6)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [30, 700])
def test_the_proof_that_there_is_none(n, intercept):
    X, y = separable(n, offset=0.2)
    y[::9] *= -1.0
    with pytest.raises(InfeasibleError, match="cannot be separated") as caught:
        solve_hard_margin(Gram(Linear(), X), y, intercept=intercept)
    shares, (low, high) = caught.value.multipliers, caught.value.least_slack
    assert (shares >= 0).all()
    if intercept:
        assert shares[y > 0].sum() == pytest.approx(1.0) and shares[y < 0].sum() == pytest.approx(1.0)
    else:
        assert shares.sum() == pytest.approx(1.0)
    assert np.linalg.norm((shares * y) @ X) <= caught.value.distance + 1e-12
    assert caught.value.distance < 1e-5
    least = least_sum_of_slacks(X, y, intercept)
    assert low <= least * (1 + 1e-6) and least <= high * (1 + 1e-6)
    assert high - low <= 0.05 * least
    assert shares.sum() / shares.max() == pytest.approx(low, rel=1e-9)


@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3), RBF(30.0)])
def test_equal_rows_with_opposite_labels(kernel):
    X, y = separable(40)
    X, y = np.vstack([X, X[:2]]), np.r_[y, -y[:2]]
    with pytest.raises(InfeasibleError) as caught:
        solve_hard_margin(Gram(kernel, X), y)
    low, high = caught.value.least_slack
    # Each of the two pairs needs 2 in all, whatever the function.
    assert high >= 4.0 - 1e-6 and low <= high
    assert low >= 2.0 - 1e-6


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("K", [np.zeros((4, 4)), np.ones((4, 4)), np.full((4, 4), 1e-12), 1e12 * np.ones((4, 4))])
def test_equal_entries(K, intercept):
    y = np.array([1.0, 1.0, -1.0, -1.0])
    with pytest.raises(InfeasibleError) as caught:
        solve_hard_margin(PrecomputedGram(K), y, intercept=intercept)
    assert caught.value.least_slack == pytest.approx((4.0, 4.0), rel=0.01)


def test_the_scale_of_the_matrix_does_not_matter():
    X, y = separable(50)
    mixed = np.where(np.arange(50) % 9 == 0, -y, y)
    for scale in (1e-9, 1.0, 1e9):
        gram = PrecomputedGram(scale * Linear()(X))
        assert scale * solve_hard_margin(gram, y).certificate.dual == pytest.approx(
            solve_hard_margin(PrecomputedGram(Linear()(X)), y).certificate.dual, rel=1e-4
        )
        with pytest.raises(InfeasibleError):
            solve_hard_margin(gram, mixed)


def test_entries_beyond_float32():
    X, y = separable(600)
    K = Linear()(X)
    huge = solve_hard_margin(PrecomputedGram(1e60 * K), y)
    assert 1e60 * huge.certificate.dual == pytest.approx(
        solve_hard_margin(PrecomputedGram(K), y).certificate.dual, rel=1e-3
    )


def test_where_steps_crawl_an_interior_point_method_goes_on(monkeypatch):
    X, y = separable(300)
    gram = Gram(RBF(1.5), X)
    expected = solve_hard_margin(gram, y, tol=1e-6).certificate.dual
    monkeypatch.setattr(rescaled, "_DENSE_PATIENCE", 1)
    answer = solve_hard_margin(gram, y, tol=1e-6)
    assert answer.status is Status.converged
    assert answer.certificate.dual == pytest.approx(expected, rel=1e-5)
    monkeypatch.setattr(rescaled, "_DENSE", 0)
    monkeypatch.setattr(rescaled, "_PATIENCE", 1)
    # Among few rows, so many steps would do.
    monkeypatch.setattr(shrinking, "_MOST", 0.0)
    assert solve_hard_margin(gram, y, tol=1e-7).status is Status.iteration_limit


def test_indefinite_kernels_prove_nothing():
    with pytest.raises(ParameterError, match=r"C=inf.*positive semi-definite"):
        solve_hard_margin(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), convex=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_signed_matrix_is_what_it_says(rng, dtype):
    X, y = rng.normal(size=(600, 3)).astype(dtype), np.where(rng.normal(size=600) > 0, 1.0, -1.0)
    gram = Gram(RBF(1.0), X)
    signed, dense = SignedGram(gram, y, y), np.outer(y, y) * gram.dense()
    index, V = np.array([5, 1, 599]), rng.normal(size=(600, 2)).astype(dtype)
    assert signed.dtype == dtype and signed.shape == (600, 600)
    np.testing.assert_array_equal(signed.block(), dense)
    np.testing.assert_array_equal(signed.block(index, slice(3, 9)), dense[index, 3:9])
    np.testing.assert_allclose(signed @ V, dense @ V, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(signed @ V[:, 0], dense @ V[:, 0], rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(signed.restrict(index, index).block(), dense[np.ix_(index, index)])
    np.testing.assert_array_equal(signed.diagonal(), gram.diagonal())
    tile = np.empty((2, 3), dtype)
    signed.restrict(index, None).fill(slice(0, 2), slice(4, 7), tile)
    np.testing.assert_array_equal(tile, dense[index[:2], 4:7])
    assert signed.astype(np.float64).block(index, index).dtype == np.float64
