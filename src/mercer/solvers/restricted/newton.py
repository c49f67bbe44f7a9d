"""Any convex loss over landmarks: Newton's method, whose systems are solved by conjugate gradients, pass by pass."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer._errors import DataError, NumericalError, ParameterError
from mercer._types import Matrix, Vector
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.engine.settings import current
from mercer.engine.trace import record
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients
from mercer.solvers.restricted import precondition
from mercer.solvers.restricted.criteria import Criterion, Envelope
from mercer.solvers.restricted.passes import Part, Passes, RevisableRows, RowsWithState, in_single
from mercer.solvers.restricted.whitening import Whitening, jitter_share
from mercer.solvers.solution import Certificate, Solution, Status

# A system is solved to this share of its right side, and by at most this many passes.
_FORCING, _STEPS = 0.03, 40
# The preconditioner is made anew when its last system took more steps than this.
_REFRESH = 3
# A step must gain this share of what its slope promises.
_ARMIJO = 1e-4
# Shorter steps that one pass tries.
_SHORTER = np.concatenate([np.arange(19, 1, -1) / 20, 0.1 * 0.4 ** np.arange(20)])
# Differences of this share of the objective are rounding.
_ROUNDING = 1e-12
# The next envelope is due when the gradient contributes less than this share of the gap.
_SHARE = 0.5
# This many envelopes may gain nothing.
_STALLS = 8
# The offset has no penalty; where no row has a curvature this keeps the system regular.
_OFFSET = 1e-8


@dataclass(frozen=True, eq=False)
class RestrictedRisk:
    r"""A convex loss of functions over landmarks, with a penalty of their norm.

    .. math:: \min_{\beta, b} \sum_i w_i \ell(y_i, f(x_i)) + \tfrac{\alpha}{2} \beta^\top K_{mm} \beta,
              \qquad f(x) = \sum_j \beta_j k(z_j, x) + b

    Parameters
    ----------
    rows : Passes
        n rows; their targets are what the criterion takes.
    white : Whitening
        Of the m landmarks.
    criterion : Criterion
        Of k predictions.
    alpha : float
        Above 0.
    outputs : int
        k.
    intercept : bool
        Whether there is an offset b for each output.
    """

    rows: Passes
    white: Whitening
    criterion: Criterion
    alpha: float
    outputs: int = 1
    intercept: bool = True

    def __post_init__(self) -> None:
        m = self.rows.shape[1]
        if self.white.factor.shape != (m, m):
            raise DataError(f"{m} landmarks need a factor of this size, and it has {self.white.factor.shape}.")
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise ParameterError(
                f"an approximation by landmarks needs alpha > 0 and finite, but alpha is {self.alpha}."
            )

    @property
    def penalties(self) -> Vector:
        """That of each coordinate, (m + 1, 1) with an offset, (m, 1) without."""
        own = np.full((self.rows.shape[1], 1), self.alpha)
        return np.vstack([own, np.zeros((1, 1))]) if self.intercept else own

    def split(self, gamma: Matrix) -> tuple[Matrix, Vector]:
        """Coordinates of functions (m, k), and offsets (k,)."""
        m = self.rows.shape[1]
        return gamma[:m], gamma[m] if self.intercept else np.zeros(gamma.shape[1])

    def join(self, products: Matrix, sums: Vector) -> Matrix:
        """A gradient by coordinates, from sums of features times U and the sums of U."""
        return np.vstack([products, sums[None]]) if self.intercept else products


@dataclass(frozen=True, eq=False)
class _Point:
    """Coordinates with the objectives, the gradient of the smooth one, and the gap."""

    gamma: Matrix
    primal: float
    smooth: float
    gradient: Matrix
    gap: float
    off_balance: float
    passes: int

    def figures(self) -> dict[str, float]:
        """What traces keep."""
        return {"primal": self.primal, "dual": self.primal - self.gap}

    @classmethod
    def at(
        cls, problem: RestrictedRisk, gamma: Matrix, passes: int, criterion: Envelope | None = None
    ) -> tuple[_Point, Passes]:
        """One pass in float64, which first revises the targets of the rows by a criterion. Returns the rows, too."""
        functions, offsets = problem.split(gamma)
        k = gamma.shape[1]
        # Visitors go to other machines, and the problem does not.
        current = problem.criterion

        def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            terms = current.slopes(part.targets, F + offsets)
            weights = part.weights[:, 0]
            if part.marks is not None and isinstance(current, Envelope):
                part.marks[...] = current.curvature(part.targets, F + offsets) > 0
            parts, others = (each.reshape(len(F), -1) for each in current.parts(part.targets, terms))
            U = part.weights * parts
            return U, np.concatenate(
                [[weights @ terms.values, weights @ terms.smooth], U.sum(axis=0), weights @ others]
            )

        V, widths, rows = problem.white.coefficients(functions), (2 * k, 2 + (2 + current.terms) * k), problem.rows
        if criterion is not None and isinstance(rows, RevisableRows):
            before = criterion
            rows, products, sums = rows.revised(
                V, lambda part, F: before.revised(part.targets, F + offsets), visit, widths
            )
        else:
            products, sums = rows.sweep(V, visit, widths)
        of_rows = sums[2:].reshape(-1, k)
        multipliers = _Multipliers(problem.white.pull(products).reshape(-1, 2, k), of_rows[:2], of_rows[2:])
        length, norm = np.array([(functions**2).sum()]), np.array([problem.white.squared_norms(V).sum()])
        primal = float(sums[0]) + problem.alpha / 2 * float(norm[0])
        balance = multipliers.sums.sum(axis=0)
        point = cls(
            gamma,
            primal,
            float(sums[1]) + problem.alpha / 2 * float(length[0]),
            problem.join(multipliers.features.sum(axis=1), balance) + problem.penalties * gamma,
            primal - multipliers.dual(problem, float(jitter_share(length, norm)[0])),
            float(np.abs(balance).max()) if problem.intercept else 0.0,
            passes + 1,
        )
        return point, rows


@dataclass(frozen=True, eq=False)
class _Multipliers:
    """Sums over rows: of both parts of the multipliers times features (m, 2, k), of the parts (2, k), and of terms."""

    features: Matrix
    sums: Matrix
    terms: Matrix

    def dual(self, problem: RestrictedRisk, jitter: float) -> float:
        """A value of the dual objective; with an offset, at multipliers that have the sum 0.

        It is one for all functions to whose squared norm jitter adds at most this share.
        """
        # Without an offset no sum is too large.
        sums = self.sums if problem.intercept else np.stack([self.sums[0], -self.sums[0]])
        balanced = problem.criterion.balanced(sums, self.terms)
        q = np.einsum("mpk,pkj->mj", self.features, balanced.mixing)
        # Far from the solution of some losses it is minus infinity.
        with np.errstate(over="ignore"):
            square = float((q**2).sum())
        return -balanced.conjugate - (1 + jitter) * square / (2 * problem.alpha)


@dataclass(frozen=True)
class RestrictedNewton:
    r"""Newton's method on the coordinates in which the norm is the Euclidean length.

    With the features :math:`\varphi_i` of row i, the multipliers :math:`u_i = \ell'(y_i, f_i)` are a solution of the
    dual problem :math:`\max_u -\sum_i w_i \ell^*(y_i, u_i) - \|\sum_i w_i u_i \varphi_i\|^2 / (2 \alpha)`, so that
    each pass over the rows has a gap. With an offset they must have the sum 0, and the criterion makes them so. A
    piecewise linear loss is replaced by envelopes, each closer than the last and augmented with the multipliers of the
    one before: this is the method of multipliers, whose subproblems Newton's method solves.

    Parameters
    ----------
    tol : float, default=1e-4
        The largest gap, as a share of the objective.
    max_iter : int, default=1000
        The most passes.
    random_state : int, default=0
        Of the sample for the preconditioner.
    verbose : bool, default=False
        Show progress on standard error.

    References
    ----------
    U. Marteau-Ferey, F. Bach, A. Rudi, "Globally convergent Newton methods for ill-conditioned generalized
    self-concordant losses" (2019). X. Li, D. Sun, K.-C. Toh, "A highly efficient semismooth Newton augmented
    Lagrangian method for solving Lasso problems" (2018), for the method of multipliers.
    """

    tol: float = 1e-4
    max_iter: int = 1000
    random_state: int = 0
    verbose: bool = False

    def solve(self, problem: RestrictedRisk, start: Matrix | None = None) -> Solution[Matrix, Matrix]:
        """Return coefficients and, below them, offsets; the state holds their coordinates.

        Parameters
        ----------
        problem : RestrictedRisk
        start : ndarray, optional
            Coordinates from a solution before.

        Returns
        -------
        Solution
            ``value`` (m, k), or (m + 1, k) with an offset.
        """
        start_time = time.perf_counter()
        m = problem.rows.shape[1]
        gamma = np.zeros((m + problem.intercept, problem.outputs)) if start is None else start
        with memory.track() as account, ExitStack() as stack:
            stack.enter_context(memory.reserve(2 * 8 * m * m, f"the preconditioner of {m:,} landmarks"))
            random = np.random.RandomState(self.random_state)
            sampled = precondition.Sampled.of(problem.rows, problem.white, random, copies=2)
            point, status = _Search(self, problem, sampled, stack).run_or_keep(gamma)
        certificate = Certificate(
            primal=point.primal,
            dual=point.primal - point.gap,
            kkt_violation=float(np.linalg.norm(point.gradient)),
            iterations=point.passes,
            seconds=time.perf_counter() - start_time,
            peak_bytes=account.peak,
            status=status,
            violations={"sum": point.off_balance} if problem.intercept else {},
        )
        functions, offsets = problem.split(point.gamma)
        value = problem.white.coefficients(functions)
        value = np.vstack([value, offsets[None]]) if problem.intercept else value
        return Solution(value, status, certificate, point.gamma)


class _Search:
    """One run of Newton's method."""

    def __init__(
        self, solver: RestrictedNewton, problem: RestrictedRisk, sampled: precondition.Sampled, stack: ExitStack
    ) -> None:
        self.solver, self.problem, self.sampled = solver, problem, sampled
        # At kinks of the loss, rounding would change the curvature.
        self.single = None if isinstance(problem.criterion, Envelope) else in_single(problem.rows, stack)
        self.factor: Matrix | None = None
        self.best: _Point | None = None
        self.reach = float(np.abs(sampled.targets).max(initial=0.0))
        self.offset_slope = 0.0
        self.progress = Progress(solver.max_iter, "passes over the rows", solver.verbose)

    def _at(self, gamma: Matrix, passes: int) -> _Point:
        return _Point.at(self.problem, gamma, passes)[0]

    def run_or_keep(self, gamma: Matrix) -> tuple[_Point, Status]:
        """Run; after Ctrl-C, the best point so far, where that is to be kept and there is one."""
        try:
            return self.run(gamma)
        except KeyboardInterrupt:
            if current().on_interrupt != "keep" or self.best is None or not self.best.gamma.any():
                raise
            return self.best, Status.interrupted

    def run(self, gamma: Matrix) -> tuple[_Point, Status]:
        """Steps until the gap is small, rounding ends them, or passes run out."""
        point = best = self.best = self._at(gamma, 0)
        stalls, moved = 0, True
        while not abs(point.gap) <= self.solver.tol * abs(point.primal):
            if point.passes >= self.solver.max_iter:
                return best, Status.iteration_limit
            # Between two envelopes there is a step: multipliers at their bounds may stay there.
            close = moved and self._is_close(point)
            next_point = None if close else self._step(point)
            if next_point is None and self.single is not None:
                self.single = None
                continue
            moved = next_point is not None
            if next_point is None:
                stalls += 0 if close else 1
                closer = self.problem.criterion.closer()
                if closer is None or stalls > _STALLS:
                    return best, Status.stalled
                next_point = self._closer(point, closer)
            point = next_point
            if abs(point.gap) < abs(best.gap):
                best = self.best = point
                stalls = 0
            self.progress.advance(point.passes - self.progress.done)
            record("passes over the rows", point.passes, point.figures)
        return point, Status.converged

    def _is_close(self, point: _Point) -> bool:
        """Whether another envelope is due: most of the gap is that of this one, and not of the gradient."""
        if not isinstance(self.problem.criterion, Envelope):
            return False
        functions, sums = self.problem.split(point.gradient)
        own = float((functions**2).sum()) / (2 * self.problem.alpha) + self.reach * float(np.abs(sums).sum())
        return own < _SHARE * point.gap

    def _closer(self, point: _Point, closer: Criterion) -> _Point:
        """The same coordinates with the next envelope, whose multipliers are the slopes of this one."""
        criterion = self.problem.criterion
        self.factor = None
        if not (
            isinstance(self.problem.rows, RevisableRows) and isinstance(criterion, Envelope) and criterion.augments
        ):
            # Without multipliers the envelope itself has to be close.
            self.problem = replace(self.problem, criterion=closer.closer() or closer)
            return self._at(point.gamma, point.passes)
        self.problem = replace(self.problem, criterion=closer)
        functions, offsets = self.problem.split(point.gamma)
        F = self.sampled.features @ functions + offsets
        self.sampled = replace(self.sampled, targets=criterion.revised(self.sampled.targets, F))
        next_point, rows = _Point.at(self.problem, point.gamma, point.passes, criterion)
        self.problem = replace(self.problem, rows=rows)
        return next_point

    def _step(self, point: _Point) -> _Point | None:
        """The next point; None where no step lowers the objective."""
        try:
            direction, passes = self._direction(point)
        except NumericalError:
            if self.single is None and not isinstance(self.problem.criterion, Envelope):
                raise
            return None
        slope = float((direction * point.gradient).sum())
        if not slope < 0:
            return None
        passes += point.passes
        try:
            candidate = self._at(point.gamma + direction, passes)
        except NumericalError:
            # The slopes of some losses overflow far away.
            pass
        else:
            if candidate.smooth <= point.smooth + _ARMIJO * slope:
                return candidate
            # Rounding of the objective hides what the last steps gain; the gap shows it.
            if candidate.smooth <= point.smooth * (1 + _ROUNDING) and candidate.gap < point.gap:
                return candidate
        values = self._along(point.gamma, direction)
        best = int(np.argmin(values))
        if not values[best] < point.smooth:
            return None
        return self._at(point.gamma + _SHORTER[best] * direction, passes + 2)

    def _direction(self, point: _Point) -> tuple[Matrix, int]:
        """Newton's direction, and the passes that it took."""
        self.offset_slope = float(np.abs(self.problem.split(point.gradient)[1]).max())
        if isinstance(self.problem.criterion, Envelope) and isinstance(self.problem.rows, RowsWithState):
            # Near a solution few rows have a curvature, and a factor of their Hessian replaces passes over all.
            curved = precondition.Sampled.marked(self.problem.rows, self.problem.white)
            if curved is not None:
                self.factor = self._factor(point.gamma, curved)
                direction, self.factor = self._precondition(-point.gradient), None
                return direction, 0
        if self.factor is None:
            self.factor = self._factor(point.gamma, self.sampled)
        size = float(np.linalg.norm(point.gradient))
        rows = self.problem.rows if self.single is None else self.single
        search = ConjugateGradients(
            partial(self._curve, point.gamma, rows), self._precondition, -point.gradient, inner=_inner
        )
        most = max(1, min(_STEPS, self.solver.max_iter - point.passes))
        while search.advance() and search.steps < most and np.linalg.norm(search.residual) > _FORCING * size:
            pass
        # Which rows are at a kink changes with every step.
        if search.steps > _REFRESH or isinstance(self.problem.criterion, Envelope):
            self.factor = None
        return search.x, search.steps

    def _curve(self, gamma: Matrix, rows: Passes, D: Matrix) -> Matrix:
        """The Hessian at ``gamma`` times a direction: one pass, with the predictions beside those of the direction."""
        problem, k = self.problem, gamma.shape[1]
        functions, offsets = problem.split(gamma)
        size = float(np.abs(D).max(initial=0.0)) or 1.0
        along, shift = problem.split(D / size)
        criterion = problem.criterion

        def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            U = part.weights * criterion.curved(part.targets, F[:, :k] + offsets, F[:, k:] + shift)
            return U, U.sum(axis=0)

        V = problem.white.coefficients(np.hstack([functions, along]))
        products, sums = rows.sweep(V, visit, (k, k))
        return size * problem.join(problem.white.pull(products), sums) + self._penalties() * D

    def _penalties(self) -> Vector:
        penalties = self.problem.penalties
        if self.problem.intercept:
            # Where no row has a curvature, the offset goes no farther than the targets reach.
            slope = self.offset_slope / (2 * self.reach) if self.reach > 0 else 0.0
            penalties[-1] = max(slope, _OFFSET * max(float(self.sampled.weights.sum()), self.problem.alpha))
        return penalties

    def _factor(self, gamma: Matrix, sampled: precondition.Sampled) -> Matrix:
        """The factor of the Hessian at ``gamma`` of rows that stand for all."""
        problem = self.problem
        functions, offsets = problem.split(gamma)
        F = sampled.features @ functions + offsets
        curvature = problem.criterion.curvature(sampled.targets, F)
        return sampled.factor(self._penalties()[:, 0], curvature, offset=problem.intercept)

    def _precondition(self, R: Matrix) -> Matrix:
        assert self.factor is not None
        return precondition.solve(self.factor, R)

    def _along(self, gamma: Matrix, direction: Matrix) -> Vector:
        """The smooth objective at shorter steps; one pass for all."""
        problem, k = self.problem, gamma.shape[1]
        (functions, offsets), (along, shift) = problem.split(gamma), problem.split(direction)
        criterion = problem.criterion

        def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            here, there = F[:, :k] + offsets, F[:, k:] + shift
            sums = [part.weights[:, 0] @ criterion.slopes(part.targets, here + t * there).smooth for t in _SHORTER]
            return np.empty((len(F), 0)), np.array(sums)

        V = problem.white.coefficients(np.hstack([functions, along]))
        _, losses = problem.rows.sweep(V, visit, (0, len(_SHORTER)))
        norms = [float(((functions + t * along) ** 2).sum()) for t in _SHORTER]
        return losses + problem.alpha / 2 * np.array(norms)


def _inner(V: Matrix, R: Matrix) -> Vector:
    return np.asarray(np.vdot(V, R))
