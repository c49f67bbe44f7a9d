r"""Newton's method for kernel regression on ordered classes, over the expansion and the cut-points at once.

With latent values :math:`g = K\alpha`, slopes q and curvatures W of the losses, their cross derivatives B and the
curvature D of the cut-points, a step solves

.. math:: (I + W K)\, \delta\alpha + B\, \delta t = -(\alpha + q), \qquad B^\top K\, \delta\alpha + D\, \delta t = -h

through one Cholesky factor of :math:`I + W^{1/2} K W^{1/2}`, whose eigenvalues are 1 and above, and the Schur
complement of the cut-points. A step is shortened so that cut-points stay in their order; the loss of a class grows
without bound as its interval closes, so that the order needs no constraint and no other parametrisation. (Logarithms of
the gaps would make the problem unconstrained and no longer convex.)

The dual objective at :math:`\beta = -q`, with the cut-points best for g, differs from the primal one by
:math:`\tfrac12 (\alpha - \beta)^\top K (\alpha - \beta)` exactly: that is the gap.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Vector
from mercer.engine import lapack, memory, threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.gram.hold import reserve_square, whole_matrix
from mercer.solvers.algebra.line_search import halved_step
from mercer.solvers.risk.ordinal_problem import OrdinalProblem, QuadraticLoss, best_cuts, solve_small, widest_step
from mercer.solvers.solution import Certificate, Solution, Status

_ARMIJO = 1e-4
# What is added to the diagonal, as shares of its largest entry, where rounding has made the matrix indefinite.
_JITTER = (0.0, 1e-15, 1e-13, 1e-11, 1e-9)
# After this many steps without a smaller violation, rounding has stopped the progress.
_PATIENCE = 3
_ROWS = 256


@dataclass(frozen=True, eq=False)
class OrdinalAnswer:
    """The solution.

    Parameters
    ----------
    coefficients : ndarray of shape (m,)
        The expansion alpha over the points.
    latent : ndarray of shape (m,)
        ``K alpha``.
    cuts : ndarray of shape (k - 1,)
    row_slopes : ndarray of shape (n,)
        ``-w_i d psi_i / d g_i``: what each row adds to the coefficient of its point, to the tolerance.
    """

    coefficients: Vector
    latent: Vector
    cuts: Vector
    row_slopes: Vector

    def row_coefficients(self, problem: OrdinalProblem) -> Vector:
        """The expansion over the rows (n,): the coefficient of a point is shared among its rows, and adds up to it."""
        left = self.coefficients - problem.at_points(self.row_slopes)
        total = problem.at_points(problem.weight)
        return self.row_slopes + problem.at_rows(left / total) * problem.weight


@dataclass(frozen=True, eq=False)
class OrdinalStart:
    """Where a solve begins: coefficients of the points, and cut-points in their order."""

    coefficients: Vector
    cuts: Vector


@dataclass(frozen=True)
class OrdinalSolver:
    """Solve the problem.

    Parameters
    ----------
    tol : float, default=1e-8
        How far, in units of 1 + the largest latent value, a latent value may be from where the weight of its row says
        it is, and a cut-point from the best one.
    max_iter : int, default=100
        Newton steps.
    n_jobs : int, optional
        With 1 everything runs on one thread; else factorisations run on as many as BLAS has.
    verbose : bool, default=False
        Show progress.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.risk.cumulative_links import LINKS
    >>> K = PrecomputedGram(np.outer([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]))
    >>> solution = OrdinalSolver().solve(OrdinalProblem(np.array([0, 1, 2]), np.ones(3), LINKS["logit"], gram=K))
    >>> solution.value.cuts.round(4).tolist(), solution.certificate.gap < 1e-12
    ([-0.9044, 0.9044], True)
    """

    tol: float = 1e-8
    max_iter: int = 100
    n_jobs: int | None = None
    verbose: bool = False

    def solve(
        self, problem: OrdinalProblem, start: OrdinalStart | None = None
    ) -> Solution[OrdinalAnswer, OrdinalStart]:
        """Solve ``problem``.

        Parameters
        ----------
        problem : OrdinalProblem
        start : OrdinalStart, optional
            Else coefficients are zero and cut-points by the shares of the classes.

        Returns
        -------
        Solution
            ``value`` is an OrdinalAnswer, ``state`` the start of the next solve.

        Raises
        ------
        MemoryBudgetError
            If two matrices (with an indefinite one three) do not fit the memory budget.
        NumericalError
            If K has NaN or infinite entries.
        """
        start_time = time.perf_counter()
        with memory.track() as account, threads.workers(self.n_jobs), held_matrix(problem) as (K, sentence):
            path = NewtonPath(problem, K, start)
            status = path.run(self.tol, Progress(self.max_iter, "Newton steps", self.verbose), self.max_iter)
            return path.finish(status, time.perf_counter() - start_time, account.peak, sentence)


@contextmanager
def held_matrix(problem: OrdinalProblem) -> Iterator[tuple[Vector, str]]:
    """K in float64, with memory reserved for it and for a factor, and the sentence for the certificate."""
    copies = 2 if problem.convex else 3
    with ExitStack() as stack:
        sentence = reserve_square(stack, problem.points, 8 * copies, "the kernel matrix and a factor")
        K = np.asarray(whole_matrix(problem.gram, np.float64), dtype=np.float64)
        if not np.isfinite(K.sum()):
            raise NumericalError(
                "the kernel matrix has NaN or infinite entries; scale the columns of X "
                "(sklearn.preprocessing.StandardScaler) or choose a kernel with smaller values."
            )
        if problem.centred:
            means = K.mean(axis=0)
            K -= means
            K -= (means - means.mean())[:, None]
        yield K, sentence


@dataclass(eq=False)
class _Direction:
    """A Newton step, how far the point is from optimal, and the slope of the merit along the step."""

    coefficients: Vector
    latent: Vector
    cuts: Vector
    slope: float


class NewtonPath:
    """The iterate: coefficients, latent values and cut-points, with the steps that led there."""

    def __init__(
        self,
        problem: OrdinalProblem,
        K: Vector,
        start: OrdinalStart | None = None,
        work: Vector | None = None,
        fixed_cuts: Vector | None = None,
    ) -> None:
        self.problem, self.K = problem, K
        self.coefficients = np.zeros(problem.points)
        self.latent = np.zeros(problem.points)
        self._fixed = fixed_cuts is not None
        self.cuts = problem.shares_as_cuts() if fixed_cuts is None else fixed_cuts
        self.expansion: QuadraticLoss
        if not self._begin_at(start):
            self.expansion = self._expand(self.latent, self.cuts)
        self.steps = 0
        self._work = work

    def _begin_at(self, start: OrdinalStart | None) -> bool:
        """Begin there, if that is better than coefficients of zero.

        Far away from the answer the losses are straight lines, which tell Newton's method nothing.
        """
        if start is not None and len(start.cuts) == self.problem.classes - 1 and (np.diff(start.cuts) > 0).all():
            latent = self.K @ start.coefficients
            expansion = self._expand(latent, start.cuts)
            penalty = 0.5 * float(start.coefficients @ latent)
            if expansion.loss + penalty < self.problem.loss(self.latent, self.cuts):
                self.coefficients, self.latent, self.cuts = start.coefficients.copy(), latent, start.cuts.copy()
                self.expansion = expansion
                return True
        return False

    def run(self, tol: float, progress: Progress, max_iter: int) -> Status:
        """Steps until the violation is below ``tol`` or no longer shrinks."""
        least, idle = np.inf, 0
        merit = self._merit(self.coefficients, self.latent, self.expansion)
        while True:
            expansion = self.expansion
            residual = -(self.coefficients + expansion.slope)
            pulled = self.K @ np.column_stack([residual, expansion.cross])
            violation = self._violation(pulled[:, 0], expansion)
            if violation <= tol:
                return Status.converged if self.problem.convex else Status.stationary
            record("Newton steps", self.steps, {"primal": merit, "violation": violation})
            idle = 0 if violation < 0.5 * least else idle + 1
            least = min(least, violation)
            if self.steps >= max_iter:
                return Status.iteration_limit
            direction = self._direction(residual, pulled, expansion)
            value = self._search(direction, merit)
            # A merit that rounding alone moves says nothing; then the violation has to shrink.
            if value is None or (idle >= _PATIENCE and -direction.slope <= 1e-13 * abs(merit)):
                return Status.stalled
            merit = value
            self.steps += 1
            progress.advance()

    def finish(
        self, status: Status, seconds: float, peak_bytes: int, storage: str = ""
    ) -> Solution[OrdinalAnswer, OrdinalStart]:
        """The answer with the best cut-points for its latent values, if these are free, and its certificate."""
        if self.problem.convex and not self._fixed:
            self.cuts, self.expansion = best_cuts(self.problem, self.latent, self.cuts)
        expansion = self.expansion
        off = self.coefficients + expansion.slope
        pulled = self.K @ off
        primal = expansion.loss + 0.5 * float(self.coefficients @ self.latent)
        gap = max(0.5 * float(off @ pulled), 0.0)
        violations = {"stationarity": float(np.abs(pulled).max())}
        if not self._fixed:
            # The cut-points are best to rounding; what that leaves is counted.
            gap += abs(float(self.cuts @ expansion.cut_slope))
            violations["cut-points"] = float(np.abs(expansion.cut_step()).max())
        certificate = Certificate(
            primal,
            primal - gap,
            max(violations.values()),
            self.steps,
            seconds,
            peak_bytes,
            status,
            violations,
            self.problem.convex,
            storage,
        )
        answer = OrdinalAnswer(self.coefficients, self.latent, self.cuts, -expansion.by_row)
        return Solution(answer, status, certificate, OrdinalStart(self.coefficients, self.cuts))

    def log_determinant(self) -> float:
        """``log |I + W^{1/2} K W^{1/2}|``."""
        factor = self.factor(np.sqrt(self.expansion.curvature))
        return 2.0 * float(np.log(np.einsum("ii->i", factor)).sum())

    def _expand(self, latent: Vector, cuts: Vector) -> QuadraticLoss:
        return self.problem.expand(latent, cuts, self._fixed)

    def _violation(self, pulled: Vector, expansion: QuadraticLoss) -> float:
        scale = 1.0 + float(np.abs(self.latent).max())
        of_cuts = 0.0 if self._fixed else float(np.abs(expansion.cut_step()).max())
        return max(float(np.abs(pulled).max()), of_cuts) / scale

    def _merit(self, coefficients: Vector, latent: Vector, expansion: QuadraticLoss) -> float:
        """The objective; where it is not convex, half the square of the residual of the optimality conditions."""
        if self.problem.convex:
            return expansion.loss + 0.5 * float(coefficients @ latent)
        off = coefficients + expansion.slope
        value = 0.5 * float(off @ off + expansion.cut_slope @ expansion.cut_slope)
        return value if np.isfinite(value) else np.inf

    def _direction(self, residual: Vector, pulled: Vector, expansion: QuadraticLoss) -> _Direction:
        if not self.problem.convex:
            return self._joint_direction(residual, expansion)
        root = np.sqrt(expansion.curvature)
        factor = self.factor(root)
        solved = np.ascontiguousarray((root[:, None] * pulled).T)
        lapack.solve_cholesky(factor, solved)
        if self._fixed:
            coefficients = residual - root * solved[0]
            latent = self.K @ coefficients
            return _Direction(coefficients, latent, np.zeros_like(self.cuts), -float(residual @ latent))
        # (I + W K)^-1 applied to the residual and to the cross derivatives.
        columns = np.column_stack([residual, expansion.cross]) - root[:, None] * solved.T
        schur = expansion.cut_curvature - pulled[:, 1:].T @ columns[:, 1:]
        cuts = solve_small(schur, -expansion.cut_slope - pulled[:, 1:].T @ columns[:, 0])
        coefficients = columns[:, 0] - columns[:, 1:] @ cuts
        latent = self.K @ coefficients
        return _Direction(coefficients, latent, cuts, float(-residual @ latent + expansion.cut_slope @ cuts))

    def factor(self, root: Vector) -> Vector:
        """The factor of ``I + root K root``, as :mod:`mercer.engine.lapack` has it, in one array kept for it."""
        if self._work is None:
            self._work = np.empty_like(self.K)
        work = self._work
        for extra in _JITTER:
            for begin in range(0, len(work), _ROWS):
                end = begin + _ROWS
                # The upper triangle alone is read; rows of it stay in the cache between the two products.
                np.multiply(self.K[begin:end, begin:], root[begin:end, None], out=work[begin:end, begin:])
                work[begin:end, begin:] *= root[begin:]
            diagonal = np.einsum("ii->i", work)
            diagonal += 1.0 + extra * float(diagonal.max())
            if lapack.factor_cholesky(work) == 0:
                return work
        raise NumericalError(
            "the kernel matrix is so far from positive semi-definite that no Newton step exists; repair it with "
            "mercer.validity.nearest(K), or pass allow_indefinite=True to get a stationary point without a guarantee."
        )

    def _joint_direction(self, residual: Vector, expansion: QuadraticLoss) -> _Direction:
        """By a factorisation that needs no definite matrix."""
        m, k = expansion.cross.shape
        joint = np.empty((m + k, m + k))
        for rows in (slice(begin, begin + _ROWS) for begin in range(0, m, _ROWS)):
            np.multiply(self.K[rows], expansion.curvature[rows, None], out=joint[:m][rows, :m])
        np.einsum("ii->i", joint)[:m] += 1.0
        joint[:m, m:] = expansion.cross
        joint[m:, :m] = expansion.cross.T @ self.K
        joint[m:, m:] = expansion.cut_curvature
        right = np.concatenate([residual, -expansion.cut_slope])
        step = threads.abandonable(lambda: np.linalg.solve(joint, right))
        slope = -float(residual @ residual + expansion.cut_slope @ expansion.cut_slope)
        return _Direction(step[:m], self.K @ step[:m], step[m:], slope)

    def _search(self, direction: _Direction, merit: float) -> float | None:
        """Move along the direction by the first of ever shorter steps that lowers the merit enough, if one does.

        Nearly always the first one does, so that each is expanded at once.
        """
        slack = 1e-14 * abs(merit)

        def attempt(step: float) -> float | None:
            coefficients = self.coefficients + step * direction.coefficients
            latent = self.latent + step * direction.latent
            cuts = self.cuts + step * direction.cuts
            expansion = self._expand(latent, cuts)
            value = self._merit(coefficients, latent, expansion)
            if not value <= merit + _ARMIJO * step * direction.slope + slack:
                return None
            self.coefficients, self.latent, self.cuts, self.expansion = coefficients, latent, cuts, expansion
            return value

        return halved_step(attempt, 1.0 if self._fixed else widest_step(self.cuts, direction.cuts))
