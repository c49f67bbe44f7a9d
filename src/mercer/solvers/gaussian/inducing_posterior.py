r"""Predictions of a Gaussian process over landmarks for new rows: means, variances and covariances.

In the symbols of :mod:`mercer.solvers.gaussian.inducing`, with ``F = k(x, Z) L^-T`` and ``A = G G^T``

    mean      k(x, Z) beta
    variance  k(x, x) - |F|^2 + |G^-1 F^T|^2

(Titsias (2009), equation 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Matrix, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats
from mercer.engine import lapack, memory, threads
from mercer.engine.tiles import spans
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.solvers.gaussian.inducing import Projected

# New rows that are worked on at once; fewer where the memory budget has no room for that many.
_ROWS, _FEWEST = 2048, 16


@dataclass(frozen=True, eq=False)
class InducingFactors:
    """The triangular factors of predictions.

    Parameters
    ----------
    landmarks : ndarray of shape (m, m)
        ``L`` transposed, for the kernel matrix of the landmarks: the upper triangle of an array.
    system : ndarray of shape (s, s)
        The same for the matrix A of their system, where s is m times the number of functions that are solved for
        together: 1 for regression.
    """

    landmarks: Matrix
    system: Matrix
    _fitted: ClassVar[Fitted] = Fitted(
        {"landmarks": Floats("m, m"), "system": Floats("s, s")},
        rules=(
            (
                "a factor has a number that is not positive on its diagonal",
                lambda f: bool((f.landmarks.diagonal() > 0).all() and (f.system.diagonal() > 0).all()),
            ),
        ),
    )

    @classmethod
    def of(cls, projected: Projected) -> InducingFactors:
        """The factors of a solved system."""
        return cls(np.triu(projected.white.factor), np.triu(projected.factor))


@dataclass(frozen=True, eq=False)
class InducingPosterior:
    """A Gaussian process given its rows, by landmarks.

    Parameters
    ----------
    factors : InducingFactors
    alpha : ndarray of shape (m, t)
        The coefficients of the landmarks.
    """

    factors: InducingFactors
    alpha: Matrix

    def mean(self, cross: GramMatrix, H: Matrix | None = None) -> Matrix:
        """Means (s, t) in new rows; ``cross`` are their kernel values with the landmarks, (s, m).

        H is that of :class:`~mercer.solvers.gaussian.posterior.Posterior`, and not used: the mean function is 0.
        """
        return np.asarray(cross @ self.alpha, dtype=np.float64)

    def moments(
        self, cross: GramMatrix, prior: Vector, H: Matrix | None = None, *, n_jobs: int | None = None
    ) -> tuple[Matrix, Vector]:
        """Means (s, t) and variances (s,) in new rows, whose variances before any row was seen are ``prior``.

        Raises
        ------
        MemoryBudgetError
            If not even a few rows fit the memory budget.
        """
        count, m = cross.shape
        step = max(capacity(2 * 8 * m, _ROWS, parts=2), _FEWEST)
        mean, variance = np.empty((count, self.alpha.shape[1])), np.empty(count)
        with (
            memory.reserve(2 * 8 * m * min(step, count), f"kernel values of {step} new rows at a time"),
            threads.workers(n_jobs),
        ):
            for rows in spans(count, step):
                threads.checkpoint()
                K = self._block(cross, rows)
                mean[rows] = lapack.multiply(K, self.alpha)
                F, G = self._coordinates(K)
                variance[rows] = np.maximum(prior[rows] - np.einsum("ij,ij->i", F, F), 0.0)
                variance[rows] += np.einsum("ij,ij->i", G, G)
        return mean, variance

    def covariance(self, cross: GramMatrix, prior: Matrix, H: Matrix | None = None) -> tuple[Matrix, Matrix]:
        """Means (s, t) and covariances (s, s) of new rows; ``prior`` is overwritten by the latter."""
        count, m = cross.shape
        with memory.reserve(2 * 8 * count * m, f"kernel values of {count} new rows with {m} landmarks"):
            K = self._block(cross, slice(0, count))
            mean = lapack.multiply(K, self.alpha)
            F, G = self._coordinates(K)
            prior -= lapack.multiply(F, F.T)
            prior += lapack.multiply(G, G.T)
        diagonal = np.einsum("ii->i", prior)
        np.maximum(diagonal, 0.0, out=diagonal)
        return mean, prior

    def _block(self, cross: GramMatrix, rows: slice) -> Matrix:
        block = np.empty((rows.stop - rows.start, cross.shape[1]))
        cross.block(rows, None, out=block)
        return block

    def _coordinates(self, K: Matrix) -> tuple[Matrix, Matrix]:
        """``F``, in the place of K, and ``F G^-T``."""
        lapack.solve_triangle(self.factors.landmarks, K)
        inner = K.copy()
        lapack.solve_triangle(self.factors.system, inner)
        return K, inner
