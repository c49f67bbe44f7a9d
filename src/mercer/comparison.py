"""Tests of whether two samples differ or two variables are dependent, by distances of means in feature space."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._errors import DataError, IndefiniteKernelError, NumericalError, ParameterError
from mercer._types import Array
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects, short
from mercer.data.seeds import generator
from mercer.data.vectors import column_names
from mercer.engine import memory, tiles
from mercer.estimators.shared.base import bind_columns
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.hold import evaluated
from mercer.gram.precomputed import check_square
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.domain import checked_rows
from mercer.loops.permuted import permuted_products

__all__ = ["PermutationTest", "hsic", "mmd"]

AnyGram = Gram | PrecomputedGram


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """A statistic, and the probability of one at least as large under the null hypothesis.

    Parameters
    ----------
    statistic : float
        The estimate.
    p_value : float or None
        ``(1 + c) / (1 + B)``, where c of the B permutations have a statistic at least as large (up to rounding); None
        without permutations.
    null : ndarray of shape (B,)
        The statistics of the permutations.
    """

    statistic: float
    p_value: float | None
    null: NDArray[np.float64] = field(repr=False)


def mmd(
    X: Any,
    Z: Any,
    kernel: Any = "rbf",
    *,
    gamma: Any = "scale",
    unbiased: bool = True,
    n_permutations: int = 500,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PermutationTest:
    r"""Estimate the squared maximum mean discrepancy of two samples and test by permutations whether they differ.

    .. math:: \mathrm{MMD}^2 = \| E \phi(x) - E \phi(z) \|^2
              = E\, k(x, x') - 2 E\, k(x, z) + E\, k(z, z')

    All permutations are computed by one product of the lazy kernel matrix with their indicators, (n + m, B + 2).

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or other input of the kernel
        For ``"precomputed"``, the kernel matrix (n + m, n + m) of all rows, those of the first sample first.
    Z : array-like or sparse matrix of shape (m, d), or other input of the kernel
        For ``"precomputed"``, n.
    kernel : str, Kernel, scikit-learn kernel or callable, default="rbf"
        Positive or conditionally positive; with ``NegativeDistance()`` this is half the energy distance. Or
        ``"precomputed"``.
    gamma : float or {"scale", "auto"}, default="scale"
        For named kernels; ``"scale"`` is ``1 / (d * variance)`` of all rows.
    unbiased : bool, default=True
        Whether pairs of a row with itself are left out; the estimate can then be negative.
    n_permutations : int, default=500
        B, 0 or more.
    random_state : int, RandomState or None
        Seed of the permutations.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Returns
    -------
    PermutationTest

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, NumericalError, MemoryBudgetError
        If the samples or a parameter cannot be used, sums overflow, or the problem does not fit in memory; see the
        messages.

    References
    ----------
    A. Gretton et al., "A kernel two-sample test" (2012), lemma 6 (equations 3 and 5) and section 5.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, Z = rng.normal(size=(60, 2)), rng.normal(size=(50, 2)) + 1.0
    >>> mmd(X, Z, random_state=0).p_value < 0.01
    True
    >>> mmd(X[:30], X[30:], random_state=0).p_value > 0.05
    True
    """
    _check(n_permutations, unbiased)
    gram, n = _of_both(X, Z, kernel, gamma, n_jobs)
    m = gram.shape[0] - n
    if unbiased and min(n, m) < 2:
        raise DataError(f"the unbiased estimate needs at least two rows of each sample, but there are {n} and {m}.")
    rng = generator(random_state)
    with memory.reserve(16 * (n + m) * (n_permutations + 2), f"{n_permutations} permutations of {n + m} rows"):
        first = np.zeros((n + m, n_permutations + 2))
        first[:n, 0], first[:, -1] = 1, 1
        for b in range(n_permutations):
            first[rng.permutation(n + m)[:n], b + 1] = 1
        products = gram @ first
        within = np.einsum("ij,ij->j", first, products)
        rows = products[:, -1].astype(np.float64) @ first
    own = gram.diagonal()
    diagonal, total = own @ first[:, :-1], float(within[-1])
    a, r = within[:-1], rows[:-1]
    b, between = total - 2 * r + a, r - a
    if unbiased:
        a, b = (a - diagonal) / (n * (n - 1)), (b - (own.sum() - diagonal)) / (m * (m - 1))
    else:
        a, b = a / n**2, b / m**2
    size = np.abs(a) + np.abs(b) + 2 * np.abs(between) / (n * m)
    return _tested(a + b - 2 * between / (n * m), float(size.max()), gram.dtype)


def hsic(
    X: Any,
    Y: Any,
    kernel: Any = "rbf",
    kernel_y: Any = None,
    *,
    gamma: Any = "scale",
    unbiased: bool = True,
    n_permutations: int = 500,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PermutationTest:
    r"""Estimate the Hilbert-Schmidt independence criterion of paired rows and test by permutations for independence.

    .. math:: \mathrm{HSIC}_b = \frac{1}{n^2} \mathrm{tr}(K H L H), \qquad
              \mathrm{HSIC}_u = \frac{1}{n (n - 3)} \Big[ \mathrm{tr}(\tilde K \tilde L)
              + \frac{1^\top \tilde K 1\; 1^\top \tilde L 1}{(n - 1)(n - 2)}
              - \frac{2}{n - 2} 1^\top \tilde K \tilde L 1 \Big]

    where the matrices with a tilde have zeros on their diagonals. K is evaluated by tiles, once for all permutations,
    which reorder L; L is stored in 8 n^2 bytes.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or other input of the kernel
    Y : array-like of shape (n,), (n, e), sparse matrix, or other input of the kernel
    kernel : str, Kernel, scikit-learn kernel or callable, default="rbf"
        For X; ``"precomputed"`` if X is its kernel matrix (n, n).
    kernel_y : the same, optional
        For Y; None for ``kernel``.
    gamma : float or {"scale", "auto"}, default="scale"
        For named kernels; used for both.
    unbiased : bool, default=True
        Whether terms in which an index occurs twice are left out; the estimate can then be negative.
    n_permutations : int, default=500
        B, 0 or more.
    random_state : int, RandomState or None
        Seed of the permutations.
    n_jobs : int, optional
        Number of threads; None for all cores.

    Returns
    -------
    PermutationTest

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, NumericalError, MemoryBudgetError
        If the rows or a parameter cannot be used, sums overflow, or the problem does not fit in memory; see the
        messages.

    References
    ----------
    A. Gretton et al., "A kernel statistical test of independence" (2007), equation 4. L. Song et al., "Feature
    selection via dependence maximization" (2012), equation 5.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(80, 1))
    >>> hsic(x, x**2, random_state=0).p_value < 0.01
    True
    """
    _check(n_permutations, unbiased)
    gram = _gram(kernel, gamma, X, "X", n_jobs)
    other = _gram(kernel if kernel_y is None else kernel_y, gamma, Y, "Y", n_jobs)
    n = gram.shape[0]
    if other.shape[0] != n:
        raise DataError(f"X has {n} rows and Y has {other.shape[0]}; rows must be pairs.")
    least = 4 if unbiased else 2
    if n < least:
        raise DataError(f"this estimate needs at least {least} rows, but there are {n}.")
    rng = generator(random_state)
    with memory.reserve(8 * n * (n + n_permutations + 1), f"the {n} x {n} kernel matrix of Y and the permutations"):
        L = other.dense(np.empty((n, n)))
        orders = np.stack([np.arange(n), *(rng.permutation(n) for _ in range(n_permutations))])
        if unbiased:
            np.fill_diagonal(L, 0)
        inner, sums = _inner_products(gram, L, orders, unbiased, n_jobs)
        of_L = L.sum(axis=1)
        mixed = of_L[orders] @ sums
    totals = float(sums.sum()) * float(of_L.sum())
    parts = (
        (inner, totals / ((n - 1) * (n - 2)), -2 / (n - 2) * mixed)
        if unbiased
        else (inner, totals / n**2, -2 / n * mixed)
    )
    divisor = n * (n - 3) if unbiased else n**2
    size = max(float(np.abs(part).max()) for part in parts) / divisor
    return _tested((parts[0] + parts[1] + parts[2]) / divisor, size, gram.dtype)


def _inner_products(
    gram: AnyGram, L: Array, orders: NDArray[np.intp], hollow: bool, n_jobs: int | None
) -> tuple[Array, Array]:
    """``<K, L[p, p]>`` for every order p, and the row sums of K, whose diagonal counts as 0 if ``hollow``."""
    n = len(L)

    def visit(rows: slice, columns: slice) -> Array:
        out = np.zeros(len(orders))
        with tiles.scratch((rows.stop - rows.start, columns.stop - columns.start), np.dtype(np.float64)) as tile:
            gram.fill(rows, columns, tile)
            if hollow and rows == columns:
                np.fill_diagonal(tile, 0)
            permuted_products(tile, L, rows.start, columns.start, orders, out)
        return out if rows == columns else 2 * out

    sums = (gram.astype(np.float64) @ np.ones(n)) - (gram.diagonal() if hollow else 0)
    return tiles.reduce(visit, (n, n), len(orders), n_jobs, symmetric=True), sums


def _tested(values: Array, size: float, dtype: np.dtype) -> PermutationTest:
    """The first value among all; ``size`` is that of the terms, in whose rounding equal statistics may differ."""
    if not (np.isfinite(values).all() and np.isfinite(size)):
        # A comparison with NaN is false, and the permutations would seem to be smaller.
        raise NumericalError(
            "the statistic overflows float64, or that of a permutation. Scale the columns "
            "(sklearn.preprocessing.StandardScaler), or multiply the kernels by small numbers."
        )
    statistic, null = float(values[0]), np.array(values[1:], dtype=np.float64)
    rounding = 16 * float(np.finfo(dtype).eps) * size
    count = int((null >= statistic - rounding).sum())
    return PermutationTest(statistic, (1 + count) / (1 + len(null)) if len(null) else None, null)


def _check(n_permutations: Any, unbiased: Any) -> None:
    if isinstance(n_permutations, bool) or not isinstance(n_permutations, Integral) or int(n_permutations) < 0:
        raise ParameterError(f"n_permutations must be a whole number of 0 or more, but is {short(n_permutations)}.")
    if not isinstance(unbiased, bool | np.bool_):
        raise ParameterError(f"unbiased must be True or False, but is {short(unbiased)}.")


def _of_both(X: Any, Z: Any, kernel: Any, gamma: Any, n_jobs: int | None) -> tuple[AnyGram, int]:
    """The kernel matrix of all rows of two samples, and the number of those in the first."""
    if _is_precomputed(kernel):
        gram = PrecomputedGram(check_square(X, "X"))
        if isinstance(Z, bool) or not isinstance(Z, Integral) or not 0 < int(Z) < gram.shape[0]:
            raise DataError(
                f"for kernel='precomputed' Z is the number of rows of the first sample, from 1 to {gram.shape[0] - 1}, "
                f"but is {Z!r}."
            )
        return gram, int(Z)
    names = column_names(X)
    X, Z = checked_rows(kernel, X, "X"), checked_rows(kernel, Z, "Z")
    if X.shape[1:] != Z.shape[1:]:
        raise DataError(f"X has {X.shape[1]} columns and Z has {Z.shape[1]}; both must have the same columns.")
    joined: Any
    if isinstance(X, (Objects, MixedRows)):
        joined = X.joined(Z)
    else:
        joined = sp.vstack([X, Z], format="csr") if sp.issparse(X) or sp.issparse(Z) else np.concatenate([X, Z])
    return _lazy(kernel, gamma, joined, names, n_jobs), X.shape[0]


def _gram(kernel: Any, gamma: Any, X: Any, name: str, n_jobs: int | None) -> AnyGram:
    """The kernel matrix of ``X``."""
    if _is_precomputed(kernel):
        return PrecomputedGram(check_square(X, name))
    return _lazy(kernel, gamma, checked_rows(kernel, X, name, one_column=name == "Y"), column_names(X), n_jobs)


def _is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "precomputed"


def _lazy(kernel: Any, gamma: Any, rows: Any, names: tuple[str, ...] | None, n_jobs: int | None) -> AnyGram:
    instance: Kernel = as_kernel(kernel, gamma=gamma, X=rows)
    if instance.definiteness == "indefinite":
        raise IndefiniteKernelError(
            f"{instance!r} is indefinite, so it has no feature space in which to compare means; choose another kernel."
        )
    gram = Gram(bind_columns(instance, names).with_data(rows), rows, n_jobs=n_jobs)
    # Between two objects a value takes long, and permutations look at it many times.
    return evaluated(gram) if gram.tile < tiles.TILE else gram
