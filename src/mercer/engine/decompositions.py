"""Decompositions by single calls of LAPACK, which Ctrl-C abandons.

Such a call may take minutes and cannot be stopped. It therefore runs in a thread other than the main one: Ctrl-C works
at once, and the call continues, with its arrays, until it returns or the process ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix
from mercer.engine import threads
from mercer.engine.routines import call_checked, integer_dtype

_DOUBLE = np.dtype(np.float64)


def largest_eigenpairs(matrix: Matrix, count: int) -> tuple[Matrix, Matrix]:
    """The ``count`` largest eigenvalues of a symmetric matrix, ascending, and their eigenvectors as rows.

    The C-ordered matrix is overwritten. Some builds of LAPACK lose eigenvectors of equal eigenvalues; in this case all
    eigenvectors are computed.

    Raises
    ------
    LinAlgError
        If LAPACK's iteration does not converge.

    Examples
    --------
    >>> values, vectors = largest_eigenpairs(np.array([[2.0, 1.0], [1.0, 2.0]]), 1)
    >>> values.round(12).tolist(), np.abs(vectors).round(6).tolist()
    ([3.0], [[0.707107, 0.707107]])
    """
    n = len(_checked(matrix))
    whole = integer_dtype("syevr", _DOUBLE)
    values, vectors, total = np.empty(n), np.empty((count, n)), np.zeros(1, whole)
    support, diagonal = np.zeros(2 * count, whole), matrix.diagonal().copy()
    _decompose(
        "syevr", b"V", b"I", b"L", n, matrix, n, 0.0, 0.0, n - count + 1, n, 0.0, total, values, vectors, n, support
    )
    if int(total[0]) == count:
        return values[:count], vectors
    del vectors
    # LAPACK has not changed the triangle below the diagonal.
    for row in range(n):
        matrix[row, row + 1 :] = matrix[row + 1 :, row]
        matrix[row, row] = diagonal[row]
    values, vectors = all_eigenpairs(matrix)
    return values[n - count :], vectors[n - count :]


def all_eigenpairs(matrix: Matrix) -> tuple[Matrix, Matrix]:
    """All eigenvalues of a symmetric matrix, ascending, and the eigenvectors as rows, which overwrite the matrix.

    Raises
    ------
    LinAlgError
        If LAPACK's iteration does not converge.

    Examples
    --------
    >>> values, vectors = all_eigenpairs(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> values.round(12).tolist(), np.abs(vectors).round(6).tolist()
    ([1.0, 3.0], [[0.707107, 0.707107], [0.707107, 0.707107]])
    """
    n = len(_checked(matrix))
    values = np.empty(n)
    _decompose("syevd", b"V", b"L", n, matrix, n, values)
    return values, matrix


def singular_values(matrix: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The thin decomposition ``U diag(s) Vt`` of a matrix (m, d), which is overwritten.

    Raises
    ------
    LinAlgError
        If LAPACK's iteration does not converge.

    Examples
    --------
    >>> U, s, Vt = singular_values(np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]]))
    >>> s.round(12).tolist(), (U * s @ Vt).round(12).tolist()
    ([4.0, 3.0], [[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    """
    m, d = _checked(matrix, square=False).shape
    rank = min(m, d)
    U, s, Vt = np.empty((m, rank)), np.empty(rank), np.empty((rank, d))
    if rank:
        # LAPACK decomposes the transpose, because its columns are NumPy's rows.
        steps = np.zeros(8 * rank, integer_dtype("gesdd", _DOUBLE))
        _decompose("gesdd", b"S", d, m, matrix, d, s, Vt, d, U, rank, steps=steps)
    return U, s, Vt


def factor_indefinite(matrix: NDArray[Any]) -> tuple[NDArray[np.int32], int]:
    """Overwrite the upper triangle of a symmetric matrix, in either precision, with its factors ``L D L^T``.

    Returns the pivots in the form for LAPACK's ``sytrs``, and 0 or the number of a singular block of D.

    >>> A = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> pivots, failed = factor_indefinite(A)
    >>> pivots.tolist(), failed
    ([-2, -2], 0)
    """
    n, dtype = len(matrix), matrix.dtype
    pivots, size = np.zeros(n, integer_dtype("sytrf", dtype)), np.zeros(1, dtype)
    call_checked("sytrf", dtype, b"L", n, matrix, n, pivots, size, -1)
    work = np.empty(int(size[0]), dtype)
    failed = threads.abandonable(lambda: call_checked("sytrf", dtype, b"L", n, matrix, n, pivots, work, len(work)))
    return pivots.astype(np.int32), int(failed)


def invert_indefinite(factor: NDArray[Any], pivots: NDArray[np.int32]) -> None:
    """Overwrite the upper triangle of that factor with the inverse.

    >>> A = np.array([[0.0, 2.0], [2.0, 0.0]])
    >>> invert_indefinite(A, factor_indefinite(A)[0])
    >>> A[0, 1]
    np.float64(0.5)
    """
    n, dtype = len(factor), factor.dtype
    places, work = pivots.astype(integer_dtype("sytri", dtype)), np.empty(n, dtype)
    threads.abandonable(lambda: call_checked("sytri", dtype, b"L", n, factor, n, places, work))


def factor_pivoted(matrix: Matrix, tolerance: float) -> tuple[NDArray[np.intp], int]:
    """Pivoted Cholesky, ``P^T A P = L L^T``, in the upper triangle; return the order of the rows and the rank.

    It stops when no pivot is above ``tolerance``.

    >>> A = np.array([[1.0, 2.0], [2.0, 4.0]])
    >>> order, rank = factor_pivoted(A, 1e-9)
    >>> order.tolist(), rank, A[0].tolist()
    ([1, 0], 1, [2.0, 1.0])
    """
    n = len(_checked(matrix))
    whole = integer_dtype("pstrf", _DOUBLE)
    pivots, rank, work = np.zeros(n, whole), np.zeros(1, whole), np.empty(2 * n)
    threads.abandonable(
        lambda: call_checked("pstrf", _DOUBLE, b"L", n, matrix, n, pivots, rank, float(tolerance), work)
    )
    return pivots.astype(np.intp) - 1, int(rank[0])


def _checked(matrix: Matrix, square: bool = True) -> Matrix:
    if matrix.dtype != _DOUBLE or matrix.ndim != 2 or not matrix.flags.c_contiguous:
        raise TypeError(f"LAPACK needs C-ordered matrices of float64; got {matrix.dtype} {matrix.strides}.")
    if square and matrix.shape[0] != matrix.shape[1]:
        raise TypeError(f"only square matrices have eigenvalues, but this one is {matrix.shape}.")
    return matrix


def _decompose(routine: str, *arguments: Any, steps: NDArray[Any] | None = None) -> None:
    """Query the size of the workspace, then make the call; ``steps`` is the integer workspace, if its size is known."""
    size, sizes = np.zeros(1), np.zeros(1, integer_dtype(routine, _DOUBLE))
    query: tuple[Any, ...] = (size, -1, sizes, -1) if steps is None else (size, -1, steps)
    call_checked(routine, _DOUBLE, *arguments, *query)
    work = np.empty(int(size[0]))
    room: tuple[Any, ...] = (steps,)
    if steps is None:
        room = np.empty(int(sizes[0]), sizes.dtype), int(sizes[0])
    failed = threads.abandonable(lambda: call_checked(routine, _DOUBLE, *arguments, work, len(work), *room))
    if failed:
        raise np.linalg.LinAlgError(f"LAPACK's {routine} did not converge (info {failed}).")
