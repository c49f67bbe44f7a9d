"""All monomials of the columns, weighted by degree: what the polynomial and the Gaussian series map share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._errors import MemoryBudgetError
from mercer.data.fitted import Fitted
from mercer.data.statements import Count
from mercer.kernels.vector.monomials import counts_by_degree, feature_count
from mercer.loops.monomials import monomials, sparse_monomials
from mercer.loops.sparse_rows import SparseRows
from mercer.maps._base import FeatureMap, by_rows, csr_of

# Up to here factors and factorials of degrees are well inside of float32.
_SINGLE_DEGREE = 16


def in_figures(count: int) -> str:
    """A count in full, or its first digits where it cannot be numbered by 64 bits.

    Examples
    --------
    >>> in_figures(2**63), in_figures(10**25), in_figures(3 * 10**9999)
    ('9,223,372,036,854,775,808', 'about 1.0e+25', 'about 3.0e+9999')
    """
    if count <= 2**64:
        return f"{count:,}"
    # Python prints no more than 4300 digits, and nobody reads them.
    tens, rest = divmod(math.log10(count) + 1e-9, 1)
    return f"about {10**rest:.1f}e+{int(tens)}"


# In more columns, or of a higher degree in as many, monomials are more than 64 bits can number.
_MOST = 63


def _is_counted(phi: Any) -> bool:
    d = vars(phi).get("n_features_in_", 0)
    few = 0 < min(d, phi._degree) <= _MOST and phi._lowest <= phi._degree
    return few and phi.n_output_features_ == feature_count(d, phi._degree, phi._lowest)


class MonomialMap(FeatureMap):
    """Base of the maps whose features are monomials, each once, times a factor of its degree and of the row."""

    # Of the fit: what parameters are later must not change how much is written.
    _degree: int
    _lowest: int
    _fitted = Fitted(
        {"_degree": Count(least=1), "_lowest": Count()}, rules=(("the number of features is missing", _is_counted),)
    )

    def _set_count(self, degree: int, lowest: int) -> None:
        self._degree, self._lowest = degree, lowest
        self.n_output_features_ = feature_count(self.n_features_in_, degree, lowest)
        if self.n_output_features_ >= 2**63:
            raise MemoryBudgetError(
                f"{type(self).__name__}: {self._count_in_words()} features exceed what 64-bit integers can number. "
                "Use fewer columns or a lower degree, or a learner with the kernel itself."
            )

    def _count_in_words(self) -> str:
        top = f"{self.n_features_in_} + {self._degree}" + (" - 1" if self._lowest else "")
        return f"C({top}, {self._degree}) = {in_figures(self.n_output_features_)}"

    def _monomials(self, X: Any, weights: NDArray[np.floating], factors: NDArray[np.float64]) -> Any:
        """``weights_i * factors_t`` times the monomials of row ``i``, each over the root of its factorials."""
        dtype, degree = X.dtype, len(factors) - 1
        if degree > _SINGLE_DEGREE and dtype == np.float32:
            return self._monomials(X.astype(np.float64), weights.astype(np.float64), factors).astype(dtype)
        weights, factors = weights.astype(dtype, copy=False), factors.astype(dtype)
        counts = counts_by_degree(degree, X.shape[1])
        if sp.issparse(X):
            return self._sparse(X, weights, factors, counts)
        # Counted anew: the loops do not check bounds, and a model file may hold anything.
        n, width = len(X), feature_count(X.shape[1], degree, self._lowest)
        self._room(n, n * width, dtype.itemsize, self._count_in_words())
        out = np.empty((n, width), dtype)
        by_rows(n, width, lambda part: monomials(X[part], weights[part], factors, counts, self._lowest, out[part]))
        return out

    def _sparse(self, X: sp.csr_matrix, weights: Any, factors: Any, counts: NDArray[np.int64]) -> sp.csr_matrix:
        degree = len(factors) - 1
        n, width = X.shape[0], feature_count(X.shape[1], degree, self._lowest)
        in_row = np.diff(X.indptr)
        times = np.bincount(in_row)
        entries = {m: feature_count(m, degree, self._lowest) for m in np.flatnonzero(times).tolist()}
        # In Python's integers, which do not overflow.
        total = sum(count * int(times[m]) for m, count in entries.items())
        index = np.dtype(np.int32 if max(total, width) < 2**31 else np.int64)
        self._room(n, total, X.dtype.itemsize + index.itemsize, f"{total:,} entries of {self._count_in_words()}")
        indptr = np.zeros(n + 1, index)
        of_size = np.zeros(len(times), np.int64)
        of_size[list(entries)] = list(entries.values())
        np.cumsum(of_size[in_row], out=indptr[1:])
        data, columns = np.empty(total, X.dtype), np.empty(total, index)

        def rows(part: slice) -> None:
            reach = slice(part.start, part.stop + 1)
            source = SparseRows(X.indptr[reach], X.indices, X.data)
            target = SparseRows(indptr[reach], columns, data)
            sparse_monomials(source, X.shape[1], weights[part], factors, counts, self._lowest, target)

        by_rows(n, total // n, rows)
        return csr_of(data, columns, indptr, (n, width))

    def _names(self, columns: list[str]) -> list[str]:
        return [_name(m) for t in range(self._lowest, self._degree + 1) for m in _ordered(columns, t)]


def _ordered(columns: list[str], t: int) -> Iterator[tuple[str, ...]]:
    return itertools.combinations_with_replacement(columns, t)


def _name(monomial: tuple[str, ...]) -> str:
    """``"a^2 b"`` for ``("a", "a", "b")``; ``"1"`` for none."""
    powers = [(name, len(list(same))) for name, same in itertools.groupby(monomial)]
    return " ".join(name if r == 1 else f"{name}^{r}" for name, r in powers) or "1"
