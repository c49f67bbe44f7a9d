"""Transposing a tile by squares that fit the vector registers: a plain strided copy misses the cache at every entry."""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from mercer.loops._jit import jit

# Bytes in a row of a square: one line of the cache, which is then written as a whole.
_LINE = 64


@intrinsic
def _side(typing_context, tile):
    """Rows and columns of a square."""

    def generate(context, builder, signature, arguments):
        return context.get_constant(types.intp, _entries(signature.args[0]))

    return types.intp(tile), generate


def _entries(tile):
    return _LINE // (tile.dtype.bitwidth // 8)


@intrinsic
def _transpose_square(typing_context, tile, i, j, out):
    """``out[j:j + s, i:i + s] = tile[i:i + s, j:j + s].T`` for the side s; the rows of both must be contiguous.

    Exchanges entries between two rows at distance 1, 2, 4, ..., as in J. O. Eklundh, "A fast computer method for matrix
    transposing", IEEE Trans. Comput. 21 (1972).
    """

    def generate(context, builder, signature, arguments):
        kinds = signature.args[0], signature.args[3]
        arrays = [context.make_array(k)(context, builder, arguments[n]) for k, n in zip(kinds, (0, 3), strict=True)]
        side = _entries(kinds[0])
        vector = ir.VectorType(context.get_data_type(kinds[0].dtype), side)

        def place(which, row, column):
            index = [builder.add(row[0], ir.Constant(row[0].type, row[1])), column]
            pointer = cgutils.get_item_pointer(context, builder, kinds[which], arrays[which], index)
            return builder.bitcast(pointer, vector.as_pointer())

        i, j = arguments[1], arguments[2]
        rows = [builder.load(place(0, (i, k), j), align=1) for k in range(side)]
        distance = 1
        while distance < side:
            # Of two rows, lanes of the first and of the second: those with and without this bit of their number.
            here = [side + k - distance if k & distance else k for k in range(side)]
            there = [side + k if k & distance else k + distance for k in range(side)]
            masks = [ir.Constant(ir.VectorType(ir.IntType(32), side), lanes) for lanes in (here, there)]
            pairs = [(k, k + distance) for k in range(side) if not k & distance]
            for first, second in pairs:
                both = rows[first], rows[second]
                rows[first], rows[second] = (builder.shuffle_vector(*both, mask) for mask in masks)
            distance *= 2
        for k, row in enumerate(rows):
            builder.store(row, place(1, (j, k), i), align=1)
        return context.get_dummy_value()

    # Without a signature, that is for arrays of two types, the loop does not compile.
    return (types.void(tile, i, j, out), generate) if tile.dtype == out.dtype else None


@jit
def transpose(tile, out):
    """``out = tile.T``."""
    r, c = tile.shape
    side = _side(tile)
    contiguous = tile.strides[1] == tile.itemsize and out.strides[1] == tile.itemsize
    whole_r, whole_c = (r - r % side, c - c % side) if contiguous else (0, 0)
    for j in range(0, whole_c, side):
        for i in range(0, whole_r, side):
            _transpose_square(tile, i, j, out)
    for i in range(r):
        for j in range(whole_c if i < whole_r else 0, c):
            out[j, i] = tile[i, j]


@jit
def mirror(tile):
    """Below the diagonal of a square tile what is above it."""
    n = tile.shape[0]
    side = _side(tile)
    whole = n - n % side if tile.strides[1] == tile.itemsize else 0
    for j in range(0, whole, side):
        for i in range(0, j, side):
            _transpose_square(tile, i, j, tile)
        for a in range(j, j + side):
            for b in range(a + 1, j + side):
                tile[b, a] = tile[a, b]
    for a in range(n):
        for b in range(max(whole, a + 1), n):
            tile[b, a] = tile[a, b]
