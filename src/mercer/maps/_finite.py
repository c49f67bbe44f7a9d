"""The features of kernels that have finitely many, read off the kernel: those of sums, products and powers too."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import ParameterError
from mercer.data.vectors import as_vectors
from mercer.kernels import AllSubsets, Linear, Polynomial
from mercer.kernels.algebra import Constant, Power, Product, Scaled, Sum
from mercer.kernels.modifiers import Normalized, On, Warped
from mercer.kernels.vector.monomials import feature_count
from mercer.maps.all_subsets import AllSubsetsMap
from mercer.maps.polynomial import PolynomialMap

Names = list[str]


@dataclass(frozen=True, eq=False)
class Features:
    """The features of one kernel: how many there are, their values at rows (n, d), and their names by column names."""

    count: int
    values: Callable[[Any], Any]
    names: Callable[[Names], Names]


def features_of(kernel: Any, example: Any) -> Features | None:
    """Features phi with ``<phi(x), phi(z)> = k(x, z)``; None where the kernel is not known to have finitely many.

    Parameters
    ----------
    kernel : Kernel
        A linear, polynomial or all-subsets kernel, a constant, or what scaling, sums, products, whole powers, ``on``,
        ``warped`` and ``normalized`` make of these.
    example : array or CSR matrix of shape (1, d)
        Any row: user-defined maps are called with it, to see how many columns they return.

    Examples
    --------
    >>> example = np.zeros((1, 3))
    >>> features_of(2.0 * Linear() + 1.0, example).names(["a", "b", "c"])
    ['a', 'b', 'c', '1']
    """
    rule = _RULES.get(type(kernel))
    return None if rule is None else rule(kernel, example)


def _linear(kernel: Linear, example: Any) -> Features:
    return Features(example.shape[1], lambda X: X, lambda columns: columns)


def _constant(kernel: Constant, example: Any) -> Features:
    def values(X: Any) -> Any:
        ones = np.full((X.shape[0], 1), math.sqrt(kernel.value), X.dtype)
        return sp.csr_matrix(ones) if sp.issparse(X) else ones

    return Features(1, values, lambda columns: ["1"])


def _scaled(kernel: Scaled, example: Any) -> Features | None:
    inner = features_of(kernel.kernel, example)
    if inner is None:
        return None
    root = math.sqrt(kernel.factor)
    return Features(inner.count, lambda X: inner.values(X) * X.dtype.type(root), inner.names)


def _polynomial(kernel: Polynomial, example: Any) -> Features:
    count = feature_count(example.shape[1], kernel.degree, 0 if kernel.offset > 0 else kernel.degree)

    def fitted(X: Any) -> PolynomialMap:
        return PolynomialMap(kernel.degree, kernel.scale, kernel.offset).fit(X)

    return Features(
        count,
        lambda X: fitted(X[:1]).transform(X),
        lambda columns: fitted(np.zeros((1, len(columns)))).get_feature_names_out(columns).tolist(),
    )


def _all_subsets(kernel: AllSubsets, example: Any) -> Features:
    return Features(
        2 ** example.shape[1],
        lambda X: AllSubsetsMap().fit(X[:1]).transform(X),
        lambda columns: AllSubsetsMap().fit(np.zeros((1, len(columns)))).get_feature_names_out(columns).tolist(),
    )


def _sum(kernel: Sum, example: Any) -> Features | None:
    parts = [features_of(term, example) for term in kernel.terms]
    summands = [part for part in parts if part is not None]
    if len(summands) < len(parts):
        return None
    labels = [name for name, _ in kernel.children()]

    def values(X: Any) -> Any:
        blocks = [part.values(X) for part in summands]
        return sp.hstack(blocks, format="csr") if any(map(sp.issparse, blocks)) else np.hstack(blocks)

    def names(columns: Names) -> Names:
        each = [part.names(columns) for part in summands]
        plain = [name for some in each for name in some]
        if len(set(plain)) == len(plain):
            return plain
        return [f"{label}: {name}" for label, some in zip(labels, each, strict=True) for name in some]

    return Features(sum(part.count for part in summands), values, names)


def _product(kernel: Product, example: Any) -> Features | None:
    parts = [features_of(term, example) for term in kernel.terms]
    factors = [part for part in parts if part is not None]
    if len(factors) < len(parts):
        return None

    def names(columns: Names) -> Names:
        def joined(left: Names, right: Names) -> Names:
            return [f"{a} * {b}" for a in left for b in right]

        return reduce(joined, (part.names(columns) for part in factors))

    return Features(
        math.prod(part.count for part in factors),
        lambda X: reduce(_products_of_rows, (part.values(X) for part in factors)),
        names,
    )


def _products_of_rows(A: Any, B: Any) -> Any:
    """Every entry of a row of A (n, p) times every entry of the same row of B (n, q), (n, p q)."""
    if sp.issparse(A) or sp.issparse(B):
        A, B = sp.csr_matrix(A), sp.csr_matrix(B)
        # A row of the result is a Kronecker product of two rows.
        return sp.vstack([sp.kron(A[i], B[i], format="csr") for i in range(A.shape[0])], format="csr")
    return (A[:, :, None] * B[:, None, :]).reshape(len(A), -1)


def _power(kernel: Power, example: Any) -> Features | None:
    inner = features_of(kernel.kernel, example)
    if inner is None or not isinstance(kernel.exponent, int):
        return None
    # k^p is the polynomial kernel of degree p, without an offset, on the features of k.
    monomials = _polynomial(Polynomial(kernel.exponent, offset=0.0), np.empty((1, inner.count)))
    return Features(
        monomials.count,
        lambda X: monomials.values(inner.values(X)),
        lambda columns: monomials.names(inner.names(columns)),
    )


def _on(kernel: On, example: Any) -> Features | None:
    names = kernel.columns
    if any(isinstance(column, str) for column in names):
        raise ParameterError(
            f"{kernel!r} names columns; pass their positions, since features are computed from arrays."
        )
    positions = [int(column) for column in names]
    inner = features_of(kernel.kernel, example[:, positions])
    if inner is None:
        return None
    return Features(
        inner.count,
        lambda X: inner.values(X[:, positions]),
        lambda columns: inner.names([columns[p] for p in positions]),
    )


def _warped(kernel: Warped, example: Any) -> Features | None:
    def mapped(X: Any) -> Any:
        rows = as_vectors(kernel._mapped(X))
        return rows if rows.dtype == X.dtype else rows.astype(X.dtype)

    width = mapped(example).shape[1]
    inner = features_of(kernel.kernel, np.empty((1, width)))
    if inner is None:
        return None
    stem = getattr(kernel.map, "__name__", type(kernel.map).__name__).strip("<>")
    return Features(
        inner.count,
        lambda X: inner.values(mapped(X)),
        lambda columns: inner.names([f"{stem}{i}" for i in range(width)]),
    )


def _normalized(kernel: Normalized, example: Any) -> Features | None:
    inner = features_of(kernel.kernel, example)
    if inner is None:
        return None

    def values(X: Any) -> Any:
        F = inner.values(X)
        squares = np.asarray(F.multiply(F).sum(axis=1)).ravel() if sp.issparse(F) else np.einsum("ij,ij->i", F, F)
        factors = np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)
        return sp.csr_matrix(sp.diags(factors) @ F) if sp.issparse(F) else F * factors[:, None]

    return Features(inner.count, values, inner.names)


_RULES: dict[type, Callable[[Any, Any], Features | None]] = {
    Linear: _linear,
    Constant: _constant,
    Scaled: _scaled,
    Polynomial: _polynomial,
    AllSubsets: _all_subsets,
    Sum: _sum,
    Product: _product,
    Power: _power,
    On: _on,
    Warped: _warped,
    Normalized: _normalized,
}
