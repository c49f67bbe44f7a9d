r"""The exact leave-one-out error of a kernel system as a function of the kernel's parameters, with its gradient.

With :math:`S = W^{1/2}`, :math:`A = SKS + \mu I`, :math:`P = A^{-1}`, :math:`z = P S t`, N the sum of the weights,
:math:`m_i = \min(1, w_i)` the part of row i that is left out, and the error of row i without it

.. math:: e_i = \frac{s_i z_i}{h_i}, \qquad h_i = \frac{w_i - m_i}{\mu} + m_i P_{ii}, \qquad
          L = \frac1N \sum_i w_i e_i^2

the differentials :math:`dz = -P\, dA\, z` and :math:`dP = -P\, dA\, P` give :math:`dL = \langle G, dA \rangle` with

.. math:: G = \frac2N \Bigl( P \operatorname{diag}(m_i w_i e_i^2 / h_i) P - \tfrac12 (P r z^\top + z r^\top P) \Bigr),
          \qquad r_i = \frac{w_i s_i e_i}{h_i}

summed over the targets. So one factor, one inverse and one pullback give the gradient in all parameters. G is computed
tile by tile from the inverse, and one array of n x n is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._errors import IndefiniteKernelError, NumericalError
from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack, threads
from mercer.engine.tiles import Fill, scratch, spans
from mercer.solvers.gaussian.covariance import Covariance, diagonal_of, upper_tile
from mercer.solvers.gaussian.factor import factor
from mercer.solvers.gaussian.workspace import SquareArrays
from mercer.solvers.linear.leave_one_out import left_out_share

# Errors below this share of the targets are rounding, and no reason to go on.
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class LeftOutProblem:
    """The problem; ``theta`` holds the parameters of the covariance and then, if it is free, the log of the penalty.

    Parameters
    ----------
    covariance : Covariance
        K over n rows.
    targets : ndarray of shape (n, t)
    weights : ndarray of shape (n,)
        Positive; a row of weight w stands for w observations, of which one is left out.
    shift : float, optional
        The penalty; None if it is free.
    """

    covariance: Covariance
    targets: Matrix
    weights: Vector
    shift: float | None = None

    @property
    def n(self) -> int:
        return self.covariance.n

    def split(self, theta: Vector) -> tuple[Vector, float]:
        """The parameters of the covariance, and the penalty."""
        size = self.covariance.size
        return theta[:size], float(np.exp(theta[size])) if self.shift is None else self.shift


@dataclass(frozen=True, eq=False)
class _Solved:
    """What the error and its gradient are computed from; the inverse is in the upper triangle."""

    inverse: Matrix
    z: Matrix
    share: Vector
    errors: Matrix


class LeftOutObjective:
    """``theta -> (value, gradient)``, minus the logarithm of the mean squared error of rows left out.

    The mean is over observations, and a sum over the targets. May be called from several threads.

    Parameters
    ----------
    problem : LeftOutProblem
    n_jobs : int, optional

    Raises
    ------
    MemoryBudgetError
        When called, if the matrix does not fit the memory budget.
    IndefiniteKernelError, NumericalError
        When called, if the matrix with the penalty on its diagonal is not positive definite or not finite.
    """

    def __init__(self, problem: LeftOutProblem, n_jobs: int | None = None) -> None:
        self.problem, self.n_jobs = problem, n_jobs
        self._root = np.sqrt(problem.weights)
        self._total = float(problem.weights.sum())
        mean_square = float((problem.weights @ problem.targets**2).sum()) / self._total
        self._floor = max(_ROUNDING**2 * mean_square, float(np.finfo(np.float64).tiny))
        self._arrays = SquareArrays(problem.n, "the kernel matrix of the rows in float64")

    @property
    def bytes_each(self) -> int:
        """Memory of one evaluation."""
        return 8 * self.problem.n**2

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        with self._arrays.one() as matrix, threads.workers(self.n_jobs):
            own, mu = self.problem.split(theta)
            solved = self._solve(own, mu, matrix)
            error = self._mean_square(solved) + self._floor
            return -float(np.log(error)), -self._gradient(own, mu, solved) / error

    def value(self, theta: Vector) -> float:
        """Without the gradient, which takes about as long as the rest."""
        with self._arrays.one() as matrix, threads.workers(self.n_jobs):
            return -float(np.log(self._mean_square(self._solve(*self.problem.split(theta), matrix)) + self._floor))

    def _solve(self, own: Vector, mu: float, matrix: Matrix) -> _Solved:
        problem, root = self.problem, self._root
        problem.covariance.matrix(own, matrix)
        for rows in spans(problem.n):
            matrix[rows] *= root[rows, None] * root
        diagonal = np.einsum("ii->i", matrix)
        diagonal += mu
        try:
            factored = factor(matrix)
        except IndefiniteKernelError as error:
            raise IndefiniteKernelError(
                f"the kernel matrix plus alpha = {mu:.3g} on its diagonal is not positive definite, so that a search "
                "by leave-one-out cannot start; choose a larger alpha or another kernel."
            ) from error
        z = factored.solve(root[:, None] * problem.targets)
        if lapack.invert_cholesky(factored.array) != 0:
            raise NumericalError("the kernel matrix is singular to working precision; raise alpha.")
        share = left_out_share(problem.weights, factored.array.diagonal(), mu)
        return _Solved(factored.array, z, share, z * (root / share)[:, None])

    def _mean_square(self, solved: _Solved) -> float:
        return float((self.problem.weights @ solved.errors**2).sum()) / self._total

    def _gradient(self, own: Vector, mu: float, solved: _Solved) -> Vector:
        """Of the mean squared error."""
        weights, root = self.problem.weights, self._root
        squares = weights * (solved.errors**2).sum(axis=1) / solved.share
        observations = np.minimum(weights, 1.0)
        weigh = _left_out_weights(
            _both_triangles(solved.inverse),
            observations * squares * (2.0 / self._total),
            solved.errors * (weights * root / solved.share)[:, None] * (2.0 / self._total),
            solved.z,
        )

        def weigh_kernel(rows: slice, columns: slice, out: Array) -> None:
            weigh(rows, columns, out)
            out *= root[rows, None] * root[columns]

        slopes = np.asarray(self.problem.covariance.pullback(own, weigh_kernel), dtype=np.float64)
        if self.problem.shift is not None:
            return slopes
        # Of A by mu, and of the shares where more than one observation is at a row.
        by_mu = float(diagonal_of(weigh, self.problem.n).sum())
        by_mu += 2.0 / self._total * float(squares @ (weights - observations)) / mu**2
        return np.append(slopes, mu * by_mu)


def _both_triangles(inverse: Matrix) -> Matrix:
    """The whole of a symmetric matrix of which the upper triangle is given, in place."""
    for rows in spans(len(inverse)):
        upper_tile(inverse, rows, rows, inverse[rows, rows])
        for columns in spans(rows.start):
            inverse[rows, columns] = inverse[columns, rows].T
    return inverse


def _left_out_weights(P: Matrix, q: Vector, r: Matrix, z: Matrix) -> Fill:
    """``P diag(q) P - (P r z' + z r' P) / 2``, by tiles."""
    solved = P @ r

    def weigh(rows: slice, columns: slice, out: Array) -> None:
        with scratch(P[rows].shape, P.dtype) as scaled:
            np.multiply(P[rows], q, out=scaled)
            # P is symmetric: rows are contiguous.
            np.matmul(scaled, P[columns].T, out=out)
        with scratch(out.shape, out.dtype) as outer:
            for left, right in ((solved, z), (z, solved)):
                np.matmul(left[rows], right[columns].T, out=outer)
                outer *= 0.5
                out -= outer

    return weigh
