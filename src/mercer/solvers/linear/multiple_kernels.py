r"""Ridge regression with a weighted sum of kernels: weights and penalties of each target by exact leave-one-out.

.. math:: \Bigl( \sum_m \gamma_m K_m + \mu W^{-1} \Bigr) c = t

One reduction of the weighted sum serves all targets and penalties (:class:`PenaltyPath`), so that candidates for the
weights are compared by exact leave-one-out errors for thousands of targets at once. Each target keeps the best
candidate: the random search of T. Dupre la Tour, M. Eickenberg, A. O. Nunez-Elizalde and J. L. Gallant, "Feature-space
selection with banded ridge regression", NeuroImage 264 (2022), with leave-one-out in the place of folds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Array, Matrix, Positions, Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.engine.tiles import Fill, scratch, spans
from mercer.gram.hold import reserve_square
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.protocol import GramMatrix
from mercer.solvers.algebra.conjugate_gradients import lengths
from mercer.solvers.linear.cholesky import MIXED_FROM
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.linear.penalty_curves import LOWEST, TIE, best_of, default_penalties, trace
from mercer.solvers.linear.penalty_path import PenaltyPath, TooRough
from mercer.solvers.solution import Certificate, Solution, Status


@dataclass(frozen=True, eq=False)
class KernelSum:
    """The matrices of the terms of a sum of kernels over n rows, each kept whole in float64.

    Parameters
    ----------
    terms : sequence of ndarray of shape (n, n)
    """

    terms: Sequence[Matrix]

    @classmethod
    def of(cls, grams: Sequence[GramMatrix], stack: ExitStack) -> KernelSum:
        """Evaluate the terms; their memory stays reserved until the stack is closed."""
        terms = []
        for gram in grams:
            n = gram.shape[0]
            reserve_square(stack, n, 8, f"the kernel matrices of {len(grams)} terms, each in float64,")
            matrix = np.empty((n, n))
            gram.block(None, None, matrix)
            terms.append(matrix)
        return cls(terms)

    @property
    def n(self) -> int:
        return len(self.terms[0])

    @property
    def size(self) -> int:
        """The number of logarithms of weights that a search is over."""
        return len(self.terms)

    def scales(self, weights: Vector) -> Vector:
        """The weighted mean of the diagonal of each term, and 1 where it is not positive."""
        means = np.array([float(np.average(term.diagonal(), weights=weights)) for term in self.terms])
        return np.where(means > 0, means, 1.0)

    def weighted(self, weights: Vector, out: Array) -> Array:
        """``sum_m weights_m K_m``, into ``out``."""
        for rows in spans(self.n, 64):
            out[rows] = 0.0
            with scratch(out[rows].shape, out.dtype) as part:
                for weight, term in zip(weights, self.terms, strict=True):
                    if weight:
                        np.multiply(term[rows], weight, out=part)
                        out[rows] += part
        return out

    def matrix(self, theta: Vector, out: Array) -> None:
        """The weighted sum as a covariance of a search: theta holds the logarithms of the weights."""
        self.weighted(np.asarray(np.exp(theta), dtype=np.float64), out)

    def pullback(self, theta: Vector, weigh: Fill) -> Array:
        """``sum_ij w_ij dK_ij / d theta`` for symmetric weights, given by tiles on the diagonal and above."""
        slopes = np.zeros(self.size)
        for rows in spans(self.n):
            for columns in spans(self.n):
                if columns.start < rows.start:
                    continue
                threads.checkpoint()
                tile = np.empty((rows.stop - rows.start, columns.stop - columns.start))
                weigh(rows, columns, tile)
                twice = 2.0 if columns.start > rows.start else 1.0
                slopes += twice * np.array([np.vdot(tile, term[rows, columns]) for term in self.terms])
        return np.asarray(slopes * np.exp(theta))


@dataclass(frozen=True, eq=False)
class WeightedSolutions:
    """Coefficients (n, t), weights (m, t), penalties (t,) and mean squared leave-one-out errors (t,) of the targets."""

    coefficients: Matrix
    weights: Matrix
    penalties: Vector
    errors: Vector


@dataclass(frozen=True)
class CandidateSearch:
    """Compares candidates for the weights of the kernels, for each target or for all together.

    Parameters
    ----------
    apart : bool
        Whether each target has its own weights and penalty; else the sum of their errors decides.
    penalties : tuple of float, optional
        To choose from; None for one a decade, from 1e-9 to 10 times the trace of the weighted sum.
    n_jobs : int, optional

    Examples
    --------
    >>> t = np.array([[1.0], [2.0], [2.5], [1.5]])
    >>> terms = KernelSum([np.eye(4), t @ t.T])
    >>> solution = CandidateSearch(True, (0.1,)).solve(terms, t, np.ones(4), np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> solution.value.weights.ravel().tolist()
    [0.0, 1.0]
    """

    apart: bool
    penalties: tuple[float, ...] | None = None
    n_jobs: int | None = None

    def solve(
        self, terms: KernelSum, targets: Matrix, weights: Vector, candidates: Matrix, *, convex: bool = True
    ) -> Solution[WeightedSolutions, None]:
        """Solve for all candidates (c, m), and keep the best of each target.

        Raises
        ------
        ParameterError
            If the matrix is singular to working precision for all candidates and penalties.
        MemoryBudgetError
            If a matrix does not fit the memory budget.
        """
        start_time = time.perf_counter()
        n, t = targets.shape
        best = WeightedSolutions(np.zeros((n, t)), np.zeros((terms.size, t)), np.zeros(t), np.full(t, np.inf))
        progress = Progress(len(candidates), "weights of kernels")
        with memory.track() as account, ExitStack() as stack, threads.workers(self.n_jobs):
            reserve_square(stack, n, 8, "the weighted sum of the kernel matrices")
            mixed = np.empty((n, n))
            for candidate in candidates:
                threads.checkpoint()
                gram = PrecomputedGram(terms.weighted(candidate, mixed), symmetric=True, finite=True)
                system = LinearSystem(gram, targets, np.zeros(t), weights, convex)
                self._improve(best, candidate, system)
                progress.advance()
            if not np.isfinite(best.errors).all():
                raise ParameterError(
                    "no weights can be chosen: for none of the candidates and penalties is the sum of the kernel "
                    "matrices plus alpha on its diagonal positive definite to working precision. Give larger alphas."
                )
            certificate = _certified(terms, targets, weights, best, mixed, convex)
        seconds = time.perf_counter() - start_time
        certificate = replace(certificate, iterations=len(candidates), seconds=seconds, peak_bytes=account.peak)
        return Solution(best, certificate.status, certificate, None)

    def _improve(self, best: WeightedSolutions, candidate: Vector, system: LinearSystem) -> None:
        """Keep what a candidate does better."""
        size = float(np.abs(system.scaled().diagonal()).sum())
        least = LOWEST * size if self.penalties is None else min(self.penalties)
        if system.convex and system.shape[0] >= MIXED_FROM and least > 0:
            with suppress(TooRough), ExitStack() as stack:
                self._try(best, candidate, system, stack, least)
                return
        with ExitStack() as stack:
            self._try(best, candidate, system, stack, 0.0)

    def _try(
        self, best: WeightedSolutions, candidate: Vector, system: LinearSystem, stack: ExitStack, single_for: float
    ) -> None:
        path = PenaltyPath(system, stack, single_rows=True, n_jobs=self.n_jobs, single_for=single_for)
        penalties = default_penalties(path.size)[::2] if self.penalties is None else np.array(self.penalties)
        curves = trace(path, penalties)
        errors = np.asarray(curves.loo)
        t = errors.shape[1]
        if self.apart:
            chosen = np.array([best_of(column, TIE, 0.0) for column in errors.T])
        else:
            chosen = np.full(t, best_of(errors.sum(axis=1), TIE, 0.0))
        losses = errors[chosen, np.arange(t)]
        better = np.flatnonzero(losses < best.errors)
        if not self.apart:
            better = np.arange(t) if losses.sum() < best.errors.sum() else better[:0]
        better = better[np.isfinite(losses[better])]
        if not len(better):
            return
        shifts = curves.alphas[chosen[better]]
        (solution,) = path.of_targets(better).solutions(shifts[None])
        best.coefficients[:, better] = solution.value
        best.weights[:, better] = candidate[:, None]
        best.penalties[better], best.errors[better] = shifts, losses[better]


def _certified(
    terms: KernelSum, targets: Matrix, weights: Vector, best: WeightedSolutions, mixed: Matrix, convex: bool
) -> Certificate:
    """The objectives, summed over the targets, and the largest relative residual of their systems."""
    primal, dual, worst = 0.0, 0.0, 0.0
    root = np.sqrt(weights)[:, None]
    for columns in groups_of_equal(best.weights):
        gram = PrecomputedGram(terms.weighted(best.weights[:, columns[0]], mixed), symmetric=True, finite=True)
        shifts = best.penalties[columns]
        system = LinearSystem(gram, targets[:, columns], shifts, weights, convex)
        z = best.coefficients[:, columns] / root
        b = root * targets[:, columns]
        residual = b - system.scaled() @ z - shifts * z
        primal_part, dual_part = system.objectives(z, residual)
        primal, dual = primal + primal_part, dual + dual_part
        sizes = lengths(b)
        relative = np.divide(lengths(residual), sizes, out=np.zeros(len(columns)), where=sizes > 0)
        worst = max(worst, float(relative.max()))
    status = Status.direct if convex else Status.stationary
    storage = "the matrices of the terms whole in float64"
    return Certificate(primal, dual, worst, 0, 0.0, 0, status, convex=convex, storage=storage)


def groups_of_equal(weights: Matrix) -> list[Positions]:
    """The columns of a matrix by equal values.

    Examples
    --------
    >>> [group.tolist() for group in groups_of_equal(np.array([[1.0, 0.0, 1.0]]))]
    [[1], [0, 2]]
    """
    _, which = np.unique(weights, axis=1, return_inverse=True)
    which = np.ravel(which)
    return [np.flatnonzero(which == group) for group in range(int(which.max()) + 1)]
