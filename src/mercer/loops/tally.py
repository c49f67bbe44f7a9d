"""Votes and decision values of all pairs of classes, added up by class."""

import numpy as np

from mercer.loops._jit import jit_in_order


@jit_in_order
def tally_pairs(K, dual, ends, offsets, strict, won, sums):
    """Add the votes of all pairs of classes, and their decision values, up by class.

    ``K`` (n_sv, b) holds kernel values of b rows, ``dual`` (k - 1, n_sv) the weights, ``ends`` where classes end among
    the support vectors; ``won`` and ``sums`` are (k, b). A value of zero is a vote for the second class if ``strict``.
    """
    k, width = won.shape
    value = np.empty(width)
    number = 0
    for i in range(k):
        for j in range(i + 1, k):
            for r in range(width):
                value[r] = offsets[number]
            number += 1
            for s in range(ends[i - 1] if i else 0, ends[i]):
                _add(dual[j - 1, s], K[s], value)
            for s in range(ends[j - 1], ends[j]):
                _add(dual[i, s], K[s], value)
            for r in range(width):
                first = 1.0 if value[r] > 0.0 or (value[r] == 0.0 and not strict) else 0.0
                won[i, r] += first
                won[j, r] += 1.0 - first
                sums[i, r] += value[r]
                sums[j, r] -= value[r]


@jit_in_order
def _add(weight, row, value):
    if weight != 0.0:
        for r in range(value.shape[0]):
            value[r] += weight * row[r]
