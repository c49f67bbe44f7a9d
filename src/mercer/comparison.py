"""Tests of whether two samples differ or two variables are dependent, by distances of means in feature space."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
from mercer.kernels import RBF, Kernel, NegativeDistance, as_kernel
from mercer.kernels.domain import checked_rows
from mercer.loops.permuted import permuted_products

__all__ = ["PermutationTest", "hsic", "mmd"]

AnyGram = Gram | PrecomputedGram

# Binary logarithms of the length scales over the median distance. The first one counts where no permutations choose.
_OCTAVES = (0, -1, 1, -2, 2, -3)
# Of X and of Y, all of whose pairs are compared: more of them cost power where two variables lie on a circle.
_OCTAVES_OF_PAIRS = _OCTAVES[:4]
# Columns with deviations above this number or below its inverse are scaled: a length scale has a square.
_WIDE = 1e100
# Rows whose distances and deviations give the length scales.
_SAMPLE = 1000


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """A statistic, and the probability of one at least as large under the null hypothesis.

    Parameters
    ----------
    statistic : float
        The estimate with ``kernels``.
    p_value : float or None
        ``(1 + c) / (1 + B)``, where c of the B permutations have a statistic at least as large (up to rounding); None
        without permutations.
    null : ndarray of shape (B,)
        The statistics of the permutations. Of several kernels, each permutation counts with its largest standardised
        estimate, expressed as an estimate with ``kernels``.
    kernels : tuple of Kernel or None
        The kernel of ``mmd``, or those of X and Y of ``hsic``; None for a kernel matrix. Of several, those with the
        largest standardised estimate. Columns with deviations above 1e100 or below 1e-100 are in units of a power of
        two near these.
    """

    statistic: float
    p_value: float | None
    null: NDArray[np.float64] = field(repr=False)
    kernels: tuple[Kernel | None, ...] = field(default=(), repr=False)


def mmd(
    X: Any,
    Z: Any,
    kernel: Any = None,
    *,
    gamma: Any = None,
    unbiased: bool = True,
    n_permutations: int = 500,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> PermutationTest:
    r"""Estimate the squared maximum mean discrepancy of two samples and test by permutations whether they differ.

    .. math:: \mathrm{MMD}^2 = \| E \phi(x) - E \phi(z) \|^2
              = E\, k(x, x') - 2 E\, k(x, z) + E\, k(z, z')

    All permutations are computed by one product of the lazy kernel matrix with their indicators, (n + m, B + 2).

    By default six Gaussian kernels are combined, whose length scales are 1/8 to 4 times the median distance of all
    rows, in octaves. Each column is first divided by its median absolute deviation, without rows at its median. Each
    kernel's estimates are standardised by their mean and standard deviation over the rows as given and all
    permutations, and the largest over the kernels is compared with those of the permutations, so that the level is
    exact. Distances and deviations are those of at most 1000 rows, drawn at random.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or other input of the kernel
        For ``"precomputed"``, the kernel matrix (n + m, n + m) of all rows, those of the first sample first.
    Z : array-like or sparse matrix of shape (m, d), or other input of the kernel
        For ``"precomputed"``, n.
    kernel : str, Kernel, scikit-learn kernel or callable, optional
        Positive or conditionally positive; with ``NegativeDistance()`` this is half the energy distance. Or
        ``"precomputed"``. None combines several Gaussian kernels.
    gamma : float or {"scale", "auto"}, optional
        For named kernels; None and ``"scale"`` are ``1 / (d * variance)`` of all entries. Without a kernel, that of a
        single Gaussian kernel.
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
    A. Gretton et al., "A kernel two-sample test" (2012), lemma 6 (equations 3 and 5) and section 5. A. Schrab et al.,
    "MMD aggregated two-sample test" (2023), on tests of several widths.

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
    rng = generator(random_state)
    rows, names, n = _of_both(X, Z, kernel)
    candidates, rows = _candidates(kernel, gamma, rows, _OCTAVES, rng)
    grams = [_gram(candidate, rows, names, n_jobs) for candidate in candidates]
    m = grams[0].shape[0] - n
    if unbiased and min(n, m) < 2:
        raise DataError(f"the unbiased estimate needs at least two rows of each sample, but there are {n} and {m}.")
    with memory.reserve(16 * (n + m) * (n_permutations + 2), f"{n_permutations} permutations of {n + m} rows"):
        first = np.zeros((n + m, n_permutations + 2))
        first[:n, 0], first[:, -1] = 1, 1
        for b in range(n_permutations):
            first[rng.permutation(n + m)[:n], b + 1] = 1
        values, sizes = zip(*(_discrepancies(gram, first, n, unbiased) for gram in grams), strict=True)
    return _tested(np.stack(values), np.array(sizes), grams[0].dtype, [(candidate,) for candidate in candidates])


