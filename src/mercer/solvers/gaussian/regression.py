r"""Regression with a Gaussian process: what is maximised over its hyper-parameters, with the gradient.

The targets are ``y = m(x) + f(x) + e`` with f of covariance K(theta), e of variance ``variances_i`` (known) plus, if it
is free, a common noise variance. With A the covariance of y, P as in :mod:`mercer.solvers.gaussian.trend` and
``alpha = P y``, for each target

    evidence       -(y^T alpha + log |A| + log |H^T A^-1 H| + (n - r) log 2 pi) / 2
    leave-one-out  sum_i (log P_ii - alpha_i^2 / P_ii - log 2 pi) / 2

(Rasmussen and Williams (2006), equations 2.45 and 5.10 to 5.12), and sums over several targets.

The derivative by any parameter is ``sum_ij W_ij dA_ij`` with symmetric weights

    evidence       (alpha alpha^T - P) / 2
    leave-one-out  (alpha (P b)^T + (P b) alpha^T) / 2 - P diag(c) P,  b = alpha / P_ii,  c = (1 / P_ii + b^2) / 2

which are made tile by tile from the inverse, so that a single n x n array is stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack, threads
from mercer.engine.tiles import Fill, scratch, spans
from mercer.solvers.gaussian.covariance import Covariance, diagonal_of, upper_tile
from mercer.solvers.gaussian.factor import Factor, factor
from mercer.solvers.gaussian.trend import Trend, TrendFit, solve
from mercer.solvers.gaussian.workspace import SquareArrays

_LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class GaussianRegression:
    """The problem; ``theta`` holds the parameters of the covariance and then, if it is free, the log noise variance.

    Parameters
    ----------
    covariance : Covariance
        Over n rows.
    targets : ndarray of shape (n, t)
    variances : ndarray of shape (n,)
        Known variances of the noise in every row.
    trend : Trend, optional
        The mean function; zero if there is none.
    free_noise : bool, default=False
    definite : bool, default=True
        Whether the covariance is positive semi-definite.
    """

    covariance: Covariance
    targets: Matrix
    variances: Vector
    trend: Trend | None = None
    free_noise: bool = False
    definite: bool = True

    @property
    def n(self) -> int:
        return self.covariance.n

    def split(self, theta: Vector) -> tuple[Vector, float]:
        """The parameters of the covariance, and the noise variance."""
        size = self.covariance.size
        return theta[:size], float(np.exp(theta[size])) if self.free_noise else 0.0


@dataclass(frozen=True, eq=False)
class Solved:
    """The system at one ``theta``: the factor of A, ``alpha`` (n, t), and the fit of the trend."""

    factor: Factor
    alpha: Matrix
    trend: TrendFit | None


def solve_at(problem: GaussianRegression, theta: Vector, matrix: Matrix) -> Solved:
    """Factor the covariance of the targets in ``matrix``, which is overwritten, and solve.

    Raises
    ------
    IndefiniteKernelError, NumericalError
        If the covariance is not positive definite by more than jitter can correct, or has NaN or infinite entries.
    """
    own, noise = problem.split(theta)
    problem.covariance.matrix(own, matrix)
    diagonal = np.einsum("ii->i", matrix)
    diagonal += problem.variances + noise
    if not np.isfinite(diagonal).all():
        raise NumericalError("the variance of a row is not finite; scale the columns of X, or lower the bounds.")
    factored = factor(matrix, definite=problem.definite)
    return Solved(factored, *solve(factored, problem.targets, problem.trend))


class Objective:
    """``theta -> (value, gradient)`` for a search; may be called from several threads.

    Raises
    ------
    MemoryBudgetError
        When called, if the matrix would not fit the memory budget.
    """

    def __init__(self, problem: GaussianRegression, name: str = "evidence", n_jobs: int | None = None) -> None:
        self.problem, self.name, self.n_jobs = problem, name, n_jobs
        self._arrays = SquareArrays(problem.n, "the covariance matrix of the rows")

    @property
    def bytes_each(self) -> int:
        """What an evaluation holds."""
        return 8 * self.problem.n**2

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        with self._arrays.one() as matrix, threads.workers(self.n_jobs):
            solved = solve_at(self.problem, theta, matrix)
            if self.name == "evidence":
                value = evidence(self.problem, solved)
                return value, self._gradient(theta, _evidence_weights(solved))
            value, weigh = _leave_one_out(solved)
            return value, self._gradient(theta, weigh)

    def value(self, theta: Vector) -> float:
        """Without the gradient, which takes twice as long as the rest."""
        with self._arrays.one() as matrix, threads.workers(self.n_jobs):
            solved = solve_at(self.problem, theta, matrix)
            return evidence(self.problem, solved) if self.name == "evidence" else _leave_one_out(solved)[0]

    def _gradient(self, theta: Vector, weigh: Fill) -> Vector:
        own, noise = self.problem.split(theta)
        slopes = np.asarray(self.problem.covariance.pullback(own, weigh), dtype=np.float64)
        if not self.problem.free_noise:
            return slopes
        return np.append(slopes, noise * diagonal_of(weigh, self.problem.n).sum())


def evidence(problem: GaussianRegression, solved: Solved) -> float:
    """The log marginal likelihood of all targets."""
    n, t = problem.targets.shape
    quadratic = float(np.vdot(problem.targets, solved.alpha))
    volume, rank = solved.factor.log_determinant, 0
    if problem.trend is not None and solved.trend is not None:
        volume += solved.trend.log_determinant + 2.0 * problem.trend.log_volume
        rank = problem.trend.basis.shape[1]
    return -0.5 * (quadratic + t * (volume + (n - rank) * _LOG_TWO_PI))


def _invert(solved: Solved) -> Matrix:
    """``A^-1`` in the upper triangle of the factor's array."""
    if lapack.invert_cholesky(solved.factor.array) != 0:
        raise NumericalError("the covariance matrix is singular to working precision; use a larger alpha.")
    return solved.factor.array


