"""The exponential function in place, in float32: more than twice as fast as NumPy's, and closer to the exact value."""

import numpy as np
from llvmlite import ir
from numba import float32, int32
from numba.extending import intrinsic

from mercer.loops._jit import jit_in_order

# log2(e), and ln 2 in two parts, the first with so few bits that its multiples are exact.
_LOG2_E = np.float32(1.4426950408889634)
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
# exp(r) on |r| <= ln(2) / 2: Moshier, Cephes Mathematical Library (1989), expf.
_P0, _P1, _P2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P3, _P4, _P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
# Between these the result is neither subnormal nor infinite.
_LOWEST, _HIGHEST = np.float32(-87.3), np.float32(88.7)


@intrinsic
def _nearest(typing_context, x):
    """The nearest whole number, as a float."""

    def generate(context, builder, signature, arguments):
        kind = arguments[0].type
        function = builder.module.declare_intrinsic("llvm.rint", [kind])
        return builder.call(function, arguments)

    return x(x), generate


@intrinsic
def _power_of_two(typing_context, n):
    """``2**n`` from its bits, for n between -126 and 127."""

    def generate(context, builder, signature, arguments):
        word = ir.IntType(32)
        exponent = builder.add(arguments[0], ir.Constant(word, 127))
        return builder.bitcast(builder.shl(exponent, ir.Constant(word, 23)), ir.FloatType())

    return float32(int32), generate


@jit_in_order
def exponential(tile):
    """``tile = exp(tile)`` for a contiguous float32 tile; below -87.3 zero, above 88.7 infinity, NaN stays NaN."""
    flat = tile.reshape(tile.size)
    one, zero, infinite = np.float32(1), np.float32(0), np.float32(np.inf)
    for k in range(flat.shape[0]):
        x = flat[k]
        inside = min(max(x, _LOWEST), _HIGHEST)
        n = _nearest(inside * _LOG2_E)
        r = (inside - n * _LN2_HIGH) - n * _LN2_LOW
        p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
        # In two factors: 2**128 is no float32.
        half = int32(n) >> 1
        value = (p * r * r + r + one) * _power_of_two(half) * _power_of_two(int32(n) - half)
        value = zero if x < _LOWEST else value
        value = infinite if x > _HIGHEST else value
        flat[k] = value if x == x else x
