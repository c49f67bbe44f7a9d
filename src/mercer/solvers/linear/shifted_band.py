"""One shift of a matrix in band form: its Cholesky factor, and the parts of its inverse that are needed."""

from __future__ import annotations

from functools import cached_property, partial

import numpy as np
from scipy.linalg import lapack

from mercer._types import Matrix, Vector
from mercer.engine import threads, tiles
from mercer.solvers.linear.band import BandForm

# This many columns of Q^T at once: with the blocks that go with them they stay in a core's cache.
_COLUMNS = 384
# From this many right-hand sides on, substitution goes by blocks; LAPACK solves for one column after the other.
_MANY = 16
# A Q of fewer entries is not worth a second thread.
_ALONE = 256 * 256


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
        # Many small steps, here and below, for which BLAS starts threads that cost more than they save.
        with threads.one_blas_thread():
            self._factor, info = lapack.dpbtrf(band, lower=1, overwrite_ab=1)
        pivots = self._factor[0]
        self.regular = info == 0 and bool(np.isfinite(pivots).all()) and float(pivots.min()) ** 2 > floor

    @property
    def log_determinant(self) -> float:
        """Of ``A + shift I``."""
        return 2.0 * float(np.log(self._factor[0]).sum())

    def solve(self, V: Matrix) -> Matrix:
        """``(B + shift I)^-1 V``, for V of shape (n, k); the bits are the same for any number of threads."""
        if V.shape[1] < _MANY:
            with threads.one_blas_thread():
                return np.asarray(lapack.dpbtrs(self._factor, V, lower=1)[0])
        forward, (inverses, couplings) = self._steps, self._blocks
        backward = [np.hstack([d.T, -(c @ d).T]) for d, c in zip(inverses, couplings)] + [inverses[-1].T]
        out = np.empty(V.shape)

        def part(columns: slice) -> None:
            out[:, columns] = _substituted(forward, backward, V[:, columns])

        parts = [partial(part, columns) for columns in tiles.spans(V.shape[1], _COLUMNS)]
        threads.run(parts, 1 if V.size < _ALONE else None)
        return out

    @cached_property
    def inverse_trace(self) -> float:
        """Of the inverse, from its blocks on the diagonal, the last one first."""
        below = np.zeros((0, 0))
        total = 0.0
        inverses, couplings = self._blocks
        with threads.one_blas_thread():
            for inverse, coupling in zip(reversed(inverses), [None, *reversed(couplings)]):
                block = inverse.T @ inverse
                if coupling is not None:
                    step = coupling @ inverse
                    block += step.T @ below @ step
                total += float(block.trace())
                below = block
        return total

    def inverse_diagonal(self, Q: Matrix, n_jobs: int | None = None) -> Vector:
        """The diagonal of ``(A + shift I)^-1``: squared lengths of the columns of ``L^-1 Q^T``.

        About ``4 n^2`` operations for every diagonal of the band, in the precision of Q. It is read by columns: an
        F-ordered one is faster. The bits are the same for any number of threads.
        """
        steps = [step.astype(Q.dtype, copy=False) for step in self._steps]
        out = np.empty(len(Q))

        def part(columns: slice) -> None:
            out[columns] = _squared_lengths(steps, Q.T[:, columns])

        threads.run(
            [partial(part, columns) for columns in tiles.spans(len(Q), _COLUMNS)], 1 if Q.size < _ALONE else n_jobs
        )
        return out

    @cached_property
    def _steps(self) -> list[Matrix]:
        """Rows of ``L^-1 V`` by blocks: each from the one before and from its part of V, in one product."""
        inverses, couplings = self._blocks
        with threads.one_blas_thread():
            return [inverses[0], *(np.hstack([-d @ c, d]) for c, d in zip(couplings, inverses[1:]))]

    @cached_property
    def _blocks(self) -> tuple[list[Matrix], list[Matrix]]:
        """L by blocks of the width of the band: inverses of those on the diagonal, and those below them."""
        n, width = self._factor.shape[1], max(1, self._factor.shape[0] - 1)
        starts = np.arange(0, n, width)
        # Beyond the end an identity, so that all blocks are of one size.
        whole = np.zeros((len(self._factor), len(starts) * width))
        whole[:, :n], whole[0, n:] = self._factor, 1.0
        r, c = np.tril_indices(width)
        blocks = np.zeros((len(starts), width, width))
        # LAPACK's columns are NumPy's rows.
        blocks[:, c, r] = whole[r - c, starts[:, None] + c]
        sizes = np.minimum(width, n - starts)
        with threads.one_blas_thread():
            inverses = [
                np.asarray(lapack.dtrtri(block.T, lower=1, overwrite_c=1)[0])[:size, :size]
                for block, size in zip(blocks, sizes)
            ]
        r, c = np.triu_indices(width)
        couplings = np.zeros((len(starts) - 1, width, width))
        if len(self._factor) > 1:
            couplings[:, r, c] = whole[width + r - c, starts[:-1, None] + c]
        return inverses, [block[:size] for block, size in zip(couplings, sizes[1:])]


def _substituted(forward: list[Matrix], backward: list[Matrix], V: Matrix) -> Matrix:
    """``(L L^T)^-1 V`` by the steps of both substitutions; a block and its neighbour are one part of the array."""
    out = V.copy(order="C")
    width = len(forward[0])
    for number, step in enumerate(forward):
        begin = width * number
        out[begin : begin + width] = step @ out[max(begin - width, 0) : begin + width]
    for number in reversed(range(len(backward))):
        begin = width * number
        out[begin : begin + width] = backward[number] @ out[begin : begin + 2 * width]
    return out


def _squared_lengths(steps: list[Matrix], Q: Matrix) -> Vector:
    """Of the columns of Y, by blocks of rows: each is its step times the one before over the same rows of Q."""
    width, columns = len(steps[0]), Q.shape[1]
    # One is read while the other is written; without one before, the first step is narrower.
    pair, other = np.empty((2, 2 * width, columns), Q.dtype)
    squares, total = np.empty((width, columns), Q.dtype), np.zeros((width, columns))
    for number, step in enumerate(steps):
        begin, size = (width if number else 0), len(step)
        pair[begin : begin + size] = Q[number * width : number * width + size]
        block = np.matmul(step, pair[: begin + size], out=other[:size])
        np.multiply(block, block, out=squares[:size])
        total[:size] += squares[:size]
        pair, other = other, pair
    return np.asarray(total.sum(axis=0))
