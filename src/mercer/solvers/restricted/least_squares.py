"""Regularised least squares over landmarks: preconditioned conjugate gradients, one pass over the rows a step."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Positions, Vector
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.engine.settings import current
from mercer.engine.trace import record
from mercer.gram.hold import fits
from mercer.gram.protocol import GramMatrix
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients
from mercer.solvers.restricted import clusters, precondition
from mercer.solvers.restricted.least_squares_problem import RestrictedLeastSquares
from mercer.solvers.restricted.passes import Passes, StoredRows, in_single
from mercer.solvers.restricted.sampled_once import SampledOnce
from mercer.solvers.restricted.whitening import jitter_share
from mercer.solvers.solution import Certificate, Solution, Status

# Another solve from the true residual must lower the gap this many times to be worth its passes.
_FALL = 2.0
# Steps in float32 lower the gap to the first share before it is computed in float64; unless it then is below the
# second one, there are no more of them.
_SINGLE, _SINGLE_FALL = 1e-6, 1e-2
# If the aim of all steps is above this part of the first share, they go on to the aim.
_NEARLY = 0.1
# Directions are kept while the true residual is at most this many times what the steps made of it.
_ASTRAY = 1.5
# An objective that seems to be below zero by this share of its first value is not that of the problem.
_BELOW = 1e-3
# After this many steps in float32 that have not lowered the gap to the share that they should, float64 goes on.
_SOON = 20
# Residuals of conjugate gradients rise now and then, but where the bound of the gap is this many times what it was,
# rounding dominates.
_LOST = 1e4
# Passes after which a preconditioner from landmarks is given up for one from a sample of the rows. Where it serves,
# there were 20 to 75.
_PATIENCE = 80
# Coefficients up to this and from its reciprocal on, and their products with kernel values, are far inside float32.
_RANGE = 1e25
# Sums of squares below this have lost digits, or all of them.
_VANISHING = 1e-250


@dataclass(frozen=True)
class RestrictedState:
    """Where to go on: the coordinates (m, k)."""

    gamma: Matrix


@dataclass(frozen=True)
class RestrictedCG:
    r"""Conjugate gradients on the whitened system, preconditioned with an estimate of the Hessian.

    The estimate is that of a sample of the rows or, for many landmarks, of the landmarks weighted by the rows that are
    closest to each; if the latter takes 80 passes without an end, a sample follows. Steps that stall before are not
    taken again: what is left is rounding of the residuals, whatever the preconditioner. They begin at the solution for
    what the Hessian is estimated from, or at 0 where that has the smaller objective.

    With :math:`\Phi = K_{nm} L^{-\top}`, :math:`H = \Phi^\top W \Phi + \alpha I` and the residual r of
    :math:`H \gamma = \Phi^\top W t`, the objective is above the least one by :math:`r^\top H^{-1} r`, which is at most
    :math:`\|r\|^2 / \alpha`. This bound is the gap of the certificate, and the stopping rule.

    Parameters
    ----------
    tol : float, default=1e-6
        The largest gap, as a share of the objective.
    max_iter : int, default=200
        The most passes.
    random_state : int, default=0
        Of the sample.

    References
    ----------
    A. Rudi, L. Carratino, L. Rosasco, "FALKON: an optimal large scale kernel method" (2017), for the restricted problem
    and its preconditioner from few rows.
    """

    tol: float = 1e-6
    max_iter: int = 200
    random_state: int = 0

    def solve(self, problem: RestrictedLeastSquares, start: Matrix | None = None) -> Solution[Matrix, RestrictedState]:
        """Return the coefficients of the landmarks, (m, k).

        Parameters
        ----------
        problem : RestrictedLeastSquares
        start : ndarray of shape (m, k), optional
            Coordinates from a solution before.
        """
        start_time = time.perf_counter()
        m = problem.rows.shape[1]
        with memory.track() as account, memory.reserve(8 * m * m, f"the preconditioner of {m:,} landmarks"):
            answer, status = self._answer(problem, start)
            exponents = _exponents(answer)
            if exponents.any():
                problem = replace(problem, exponents=exponents)
                answer, status = self._answer(problem, None if start is None else np.ldexp(start, -exponents))
            answer = answer.without_jitter(problem)
            if status is Status.converged and not answer.is_small(self.tol):
                status = Status.stalled
        answer = replace(
            answer,
            gamma=np.ldexp(answer.gamma, exponents),
            gap=np.ldexp(answer.gap, 2 * exponents),
            objective=np.ldexp(answer.objective, 2 * exponents),
        )
        gap = float(answer.gap.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            violation = float(np.where(answer.size > 0, _lengths(answer.residual) / answer.size, 0.0).max(initial=0.0))
        certificate = Certificate(
            primal=float(answer.objective.sum()),
            dual=float(answer.objective.sum()) - gap,
            kkt_violation=violation,
            iterations=answer.passes,
            seconds=time.perf_counter() - start_time,
            peak_bytes=account.peak,
            status=status,
            violations={"residual": violation},
        )
        return Solution(problem.white.coefficients(answer.gamma), status, certificate, RestrictedState(answer.gamma))

    def _answer(self, problem: RestrictedLeastSquares, start: Matrix | None) -> tuple[_Answer, Status]:
        """The answer with its residual in float64, from a start or 0."""
        answer: _Answer | None = None
        status = Status.converged
        if start is not None:
            zero = _Answer.at(problem, np.zeros_like(start), 0)
            answer = _Answer.at(problem, start, zero.passes, zero.size)
        if answer is None or not answer.is_small(self.tol):
            with ExitStack() as stack:
                answer, status = self._improve(problem, answer, stack)
        return answer.in_double(problem), status

    def _improve(
        self, problem: RestrictedLeastSquares, answer: _Answer | None, stack: ExitStack
    ) -> tuple[_Answer, Status]:
        """Steps from an answer or 0 until the gap is small, with the preconditioner that takes the least time."""
        rows = problem.rows
        if isinstance(rows, StoredRows) and clusters.are_cheaper(*rows.shape[:2]):
            # What is held there is not in the way of a sample.
            with ExitStack() as held:
                found = self._by_landmarks(problem, rows, answer, held)
            if found is not None:
                answer, status = found
                if status is not Status.iteration_limit or answer.passes + 2 > self.max_iter:
                    return answer, status
        inverse, start = self._by_sample(problem)
        single = in_single(rows, stack, partly=True)
        return self._refine(problem, inverse, answer or self._begin(problem, start, single), single)

    def _by_landmarks(
        self, problem: RestrictedLeastSquares, rows: StoredRows, answer: _Answer | None, stack: ExitStack
    ) -> tuple[_Answer, Status] | None:
        """Steps with landmarks as the sample; None if another sample takes less time."""
        # Without room for a sample, there is nothing to give up for.
        most = _PATIENCE if fits(precondition.sample_bytes(*rows.shape[:2])) else self.max_iter
        single = in_single(rows, stack, partly=True)
        gram = single.gram if isinstance(single, StoredRows) else rows.gram
        if not clusters.are_cheaper(*gram.shape, _numbers_of_a_value(gram)):
            return None
        landmarks = clusters.Clusters.of(
            gram, rows.weights, rows.targets, problem.white, self.random_state, rows.n_jobs
        )
        inverse, start = _Start.of(landmarks, problem)
        few = replace(self, max_iter=min(self.max_iter, most))
        return few._refine(problem, inverse, answer or self._begin(problem, start, single), single)

    def _by_sample(self, problem: RestrictedLeastSquares) -> tuple[precondition.EstimatedInverse, _Start]:
        # The values of the sample, which may take more memory than all else, end with this call.
        several = len(np.unique(problem.alphas)) > 1
        way = precondition.Sampled if several else SampledOnce
        return _Start.of(way.of(problem.rows, problem.white, np.random.RandomState(self.random_state)), problem)

    def _begin(self, problem: RestrictedLeastSquares, start: _Start, single: Passes | None) -> _Answer:
        """The start or 0, with a residual as exact as the steps that follow."""
        gamma = start.gamma
        largest = float(np.abs(problem.white.coefficients(gamma)).max(initial=0.0))
        if single is None or start.is_solution or not 1 / _RANGE < largest < _RANGE:
            return _Answer.better_of(problem, gamma)
        try:
            answer = _Answer.better_of(problem, gamma, single)
        except NumericalError:
            # Some kernel value is beyond the range of float32, and the steps go on in float64.
            return replace(_Answer.better_of(problem, gamma), passes=2)
        if (answer.size < 1 / _RANGE).any():
            # The products of small targets beside large ones are lost.
            return replace(_Answer.better_of(problem, gamma), passes=2)
        return answer.in_double(problem) if answer.is_small(self.tol) else answer

    def _refine(
        self,
        problem: RestrictedLeastSquares,
        inverse: precondition.EstimatedInverse,
        best: _Answer,
        single: Passes | None,
    ) -> tuple[_Answer, Status]:
        """Steps in float32 while these lower the true residual, then in float64, until the gap is small."""
        progress = Progress(self.max_iter, "passes over the rows")
        record("passes over the rows", best.passes, partial(_figures, best.objective, best.gap))
        run = _Run(problem, inverse, best, single)
        while not best.is_small(self.tol):
            if best.passes + 2 > self.max_iter:
                return best, Status.iteration_limit
            try:
                answer = self._steps(run, best, progress)
            except _InterruptedError as error:
                return error.best, Status.interrupted
            except NumericalError:
                if run.single is None:
                    raise
                # Some kernel value is beyond the range of float32.
                best = best.in_double(problem)
                run = _Run(problem, inverse, best, None)
                continue
            falls = answer.gap.sum() < best.gap.sum()
            if run.single is not None and not answer.gap.sum() < best.gap.sum() * _SINGLE_FALL:
                # The objective of the answer is the smaller one; the gap is a bound.
                best = replace(answer if falls or not best.exact else best, passes=answer.passes)
                run = _Run(problem, inverse, best, None)
                continue
            if not answer.gap.sum() < best.gap.sum() / _FALL:
                better = answer if falls else best
                better = replace(better, passes=answer.passes)
                if better.is_small(self.tol):
                    return better, Status.converged
                return better, Status.iteration_limit if better.passes + 2 > self.max_iter else Status.stalled
            best = answer
            if run.single is None or not run.follows(best):
                run = _Run(problem, inverse, best, run.single)
        return best, Status.converged

    def _steps(self, run: _Run, best: _Answer, progress: Progress) -> _Answer:
        """Conjugate gradients until the gap seems small enough; the answer has its true residual."""
        done = run.search.steps
        try:
            self._descend(run, best, progress)
            return run.answer(best, done)
        except KeyboardInterrupt:
            if current().on_interrupt != "keep" or not (run.search.steps or best.gamma.any()):
                raise
        answer = run.answer(best, done) if run.search.steps > done else best
        raise _InterruptedError(answer if answer.objective.sum() <= best.objective.sum() else best)

    def _descend(self, run: _Run, best: _Answer, progress: Progress) -> None:
        """Take steps until the gap seems small enough."""
        search, done = run.search, run.search.steps
        # Half of the tolerance, since the true residual is larger by rounding.
        share = self.tol / 2
        while search.advance() and best.passes + search.steps - done + 1 < self.max_iter:
            progress.advance()
            won = (search.x * (run.start.residual + search.residual)).sum(axis=0)
            gap = (search.residual**2).sum(axis=0) / run.problem.alphas
            objective = run.start.objective - won
            taken = best.passes + search.steps - done
            record("passes over the rows", taken, partial(_figures, objective, gap))
            aim = share * np.maximum(objective, 0.0)
            if run.single is not None:
                rounding = best.rounding(run.problem.alphas)
                # A few steps more cost less than a residual in float64 that does not end them.
                near = (aim >= _NEARLY * rounding) & (2 * aim < rounding)
                aim = np.where(near, aim, np.maximum(aim, rounding))
            if (gap <= aim).all() or not gap.sum() < _LOST * best.gap.sum():
                return
            # With nearly equal landmarks, products in float32 may give an objective below 0, unlike a sum of squares.
            late = search.steps - done >= _SOON and not gap.sum() < _SINGLE_FALL * best.gap.sum()
            if run.single is not None and (late or not (objective >= -_BELOW * run.start.objective).all()):
                return


@dataclass(frozen=True, eq=False)
class _Start:
    """Coordinates of the solution for what the Hessian is estimated from; those of all rows are the solution."""

    gamma: Matrix
    is_solution: bool

    @classmethod
    def of(
        cls, hessian: precondition.EstimatedHessian, problem: RestrictedLeastSquares
    ) -> tuple[precondition.EstimatedInverse, _Start]:
        """The inverse of the estimated Hessian, and the start; 0 for targets beyond the range of float64."""
        inverse = precondition.EstimatedInverse.of(hessian, np.asarray(problem.alphas))
        with np.errstate(over="ignore", invalid="ignore"):
            gamma = inverse(hessian.products())
            if problem.exponents is not None:
                gamma = np.ldexp(gamma, -problem.exponents)
            gamma[:, ~np.isfinite(gamma).all(axis=0)] = 0.0
        return inverse, cls(gamma, hessian.has_all_rows)


class _InterruptedError(Exception):
    """Ctrl-C ended the steps; ``best`` is the best answer so far."""

    def __init__(self, best: _Answer) -> None:
        super().__init__()
        self.best = best


class _Run:
    """Conjugate gradients from one answer on, with products in one precision."""

    def __init__(
        self,
        problem: RestrictedLeastSquares,
        inverse: precondition.EstimatedInverse,
        start: _Answer,
        single: Passes | None,
    ) -> None:
        self.problem, self.start, self.single = problem, start, single
        self.search = ConjugateGradients(partial(problem.curve, rows=single), inverse, start.residual)

    def answer(self, last: _Answer, done: int) -> _Answer:
        """Where the steps are, with its true residual; ``done`` of them are among the passes of the last answer."""
        passes = last.passes + self.search.steps - done
        return _Answer.at(self.problem, self.start.gamma + self.search.x, passes, last.size)

    def follows(self, answer: _Answer) -> bool:
        """Go on from the true residual of the answer; False where it is so large that directions say nothing."""
        if (_lengths(answer.residual) > _ASTRAY * _lengths(self.search.residual)).any():
            return False
        self.search.correct(answer.residual)
        return True


@dataclass(frozen=True, eq=False)
class _Answer:
    """Coordinates, with the true residual, objective and bound of the gap of each target.

    ``size`` are the lengths of the residual of 0, and ``exact`` is False where the residual is in float32.
    """

    gamma: Matrix
    residual: Matrix
    objective: Vector
    gap: Vector
    passes: int
    size: Vector
    exact: bool = True

    @classmethod
    def at(
        cls,
        problem: RestrictedLeastSquares,
        gamma: Matrix,
        passes: int,
        size: Vector | None = None,
        single: Passes | None = None,
    ) -> _Answer:
        residual, objective = problem.residual(gamma, single)
        gap = (residual**2).sum(axis=0) / problem.alphas
        size = _lengths(residual) if size is None else size
        return cls(gamma, residual, objective, gap, passes + 1, size, single is None)

    @classmethod
    def better_of(cls, problem: RestrictedLeastSquares, gamma: Matrix, single: Passes | None = None) -> _Answer:
        """Of these coordinates and 0 those with the smaller objective, for each target; one pass."""
        (residual, objective), (at_zero, of_zero) = problem.residuals_of_two(gamma, single)
        better = objective < of_zero
        residual = np.where(better, residual, at_zero)
        return cls(
            np.where(better, gamma, 0.0),
            residual,
            np.where(better, objective, of_zero),
            (residual**2).sum(axis=0) / problem.alphas,
            1,
            _lengths(at_zero),
            single is None,
        )

    def rounding(self, alphas: Vector) -> Vector:
        """The gap below which its residual says nothing, if that or the next steps are in float32."""
        return _SINGLE * (self.gap if self.exact else np.maximum(self.gap, self.size**2 / alphas))

    def in_double(self, problem: RestrictedLeastSquares) -> _Answer:
        """The same coordinates with a residual in float64, which takes a pass unless it is."""
        return self if self.exact else _Answer.at(problem, self.gamma, self.passes, self.size)

    def without_jitter(self, problem: RestrictedLeastSquares) -> _Answer:
        """The objective without jitter, and its gap among functions to whose squared norm jitter adds no larger share.

        With the share s of this function, squared lengths of coordinates have the penalty ``alpha / (1 + s)`` at least.
        """
        length, norm = (self.gamma**2).sum(axis=0), problem.white.squared_norms(problem.white.coefficients(self.gamma))
        share = jitter_share(length, norm)
        kept = 1.0 / (1.0 + share)
        with np.errstate(divide="ignore", invalid="ignore"):
            residual = self.residual + problem.alphas * (1.0 - kept) * self.gamma
            gap = (residual**2).sum(axis=0) / (kept * problem.alphas)
        objective = self.objective - problem.alphas * (length - norm)
        return replace(self, objective=objective, gap=np.where(np.isnan(gap), np.inf, gap))

    def is_small(self, tol: float) -> bool:
        """Whether no target has a larger gap than this share of its objective."""
        return bool((self.gap <= tol * self.objective).all())


def _numbers_of_a_value(gram: GramMatrix) -> float | None:
    """How many numbers of a row a kernel value is computed from in each pass; None if values are stored."""
    if gram.stored_array() is not None:
        return None
    return np.inf if gram.expensive else gram.width


def _figures(objective: Vector, gap: Vector) -> dict[str, float]:
    """What traces keep: sums over the targets."""
    return {"primal": float(objective.sum()), "dual": float((objective - gap).sum())}


def _exponents(answer: _Answer) -> Positions:
    """Those of powers of two by which targets are divided whose squares vanish; 0 for others."""
    exponents = np.frexp(np.abs(answer.residual).max(axis=0))[1].astype(np.intp)
    exponents[answer.objective > _VANISHING] = 0
    return exponents


def _lengths(V: Matrix) -> Vector:
    return np.sqrt((V**2).sum(axis=0))