def _evidence_weights(solved: Solved) -> Fill:
    t = solved.alpha.shape[1]
    sides = [solved.alpha] if solved.trend is None else [solved.alpha, math.sqrt(t) * solved.trend.reduced]
    outer = np.concatenate(sides, axis=1) * math.sqrt(0.5)
    inverse = _invert(solved)

    def weigh(rows: slice, columns: slice, out: Array) -> None:
        upper_tile(inverse, rows, columns, out)
        out *= -0.5 * t
        with scratch(out.shape, out.dtype) as product:
            # BLAS takes longer for products of two vectors.
            multiply = np.multiply if outer.shape[1] == 1 else np.matmul
            multiply(outer[rows], outer[columns].T, out=product)
            out += product

    return weigh


def projected_inverse(solved: Solved) -> Matrix:
    """``P``, both triangles, in the place of the factor."""
    P = _invert(solved)
    reduced = None if solved.trend is None else solved.trend.reduced
    for rows in spans(len(P)):
        for columns in spans(len(P)):
            if columns.start < rows.start:
                continue
            tile = np.empty((rows.stop - rows.start, columns.stop - columns.start))
            upper_tile(P, rows, columns, tile)
            if reduced is not None:
                tile -= reduced[rows] @ reduced[columns].T
            P[rows, columns] = tile
            P[columns, rows] = tile.T
    return P


def _leave_one_out(solved: Solved) -> tuple[float, Fill]:
    P = projected_inverse(solved)
    precision, alpha = P.diagonal().copy()[:, None], solved.alpha
    if not (precision > 0).all():
        raise NumericalError("a row is not determined by the others; use a larger alpha or another mean function.")
    value = 0.5 * float((np.log(precision) - alpha**2 / precision - _LOG_TWO_PI).sum())
    b = alpha / precision
    c = 0.5 * (1.0 / precision + b**2).sum(axis=1)
    solved_b = P @ b

    def weigh(rows: slice, columns: slice, out: Array) -> None:
        np.matmul(P[rows] * c, P[:, columns], out=out)
        out *= -1.0
        out += 0.5 * (alpha[rows] @ solved_b[columns].T + solved_b[rows] @ alpha[columns].T)

    return value, weigh
