"""Whether a matrix that comes from a user curves downwards somewhere: by a Cholesky factor, else by Lanczos."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import IndefiniteKernelError, KernelValueError
from mercer.engine import lapack, memory, threads, tiles
from mercer.gram.hold import whole_matrix
from mercer.gram.precomputed import PrecomputedGram, worst_asymmetry
from mercer.gram.protocol import GramMatrix
from mercer.loops.picked import pick_upper
from mercer.solvers.algebra.lanczos import Krylov

_STEPS = 24
# Entries that went through float32 or through text move eigenvalues by about this share of the largest.
_ROUNDING = 1e-6
# A factor in float32 counts where every eigenvalue is above this part of the largest diagonal entry. For 512 rows its
# rounding is below 3e-5 of that, unless errors of one sign add up everywhere.
_ROOM = 1e-4
# Rounding in units of eps that may make an entry differ from its mirror image.
_MIRRORED = 1e3
# A matrix or function that is declared to be a kernel is examined on at most this many rows: what they refute is
# refuted. Multiplying a matrix of 3,600 rows 24 times would take five times as long as a support vector machine on it.
SAMPLE = 512


def require_conditionally_positive(gram: GramMatrix) -> None:
    r"""Raise an error if a c that sums to 0 is found with :math:`c^\top K c < 0`, beyond rounding.

    Such a c proves that K is not even conditionally positive semi-definite; that none is found does not prove that
    it is. A Cholesky factor of K with the tolerance on its diagonal shows that there is none. Where K has no such
    factor, Lanczos looks for c: the ends of the spectrum are what it finds first, so what it misses after 24 products
    is small. Of a matrix of more than 512 rows a principal part is examined, on 512 rows, evenly spread: what refutes
    the part refutes K, and an eigenvalue that all rows share shows in the part, in proportion to its rows.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n).

    Raises
    ------
    IndefiniteKernelError
        With the Rayleigh quotient that was found.

    References
    ----------
    Golub and Van Loan, "Matrix Computations" (4th edition, 2013), section 10.1.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> require_conditionally_positive(PrecomputedGram(-np.eye(3)))
    Traceback (most recent call last):
        ...
    mercer._errors.IndefiniteKernelError: the kernel matrix is indefinite: c'Kc = -1 for a unit vector c ...
    """
    _require(gram, True, "the kernel matrix", "Repair it with mercer.validity.nearest(K), choose another kernel")


def require_positive(gram: GramMatrix) -> None:
    r"""Raise an error if any c is found with :math:`c^\top K c < 0`, beyond rounding.

    For machines without an offset, whose weights need not sum to 0; else as
    :func:`require_conditionally_positive`.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n).

    Raises
    ------
    IndefiniteKernelError
        With the Rayleigh quotient that was found.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> require_positive(PrecomputedGram(-np.ones((2, 2))))
    Traceback (most recent call last):
        ...
    mercer._errors.IndefiniteKernelError: the kernel matrix is indefinite: c'Kc = -2 for a unit vector c, ...
    """
    _require(gram, False, "the kernel matrix", "Repair it with mercer.validity.nearest(K), choose another kernel")


def require_kernel(
    gram: GramMatrix,
    positions: NDArray[np.intp],
    precision: Any,
    *,
    balanced: bool,
    curved: bool,
    name: str = "the kernel",
) -> None:
    r"""Raise an error if rows show that a function is not a kernel: not symmetric, or :math:`c^\top K c < 0`.

    A principal part of K that curves downwards proves that K does, so that at most 512 rows, evenly spread, are
    examined. That they show nothing does not prove that the function is a kernel.

    Parameters
    ----------
    gram : GramMatrix
        The matrix of the function, (n, n).
    positions : ndarray of shape (n,)
        What the rows are called in a message.
    precision : dtype
        Of the data: float32 is rounded more.
    balanced : bool
        Whether c has to sum to 0, as weights do where there is an offset.
    curved : bool
        Whether a matrix that curves downwards is accepted.
    name : str, default="the kernel"
        What messages call the function.

    Raises
    ------
    KernelValueError
        If it is not symmetric, with two values that differ.
    IndefiniteKernelError
        With the Rayleigh quotient that was found.

    Examples
    --------
    >>> from mercer import Gram
    >>> from mercer.kernels import from_function
    >>> X, eye = np.eye(3), np.arange(3)
    >>> require_kernel(Gram(from_function(lambda A, B: A @ B.T), X), eye, X.dtype, balanced=True, curved=False)
    """
    n = gram.shape[0]
    sample = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).round().astype(np.intp))
    with memory.reserve(8 * len(sample) ** 2, "the kernel matrix of a sample of the rows"):
        # Between two sets of rows, not of one with itself, of which one half would be mirrored.
        K = gram.block(sample, sample.copy(), out=np.empty((len(sample), len(sample))))
    worst, i, j = worst_asymmetry(K)
    if worst > max(_ROUNDING, _MIRRORED * float(np.finfo(precision).eps)) * float(np.abs(K).max()):
        a, b = positions[sample[[i, j]]]
        raise KernelValueError(
            f"{name} is not symmetric: it is {K[i, j]:.6g} for the rows {a} and {b} of X, and {K[j, i]:.6g} "
            f"for the rows {b} and {a}. Pass a function with k(x, z) = k(z, x), such as the mean of the two."
        )
    if not curved:
        what = f"the matrix of {name} on {len(sample)} rows of X"
        _require(PrecomputedGram(K.astype(precision, copy=False)), balanced, what, "Choose another kernel")


def lowest_quotient(gram: GramMatrix, *, balanced: bool) -> float:
    """The lowest Rayleigh quotient of K that Lanczos finds in 24 products; if balanced, for vectors that sum to 0.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> round(lowest_quotient(PrecomputedGram(np.diag([2.0, 1.0, -3.0])), balanced=False), 12)
    -3.0
    """
    return float(_ritz_values(gram, balanced).min())


def _require(gram: GramMatrix, balanced: bool, what: str, remedy: str) -> None:
    n = gram.shape[0]
    if n > SAMPLE:
        sample = np.linspace(0, n - 1, SAMPLE).round().astype(np.intp)
        gram, what, n = gram.restrict(sample, sample), f"{what} on {SAMPLE} of its {n} rows", SAMPLE
    with memory.reserve(n**2 * (8 + gram.dtype.itemsize), "a part of the kernel matrix and a Cholesky factor"):
        # A matrix that is stored is not copied.
        part = gram if gram.stored() is not None else PrecomputedGram(whole_matrix(gram, gram.dtype))
        _require_stored(part, balanced, what, remedy)


def _require_stored(part: GramMatrix, balanced: bool, what: str, remedy: str) -> None:
    largest_diagonal = float(np.abs(part.diagonal()).max())
    rounding = part.shape[0] * float(np.finfo(part.dtype).eps) * largest_diagonal
    # No entry of the diagonal is larger than the largest eigenvalue.
    shift = max(_ROUNDING * largest_diagonal, rounding)
    # Most kernels leave room for the rounding of a factor in float32, which takes half as long.
    if _has_cholesky_factor(part, -_ROOM * largest_diagonal, np.float32) or _has_cholesky_factor(part, shift):
        return
    values = _ritz_values(PrecomputedGram(whole_matrix(part, part.dtype)), balanced)
    low, largest = float(values.min()), float(np.abs(values).max())
    if low < -max(_ROUNDING * largest, rounding):
        among = " that sums to 0" if balanced else ""
        finding = (
            f"{what} is indefinite: c'Kc = {low:.3g} for a unit vector c{among}, and eigenvalues reach up to "
            f"{largest:.3g}"
        )
        raise IndefiniteKernelError(
            f"{finding}. {remedy}, or pass allow_indefinite=True to get a stationary point without a guarantee.",
            finding=finding,
        )


def _has_cholesky_factor(part: GramMatrix, shift: float, dtype: type[np.floating] = np.float64) -> bool:
    """Whether ``K + shift I`` has a Cholesky factor: a proof, far cheaper than Lanczos, that no eigenvalue is lower."""
    n = part.shape[0]
    stored = part.stored()
    assert stored is not None
    matrix, at = stored
    with tiles.scratch((n, n), np.dtype(dtype)) as factor:
        # In the order in which they lie: whether there is a factor does not depend on the order of the rows.
        pick_upper(matrix, np.sort(at), factor)
        diagonal = np.einsum("ii->i", factor)
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal += shift
        # What overflows float32 is infinite, or NaN, in the factor.
        return lapack.factor_cholesky(factor) == 0 and bool(np.isfinite(diagonal).all())


def _ritz_values(gram: GramMatrix, balanced: bool) -> np.ndarray:
    """Rayleigh quotients of K (if balanced, on the vectors that sum to 0) from both ends of its spectrum inwards."""
    start = np.random.default_rng(0).standard_normal(gram.shape[0])
    space = Krylov(lambda v: gram @ v, start, _STEPS, balanced=balanced, precision=gram.dtype)
    with threads.one_blas_thread():
        while not space.is_full:
            space.extend()
        return space.ritz()[0]
