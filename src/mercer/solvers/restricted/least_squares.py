"""Regularised least squares over landmarks: preconditioned conjugate gradients, one pass over the rows a step."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from mercer._errors import DataError, NumericalError, ParameterError
from mercer._types import Matrix, Vector
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients
from mercer.solvers.restricted import precondition
from mercer.solvers.restricted.passes import Part, Passes
from mercer.solvers.restricted.whitening import Whitening
from mercer.solvers.solution import Certificate, Solution, Status

# Another solve from the true residual must lower the gap this many times to be worth its passes.
_FALL = 4.0
# Steps in float32 lower the gap to the first share before it is computed in float64; unless it then is below the
# second one, there are no more of them.
_SINGLE, _SINGLE_FALL = 1e-5, 1e-2


@dataclass(frozen=True, eq=False)
class RestrictedLeastSquares:
    r"""Weighted, regularised least squares over functions :math:`f = \sum_j \beta_j k(z_j, \cdot)`.

    .. math:: \min_\beta \sum_i w_i (t_i - f(x_i))^2 + \alpha\, \beta^\top K_{mm} \beta

    Parameters
    ----------
    rows : Passes
        n rows, with k targets.
    white : Whitening
        Of the m landmarks.
    alphas : ndarray of shape (k,)
        The penalty of each target, above 0.
    """

    rows: Passes
    white: Whitening
    alphas: Vector

    def __post_init__(self) -> None:
        n, m, k = self.rows.shape
        if self.white.factor.shape != (m, m) or np.shape(self.alphas) != (k,):
            raise DataError(
                f"{n} rows with {m} landmarks and {k} targets need a factor of shape ({m}, {m}) and {k} penalties; "
                f"the shapes are {self.white.factor.shape} and {np.shape(self.alphas)}."
            )
        if not (np.isfinite(self.alphas).all() and (np.asarray(self.alphas) > 0).all()):
            raise ParameterError(
                f"an approximation by landmarks needs alpha > 0 and finite, but alpha is {self.alphas}."
            )

    def residual(self, gamma: Matrix) -> tuple[Matrix, Vector]:
        """Half of minus the gradient by coordinates, (m, k), and the objective of each target; one pass."""
        k = gamma.shape[1]

        def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            left = part.targets - F
            weighted = part.weights * left
            return weighted, (weighted * left).sum(axis=0)

        products, losses = self.rows.sweep(self.white.coefficients(gamma), visit, (k, k))
        return self.white.pull(products) - self.alphas * gamma, losses + self.alphas * (gamma**2).sum(axis=0)

    def curve(self, gamma: Matrix, rows: Passes | None = None) -> Matrix:
        """The Hessian (halved) times coordinates, (m, k); one pass, over other ``rows`` where these are given."""
        k = gamma.shape[1]
        # Within the range of float32, whatever the units of the targets.
        size = float(np.abs(gamma).max(initial=0.0)) or 1.0

        def visit(part: Part, F: Matrix) -> tuple[Matrix, Vector]:
            return part.weights * F, np.zeros(0)

        products, _ = (self.rows if rows is None else rows).sweep(self.white.coefficients(gamma / size), visit, (k, 0))
        return size * self.white.pull(products) + self.alphas * gamma


@dataclass(frozen=True)
class RestrictedState:
    """Where to go on: the coordinates (m, k)."""

    gamma: Matrix


@dataclass(frozen=True)
class RestrictedCG:
    r"""Conjugate gradients on the whitened system, preconditioned with the Hessian of a sample of the rows.

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
        m, k = problem.rows.shape[1:]
        with memory.track() as account, memory.reserve(8 * m * m, f"the preconditioner of {m:,} landmarks"):
            random = np.random.RandomState(self.random_state)
            sampled = precondition.Sampled.of(problem.rows, problem.white, random)
            inverse = precondition.SampledInverse.of(sampled, np.asarray(problem.alphas))
            answer = _Answer.at(problem, np.zeros((m, k)), 0)
            size = _lengths(answer.residual)
            if start is not None:
                answer = _Answer.at(problem, start, answer.passes)
            answer, status = self._refine(problem, inverse, answer)
        gap = float(answer.gap.sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            violation = float(np.where(size > 0, _lengths(answer.residual) / size, 0.0).max(initial=0.0))
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

    def _refine(
        self, problem: RestrictedLeastSquares, inverse: precondition.SampledInverse, best: _Answer
    ) -> tuple[_Answer, Status]:
        """Solve from the true residual, again and again, by steps in float32 while these lower the gap."""
        progress = Progress(self.max_iter, "passes over the rows")
        single = problem.rows.single()
        while not best.is_small(self.tol):
            if best.passes + 2 > self.max_iter:
                return best, Status.iteration_limit
            try:
                found = self._steps(problem, inverse, best, single, progress)
            except NumericalError:
                if single is None:
                    raise
                # Some kernel value is beyond the range of float32.
                single = None
                continue
            if single is not None and not found.gap.sum() < best.gap.sum() * _SINGLE_FALL:
                single = None
                best = replace(found if found.gap.sum() < best.gap.sum() else best, passes=found.passes)
                continue
            if not found.gap.sum() < best.gap.sum() / _FALL:
                better = found if found.gap.sum() < best.gap.sum() else best
                status = Status.converged if better.is_small(self.tol) else Status.stalled
                return replace(better, passes=found.passes), status
            best = found
        return best, Status.converged

    def _steps(
        self,
        problem: RestrictedLeastSquares,
        inverse: precondition.SampledInverse,
        best: _Answer,
        single: Passes | None,
        progress: Progress,
    ) -> _Answer:
        """Conjugate gradients from the true residual of an answer; the better answer has its own true residual."""
        search = ConjugateGradients(partial(problem.curve, rows=single), inverse, best.residual)
        while search.advance() and best.passes + search.steps + 1 < self.max_iter:
            progress.advance()
            won = (search.x * (best.residual + search.residual)).sum(axis=0)
            gap = (search.residual**2).sum(axis=0) / problem.alphas
            # Half of the tolerance, since the true residual is larger by rounding.
            aim = self.tol / 2 * np.maximum(best.objective - won, 0.0)
            if single is not None:
                aim = np.maximum(aim, _SINGLE * best.gap)
            if (gap <= aim).all():
                break
        return _Answer.at(problem, best.gamma + search.x, best.passes + search.steps)


@dataclass(frozen=True, eq=False)
class _Answer:
    """Coordinates, with the true residual, objective and bound of the gap of each target."""

    gamma: Matrix
    residual: Matrix
    objective: Vector
    gap: Vector
    passes: int

    @classmethod
    def at(cls, problem: RestrictedLeastSquares, gamma: Matrix, passes: int) -> _Answer:
        residual, objective = problem.residual(gamma)
        return cls(gamma, residual, objective, (residual**2).sum(axis=0) / problem.alphas, passes + 1)

    def is_small(self, tol: float) -> bool:
        """Whether no target has a larger gap than this share of its objective."""
        return bool((self.gap <= tol * self.objective).all())


def _lengths(V: Matrix) -> Vector:
    return np.sqrt((V**2).sum(axis=0))
