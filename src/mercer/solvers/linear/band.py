"""A symmetric matrix as ``Q B Q^T`` with a band matrix B: what all its shifts ``A + mu I`` have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from mercer._types import AnyArray
from mercer.engine import lapack as lapack_in_place
from mercer.engine import threads, tiles
from mercer.engine.progress import Progress

# float64; in float32 are the reflectors of what was reduced in float32, and a Q that is asked for in it.

# Wider bands reduce faster, since more of the work is in matrix products; every shift then costs more.
WIDTH = 32
# Rows of a strip of the matrix, which one thread works on at a time; twice as many where float32 is to come.
_STRIP = 256
# Strips of fewer entries in all are not worth a second thread.
_ALONE = 512 * 512
# In float32, where products of narrow matrices are bound by the speed of the memory.
SINGLE_WIDTH = 64
# Where float32 may begin, at the latest: at this share of the columns.
_SINGLE_FROM = 1 / 8
_QR = {np.dtype(np.float32): lapack.sgeqrt, np.dtype(np.float64): lapack.dgeqrt}
# This many panels are multiplied together, and applied to this many columns at once.
_JOINED = 4
_COLUMNS = 256


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
    V: AnyArray
    T: AnyArray

    def apply(self, rows: AnyArray, *, transposed: bool) -> None:
        """Multiply ``rows``, which are those from ``start`` on, in place."""
        rows -= self.V @ ((self.T.T if transposed else self.T) @ (self.V.T @ rows))


@dataclass(frozen=True, eq=False)
class BandForm:
    r"""``A = Q B Q^T``.

    Parameters
    ----------
    band : ndarray of shape (width + 1, n)
        B, symmetric: ``band[k, j]`` is :math:`B_{j+k, j}`, as in LAPACK.
    reflectors : tuple of Reflector
        Q is their product. Those in float32 come last.
    """

    band: AnyArray
    reflectors: tuple[Reflector, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Of A."""
        return self.band.shape[1], self.band.shape[1]

    def into(self, V: AnyArray) -> AnyArray:
        """``Q^T V``; the bits are the same for any number of threads."""
        return self._applied(V, transposed=True)

    def back(self, V: AnyArray) -> AnyArray:
        """``Q V``; the bits are the same for any number of threads."""
        return self._applied(V, transposed=False)

    def _applied(self, V: AnyArray, *, transposed: bool) -> AnyArray:
        out = V.copy()
        double, single = ([r for r in self.reflectors if (r.V.dtype == np.float32) is kind] for kind in (False, True))

        def part(columns: slice) -> None:
            block = np.ascontiguousarray(out[:, columns])
            if transposed:
                _apply_in_turn(double, block, transposed=True)
            if single:
                _apply_in_single(single, block[single[0].start :], transposed=transposed)
            if not transposed:
                _apply_in_turn(double[::-1], block, transposed=False)
            out[:, columns] = block

        _run([partial(part, columns) for columns in tiles.spans(V.shape[1], _COLUMNS)], V.size, None)
        return out

    def orthogonal(self, out: AnyArray, n_jobs: int | None = None) -> AnyArray:
        """Q, whole; :math:`4 n^3 / 3` operations.

        Parameters
        ----------
        out : ndarray of shape (n, n), C-ordered, float64 or float32
            Gets the transpose of Q; what is returned is ``out.T``.
        n_jobs : int, optional
            Threads; the bits are the same for any number of them.
        """
        out[...] = 0.0
        np.fill_diagonal(out, 1.0)
        progress = Progress(len(self.reflectors), "orthogonal factor")
        with threads.one_blas_thread():
            for each in reversed(self.reflectors):
                # Columns of Q before the start are still those of the identity.
                columns = out[each.start :, each.start :]
                V = each.V.astype(out.dtype, copy=False)
                left = V @ each.T.astype(out.dtype, copy=False)
                parts = [columns[some] for some in tiles.spans(len(columns), _COLUMNS)]
                _run([partial(_reflect, part, V, left) for part in parts], columns.size, n_jobs)
                progress.advance()
        return out.T


def _apply_in_turn(reflectors: Sequence[Reflector], block: AnyArray, *, transposed: bool) -> None:
    for each in reflectors:
        each.apply(block[each.start :], transposed=transposed)


