"""Means and variances of the latent values in new rows, from an approximation to the posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import lapack


@dataclass(frozen=True, eq=False)
class LatentPosterior:
    """What predictions need; see :class:`mercer.solvers.gaussian.classification.Approximation`.

    Parameters
    ----------
    weights, root : ndarray of shape (n, c)
    factor : ndarray of shape (n, n), or (c + 1, n, n) for several classes
    """

    weights: Matrix
    root: Matrix
    factor: Matrix

    @property
    def classes(self) -> int:
        """Latent values a row."""
        return self.weights.shape[1]

    @property
    def copies(self) -> int:
        """Arrays of the size of a block of kernel values that its covariances take, with the block."""
        return 1 if self.classes == 1 else self.classes + 1

    def mean(self, block: Matrix) -> Matrix:
        """Means, (m, c), for the kernel values of new and training rows, (m, n)."""
        return np.asarray(block @ self.weights)

    def variance(self, block: Matrix, prior: Vector) -> Vector:
        """Variances, (m,), of the one latent value; ``block`` (m, n) is overwritten, ``prior`` (m,) is ``k(x, x)``."""
        block *= self.root[:, 0]
        # The factor is lower triangular in Fortran's order, which is how LAPACK reads the transpose in C's.
        lapack.solve_triangle(np.ascontiguousarray(self.factor.T), block)
        return np.maximum(prior - np.einsum("ij,ij->i", block, block), 0.0)

    def covariance(self, block: Matrix, prior: Vector) -> Matrix:
        """Covariances of the latent values of all classes, (m, c, c)."""
        m, c = len(block), self.classes
        parts = np.empty((c, *block.shape))
        out = np.zeros((m, c, c))
        for j in range(c):
            np.matmul(block, self.factor[j], out=parts[j])
            out[:, j, j] = prior - np.einsum("ij,ij->i", block, parts[j])
            lapack.solve_triangle(self.factor[-1], parts[j])
        return out + np.einsum("jik,lik->ijl", parts, parts, optimize=True)
