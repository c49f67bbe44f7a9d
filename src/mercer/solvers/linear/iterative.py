"""Kernel systems beyond memory: conjugate gradients on the lazy matrix, preconditioned by a part of low rank."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._types import Matrix, Vector
from mercer.engine import lapack, memory, threads
from mercer.engine.progress import Progress
from mercer.gram.pivots import bytes_needed, randomly_pivoted_cholesky
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients, Map, lengths
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState, ScaledGram
from mercer.solvers.solution import Certificate, Solution, Status

ITERATIVE = "conjugate gradients"
# A factor of rank r takes n r^2 operations, and a product about 30 n^2: this rank takes as long as some ten products.
_RANK = 100
# The share of the free memory that it may take.
_SHARE = 4
# Steps in float32 end when they have lowered the residual to the first share; unless the true one then is below the
# second, the next ones are in float64.
_SINGLE, _SINGLE_FALL, _FALL = 1e-3, 0.1, 0.5
_ROUNDINGS = 16


def fitting_rank(n: int) -> int:
    """The rank of the preconditioner for n rows: what the time of the solution and the memory budget allow.

    >>> fitting_rank(100)
    100
    """
    return memory.fitting(lambda rank: _SHARE * 8 * n * rank, wanted_rank(n))


def wanted_rank(n: int) -> int:
    """The same with memory without end.

    >>> wanted_rank(1_000_000)
    10000
    """
    return min(n, max(1, int(np.sqrt(_RANK * n))))


def memory_of(n: int, rank: int) -> int:
    """Memory of a solution for n rows, in bytes: the factor of that rank, and the squares for its inverse.

    >>> memory_of(1000, 100) < 8 * 1000**2
    True
    """
    return bytes_needed(n, rank) + _inner_bytes(rank)


def _inner_bytes(rank: int) -> int:
    return 3 * 8 * rank**2


@dataclass(frozen=True, eq=False)
class LowRankInverse:
    r"""The inverse of ``F F^T + mu I``, by the identity of Woodbury.

    With :math:`F^\top F + \mu I = L L^\top` it is :math:`(I - F (L L^\top)^{-1} F^\top) / \mu`.
    """

    F: Matrix
    inner: Matrix
    shift: float

    @classmethod
    def of(cls, F: Matrix, square: Matrix, shift: float) -> LowRankInverse:
        """Of a factor F (n, r) and ``square``, which is ``F^T F``."""
        inner = np.array(square, order="C")
        inner[np.diag_indices_from(inner)] += shift
        # Positive definite but for rounding, which the trace bounds.
        while lapack.factor_cholesky(trial := inner.copy()):
            inner[np.diag_indices_from(inner)] += np.finfo(float).eps * float(np.trace(square))
        return cls(F, trial, shift)

    def __call__(self, V: Matrix) -> Matrix:
        """The inverse times V, (n, k)."""
        rows = np.ascontiguousarray((self.F.T @ V).T)
        lapack.solve_cholesky(self.inner, rows)
        return (V - lapack.multiply(self.F, np.ascontiguousarray(rows.T))) / self.shift


@dataclass(frozen=True)
class KernelCG:
    r"""Solve :math:`(K + \mu W^{-1}) c = t` by products with K, whose entries are computed anew for each of them.

    Parameters
    ----------
    tol : float, default=1e-8
        The residual relative to the targets at which to stop.
    max_iter : int, default=1000
        The most products with K.
    rank : int, optional
        Of the preconditioner, a randomly pivoted Cholesky factor; by default what :func:`fitting_rank` says.
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
        start_time = time.perf_counter()
        with memory.track() as account, threads.workers(n_jobs), ExitStack() as stack:
            run = _Run(self, system, stack)
            z, residual, status = run.solve()
        b = system.scaled().apply_scale(np.asarray(system.targets))
        relative = _relative(residual, b)
        if status is not Status.converged:
            warn_user(
                f"conjugate gradients ended with a relative residual of {relative:.1e} after {run.steps} products with "
                f"the kernel matrix, above tol = {self.tol:g}. Raise alpha or tol, or the memory budget, which allows "
                f"for a preconditioner of rank {run.rank}.",
                MercerWarning,
            )
        primal, dual = system.objectives(z, residual)
        seconds = time.perf_counter() - start_time
        sentence = f"never held; preconditioner of rank {run.rank}"
        certificate = Certificate(primal, dual, relative, run.steps, seconds, account.peak, status, storage=sentence)
        return Solution(system.scaled().apply_scale(z), status, certificate, LinearSystemState(ITERATIVE, relative))