def _apply_in_single(reflectors: Sequence[Reflector], rows: AnyArray, *, transposed: bool) -> None:
    """The reflectors in float32, of which the first one begins at the first of these rows."""
    # Columns with entries of at most 1, so that nothing under- or overflows.
    size = np.abs(rows).max(axis=0)
    size[size == 0] = 1.0
    scaled = (rows / size).astype(np.float32)
    for each in reflectors if transposed else reversed(reflectors):
        each.apply(scaled[each.start - reflectors[0].start :], transposed=transposed)
    np.multiply(scaled, size, out=rows)


def _reflect(rows: AnyArray, V: AnyArray, left: AnyArray) -> None:
    """``rows <- rows - rows V left^T``."""
    lapack_in_place.add_product(rows, rows @ V, left, alpha=-1.0, right_turned=True)


def _run(tasks: list[threads.Task], entries: int, n_jobs: int | None) -> None:
    """The tasks on threads, where there is work for more than one; no bit depends on their number."""
    threads.run(tasks, 1 if entries < _ALONE else n_jobs)


def _joined(reflectors: list[Reflector]) -> tuple[Reflector, ...]:
    """The products of some neighbouring reflectors of one precision each; the list is emptied."""
    out = []
    while reflectors:
        count = next((i for i, r in enumerate(reflectors) if r.V.dtype != reflectors[0].V.dtype), len(reflectors))
        out.append(_join(reflectors[: min(count, _JOINED)]))
        del reflectors[: min(count, _JOINED)]
    return tuple(out)


def _join(group: Sequence[Reflector]) -> Reflector:
    """The product of neighbouring reflectors as one."""
    first = group[0]
    V = np.zeros((len(first.V), sum(each.V.shape[1] for each in group)), first.V.dtype)
    T = np.zeros((V.shape[1], V.shape[1]), V.dtype)
    done = 0
    for each in group:
        own, begin = slice(done, done + each.V.shape[1]), each.start - first.start
        V[begin:, own], T[own, own] = each.V, each.T
        T[:done, own] = -T[:done, :done] @ (V[begin:, :done].T @ each.V) @ each.T
        done = own.stop
    return Reflector(first.start, V, T)


