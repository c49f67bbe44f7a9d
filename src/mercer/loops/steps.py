"""What programs of kernels do with tiles (``mercer.loops.programs``): statistics of rows, and functions of a tile.

A program calls each by its address, so that a kernel compiles what it is made of and nothing else. A function is called
as ``f(x, y, factors)`` with flat tiles side by side in memory: it replaces x, where y is a spare tile or, for sums and
products, the one above. A statistic is called as ``f(left, right, factors, tile, room, lost)``: it writes
``factors[0] * statistic`` into the tile, with NaN where rounding took the digits, which it counts in ``lost`` by rows.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import from_dtype, types
from numba.extending import intrinsic

from mercer.loops import distances
from mercer.loops._jit import jit, jit_in_order, prefer_wide_vectors
from mercer.loops.addresses import matrix_at, read_double, read_int, read_single
from mercer.loops.distances import NormedRows
from mercer.loops.exponential import exponential_float32, exponential_float64

# Of either side of the rows as they were given: address, whether it is in float64, addresses of positions or 0, the
# first row and the step.
GIVEN = 5


@intrinsic
def _exponential(typing_context, flat):
    """``flat = exp(flat)`` by the loop for its precision."""
    loop = exponential_float32 if flat.dtype.bitwidth == 32 else exponential_float64

    def generate(context, builder, signature, arguments):
        function = context.typing_context.resolve_value_type(loop)
        chosen = function.get_call_type(context.typing_context, signature.args, {})
        call = context.get_function(function, chosen)
        context.add_linking_libs(call.libs)
        return call(builder, arguments)

    return types.none(flat), generate


@jit_in_order
def exponential(x, y, factors):
    prefer_wide_vectors()
    _exponential(x)


@jit_in_order
def write(x, y, factors):
    value = x.dtype.type(factors[0])
    for k in range(x.shape[0]):
        x[k] = value


@jit_in_order
def recall(x, y, factors):
    """``x = factor y``"""
    factor = y.dtype.type(factors[0])
    for k in range(y.shape[0]):
        x[k] = factor * y[k]


@jit_in_order
def scale(x, y, factors):
    factor = x.dtype.type(factors[0])
    for k in range(x.shape[0]):
        x[k] = x[k] * factor


@jit_in_order
def shift(x, y, factors):
    amount = x.dtype.type(factors[0])
    for k in range(x.shape[0]):
        x[k] = x[k] + amount


@jit_in_order
def add(x, y, factors):
    for k in range(y.shape[0]):
        x[k] = x[k] + y[k]


@jit_in_order
def multiply(x, y, factors):
    for k in range(y.shape[0]):
        x[k] = x[k] * y[k]


@jit_in_order
def root(x, y, factors):
    for k in range(x.shape[0]):
        x[k] = math.sqrt(x[k])


@jit_in_order
def decay(x, y, factors):
    """``x = (one + two u + three u^2) exp(-u)`` for ``u = min(sqrt(x), factor)``."""
    prefer_wide_vectors()
    highest, one, two, three = (x.dtype.type(factors[0]), x.dtype.type(factors[1]),
                                x.dtype.type(factors[2]), x.dtype.type(factors[3]))  # fmt: skip
    for k in range(x.shape[0]):
        u = min(math.sqrt(x[k]), highest)
        x[k] = u
        y[k] = -u
    _exponential(y)
    for k in range(x.shape[0]):
        u = x[k]
        x[k] = (one + two * u + three * u * u) * y[k]


@jit_in_order
def power(x, y, factors):
    """``x = x ** factor`` for a whole factor of at least 1, by repeated squaring."""
    for k in range(x.shape[0]):
        y[k] = x[k]
    exponent = np.int64(factors[0]) - 1
    while exponent > 0:
        if exponent & 1:
            for k in range(y.shape[0]):
                x[k] = x[k] * y[k]
        exponent >>= 1
        if exponent:
            for k in range(y.shape[0]):
                y[k] = y[k] * y[k]


@jit_in_order
def real_power(x, y, factors):
    exponent = x.dtype.type(factors[0])
    for k in range(x.shape[0]):
        x[k] = x[k] ** exponent


@jit_in_order
def log1p(x, y, factors):
    for k in range(x.shape[0]):
        x[k] = math.log1p(x[k])


@jit_in_order
def products(left, right, factors, tile, room, lost):
    """Inner products."""
    np.dot(left.rows, right.rows.T, tile)
    factor = tile.dtype.type(factors[0])
    if factor != 1:
        flat = tile.reshape(tile.size)
        for k in range(flat.shape[0]):
            flat[k] = flat[k] * factor


@jit_in_order
def squared_by_products(left, right, factors, tile, room, lost):
    """Squared distances from inner products."""
    prefer_wide_vectors()
    np.dot(left.rows, right.rows.T, tile)
    factor, threshold = tile.dtype.type(factors[0]), tile.dtype.type(factors[1])
    distances.finish_squared_distances(tile, left.squares, right.squares, factor, threshold, lost)


@jit_in_order
def _turn(rows, room, tile):
    """Write zeros to the tile, and return the rows of its right side as columns."""
    turned = matrix_at(room.ctypes.data, rows.shape[1], rows.shape[0], tile)
    for c in range(turned.shape[0]):
        line = turned[c]
        for j in range(rows.shape[0]):
            line[j] = rows[j, c]
    flat = tile.reshape(tile.size)
    for k in range(flat.shape[0]):
        flat[k] = 0
    return turned


@jit_in_order
def _finish(left, right, factors, tile, lost):
    factor, threshold = tile.dtype.type(factors[0]), tile.dtype.type(factors[1])
    distances.finish_differences(tile, left.squares, right.squares, factor, threshold, lost)


@jit_in_order
def squared_by_differences(left, right, factors, tile, room, lost):
    prefer_wide_vectors()
    distances.add_squared_differences(left.rows, _turn(right.rows, room, tile), tile)
    _finish(left, right, factors, tile, lost)


@jit_in_order
def manhattan(left, right, factors, tile, room, lost):
    prefer_wide_vectors()
    distances.add_differences(left.rows, _turn(right.rows, room, tile), tile)
    _finish(left, right, factors, tile, lost)


@jit_in_order
def chi_squared(left, right, factors, tile, room, lost):
    prefer_wide_vectors()
    distances.add_chi_squared(left.rows, _turn(right.rows, room, tile), tile)
    _finish(left, right, factors, tile, lost)


@jit
def _row(side, positions, place):
    """The number of a row as it was given, whose place may be that of a position."""
    at = positions[place] if positions.shape[0] else place
    return read_int(side[2] + 8 * at) if side[2] else side[3] + side[4] * at


@jit
def _read(side, place):
    return read_double(side[0] + 8 * place) if side[1] else np.float64(read_single(side[0] + 4 * place))


@jit
def repair(given, weights, place, positions, factor, tile, lost):
    """Compute the entries that are NaN from differences of the rows as they were given.

    ``given`` has both sides and the measure of :func:`mercer.loops.distances.distance`, ``place`` the first row and
    column of the tile.
    """
    left, right, measure, d = given[:GIVEN], given[GIVEN : 2 * GIVEN], given[2 * GIVEN], weights.shape[0]
    x, z = np.empty(d), np.empty(d)
    for i in range(tile.shape[0]):
        if lost[i] == 0:
            continue
        at = _row(left, positions, place[0] + i) * d
        for c in range(d):
            x[c] = _read(left, at + c)
        row = tile[i]
        for j in range(row.shape[0]):
            if row[j] != row[j]:
                other = _row(right, positions[:0], place[1] + j) * d
                for c in range(d):
                    z[c] = _read(right, other + c)
                row[j] = factor * distances.distance(x, z, weights, measure)


@functools.cache
def of_numbers(function: Callable[[float, Any], float]) -> Any:
    """A step that replaces each entry x by ``function(x, factors)``, compiled in each process."""
    value = function if hasattr(function, "py_func") else numba.njit(error_model="numpy")(function)

    @jit_in_order
    def step(x, y, factors):
        for k in range(x.shape[0]):
            x[k] = value(x[k], factors)

    step._cache.disable()
    return step


def _kinds(dtype: np.dtype) -> dict[str, Any]:
    real = from_dtype(dtype)
    flat, matrix, whole = types.Array(real, 1, "C"), types.Array(real, 2, "C"), types.Array(types.int64, 1, "C")
    rows = types.NamedTuple((matrix, flat), NormedRows)
    doubles = types.Array(types.float64, 1, "C")
    return {
        "function": (flat, flat, doubles),
        "statistic": (rows, rows, doubles, matrix, flat, whole),
        "repair": (whole, doubles, types.UniTuple(types.int64, 2), whole, types.float64, matrix, whole),
    }


@functools.cache
def address_of(loop: Callable[..., Any], kind: str, dtype: np.dtype) -> int:
    """Where the code of a step is, for tiles of a precision; compiled if it has not been."""
    arguments = _kinds(dtype)[kind]
    loop.compile(arguments)
    compiled = loop.overloads[arguments]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))
