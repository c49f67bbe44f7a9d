"""BLAS and LAPACK through the addresses that SciPy exports for Cython: in place and without the interpreter's lock.

SciPy's own wrappers hold the lock while they work, so two threads could not work at the same time.

The routines are column-major and NumPy's arrays are row-major, so they see a C-ordered array as its transpose. Parts of
an array need no copies, because the step between rows may be larger than a row.
"""

from __future__ import annotations

import ctypes
import functools
import re
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from mercer._errors import MercerError
from mercer._types import AnyArray

PREFIX = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
_REAL = {np.dtype(np.float32): ctypes.c_float, np.dtype(np.float64): ctypes.c_double}
# Triangles of more rows are solved by halves: with AVX-512, BLAS does products in float64 three times as quickly.
_LEAF = 64
# Integer types by their names in a C signature. SciPy may be built with 64-bit integers (ILP64).
_INTEGERS: dict[str, Any] = {
    "int": ctypes.c_int, "int32_t": ctypes.c_int32, "long": ctypes.c_long, "long long": ctypes.c_longlong,
    "int64_t": ctypes.c_int64, "npy_int64": ctypes.c_int64, "ptrdiff_t": ctypes.c_ssize_t,
}  # fmt: skip


def integer_type(name: str, signature: str) -> Any:
    """Return the integer type of a routine, from its C signature.

    Raises
    ------
    MercerError
        If the signature has an unknown integer type, or several.

    Examples
    --------
    >>> integer_type("dpotrf", "void (char *, int64_t *, double *, int64_t *, int64_t *)") is ctypes.c_int64
    True
    """
    listed = re.fullmatch(r"\s*void\s*\((.*)\)\s*", signature)
    types = [part.replace("*", "").strip() for part in listed[1].split(",")] if listed else []
    # The names of real types contain the SciPy module that defines them.
    others = {t for t in types if t not in ("char", "float", "double") and not re.fullmatch(r"__pyx_t_\w+_[sd]", t)}
    if len(others) != 1 or not others <= _INTEGERS.keys():
        raise MercerError(
            f"SciPy's {name} has the signature {signature!r}, from which the size of its integers (32 or 64 bits) "
            "cannot be determined. Install SciPy 1.16 or newer from PyPI or conda-forge."
        )
    return _INTEGERS[others.pop()]


@functools.cache
def _routine(name: str) -> tuple[Any, Any]:
    """Return a routine as a function that releases the interpreter's lock, and its integer type."""
    module = cython_blas if name in cython_blas.__pyx_capi__ else cython_lapack
    capsule = module.__pyx_capi__[name]
    get_name, get_pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = get_name(capsule)
    return ctypes.CFUNCTYPE(None)(get_pointer(capsule, signature)), integer_type(name, signature.decode())


def call(routine: str, dtype: np.dtype, *arguments: Any) -> None:
    """Call a routine, with its arguments by reference: letters, integers, scalars and arrays of ``dtype``."""
    function, integer = _routine(PREFIX[dtype] + routine)
    passed: list[Any] = []
    for value in arguments:
        if isinstance(value, bytes):
            passed.append(ctypes.c_char_p(value))
        elif isinstance(value, int):
            passed.append(ctypes.byref(integer(value)))
        elif isinstance(value, float):
            passed.append(ctypes.byref(_REAL[dtype](value)))
        else:
            passed.append(ctypes.c_void_p(value.ctypes.data))
    function(*passed)


def integer_dtype(routine: str, dtype: np.dtype) -> np.dtype:
    """Return the integer dtype of the arrays that a routine reads or writes.

    >>> integer_dtype("syevr", np.dtype(np.float64)).kind
    'i'
    """
    return np.dtype(_routine(PREFIX[dtype] + routine)[1])


def call_checked(routine: str, dtype: np.dtype, *arguments: Any) -> int:
    """Call a routine and return its ``info``: 0 on success, or for example the number of a pivot."""
    info = np.zeros(1, integer_dtype(routine, dtype))
    call(routine, dtype, *arguments, info)
    return int(info[0])


def row_step(array: AnyArray, dtype: np.dtype) -> int:
    """Return the step from one row to the next, in entries."""
    if array.dtype != dtype or dtype not in PREFIX or array.ndim != 2:
        raise TypeError(f"BLAS needs matrices of one type; got {array.dtype} in {array.ndim} dimensions.")
    rows, columns = array.shape
    # With a single row or column, the stride along that axis may be anything.
    step, rest = divmod(array.strides[0], dtype.itemsize) if rows > 1 else (max(columns, 1), 0)
    if (columns > 1 and array.strides[1] != dtype.itemsize) or rest or step < max(columns, 1):
        raise TypeError(f"BLAS needs matrices with contiguous rows; got steps of {array.strides} bytes.")
    return step