class _Run:
    """One solution; the columns with one shift are solved together."""

    def __init__(self, solver: KernelCG, system: LinearSystem, stack: ExitStack) -> None:
        self.solver, self.system, self.steps = solver, system, 0
        self.gram = system.scaled()
        n = system.shape[0]
        self.single = _single(self.gram)
        rank = fitting_rank(n) if solver.rank is None else solver.rank
        pivoted = randomly_pivoted_cholesky(system.gram, rank, np.random.RandomState(solver.random_state), stack)
        F = pivoted.factor
        self.F = F if self.gram.scale is None else self.gram.scale[:, None] * F
        self.rank = F.shape[1]
        stack.enter_context(memory.reserve(_inner_bytes(self.rank), f"the preconditioner of rank {self.rank}"))
        self.square = np.asarray(lapack.multiply(np.ascontiguousarray(self.F.T), self.F))
        self.progress = Progress(solver.max_iter, "products with the kernel matrix")

    def solve(self) -> tuple[Matrix, Matrix, Status]:
        b = self.gram.apply_scale(np.asarray(self.system.targets))
        z, residual = np.zeros_like(b), b.copy()
        status = Status.converged
        for shift, columns in self.system.groups():
            z[:, columns], residual[:, columns], own = self._columns(b[:, columns], shift)
            status = own if own is not Status.converged else status
        return z, residual, status

    def _columns(self, b: Matrix, shift: float) -> tuple[Matrix, Matrix, Status]:
        """The answers for one shift: steps in float32 from the true residual while these lower it."""
        # Below the rounding of F its inverse would be noise.
        rounding = _ROUNDINGS * float(np.finfo(float).eps) * float(np.trace(self.square))
        inverse = LowRankInverse.of(self.F, self.square, max(shift, rounding))
        x, r, single = np.zeros_like(b), b, self.single
        aim = self.solver.tol * lengths(b)
        while (lengths(r) > aim).any():
            if self.steps + 2 > self.solver.max_iter:
                return x, r, Status.iteration_limit
            gram, goal = (self.gram, aim / 2) if single is None else (single, np.maximum(aim / 2, _SINGLE * lengths(r)))
            better = x + self._sweep(gram, shift, inverse, r, goal)
            residual = b - self._product(self.gram, shift)(better)
            before, after = lengths(r).max(), lengths(residual).max()
            if not after < before * (_FALL if single is None else _SINGLE_FALL):
                if single is None:
                    return (better, residual, Status.stalled) if after < before else (x, r, Status.stalled)
                single = None
                if not after < before:
                    continue
            x, r = better, residual
        return x, r, Status.converged

    def _sweep(self, gram: ScaledGram, shift: float, inverse: Map, r: Matrix, goal: Vector) -> Matrix:
        size = float(np.abs(r).max()) or 1.0
        search = ConjugateGradients(self._product(gram, shift), inverse, r / size)
        while search.advance() and self.steps < self.solver.max_iter - 1:
            error = size * lengths(search.residual)
            if (error <= goal).all() or not np.isfinite(error).all():
                break
        return size * search.x

    def _product(self, gram: ScaledGram, shift: float) -> Map:
        def product(V: Matrix) -> Matrix:
            self.steps += 1
            self.progress.advance()
            return gram @ V + shift * V

        return product


def _single(gram: ScaledGram) -> ScaledGram | None:
    """The same matrix with entries in float32; None where this is not cheaper."""
    if gram.gram.dtype == np.float32 or gram.gram.stored_array() is not None:
        return None
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return replace(gram, gram=gram.gram.astype(np.float32))
    except DataError:
        # Squared distances leave the range of float32.
        return None


def _relative(residual: Matrix, b: Matrix) -> float:
    size = lengths(b)
    return float(np.where(size > 0, lengths(residual) / np.where(size > 0, size, 1.0), 0.0).max(initial=0.0))
