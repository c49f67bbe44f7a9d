"""A stationary point of a regularised risk whose kernel is indefinite."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning, lu_factor, lu_solve

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.losses import HalfSquare
from mercer.solvers.algebra.line_search import halved_step
from mercer.solvers.risk.continuation import Curve, follow
from mercer.solvers.risk.kernel_products import KernelProducts
from mercer.solvers.risk.quadratic import Aim, AsBox
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.values import RiskValue
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.svm.smo import SMO

_LIMIT = 500
# A step that must be shorter than this many halvings counts as leading nowhere.
_HALVINGS = 8
# A residual of this part of the multipliers is rounding.
_ROUNDING = 1e-13
# Below this part of the slopes at zero a residual is what rounding leaves.
_SETTLED = 1e-9


@dataclass(frozen=True)
class StationarySolver:
    r"""Coefficients with :math:`w_i \ell'(y_i, (K c)_i) + \alpha c_i = 0`, where K may be indefinite.

    For smooth losses by Newton's method on this system, whose steps are shortened until its residual falls; where that
    ends in a smallest residual that is not zero, a curve of solutions is followed from larger factors, see
    :mod:`mercer.solvers.risk.continuation`. For losses of straight pieces by the box solver. What is found depends on
    the start, which is zero, and the certificate bounds nothing.

    Parameters
    ----------
    tol : float, default=1e-6
        The largest residual that is good enough, relative to the largest multiplier.
    max_iter, cache_bytes, n_jobs, verbose
        As for :func:`mercer.solvers.risk.solve.RiskSolver`.

    References
    ----------
    C. S. Ong, X. Mary, S. Canu and A. J. Smola, "Learning with non-positive kernels", ICML (2004).

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.losses import Squared
    >>> K = PrecomputedGram(np.diag([1.0, -0.25]))
    >>> solution = StationarySolver().solve(RegularizedRisk(K, Squared(), [3.0, 6.0], alpha=0.5, convex=False))
    >>> solution.value.c.round(12).tolist(), solution.status.name
    ([2.0, 24.0], 'stationary')
    """

    tol: float = 1e-6
    max_iter: int = -1
    cache_bytes: int = 200 * 2**20
    n_jobs: int | None = None
    verbose: bool = False

    def solve(self, problem: RegularizedRisk) -> Solution[RiskValue, Vector]:
        """Solve ``problem``.

        Parameters
        ----------
        problem : RegularizedRisk
            With half the squared norm as the penalty.

        Returns
        -------
        Solution
            ``value`` is a :class:`RiskValue`.

        Raises
        ------
        ParameterError
            If the loss is neither smooth nor of straight pieces, or the penalty is another one.
        """
        if not isinstance(problem.penalty, HalfSquare):
            raise ParameterError(
                f"with an indefinite kernel the regularizer must be 'l2', but is {problem.penalty!r}: the norm of w "
                "has no meaning if the kernel is indefinite."
            )
        start_time, sentence = time.perf_counter(), ""
        n, border = len(problem.targets), int(problem.intercept)
        with ExitStack() as stack, memory.track() as account, threads.workers(self.n_jobs):
            if problem.loss.smooth:
                K = KernelProducts(problem.gram, stack, lazy=False)
                stack.enter_context(memory.reserve(8 * (n + border) ** 2, f"the system of a Newton step ({n} x {n})"))
                sentence = K.sentence
                c, Kc, b, steps = _by_newton(problem, K, self.max_iter if self.max_iter >= 0 else _LIMIT, self.verbose)
            elif problem.loss.tube(problem.targets) is not None:
                solver = AsBox(
                    problem,
                    SMO(max_iter=self.max_iter, cache_bytes=self.cache_bytes, n_jobs=self.n_jobs, verbose=self.verbose),
                )
                answer = solver.solve(problem.alpha, Aim(np.inf, np.inf))
                c, Kc, b, steps = answer.c, answer.Kc, answer.b, solver.steps
            else:
                raise ParameterError(
                    "with an indefinite kernel the loss must have a curvature or straight pieces, and "
                    f"{problem.loss!r} has neither."
                )
        u, worst, primal, dual = _measured(problem, c, Kc, b)
        status = Status.stationary if worst <= self.tol else Status.stalled
        certificate = Certificate(
            primal,
            dual,
            worst,
            steps,
            time.perf_counter() - start_time,
            account.peak,
            status,
            {"stationarity": worst},
            False,
            sentence,
        )
        return Solution(RiskValue(c, b, Kc, u, problem.alpha), status, certificate, c)


def _measured(problem: RegularizedRisk, c: Vector, Kc: Vector, b: float) -> tuple[Vector, float, float, float]:
    """The gradient of the losses, how far c is from stationary, and the primal and the dual objective there."""
    f = Kc + b
    if problem.loss.smooth:
        u = problem.weight * problem.loss.gradient(problem.targets, f)
    else:
        u = -problem.alpha * c
    worst = float(np.abs(u + problem.alpha * c).max(initial=0.0)) / max(float(np.abs(u).max(initial=0.0)), 1e-300)
    primal = problem.risk(f) + 0.5 * problem.alpha * float(c @ Kc)
    low, high = problem.loss.slopes(problem.targets)
    slopes = np.clip(-problem.alpha * c / problem.weight, low, high)
    conjugate = float(problem.weight @ problem.loss.conjugate(problem.targets, slopes))
    dual = -conjugate - 0.5 * problem.alpha * float(c @ Kc)
    return u, worst, primal, dual


def _by_newton(
    problem: RegularizedRisk, K: KernelProducts, limit: int, verbose: bool
) -> tuple[Vector, Vector, float, int]:
    """c, Kc, b and the number of steps."""
    n, border = len(problem.targets), int(problem.intercept)
    assert K.matrix is not None
    equations = _Equations(problem, K.matrix, Progress(limit, "Newton steps", verbose))
    zero = np.zeros(n + border), np.zeros(n)
    first = float(np.linalg.norm(equations.residual(*zero))) or 1.0
    c, Kc, size, steps = equations.descend(*zero, limit, _ROUNDING * first)
    if size > _SETTLED * first and steps < limit:
        c, Kc, more = _along(equations, limit - steps, c, Kc)
        c, Kc, size, last = equations.descend(c, Kc, limit - steps - more, _ROUNDING * first)
        steps += more + last
    return c[:n], Kc, float(c[n]) if border else 0.0, steps


@dataclass(frozen=True, eq=False)
class _Equations:
    """The conditions of a stationary point c, with b behind it if there is one."""

    problem: RegularizedRisk
    K: NDArray[np.float64]
    progress: Progress

    def residual(self, c: Vector, Kc: Vector) -> Vector:
        problem, n = self.problem, len(Kc)
        f = Kc + (c[n] if problem.intercept else 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            r = problem.weight * problem.loss.gradient(problem.targets, f) + problem.alpha * c[:n]
        return np.append(r, problem.alpha * c[:n].sum()) if problem.intercept else r

    def descend(self, c: Vector, Kc: Vector, most: int, tol: float) -> tuple[Vector, Vector, float, int]:
        """By Newton's method with steps that lower the residual: c, Kc, what is left of it, and the steps."""
        r = self.residual(c, Kc)
        size, steps = float(np.linalg.norm(r)), 0
        while steps < most and size > tol:
            step = _solved(self._system(c, Kc), -r)
            steps += 1
            self.progress.advance()
            record("Newton steps", steps, {"violation": size})
            if not np.isfinite(step).all():
                break
            better = self._move(c, Kc, step, size)
            if better is None:
                break
            c, Kc, r = better
            size = float(np.linalg.norm(r))
        return c, Kc, size, steps

    def _move(self, c: Vector, Kc: Vector, step: Vector, size: float) -> tuple[Vector, Vector, Vector] | None:
        """c, Kc and the residual after the longest part of a step, by halving, at which the residual falls."""
        moved = self.K @ step[: len(Kc)]

        def attempt(t: float) -> tuple[Vector, Vector, Vector] | None:
            at = c + t * step, Kc + t * moved
            r = self.residual(*at)
            with np.errstate(over="ignore", invalid="ignore"):
                return (*at, r) if np.linalg.norm(r) < (1.0 - 1e-4 * t) * size else None

        return halved_step(attempt, shortest=0.5**_HALVINGS)

    def _system(self, c: Vector, Kc: Vector) -> NDArray[np.float64]:
        problem, n, m = self.problem, len(Kc), len(c)
        steep = problem.weight * problem.loss.curvature(problem.targets, Kc + (c[n] if m > n else 0.0))
        system = np.empty((m, m))
        np.multiply(steep[:, None], self.K, out=system[:n, :n])
        system.flat[: n * m : m + 1] += problem.alpha
        if m > n:
            system[:n, n], system[n, :n], system[n, n] = steep, problem.alpha, 0.0
        return system