def add_product(
    target: AnyArray,
    left: AnyArray,
    right: AnyArray,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    left_turned: bool = False,
    right_turned: bool = False,
) -> None:
    """Overwrite ``target`` with ``beta target + alpha left right``; ``*_turned`` transposes a factor.

    >>> A = np.eye(2)
    >>> add_product(A, np.array([[1.0], [2.0]]), np.array([[3.0, 4.0]]), alpha=-1.0)
    >>> A.tolist()
    [[-2.0, -4.0], [-6.0, -7.0]]
    """
    dtype, (m, n) = target.dtype, target.shape
    inner = left.shape[0 if left_turned else 1]
    shapes = ((inner, m) if left_turned else (m, inner), (n, inner) if right_turned else (inner, n))
    steps = [row_step(array, dtype) for array in (target, left, right)]
    if (left.shape, right.shape) != shapes:
        raise TypeError(f"the shapes {[a.shape for a in (target, left, right)]} do not match.")
    if 0 in (m, n):
        return
    # The transposed product, because LAPACK's columns are NumPy's rows.
    forms = [b"T" if turned else b"N" for turned in (right_turned, left_turned)]
    call("gemm", dtype, *forms, n, m, inner, alpha, right, steps[2], left, steps[1], beta, target, steps[0])


def add_square(
    target: AnyArray, part: AnyArray, *, alpha: float = 1.0, beta: float = 1.0, turned: bool = False
) -> None:
    """Add to the upper triangle: ``beta target + alpha part part^T``, or ``part^T part`` with ``turned``.

    >>> A = np.zeros((2, 2))
    >>> add_square(A, np.array([[1.0, 2.0]]), turned=True)
    >>> A.tolist()
    [[1.0, 2.0], [0.0, 4.0]]
    """
    dtype, n = target.dtype, len(target)
    inner = part.shape[0 if turned else 1]
    if target.shape != (n, n) or part.shape != ((inner, n) if turned else (n, inner)):
        raise TypeError(f"the shapes {target.shape} and {part.shape} do not match.")
    form = b"N" if turned else b"T"
    steps = row_step(part, dtype), row_step(target, dtype)
    call("syrk", dtype, b"L", form, n, inner, alpha, part, steps[0], beta, target, steps[1])


def multiply_symmetric(symmetric: AnyArray, block: AnyArray, out: AnyArray) -> None:
    """Overwrite ``out`` with ``A block``, for a symmetric A of which only the lower triangle is read.

    >>> out = np.empty((2, 1))
    >>> multiply_symmetric(np.array([[1.0, np.nan], [2.0, 3.0]]), np.array([[1.0], [1.0]]), out)
    >>> out.tolist()
    [[3.0], [5.0]]
    """
    dtype, (rows, columns) = symmetric.dtype, block.shape
    steps = [row_step(array, dtype) for array in (symmetric, block, out)]
    if symmetric.shape != (rows, rows) or out.shape != block.shape:
        raise TypeError(f"the shapes {[a.shape for a in (symmetric, block, out)]} do not match.")
    call("symm", dtype, b"R", b"U", columns, rows, 1.0, symmetric, steps[0], block, steps[1], 0.0, out, steps[2])


def by_triangle(
    routine: str,
    triangle: AnyArray,
    block: AnyArray,
    *,
    right: bool = False,
    transposed: bool = False,
    alpha: float = 1.0,
) -> None:
    """``trsm`` or ``trmm`` with an upper ``triangle`` U on ``block`` in place: ``alpha op(U) B``.

    ``op(U)`` is U for ``trmm`` and its inverse for ``trsm``, or the transpose of these. With ``right`` it stands on the
    right of B.

    >>> B = np.array([[4.0], [2.0]])
    >>> by_triangle("trsm", np.array([[2.0, 1.0], [0.0, 1.0]]), B)
    >>> B.tolist()
    [[1.0], [2.0]]
    """
    dtype, (rows, columns) = triangle.dtype, block.shape
    if triangle.shape != 2 * (columns if right else rows,):
        raise TypeError(f"the shapes {triangle.shape} and {block.shape} do not match.")
    if routine == "trsm" and not right and min(rows, columns) > _LEAF and dtype == np.float64:
        _solve_by_halves(triangle, block, transposed, alpha)
        return
    # In terms of the transposes that LAPACK sees: B' op(L') from the other side, with L = U' as lower triangle.
    side, form = (b"L" if right else b"R"), (b"T" if transposed else b"N")
    steps = row_step(triangle, dtype), row_step(block, dtype)
    call(routine, dtype, side, b"L", form, b"N", columns, rows, alpha, triangle, steps[0], block, steps[1])


def _solve_by_halves(triangle: AnyArray, block: AnyArray, transposed: bool, alpha: float) -> None:
    """``trsm`` from the left in two halves, so that most of its work is products."""
    half = len(triangle) // 2
    # The half that does not depend on the other one comes first.
    first, last = (slice(0, half), slice(half, None)) if transposed else (slice(half, None), slice(0, half))
    by_triangle("trsm", triangle[first, first], block[first], transposed=transposed, alpha=alpha)
    corner = triangle[:half, half:]
    add_product(block[last], corner, block[first], alpha=-1.0, beta=alpha, left_turned=transposed)
    by_triangle("trsm", triangle[last, last], block[last], transposed=transposed)
