"""Kernel systems of low rank: linear kernels of few columns, smooth kernels of one or two, many repeated rows."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import scipy.linalg

from mercer._types import Matrix, Vector
from mercer.engine import memory
from mercer.gram.hold import capacity, fits
from mercer.solvers.algebra.conjugate_gradients import Refined, refine
from mercer.solvers.linear.linear_system import ScaledGram
from mercer.solvers.linear.low_rank import LowRankForm, ShiftedLowRank, find_low_rank

# Where the matrix is, for certificates.
LOW_RANK_STORAGE = "a factor of low rank in its place"
# Below this many rows a Cholesky factor takes milliseconds.
_FROM = 512
# A rank of up to this share of the rows is looked for: where there is none, that costs 1 to 3 % of a factorisation.
_SHARE = 1 / 16
# Columns that are tried where a factorisation would not fit the budget, so that the error comes within a second.
_TRIED = 512
# Arrays of n x rank that are needed at once.
_ARRAYS = 4


def low_rank_form(
    gram: ScaledGram, stack: ExitStack, share: float = _SHARE, n_jobs: int | None = None
) -> LowRankForm | None:
    """The form of the matrix if its rank is a small share of the rows and what it takes fits the budget; else None.

    Nothing of size n x n is made.
    """
    n = gram.gram.shape[0]
    if n < _FROM:
        return None
    most = capacity(8 * (_ARRAYS + 1) * n, int(share * n))
    if not fits(8 * n * n):
        most = min(most, _TRIED)
    if most < 1:
        return None
    with ExitStack() as needed:
        needed.enter_context(memory.reserve(8 * n * most, "a low-rank form of the kernel matrix"))
        form = find_low_rank(gram, most, n_jobs)
    if form is not None:
        stack.enter_context(memory.reserve(8 * _ARRAYS * n * form.Q.shape[1], "the low-rank form of the kernel matrix"))
    return form


def regular_shift(form: LowRankForm, gram: ScaledGram, shift: float) -> ShiftedLowRank | None:
    """The form plus ``shift I``, or None if that is singular to working precision."""
    n = form.Q.shape[0]
    floor = np.sqrt(n) * np.finfo(float).eps * (float(gram.diagonal().max()) + shift)
    shifted = ShiftedLowRank(form, shift, floor)
    return shifted if shifted.regular else None


def solve_shifted(form: LowRankForm, gram: ScaledGram, shift: float, b: Matrix) -> Refined | None:
    """Solve ``(A + shift I) z = b``, refined with products of A itself; None if that is singular."""
    shifted = regular_shift(form, gram, shift)
    if shifted is None:
        return None
    return refine(lambda V: gram @ V + shift * V, lambda V: form.back(shifted.solve(form.into(V))), b)


def eigenpairs(form: LowRankForm) -> tuple[Vector, Matrix]:
    """Eigenvalues, (r,), and eigenvectors, (n, r), of what the form is not zero on."""
    values, inside = scipy.linalg.eig_banded(form.inner.band, lower=True)
    # Q holds the orthogonal factor of the band form already.
    return values, form.Q @ inside
