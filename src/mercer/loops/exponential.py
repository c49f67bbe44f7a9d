"""The exponential function in place: in float32, and in float64 without AVX-512, several times as fast as NumPy's.

Where the code cannot be compiled, or gives something else, ``mercer.kernels.elementary`` takes NumPy's instead.
"""

import logging

import numpy as np
from llvmlite import ir
from numba import float32
from numba.extending import intrinsic

from mercer.loops._jit import jit_in_order, prefer_wide_vectors

# x = n ln 2 + r. The first part of ln 2 has so few bits that its multiples are exact.
_LOG2_E = 1.4426950408889634
_LOG2_E_32 = np.float32(_LOG2_E)
_LN2_HIGH_32, _LN2_LOW_32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
_LN2_HIGH, _LN2_LOW = 6.93145751953125e-1, 1.42860682030941723212e-6
# exp(r) on |r| <= ln(2) / 2: Moshier, Cephes Mathematical Library (1989), expf and exp.
_A0, _A1, _A2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_A3, _A4, _A5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_P0, _P1, _P2 = 1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1
_Q0, _Q1, _Q2, _Q3 = 3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0
# Between these the result is neither subnormal nor infinite. At the upper one n is one more than an exponent may be,
# and exp(r) below 1; at the lower one n is the least exponent, and exp(r) above 1: no carry leaves the exponent's bits.
_LOWEST_32, _HIGHEST_32 = np.float32(-87.3), np.float32(88.7)
_LOWEST, _HIGHEST = -708.0, 709.7


@intrinsic
def _nearest(typing_context, x):
    """The nearest whole number, as a float."""

    def generate(context, builder, signature, arguments):
        try:
            function = builder.module.declare_intrinsic("llvm.rint", [arguments[0].type])
        except (AttributeError, NotImplementedError):
            # A number so large that its last bit counts ones: the sum is rounded to a whole number.
            large = ir.Constant(arguments[0].type, 1.5 * 2.0 ** (23 if signature.return_type == float32 else 52))
            return builder.fsub(builder.fadd(arguments[0], large), large)
        return builder.call(function, arguments)

    return x(x), generate


@intrinsic
def _scaled_by_power(typing_context, x, n):
    """``x * 2**n`` for a whole number n held as a float, by adding it to the exponent's bits of x."""

    def generate(context, builder, signature, arguments):
        single = signature.return_type == float32
        real, word = (ir.FloatType(), ir.IntType(32)) if single else (ir.DoubleType(), ir.IntType(64))
        digits, large = (23, 1.5 * 2.0**23) if single else (52, 1.5 * 2.0**52)
        # A number so large that its last bit counts ones: the last bits of the sum are those of n.
        whole = builder.bitcast(builder.fadd(arguments[1], ir.Constant(real, large)), word)
        shifted = builder.shl(whole, ir.Constant(word, digits))
        return builder.bitcast(builder.add(builder.bitcast(arguments[0], word), shifted), real)

    return x(x, n), generate


@jit_in_order
def exponential_float32(tile):
    """``tile = exp(tile)`` for a contiguous float32 tile; below -87.3 zero, above 88.7 infinity, NaN stays NaN."""
    prefer_wide_vectors()
    flat = tile.reshape(tile.size)
    zero, one, infinite, nothing = np.float32(0), np.float32(1), np.float32(np.inf), np.float32(np.nan)
    for k in range(flat.shape[0]):
        x = flat[k]
        n = _nearest(x * _LOG2_E_32)
        r = (x - n * _LN2_HIGH_32) - n * _LN2_LOW_32
        p = ((((_A0 * r + _A1) * r + _A2) * r + _A3) * r + _A4) * r + _A5
        value = _scaled_by_power(p * r * r + r + one, n)
        value = zero if x < _LOWEST_32 else value
        value = infinite if x > _HIGHEST_32 else value
        # Not x itself: to leave an entry as it is becomes a masked store, which takes longer than all the rest.
        flat[k] = value if x == x else nothing


@jit_in_order
def exponential_float64(tile):
    """``tile = exp(tile)`` for a contiguous float64 tile; below -708 zero, above 709.7 infinity, NaN stays NaN."""
    prefer_wide_vectors()
    flat = tile.reshape(tile.size)
    for k in range(flat.shape[0]):
        x = flat[k]
        n = _nearest(x * _LOG2_E)
        r = (x - n * _LN2_HIGH) - n * _LN2_LOW
        square = r * r
        p = r * ((_P0 * square + _P1) * square + _P2)
        q = ((_Q0 * square + _Q1) * square + _Q2) * square + _Q3
        value = _scaled_by_power(1.0 + 2.0 * (p / (q - p)), n)
        value = 0.0 if x < _LOWEST else value
        value = np.inf if x > _HIGHEST else value
        flat[k] = value if x == x else np.nan


@jit_in_order
def exponential_parts(x):
    """``exp(x)`` for x <= 0 as a quotient of two numbers, for loops that divide anyway; 0 below -708."""
    n = _nearest(x * _LOG2_E)
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    square = r * r
    p = r * ((_P0 * square + _P1) * square + _P2)
    q = ((_Q0 * square + _Q1) * square + _Q2) * square + _Q3
    value = _scaled_by_power(q + p, n)
    return 0.0 if x < _LOWEST else value, q - p


def exponential_works(dtype):
    """Whether the function above for a precision compiles here and gives what NumPy gives."""
    # As a tile, for which the function is compiled anyway.
    x = np.linspace(-80.0, 80.0, 41, dtype=dtype)[None]
    values = x.copy()
    try:
        (exponential_float32 if dtype == np.float32 else exponential_float64)(values)
    # What Numba and llvmlite raise for code that they cannot make differs from version to version.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        if np.allclose(values, np.exp(x), rtol=4 * np.finfo(dtype).eps, atol=0.0):
            return True
        reason = f"exp(-80) came out as {values[0, 0]}"
    logging.getLogger("mercer").warning(
        "mercer: the compiled exponential does not work on this processor (%s); NumPy's, which is slower, is "
        "used instead",
        reason,
    )
    return False