def reduce_to_band(
    matrix: AnyArray, width: int = WIDTH, n_jobs: int | None = None, *, single_below: float = 0.0
) -> BandForm:
    r"""Reduce a symmetric matrix to a band by Householder reflections from both sides.

    Parameters
    ----------
    matrix : ndarray of shape (n, n), float64, C-ordered
        The whole matrix; overwritten.
    width : int, default=32
        Diagonals of B below the main one.
    n_jobs : int, optional
        Threads; the bits are the same for any number of them.
    single_below : float, default=0.0
        Above zero, the reduction goes on in float32 once what is left has a norm of at most this, or from an eighth
        of the columns on. The form is then that of a matrix which differs by some roundings in float32 of what was
        left, and not of the whole: the leading part of a smooth kernel is reduced in float64.

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
    rest = _Rest(matrix, width, n_jobs, 2 * _STRIP if single_below > 0 else _STRIP)
    progress = Progress(-(-n // width), "band reduction")
    with threads.one_blas_thread():
        for start in range(0, n, width):
            _write_triangle(band, start, rest.corner)
            if start + width >= n:
                break
            V, T, R = rest.panel
            _write_upper(band, start, width, R)
            if single_below > 0 and (start >= _SINGLE_FROM * n or rest.norm <= single_below):
                V, T = rest.go_single()
            reflectors.append(Reflector(start + width, V, T))
            rest.turn(V, T)
            progress.advance()
        return BandForm(band, _joined(reflectors))


class _Rest:
    """The part of the matrix that is not reduced yet: its lower triangle, by strips of rows.

    Each strip reaches to the end of its square on the diagonal, which is kept whole, so that products need no routine
    for triangles. Panels and what goes with them are held by rows, as LAPACK's columns are.

    Attributes
    ----------
    corner : ndarray of shape (k, k)
        The next square on the diagonal of the band; its lower triangle counts.
    panel : tuple of ndarray
        The factors of what is below it: V, T and R.
    norm : float
        Of these two together. The panels go through block Krylov spaces, so that no direction of the rest is likely to
        be much longer.
    """

    def __init__(self, matrix: AnyArray, width: int, n_jobs: int | None, strip: int) -> None:
        self._matrix, self._width, self._n_jobs, self._strip = matrix, width, n_jobs, strip
        self.corner: AnyArray
        self.panel: tuple[AnyArray, AnyArray, AnyArray]
        self._done = 0
        self._take(np.ascontiguousarray(matrix[:, :width].T))

    def turn(self, V: AnyArray, T: AnyArray) -> None:
        r"""``M <- H^T M H`` with ``H = I - V T V^T``, as ``M - V W^T - W V^T``."""
        self._done += self._width
        k = V.shape[1]
        # V, W and V again: the first two and the last two are the factors of what is subtracted.
        both = np.empty((3 * k, len(V)), V.dtype)
        both[:k] = both[2 * k :] = V.T
        product = T.T @ self._times(both[:k])
        both[k : 2 * k] = product - (0.5 * ((product @ V) @ T)) @ both[:k]
        left, right = both[: 2 * k], both[k:]
        # The next columns are taken apart by one thread while the others go on.
        tasks: list[threads.Task] = [partial(self._next, left, right)]
        tasks += [partial(self._subtract, left, right, rows) for rows in reversed(self._strips(self._width))]
        _run(tasks, len(V) ** 2, self._n_jobs)

    @property
    def norm(self) -> float:
        return float(np.linalg.norm(np.vstack([self.corner, self.panel[2]]), 2))

    def go_single(self) -> tuple[AnyArray, AnyArray]:
        """Hold the rest in float32 from now on; the V and T that go with it."""
        V, T, R = self.panel
        if self._matrix.dtype == np.float64:
            matrix = np.empty(self._matrix.shape, np.float32)
            for rows in self._strips():
                matrix[rows, self._done : rows.stop] = self._matrix[rows, self._done : rows.stop]
            self._matrix = matrix
            self.panel = V.astype(np.float32), T.astype(np.float32), R
        return self.panel[:2]

    def _strips(self, skipped: int = 0) -> list[slice]:
        """Rows on a grid that stays where it is; the first of the strips is what is left of it."""
        n, begin = len(self._matrix), self._done + skipped
        step = self._strip
        grid = [begin, *range((begin // step + 1) * step, n, step), n]
        return [slice(a, b) for a, b in pairwise(grid) if a < b]

    def _times(self, V: AnyArray) -> AnyArray:
        """``V M``, for V of shape (k, m)."""
        out = np.empty(V.shape, V.dtype)
        done = self._done

        def strip(rows: slice) -> None:
            own, end = out[:, rows.start - done : rows.stop - done], rows.stop - done
            before, after = self._matrix[rows, done : rows.stop], self._matrix[rows.stop :, rows]
            lapack_in_place.add_product(own, V[:, :end], before, beta=0.0, right_turned=True)
            if len(after):
                lapack_in_place.add_product(own, V[:, end:], after)

        _run([partial(strip, rows) for rows in self._strips()], V.shape[1] ** 2, self._n_jobs)
        return out

    def _subtract(self, left: AnyArray, right: AnyArray, rows: slice) -> None:
        """``left^T right`` from one strip, without the columns that are taken apart."""
        done, begin = self._done, self._done + self._width
        own, other = left[:, rows.start - done : rows.stop - done], right[:, self._width : rows.stop - done]
        lapack_in_place.add_product(self._matrix[rows, begin : rows.stop], own, other, alpha=-1.0, left_turned=True)

    def _next(self, left: AnyArray, right: AnyArray) -> None:
        columns = np.ascontiguousarray(self._matrix[self._done :, self._done : self._done + self._width].T)
        lapack_in_place.add_product(columns, right[:, : len(columns)], left, alpha=-1.0, left_turned=True)
        self._take(columns)

    def _take(self, columns: AnyArray) -> None:
        self.corner, below = columns[:, : len(columns)].T, columns[:, self._width :].T
        if below.size:
            self.panel = _factor(below)


def _factor(panel: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """``panel = (I - V T V^T)[:, :k] R``: V, T and the upper trapezoidal R."""
    k = min(panel.shape)
    V, T, _ = _QR[panel.dtype](k, panel)
    R = np.triu(V[:k])
    V = V[:, :k]
    V[:k] = np.tril(V[:k], -1)
    np.fill_diagonal(V, 1.0)
    return V, np.triu(T[:k, :k]), R


def _write_triangle(band: AnyArray, start: int, block: AnyArray) -> None:
    """The lower triangle of a block on the diagonal."""
    rows, columns = np.tril_indices(len(block))
    band[rows - columns, start + columns] = block[rows, columns]


def _write_upper(band: AnyArray, start: int, width: int, R: AnyArray) -> None:
    """The upper trapezoid ``width`` rows below the diagonal."""
    rows, columns = np.triu_indices(R.shape[0], m=R.shape[1])
    band[width + rows - columns, start + columns] = R[rows, columns]
