import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import numba
import numpy as np
import pytest

from mercer.kernels import RBF, elementary
from mercer.kernels.elementary import exponential
from mercer.loops import exponential as own
from mercer.loops.exponential import exponential_float32, exponential_float64

FORMS = [
    pytest.param(exponential_float32, np.float32, -87.3, 88.7, id="float32"),
    pytest.param(exponential_float64, np.float64, -708.0, 709.7, id="float64"),
]


@pytest.mark.parametrize("function, dtype, low, high", FORMS)
def test_is_within_two_units_in_the_last_place(function, dtype, low, high, rng):
    # Half powers of two are where the whole number and the rest are least sure of each other.
    middles = (np.arange(-120, 120) + 0.5) * np.log(2)
    x = np.concatenate([rng.uniform(low, high, 100_000), rng.uniform(-1, 1, 100_000), middles, [low, high]])
    x = np.clip(x.astype(dtype), dtype(low), dtype(high))
    exact = np.exp(x.astype(np.longdouble))
    function(x)
    assert (np.abs(x - exact) / exact).max() < (1 if dtype == np.float32 else 1.5) * np.finfo(dtype).eps


@pytest.mark.parametrize("function, dtype, low, high", FORMS)
def test_ends_of_the_range(function, dtype, low, high):
    large = float(np.finfo(dtype).max)
    x = [0.0, -0.0, low - 1, -large, -np.inf, high + 1, large, np.inf, np.nan]
    tile = np.tile(np.array(x, dtype), (3, 5))
    function(tile)
    expected = np.array([1, 1, 0, 0, 0, np.inf, np.inf, np.inf, np.nan], dtype)
    np.testing.assert_array_equal(tile, np.tile(expected, (3, 5)))


@pytest.mark.parametrize("function, dtype, low, high", FORMS)
def test_wide_vectors_change_no_value(function, dtype, low, high, rng):
    source = function.py_func
    narrow = FunctionType(source.__code__, source.__globals__ | {"prefer_wide_vectors": _nothing})
    x = rng.uniform(low, high, 10_007).astype(dtype)
    wide = x.copy()
    function(wide)
    numba.njit(fastmath={"contract"}, error_model="numpy")(narrow)(x)
    np.testing.assert_array_equal(x, wide)


@numba.njit
def _nothing():
    pass


def test_wide_vectors_are_asked_for():
    # Compiled anew: what comes from the cache has no text.
    fresh = numba.njit(fastmath={"contract"}, error_model="numpy")(exponential_float32.py_func)
    fresh(np.zeros(4, np.float32))
    assert all('"prefer-vector-width"="512"' in text for text in fresh.inspect_llvm().values())


def test_other_arrays_are_left_to_numpy(rng):
    whole = rng.normal(size=(6, 8))
    expected = whole.copy()
    expected[:, ::2] = np.exp(expected[:, ::2])
    part = whole[:, ::2]
    assert exponential(part) is part
    np.testing.assert_array_equal(whole, expected)
    half = rng.normal(size=4).astype(np.float16)
    np.testing.assert_array_equal(exponential(half.copy()), np.exp(half))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_intrinsics_work_here(dtype):
    assert own.exponential_works(dtype)


def _raises(tile):
    raise NotImplementedError("llvm.rint")


def _is_wrong(tile):
    tile += 1


@pytest.mark.parametrize(("function", "reason"), [(_raises, "NotImplementedError: llvm.rint"), (_is_wrong, "exp(-80)")])
def test_what_does_not_work_is_noticed_and_said(function, reason, monkeypatch, caplog):
    monkeypatch.setattr(own, "exponential_float64", function)
    assert not own.exponential_works(np.float64)
    assert reason in caplog.text and "NumPy's, which is slower, is used" in caplog.text


def test_numpy_takes_the_place_of_what_does_not_work(monkeypatch, rng):
    monkeypatch.setattr(elementary, "compiled_works", lambda dtype: False)
    for name in ("exponential_float32", "exponential_float64"):
        monkeypatch.setattr(elementary, name, _raises)
    for dtype in (np.float32, np.float64):
        t = rng.normal(size=(4, 5)).astype(dtype)
        expected = np.exp(t)
        np.testing.assert_array_equal(elementary.exponential(t), expected)
    X = rng.normal(size=(9, 3))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(RBF(1.5)(X), np.exp(-squares / 4.5), rtol=1e-13)


@pytest.mark.slow
def test_loops_without_the_instruction(tmp_path: Path):
    # LLVM without it: what contains the function is compiled anew.
    code = """
import sys
import numpy as np
from llvmlite import ir
known = ir.Module.declare_intrinsic
def declare(module, name, *arguments, **options):
    if name == "llvm.rint":
        raise NotImplementedError(name)
    return known(module, name, *arguments, **options)
ir.Module.declare_intrinsic = declare
from mercer.loops.exponential import exponential_float32, exponential_float64, exponential_works
assert exponential_works(np.float32) and exponential_works(np.float64)
for function, dtype, low, high in ((exponential_float32, np.float32, -87, 88), (exponential_float64, float, -707, 709)):
    x = np.linspace(low, high, 100_001).astype(dtype)
    exact = np.exp(x.astype(np.longdouble))
    function(x)
    assert (np.abs(x - exact) / exact).max() < 1.5 * np.finfo(dtype).eps
"""
    process = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    assert process.returncode == 0, process.stderr
    assert "NumPy's, which is slower, is used" not in process.stderr
