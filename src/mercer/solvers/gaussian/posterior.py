r"""Predictions of a Gaussian process given its rows: means, variances, covariances, and rows left out.

With the factor ``A = L L^T``, ``alpha = P y`` and ``v = L^-1 k(X, x)``

    mean      h(x)^T b + k(x, X) alpha
    variance  k(x, x) - |v|^2 + |R^-1 u|^2,   u = h(x) - H^T A^-1 k(X, x),   R R^T = H^T A^-1 H

(Rasmussen and Williams (2006), equations 2.25, 2.26 and 2.41). New rows are taken by tiles: a block of kernel values
becomes v in place, so that the memory does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack, memory, settings, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import TILE, scratch, spans
from mercer.gram.hold import capacity, fits, reserve_square
from mercer.gram.protocol import GramMatrix
from mercer.solvers.gaussian import factor as cholesky
from mercer.solvers.gaussian.single import LEAST_NEW, LEAST_ROWS, PROBES, TOLERANCE, SingleFactor
from mercer.solvers.gaussian.trend import TrendFit

# New rows that are worked on at once; fewer where the memory budget has no room for that many on every thread.
_ROWS = 512
_FEWEST = 16


class LeftOut(NamedTuple):
    """What the other rows predict for each row: the distribution of its target, noise included.

    Attributes
    ----------
    mean : ndarray of shape (n,) or (n, n_targets)
    variance : ndarray of shape (n,) or (n, n_targets)
    log_density : ndarray of shape (n,) or (n, n_targets)
        Of the target that was left out.
    """

    mean: Matrix
    variance: Matrix
    log_density: Matrix


@dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian process given its rows.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        ``L`` in the upper triangle of a C-ordered array, zeros below it: ``L`` transposed.
    alpha : ndarray of shape (n, t)
    trend : TrendFit, optional
    """

    factor: Matrix
    alpha: Matrix
    trend: TrendFit | None

    def mean(self, cross: GramMatrix, H: Matrix | None = None) -> Matrix:
        """Means (m, t) in new rows; ``cross`` is (m, n), and H holds their basis functions."""
        return np.asarray(cross @ self.alpha, dtype=np.float64) + self._trend_values(H)

    def _trend_values(self, H: Matrix | None) -> Matrix | float:
        if self.trend is None or H is None:
            return 0.0
        return (H @ self.trend.transform) @ self.trend.coefficients

    def moments(
        self, cross: GramMatrix, prior: Vector, H: Matrix | None = None, *, n_jobs: int | None = None
    ) -> tuple[Matrix, Vector]:
        """Means (m, t) and variances (m,) in new rows, whose variances before any row was seen are ``prior``.

        Many new rows are done in float32 where a bound says that the variance is right to 2e-4 of it, and in float64
        where not; see :mod:`mercer.solvers.gaussian.single`. Means are in float64. A variance is never negative: where
        rounding makes it so, it is 0.

        Raises
        ------
        MemoryBudgetError
            If not even a few rows fit the memory budget.
        """
        with ExitStack() as stack:
            single = self._in_single(cross, prior, stack, n_jobs)
            mean, variance, sure = self._by_strips(cross, prior, H, single, n_jobs)
        doubtful = np.flatnonzero(~sure)
        if len(doubtful):
            some = None if H is None else H[doubtful]
            left = cross.restrict(doubtful), prior[doubtful], some
            variance[doubtful] = self._by_strips(*left, None, n_jobs)[1]
        return mean + self._trend_values(H), np.maximum(variance, 0.0)

    def _in_single(self, cross: GramMatrix, prior: Vector, stack: ExitStack, n_jobs: int | None) -> SingleFactor | None:
        """The inverse in float32 where it is worth while and precise enough; ``stack`` keeps its memory."""
        (m, n), jobs = cross.shape, settings.resolve_jobs(n_jobs)
        if n < LEAST_ROWS or m < LEAST_NEW * n or not fits(8 * n * (3 * n // 2 + 4 * PROBES + jobs * _ROWS)):
            return None
        stack.enter_context(memory.reserve(4 * n * n, "the inverse of the factor in float32"))
        with memory.reserve(8 * n * (n + 4 * PROBES), "the inverse of the factor"), threads.workers(n_jobs):
            single = SingleFactor.of(self.factor)
            if single is None:
                return None
            rows = np.linspace(0, m - 1, PROBES).astype(np.intp)
            block = np.empty((PROBES, n))
            _fill(cross.restrict(rows), slice(0, PROBES), block)
            return single.measured(self.factor, block, prior[rows])

    def _by_strips(
        self, cross: GramMatrix, prior: Vector, H: Matrix | None, single: SingleFactor | None, n_jobs: int | None
    ) -> tuple[Matrix, Vector, NDArray[np.bool_]]:
        """Means without the trend, variances, and where these are known to be precise."""
        m, n = cross.shape
        each = 8 * n if single is None else 12 * n
        jobs = memory.workers(each * _FEWEST, n_jobs)
        step = max(capacity(each * jobs, _ROWS, parts=2), _FEWEST)
        mean, variance, sure = np.empty((m, self.alpha.shape[1])), np.empty(m), np.ones(m, bool)
        progress, idle = Progress(-(-m // step), "predictive variances"), list[tuple[Matrix, Array]]()

        def strip(rows: slice) -> Callable[[], None]:
            def work() -> None:
                threads.checkpoint()
                # A list hands out its entries to one thread at a time.
                store = (
                    idle.pop()
                    if idle
                    else (np.empty((step, n)), np.empty((0 if single is None else step, n), np.float32))
                )
                block = store[0][: rows.stop - rows.start]
                _fill(cross, rows, block)
                mean[rows] = block @ self.alpha
                variance[rows] = prior[rows] + self._trend_variance(block, None if H is None else H[rows])
                if single is None:
                    lapack.solve_triangle(self.factor, block)
                    variance[rows] -= np.einsum("ij,ij->i", block, block)
                else:
                    explained, bound = single.explained(block, store[1][: len(block)])
                    variance[rows] -= explained
                    sure[rows] = bound <= TOLERANCE * variance[rows]
                idle.append(store)
                progress.advance()

            return work

        with memory.reserve(each * step * min(jobs, -(-m // step)), f"kernel values of {step} new rows at a time"):
            threads.run([strip(rows) for rows in spans(m, step)], jobs)
        return mean, variance, sure

    def _trend_variance(self, block: Matrix, H: Matrix | None) -> Vector | float:
        """What the coefficients of the mean function add."""
        if self.trend is None or H is None:
            return 0.0
        scaled = self._scaled_rest(block, H)
        return np.einsum("ij,ij->j", scaled, scaled)

    def _scaled_rest(self, block: Matrix, H: Matrix) -> Matrix:
        """``R^-1 u`` for every new row, (r, m)."""
        assert self.trend is not None
        rest = H @ self.trend.transform - block @ self.trend.solved
        return np.asarray(scipy.linalg.solve_triangular(self.trend.lower, rest.T, lower=True))

    def covariance(self, cross: GramMatrix, prior: Matrix, H: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """Means (m, t) and covariances (m, m) of new rows; ``prior`` is overwritten by the latter."""
        m, n = cross.shape
        with memory.reserve(8 * m * n, f"kernel values of {m} new rows with {n} others"):
            block = np.empty((m, n))
            for rows in spans(m):
                _fill(cross, rows, block[rows])
            mean = block @ self.alpha + self._trend_values(H)
            extra = None if self.trend is None or H is None else self._scaled_rest(block, H)
            lapack.solve_triangle(self.factor, block)
            for rows in spans(m):
                prior[rows] -= block[rows] @ block.T
                if extra is not None:
                    prior[rows] += extra[:, rows].T @ extra
        diagonal = np.einsum("ii->i", prior)
        np.maximum(diagonal, 0.0, out=diagonal)
        return mean, prior

    def leave_one_out(self, targets: Matrix) -> LeftOut:
        """Each row by all others, with the same hyper-parameters: equations 5.10 to 5.12.

        Raises
        ------
        NumericalError
            If a row alone determines a coefficient of the mean function, so that the others do not determine it.
        """
        n = len(self.alpha)
        with ExitStack() as stack:
            reserve_square(stack, n, 8, "the inverse of the factor")
            inverse = self.factor.copy()
            lapack.invert_triangle(inverse)
            precision = np.einsum("ij,ij->i", inverse, inverse)
        if self.trend is not None:
            size = precision.copy()
            precision -= np.einsum("ij,ij->i", self.trend.reduced, self.trend.reduced)
            lost = np.flatnonzero(precision <= n * np.finfo(np.float64).eps * size)
            if len(lost):
                raise NumericalError(
                    f"without row {lost[0]} a coefficient of the mean function is not determined, so the other rows "
                    'do not determine it; choose mean="constant" or mean="zero".'
                )
        variance = np.broadcast_to(1.0 / precision[:, None], self.alpha.shape)
        error = self.alpha * variance
        density = -0.5 * (error**2 / variance + np.log(2.0 * np.pi * variance))
        return LeftOut(targets - error, variance, density)


def _fill(cross: GramMatrix, rows: slice, out: Matrix) -> None:
    """Kernel values of some new rows with all others."""
    for columns in spans(out.shape[1]):
        for part in spans(len(out)):
            size = part.stop - part.start, columns.stop - columns.start
            with scratch(size, np.dtype(np.float64)) as tile:
                cross.fill(slice(rows.start + part.start, rows.start + part.stop), columns, tile)
                out[part, columns] = tile


def extend(factor: Matrix, cross: Matrix, corner: Matrix, *, definite: bool = True) -> tuple[Matrix, float]:
    """The factor with k more rows, without another factorisation: ``n^2 k + n k^2`` operations.

    Parameters
    ----------
    factor : ndarray of shape (n, n)
        As in :class:`Posterior`.
    cross : ndarray of shape (k, n), C-ordered
        Kernel values of the new rows with the others; overwritten.
    corner : ndarray of shape (k, k), C-ordered
        The covariance of the new targets; overwritten.
    definite : bool, default=True
        Whether the whole is positive semi-definite but for rounding.

    Returns
    -------
    factor : ndarray of shape (n + k, n + k)
    jitter : float
        What was added to the diagonal of the corner.

    Raises
    ------
    IndefiniteKernelError
        If what the others leave of the corner is not positive definite, and no jitter makes it so.

    Examples
    --------
    >>> whole, jitter = extend(np.array([[2.0]]), np.array([[2.0]]), np.array([[5.0]]))
    >>> whole.tolist(), jitter
    ([[2.0, 1.0], [0.0, 2.0]], 0.0)
    """
    n, k = len(factor), len(corner)
    size = float(np.abs(corner.diagonal()).mean())
    lapack.solve_triangle(factor, cross)
    corner -= lapack.multiply(cross, cross.T)
    rest = cholesky.factor(corner, definite=definite, size=size)
    with ExitStack() as stack:
        reserve_square(stack, n + k, 8, "the factor with more rows")
        whole = np.zeros((n + k, n + k))
        for rows in spans(n, TILE):
            whole[rows, :n] = factor[rows]
        whole[:n, n:] = cross.T
        whole[n:, n:] = rest.lower().T
    return whole, rest.jitter
