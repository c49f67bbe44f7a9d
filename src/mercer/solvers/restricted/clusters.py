"""An approximate Hessian of a restricted problem from the landmarks alone, each in place of the rows closest to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack, memory, threads
from mercer.engine.tiles import scratch, spans
from mercer.solvers.restricted.whitening import Whitening

# Steps more than with a sample of 2 m rows were 14 to 50. At 20, times are equal where m^2 is the sum of the two terms:
# a stored value is read in the time of 8 multiplications in products of matrices, an entry of a triangle in that of 65.
_STEPS, _READS, _TRIANGLES = 20, 8, 65
# Rows that one task assigns to landmarks.
_STRIP = 256


def are_cheaper(n: int, m: int) -> bool:
    """Whether a sample of rows takes longer than the further steps that landmarks in its place cost.

    >>> are_cheaper(16_500, 5000), are_cheaper(100_000, 1000)
    (True, False)
    """
    return m * m > _STEPS * (_READS * n + _TRIANGLES * m)


@dataclass(frozen=True, eq=False)
class Clusters:
    r"""Landmarks with the weight of the rows that are closest to each in feature space.

    With :math:`K_{mm} = L L^\top`, the rows of L are the coordinates of the landmarks. So
    :math:`L^\top \operatorname{diag}(c) L` estimates :math:`\Phi^\top W \Phi` in :math:`m^3 / 3` operations, where 2 m
    other rows take :math:`4 m^3`.

    Parameters
    ----------
    white : Whitening
        Of the m landmarks.
    weights : ndarray of shape (m,)
        c, the sums of the weights of the rows.

    References
    ----------
    K. Zhang, J. Kwok, "Clustered Nyström method for large scale manifold learning and dimension reduction" (2010), for
    centres weighted by the sizes of their clusters.

    Examples
    --------
    >>> white = Whitening.of(np.eye(2))
    >>> clusters = Clusters.of(np.array([[1.0, 0.2], [0.3, 0.9], [0.0, 1.0]]), np.ones(3), white)
    >>> clusters.weights.tolist(), np.triu(clusters.factor(2.0)).round(3).diagonal().tolist()
    ([1.0, 2.0], [1.732, 2.0])
    """

    white: Whitening
    weights: Vector

    @classmethod
    def of(cls, K: Array, row_weights: Vector, white: Whitening, n_jobs: int | None = None) -> Clusters:
        """Assign each row to a landmark.

        Parameters
        ----------
        K : ndarray of shape (n, m)
            Kernel values of rows and landmarks.
        row_weights : ndarray of shape (n,)
        white : Whitening
        n_jobs : int, optional
        """
        nearest = _nearest(K, white.diagonal(), n_jobs)
        return cls(white, np.bincount(nearest, weights=row_weights, minlength=K.shape[1]).astype(np.float64))

    def factor(self, penalty: float) -> Matrix:
        """The Cholesky factor of ``L^T diag(c) L + penalty I``, (m, m), in the upper triangle.

        It is computed in float32, in half of the time, where its rounding is below the penalty.

        Raises
        ------
        NumericalError
            If the matrix is singular to working precision.
        """
        size, single = float(self.weights @ self.white.diagonal()), np.finfo(np.float32)
        if single.eps * size < penalty and size < single.max / 2:
            with memory.reserve(4 * len(self.weights) ** 2, "the estimated Hessian in float32"):
                factor = self._factored(np.float32, penalty)
                if factor is not None:
                    return factor.astype(np.float64)
        factor = self._factored(np.float64, penalty)
        if factor is None:
            raise NumericalError(
                f"the system for {len(self.weights)} landmarks with alpha={penalty:g} is singular to working "
                "precision. Raise alpha."
            )
        return factor

    def _factored(self, dtype: type[np.floating], penalty: float) -> Matrix | None:
        """The factor in one precision; None if the matrix is singular in it."""
        # The columns of the upper triangle are the rows of L.
        H = np.multiply(self.white.factor, np.sqrt(self.weights), dtype=dtype, casting="same_kind")
        lapack.square_triangle(H)
        H[np.diag_indices_from(H)] += penalty
        return None if lapack.factor_cholesky(H) else H


def _nearest(K: Array, diagonal: Vector, n_jobs: int | None) -> NDArray[np.intp]:
    """The landmark z with the largest ``2 k(x, z) - k(z, z)`` for each row x."""
    n, m = K.shape
    half = (0.5 * diagonal).astype(K.dtype)
    found = np.empty(n, dtype=np.intp)

    def work(rows: slice) -> Callable[[], None]:
        def run() -> None:
            with scratch((rows.stop - rows.start, m), K.dtype) as closeness, np.errstate(invalid="ignore"):
                np.subtract(K[rows], half, out=closeness)
                np.argmax(closeness, axis=1, out=found[rows])

        return run

    threads.run([work(rows) for rows in spans(n, _STRIP)], n_jobs)
    return found
