r"""Regression with a Gaussian process over landmarks: the variational bound of the evidence, with its gradient.

Titsias, "Variational learning of inducing variables in sparse Gaussian processes" (2009). The targets (n, t) are
``y = f + e`` with noise of variances s in the diagonal matrix D. With ``K_mm = L L^T`` for the landmarks,
``F = K_nm L^-T`` and ``Q = F F^T``, the evidence of each target is at least

    log N(y | 0, Q + D) - tr(D^-1 (K - Q)) / 2

With ``S = F^T D^-1 F``, ``A = I + S``, ``b = F^T D^-1 Y`` and ``u = A^-1 b``, the sum over the targets is

    -(t (n log 2 pi + log |D| + log |A| + sum_i k_ii / s_i - tr S) + tr Y^T D^-1 Y - tr b^T u) / 2

and its derivatives, with ``2 M = t (I - A^-1) - u u^T`` and ``R = 2 M S + u b^T``, which is symmetric, are

    by K_nm    D^-1 (2 F M + Y u^T) L^-1
    by K_mm    -L^-T R L^-1 / 2
    by k_ii    -t / (2 s_i)
    by s_i     (t (k_ii - s_i) + |y_i|^2 - 2 F_i M F_i^T - 2 F_i u y_i^T) / (2 s_i^2)

Rows are taken in blocks whose height depends on the number of landmarks alone, so that nothing of n x m is stored, and
sums have a fixed order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine import lapack, memory, threads
from mercer.engine.tiles import spans
from mercer.solvers.gaussian.cross import CrossCovariance, CrossValues
from mercer.solvers.restricted.evidence_blocks import block_rows, evaluation_bytes
from mercer.solvers.restricted.whitening import Whitening

_LOG_TWO_PI = math.log(2.0 * math.pi)
# The sides of the blocks of a matrix of the landmarks that are summed by one task.
_SIDE = 256
_FEWER = "Pass a smaller n_landmarks, or raise the budget with mercer.config(memory=...)."


@dataclass(frozen=True, eq=False)
class InducingRegression:
    """The problem; ``theta`` holds the parameters of the covariance and then, if it is free, the log noise variance.

    Parameters
    ----------
    covariance : CrossCovariance
        Between n rows and m landmarks.
    targets : ndarray of shape (n, t)
    variances : ndarray of shape (n,)
        Known variances of the noise in every row.
    free_noise : bool, default=False
    """

    covariance: CrossCovariance
    targets: Matrix
    variances: Vector
    free_noise: bool = False

    def split(self, theta: Vector) -> tuple[Vector, float]:
        """The parameters of the covariance, and the noise variance."""
        size = self.covariance.size
        return theta[:size], float(np.exp(theta[size])) if self.free_noise else 0.0


@dataclass(frozen=True, eq=False)
class Projected:
    """The system of the landmarks at one ``theta``, in the symbols of the module.

    ``factor`` is that of A, in the upper triangle; ``explained`` the diagonal of Q, and ``function`` that of K.
    """

    values: CrossValues
    white: Whitening
    s: Vector
    function: Vector
    explained: Vector
    S: Matrix
    factor: Matrix
    b: Matrix
    u: Matrix

    @property
    def beta(self) -> Matrix:
        """The coefficients of the landmarks, (m, t): the mean is ``k(x, Z) beta``."""
        return self.white.coefficients(self.u)

    @property
    def log_determinant(self) -> float:
        """Of ``Q + D``."""
        return float(np.log(self.s).sum() + 2.0 * np.log(self.factor.diagonal()).sum())

    @property
    def left(self) -> Vector:
        """The diagonal of ``K - Q``, what the landmarks leave of the variances; rounding below 0 is cut."""
        return np.maximum(self.function - self.explained, 0.0)

    def residual(self) -> float:
        """The residual of ``A u = b``, relative to the length of b."""
        size = float(np.linalg.norm(self.b))
        error = float(np.linalg.norm(self.b - self.u - self.S @ self.u))
        return error / size if size else error


def row_blocks(shape: tuple[int, int]) -> list[slice]:
    """Return the blocks of n rows for m landmarks."""
    return spans(shape[0], block_rows(*shape))


def project(problem: InducingRegression, theta: Vector) -> Projected:
    """Sum over the rows, and solve for the landmarks.

    Raises
    ------
    IndefiniteKernelError, NumericalError
        If the matrix of the landmarks is not positive semi-definite, or the variance of the noise of a row is 0 or so
        small that the system cannot be factored.
    """
    own, noise = problem.split(theta)
    values = problem.covariance.at(own)
    function, of_white = values.diagonals()
    s = problem.variances + noise + of_white
    if not (np.isfinite(s).all() and np.isfinite(function).all() and (s > 0).all()):
        raise NumericalError(
            "the variance of the noise must be positive and finite in every row, and that of the function finite. "
            "Pass noise=..., raise alpha, or scale the columns of X."
        )
    white = Whitening.of(values.landmarks())
    S, b, explained = _sums(problem, values, white, 1.0 / np.sqrt(s))
    factor = S.copy()
    np.einsum("ii->i", factor)[...] += 1.0
    if not np.isfinite(factor).all() or lapack.factor_cholesky(factor):
        raise NumericalError(
            f"the system of the landmarks is singular to working precision: the least variance of the noise is "
            f"{s.min():.3g}, and the largest of the function {function.max():.3g}. Raise alpha or noise."
        )
    u = np.array(b.T, order="C")
    lapack.solve_cholesky(factor, u)
    return Projected(values, white, s, function, explained, S, factor, b, u.T)


def _sums(
    problem: InducingRegression, values: CrossValues, white: Whitening, root: Vector
) -> tuple[Matrix, Matrix, Vector]:
    """``S``, ``b`` and the diagonal of Q; ``root`` is the square root of the precisions of the noise."""
    (n, m), t = problem.covariance.shape, problem.targets.shape[1]
    S, b, explained = np.zeros((m, m)), np.zeros((m, t)), np.empty(n)
    for rows, block in kernel_blocks(problem.covariance.shape, values):
        F = white.features(block)
        explained[rows] = np.einsum("ij,ij->i", F, F)
        F *= root[rows, None]
        lapack.add_square_of_columns(S, F)
        b += lapack.multiply(F.T, root[rows, None] * problem.targets[rows])
    return symmetric(S), b, explained


def kernel_blocks(shape: tuple[int, int], values: CrossValues) -> Iterator[tuple[slice, Matrix]]:
    """Kernel values of blocks of n rows with m landmarks, in one array that may be overwritten."""
    blocks = row_blocks(shape)
    store = np.empty((blocks[0].stop, shape[1]))
    for rows in blocks:
        threads.checkpoint()
        block = store[: rows.stop - rows.start]
        values.block(rows, block)
        yield rows, block


def symmetric(upper: Matrix) -> Matrix:
    """Copy the upper triangle to the lower one, in place."""
    for rows in spans(len(upper), _SIDE):
        square = upper[rows, rows]
        upper[rows, rows] = np.triu(square) + np.triu(square, 1).T
        upper[rows.stop :, rows] = upper[rows, rows.stop :].T
    return upper


def lower_bound(problem: InducingRegression, projected: Projected) -> float:
    """The bound of the evidence of all targets from below."""
    n, t = problem.targets.shape
    quadratic = float((problem.targets**2 / projected.s[:, None]).sum() - np.vdot(projected.b, projected.u))
    lost = float(((projected.function - projected.explained) / projected.s).sum())
    return -0.5 * (t * (n * _LOG_TWO_PI + projected.log_determinant + lost) + quadratic)


class InducingObjective:
    """``theta -> (bound, gradient)`` for a search; may be called from several threads.

    Raises
    ------
    MemoryBudgetError
        When called, if the matrices of the landmarks would not fit the memory budget.
    """

    def __init__(self, problem: InducingRegression, n_jobs: int | None = None) -> None:
        self.problem, self.n_jobs = problem, n_jobs

    @property
    def bytes_each(self) -> int:
        """What an evaluation stores."""
        return evaluation_bytes(*self.problem.covariance.shape)

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        with self.room(), threads.workers(self.n_jobs):
            projected = project(self.problem, theta)
            return lower_bound(self.problem, projected), gradient(self.problem, theta, projected)

    def value(self, theta: Vector) -> float:
        """Without the gradient."""
        with self.room(), threads.workers(self.n_jobs):
            return lower_bound(self.problem, project(self.problem, theta))

    def room(self) -> AbstractContextManager[None]:
        """Reserve what an evaluation stores."""
        m = self.problem.covariance.shape[1]
        return memory.reserve(self.bytes_each, f"the matrices of {m:,} landmarks and blocks of rows", _FEWER)


def gradient(problem: InducingRegression, theta: Vector, projected: Projected) -> Vector:
    """The gradient of the bound, in one more pass over the rows."""
    _, noise = problem.split(theta)
    values, L, s, u = projected.values, projected.white.factor, projected.s, projected.u
    Y = problem.targets
    t = Y.shape[1]
    twice_M = _twice_M(projected, t)
    by_landmarks = lapack.multiply(twice_M, projected.S) + lapack.multiply(u, projected.b.T)
    for _ in range(2):
        # R L^-1, and then (R L^-1)^T L^-1, since R is symmetric.
        by_landmarks = np.ascontiguousarray(by_landmarks.T)
        lapack.solve_triangle(L, by_landmarks, transposed=True)
    slopes = values.pull_landmarks(-0.5 * by_landmarks)
    lapack.solve_triangle(L, twice_M, transposed=True)
    beta, by_s = projected.beta, np.empty(len(s))
    for rows, K in kernel_blocks(problem.covariance.shape, values):
        mean = K @ beta
        weights = lapack.multiply(projected.white.features(K.copy()), twice_M)
        by_s[rows] = np.einsum("ij,ij->i", weights, K) + 2.0 * (mean * Y[rows]).sum(axis=1)
        weights += Y[rows] @ beta.T
        weights /= s[rows, None]
        slopes = slopes + values.pull_block(rows, weights)
    by_s = (t * (projected.function - s) + (Y**2).sum(axis=1) - by_s) / (2.0 * s**2)
    slopes = slopes + values.pull_diagonals(-0.5 * t / s, by_s)
    return np.append(slopes, noise * by_s.sum()) if problem.free_noise else slopes


def _twice_M(projected: Projected, t: int) -> Matrix:
    """``t (I - A^-1) - u u^T``."""
    inverse = projected.factor.copy()
    if lapack.invert_cholesky(inverse):
        raise NumericalError("the system of the landmarks is singular to working precision; raise alpha or noise.")
    M = symmetric(inverse)
    M *= -t
    np.einsum("ii->i", M)[...] += t
    M -= projected.u @ projected.u.T
    return M
