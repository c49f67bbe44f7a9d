"""Rows of zeros and ones, 64 columns to a word: functions of inner products and distances by counting bits."""

import numpy as np
from numba.extending import intrinsic

from mercer.loops._jit import jit


@intrinsic
def _ones(typing_context, word):
    """The number of ones among the bits of ``word``; one instruction, or a vector of them."""

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return word(word), generate


@jit
def common_ones(A, B, counts, table, out):
    """``table[#{c: A_ic = B_cj = 1}]`` for words ``A (r, w)``, ``B (w, c)``; ``counts (c,)`` is work memory."""
    for i in range(A.shape[0]):
        row = out[i]
        counts[:] = 0
        for c in range(A.shape[1]):
            word = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                counts[j] += np.int64(_ones(word & other[j]))
        for j in range(row.shape[0]):
            row[j] = table[counts[j]]


@jit
def differing_bits(A, B, counts, table, out):
    """``table[#{c: A_ic != B_cj}]``; for zeros and ones that number is the squared distance."""
    for i in range(A.shape[0]):
        row = out[i]
        counts[:] = 0
        for c in range(A.shape[1]):
            word = A[i, c]
            other = B[c]
            for j in range(row.shape[0]):
                counts[j] += np.int64(_ones(word ^ other[j]))
        for j in range(row.shape[0]):
            row[j] = table[counts[j]]