def _along(equations: _Equations, limit: int, c: Vector, Kc: Vector) -> tuple[Vector, Vector, int]:
    """A point on the curve of solutions with its product with K, and the steps to it; else the one that is given."""
    problem, K = equations.problem, equations.K
    y, weight = problem.targets, problem.weight

    def solve(system: NDArray[np.float64], right: Vector) -> Vector:
        equations.progress.advance()
        return _solved(system, right)

    def slope(f: Vector) -> Vector:
        with np.errstate(over="ignore", invalid="ignore"):
            return weight * problem.loss.gradient(y, f)

    curve = Curve(K, slope, lambda f: weight * problem.loss.curvature(y, f), problem.intercept, solve)
    n = len(y)
    with memory.reserve(8 * (n + 2) ** 2, f"the system of a step along the curve ({n} x {n})"):
        point, steps = follow(curve, problem.alpha, limit)
    if point is None:
        return c, Kc, steps
    return point, K @ point[:n], steps


def _solved(system: NDArray[np.float64], right: Vector) -> Vector:
    """The solution of a system, which is overwritten; NaN where it is singular."""
    if not np.isfinite(system).all():
        return np.full_like(right, np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        factor = threads.abandonable(lambda: lu_factor(system, overwrite_a=True, check_finite=False))
        return np.asarray(lu_solve(factor, right, check_finite=False))
