"""One shift of a matrix in band form: its Cholesky factor, and what of its inverse is asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mercer.solvers.linear.band import BandForm

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

# So many rows of Q at once: with two blocks of the band's width they stay in a core's cache.
_ROWS = 512


class ShiftedBand:
    """``B + shift I = L L^T``.

    Parameters
    ----------
    form : BandForm
        ``A = Q B Q^T``, of size n.
    shift : float
    floor : float, default=0.0
        Squares on the diagonal of L up to here are rounding errors: the matrix is then not regular.

    Attributes
    ----------
    regular : bool
        Whether ``A + shift I`` is positive definite to working precision; without that, nothing else is defined.

    Examples
    --------
    >>> from mercer.solvers.linear.band import reduce_to_band
    >>> A = np.array([[3.0, 1.0], [1.0, 3.0]])
    >>> form = reduce_to_band(A.copy())
    >>> shifted = ShiftedBand(form, 1.0)
    >>> shifted.regular, round(float(np.exp(shifted.log_determinant)), 9), round(shifted.inverse_trace, 9)
    (True, 15.0, 0.533333333)
    >>> shifted.inverse_diagonal(form.orthogonal(np.empty((2, 2)))).round(9).tolist()
    [0.266666667, 0.266666667]
    """

    def __init__(self, form: BandForm, shift: float, floor: float = 0.0) -> None:
        band = form.band.copy()
        band[0] += shift
        self._factor, info = lapack.dpbtrf(band, lower=1, overwrite_ab=1)
        pivots = self._factor[0]
        self.regular = info == 0 and bool(np.isfinite(pivots).all()) and float(pivots.min()) ** 2 > floor

    @property
    def log_determinant(self) -> float:
        """Of ``A + shift I``."""
        return 2.0 * float(np.log(self._factor[0]).sum())

    def solve(self, V: Matrix) -> Matrix:
        """``(B + shift I)^-1 V``, for V of shape (n, k)."""
        return np.asarray(lapack.dpbtrs(self._factor, V, lower=1)[0])

    @cached_property
    def inverse_trace(self) -> float:
        """Of the inverse, from its blocks on the diagonal, the last one first."""
        below = np.zeros((0, 0))
        total = 0.0
        for inverse, coupling in zip(reversed(self._blocks[0]), [None, *reversed(self._blocks[1])]):
            block = inverse.T @ inverse
            if coupling is not None:
                step = coupling @ inverse
                block += step.T @ below @ step
            total += float(np.trace(block))
            below = block
        return total

    def inverse_diagonal(self, Q: Matrix) -> Vector:
        """The diagonal of ``(A + shift I)^-1``: squared lengths of the columns of ``L^-1 Q^T``.

        About ``4 n^2`` operations for every diagonal of the band.
        """
        inverses, couplings = self._blocks
        n, width = len(Q), inverses[0].shape[0]
        # Columns of L^-1 Q^T by blocks: each from the one before and from its part of Q, in one product.
        steps = [np.vstack([-c.T @ d.T, d.T]) for c, d in zip(couplings, inverses[1:])]
        out = np.empty(n)
        for start in range(0, n, _ROWS):
            rows = Q[start : start + _ROWS]
            # One is read while the other is written.
            pair, other = np.empty((2, len(rows), 2 * width))
            block = np.matmul(rows[:, :width], inverses[0].T, out=pair[:, :width])
            total = np.einsum("ij,ij->i", block, block)
            for number, step in enumerate(steps, start=1):
                own = rows[:, number * width : (number + 1) * width]
                pair[:, width : width + own.shape[1]] = own
                block = np.matmul(pair[:, : len(step)], step, out=other[:, : step.shape[1]])
                total += np.einsum("ij,ij->i", block, block)
                pair, other = other, pair
            out[start : start + _ROWS] = total
        return out

    @cached_property
    def _blocks(self) -> tuple[list[Matrix], list[Matrix]]:
        """L by blocks of the width of the band: inverses of those on the diagonal, and those below them."""
        n, width = self._factor.shape[1], max(1, self._factor.shape[0] - 1)
        low, up = np.tril_indices(width), np.triu_indices(width)
        inverses, couplings = [], []
        for start in range(0, n, width):
            size = min(width, n - start)
            r, c = low if size == width else np.tril_indices(size)
            block = np.zeros((size, size), order="F")
            block[r, c] = self._factor[r - c, start + c]
            inverses.append(np.asarray(lapack.dtrtri(block, lower=1, overwrite_c=1)[0]))
            size = min(width, n - start - width)
            if size > 0:
                r, c = up if size == width else np.triu_indices(size, m=width)
                block = np.zeros((size, width))
                block[r, c] = self._factor[width + r - c, start + c]
                couplings.append(block)
        return inverses, couplings
