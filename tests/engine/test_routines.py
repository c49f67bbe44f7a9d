"""Routines by address: the width of their integers comes from the signature of the capsule."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mercer._errors import MercerError
from mercer.engine import routines

REAL = "__pyx_t_5scipy_6linalg_13cython_lapack_d"
WIDE, NARROW = (f"void (char *, {i} *, {REAL} *, {i} *, {i} *)" for i in ("int64_t", "int"))


@pytest.fixture(autouse=True)
def _forget_routines() -> Iterator[None]:
    routines._routine.cache_clear()
    yield
    routines._routine.cache_clear()


def capsule(function: Any, signature: bytes) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.cast(function, ctypes.c_void_p), signature, None)


@pytest.mark.parametrize(("signature", "integer"), [(WIDE, ctypes.c_int64), (NARROW, ctypes.c_int32)])
def test_integers_are_as_wide_as_the_signature_says(
    signature: str, integer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    pointer = ctypes.POINTER(integer)
    calls: list[tuple[bytes, int, int]] = []

    @ctypes.CFUNCTYPE(None, ctypes.c_char_p, pointer, ctypes.c_void_p, pointer, pointer)
    def dpotrf(uplo: bytes, n: Any, array: int, step: Any, info: Any) -> None:
        calls.append((uplo, n[0], step[0]))
        info[0] = 7

    name = signature.encode()
    monkeypatch.setitem(routines.cython_lapack.__pyx_capi__, "dpotrf", capsule(dpotrf, name))
    matrix = np.eye(3)
    assert routines.call_checked("potrf", matrix.dtype, b"L", 3, matrix, 5) == 7
    assert calls == [(b"L", 3, 5)]


@pytest.mark.parametrize(
    "signature",
    [
        "void (char *, __pyx_t_5scipy_6linalg_13cython_lapack_blas_int *, double *)",
        "void (int *, int64_t *)",
        "int (int *)",
        "void (char *, double *)",
        "",
    ],
)
def test_unknown_integers_are_an_error_before_any_call(signature: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @ctypes.CFUNCTYPE(None)
    def never() -> None:
        raise AssertionError

    name = signature.encode()
    monkeypatch.setitem(routines.cython_lapack.__pyx_capi__, "dpotrf", capsule(never, name))
    matrix = np.eye(3)
    with pytest.raises(MercerError, match=r"size of its integers \(32 or 64 bits\) cannot be determined"):
        routines.call_checked("potrf", matrix.dtype, b"L", 3, matrix, 3)


def test_the_installed_scipy_is_understood() -> None:
    for routine in ("potrf", "trtri", "lauum", "gemm", "syrk", "trsm", "trmm"):
        for prefix in "sd":
            assert ctypes.sizeof(routines._routine(prefix + routine)[1]) in (4, 8)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(64, 100), (65, 65), (65, 64), (130, 70), (257, 300), (1, 3)])
def test_triangles_are_solved_by_halves(rows: int, columns: int, transposed: bool) -> None:
    rng = np.random.default_rng(0)
    store = rng.normal(size=(rows, rows + 3))
    triangle = store[:, :rows]
    triangle[np.diag_indices(rows)] += 4.0 * np.sqrt(rows)
    upper = np.triu(triangle)
    # What is below the diagonal is not read.
    triangle[np.tril_indices(rows, -1)] = np.nan
    block = rng.normal(size=(rows, columns + 2))
    expected = block.copy()
    expected[:, :columns] = -2.0 * np.linalg.solve(upper.T if transposed else upper, block[:, :columns])
    routines.by_triangle("trsm", triangle, block[:, :columns], transposed=transposed, alpha=-2.0)
    np.testing.assert_allclose(block, expected, rtol=1e-10, atol=1e-13)
