"""Whether a matrix that a user computed curves downwards somewhere: by Lanczos, a few products."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import eigvalsh

from mercer._errors import IndefiniteKernelError

_STEPS = 24
# Entries that went through float32 or through text move eigenvalues by about so much of the largest.
_ROUNDING = 1e-6


def require_conditionally_positive(gram: Any) -> None:
    r"""Refuse K if :math:`c^\top K c < 0` is found for a c that sums to 0, beyond what rounding can do.

    Such a c is a proof that K is not even conditionally positive semi-definite; that none is found is no proof that
    it is. The ends of the spectrum are what Lanczos finds first, so what it misses after 24 products is small.

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
    _require(gram, balanced=True)


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
    _require(gram, balanced=False)


def _require(gram: Any, balanced: bool) -> None:
    values = _ritz_values(gram, balanced)
    low, largest = float(values.min()), float(np.abs(values).max())
    rounding = gram.shape[0] * float(np.finfo(gram.dtype).eps) * float(np.abs(gram.diagonal()).max())
    if low < -max(_ROUNDING * largest, rounding):
        among = " that sums to 0" if balanced else ""
        raise IndefiniteKernelError(
            f"the kernel matrix is indefinite: c'Kc = {low:.3g} for a unit vector c{among}, and eigenvalues "
            f"reach up to {largest:.3g}. Mend it by mercer.validity.nearest(K), take another kernel, or pass "
            "allow_indefinite=True to get a stationary point without a guarantee."
        )


def _ritz_values(gram: Any, balanced: bool) -> np.ndarray:
    """Rayleigh quotients of K (if balanced, on the vectors that sum to 0) from both ends of its spectrum inwards."""
    n = gram.shape[0]
    basis = np.zeros((min(_STEPS, max(n - balanced, 1)), n))
    products = np.zeros_like(basis)
    step = np.random.default_rng(0).standard_normal(n)
    for k in range(len(basis)):
        # Twice, since what the first time leaves may be rounding.
        for _ in range(2):
            if balanced:
                step -= step.mean()
            step -= basis[:k].T @ (basis[:k] @ step)
            length = float(np.linalg.norm(step))
            if length == 0.0:
                break
            step /= length
        basis[k] = step
        products[k] = gram @ step
        step = products[k].copy()
    # From all products, not from a recurrence: where the Krylov space ends, the steps are no more than rounding.
    projected = basis @ products.T
    return np.asarray(eigvalsh((projected + projected.T) / 2))
