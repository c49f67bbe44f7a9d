"""Factorisations and products in place that let other threads run.

SciPy's wrappers of LAPACK keep the interpreter to themselves while they work, so that two threads with a matrix each
would take turns. The same routines are called here by their addresses, which SciPy publishes for Cython.

LAPACK's columns are NumPy's rows. A symmetric matrix is a C-ordered array of which the upper triangle is read and
overwritten and the lower one left alone; the factor ``L`` is lower triangular in ``array.T``. Right-hand sides are the
rows of a C-ordered array.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_blas, cython_lapack

Array = NDArray[Any]

_PREFIX = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
# OpenBLAS spreads blocked inverses over threads from the first row on (which ones depends on its version), all other
# routines from here on. Below, the same is done without blocks, so that no bit depends on the number of threads.
_SERIAL_BELOW = 128
_REAL = {np.dtype(np.float32): ctypes.c_float, np.dtype(np.float64): ctypes.c_double}


@functools.cache
def _routine(name: str) -> Any:
    """The address of a routine as a function; calls of such functions give the interpreter free."""
    module = cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.CFUNCTYPE(None)(get_pointer(capsule, get_name(capsule)))


def _call(routine: str, dtype: np.dtype, *arguments: Any) -> None:
    """Call by reference: letters, whole numbers, scalars of the type, arrays."""
    passed: list[Any] = []
    for value in arguments:
        if isinstance(value, bytes):
            passed.append(ctypes.c_char_p(value))
        elif isinstance(value, int):
            passed.append(ctypes.byref(ctypes.c_int(value)))
        elif isinstance(value, float):
            passed.append(ctypes.byref(_REAL[dtype](value)))
        elif isinstance(value, np.ndarray):
            passed.append(ctypes.c_void_p(value.ctypes.data))
        else:
            passed.append(ctypes.byref(value))
    _routine(_PREFIX[dtype] + routine)(*passed)


def _check(*arrays: Array) -> np.dtype:
    """The common type of arrays that LAPACK may write into; anything else is a mistake of ours."""
    dtype = arrays[0].dtype
    for array in arrays:
        if array.dtype != dtype or dtype not in _PREFIX or array.ndim != 2 or not array.flags.c_contiguous:
            raise TypeError(f"LAPACK needs C-ordered matrices of one type; got {array.dtype} {array.strides}.")
    if arrays[0].shape[0] != arrays[0].shape[1] or any(a.shape[1] != arrays[0].shape[1] for a in arrays):
        raise TypeError(f"the shapes {[a.shape for a in arrays]} do not belong together.")
    return dtype


def factor_cholesky(matrix: Array) -> int:
    """``L L^T`` of a matrix, in its upper triangle; 0, or the number of the first pivot that is not positive.

    >>> A = np.array([[4.0, 2.0], [2.0, 5.0]])
    >>> factor_cholesky(A), A.tolist()
    (0, [[2.0, 1.0], [2.0, 2.0]])
    """
    dtype, n, info = _check(matrix), len(matrix), ctypes.c_int()
    _call("potrf", dtype, b"L", n, matrix, max(n, 1), info)
    return info.value


def invert_cholesky(factor: Array) -> int:
    """``(L L^T)^-1`` in the place of ``L``, in the upper triangle; 0, or the number of a pivot that is 0.

    >>> A = np.array([[1.0, 1.0], [0.0, 1.0]])
    >>> invert_cholesky(A), A.tolist()
    (0, [[2.0, -1.0], [0.0, 1.0]])
    """
    dtype, n, info = _check(factor), len(factor), ctypes.c_int()
    if n < _SERIAL_BELOW:
        failed = invert_triangle(factor)
        _call("lauu2", dtype, b"L", n, factor, max(n, 1), info)
        return failed or info.value
    _call("potri", dtype, b"L", n, factor, max(n, 1), info)
    return info.value


def invert_triangle(factor: Array) -> int:
    """``L^-1`` in the place of ``L``; 0, or the number of a pivot that is 0.

    >>> A = np.array([[2.0, 1.0], [0.0, 1.0]])
    >>> invert_triangle(A), A.tolist()
    (0, [[0.5, -0.5], [0.0, 1.0]])
    """
    dtype, n, info = _check(factor), len(factor), ctypes.c_int()
    if n < _SERIAL_BELOW:
        # The unblocked routine does not look at the pivots.
        zero = np.flatnonzero(factor.diagonal() == 0)
        if len(zero):
            return int(zero[0]) + 1
        _call("trti2", dtype, b"L", b"N", n, factor, max(n, 1), info)
        return info.value
    _call("trtri", dtype, b"L", b"N", n, factor, max(n, 1), info)
    return info.value


def square_triangle(factor: Array) -> None:
    """``L^T L`` in the place of ``L``, in the upper triangle.

    >>> A = np.array([[2.0, 1.0], [0.0, 3.0]])
    >>> square_triangle(A)
    >>> A.tolist()
    [[5.0, 3.0], [0.0, 9.0]]
    """
    dtype, n, info = _check(factor), len(factor), ctypes.c_int()
    _call("lauum", dtype, b"L", n, factor, max(n, 1), info)


def add_product(
    target: Array, left: Array, right: Array, *, alpha: float = 1.0, beta: float = 1.0, left_turned: bool = False,
    right_turned: bool = False,
) -> None:  # fmt: skip
    """``beta target + alpha left right`` in the place of ``target``; the turned ones stand for their transposes.

    The rows of all three may lie further apart than they are long: parts of a matrix need no copies.

    >>> A = np.eye(2)
    >>> add_product(A, np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]]), alpha=-1.0)
    >>> A.tolist()
    [[-2.0, -4.0], [-6.0, -7.0]]
    """
    dtype, (m, n) = target.dtype, target.shape
    inner = left.shape[0 if left_turned else 1]
    shapes = ((inner, m) if left_turned else (m, inner), (n, inner) if right_turned else (inner, n))
    steps = [_row_step(array, dtype) for array in (target, left, right)]
    if (left.shape, right.shape) != shapes:
        raise TypeError(f"the shapes {[a.shape for a in (target, left, right)]} do not belong together.")
    if 0 in (m, n):
        return
    # The transpose of the product, since LAPACK's columns are NumPy's rows.
    forms = [b"T" if turned else b"N" for turned in (right_turned, left_turned)]
    _call("gemm", dtype, *forms, n, m, inner, alpha, right, steps[2], left, steps[1], beta, target, steps[0])


def _row_step(array: Array, dtype: np.dtype) -> int:
    """From one row to the next, in entries."""
    if array.dtype != dtype or dtype not in _PREFIX or array.ndim != 2:
        raise TypeError(f"BLAS needs matrices of one type; got {array.dtype} in {array.ndim} dimensions.")
    rows, columns = array.shape
    # Of a single row or column the step that is not taken may be anything.
    step, rest = divmod(array.strides[0], dtype.itemsize) if rows > 1 else (max(columns, 1), 0)
    if (columns > 1 and array.strides[1] != dtype.itemsize) or rest or step < max(columns, 1):
        raise TypeError(f"BLAS needs matrices with contiguous rows; got steps of {array.strides} bytes.")
    return step


def solve_triangle(factor: Array, rows: Array, *, transposed: bool = False) -> None:
    """``L^-1 b`` in the place of every row ``b``; with ``transposed``, ``L^-T b``.

    >>> A, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[4.0, 5.0]])
    >>> solve_triangle(A, b)
    >>> b.tolist()
    [[2.0, 3.0]]
    """
    dtype, n, k = _check(factor, rows), len(factor), len(rows)
    form = b"T" if transposed else b"N"
    _call("trsm", dtype, b"L", b"L", form, b"N", n, k, 1.0, factor, max(n, 1), rows, max(n, 1))


def multiply_triangle(factor: Array, rows: Array, *, transposed: bool = False) -> None:
    """``L b`` in the place of every row ``b``; with ``transposed``, ``L^T b``.

    >>> A, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[2.0, 3.0]])
    >>> multiply_triangle(A, b)
    >>> b.tolist()
    [[4.0, 5.0]]
    """
    dtype, n, k = _check(factor, rows), len(factor), len(rows)
    form = b"T" if transposed else b"N"
    _call("trmm", dtype, b"L", b"L", form, b"N", n, k, 1.0, factor, max(n, 1), rows, max(n, 1))


def solve_cholesky(factor: Array, rows: Array) -> None:
    """``(L L^T)^-1 b`` in the place of every row ``b``.

    >>> A, b = np.array([[2.0, 1.0], [0.0, 1.0]]), np.array([[4.0, 4.0]])
    >>> solve_cholesky(A, b)
    >>> b.tolist()
    [[0.0, 2.0]]
    """
    solve_triangle(factor, rows)
    solve_triangle(factor, rows, transposed=True)
