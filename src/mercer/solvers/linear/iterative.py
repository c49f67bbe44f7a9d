"""Kernel systems by products: conjugate gradients, preconditioned by a part of low rank, with steps in float32."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import numpy as np

from mercer._errors import DataError, NumericalError
from mercer._types import Matrix, Vector
from mercer.engine import lapack, memory
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.gram.hold import as_it_is
from mercer.gram.pivots import bytes_needed, randomly_pivoted_cholesky
from mercer.gram.protocol import GramMatrix
from mercer.gram.triangle import Triangle, reserve_triangle
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients, Map, lengths
from mercer.solvers.linear.by_steps import solve_by_steps
from mercer.solvers.linear.cholesky import relative
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState, ScaledGram
from mercer.solvers.linear.rank_price import RankPrice
from mercer.solvers.solution import Solution, Status

ITERATIVE = "conjugate gradients"
# The rank is at most sqrt(_RANK n): such a factor takes as long as some 40 products.
_RANK = 400
# The share of the free memory that it may take.
_SHARE = 4
# The cost of a product in operations of products of matrices, for each of the n^2 entries: of one that is stored in
# float32, and of one that is computed in addition to what each column of X takes.
_STORED, _COMPUTED = 10.0, 30.0
# Steps in float32 lower the residual to the first share before it is computed in float64; unless it then is below the
# second one, the next steps are in float64.
_SINGLE, _SINGLE_FALL, _FALL = 1e-3, 0.1, 0.5
_ROUNDINGS = 16
# Where the largest entry of K is outside of these, entries in float32 are too coarse or not finite.
_SMALLEST, _LARGEST = 1e-30, 1e30


def fitting_rank(n: int, *, beside: int = 0) -> int:
    """The largest rank of the preconditioner for n rows: what the time of the solution and the memory budget allow.

    Parameters
    ----------
    n : int
    beside : int, default=0
        Bytes of the budget that something else will take.

    >>> fitting_rank(100)
    100
    """
    return memory.fitting(lambda rank: _SHARE * 8 * n * rank + beside, wanted_rank(n))


def wanted_rank(n: int) -> int:
    """The same with memory without end.

    >>> wanted_rank(1_000_000)
    20000
    """
    return min(n, max(1, int(np.sqrt(_RANK * n))))


def typical_rank(n: int) -> int:
    """About the rank that is taken: its factor takes a third of the time of the steps.

    >>> typical_rank(1_000_000)
    10000
    """
    return max(1, wanted_rank(n) // 2)


def memory_of(n: int, rank: int) -> int:
    """Memory of a typical solution for n rows, in bytes: a factor of that rank at most, and squares for its inverse.

    >>> memory_of(1000, 100) < 8 * 1000**2
    True
    """
    return bytes_needed(n, rank) + _inner_bytes(min(rank, typical_rank(n)))


def _inner_bytes(rank: int) -> int:
    return 3 * 8 * rank**2


@dataclass(frozen=True, eq=False)
class LowRankInverse:
    r"""The inverse of ``R^T R + mu I``, by the identity of Woodbury.

    With :math:`R R^\top + \mu I = L L^\top` it is :math:`(I - R^\top (L L^\top)^{-1} R) / \mu`.
    """

    R: Matrix
    inner: Matrix
    shift: float

    @classmethod
    def of(cls, R: Matrix, square: Matrix, shift: float) -> LowRankInverse:
        """Of a factor R (r, n) and ``square``, whose upper triangle is that of ``R R^T``."""
        inner = np.array(square, order="C")
        inner[np.diag_indices_from(inner)] += shift
        if not np.isfinite(square).all():
            raise NumericalError("the preconditioner of the kernel matrix is not finite. Scale the columns of X.")
        # Positive definite but for rounding, which the trace bounds.
        while lapack.factor_cholesky(trial := inner.copy()):
            inner[np.diag_indices_from(inner)] += np.finfo(float).eps * float(np.trace(square))
        return cls(R, trial, shift)

    def __call__(self, V: Matrix) -> Matrix:
        """The inverse times V, (n, k)."""
        rows = np.ascontiguousarray(lapack.multiply(self.R, np.ascontiguousarray(V)).T)
        lapack.solve_cholesky(self.inner, rows)
        return (V - lapack.multiply(self.R.T, np.ascontiguousarray(rows.T))) / self.shift


@dataclass(frozen=True)
class KernelCG:
    r"""Solve :math:`(K + \mu W^{-1}) c = t` by products with K.

    One triangle of K is kept in float32 where it takes at most half of the free memory; otherwise the entries are
    computed anew for each product. Residuals are those of K in its own precision.

    Parameters
    ----------
    tol : float, default=1e-8
        The residual relative to the targets at which to stop.
    max_iter : int, default=1000
        The most products with K.
    rank : int, optional
        Of the preconditioner, a randomly pivoted Cholesky factor; by default the one that :class:`RankPrice` expects to
        be the fastest, at most :func:`fitting_rank`.
    random_state : int, default=0
        Of its pivots.

    References
    ----------
    M. Díaz, E. Epperly, Z. Frangella, J. Tropp, R. Webber, "Robust, randomized preconditioning for kernel ridge
    regression" (2023).
    """

    tol: float = 1e-8
    max_iter: int = 1000
    rank: int | None = None
    random_state: int = 0

    def solve(self, system: LinearSystem, *, n_jobs: int | None = None) -> Solution[Matrix, LinearSystemState]:
        """Return c, (n, k), with the certificate of :func:`mercer.solvers.linear.cholesky.solve`.

        Parameters
        ----------
        system : LinearSystem
            Convex, with shifts above 0.
        n_jobs : int, optional
            Threads.
        """
        return solve_by_steps(system, partial(_Run, self), ITERATIVE, self.tol, n_jobs)


class _Run:
    """One solution."""

    unit = "products with the kernel matrix"

    def remedy(self) -> str:
        """What the user may do where the residual is too large."""
        n = self.system.shape[0]
        if self.solver.rank is None and wanted_rank(n) > self.rank >= fitting_rank(n):
            return f"Raise alpha, tol or the memory budget, which allows for a preconditioner of rank {self.rank}."
        return "Raise alpha or tol."

    def __init__(self, solver: KernelCG, system: LinearSystem, stack: ExitStack) -> None:
        self.solver, self.system, self.steps = solver, system, 0
        self.gram = system.scaled()
        lazy = _in_single(system.gram)
        # Before the factor, which takes a share of the memory that is left.
        held = stack.enter_context(ExitStack())
        triangle = None if lazy is None else reserve_triangle(system.shape[0], held)
        self.R = self._factor(triangle is not None, stack)
        self.rank = len(self.R)
        stack.enter_context(memory.reserve(_inner_bytes(self.rank), f"the preconditioner of rank {self.rank}"))
        self.square = np.zeros((self.rank, self.rank))
        lapack.add_square_of_rows(self.square, self.R)
        self.single, stored = self._in_single(lazy, triangle)
        if self.single is None:
            # A triangle that is not finite in float32 serves no more.
            held.close()
        self.storage = f"{stored}; preconditioner of rank {self.rank}"
        self.progress = Progress(solver.max_iter, self.unit)

    def _factor(self, is_held: bool, stack: ExitStack) -> Matrix:
        """R with ``SKS`` close to ``R^T R``."""
        system, solver = self.system, self.solver
        n = system.shape[0]
        shifts = np.array([shift for shift, _ in system.groups()])
        each = _STORED if is_held else _COMPUTED + system.gram.width
        enough = RankPrice(n, shifts, solver.tol, each * n * n) if solver.rank is None else None
        rank = fitting_rank(n) if solver.rank is None else solver.rank
        random, weights = np.random.RandomState(solver.random_state), system.weights
        weight = None if weights is None else np.asarray(weights)
        R = randomly_pivoted_cholesky(system.gram, rank, random, stack, weight=weight, enough=enough).factor.T
        if self.gram.scale is not None:
            R *= self.gram.scale
        return R

    def _in_single(self, lazy: GramMatrix | None, triangle: Triangle | None) -> tuple[Map | None, str]:
        """Products with entries in float32, None if they are not cheaper; and where the entries are."""
        stored = self.system.gram.stored_array()
        sentence = "never held" if stored is None else as_it_is(self.system.gram)
        if lazy is None:
            return None, sentence
        if triangle is not None:
            # Entries that are not finite in float32 are not worth another attempt.
            held = f"one triangle held in float32, {memory.describe(triangle.nbytes)}"
            return (_scaled(self.gram, triangle), held) if triangle.evaluate(lazy) else (None, sentence)
        return (None if lazy is self.system.gram or stored is not None else _scaled(self.gram, lazy)), sentence

    def columns(self, b: Matrix, shift: float) -> tuple[Matrix, Matrix, Status]:
        """The answers for one shift: steps in float32 while these lower the true residual, then in float64."""
        # Below the rounding of R its inverse would be noise.
        rounding = _ROUNDINGS * float(np.finfo(float).eps) * float(np.trace(self.square))
        inverse = LowRankInverse.of(self.R, self.square, max(shift, rounding))
        exact = self._shifted(self.gram.__matmul__, shift)
        single = None if self.single is None else self._shifted(self.single, shift)
        size = lengths(b)
        aim, x, r = self.solver.tol * size, np.zeros_like(b), b
        while (lengths(r) > aim).any():
            if self.steps + 2 > self.solver.max_iter:
                return x, r, Status.iteration_limit
            if single is None:
                better = x + self._sweep(exact, inverse, r, aim / 2, size)
            else:
                better = x + self._sweep(single, inverse, r, np.maximum(aim / 2, _SINGLE * lengths(r)), size)
            residual = b - exact(better)
            before, after = (float(relative(each, b).max(initial=0.0)) for each in (r, residual))
            x, r = (better, residual) if after < before else (x, r)
            if not after < before * (_FALL if single is None else _SINGLE_FALL):
                if single is None:
                    return x, r, Status.stalled
                single = None
        return x, r, Status.converged

    def _sweep(self, product: Map, inverse: Map, r: Matrix, goal: Vector, scale: Vector) -> Matrix:
        """Steps from a true residual until it seems at most the goal; ``scale`` has the lengths of the targets."""
        size, length = float(np.abs(r).max()) or 1.0, np.where(scale > 0, scale, 1.0)
        search = ConjugateGradients(product, inverse, r / size)
        with np.errstate(over="ignore", invalid="ignore"):
            while search.advance() and self.steps < self.solver.max_iter - 1:
                error = size * lengths(search.residual)
                record("steps of conjugate gradients", self.steps, {"residual": float((error / length).max())})
                if (error <= goal).all() or not np.isfinite(error).all():
                    break
        return size * search.x

    def _shifted(self, multiply: Map, shift: float) -> Map:
        def product(V: Matrix) -> Matrix:
            self.steps += 1
            self.progress.advance()
            return multiply(V) + shift * V

        return product


def _scaled(gram: ScaledGram, single: GramMatrix | Triangle) -> Map:
    """Products with ``SKS``, within the range of float32 whatever the units of the factor."""

    def product(V: Matrix) -> Matrix:
        V = gram.apply_scale(V)
        size = float(np.abs(V).max(initial=0.0)) or 1.0
        return gram.apply_scale(size * np.asarray(single @ (V / size), dtype=np.float64))

    return product


def _in_single(gram: GramMatrix) -> GramMatrix | None:
    """The same matrix with entries in float32; None if they are stored in float32, or leave its range."""
    if gram.dtype == np.float32:
        return gram if gram.stored_array() is None else None
    # No entry of a positive semi-definite matrix is larger than the largest one on its diagonal.
    largest = float(np.asarray(gram.diagonal()).max(initial=0.0))
    if not _SMALLEST < largest < _LARGEST:
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return gram.astype(np.float32)
    except DataError:
        # Squared distances leave the range of float32.
        return None
