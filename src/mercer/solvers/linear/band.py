"""A symmetric matrix as ``Q B Q^T`` with a band matrix B: what all its shifts ``A + mu I`` have in common."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from mercer.engine.progress import Progress

Matrix = NDArray[np.float64]

# Wider bands reduce faster, since more of the work is in matrix products; every shift then costs more.
WIDTH = 32
# The rest of the matrix is moved together when it has shrunk to this share: BLAS copies what is not contiguous.
_SHRUNK = 0.9
_MOVED_AT_ONCE = 256
# So many reflectors are multiplied together before they are applied to Q, to so many rows at once.
_JOINED = 4
_ROWS = 256


@dataclass(frozen=True, eq=False)
class Reflector:
    """The orthogonal matrix ``I - V T V^T`` on the rows from ``start`` on.

    Parameters
    ----------
    start : int
        Rows before this one stay as they are.
    V : ndarray of shape (n - start, k)
        Householder vectors, unit lower trapezoidal.
    T : ndarray of shape (k, k)
        Upper triangular.
    """

    start: int
    V: Matrix
    T: Matrix

    def apply(self, M: Matrix, *, transposed: bool) -> None:
        """Multiply the rows of ``M`` from ``start`` on in place."""
        rows = M[self.start :]
        rows -= self.V @ ((self.T.T if transposed else self.T) @ (self.V.T @ rows))


@dataclass(frozen=True, eq=False)
class BandForm:
    r"""``A = Q B Q^T``.

    Parameters
    ----------
    band : ndarray of shape (width + 1, n)
        B, symmetric: ``band[k, j]`` is :math:`B_{j+k, j}`, as in LAPACK.
    reflectors : tuple of Reflector
        Q is their product.
    """

    band: Matrix
    reflectors: tuple[Reflector, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Of A."""
        return self.band.shape[1], self.band.shape[1]

    def into(self, V: Matrix) -> Matrix:
        """``Q^T V``."""
        out = V.copy()
        for reflector in self.reflectors:
            reflector.apply(out, transposed=True)
        return out

    def back(self, V: Matrix) -> Matrix:
        """``Q V``."""
        out = V.copy()
        for reflector in reversed(self.reflectors):
            reflector.apply(out, transposed=False)
        return out

    def orthogonal(self, out: Matrix) -> Matrix:
        """Q, whole, in ``out`` of shape (n, n); :math:`4 n^3 / 3` operations."""
        out[...] = 0.0
        np.fill_diagonal(out, 1.0)
        groups = [self.reflectors[i : i + _JOINED] for i in range(0, len(self.reflectors), _JOINED)]
        progress = Progress(len(groups), "orthogonal factor")
        for group in reversed(groups):
            joined = _join(group)
            # Columns before the start are still those of the identity.
            rows = out[joined.start :, joined.start :]
            left, right = joined.V @ joined.T, joined.V.T @ rows
            for begin in range(0, len(rows), _ROWS):
                rows[begin : begin + _ROWS] -= left[begin : begin + _ROWS] @ right
            progress.advance()
        return out


def _join(group: tuple[Reflector, ...]) -> Reflector:
    """The product of neighbouring reflectors as one."""
    start = group[0].start
    n = start + len(group[0].V)
    V, T = group[0].V, group[0].T
    for nxt in group[1:]:
        padded = np.zeros((n - start, nxt.V.shape[1]))
        padded[nxt.start - start :] = nxt.V
        corner = -T @ (V.T @ padded) @ nxt.T
        T = np.block([[T, corner], [np.zeros((len(nxt.T), len(T))), nxt.T]])
        V = np.hstack([V, padded])
    return Reflector(start, V, T)


