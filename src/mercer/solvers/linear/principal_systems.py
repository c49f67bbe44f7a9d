"""Ridge systems over parts of one matrix, each with several penalties: folds of a search.

All systems advance together, so that one product with the whole matrix, which is read from memory once, serves every
part and every penalty. Large penalties are preconditioned with a low-rank factor of the whole matrix, small ones with
a float32 factor of their part, which several penalties share.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from scipy.linalg import blas

from mercer._errors import MemoryBudgetError
from mercer._types import AnyArray, Matrix, Positions, Vector
from mercer.engine import lapack, memory, threads, tiles
from mercer.gram.hold import as_it_is, held_whole, reserve_square
from mercer.gram.protocol import GramMatrix
from mercer.solvers.algebra.lanczos import Krylov
from mercer.solvers.linear.cholesky import relative
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState, ScaledGram
from mercer.solvers.linear.partial_factor import partial_factor
from mercer.solvers.solution import Certificate, Solution, Status

GRADIENTS = "conjugate gradients"

# A residual of this many roundings of ||A|| ||x|| is what a float64 factorisation gives as well.
_ROUNDINGS = 16.0 * float(np.finfo(float).eps)
# Steps of conjugate gradients to a residual of 1e-12 are about this many times the root of the condition number. That
# of a matrix without its leading part is about three times the largest diagonal entry, divided by the penalty.
_STEPS, _TOP = 14.0, 3.0
# A float32 factor of m rows takes as long as m / 24 steps of one system.
_FACTOR_ROWS = 24.0
# Operations per second of a product of matrices, beside those of a product with few columns.
_DENSE = 2.0
# Penalties share a factor up to this condition number, which Lanczos steps with the factor show.
_SHARED, _LANCZOS, _MARGIN = 6.0, 8, 1.2
# Rounding of a float32 product of n terms, times the root of n; and the largest share of a residual that it may leave.
_SINGLE_ROUNDINGS, _ROUGH = 4.0 * float(np.finfo(np.float32).eps) / 2, 2e-3
# The most sweeps from the true residual, and steps in each beyond twice those that are expected.
_SWEEPS, _MORE = 6, 20
_LARGEST_RANK = 4
# The condition number up to which float32 serves a low-rank preconditioner.
_SINGLE = 1e6
# Up to this many right-hand sides, one pass over a factor for each is faster than the blocked routine for all.
_FEW = 4


@dataclass(frozen=True, eq=False)
class PrincipalSystems:
    r"""Ridge regression on several sets of rows of one kernel matrix, for several penalties.

    .. math:: (S K S + \mu I)_{PP}\, z = (S t)_P, \qquad S = W^{1/2},\ \text{for every part } P \text{ and every } \mu

    Parameters
    ----------
    gram : GramMatrix of shape (n, n)
        K, positive semi-definite, stored as an array.
    targets : ndarray of shape (n, k)
        t.
    parts : tuple of ndarray of int
        Distinct rows of each part.
    shifts : ndarray of shape (m,)
        The penalties, above 0 and ascending.
    weights : ndarray of shape (n,), optional
        Above 0 on all parts.
    """

    gram: GramMatrix
    targets: Matrix
    parts: tuple[Positions, ...]
    shifts: Vector
    weights: Vector | None = None

    def scaled(self) -> ScaledGram:
        """``SKS``."""
        return ScaledGram(self.gram, None if self.weights is None else np.sqrt(self.weights))


@dataclass(frozen=True, eq=False)
class PartSolution:
    """The answers for one part.

    Parameters
    ----------
    z, residual : ndarray of shape (m, rows, k)
        For every penalty, and what they leave of the targets; both of the scaled system.
    solved : ndarray of bool, (m,)
        Whether they are as good as those of a factorisation.
    steps : int
        Products with the matrix.
    seconds : float
        Time of one penalty, an equal share.
    peak : int
        The most bytes that were reserved.
    storage : str
        Where the matrix was.
    """

    z: NDArray[np.float64]
    residual: NDArray[np.float64]
    solved: NDArray[np.bool_]
    steps: int
    seconds: float
    peak: int
    storage: str

    def solution(self, system: LinearSystem, number: int) -> Solution[Matrix, LinearSystemState]:
        """Return the answer for one penalty, with the certificate for the system of this part and penalty."""
        z, residual = self.z[number], self.residual[number]
        b = system.scaled().apply_scale(np.asarray(system.targets))
        violation = float(relative(residual, b).max(initial=0.0))
        primal, dual = system.objectives(z, residual)
        certificate = Certificate(
            primal, dual, violation, self.steps, self.seconds, self.peak, Status.direct, storage=self.storage
        )
        state = LinearSystemState(GRADIENTS, violation)
        return Solution(system.scaled().apply_scale(z), Status.direct, certificate, state)


class _Preconditioner(Protocol):
    def apply(self, R: Matrix, columns: Positions) -> Matrix:
        """``M R`` for rows of R that belong to some of the systems."""


@dataclass(frozen=True)
class SharedGradients:
    """Solve :class:`PrincipalSystems` by preconditioned conjugate gradients on all of them at once.

    Parameters
    ----------
    tol : float, default=1e-12
        Relative residual at which to stop; also at one of the size of the rounding of ``A x``.

    Notes
    -----
    Vectors of all parts have the length n, with zeros outside of their part. With ``E = A - G^T G`` for a partial
    factor G, the preconditioner for a penalty is the inverse of ``G^T G + (mu + d) I``, d the mean of the diagonal of
    E. Where that would take more steps than a factorisation is worth, the part of the matrix is factored in float32 for
    the smallest of these penalties, and those close enough by the Ritz values of the inverse use the factor as well.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> K = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    >>> parts = np.array([0, 1]), np.array([1, 2])
    >>> problem = PrincipalSystems(PrecomputedGram(K), np.array([[3.0], [3.0], [6.0]]), parts, np.array([1.0, 2.0]))
    >>> first, second = SharedGradients().solve(problem)
    >>> first.z[0].ravel().round(9).tolist(), first.z[1].ravel().round(9).tolist()
    ([0.75, 0.75], [0.6, 0.6])
    >>> second.solved.tolist()
    [True, True]
    """

    tol: float = 1e-12

    def solve(self, problem: PrincipalSystems, *, n_jobs: int | None = None) -> list[PartSolution]:
        """Solve all systems, as far as memory and precision allow; the others are marked as not solved."""
        start_time = time.perf_counter()
        with memory.track() as account, threads.workers(n_jobs), ExitStack() as stack:
            work = _Work(problem, self.tol, stack)
            work.run()
        seconds = (time.perf_counter() - start_time) / (len(problem.parts) * len(problem.shifts))
        return work.answers(seconds, account.peak)


class _Work:
    """The systems as rows of matrices, (part, penalty, target) in this order."""

    def __init__(self, problem: PrincipalSystems, tol: float, stack: ExitStack) -> None:
        self._problem, self._tol, self._stack = problem, tol, stack
        self._matrix = problem.scaled()
        n, k = problem.targets.shape
        self._n, m, p = n, len(problem.shifts), len(problem.parts)
        self._part = np.repeat(np.arange(p), m * k)
        self._shift = np.tile(np.repeat(problem.shifts, k), p)
        self._inside = np.zeros((p, n))
        for inside, rows in zip(self._inside, problem.parts):
            inside[rows] = 1.0
        self._array, self._array32 = problem.gram.stored_as(np.float64), problem.gram.stored_as(np.float32)
        self._top = float(self._matrix.diagonal().max())
        stack.enter_context(memory.reserve(64 * n * len(self._part), "conjugate gradients for all penalties"))
        targets = self._matrix.apply_scale(problem.targets).T
        self._b = np.tile(targets, (p * m, 1)) * self._inside[self._part]
        self._size = _lengths(self._b)
        self._x, self._residual = np.zeros_like(self._b), self._b.copy()
        self._solved = self._size == 0
        self._steps = np.zeros(p, dtype=int)
        self._norm = self._largest()

    def run(self) -> None:
        """Solve what a low-rank factor serves, then the others."""
        problem = self._problem
        most = memory.fitting(self._low_rank_bytes, max(self._n // _LARGEST_RANK, 1))
        with memory.reserve(8 * self._n * most, "a low-rank factor of the kernel matrix"):
            factor, left = partial_factor(self._matrix, most, self._cost)
            factor = factor.copy()
        what = "a low-rank factor of the kernel matrix, and its inverses for all folds and penalties"
        self._stack.enter_context(memory.reserve(self._low_rank_bytes(len(factor)), what))
        expected = self._expected_steps(len(factor), float(left.max()))
        rows = max(len(part) for part in problem.parts)
        easy = expected <= rows / _FACTOR_ROWS
        if easy.any():
            columns = np.flatnonzero(np.isin(self._shift, problem.shifts[easy]) & ~self._solved)
            low_rank = _LowRank(factor, float(left.mean()), self._inside, self._part, self._shift, columns, self._norm)
            self._refine(low_rank, columns, int(2 * expected[easy].max()) + _MORE)
        self._by_factors(problem.shifts[~easy])

    def _cost(self, rank: int, left: float) -> float:
        """Operations with a factor of that rank, float64 products of matrices with few columns counted twice."""
        n, p, m = self._n, len(self._inside), len(self._problem.shifts)
        rows = self._problem.parts[0].shape[0]
        systems = len(self._part) / m
        steps = np.minimum(self._expected_steps(rank, left), rows / _FACTOR_ROWS)
        step = 2.0 * n * n + 4.0 * n * rank + 8.0 * rank * rank
        return float(_DENSE * step * systems * steps.sum() + 3.0 * n * rank**2 + p * m * rank**3 / 3.0)

    def _expected_steps(self, rank: int, left: float) -> Vector:
        top = min(_TOP * left, self._norm) if rank else self._norm
        return np.asarray(_STEPS * np.sqrt(1.0 + top / self._problem.shifts))

    def _low_rank_bytes(self, rank: int) -> int:
        """For the factor, a copy in its precision, and a core for each part and penalty."""
        cores = len(self._inside) * (len(self._problem.shifts) + 1) + 1
        return 16 * self._n * rank + 8 * cores * rank**2

    def _by_factors(self, shifts: Vector) -> None:
        """Solve for small penalties, ascending, with float32 factors."""
        left = list(shifts)
        # Fits find their way with less memory.
        with suppress(MemoryBudgetError):
            while left:
                left = left[self._by_one_factor(left) :]

    def _by_one_factor(self, left: list[float]) -> int:
        """Solve for the first penalties, which have one factor; return their number. Its arrays end with this call."""
        with ExitStack() as stack:
            # Systems with smaller penalties have the ratio of both as condition number at most.
            middle = max(shift for shift in left if shift <= _SHARED * left[0])
            factors = self._factored(float(middle), stack)
            if factors is None:
                return 1
            together = [shift for shift in left if factors.condition(float(shift)) <= _SHARED] or left[:1]
            columns = np.flatnonzero(np.isin(self._shift, together) & ~self._solved)
            self._refine(factors, columns, int(2 * _STEPS * np.sqrt(_SHARED)) + _MORE)
            return len(together)

    def _factored(self, shift: float, stack: ExitStack) -> _Factors | None:
        """Float32 factors of all parts plus ``shift I``; None if one of them has none."""
        problem = self._problem
        factors: list[NDArray[Any]] = []
        for rows in problem.parts:
            threads.checkpoint()
            reserve_square(stack, len(rows), 4, "the float32 factor of the kernel matrix")
            scale = None if self._matrix.scale is None else self._matrix.scale[rows]
            part = ScaledGram(problem.gram.astype(np.float32).restrict(rows, rows), scale).dense(np.dtype(np.float32))
            part[np.diag_indices(len(rows))] += np.float32(shift)
            if lapack.factor_cholesky(part) or not np.isfinite(part.diagonal()).all():
                return None
            factors.append(part)
        return _Factors(factors, problem.parts, self._part, shift, self._b[0])

    def _product(self, V: Matrix, single: bool = False) -> Matrix:
        """``V A``, one row for each system."""
        scale = self._matrix.scale
        V = V if scale is None else V * scale
        out = np.empty_like(V)
        if self._array is None:
            out[:] = np.asarray(self._problem.gram @ V.T).T
        elif single and self._array32 is not None:
            # Of length 1, so that nothing under- or overflows.
            size = _lengths(V)[:, None]
            size[size == 0] = 1.0
            part = np.empty(V.shape, np.float32)
            _multiply((V / size).astype(np.float32), self._array32, part)
            np.multiply(part, size, out=out)
        else:
            _multiply(V, self._array, out)
        return out if scale is None else out * scale

    def _apply(self, V: Matrix, columns: Positions, single: bool = False) -> Matrix:
        """``(A + mu I) V`` of each system."""
        product = self._product(V, single)
        product *= self._inside[self._part[columns]]
        product += self._shift[columns, None] * V
        return product

    def _largest(self) -> float:
        """The largest eigenvalue from below, by two steps of power iteration; ones are often near the top."""
        v = np.random.default_rng(0).standard_normal((1, self._n)) + 1.0
        for _ in range(2):
            v = self._product(v / _lengths(v)[:, None])
        return float(_lengths(v)[0])

    def _refine(self, preconditioner: _Preconditioner, columns: Positions, limit: int) -> None:
        """Solve some systems, those whose penalties allow it with float32 products inside of a sweep."""
        rough = self._drop(columns) <= _ROUGH
        for part, single in ((columns[rough], True), (columns[~rough], False)):
            self._refine_in(preconditioner, part, limit, single)

    def _drop(self, columns: Positions) -> Vector:
        """The share of a residual down to which float32 products lead; infinite without a float32 matrix."""
        if self._array32 is None:
            return np.full(len(columns), np.inf)
        return np.asarray(_SINGLE_ROUNDINGS * np.sqrt(self._n) * self._top / self._shift[columns])

    def _refine_in(self, preconditioner: _Preconditioner, columns: Positions, limit: int, single: bool) -> None:
        """Sweeps of conjugate gradients, each from the true residual, until all of these are small or do not fall."""
        before = np.full(len(columns), np.inf)
        for _ in range(_SWEEPS):
            if not len(columns):
                return
            self._sweep(preconditioner, columns, limit, single)
            x = self._x[columns]
            residual = self._b[columns] - self._apply(x, columns)
            self._residual[columns] = residual
            error = _lengths(residual)
            aim = np.maximum(self._tol * self._size[columns], _ROUNDINGS * self._norm * _lengths(x))
            self._solved[columns] = error <= aim
            go_on = (error > aim) & (error < 0.5 * before)
            columns, before = columns[go_on], error[go_on]

    def _sweep(self, preconditioner: _Preconditioner, columns: Positions, limit: int, single: bool) -> None:
        """Flexible conjugate gradients from the residual, for all columns until each is at its aim."""
        active = columns
        r = self._residual[active]
        aim = 0.5 * self._tol * self._size[active]
        if single:
            aim = np.maximum(aim, self._drop(active) * _lengths(r))
        z = preconditioner.apply(r, active)
        p, product = z, _inner(z, r)
        for _ in range(limit):
            threads.checkpoint()
            curved = self._apply(p, active, single)
            self._count(active)
            curvature = _inner(p, curved)
            usable = (curvature > 0) & (product > 0)
            length = np.where(usable, product / np.where(usable, curvature, 1.0), 0.0)[:, None]
            self._x[active] += length * p
            new = r - length * curved
            go_on = usable & (_lengths(new) > aim)
            if not go_on.all():
                active, aim, product = active[go_on], aim[go_on], product[go_on]
                r, new, p = r[go_on], new[go_on], p[go_on]
            if not len(active):
                return
            z = preconditioner.apply(new, active)
            # By the change of the residual: a float32 factor is not the same map for each.
            p = z + (_inner(z, new - r) / product)[:, None] * p
            r, product = new, _inner(z, new)

    def _count(self, active: Positions) -> None:
        self._steps[np.unique(self._part[active])] += 1

    def answers(self, seconds: float, peak: int) -> list[PartSolution]:
        """The answers for each part."""
        problem, array = self._problem, self._array
        # A part of a stored matrix would be copied into an array for the sentence alone.
        storage = as_it_is(problem.gram) if array is None else held_whole(array)
        shape = len(problem.parts), len(problem.shifts), problem.targets.shape[1], self._n
        x, residual, solved = self._x.reshape(shape), self._residual.reshape(shape), self._solved.reshape(shape[:3])
        return [
            PartSolution(
                np.ascontiguousarray(x[i][:, :, rows].transpose(0, 2, 1)),
                np.ascontiguousarray(residual[i][:, :, rows].transpose(0, 2, 1)),
                solved[i].all(axis=1),
                int(self._steps[i]),
                seconds,
                peak,
                storage,
            )
            for i, rows in enumerate(problem.parts)
        ]


class _LowRank:
    """Inverses of ``(G^T G)_PP + (mu + d) I`` for the systems of some columns."""

    def __init__(
        self,
        factor: Matrix,
        spread: float,
        inside: Matrix,
        part: Positions,
        shift: Vector,
        columns: Positions,
        norm: float,
    ) -> None:
        self._inside, self._part = inside, part
        self._shift = shift + spread
        # In float32 where its rounding errors are small beside the smallest penalty.
        precision = np.float32 if norm <= _SINGLE * float(self._shift[columns].min()) else np.float64
        self._G = factor.astype(precision)
        self._cores: dict[tuple[int, float], Matrix] = {}
        if not len(factor):
            return
        whole = factor @ factor.T
        squares: dict[int, Matrix] = {}

        def square(number: int) -> None:
            outside = factor[:, inside[number] == 0]
            squares[number] = whole - outside @ outside.T

        numbers = np.unique(part[columns])
        threads.run([partial(square, int(number)) for number in numbers])
        keys = sorted({(int(part[column]), float(self._shift[column])) for column in columns})

        def invert(key: tuple[int, float]) -> None:
            core: AnyArray = np.array(squares[key[0]], dtype=precision, order="F")
            np.fill_diagonal(core, core.diagonal() + precision(key[1]))
            self._cores[key] = scipy.linalg.cho_factor(core, lower=True, overwrite_a=True, check_finite=False)[0]

        threads.run([partial(invert, key) for key in keys])

    def apply(self, R: Matrix, columns: Positions) -> Matrix:
        """The product of each row with the inverse of its system."""
        shift = self._shift[columns, None]
        if not len(self._G):
            return R / shift
        # Of length 1, so that nothing under- or overflows.
        size = _lengths(R)[:, None]
        size[size == 0] = 1.0
        scaled = (R / size).astype(self._G.dtype)
        T = np.empty((len(R), len(self._G)), self._G.dtype)
        _multiply(scaled, self._G.T, T)

        def solve(rows: slice) -> None:
            for i in range(rows.start, rows.stop):
                core = self._cores[int(self._part[columns[i]]), float(shift[i, 0])]
                T[i] = scipy.linalg.cho_solve((core, True), T[i], check_finite=False)

        threads.run([partial(solve, rows) for rows in tiles.spans(len(R), 8)])
        part = np.empty_like(scaled)
        _multiply(T, self._G, part)
        out = R - size * part
        out *= self._inside[self._part[columns]]
        out /= shift
        return out


class _Factors:
    """Inverses of all parts plus ``shift I`` by float32 factors."""

    def __init__(
        self, factors: list[NDArray[Any]], parts: Sequence[Positions], part: Positions, shift: float, start: Vector
    ) -> None:
        self._factors, self._parts, self._part, self._shift = factors, parts, part, shift
        space = Krylov(partial(self._solve_one, 0), start[parts[0]], _LANCZOS, precision=np.float32)
        while not space.is_full:
            space.extend()
        self._top = _MARGIN * float(space.ritz()[0][-1])

    def condition(self, shift: float) -> float:
        """The condition number of a system with another penalty, estimated; for a smaller one, a bound."""
        return 1.0 + (shift - self._shift) * self._top if shift > self._shift else self._shift / shift

    def apply(self, R: Matrix, columns: Positions) -> Matrix:
        """The product of each row with the inverse of its part."""
        out = np.zeros_like(R)
        belongs = self._part[columns]

        def solve(number: int) -> None:
            mine, rows = np.flatnonzero(belongs == number), self._parts[number]
            out[np.ix_(mine, rows)] = self._solve(number, R[np.ix_(mine, rows)])

        threads.run([partial(solve, int(number)) for number in np.unique(belongs)])
        return out

    def _solve(self, number: int, R: Matrix) -> Matrix:
        # Of length 1, so that nothing under- or overflows.
        size = _lengths(R)[:, None]
        size[size == 0] = 1.0
        single = (R / size).astype(np.float32)
        factor = self._factors[number]
        if len(single) > _FEW:
            lapack.solve_cholesky(factor, single)
        else:
            for row in single:
                half = blas.strsv(factor.T, row, lower=1)
                row[:] = blas.strsv(factor.T, half, lower=1, trans=1, overwrite_x=1)
        return np.asarray(single * size)

    def _solve_one(self, number: int, v: Vector) -> Vector:
        return np.asarray(self._solve(number, v[None])[0])


def _multiply(V: AnyArray, M: AnyArray, out: AnyArray) -> None:
    """``V M`` by columns of M, on all threads."""

    def multiply(columns: slice) -> None:
        out[:, columns] = V @ M[:, columns]

    threads.run([partial(multiply, columns) for columns in tiles.spans(M.shape[1], tiles.TILE)])


def _lengths(V: Matrix) -> Vector:
    """The Euclidean length of every row."""
    return np.sqrt(_inner(V, V))


def _inner(V: Matrix, R: Matrix) -> Vector:
    """The inner product of every row of ``V`` with that of ``R``."""
    return np.asarray(np.einsum("ij,ij->i", V, R))
