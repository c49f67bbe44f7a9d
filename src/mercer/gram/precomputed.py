"""A kernel matrix that the user computed, with the interface of the lazy one."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.sparse.linalg import LinearOperator, aslinearoperator

from mercer._errors import DataError
from mercer._types import Array, Positions
from mercer.engine import arrays, lapack, threads, tiles
from mercer.gram.array_interface import ArrayInterface
from mercer.gram.operator import as_index, check_factor
from mercer.kernels.inputs import Index
from mercer.loops.picked import is_finite, pick_entries
from mercer.loops.symmetry import has_wider_gap, widest_gap

# Rows and columns of the squares in the search for the worst asymmetry.
_SIDE = 256
# Up to this many entries are compared in this thread, in a millisecond, which is not worth waking another thread.
_ALONE = 2**22
# The fewest rows of a strip that is copied for a product.
_FEWEST = 16
# Products with at least this share of the columns of a stored matrix of at least this many, and with at most this many
# vectors, read its whole rows: they are copied, or read as they lie, faster than some of their entries are picked.
_MOST_OF_IT, _WIDE, _FEW_VECTORS = 0.5, 512, 4


def _as_matrix(K: Any) -> Array:
    """``K`` as a matrix of float32 or float64."""
    array = np.asarray(K)
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise DataError(
            f"a precomputed kernel matrix must be a two-dimensional array of real numbers, but is {type(K).__name__} "
            f"of {array.dtype} and shape {np.shape(K)}."
        )
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def check_square(K: Any, name: str = "K") -> Array:
    """Return ``K`` as a square, finite and symmetric array.

    Raises
    ------
    DataError
        If it is not; the message gives the worst asymmetry and its position.
    """
    array = _as_matrix(K)
    if array.shape[0] != array.shape[1]:
        raise DataError(
            f"a precomputed {name} must be square, k(x_i, x_j) for all training rows, but has shape {array.shape}."
        )
    if array.size == 0:
        raise DataError(f"the precomputed {name} is empty: its shape is {array.shape}.")
    # For a positive semi-definite matrix, the largest entry is on the diagonal; for others, all entries are read.
    worst, i, j, finite = _survey(array, _rounding(array.diagonal()))
    if not finite:
        i, j = np.argwhere(~np.isfinite(array))[0]
        raise DataError(f"the precomputed {name} has {array[i, j]} at [{i}, {j}]; every entry must be finite.")
    if worst > _rounding(array.diagonal()) and worst > _rounding(array):
        raise DataError(
            f"the precomputed {name} is not symmetric: {name}[{i}, {j}] = {array[i, j]:.6g} and "
            f"{name}[{j}, {i}] = {array[j, i]:.6g}; pass ({name} + {name}.T) / 2 to use the symmetric part."
        )
    return array


def _rounding(K: Array) -> float:
    """The largest allowed difference of entries that should be equal."""
    return 1e3 * float(np.finfo(K.dtype).eps) * max(abs(float(K.max())), abs(float(K.min())), np.finfo(float).tiny)


def symmetric_once_centred(K: Array) -> Array:
    r"""Return ``(K + K.T) / 2`` if centring removes the asymmetry of ``K`` (n, n), else ``K`` itself.

    This is so if :math:`K_{ij} - K_{ji} = a_i - a_j` for some vector a; both matrices are then equal once centred.

    Examples
    --------
    >>> symmetric_once_centred(np.array([[1.0, 2.0], [3.0, 40.0]])).tolist()
    [[1.0, 2.5], [2.5, 40.0]]
    """
    square = K.ndim == 2 and K.shape[0] == K.shape[1] > 0
    # Matrices that are not square or finite raise an error later, in their check.
    if not square or not np.isfinite(K).all() or worst_asymmetry(K)[0] <= _rounding(K):
        return K
    difference = K - K.T
    a = difference.mean(axis=1)
    difference -= a[:, None] - a
    return (K + K.T) / 2 if np.abs(difference).max() <= _rounding(K) else K


def worst_asymmetry(K: Array) -> tuple[float, int, int]:
    """Return the largest ``|K_ij - K_ji|`` and its position, by tiles, without a second matrix."""
    return _survey(K)[:3]


def _survey(K: Array, allowed: float = 0.0) -> tuple[float, int, int, bool]:
    """Return the worst asymmetry (0 if it is at most ``allowed``), where it is, and whether all entries are finite."""
    if K.flags.f_contiguous and not K.flags.c_contiguous:
        # Its columns are contiguous; the order within a pair of entries does not matter.
        return _survey(K.T, allowed)
    strips = tiles.spans(len(K), _SIDE)
    results = [(0.0, 0, 0, True)] * len(strips)

    def look(number: int) -> None:
        rows = strips[number]
        threads.checkpoint()
        # Most matrices are symmetric up to rounding, which one pass over both triangles shows.
        if not has_wider_gap(K, rows.start, rows.stop, rows.start, len(K), allowed):
            return
        for columns in strips[number:]:
            threads.checkpoint()
            worst, row, column, before = results[number]
            bounds = rows.start, rows.stop, columns.start, columns.stop
            if not has_wider_gap(K, *bounds, worst):
                continue
            with tiles.scratch((columns.stop - columns.start, rows.stop - rows.start), K.dtype) as mirrored:
                # Copy by whole cache lines; read in the other order, every entry would need its own line.
                mirrored[...] = K[columns, rows]
                gap, i, j = widest_gap(K[rows, columns], mirrored)
                finite = is_finite(K[rows, columns]) and is_finite(mirrored)
            if gap > worst:
                worst, row, column = gap, rows.start + i, columns.start + j
            results[number] = worst, row, column, before and finite

    threads.run([partial(look, number) for number in range(len(strips))], 1 if K.size <= _ALONE else None)
    # The first of equally large ones.
    worst, i, j, _ = max(results, key=itemgetter(0), default=(0.0, 0, 0, True))
    return worst, i, j, all(finite for *_, finite in results)


class PrecomputedGram(ArrayInterface):
    """A matrix with the interface of :class:`mercer.gram.Gram`.

    A submatrix (``restrict``) and another precision (``astype``) are lazy: entries are taken from the given matrix on
    demand.

    Parameters
    ----------
    K : array-like of shape (n, m)
        The entries.
    symmetric : bool, default=True
        Whether K is the matrix of rows with themselves.
    finite : bool, default=False
        Whether all entries are known to be finite.

    Examples
    --------
    >>> import numpy as np
    >>> PrecomputedGram(np.eye(2)).rows([1]).tolist()
    [[0.0, 1.0]]
    """

    def __init__(self, K: Any, *, symmetric: bool = True, finite: bool = False) -> None:
        self._whole = _as_matrix(K)
        self._known_finite = finite
        self._begin(slice(0, self._whole.shape[0]), slice(0, self._whole.shape[1]), self._whole.dtype, symmetric)

    def _begin(self, rows: Index, columns: Index, dtype: np.dtype, symmetric: bool) -> None:
        self._rows, self._columns, self.symmetric = rows, columns, symmetric
        self.dtype = np.dtype(dtype)
        self.n_jobs: int | None = None
        self._matrix: Array | None = None

    def _part(self, rows: Index, columns: Index, dtype: np.dtype, symmetric: bool) -> PrecomputedGram:
        part = PrecomputedGram.__new__(PrecomputedGram)
        part._whole, part._known_finite = self._whole, self._known_finite
        part._begin(rows, columns, dtype, symmetric)
        part.n_jobs = self.n_jobs
        return part

    @property
    def matrix(self) -> Array:
        """The entries as an array: the given one if possible, else a copy, which is kept."""
        if self._matrix is None:
            whole, rows, columns = self._whole, self._rows, self._columns
            if isinstance(rows, slice) and isinstance(columns, slice) and self.dtype == whole.dtype:
                self._matrix = whole[rows, columns]
            else:
                self._matrix = self.dense()
        return self._matrix

    @property
    def shape(self) -> tuple[int, int]:
        return _length(self._rows), _length(self._columns)

    @property
    def nbytes(self) -> int:
        """Size of the whole matrix in bytes."""
        return self.shape[0] * self.shape[1] * self.dtype.itemsize

    @property
    def tile(self) -> int:
        """Rows and columns of a tile."""
        return tiles.TILE

    @property
    def cheap(self) -> bool:
        """False: picking an entry of a part takes as long as reading it from a stored row."""
        return False

    @property
    def expensive(self) -> bool:
        """False: the entries are already stored."""
        return False

    @property
    def width(self) -> float:
        """0: the entries are already stored."""
        return 0.0

    def explicit_features(self, most: int, most_dense: int | None = None) -> None:
        """None: they are not known.

        Parameters
        ----------
        most : int
        most_dense : int, optional
        """

    def leading(self) -> None:
        """None: no matrix is cheaper."""

    def __matmul__(self, V: Any) -> Array:
        V = check_factor(V, self.shape[1])
        if V.dtype == self.dtype and self._is_at_hand:
            return lapack.multiply(self.matrix, V)
        if self._takes_most_of_rows(V):
            return self._by_whole_rows(V)
        # By strips, because NumPy would copy the whole matrix in the other precision.
        out = np.empty((self.shape[0], *V.shape[1:]), np.result_type(self.dtype, V.dtype))

        def multiply(rows: slice) -> None:
            with tiles.scratch((rows.stop - rows.start, self.shape[1]), self.dtype) as strip:
                self.fill(rows, slice(0, self.shape[1]), strip)
                out[rows] = strip @ V

        # Strips of no more entries than a tile: each thread keeps its work array.
        step = max(tiles.TILE**2 // max(self.shape[1], 1), _FEWEST)
        threads.run([partial(multiply, rows) for rows in tiles.spans(self.shape[0], step)], self.n_jobs)
        return out

    def _takes_most_of_rows(self, V: Array) -> bool:
        """Whether a product takes most of the entries of stored rows, all of which are finite."""
        whole = self._whole
        return (
            self._known_finite
            and (V.ndim == 1 or V.shape[1] <= _FEW_VECTORS)
            and not isinstance(self._columns, slice)
            and self.shape[1] >= _MOST_OF_IT * whole.shape[1] >= _MOST_OF_IT * _WIDE
            and V.dtype == self.dtype == whole.dtype
            and whole.flags.c_contiguous
        )

    def _by_whole_rows(self, V: Array) -> Array:
        """``K V`` with zeros for the columns that this part lacks."""
        whole = self._whole
        weights = np.zeros((whole.shape[1], *V.shape[1:]), V.dtype)
        # A column may be there twice.
        np.add.at(weights, np.asarray(self._columns), V)
        out = np.empty((self.shape[0], *V.shape[1:]), V.dtype)

        def multiply(rows: slice) -> None:
            at = _picked(self._rows, rows)
            if isinstance(at, slice):
                np.matmul(whole[at], weights, out=out[rows])
                return
            with tiles.scratch((len(at), whole.shape[1]), whole.dtype) as strip:
                # The positions are valid; in its usual mode NumPy would make another copy.
                np.take(whole, at, axis=0, out=strip, mode="clip")
                np.matmul(strip, weights, out=out[rows])

        step = max(tiles.TILE**2 // max(whole.shape[1], 1), _FEWEST)
        threads.run([partial(multiply, rows) for rows in tiles.spans(self.shape[0], step)], self.n_jobs)
        return out

    @property
    def _is_at_hand(self) -> bool:
        """Whether its entries are already in an array."""
        picked = not (isinstance(self._rows, slice) and isinstance(self._columns, slice))
        return self._matrix is not None or not (picked or self.dtype != self._whole.dtype)

    def dense(self, out: Array | None = None) -> Array:
        """Return a copy of the matrix.

        Parameters
        ----------
        out : ndarray of shape (n, m), optional
            Written to and returned.

        Returns
        -------
        ndarray of shape (n, m)
        """
        if out is None:
            out = arrays.empty(self.shape, self.dtype)
        if out.shape != self.shape:
            raise DataError(f"out has shape {out.shape}, but the matrix has shape {self.shape}.")
        place = out

        def copy(rows: slice) -> None:
            self.fill(rows, slice(0, self.shape[1]), place[rows])

        threads.run([partial(copy, rows) for rows in tiles.spans(self.shape[0], _SIDE)], self.n_jobs)
        return out

    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array:
        """Return the submatrix at some rows and columns.

        Parameters
        ----------
        rows, columns : slice or array-like of int, optional
            Positions; None for all.
        out : ndarray, optional
            Written to and returned.

        Returns
        -------
        ndarray of shape (len(rows), len(columns))
        """
        return self.restrict(rows, columns).dense(out)

    def fill(self, rows: slice | np.ndarray, columns: slice, out: Array) -> None:
        """Write the submatrix at some rows and columns into an array.

        In this thread.

        Parameters
        ----------
        rows, columns : slice or ndarray of int
        out : ndarray of shape (len(rows), len(columns))
        """
        left, right = _picked(self._rows, rows), _picked(self._columns, columns)
        if isinstance(right, slice):
            # Entries that overflow another precision become infinite, which solvers check.
            with np.errstate(over="ignore"):
                out[...] = self._whole[left, right]
        else:
            at = np.arange(left.start, left.stop) if isinstance(left, slice) else left
            pick_entries(self._whole, at, right, out)

    def rows(self, index: Any) -> Array:
        """Return whole rows.

        Parameters
        ----------
        index : slice or array-like of int
            Their positions.

        Returns
        -------
        ndarray of shape (len(index), m)
        """
        return self.block(index, None)

    def restrict(self, rows: Any = None, columns: Any = None) -> PrecomputedGram:
        """Return the lazy submatrix at some rows and columns; entries are copied only on demand.

        Parameters
        ----------
        rows, columns : slice or array-like of int, optional
            Positions; None for all. The submatrix is symmetric if both are the same object.

        Returns
        -------
        PrecomputedGram
        """
        left = _picked(self._rows, as_index(rows, self.shape[0], "row positions"))
        same = self.symmetric and rows is columns
        right = left if same else _picked(self._columns, as_index(columns, self.shape[1], "column positions"))
        return self._part(left, right, self.dtype, same)

    def diagonal(self) -> Array:
        """Return ``K_ii`` in float64."""
        if not self.symmetric:
            raise DataError("only the Gram matrix of rows with themselves has a diagonal k(x, x).")
        return self._whole.diagonal()[self._rows].astype(np.float64)

    def astype(self, dtype: DTypeLike) -> PrecomputedGram:
        """Return the same matrix in another precision.

        Parameters
        ----------
        dtype : {float32, float64}

        Returns
        -------
        PrecomputedGram
        """
        return self._part(self._rows, self._columns, np.dtype(dtype), self.symmetric)

    def stored_array(self) -> Array:
        """Return :attr:`matrix`; do not modify it."""
        return self.matrix

    def stored(self) -> tuple[Array, Positions]:
        """Return the given array, and the positions of the rows and columns of a symmetric part of it."""
        if not self.symmetric:
            raise DataError("only a symmetric part has rows and columns at the same positions.")
        rows = self._rows
        return self._whole, np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def stored_as(self, dtype: DTypeLike) -> Array | None:
        """Return the entries if they are stored in a C-ordered array of that precision already; do not modify it.

        Parameters
        ----------
        dtype : {float32, float64}

        Returns
        -------
        ndarray of shape (n, m) or None
        """
        if self.dtype != np.dtype(dtype) or not self._is_at_hand:
            return None
        return self.matrix if self.matrix.flags.c_contiguous else None

    def stored_is_finite(self) -> bool:
        """Whether all entries of the given array are finite."""
        return self._known_finite or bool(is_finite(self._whole))

    @property
    def T(self) -> PrecomputedGram:
        """The transposed matrix, sharing the same memory."""
        if self.symmetric:
            return self
        transposed = PrecomputedGram(self.matrix.T, symmetric=False)
        transposed.n_jobs = self.n_jobs
        return transposed

    def _entries(self) -> tuple[Array, bool]:
        return self.matrix, False

    def _is_stored(self, dtype: DTypeLike | None) -> bool:
        return self._is_at_hand and (dtype is None or np.dtype(dtype) == self.dtype)

    def as_linear_operator(self) -> LinearOperator:
        """Return the matrix as an operator for SciPy's iterative solvers."""
        return aslinearoperator(self.matrix)


def _picked(index: Index, further: Index) -> Index:
    """``index[further]`` for slices with bounds and a step of 1, and positions, which may count from the end."""
    if not isinstance(index, slice):
        return index[further]
    if isinstance(further, slice):
        return slice(index.start + further.start, index.start + further.stop)
    return index.start + np.where(further < 0, further + _length(index), further)


def _length(index: Index) -> int:
    return max(index.stop - index.start, 0) if isinstance(index, slice) else len(index)
