"""Whether a matrix is symmetric and finite, in one pass over it, and where it is least symmetric."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from mercer.loops._jit import jit

# Sides of the squares that are turned in registers, and of those that ``widest_gap`` visits.
_LANES = _SIDE = 8
# Columns that are visited before the next rows.
_PART = 256


@jit
def widest_gap(tile, other):
    """The largest ``|tile_ij - other_ji|``, with i and j."""
    r, c = tile.shape
    worst, row, column = 0.0, 0, 0
    for i in range(0, r, _SIDE):
        for j in range(0, c, _SIDE):
            for a in range(i, min(i + _SIDE, r)):
                for b in range(j, min(j + _SIDE, c)):
                    gap = abs(tile[a, b] - other[b, a])
                    if gap > worst:
                        worst, row, column = gap, a, b
    return worst, row, column


@intrinsic
def _square_differs(typing_context: Any, K: Any, i: Any, j: Any, gap: Any) -> Any:
    """Whether ``|K_rs - K_sr| <= gap`` fails for any r in ``i, ..., i + 7`` and s in ``j, ..., j + 7``.

    The entries of a row of K lie side by side. Eight rows of the mirror image are turned by exchanging pairs, pairs of
    pairs, and halves of the vectors, which is what the compiler does not find by itself.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        word, lane = ir.IntType(64), ir.IntType(32)
        size = 4 if signature.args[0].dtype == types.float32 else 8
        vector = ir.VectorType(context.get_value_type(signature.args[0].dtype), _LANES)
        begin, stride = builder.ptrtoint(array.data, word), builder.extract_value(array.strides, 0)

        def load(row: Any, further: int, column: Any) -> Any:
            row = builder.mul(builder.add(row, ir.Constant(word, further)), stride)
            offset = builder.add(row, builder.mul(column, ir.Constant(word, size)))
            pointer = builder.inttoptr(builder.add(begin, offset), vector.as_pointer())
            loaded = builder.load(pointer)
            loaded.align = size
            return loaded

        def pick(a: Any, b: Any, lanes: list[int]) -> Any:
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(lane, _LANES), lanes))

        i, j, gap = arguments[1:]
        rows = [load(i, number, j) for number in range(_LANES)]
        turned = [load(j, number, i) for number in range(_LANES)]
        for bit in (1, 2, 4):
            for r in range(_LANES):
                if not r & bit:
                    a, b = turned[r], turned[r + bit]
                    turned[r] = pick(a, b, [_LANES + (k ^ bit) if k & bit else k for k in range(_LANES)])
                    turned[r + bit] = pick(a, b, [_LANES + k if k & bit else k ^ bit for k in range(_LANES)])
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), gap, ir.Constant(lane, 0))
        above = pick(one, one, [0] * _LANES)
        below = builder.fneg(above)
        differs = ir.Constant(ir.VectorType(ir.IntType(1), _LANES), [0] * _LANES)
        for row, other in zip(rows, turned):
            gaps = builder.fsub(row, other)
            # Unordered: a NaN is beyond every bound.
            outside = builder.or_(builder.fcmp_unordered(">", gaps, above), builder.fcmp_unordered("<", gaps, below))
            differs = builder.or_(differs, outside)
        bits = builder.bitcast(differs, ir.IntType(_LANES))
        return builder.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(_LANES), 0))

    return types.boolean(K, types.intp, types.intp, K.dtype), generate


@jit
def _any_differs(K, first_row, last_row, first_column, last_column, gap):
    """The same as :func:`has_wider_gap` entry by entry."""
    for i in range(first_row, last_row):
        for j in range(first_column, last_column):
            if not abs(K[i, j] - K[j, i]) <= gap:
                return True
    return False


@jit
def has_wider_gap(K, first_row, last_row, first_column, last_column, gap):
    """Whether ``|K_ij - K_ji| <= gap`` fails for any i and j within the bounds; NaN and infinity fail as well."""
    wider, bound = False, K.dtype.type(gap)
    rows, columns = first_row, first_column
    if K.strides[1] == K.itemsize:
        rows = last_row - (last_row - first_row) % _LANES
        columns = last_column - (last_column - first_column) % _LANES
        # By parts of the columns, whose mirror images stay in the second cache from one eight of rows to the next.
        for begin in range(first_column, columns, _PART):
            for i in range(first_row, rows, _LANES):
                for j in range(begin, min(begin + _PART, columns), _LANES):
                    wider |= _square_differs(K, i, j, bound)
    # The margins, or all of a matrix whose rows do not lie side by side.
    if wider or _any_differs(K, first_row, rows, columns, last_column, gap):
        return True
    return _any_differs(K, rows, last_row, first_column, last_column, gap)
