"""Solvers of a :class:`BoxQP` as frozen values: ``solver.solve(problem, start)`` returns a :class:`Solution`."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Array, Vector
from mercer.data.objects import short
from mercer.engine import memory
from mercer.gram.hold import as_it_is
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.certify import bounds, objectives, renew_gradient, violations
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.kept_matrix import KeptMatrix

# What rounding may leave of a bound or a sum, relative to the largest bound and to the number of rows.
_ROUNDING = 1e-9
_SMALLEST = float(np.finfo(np.float64).smallest_subnormal)


@dataclass(frozen=True, eq=False)
class Start:
    """Information for the start of a solve; every part is optional.

    Parameters
    ----------
    beta : ndarray of shape (n,), optional
        Feasible weights to begin with.
    gradient : ndarray of shape (n,), optional
        ``linear - K beta`` in float64; with ``beta`` only.
    matrix : ndarray of shape (n, n), optional
        K: in float64 for at most ``EXACT`` rows, else in float32.
    kept : KeptMatrix, optional
        For many rows: K, if an earlier solve with the same one made it, and where this solve leaves it if it does.
    """

    beta: Vector | None = None
    gradient: Vector | None = None
    matrix: Array | None = None
    kept: KeptMatrix | None = None


@dataclass(frozen=True, kw_only=True)
class BoxSolver:
    """Base of the solvers that support vector machines take as ``solver=``.

    A user-defined solver is a frozen dataclass that inherits from it and defines :meth:`improve`. The base class
    computes the certificate in float64 from the problem and the weights alone, so it is valid for any solver.

    Parameters
    ----------
    tol : float, default=1e-3
        Tolerance on the violation of the optimality conditions, in units of the decision function.
    stop : {"kkt", "gap"}, default="kkt"
        With ``"gap"`` the relative duality gap must be at most ``tol`` as well.
    max_iter : int, default=-1
        The most steps; -1 for no limit.
    n_jobs : int, optional
        Worker threads, all cores by default.
    verbose : bool, default=False
        Show progress on standard error.

    Raises
    ------
    ParameterError
        If a parameter is out of range.
    """

    tol: float = 1e-3
    stop: Literal["kkt", "gap"] = "kkt"
    max_iter: int = -1
    n_jobs: int | None = None
    verbose: bool = False

    def __post_init__(self) -> None:
        name = type(self).__name__
        if isinstance(self.tol, bool) or not isinstance(self.tol, Real) or not 0 < self.tol < np.inf:
            raise ParameterError(f"{name}: tol must be a finite number above 0, but is {short(self.tol)}.")
        if self.stop not in ("kkt", "gap"):
            raise ParameterError(f"{name}: stop must be 'kkt' or 'gap', but is {self.stop!r}.")
        if not _is_whole(self.max_iter) or self.max_iter < -1:
            raise ParameterError(
                f"{name}: max_iter must be a whole number, -1 for no limit, but is {short(self.max_iter)}."
            )
        if self.n_jobs is not None and not _is_whole(self.n_jobs):
            raise ParameterError(f"{name}: n_jobs must be None or a whole number, but is {short(self.n_jobs)}.")
        if self.verbose not in (True, False):
            raise ParameterError(f"{name}: verbose must be True or False, but is {short(self.verbose)}.")

    @property
    def kept_bytes(self) -> int:
        """The memory in bytes that a solve may use for kernel rows, in addition to its vectors."""
        return 0

    @property
    def limit(self) -> int:
        """``max_iter``, or the largest integer if there is no limit."""
        most = int(np.iinfo(np.int64).max)
        return min(int(self.max_iter), most) if self.max_iter >= 0 else most

    def aiming_at(self, tol: float, max_iter: int) -> Self:
        """Return the same solver for one of several rounds, with ``stop="kkt"``.

        Parameters
        ----------
        tol : float
            Its tolerance.
        max_iter : int
            Its limit of steps.

        Returns
        -------
        BoxSolver
        """
        finite = tol if np.isfinite(tol) else self.tol
        return replace(self, tol=max(finite, _SMALLEST), max_iter=max_iter, stop="kkt")

    def after(self, steps: int) -> Self:
        """Return the same solver with the remainder of ``max_iter``, for a second problem.

        Parameters
        ----------
        steps : int
            Steps taken on the first problem.

        Returns
        -------
        BoxSolver
        """
        return self if self.max_iter < 0 else replace(self, max_iter=max(self.max_iter - steps, 0))

    def improve(self, problem: BoxQP, beta: Vector) -> tuple[Vector, int]:
        """Return weights that minimise ``problem``, from the feasible weights ``beta``, and the number of steps.

        Parameters
        ----------
        problem : BoxQP
            K (``problem.gram``, lazy), the linear term, the box, the tube and the sums.
        beta : ndarray of shape (n,)
            Feasible weights, which may be overwritten.

        Returns
        -------
        tuple of ndarray of shape (n,) and int
            Weights that are feasible up to rounding, and the number of steps.
        """
        raise NotImplementedError(f"{type(self).__name__} must define improve(problem, beta).")

    def solve(self, problem: BoxQP, start: Start | None = None) -> Solution[BoxQPValue, Vector]:
        """Solve ``problem``, and certify the solution in float64 over all rows.

        Parameters
        ----------
        problem : BoxQP
            The problem.
        start : Start, optional
            What is known before the solve.

        Returns
        -------
        Solution
            ``value`` is a ``BoxQPValue``; ``state`` is beta, for the ``start`` of a neighbouring problem.
        """
        begin = time.perf_counter()
        with memory.track() as account:
            point = Iterate.begin(problem, None if start is None else start.beta)
            point.fill(np.asarray(problem.totals))
            beta, point.steps = self._improved(problem, point.beta.copy())
            point.beta = self._feasible(problem, beta)
            renew_gradient(problem.gram, point)
        status = ended(problem.convex, self.accepts(point), point.steps >= self.limit)
        return certified(problem, point, objectives(point), status, time.perf_counter() - begin, account.peak)

    def accepts(self, point: Iterate) -> bool:
        """Whether the stopping rule is met.

        Parameters
        ----------
        point : Iterate
            Weights, and their gradient in float64.

        Returns
        -------
        bool
        """
        if point.violation() > self.tol:
            return False
        primal, dual = objectives(point) if self.stop == "gap" else (0.0, 0.0)
        return primal - dual <= self.tol * max(abs(primal), abs(dual))

    def _improved(self, problem: BoxQP, beta: Vector) -> tuple[Vector, int]:
        """What :meth:`improve` returns, if it is weights and a number of steps."""
        # Arrays of its own: what it writes to them must not change the problem that the answer is certified for.
        arrays = {name: getattr(problem, name).copy() for name in ("linear", "lower", "upper")}
        answer = self.improve(replace(problem, **arrays), beta)
        if not (isinstance(answer, tuple) and len(answer) == 2 and _is_whole(answer[1]) and answer[1] >= 0):
            raise DataError(
                f"{type(self).__name__}.improve must return a tuple of weights and the number of steps, but returned "
                f"{answer!r:.80}."
            )
        return answer[0], int(answer[1])

    def _feasible(self, problem: BoxQP, beta: Vector) -> Vector:
        """The weights that :meth:`improve` returned, if they are of the right shape and in the box but for rounding."""
        name, beta = type(self).__name__, np.asarray(beta)
        if beta.dtype.kind not in "fiub":
            raise DataError(f"{name}.improve returned weights of type {beta.dtype}, not real numbers.")
        beta = beta.astype(np.float64)
        if beta.shape != problem.linear.shape:
            raise DataError(f"{name}.improve returned weights of shape {beta.shape}, not {problem.linear.shape}.")
        room = _ROUNDING * float(np.maximum(problem.upper, -problem.lower).max())
        outside = float(np.maximum(beta - problem.upper, problem.lower - beta).max())
        if not outside <= room:
            raise DataError(f"{name}.improve returned weights outside the box by {outside:.3g}; clip them to it.")
        point = Iterate.begin(problem, beta)
        off = float(np.abs(point.off()).max(initial=0.0))
        if off > len(beta) * room:
            raise DataError(f"{name}.improve returned weights whose sums are off by {off:.3g}; keep the sums.")
        return point.beta


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def ended(convex: bool, converged: bool, out_of_steps: bool) -> Status:
    """Return how a solve ended."""
    if converged:
        return Status.converged if convex else Status.stationary
    return Status.iteration_limit if out_of_steps else Status.stalled


def certified(
    problem: BoxQP,
    point: Iterate,
    values: tuple[float, float],
    status: Status,
    seconds: float,
    peak_bytes: int,
    storage: str = "",
) -> Solution[BoxQPValue, Vector]:
    """Return the certified solution at ``point``, whose gradient is exact; ``values`` are primal and dual."""
    offsets = point.offsets()
    conditions = violations(point, offsets)
    if problem.convex and status is not Status.converged:
        values = bounds(problem, point, values)
    certificate = Certificate(
        *values,
        conditions["stationarity"],
        point.steps,
        seconds,
        peak_bytes,
        status,
        conditions,
        problem.convex,
        storage or as_it_is(problem.gram),
    )
    return Solution(BoxQPValue(point.beta, offsets, point.F), status, certificate, point.beta)
