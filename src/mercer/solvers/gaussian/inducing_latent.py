r"""What latent functions over landmarks are in new rows: means, variances and covariances between classes.

In the symbols of :mod:`mercer.solvers.gaussian.inducing_mode`, with ``F = k(x, Z) L^-T`` and ``A = G G^T``, the latent
value of class j has the mean ``k(x, Z) beta_j``, and those of j and l have the covariance

    [j = l] (k(x, x) - |F|^2) + (e_j (x) F) A^-1 (e_l (x) F)^T

The first part is what the landmarks leave of the prior variance, and the second what the labels leave of the rest.
With Gaussian noise this would be the posterior of DTC, the deterministic training conditional (Quiñonero-Candela and
Rasmussen, "A unifying view of sparse approximate Gaussian process regression", JMLR 6, 2005, section 5). Both parts are
at least 0, and with all rows as landmarks the sum is that of the exact process.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import lapack, memory
from mercer.solvers.gaussian.inducing_posterior import InducingFactors


@dataclass(frozen=True, eq=False)
class InducingLatent:
    """The posterior of latent functions over landmarks.

    Parameters
    ----------
    weights : ndarray of shape (m, c)
        The coefficients of the landmarks, beta.
    factors : InducingFactors
        Whose system A is of shape (c m, c m).
    """

    weights: Matrix
    factors: InducingFactors

    @property
    def classes(self) -> int:
        """Latent values a row."""
        return self.weights.shape[1]

    @property
    def copies(self) -> int:
        """Arrays of the size of a block of kernel values that its covariances take, with the block."""
        return 2 if self.classes == 1 else 1 + self.classes * (self.classes + 1) // 2

    def mean(self, block: Matrix) -> Matrix:
        """Means, (s, c), for the kernel values of new rows and landmarks, (s, m)."""
        return np.asarray(block @ self.weights)

    def variance(self, block: Matrix, prior: Vector) -> Vector:
        """Variances, (s,), of the one latent value; ``block`` is overwritten, and ``prior`` (s,) is ``k(x, x)``."""
        left = self._left(block, prior)
        lapack.solve_triangle(self.factors.system, block)
        return left + np.einsum("ij,ij->i", block, block)

    def covariance(self, block: Matrix, prior: Vector) -> Matrix:
        """Covariances of the latent values of all classes, (s, c, c); ``block`` is overwritten."""
        left, (s, m), c = self._left(block, prior), block.shape, self.classes
        out = np.zeros((s, c, c))
        # A copy of the part of the factor without the first class is the largest; the parts are among the copies.
        with memory.reserve(8 * ((c - 1) * m) ** 2, f"the factor of {c} classes over {m} landmarks"):
            parts = self._parts(block)
        for j in range(c):
            for i in range(j + 1):
                shared = parts[i][:, (j - i) * m :]
                out[:, i, j] = out[:, j, i] = np.einsum("ij,ij->i", shared, parts[j])
            out[:, j, j] += left
        return out

    def _parts(self, block: Matrix) -> list[Matrix]:
        """``G^-1 (e_j (x) F)^T`` of each class, from where it is not 0."""
        (s, m), c, parts = block.shape, self.classes, []
        for j in range(c):
            # All before the rows of class j is 0.
            rows = np.zeros((s, (c - j) * m))
            rows[:, :m] = block
            lapack.solve_triangle(np.ascontiguousarray(self.factors.system[j * m :, j * m :]), rows)
            parts.append(rows)
        return parts

    def _left(self, block: Matrix, prior: Vector) -> Vector:
        """What the landmarks leave of the variances; ``F`` comes in the place of the kernel values."""
        lapack.solve_triangle(self.factors.landmarks, block)
        return np.maximum(prior - np.einsum("ij,ij->i", block, block), 0.0)
