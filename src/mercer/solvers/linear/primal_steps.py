"""Kernel systems in the space of many sparse features: conjugate gradients, whose steps read each entry once."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.gram.features import FEATURES_STORAGE
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients, lengths
from mercer.solvers.linear.by_steps import solve_by_steps
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState
from mercer.solvers.linear.primal import MOST_SPARSE, ScaledFeatures, explicit_features
from mercer.solvers.solution import Solution, Status

PRIMAL_STEPS = "conjugate gradients on explicit features"
# Sums over parts of the rows, and vectors of the rows.
_SUMS, _VECTORS = 20, 6
# What is left must fall by this share before it is looked at over the rows again.
_LESS = 0.1
# A sweep from the true residual must lower it by half.
_FALL = 0.5


def vector_bytes(n: int, p: int, k: int) -> int:
    """Memory for n rows, p features and k targets beside the features.

    >>> vector_bytes(1000, 100, 1)
    64000
    """
    return 8 * k * (_SUMS * p + _VECTORS * n)


def sparse_features(system: LinearSystem, stack: ExitStack) -> ScaledFeatures | None:
    """Sparse features, at most as many as rows, that are too many for normal equations; None if there are none."""
    n, k = system.shape
    features = explicit_features(system, n, stack, 0) if n > MOST_SPARSE else None
    if features is None or not features.is_sparse or features.shape[1] <= MOST_SPARSE:
        return None
    stack.enter_context(memory.reserve(vector_bytes(n, features.shape[1], k), "the steps on explicit features"))
    return ScaledFeatures(features, system.scaled().scale)


@dataclass(frozen=True)
class PrimalCG:
    r"""Solve :math:`(\Phi^\top \Phi + \mu I) v = \Phi^\top b`, preconditioned with the diagonal.

    Parameters
    ----------
    tol : float, default=1e-6
        The residual of the system over the rows, relative to the targets, at which to stop.
    max_iter : int, default=1000
        The most steps for each shift.
    """

    tol: float = 1e-6
    max_iter: int = 1000

    def solve(
        self, system: LinearSystem, phi: ScaledFeatures, *, n_jobs: int | None = None
    ) -> Solution[Matrix, LinearSystemState]:
        """Return c, (n, k), with the certificate of :func:`mercer.solvers.linear.cholesky.solve`.

        Parameters
        ----------
        system : LinearSystem
            Convex, with shifts above 0.
        phi : ScaledFeatures
            Of :func:`sparse_features`.
        n_jobs : int, optional
            Threads.
        """
        return solve_by_steps(system, lambda unit, _: _Run(self, unit, phi), PRIMAL_STEPS, self.tol, n_jobs)


class _Run:
    """One solution."""

    unit, storage = "steps", FEATURES_STORAGE

    def __init__(self, solver: PrimalCG, system: LinearSystem, phi: ScaledFeatures) -> None:
        self.solver, self.phi, self.steps = solver, phi, 0
        self.squares = phi.features.column_squares(phi.weights)[:, None]
        self.progress = Progress(solver.max_iter * len(system.groups()), "steps on explicit features")

    def remedy(self) -> str:
        return "Raise alpha or tol."

    def columns(self, b: Matrix, shift: float) -> tuple[Matrix, Matrix, Status]:
        """Sweeps from the true residual, until that is small or no longer falls.

        Returns the best answer of each column, which is never worse than zero: that of few steps is, where the shift
        is small, since ``z = (b - Phi v) / mu``.
        """
        aim = self.solver.tol * lengths(b)
        v, before = np.zeros((self.phi.features.shape[1], b.shape[1])), np.inf
        best, least, rho = np.zeros_like(b), b.copy(), self.phi.pull(b)
        limit = self.steps + self.solver.max_iter
        while True:
            v = v + self._sweep(rho, shift, aim, limit)
            z, rho, r = self.phi.residual(v, b, shift)
            error, left = lengths(r), float(lengths(r).max(initial=0.0))
            better = error <= lengths(least)
            best[:, better], least[:, better] = z[:, better], r[:, better]
            if (error <= aim).all():
                return best, least, Status.converged
            if self.steps >= limit:
                return best, least, Status.iteration_limit
            if not left < _FALL * before:
                return best, least, Status.stalled
            before = left

    def _sweep(self, rho: Matrix, shift: float, aim: Matrix, limit: int) -> Matrix:
        """Steps until what is left over the rows, ``Phi rho / mu``, is within the aim."""
        weights, features = self.phi.weights, self.phi.features
        diagonal = self.squares + shift

        def apply(V: Matrix) -> Matrix:
            self.steps += 1
            self.progress.advance()
            return features.curve(V, weights) + shift * V

        search = ConjugateGradients(apply, lambda R: R / diagonal, rho)
        goal = self.solver.tol * lengths(rho)
        while search.advance() and self.steps < limit:
            left = lengths(search.residual)
            if not (left <= goal).all():
                continue
            over_rows = lengths(self.phi @ search.residual) / shift
            if (over_rows <= aim).all():
                break
            goal = left * np.maximum(_LESS, np.minimum(aim / np.where(over_rows > 0, over_rows, 1.0), 1.0))
        return search.x
