"""A stationary point of a regularised risk whose kernel is indefinite."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning, lu_factor, lu_solve

from mercer._errors import NumericalError, ParameterError
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.losses import HalfSquare
from mercer.solvers.linear.cholesky import blas_threads
from mercer.solvers.matrix import Vector
from mercer.solvers.risk.kernel_products import KernelProducts
from mercer.solvers.risk.quadratic import Aim, AsBox
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.values import RiskValue
from mercer.solvers.solution import Certificate, Solution, Status

_LIMIT = 200
_HALVINGS = 40
# A residual of this part of the multipliers is rounding.
_ROUNDING = 1e-13


def solve_stationary(
    problem: RegularizedRisk, *, tol: float = 1e-6, max_iter: int = -1, cache_bytes: int = 200 * 2**20,
    n_jobs: int | None = None, verbose: bool = False,
) -> Solution[RiskValue, Vector]:  # fmt: skip
    r"""Coefficients with :math:`w_i \ell'(y_i, (K c)_i) + \alpha c_i = 0`, where K may be indefinite.

    For smooth losses by Newton's method on this system, whose steps are shortened until its residual falls; for losses
    of straight pieces by the box solver. What is found depends on the start, which is zero, and the certificate bounds
    nothing.

    Parameters
    ----------
    problem : RegularizedRisk
        With half the squared norm as the penalty.
    tol : float, default=1e-6
        The largest residual that is good enough, relative to the largest multiplier.
    max_iter, cache_bytes, n_jobs, verbose
        As for :func:`mercer.solvers.risk.solve.solve_risk`.

    Raises
    ------
    ParameterError
        If the loss is neither smooth nor of straight pieces, or the penalty is another one.

    References
    ----------
    C. S. Ong, X. Mary, S. Canu and A. J. Smola, "Learning with non-positive kernels", ICML (2004).

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.losses import Squared
    >>> K = PrecomputedGram(np.diag([1.0, -0.25]))
    >>> solution = solve_stationary(RegularizedRisk(K, Squared(), [3.0, 6.0], alpha=0.5, convex=False))
    >>> solution.value.c.round(12).tolist(), solution.status.name
    ([2.0, 24.0], 'stationary')
    """
    if not isinstance(problem.penalty, HalfSquare):
        raise ParameterError(
            f"with allow_indefinite=True the regularizer must be 'l2', and is {problem.penalty!r}: the norm of w means "
            "nothing where the kernel is indefinite."
        )
    begun = time.perf_counter()
    n = len(problem.targets)
    with ExitStack() as held, memory.track() as account, blas_threads(n_jobs, n):
        if problem.loss.smooth:
            c, Kc, b, steps = _by_newton(problem, held, max_iter if max_iter >= 0 else _LIMIT, verbose)
        elif problem.loss.tube(problem.targets) is not None:
            solver = AsBox(problem, max_iter, cache_bytes, n_jobs, verbose)
            answer = solver.solve(problem.alpha, Aim(np.inf, np.inf))
            c, Kc, b, steps = answer.c, answer.Kc, answer.b, solver.steps
        else:
            raise ParameterError(
                f"with allow_indefinite=True the loss must have a curvature or straight pieces, and {problem.loss!r} "
                "has neither."
            )
    f = Kc + b
    u = -problem.alpha * c if not problem.loss.smooth else problem.weight * problem.loss.gradient(problem.targets, f)
    worst = float(np.abs(u + problem.alpha * c).max(initial=0.0)) / max(float(np.abs(u).max(initial=0.0)), 1e-300)
    primal = problem.risk(f) + 0.5 * problem.alpha * float(c @ Kc)
    low, high = problem.loss.slopes(problem.targets)
    slopes = np.clip(-problem.alpha * c / problem.weight, low, high)
    conjugate = float(problem.weight @ problem.loss.conjugate(problem.targets, slopes))
    dual = -conjugate - 0.5 * problem.alpha * float(c @ Kc)
    status = Status.stationary if worst <= tol else Status.stalled
    certificate = Certificate(
        primal, dual, worst, steps, time.perf_counter() - begun, account.peak, status, {"stationarity": worst}, False
    )
    return Solution(RiskValue(c, b, Kc, u, problem.alpha), status, certificate, c)


def _by_newton(
    problem: RegularizedRisk, held: ExitStack, limit: int, verbose: bool
) -> tuple[Vector, Vector, float, int]:
    """c, Kc, b and the number of steps."""
    n, alpha, weight, border = len(problem.targets), problem.alpha, problem.weight, int(problem.intercept)
    K = KernelProducts(problem.gram, held, lazy=False)
    held.enter_context(memory.reserve(8 * (n + border) ** 2, f"the system of a Newton step ({n} x {n})"))
    assert K.matrix is not None
    progress = Progress(limit, "Newton steps", verbose)
    system = np.empty((n + border, n + border))

    def residual(c: Vector, Kc: Vector) -> Vector:
        """Of c with b behind it."""
        f = Kc + (c[n] if border else 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            r = weight * problem.loss.gradient(problem.targets, f) + alpha * c[:n]
        return np.append(r, alpha * c[:n].sum()) if border else r

    c, Kc = np.zeros(n + border), np.zeros(n)
    r = residual(c, Kc)
    size = float(np.linalg.norm(r))
    first, steps = size, 0
    while steps < limit and size > _ROUNDING * first:
        steep = weight * problem.loss.curvature(problem.targets, Kc + (c[n] if border else 0.0))
        np.multiply(steep[:, None], K.matrix, out=system[:n, :n])
        system.flat[: n * (n + border) : n + border + 1] += alpha
        if border:
            system[:n, n], system[n, :n], system[n, n] = steep, alpha, 0.0
        step = _solved(system, r)
        steps += 1
        progress.advance()
        moved = (K @ step[:n, None])[:, 0]
        length, found = _shorten(residual, c, Kc, step, moved, size)
        if found is None:
            break
        c, Kc, r = c + length * step, Kc + length * moved, found
        size = float(np.linalg.norm(r))
    return c[:n], Kc, float(c[n]) if border else 0.0, steps


def _solved(system: NDArray[np.float64], r: Vector) -> Vector:
    """The step, for which the system is overwritten."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LinAlgWarning)
        step: Vector = lu_solve(lu_factor(system, overwrite_a=True, check_finite=False), -r, check_finite=False)
    if not np.isfinite(step).all():
        raise NumericalError("the system of a Newton step is singular. Raise alpha, or change it a little.")
    return step


def _shorten(
    residual: Callable[[Vector, Vector], Vector], c: Vector, Kc: Vector, step: Vector, moved: Vector, size: float
) -> tuple[float, Vector | None]:
    """The longest part of a step, by halving, at which the residual falls, and that residual."""
    length = 1.0
    for _ in range(_HALVINGS):
        r = residual(c + length * step, Kc + length * moved)
        if np.linalg.norm(r) < (1.0 - 1e-4 * length) * size:
            return length, r
        length *= 0.5
    return 0.0, None
