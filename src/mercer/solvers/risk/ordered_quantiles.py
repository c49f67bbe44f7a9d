r"""Quantiles of several levels that do not cross at the rows, fitted together.

Minimise :math:`\sum_j \tfrac12 \|w_j\|^2 + \sum_i C_i \sum_j \rho_{\tau_j}(y_i - f_{ij})` subject to
:math:`f_{i1} \le \dots \le f_{im}` for every row i, where :math:`f_{ij} = \langle w_j, \phi(x_i) \rangle + b_j`. The
dual is :math:`\max_U -\sum_{ij} y_i U_{ij} - \tfrac12 \sum_j U_j^\top K U_j` over multipliers whose columns sum to 0
and whose rows are gradients of the losses under the order.

Source: Takeuchi, Le, Sears and Smola (2006), "Nonparametric quantile estimation", JMLR 7, section 3.2, with the
constraint at every row.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.gram.protocol import GramMatrix
from mercer.solvers.risk.kernel_products import KernelProducts
from mercer.solvers.risk.ordered_rows import OrderedRows, pinball
from mercer.solvers.risk.row_newton import Newton, Point, Residual
from mercer.solvers.solution import Certificate, Solution, Status

_LIMIT = 10_000
_ROUNDS = 60
_PATIENCE = 8
# The curvature of the first envelope, in units of the kernel's own, its growth, and the most of it.
_FIRST, _GROWTH, _LAST = 10.0, 6.0, 1e9
# Newton's method takes ten steps or so for an envelope; with more than the first number it crawls from kink to kink.
# The curvature then grows by this power of what it grew by before.
_LONGEST, _SLOWER = 50, 0.5
# The part of the allowed gap that is left to Newton's method.
_INNER = 0.1


@dataclass(frozen=True, eq=False)
class OrderedQuantiles:
    """Quantile regression of several levels whose predictions must not cross at the rows.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric and positive semi-definite, (n, n).
    targets : ndarray of shape (n,)
    levels : ndarray of shape (m,)
        Ascending, between 0 and 1.
    price : ndarray of shape (n,)
        The factor of the losses of each row, above 0.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> OrderedQuantiles(PrecomputedGram(np.eye(2)), np.array([0.0, 1.0]), np.array([0.5, 0.1]), np.ones(2))
    Traceback (most recent call last):
        ...
    mercer._errors.ParameterError: levels must ascend between 0 and 1, but are [0.5, 0.1].
    """

    gram: GramMatrix
    targets: Vector
    levels: Vector
    price: Vector

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        targets, levels, price = (np.asarray(v, dtype=np.float64) for v in (self.targets, self.levels, self.price))
        if self.gram.shape != (n, n) or targets.shape != (n,) or price.shape != (n,) or levels.ndim != 1:
            raise DataError(
                f"a problem over {n} rows needs targets and prices of shape ({n},), levels of shape (m,) and a square "
                f"matrix; the shapes are {targets.shape}, {price.shape}, {levels.shape}, {self.gram.shape}."
            )
        if not (len(levels) and levels[0] > 0 and levels[-1] < 1 and (np.diff(levels) > 0).all()):
            raise ParameterError(f"levels must ascend between 0 and 1, but are {levels.tolist()}.")
        if not (np.isfinite(price) & (price > 0)).all() or not np.isfinite(targets).all():
            raise DataError("every target must be finite, and every price finite and above 0.")
        for name, value in (("targets", targets), ("levels", levels), ("price", price)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class QuantilesValue:
    """Coefficients C (n, m), offsets b (m,), and their predictions at the rows F (n, m)."""

    C: Matrix
    b: Vector
    F: Matrix


@dataclass(frozen=True)
class QuantilesSolver:
    """Solve by the method of multipliers with Newton's method inside.

    Parameters
    ----------
    tol : float, default=1e-6
        The relative duality gap at which the solver stops.
    max_iter : int, default=-1
        The most steps of Newton's method; -1 for no limit.
    n_jobs, verbose
        Worker threads, and whether to show progress.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> y, levels = np.array([0.0, 1.0, 5.0]), np.array([0.25, 0.75])
    >>> solution = QuantilesSolver().solve(OrderedQuantiles(PrecomputedGram(np.eye(3)), y, levels, np.ones(3)))
    >>> bool((np.diff(solution.value.F) >= 0).all()), solution.certificate.relative_gap < 1e-6
    (True, True)
    """

    tol: float = 1e-6
    max_iter: int = -1
    n_jobs: int | None = None
    verbose: bool = False

    def solve(
        self, problem: OrderedQuantiles, start: tuple[Matrix, Vector] | None = None
    ) -> Solution[QuantilesValue, Matrix]:
        """Solve ``problem``.

        Parameters
        ----------
        problem : OrderedQuantiles
        start : tuple of ndarray of shape (n, m) and (m,), optional
            Coefficients and offsets to begin with, such as those of each level by itself.

        Returns
        -------
        Solution
            ``value`` is a :class:`QuantilesValue` whose predictions are in order at every row; ``state`` the
            multipliers.
        """
        start_time = time.perf_counter()
        n = len(problem.targets)
        limit = self.max_iter if self.max_iter >= 0 else _LIMIT
        with ExitStack() as stack, memory.track() as account, threads.workers(self.n_jobs):
            m = len(problem.levels)
            stack.enter_context(memory.reserve(8 * 20 * n * m, f"20 arrays of {n} x {m} numbers"))
            K = KernelProducts(problem.gram, stack)
            newton = Newton(K, Progress(limit, "Newton steps", self.verbose), intercept=True)
            best, steps = _multipliers(problem, newton, self.tol, limit, start)
        gap = max(best.primal - best.dual, 0.0)
        done = gap <= self.tol * max(abs(best.primal), abs(best.dual))
        status = Status.converged if done else Status.iteration_limit if steps >= limit else Status.stalled
        certificate = Certificate(
            best.primal,
            best.primal - gap,
            best.worst,
            steps,
            time.perf_counter() - start_time,
            account.peak,
            status,
            {"stationarity": best.worst, "sum": best.excess},
            storage=K.sentence,
        )
        # The offsets undo every crossing except for the rounding of the sum; the promised order is exact.
        F = np.maximum.accumulate(best.point.F, axis=1)
        return Solution(QuantilesValue(best.point.C, best.point.b, F), status, certificate, best.U)


@dataclass(frozen=True, eq=False)
class _Certified:
    """A point whose predictions are in order, with its objective and a lower bound of the best."""

    point: Point
    U: Matrix
    primal: float
    dual: float
    worst: float
    excess: float


def _multipliers(
    problem: OrderedQuantiles, newton: Newton, tol: float, limit: int, start: tuple[Matrix, Vector] | None
) -> tuple[_Certified, int]:
    shape = len(problem.targets), len(problem.levels)
    point, U = Point.zero(*shape), np.zeros(shape)
    if start is not None:
        point, U = Point(start[0], newton.K @ start[0], start[1]), -start[0]
    unit = 1.0 / max(float(newton.K.diagonal().mean()), 1e-300)
    sigma, growth, idle, steps = _FIRST * unit, _GROWTH, 0, 0
    best: _Certified | None = None
    for _ in range(_ROUNDS):
        rows = OrderedRows(problem.targets, problem.levels, problem.price, U, sigma)
        within = _INNER * tol * abs(best.primal) if best else np.inf

        def enough(residual: Residual, within: float = within) -> bool:
            return residual.bound <= within

        residual, used = newton.minimise(rows, 1.0, point, enough, min(_LONGEST, limit - steps))
        steps += used
        now = _certify(problem, newton.K, residual)
        better = best is None or now.primal - now.dual < best.primal - best.dual
        idle = 0 if best is None or now.primal - now.dual < 0.5 * (best.primal - best.dual) else idle + 1
        best = now if better or best is None else best
        if best.primal - best.dual <= tol * abs(best.primal) or steps >= limit or idle > _PATIENCE:
            break
        if used < _LONGEST:
            point, U = residual.point, residual.expansion.gradient
            sigma = min(growth * sigma, _LAST * unit)
        else:
            # The envelope is too sharp for steps from here: back to where the last one worked, and on more slowly.
            sigma, growth = sigma / growth, growth**_SLOWER
    assert best is not None
    return best, steps


def _certify(problem: OrderedQuantiles, K: KernelProducts, residual: Residual) -> _Certified:
    """Bounds at the point, moved to where they hold: offsets apart, so that nothing crosses; columns that sum to 0."""
    y, price, levels, point = problem.targets, problem.price, problem.levels, residual.point
    F = point.F
    crossing = np.maximum(F[:, :-1] - F[:, 1:], 0.0).max(axis=0, initial=0.0)
    point = Point(point.C, point.KC, point.b + np.concatenate([[0.0], np.cumsum(crossing)]))
    primal = 0.5 * point.square + float(price @ pinball(y, levels, point.F).sum(axis=1))
    U, KU = residual.expansion.gradient, residual.KR - point.KC
    total = U.sum(axis=0)
    if total.any():
        # Towards multipliers in proportion to the prices, which are gradients as long as they are small.
        share = price / price.sum()
        part = min(float(np.abs(total).max()) / (price.sum() * min(levels[0], 1.0 - levels[-1])), 1.0)
        even = (1.0 - part) * total
        U = (1.0 - part) * U - share[:, None] * even
        KU = (1.0 - part) * KU - (K @ share[:, None]) * even
    # Columns that sum to 0 do not see an offset of y, which would cost digits.
    centre = float(np.median(y))
    dual = -float(((y - centre)[:, None] * U).sum()) - 0.5 * float((U * KU).sum())
    return _Certified(point, U, primal, dual, residual.worst, float(np.abs(total).max()))
