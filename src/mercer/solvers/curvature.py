"""Whether a matrix that comes from a user curves downwards somewhere: by Lanczos, a few products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh

from mercer._errors import IndefiniteKernelError, KernelValueError
from mercer.engine import memory, threads
from mercer.gram.precomputed import PrecomputedGram, worst_asymmetry

_STEPS = 24
# What a projection leaves of a step is rounding below so many units of eps, and is projected so often at most.
_LOST, _PASSES = 1e3, 8
# Entries that went through float32 or through text move eigenvalues by about so much of the largest.
_ROUNDING = 1e-6
# Rounding in units of eps that may make an entry differ from its mirror image.
_MIRRORED = 1e3
# Of a matrix or function that is said to be a kernel, so many rows are looked at: what they refute is refuted. To
# multiply a matrix of 3,600 rows 24 times would take five times as long as a support vector machine on them.
SAMPLE = 512


def require_conditionally_positive(gram: Any) -> None:
    r"""Refuse K if :math:`c^\top K c < 0` is found for a c that sums to 0, beyond what rounding can do.

    Such a c is a proof that K is not even conditionally positive semi-definite; that none is found is no proof that
    it is. The ends of the spectrum are what Lanczos finds first, so what it misses after 24 products is small. Of a
    matrix of more than 512 rows a principal part is examined, on 512 rows, evenly spread: what refutes the part
    refutes K, and an eigenvalue that all rows share shows in the part, in proportion to its rows.

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
    _require(gram, True, "the kernel matrix", "Mend it by mercer.validity.nearest(K), take another kernel")


def require_positive(gram: Any) -> None:
    r"""Refuse K if :math:`c^\top K c < 0` is found for any c, beyond what rounding can do.

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
    _require(gram, False, "the kernel matrix", "Mend it by mercer.validity.nearest(K), take another kernel")


def require_kernel(
    gram: Any, positions: NDArray[np.intp], precision: Any, *, balanced: bool, curved: bool, name: str | None = None
) -> None:
    r"""Refuse a function that rows show to be no kernel: not symmetric, or :math:`c^\top K c < 0` for some c.

    A principal part of K that curves downwards proves that K does, so that at most 512 rows, evenly spread, are
    looked at. That they show nothing is no proof that the function is a kernel.

    Parameters
    ----------
    gram : Gram
        The matrix of the function, (n, n).
    positions : ndarray of shape (n,)
        What the rows are called in a message.
    precision : dtype
        Of the data: float32 is rounded more.
    balanced : bool
        Whether c has to sum to 0, as weights do where there is an offset.
    curved : bool
        Whether a matrix that curves downwards is taken.
    name : str, optional
        What messages call the function; by default the kernel of the Gram matrix.

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
    n, name = gram.shape[0], name or repr(gram.kernel)
    chosen = np.unique(np.linspace(0, n - 1, min(n, SAMPLE)).round().astype(np.intp))
    with memory.reserve(8 * len(chosen) ** 2, "the kernel matrix of a sample of the rows"):
        # Between two sets of rows, not of one with itself, of which one half would be mirrored.
        K = gram.block(chosen, chosen.copy(), out=np.empty((len(chosen), len(chosen))))
    worst, i, j = worst_asymmetry(K)
    if worst > max(_ROUNDING, _MIRRORED * float(np.finfo(precision).eps)) * float(np.abs(K).max()):
        a, b = positions[chosen[[i, j]]]
        raise KernelValueError(
            f"{name} is not symmetric: it is {K[i, j]:.6g} for the rows {a} and {b} of X, and {K[j, i]:.6g} "
            f"for the rows {b} and {a}. Pass a function with k(x, z) = k(z, x), such as the mean of the two."
        )
    if not curved:
        what = f"the matrix of {name} on {len(chosen)} rows of X"
        _require(PrecomputedGram(K.astype(precision, copy=False)), balanced, what, "Take another kernel")


def lowest_quotient(gram: Any, *, balanced: bool) -> float:
    """The lowest Rayleigh quotient of K that Lanczos finds in 24 products; if balanced, for vectors that sum to 0.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> round(lowest_quotient(PrecomputedGram(np.diag([2.0, 1.0, -3.0])), balanced=False), 12)
    -3.0
    """
    return float(_ritz_values(gram, balanced).min())


def _require(gram: Any, balanced: bool, what: str, mend: str) -> None:
    if gram.shape[0] > SAMPLE:
        chosen = np.linspace(0, gram.shape[0] - 1, SAMPLE).round().astype(np.intp)
        with memory.reserve(SAMPLE**2 * gram.dtype.itemsize, "a part of the kernel matrix"):
            part = gram.block(chosen, chosen, out=np.empty((SAMPLE, SAMPLE), gram.dtype))
            _require(PrecomputedGram(part), balanced, f"{what} on {SAMPLE} of its {gram.shape[0]} rows", mend)
        return
    values = _ritz_values(gram, balanced)
    low, largest = float(values.min()), float(np.abs(values).max())
    rounding = gram.shape[0] * float(np.finfo(gram.dtype).eps) * float(np.abs(gram.diagonal()).max())
    if low < -max(_ROUNDING * largest, rounding):
        among = " that sums to 0" if balanced else ""
        finding = (
            f"{what} is indefinite: c'Kc = {low:.3g} for a unit vector c{among}, and eigenvalues reach up to "
            f"{largest:.3g}"
        )
        raise IndefiniteKernelError(
            f"{finding}. {mend}, or pass allow_indefinite=True to get a stationary point without a guarantee.",
            finding=finding,
        )


def _ritz_values(gram: Any, balanced: bool) -> np.ndarray:
    """Rayleigh quotients of K (if balanced, on the vectors that sum to 0) from both ends of its spectrum inwards."""
    with threads.one_blas_thread():
        return _krylov_values(gram, balanced)


def _krylov_values(gram: Any, balanced: bool) -> np.ndarray:
    n = gram.shape[0]
    basis = np.zeros((min(_STEPS, max(n - balanced, 1)), n))
    products = np.zeros_like(basis)
    random = np.random.default_rng(0)
    step = random.standard_normal(n)
    for k in range(len(basis)):
        basis[k] = _direction(step, basis[:k], balanced, _LOST * float(np.finfo(gram.dtype).eps), random)
        products[k] = gram @ basis[k]
        step = products[k]
    # From all products, not from a recurrence: where the Krylov space ends, the steps are no more than rounding.
    projected = basis @ products.T
    return np.asarray(eigvalsh((projected + projected.T) / 2))


def _direction(
    step: np.ndarray, basis: np.ndarray, balanced: bool, lost: float, random: np.random.Generator
) -> np.ndarray:
    """The part of ``step`` orthogonal to the basis, as a unit vector; a random one where that part is rounding."""
    for _ in range(_PASSES):
        before = float(np.linalg.norm(step))
        step = step - step.mean() if balanced else step
        step = step - basis.T @ (basis @ step)
        length = float(np.linalg.norm(step))
        if length <= lost * before:
            step = random.standard_normal(len(step))
            continue
        step /= length
        # Where little was left, the rest is orthogonal to few digits.
        if length > 0.5 * before:
            return step
    # One row, whose weight has to be 0.
    return np.zeros_like(step)
