"""Evidence and leave-one-out density of Gaussian process regression: values by formula, gradients by differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import mercer
from kernel_table import EXAMPLES
from mercer._errors import DataError, IndefiniteKernelError, MemoryBudgetError
from mercer.estimators.gaussian.covariance import KernelCovariance
from mercer.gram import PrecomputedGram
from mercer.kernels import RBF, Kernel, Linear, Matern, Periodic, RationalQuadratic, White
from mercer.solvers.gaussian.covariance import MatrixCovariance
from mercer.solvers.gaussian.factor import factor
from mercer.solvers.gaussian.regression import GaussianRegression, Objective
from mercer.solvers.gaussian.trend import Trend

UNIT = RBF(1.3)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 3))
Y = np.c_[np.sin(X[:, 0]) + X[:, 1], np.cos(X[:, 1])] + 0.1 * RNG.normal(size=(24, 2))
H = np.c_[np.ones(24), X]
NOISE = 0.05 + 0.1 * RNG.random(24)


def problem(kernel: Kernel = UNIT, rows: Any = X, y: np.ndarray = Y, **more: Any) -> GaussianRegression:
    covariance = KernelCovariance(kernel, rows)
    return GaussianRegression(covariance, y[: covariance.n], NOISE[: covariance.n], **more)


def dense(kernel: Kernel, noise: float = 0.0) -> np.ndarray:
    return kernel(X) + np.diag(NOISE + noise)


def test_the_evidence_is_the_density_of_the_targets() -> None:
    kernel = 1.5 * RBF([1.0, 2.0, 3.0]) + Linear()
    A = dense(kernel, 0.2)
    expected = sum(multivariate_normal(np.zeros(24), A).logpdf(y) for y in Y.T)
    objective = Objective(problem(kernel, free_noise=True))
    theta = np.append(kernel.theta, np.log(0.2))
    assert objective(theta)[0] == pytest.approx(expected, rel=1e-11)
    assert objective.value(theta) == pytest.approx(expected, rel=1e-11)


def test_with_a_mean_function_it_is_the_density_of_contrasts() -> None:
    # Any orthonormal basis of the contrasts, which are free of the trend, has this density; equation 2.45 counts
    # the volume of H in addition (Harville, 1974).
    kernel = 1.5 * RBF(1.0)
    contrasts = np.linalg.svd(H, full_matrices=True)[0][:, 4:]
    A = contrasts.T @ dense(kernel) @ contrasts
    free = sum(multivariate_normal(np.zeros(20), A).logpdf(contrasts.T @ y) for y in Y.T)
    volume = np.linalg.slogdet(H.T @ H)[1]
    value = Objective(problem(kernel, trend=Trend.of(H))).value(kernel.theta)
    assert value == pytest.approx(free - 0.5 * 2 * volume, rel=1e-11)
    shifted = Objective(problem(kernel, y=Y + H @ RNG.normal(size=(4, 2)), trend=Trend.of(H))).value(kernel.theta)
    assert shifted == pytest.approx(value, rel=1e-10)


def test_a_flat_prior_is_the_limit_of_wide_ones() -> None:
    kernel, width = RBF(1.0), 1e6
    wide = sum(multivariate_normal(np.zeros(24), dense(kernel) + width * H @ H.T).logpdf(y) for y in Y.T)
    # Less what the width of the prior costs each of the four coefficients of each target.
    limit = wide + 2 * 0.5 * 4 * np.log(2 * np.pi * width)
    assert Objective(problem(kernel, trend=Trend.of(H))).value(kernel.theta) == pytest.approx(limit, rel=1e-6)


@pytest.mark.parametrize("trend", [None, Trend.of(H)], ids=["zero", "linear"])
def test_leave_one_out_is_the_density_of_each_row_given_the_others(trend: Trend | None) -> None:
    kernel = 1.5 * RBF(1.0)
    A, total = dense(kernel), 0.0
    for i in range(24):
        others = np.arange(24) != i
        inverse = np.linalg.inv(A[np.ix_(others, others)])
        basis, h = (H[others], H[i]) if trend is not None else (np.zeros((23, 0)), np.zeros(0))
        gain = np.linalg.inv(basis.T @ inverse @ basis)
        left = h - basis.T @ inverse @ A[others, i]
        variance = A[i, i] - A[i, others] @ inverse @ A[others, i] + left @ gain @ left
        for y in Y.T:
            b = gain @ basis.T @ inverse @ y[others]
            mean = h @ b + A[i, others] @ inverse @ (y[others] - basis @ b)
            total += multivariate_normal(mean, variance).logpdf(y[i])
    objective = Objective(problem(kernel, trend=trend), "loo")
    assert objective.value(kernel.theta) == pytest.approx(total, rel=1e-10)
    assert objective(kernel.theta)[0] == pytest.approx(total, rel=1e-10)


def check_gradient(objective: Objective, theta: np.ndarray) -> None:
    """Central differences, to 1e-4 of each slope or what rounding leaves of a difference of such values."""
    value, gradient = objective(theta)
    assert gradient.shape == theta.shape
    for i in range(len(theta)):
        step = np.zeros_like(theta)
        # Fourth order, so that the step can be large beside the rounding of the values.
        step[i] = 1e-3
        ends = [objective.value(theta + k * step) for k in (-2, -1, 1, 2)]
        slope = (ends[0] - 8 * ends[1] + 8 * ends[2] - ends[3]) / (12 * step[i])
        # The condition number of these covariances is at most some hundreds, and they have up to 24 rows.
        rounding = 1e4 * np.finfo(float).eps * max(map(abs, ends)) / step[i]
        assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=rounding), (i, value)


@pytest.mark.parametrize("index", range(len(EXAMPLES)), ids=[repr(k)[:70] for k, _ in EXAMPLES])
def test_gradients_of_every_kernel(index: int) -> None:
    kernel, data = EXAMPLES[index]
    # In turn: how a kernel's slopes are summed is the same for both.
    name: Any = ("evidence", "loo")[index % 2]
    # Where a kernel is not positive semi-definite, enough noise makes the covariance so.
    n = len(data[0])
    lowest = np.linalg.eigvalsh(kernel(data[0])).min()
    noise = np.full(n, 0.1 + max(0.0, -2 * lowest))
    y = np.sin(np.arange(2.0 * n)).reshape(n, 2)
    task = GaussianRegression(KernelCovariance(kernel, data[0]), y, noise, free_noise=True)
    check_gradient(Objective(task, name), np.append(kernel.theta, np.log(0.2)))


SCALES = [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3]


@pytest.mark.parametrize(("scale", "name"), [(s, ("evidence", "loo")[i % 2]) for i, s in enumerate(SCALES)])
@pytest.mark.parametrize(
    "make",
    [
        lambda s: RBF(s),
        lambda s: RBF([s, 2 * s, 1.0]),
        lambda s: Matern(s, nu=0.5),
        lambda s: Matern([s, s, 1.0]),
        lambda s: Matern(s, nu=2.5),
        lambda s: RationalQuadratic(s, alpha=0.8),
        lambda s: Periodic(1.0, period=s),
        lambda s: 2.0 * RBF(s) + 0.5 * Matern(2 * s) * Linear() + White(0.3),
    ],
    ids=["RBF", "ARD", "Matern 1/2", "Matern ARD", "Matern 5/2", "rational quadratic", "period", "composite"],
)
def test_gradients_at_length_scales_of_any_size(make: Any, scale: float, name: Any) -> None:
    kernel = make(scale)
    # Of short periods a step of the difference would be many.
    rows = X * scale if isinstance(kernel, Periodic) and scale < 1 else X
    task = problem(kernel, rows, trend=Trend.of(np.ones((24, 1))), free_noise=True)
    check_gradient(Objective(task, name), np.append(kernel.theta, np.log(0.1)))


def test_several_tiles() -> None:
    rows = RNG.normal(size=(600, 2))
    y = np.sin(rows[:, :1])
    kernel = 1.5 * RBF([0.5, 1.0])
    trend = Trend.of(np.c_[np.ones(600), rows])
    task = GaussianRegression(KernelCovariance(kernel, rows), y, np.full(600, 0.1), trend)
    A = kernel(rows) + 0.1 * np.eye(600)
    for name in ("evidence", "loo"):
        objective = Objective(task, name)
        value, gradient = objective(kernel.theta)
        ends = [objective.value(kernel.theta + np.array([0.0, s, 0.0])) for s in (-1e-4, 1e-4)]
        assert gradient[1] == pytest.approx((ends[1] - ends[0]) / 2e-4, rel=1e-5)
    P = np.linalg.inv(A)
    Q = trend.basis
    P -= P @ Q @ np.linalg.inv(Q.T @ P @ Q) @ Q.T @ P
    loo = 0.5 * (np.log(P.diagonal()) - (P @ y)[:, 0] ** 2 / P.diagonal() - np.log(2 * np.pi)).sum()
    assert value == pytest.approx(loo, rel=1e-9)


def test_a_matrix_of_ones_own_has_no_parameters() -> None:
    K = RBF(1.0)(X)
    objective = Objective(GaussianRegression(MatrixCovariance(PrecomputedGram(K)), Y, NOISE, free_noise=True))
    same = Objective(problem(RBF(1.0).fixed(), free_noise=True))
    np.testing.assert_allclose(objective(np.array([-1.0]))[1], same(np.array([-1.0]))[1], rtol=1e-12)
    assert objective(np.array([-1.0]))[0] == same.value(np.array([-1.0]))


def test_memory_is_asked_for_before_it_is_taken() -> None:
    objective = Objective(problem())
    with mercer.config(memory="1KiB"), pytest.raises(MemoryBudgetError, match=r"covariance matrix of the rows \(24 x"):
        objective(np.zeros(1))


def test_a_trend_needs_rows() -> None:
    with pytest.raises(DataError, match="mean function of 4 coefficients goes through all 4 rows"):
        Trend.of(H[:4])
    # A column that says nothing new costs no coefficient.
    assert Trend.of(np.c_[H, H[:, 1] + 2 * H[:, 0]]).basis.shape == (24, 4)


class TestJitter:
    def test_none_where_none_is_needed(self) -> None:
        A = dense(RBF(1.0))
        factorisation = factor(A.copy())
        L = np.triu(factorisation.array).T
        assert factorisation.jitter == 0.0
        np.testing.assert_allclose(L @ L.T, A, atol=1e-14)
        np.testing.assert_allclose(factorisation.product(Y), A @ Y, atol=1e-13)
        np.testing.assert_allclose(A @ factorisation.solve(Y), Y, atol=1e-12)
        assert factorisation.log_determinant == pytest.approx(np.linalg.slogdet(A)[1], rel=1e-12)
        np.testing.assert_array_equal(factorisation.lower(), L)

    @pytest.mark.parametrize("n", [24, 600])
    def test_the_least_that_is_enough(self, n: int) -> None:
        rows = np.linspace(0, 1, n)[:, None]
        K = 4.0 * RBF(1.0)(rows)
        factorisation = factor(K.copy())
        assert 0 < factorisation.jitter <= 1e-9
        L = np.triu(factorisation.array).T
        np.testing.assert_allclose(L @ L.T, K + factorisation.jitter * np.eye(n), atol=1e-12)
        np.testing.assert_allclose(
            factorisation.product(K[:, :6]), (K + factorisation.jitter * np.eye(n)) @ K[:, :6], atol=1e-9
        )

    def test_what_it_cannot_mend(self) -> None:
        A = np.diag([1.0, 1.0, -0.5])
        with pytest.raises(IndefiniteKernelError, match=r"not positive semi-definite.*nearest.*allow_indefinite=True"):
            factor(A.copy())
        factorisation = factor(A.copy(), definite=False)
        assert factorisation.jitter > 0.5
        assert factor(np.zeros((3, 3))).jitter > 0