def _discrepancies(gram: AnyGram, first: Array, n: int, unbiased: bool) -> tuple[Array, float]:
    """The estimates for all columns but the last, ones, of the indicators of the first sample; the size of terms."""
    m = len(first) - n
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
    return a + b - 2 * between / (n * m), float(size.max())


def hsic(
    X: Any,
    Y: Any,
    kernel: Any = None,
    kernel_y: Any = None,
    *,
    gamma: Any = None,
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

    By default all 16 pairs of four Gaussian kernels of X and four of Y are combined as in :func:`mmd`. Their length
    scales are 1/4 to 2 times the median distance. Only the widest Gaussian of Y is stored: that of half the width is
    its fourth power.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d), or other input of the kernel
    Y : array-like of shape (n,), (n, e), sparse matrix, or other input of the kernel
    kernel : str, Kernel, scikit-learn kernel or callable, optional
        For X; ``"precomputed"`` if X is its kernel matrix (n, n). None combines several Gaussian kernels.
    kernel_y : the same, optional
        For Y; None for ``kernel``.
    gamma : float or {"scale", "auto"}, optional
        For named kernels; None is ``"scale"``. Without a kernel, that of single Gaussian kernels. Used for both.
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
    selection via dependence maximization" (2012), equation 5. A. Schrab et al., "Efficient aggregated kernel tests
    using incomplete U-statistics" (2022), on tests of several widths.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(80, 1))
    >>> hsic(x, x**2, random_state=0).p_value < 0.01
    True
    """
    _check(n_permutations, unbiased)
    rng = generator(random_state)
    of_x, grams = _of_one(kernel, gamma, X, "X", rng, n_jobs)
    of_y, others = _of_one(kernel if kernel_y is None else kernel_y, gamma, Y, "Y", rng, n_jobs)
    n = grams[0].shape[0]
    if others[0].shape[0] != n:
        raise DataError(f"X has {n} rows and Y has {others[0].shape[0]}; rows must be pairs.")
    least = 4 if unbiased else 2
    if n < least:
        raise DataError(f"this estimate needs at least {least} rows, but there are {n}.")
    with memory.reserve(8 * n * (n + n_permutations + 1), f"the {n} x {n} kernel matrix of Y and the permutations"):
        # From the widest Gaussian on, each next matrix of Y holds the fourth powers of the last one.
        by_width = np.argsort(_OCTAVES_OF_PAIRS[: len(others)])[::-1]
        L = np.empty((n, n))
        others[by_width[0]].astype(np.float64).dense(L)
        if unbiased:
            np.fill_diagonal(L, 0)
        orders = np.stack([np.arange(n), *(rng.permutation(n) for _ in range(n_permutations))])
        values, sizes = _dependences(grams, L, len(others), orders, unbiased, n_jobs)
    pairs = [(k, k_y) for k_y in of_y for k in of_x]
    rows = np.arange(len(pairs)).reshape(len(of_y), -1)[np.argsort(by_width)].ravel()
    return _tested(values[rows], sizes[rows], grams[0].dtype, pairs)


def _dependences(
    grams: Sequence[AnyGram], L: Array, count: int, orders: NDArray[np.intp], unbiased: bool, n_jobs: int | None
) -> tuple[Array, Array]:
    """The estimates for orders p of the powers 4^w of L and matrices v, (w v, p), and the sizes of their terms, (w v,).

    The diagonal of L is 0 if ``unbiased``.
    """
    n = len(L)
    inner, sums = _inner_products(grams, L, count, orders, unbiased, n_jobs)
    of_L = _row_sums(L, count)
    mixed = np.concatenate([(row[orders] @ sums).T for row in of_L])
    totals = np.outer(of_L.sum(axis=1), sums.sum(axis=0)).reshape(-1, 1)
    parts = (
        (inner, totals / ((n - 1) * (n - 2)), -2 / (n - 2) * mixed)
        if unbiased
        else (inner, totals / n**2, -2 / n * mixed)
    )
    divisor = n * (n - 3) if unbiased else n**2
    sizes = np.max([np.abs(part).max(axis=1) for part in parts], axis=0) / divisor
    return (parts[0] + parts[1] + parts[2]) / divisor, sizes


def _row_sums(L: Array, count: int) -> Array:
    """Row sums of L and of its entries to the powers 4^w, (count, n)."""
    sums = np.empty((count, len(L)))
    for i, row in enumerate(L):
        for w in range(count):
            sums[w, i] = row.sum()
            row = np.square(np.square(row))
    return sums


def _inner_products(
    grams: Sequence[AnyGram], L: Array, count: int, orders: NDArray[np.intp], hollow: bool, n_jobs: int | None
) -> tuple[Array, Array]:
    """``<K, L[p, p]^(4^w)>`` for w < count, every K and order p, and the row sums of K.

    The diagonal of K counts as 0 if ``hollow``.
    """
    n, shape = len(L), (count, len(grams), len(orders))

    def visit(rows: slice, columns: slice) -> Array:
        out = np.empty(shape)
        with tiles.scratch(
            (len(grams), rows.stop - rows.start, columns.stop - columns.start), np.dtype(np.float64)
        ) as tile:
            for gram, part in zip(grams, tile, strict=True):
                gram.fill(rows, columns, part)
                if hollow and rows == columns:
                    np.fill_diagonal(part, 0)
            permuted_products(tile, L, rows.start, columns.start, orders, out)
        return (out if rows == columns else 2 * out).ravel()

    ones = np.ones(n)
    sums = [(gram.astype(np.float64) @ ones) - (gram.diagonal() if hollow else 0) for gram in grams]
    # The tiles of all matrices together have the size of one.
    side = tiles.TILE // math.ceil(math.sqrt(len(grams)))
    products = tiles.reduce(visit, (n, n), math.prod(shape), n_jobs, symmetric=True, side=side)
    return products.reshape(-1, len(orders)), np.stack(sums, axis=1)


def _tested(
    values: Array, sizes: Array, dtype: np.dtype, kernels: Sequence[tuple[Kernel | None, ...]]
) -> PermutationTest:
    """The first column of ``values``, with a row for each of ``kernels``, among all of them.

    The largest of the standardised rows is tested, in the units of the row where it is largest for the first column.
    ``sizes`` are those of the terms of each row, in whose rounding equal statistics may differ.
    """
    if not (np.isfinite(values).all() and np.isfinite(sizes).all()):
        # A comparison with NaN is false, and the permutations would seem to be smaller.
        raise NumericalError(
            "the statistic overflows float64, or that of a permutation. Scale the columns "
            "(sklearn.preprocessing.StandardScaler), or multiply the kernels by small numbers."
        )
    tiny = float(np.finfo(np.float64).tiny)
    rounding = 16 * float(np.finfo(dtype).eps) * sizes
    # The squares of values overflow where they themselves do not.
    largest = np.abs(values).max(axis=1) + tiny
    scaled = values / largest[:, None]
    # A row that is constant up to rounding stays close to 0.
    units = scaled.std(axis=1) + rounding / largest + tiny
    scores = (scaled - scaled.mean(axis=1, keepdims=True)) / units[:, None]
    best = int(scores[:, 0].argmax())
    # Of one row, these are its values to the last bit.
    tested = values[best] + largest[best] * units[best] * (scores.max(axis=0) - scores[best])
    statistic, null = float(tested[0]), np.array(tested[1:], dtype=np.float64)
    count = int((null >= statistic - rounding[best]).sum())
    return PermutationTest(statistic, (1 + count) / (1 + len(null)) if len(null) else None, null, kernels[best])


def _check(n_permutations: Any, unbiased: Any) -> None:
    if isinstance(n_permutations, bool) or not isinstance(n_permutations, Integral) or int(n_permutations) < 0:
        raise ParameterError(f"n_permutations must be a whole number of 0 or more, but is {short(n_permutations)}.")
    if not isinstance(unbiased, bool | np.bool_):
        raise ParameterError(f"unbiased must be True or False, but is {short(unbiased)}.")


def _of_both(X: Any, Z: Any, kernel: Any) -> tuple[Any, tuple[str, ...] | None, int]:
    """All rows of two samples, or their kernel matrix, names of columns, and the number of rows in the first."""
    if _is_precomputed(kernel):
        matrix = check_square(X, "X")
        if isinstance(Z, bool) or not isinstance(Z, Integral) or not 0 < int(Z) < len(matrix):
            raise DataError(
                f"for kernel='precomputed' Z is the number of rows of the first sample, from 1 to {len(matrix) - 1}, "
                f"but is {Z!r}."
            )
        return matrix, None, int(Z)
    names = column_names(X)
    X, Z = _rows(kernel, X, "X"), _rows(kernel, Z, "Z")
    if X.shape[1:] != Z.shape[1:]:
        raise DataError(f"X has {X.shape[1]} columns and Z has {Z.shape[1]}; both must have the same columns.")
    joined: Any
    if isinstance(X, (Objects, MixedRows)):
        joined = X.joined(Z)
    else:
        joined = sp.vstack([X, Z], format="csr") if sp.issparse(X) or sp.issparse(Z) else np.concatenate([X, Z])
    return joined, names, X.shape[0]


def _of_one(
    kernel: Any, gamma: Any, X: Any, name: str, rng: np.random.RandomState, n_jobs: int | None
) -> tuple[list[Kernel | None], list[AnyGram]]:
    """The kernels for ``X`` and their matrices."""
    rows = check_square(X, name) if _is_precomputed(kernel) else _rows(kernel, X, name, one_column=name == "Y")
    kernels, rows = _candidates(kernel, gamma, rows, _OCTAVES_OF_PAIRS, rng)
    return kernels, [_gram(candidate, rows, column_names(X), n_jobs) for candidate in kernels]


def _is_precomputed(kernel: Any) -> bool:
    return isinstance(kernel, str) and kernel == "precomputed"


def _rows(kernel: Any, X: Any, name: str, one_column: bool = False) -> Any:
    return checked_rows("rbf" if kernel is None else kernel, X, name, one_column=one_column)


def _candidates(
    kernel: Any, gamma: Any, rows: Any, octaves: Sequence[int], rng: np.random.RandomState
) -> tuple[list[Kernel | None], Any]:
    """The kernels among which permutations choose, None for a kernel matrix, and the rows that they take."""
    if _is_precomputed(kernel):
        return [None], rows
    if kernel is None and gamma is None:
        return _gaussians(rows, octaves, rng)
    instance = as_kernel("rbf" if kernel is None else kernel, gamma="scale" if gamma is None else gamma, X=rows)
    if instance.definiteness == "indefinite":
        raise IndefiniteKernelError(
            f"{instance!r} is indefinite, so it has no feature space in which to compare means; choose another kernel."
        )
    return [instance], rows


def _gaussians(rows: Any, octaves: Sequence[int], rng: np.random.RandomState) -> tuple[list[Kernel | None], Any]:
    """Gaussian kernels of several widths around the median distance of rows with columns of one spread, and the rows.

    The widths do not depend on the order of the rows, so that permutations keep their level, nor much on a few
    outliers. Columns of extreme spreads are multiplied by powers of two, which round nothing.
    """
    some = rows[rng.permutation(rows.shape[0])[:_SAMPLE]]
    columns = some.tocsc() if sp.issparse(some) else some
    spreads = np.array([_spread(columns[:, [c]]) for c in range(some.shape[1])])
    scaled = some @ sp.diags_array(1 / spreads) if sp.issparse(some) else some / spreads
    distances = -Gram(NegativeDistance(), scaled).dense()
    positive = distances[distances > 0]
    median = float(np.median(positive)) if positive.size else 1.0
    extreme = (spreads > _WIDE) | (spreads < 1 / _WIDE)
    if extreme.any():
        # Of the smallest numbers, the inverse is not finite.
        units = np.where(extreme, np.ldexp(1.0, -np.maximum(np.frexp(spreads)[1], -1000)), 1.0)
        rows = (rows @ sp.diags_array(units)).tocsr() if sp.issparse(rows) else rows * units
        spreads = spreads * units
    return [RBF((median * 2.0**octave * spreads).tolist()) for octave in octaves], rows


def _spread(column: Any) -> float:
    """The median absolute deviation of the entries that differ from the median; 1 for a constant column.

    Without the others, it is positive also where over half of the entries are equal.
    """
    values = np.asarray(column.toarray() if sp.issparse(column) else column, dtype=np.float64)
    deviations = np.abs(values - np.median(values))
    positive = deviations[deviations > 0]
    return float(np.median(positive)) if positive.size else 1.0


def _gram(kernel: Kernel | None, rows: Any, names: tuple[str, ...] | None, n_jobs: int | None) -> AnyGram:
    """The kernel matrix of rows, or ``rows`` as that matrix."""
    if kernel is None:
        return PrecomputedGram(rows)
    gram = Gram(bind_columns(kernel, names).with_data(rows), rows, n_jobs=n_jobs)
    # Between two objects a value takes long, and permutations look at it many times.
    return evaluated(gram) if gram.tile < tiles.TILE else gram
