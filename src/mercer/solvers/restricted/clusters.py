"""An approximate Hessian of a restricted problem from the landmarks alone, each in place of the rows closest to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer._types import Array, Matrix, Vector
from mercer.engine import lapack, threads
from mercer.engine.tiles import scratch, spans
from mercer.gram.protocol import GramMatrix
from mercer.solvers.restricted.whitening import Whitening

# Steps more than with a sample of 2 m rows were 2 to 50. At 20, times are equal where m^2 is the sum of the two terms:
# a stored value is read in the time of 8 multiplications in products of matrices, an entry of a triangle in that of 65,
# and a value that is computed from a row of few numbers takes the time of 25.
_STEPS, _READS, _TRIANGLES, _EVALUATIONS = 20, 8, 65, 25
# How many rows for each landmark are assigned to them at most, and how many of them by one task.
ENOUGH, _STRIP = 20, 256
# Other random numbers than those by which landmarks are drawn, with the same seed: a sample that contains the landmarks
# does not represent the rows around them.
_STREAM = 1


def are_cheaper(n: int, m: int, width: float | None = None) -> bool:
    """Whether a sample of rows takes longer than the further steps that landmarks in its place cost.

    Parameters
    ----------
    n, m : int
        Rows and landmarks.
    width : float, optional
        How many numbers of a row a kernel value is computed from in each step; None if values are stored.

    Examples
    --------
    >>> are_cheaper(16_500, 5000), are_cheaper(100_000, 1000)
    (True, False)
    >>> are_cheaper(100_000, 10_000, width=10), are_cheaper(100_000, 10_000, width=784)
    (True, False)
    """
    reads = _READS if width is None else _EVALUATIONS + width / 2
    return m * m > _STEPS * (reads * n + _TRIANGLES * m)


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
    targets : ndarray of shape (m, k)
        Sums of the weighted targets of the rows.

    References
    ----------
    K. Zhang, J. Kwok, "Clustered Nyström method for large scale manifold learning and dimension reduction" (2010), for
    centres weighted by the sizes of their clusters.

    Examples
    --------
    >>> from mercer.gram.precomputed import PrecomputedGram
    >>> white = Whitening.of(np.eye(2))
    >>> values = np.array([[1.0, 0.2], [0.3, 0.9], [0.0, 1.0]])
    >>> gram, targets = PrecomputedGram(values, symmetric=False), np.array([[5.0], [6.0], [7.0]])
    >>> clusters = Clusters.of(gram, np.ones(3), targets, white)
    >>> clusters.weights.tolist(), np.triu(clusters.factor(2.0)).round(3).diagonal().tolist()
    ([1.0, 2.0], [1.732, 2.0])
    >>> clusters.targets.tolist()
    [[5.0], [13.0]]
    """

    white: Whitening
    weights: Vector
    targets: Matrix

    @classmethod
    def of(
        cls,
        gram: GramMatrix,
        row_weights: Vector,
        row_targets: Matrix,
        white: Whitening,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> Clusters:
        """Assign rows to landmarks: all of them, or a uniform sample of 20 for each landmark.

        Parameters
        ----------
        gram : GramMatrix
            Kernel values of n rows and m landmarks.
        row_weights : ndarray of shape (n,)
        row_targets : ndarray of shape (n, k)
        white : Whitening
        seed : int, default=0
            Of the sample.
        n_jobs : int, optional
        """
        n, m = gram.shape
        weights, targets = row_weights, row_targets
        if n > ENOUGH * m:
            chosen = np.sort(np.random.RandomState([_STREAM, seed]).choice(n, ENOUGH * m, replace=False))
            gram, weights, targets = gram.restrict(chosen), weights[chosen] * (n / (ENOUGH * m)), targets[chosen]
        nearest = _nearest(gram, white.diagonal(), n_jobs)
        sums = [np.bincount(nearest, weights=column, minlength=m) for column in (weights, *(weights * targets.T))]
        return cls(white, sums[0].astype(np.float64), np.column_stack(sums[1:]).astype(np.float64))

    # Each row only by its landmark.
    has_all_rows = False

    def products(self) -> Matrix:
        """The estimated ``Phi^T W T`` of the targets T, (m, k)."""
        return self.white.coordinates(self.targets)

    def factor(self, penalty: float) -> Matrix:
        """The Cholesky factor of ``L^T diag(c) L + penalty I``, (m, m), in the upper triangle.

        It is computed in float32, in half of the time, where its rounding is below the penalty.

        Raises
        ------
        NumericalError
            If the matrix is singular to working precision.
        """
        m = len(self.weights)
        size, single = float(self.weights @ self.white.diagonal()), np.finfo(np.float32)
        room = np.empty((m, m))
        half = room.reshape(-1).view(np.float32)[: m * m].reshape(m, m)
        fits = single.eps * size < penalty and size < single.max / 2
        if fits and self._factor_into(half, penalty):
            return _widened(half, room)
        if not self._factor_into(room, penalty):
            raise NumericalError(
                f"the system for {m} landmarks with alpha={penalty:g} is singular to working precision. Raise alpha."
            )
        return room

    def _factor_into(self, H: Array, penalty: float) -> bool:
        """Write the factor to an array, in its precision; False if the matrix is singular in that."""
        # The columns of the upper triangle are the rows of L.
        np.multiply(self.white.factor, np.sqrt(self.weights), out=H, casting="same_kind")
        lapack.square_triangle(H)
        H[np.diag_indices_from(H)] += penalty
        return not lapack.factor_cholesky(H)


def _widened(H: Array, room: Matrix) -> Matrix:
    """Copy H, which lies in the first half of the memory of a larger type, to all of it: the last rows first."""
    stop = len(H)
    while stop:
        start = (stop + 1) // 2 if stop > 1 else 0
        room[start:stop] = H[start:stop]
        stop = start
    return room


def _nearest(gram: GramMatrix, diagonal: Vector, n_jobs: int | None) -> NDArray[np.intp]:
    """The landmark z with the largest ``2 k(x, z) - k(z, z)`` for each row x."""
    n, m = gram.shape
    dtype = np.dtype(gram.dtype)
    stored = gram.stored_as(dtype)
    half = (0.5 * diagonal).astype(dtype)
    labels = np.empty(n, dtype=np.intp)

    def work(rows: slice) -> Callable[[], None]:
        def run() -> None:
            threads.checkpoint()
            with scratch((rows.stop - rows.start, m), dtype) as closeness, np.errstate(over="ignore", invalid="ignore"):
                if stored is None:
                    gram.fill(rows, slice(0, m), closeness)
                    closeness -= half
                else:
                    np.subtract(stored[rows], half, out=closeness)
                np.argmax(closeness, axis=1, out=labels[rows])

        return run

    threads.run([work(rows) for rows in spans(n, _STRIP)], n_jobs)
    return labels