def reduce_to_band(matrix: Matrix, width: int = WIDTH) -> BandForm:
    r"""Reduce a symmetric matrix to a band by Householder reflections from both sides.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), float64, C-ordered
        The whole matrix; overwritten.
    width : int, default=32
        Diagonals of B below the main one.

    Returns
    -------
    BandForm

    Notes
    -----
    :math:`4 n^3 / 3` operations, as for a tridiagonal form, but all of them products of matrices, where half of
    LAPACK's ``sytrd`` are products with a vector, bound by the speed of the memory. Keeps :math:`4 n^2` bytes for Q.

    References
    ----------
    C. Bischof, B. Lang and X. Sun, "A framework for symmetric band reduction", ACM Trans. Math. Softw. 26 (2000),
    581-601; R. Schreiber and C. Van Loan, "A storage-efficient WY representation for products of Householder
    transformations", SIAM J. Sci. Stat. Comput. 10 (1989), 53-57.

    Examples
    --------
    >>> import numpy as np
    >>> A = np.array([[2.0, 3.0, 4.0], [3.0, 1.0, 0.0], [4.0, 0.0, 1.0]])
    >>> form = reduce_to_band(A.copy(), width=1)
    >>> form.band.round(12).tolist()
    [[2.0, 1.0, 1.0], [-5.0, 0.0, 0.0]]
    >>> Q = form.back(np.eye(3))
    >>> (Q.T @ A @ Q).round(12)[1, 0]
    np.float64(-5.0)
    """
    n = len(matrix)
    width = max(1, min(width, n - 1))
    band = np.zeros((width + 1, n))
    reflectors: list[Reflector] = []
    rest = _Rest(matrix)
    progress = Progress(-(-n // width), "band reduction")
    for start in range(0, n, width):
        columns = rest.take(min(width, n - start))
        _write_triangle(band, start, columns[: columns.shape[1]])
        if start + width >= n:
            break
        V, T, R = _factor(columns[width:])
        _write_upper(band, start, width, R)
        reflectors.append(Reflector(start + width, V, T))
        rest.turn(V, T)
        progress.advance()
    return BandForm(band, tuple(reflectors))


class _Rest:
    """The part of the matrix that is not reduced yet: its lower triangle, within a contiguous square.

    BLAS takes contiguous arrays only, so that each step works on the whole square, with zeros for what is reduced;
    the square is made smaller, in the same memory, when a tenth of it is.
    """

    def __init__(self, matrix: Matrix) -> None:
        self._memory = matrix.reshape(-1)
        # LAPACK's columns are NumPy's rows.
        self._square = matrix.T
        self._done = 0

    def take(self, count: int) -> Matrix:
        """Copy the next columns, from the diagonal on, and count them as done."""
        begin, self._done = self._done, self._done + count
        return np.array(self._square[begin:, begin : self._done], order="F")

    def turn(self, V: Matrix, T: Matrix) -> None:
        r"""``M <- H^T M H`` with ``H = I - V T V^T``, as ``M - V W^T - W V^T``."""
        left = len(self._square) - self._done
        if left <= _SHRUNK * len(self._square):
            self._shrink(left)
        padding = ((self._done, 0), (0, 0))
        padded = np.asfortranarray(np.pad(V, padding))
        product = blas.dsymm(1.0, self._square, padded, lower=1)[self._done :] @ T
        W = product - 0.5 * V @ (T.T @ (V.T @ product))
        other = np.asfortranarray(np.pad(W, padding))
        blas.dsyr2k(-1.0, padded, other, beta=1.0, c=self._square, lower=1, overwrite_c=1)

    def _shrink(self, left: int) -> None:
        """Move what is left to the front of the memory; never over what has yet to be moved."""
        part = self._square[self._done :, self._done :]
        for begin in range(0, left, _MOVED_AT_ONCE):
            moved = np.array(part[:, begin : begin + _MOVED_AT_ONCE], order="F").reshape(-1, order="F")
            self._memory[begin * left : begin * left + moved.size] = moved
        self._square = self._memory[: left * left].reshape(left, left).T
        self._done = 0


def _factor(panel: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """``panel = (I - V T V^T)[:, :k] R``: V, T and the upper trapezoidal R."""
    k = min(panel.shape)
    factored, T, _ = lapack.dgeqrt(k, panel)
    R = np.triu(factored[:k])
    V = np.tril(factored[:, :k], -1)
    np.fill_diagonal(V, 1.0)
    return V, np.triu(T[:k, :k]), R


def _write_triangle(band: Matrix, start: int, block: Matrix) -> None:
    """The lower triangle of a block on the diagonal."""
    rows, columns = np.tril_indices(len(block))
    band[rows - columns, start + columns] = block[rows, columns]


def _write_upper(band: Matrix, start: int, width: int, R: Matrix) -> None:
    """The upper trapezoid ``width`` rows below the diagonal."""
    rows, columns = np.triu_indices(R.shape[0], m=R.shape[1])
    band[width + rows - columns, start + columns] = R[rows, columns]
