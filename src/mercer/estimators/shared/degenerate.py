"""The warning, for all learners, of a kernel matrix that is diagonal or constant on a sample of the rows.

If a row of the matrix is 0, it resembles nothing. If almost all values off the diagonal are 0 compared with those on
it, each row resembles only itself. If all values are equal, no row differs from another. Either way, a fit succeeds but
has learned nothing about new rows. For objects such as series or trees, values may also grow with their length by
orders of magnitude: then a few rows dominate, and usual penalties have no effect.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import pdist

from mercer._errors import DegenerateKernelWarning, warn_user
from mercer._types import Array, CheckedRows, Positions
from mercer.data.distinct import equal_rows, same_rows
from mercer.kernels.base import Expression
from mercer.kernels.inputs import Rows
from mercer.kernels.kernel import Kernel
from mercer.kernels.modifiers import On, Warped
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.plan import Plan
from mercer.kernels.vector.stationary import StationaryKernel

if TYPE_CHECKING:
    from mercer.estimators.shared.base import KernelEstimator

# Rows whose values with each other are examined, and the number of other rows if these values look degenerate.
_FIRST, _OTHERS = 16, 512
# With fewer distinct rows there is no warning: small examples are often diagonal.
_FEWEST = 8
# Values below this share of the diagonal count as 0; values whose range is below that share of the largest as equal.
_ZERO, _EQUAL = 1e-8, 1e-11
# The largest value of a row with itself, beside 1 and beside the smallest: learners are made for values about 1.
_UNEVEN = 1e10
# The share of rows that may resemble another one: columns of very different scales leave a few neighbours by chance.
_WITH_NEIGHBOURS = 1 / 8

Block = Callable[[Positions, Positions], Array]


def warn_if_degenerate(learner: KernelEstimator, kernel: Kernel | None, X: Any, block: Block | None = None) -> None:
    """Warn if the matrix of ``kernel`` on rows ``X`` is 0, diagonal or constant; for None, the matrix X itself.

    ``block`` returns its entries at rows and columns; X is then only counted. By default they are computed in this
    thread, for 16 rows, and for up to 512 columns if those look diagonal; of ``Rows`` from what is prepared of them
    all. Kernels that read no row, such as ``White``,
    are not checked.
    """
    side, X = (X, X.raw) if isinstance(X, Rows) else (None, X)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    kind = "anything" if kernel is None else kernel.kind_of_rows()
    on_objects = not isinstance(kind, str)
    # With few rows, only those that resemble nothing are reported; vectors do so at the origin alone.
    if (n < _FEWEST and not on_objects) or (kernel is not None and kind == "anything" and block is None):
        return
    at = block or (_entries(kernel, X, side) if kernel is not None else lambda rows, columns: X[np.ix_(rows, columns)])
    has_rows = kernel is not None and block is None
    sample = _spread(n, _FIRST)
    K = at(sample, sample)
    least, largest = float(K.min()), float(K.max())
    if not on_objects and least > _ZERO * largest and largest - least > _EQUAL * largest:
        # All rows resemble each other, and they differ.
        return
    empty = ~K.any(axis=1)
    if not np.isfinite(K).all() or not (K.diagonal()[~empty] > 0).all():
        return
    usual = _WITH_NEIGHBOURS * len(sample) if on_objects else len(sample) - 1
    if empty.sum() > usual and kind != "vectors":
        _warn_of_zeros(learner, kernel, X, sample[empty], len(sample))
        return
    sample, K = sample[~empty], K[~empty][:, ~empty]
    if len(sample) < _FEWEST:
        return
    if kernel is not None and on_objects and _is_uneven(K.diagonal()):
        _warn_of_sizes(learner, kernel, K.diagonal())
        return
    constant = float(np.ptp(K)) <= _EQUAL * float(K.max())
    if not (constant or _resemble_nothing(K, sample, sample, K.diagonal(), X if has_rows else None)):
        return
    if has_rows and len(equal_rows(X[sample])[0]) < _FEWEST:
        return
    if not constant:
        others = _spread(n, _OTHERS)
        if not _resemble_nothing(at(sample, others), sample, others, K.diagonal(), X if has_rows else None):
            return
    _warn(learner, kernel, X if has_rows else None, sample, not constant)


def _spread(n: int, count: int) -> Positions:
    return np.unique(np.linspace(0, n - 1, min(n, count)).round().astype(np.intp))


def _entries(kernel: Kernel, X: CheckedRows, side: Rows | None) -> Block:
    def part(rows: Positions) -> Rows:
        return Rows(X[rows]) if side is None else side.take(rows)

    def at(rows: Positions, columns: Positions) -> Array:
        left = part(rows)
        right = left if rows is columns else part(columns)
        out = np.empty((len(rows), len(columns)))
        Plan(kernel, left, right, np.dtype(np.float64)).fill(slice(0, len(rows)), slice(0, len(columns)), out)
        return out

    return at


def _is_uneven(size: Array) -> bool:
    return float(size.max()) > _UNEVEN * min(float(size.min()), 1.0)


def _resemble_nothing(K: Array, rows: Positions, columns: Positions, size: Array, X: CheckedRows | None) -> bool:
    """Whether, for almost all rows, the values with all others are 0 compared with ``size``, those with themselves.

    X is None if the rows are not known; some may be equal then.
    """
    large = np.abs(K) > _ZERO * float(size.min())
    large &= rows[:, None] != columns
    i, j = np.nonzero(large)
    if X is not None and len(i):
        # Equal rows resemble each other under every kernel.
        i = i[~same_rows(X[rows[i]], X[columns[j]])]
    return len(np.unique(i)) <= _WITH_NEIGHBOURS * len(rows)


def _warn(
    learner: KernelEstimator, kernel: Kernel | None, X: CheckedRows | None, sample: Positions, diagonal: bool
) -> None:
    what = (
        "values between different rows are 0 relative to those of a row with itself, so every row resembles only itself"
        if diagonal
        else "all values are equal, so no row differs from another"
    )
    name = "the kernel matrix" if kernel is None else repr(kernel)
    warn_user(
        f"{type(learner).__name__}: {name} is degenerate on these rows: {what}, and the model cannot generalise to "
        f"new rows. {_advice(kernel, X, sample, diagonal)}",
        DegenerateKernelWarning,
    )


def _warn_of_sizes(learner: KernelEstimator, kernel: Kernel, size: Array) -> None:
    warn_user(
        f"{type(learner).__name__}: the values of {kernel!r} of rows with themselves range from {size.min():.3g} to "
        f"{size.max():.3g}, so a few rows dominate, and solvers may stall. Pass kernel.normalized(), for "
        "which every k(x, x) is 1.",
        DegenerateKernelWarning,
    )


def _warn_of_zeros(learner: KernelEstimator, kernel: Kernel | None, X: Any, empty: Positions, count: int) -> None:
    """Say that rows have no similarity to any row, not even to themselves."""
    leaf = next((leaf for leaf in _leaves(kernel) if isinstance(leaf, ObjectKernel)), None) if kernel else None
    remedy = "Compute it with another kernel." if leaf is None else leaf.advice_on_zeros(X[empty])
    warn_user(
        f"{type(learner).__name__}: {'the kernel matrix' if kernel is None else repr(kernel)} is 0 for {len(empty)} of "
        f"{count} rows that were looked at, also of each with itself, so they resemble nothing, and all such rows have "
        f"the same prediction. {remedy}",
        DegenerateKernelWarning,
    )


def _advice(kernel: Kernel | None, X: CheckedRows | None, sample: Positions, diagonal: bool) -> str:
    """Say which parameter to change, with a good value."""
    if kernel is None or X is None:
        return "Compute it with a kernel of another width, or on scaled columns."
    way = "Raise" if diagonal else "Lower"
    for leaf in _leaves(kernel):
        if isinstance(leaf, StationaryKernel) and isinstance(X, np.ndarray | sp.csr_matrix):
            width = median_distance(X[sample])
            return f"{way} length_scale: the median distance between rows, {width:.3g}, is a good start."
        for item, info in leaf._numbers():
            if info["rules"] and isinstance(leaf, Kernel):
                by_rule = dataclasses.replace(leaf, **{item: info["rules"][0]})
                value = getattr(by_rule.with_data(X[sample]), item)
                return f"{way} {item}: the rule {info['rules'][0]!r} gives {value:.3g}."
    names = ", ".join(dict.fromkeys(p.name for p in kernel.parameters))
    if names:
        return f"Change its parameters ({names})."
    scaled = isinstance(X, np.ndarray | sp.csr_matrix)
    return "Scale the columns of X, or choose another kernel." if scaled else "Change its arguments, or choose another."


def _leaves(kernel: Expression) -> Iterator[Expression]:
    """Yield the parts of a kernel that compare the untransformed rows."""
    if isinstance(kernel, (On, Warped)):
        return
    if not kernel.children():
        yield kernel
    for _, child in kernel.children():
        yield from _leaves(child)


def median_distance(rows: Any) -> float:
    """The median Euclidean distance of two of several rows."""
    return float(np.median(pdist(np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64))))
