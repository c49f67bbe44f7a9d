"""Matrices whose entries are expensive: computed once and kept, where they fit."""

from __future__ import annotations

from mercer.engine import memory
from mercer.gram.operator import Gram
from mercer.gram.precomputed import PrecomputedGram

# Learners hold a copy of the matrix, or a factor of it, beside it.
_SHARE = 0.5


def evaluated(gram: Gram) -> Gram | PrecomputedGram:
    """The same matrix with every entry computed once; the lazy one where that takes over half of the memory budget.

    Examples
    --------
    >>> from mercer.kernels import Subsequence
    >>> type(evaluated(Gram(Subsequence(2), ["gram", "ram"]))).__name__
    'PrecomputedGram'
    """
    if gram.nbytes > _SHARE * memory.budget():
        return gram
    kept = PrecomputedGram(gram.dense(), symmetric=gram.symmetric)
    kept.n_jobs = gram.n_jobs
    return kept
