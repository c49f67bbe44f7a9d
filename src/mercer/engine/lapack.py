"""Triangular factors in place, by blocks on the threads of the pool.

A symmetric matrix is a C-ordered array. Its upper triangle is read and overwritten, and the lower one is left
unchanged. With U for the upper triangle, the factor ``L = U^T`` is lower triangular in ``array.T``. The rows of a
C-ordered array are the right-hand sides.

The blocks depend only on the shape of the matrix, each is computed on one BLAS thread, and no two tasks write to the
same entries. So the bits are the same for any number of threads, which BLAS's own threads do not guarantee.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from mercer._types import AnyArray
from mercer.engine import threads
from mercer.engine.routines import PREFIX, add_product, add_square, by_triangle, call_checked, row_step
from mercer.engine.tiles import scratch, spans

__all__ = [
    "add_product",
    "add_square_of_columns",
    "add_square_of_rows",
    "factor_cholesky",
    "invert_cholesky",
    "invert_triangle",
    "multiply",
    "multiply_triangle",
    "solve_cholesky",
    "solve_triangle",
    "square_triangle",
]


# The side of the blocks on the diagonal, and the largest width of the other blocks.
_SIDE, _WIDE = 256, 1024
# Up to this many rows, one call of LAPACK does all: there is little to share.
_WHOLE = 512
# One right-hand side of more rows than this is solved by strips of the factor, of this height, in shares for threads.
_LONG, _HEIGHT, _SHARES = 2048, 512, 4
# Products with fewer multiplications run on one thread.
_ALONE = 2**21


def _check(*arrays: AnyArray) -> np.dtype:
    """Return the common type of arrays that LAPACK may overwrite; other arrays are an internal error."""
    dtype = arrays[0].dtype
    for array in arrays:
        if array.dtype != dtype or dtype not in PREFIX or array.ndim != 2 or not array.flags.c_contiguous:
            raise TypeError(f"LAPACK needs C-ordered matrices of one type; got {array.dtype} {array.strides}.")
    if arrays[0].shape[0] != arrays[0].shape[1] or any(a.shape[1] != arrays[0].shape[1] for a in arrays):
        raise TypeError(f"the shapes {[a.shape for a in arrays]} do not match.")
    return dtype


def _whole(routine: str, square: AnyArray, *letters: bytes) -> int:
    """Call a LAPACK routine on the upper triangle of a square part of an array."""
    dtype, n = square.dtype, len(square)
    return call_checked(routine, dtype, b"L", *letters, n, square, max(row_step(square, dtype), 1))


def factor_cholesky(matrix: AnyArray) -> int:
    """Overwrite the upper triangle with the factor of ``L L^T``; return 0, or the number of the first pivot <= 0.

    >>> A = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor_cholesky(A), A.tolist()
    (0, [[2.0, 1.0], [2.0, 2.0]])
    """
    _check(matrix)
    n = len(matrix)
    with threads.one_blas_thread():
        if n <= _WHOLE:
            return _whole("potrf", matrix)
        for k in spans(n, _SIDE):
            failed = _whole("potrf", matrix[k, k])
            if failed:
                return k.start + failed
            rest = slice(k.stop, n)
            threads.run([_divide(matrix, k, columns) for columns in _cut(rest, _WIDE)])
            threads.run(
                [
                    _update(matrix, k, rows, columns)
                    for rows in _cut(rest, _SIDE)
                    for columns in (rows, *_cut(slice(rows.stop, n), _WIDE))
                ]
            )
    return 0


def _divide(matrix: AnyArray, k: slice, columns: slice) -> Callable[[], None]:
    return lambda: by_triangle("trsm", matrix[k, k], matrix[k, columns], transposed=True)


def _update(matrix: AnyArray, k: slice, rows: slice, columns: slice) -> Callable[[], None]:
    """``A_ij -= U_ki^T U_kj``; for a block on the diagonal, its upper triangle alone."""
    if rows == columns:
        return lambda: add_square(matrix[rows, rows], matrix[k, rows], alpha=-1.0, turned=True)
    return lambda: add_product(matrix[rows, columns], matrix[k, rows], matrix[k, columns], alpha=-1.0, left_turned=True)


def _cut(part: slice, step: int) -> list[slice]:
    return [slice(part.start + s.start, part.start + s.stop) for s in spans(part.stop - part.start, step)]


def invert_cholesky(factor: AnyArray) -> int:
    """Overwrite ``L`` with the upper triangle of ``(L L^T)^-1``; return 0, or the number of a pivot that is 0.

    >>> A = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> invert_cholesky(A), A.tolist()
    (0, [[2.0, -1.0], [0.0, 1.0]])
    """
    failed = invert_triangle(factor)
    if not failed:
        square_triangle(factor)
    return failed


def invert_triangle(factor: AnyArray) -> int:
    """Overwrite ``L`` with ``L^-1``; return 0, or the number of a pivot that is 0.

    >>> A = np.array([[2.0, 1.0], [0.0, 1.0]])
    >>> invert_triangle(A), A.tolist()
    (0, [[0.5, -0.5], [0.0, 1.0]])
    """
    _check(factor)
    n = len(factor)
    zero = np.flatnonzero(factor.diagonal() == 0)
    if len(zero):
        return int(zero[0]) + 1
    with threads.one_blas_thread():
        if n <= _WHOLE:
            return _whole("trtri", factor, b"N")
        for k in spans(n, _SIDE):
            # The columns k of U^-1 above the diagonal are -V U_k V_kk, with V = U^-1 of the rows above.
            above = factor[: k.start, k].copy()
            threads.run([_inverse_rows(factor, rows, k, above) for rows in spans(k.start, _SIDE)])
            _whole("trtri", factor[k, k], b"N")
    return 0


def _inverse_rows(factor: AnyArray, rows: slice, k: slice, above: AnyArray) -> Callable[[], None]:
    def work() -> None:
        block = factor[rows, k]
        by_triangle("trmm", factor[rows, rows], block)
        if rows.stop < k.start:
            add_product(block, factor[rows, rows.stop : k.start], above[rows.stop :])
        by_triangle("trsm", factor[k, k], block, right=True, alpha=-1.0)

    return work


def square_triangle(factor: AnyArray) -> None:
    """Overwrite ``L`` with the upper triangle of ``L^T L``.

    >>> A = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> square_triangle(A)
    >>> A.tolist()
    [[5.0, 3.0], [0.0, 9.0]]
    """
    dtype, n = _check(factor), len(factor)
    with threads.one_blas_thread():
        if n <= _WHOLE:
            _whole("lauum", factor)
            return
        for k in spans(n, _SIDE):
            size = k.stop - k.start
            with scratch((size, size), dtype) as corner:
                corner[...] = 0.0
                tasks = [_square_rows(factor, rows, k) for rows in spans(k.start, _SIDE)]
                if k.stop < n:
                    tasks.append(_square_corner(factor, k, corner))
                threads.run(tasks)
                # Up to here, other tasks read this block.
                _whole("lauum", factor[k, k])
                factor[k, k] += corner


def _square_rows(factor: AnyArray, rows: slice, k: slice) -> Callable[[], None]:
    """``U_i U_k^T`` for rows i above k; no task overwrites entries to the right of k before all of these are done."""

    def work() -> None:
        block = factor[rows, k]
        by_triangle("trmm", factor[k, k], block, right=True, transposed=True)
        if k.stop < len(factor):
            add_product(block, factor[rows, k.stop :], factor[k, k.stop :], right_turned=True)

    return work


def _square_corner(factor: AnyArray, k: slice, corner: AnyArray) -> Callable[[], None]:
    return lambda: add_square(corner, factor[k, k.stop :], beta=0.0)


def solve_triangle(factor: AnyArray, rows: AnyArray, *, transposed: bool = False) -> None:
    """Overwrite every row ``b`` with ``L^-1 b``; with ``transposed``, with ``L^-T b``.

    >>> A, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[4.0, 5.0]])
    >>> solve_triangle(A, b)
    >>> b.tolist()
    [[2.0, 3.0]]
    """
    if len(rows) == 1 and len(factor) > _LONG:
        _check(factor, rows)
        _solve_one(factor, rows, transposed)
    else:
        _apply("trsm", factor, rows, transposed)


def multiply_triangle(factor: AnyArray, rows: AnyArray, *, transposed: bool = False) -> None:
    """Overwrite every row ``b`` with ``L b``; with ``transposed``, with ``L^T b``.

    >>> A, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[2.0, 3.0]])
    >>> multiply_triangle(A, b)
    >>> b.tolist()
    [[4.0, 5.0]]
    """
    _apply("trmm", factor, rows, transposed)


def _apply(routine: str, factor: AnyArray, rows: AnyArray, transposed: bool) -> None:
    _check(factor, rows)

    def work(part: slice) -> Callable[[], None]:
        return lambda: by_triangle(routine, factor, rows[part], right=True, transposed=transposed)

    if rows.size:
        threads.run([work(part) for part in spans(len(rows), _SIDE)])


def _solve_one(factor: AnyArray, rows: AnyArray, transposed: bool) -> None:
    """One right-hand side: the time is that of reading the factor, which two threads do in half of it."""
    n = len(factor)
    diagonal = spans(n, _HEIGHT)
    with threads.one_blas_thread():
        for k in reversed(diagonal) if transposed else diagonal:
            solved = np.ascontiguousarray(rows[:, k])
            by_triangle("trsm", factor[k, k], solved, right=True, transposed=transposed)
            rows[:, k] = solved
            others = slice(0, k.start) if transposed else slice(k.stop, n)
            step = max(_WIDE, -(-(others.stop - others.start) // _SHARES))
            threads.run([_subtract(factor, rows, solved, k, part, transposed) for part in _cut(others, step)])


def _subtract(
    factor: AnyArray, rows: AnyArray, solved: AnyArray, k: slice, part: slice, transposed: bool
) -> Callable[[], None]:
    def work() -> None:
        rows[:, part] -= solved @ (factor[part, k].T if transposed else factor[k, part])

    return work


def solve_cholesky(factor: AnyArray, rows: AnyArray) -> None:
    """Overwrite every row ``b`` with ``(L L^T)^-1 b``.

    >>> A, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[4.0, 4.0]])
    >>> solve_cholesky(A, b)
    >>> b.tolist()
    [[0.0, 2.0]]
    """
    solve_triangle(factor, rows)
    solve_triangle(factor, rows, transposed=True)


def add_square_of_columns(target: AnyArray, rows: AnyArray) -> None:
    """Add ``rows^T rows`` to the upper triangle of a square matrix.

    >>> A = np.zeros((2, 2))
    >>> add_square_of_columns(A, np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> A.tolist()
    [[10.0, 14.0], [0.0, 20.0]]
    """
    _check(target, rows)
    _by_blocks(
        len(target),
        lambda part: add_square(target[part, part], rows[:, part], turned=True),
        lambda part, other: add_product(target[part, other], rows[:, part], rows[:, other], left_turned=True),
    )


def add_square_of_rows(target: AnyArray, rows: AnyArray) -> None:
    """Add ``rows rows^T`` to the upper triangle of a square matrix.

    >>> A = np.zeros((2, 2))
    >>> add_square_of_rows(A, np.array([[1.0, 3.0], [2.0, 4.0]]))
    >>> A.tolist()
    [[10.0, 14.0], [0.0, 20.0]]
    """
    _check(target)
    _by_blocks(
        len(target),
        lambda part: add_square(target[part, part], rows[part]),
        lambda part, other: add_product(target[part, other], rows[part], rows[other], right_turned=True),
    )


def _by_blocks(n: int, square: Callable[[slice], None], product: Callable[[slice, slice], None]) -> None:
    """Run ``square`` for the blocks on the diagonal, and ``product`` for those above it."""
    parts = spans(n, _WHOLE)
    with threads.one_blas_thread():
        threads.run(
            [
                partial(square, part) if part is other else partial(product, part, other)
                for k, part in enumerate(parts)
                for other in parts[k:]
            ]
        )


def multiply(left: AnyArray, right: AnyArray, out: AnyArray | None = None) -> AnyArray:
    """``left @ right`` by strips of rows.

    >>> multiply(np.eye(2), np.array([[1.0], [2.0]])).tolist()
    [[1.0], [2.0]]
    """
    if out is None:
        out = np.empty((len(left), *right.shape[1:]), np.result_type(left, right))
    target = out

    def work(rows: slice) -> Callable[[], None]:
        def strip() -> None:
            np.matmul(left[rows], right, out=target[rows])

        return strip

    # The strips are the same for any number of threads. For a small product, waking a thread takes longer.
    alone = left.size * (right.size // max(len(right), 1)) < _ALONE
    threads.run([work(rows) for rows in spans(len(left), _SIDE)], 1 if alone else None)
    return out
