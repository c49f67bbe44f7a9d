"""The explicit map of the all-subsets kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import MemoryBudgetError
from mercer.data.fitted import Fitted
from mercer.kernels import AllSubsets
from mercer.loops.monomials import sparse_subset_products, subset_products
from mercer.maps._base import FeatureMap, by_rows, csr_of, largest_entry
from mercer.maps._monomials import in_figures

# Numbers of subsets are signed integers of 64 bits.
_MOST_COLUMNS = 62


def _is_counted(phi: Any) -> bool:
    d = vars(phi).get("n_features_in_", 0)
    return 0 < d <= _MOST_COLUMNS and phi.n_output_features_ == 2**d


class AllSubsetsMap(FeatureMap):
    r"""The map of the all-subsets kernel: for every subset of the columns, their product as a feature.

    .. math:: \varphi_S(x) = \prod_{c \in S} x_c, \qquad \langle \varphi(x), \varphi(z) \rangle = \prod_c (1 + x_c z_c)

    Attributes
    ----------
    kernel : AllSubsets
        The kernel whose values equal the inner products.
    kernel_ : AllSubsets
        The same kernel, as of the fit.
    n_output_features_ : int
        Number of features, ``2^d``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has any.

    See Also
    --------
    mercer.kernels.AllSubsets : The kernel.

    Notes
    -----
    Feature number :math:`\sum_{c \in S} 2^c` belongs to the subset S. Sparse rows give sparse features: a row with m
    nonzero entries has :math:`2^m` nonzero features.

    References
    ----------
    Shawe-Taylor & Cristianini (2004), *Kernel Methods for Pattern Analysis*, section 9.2.

    Examples
    --------
    >>> from mercer.maps import AllSubsetsMap
    >>> phi = AllSubsetsMap().fit([[2.0, 3.0]])
    >>> phi.get_feature_names_out().tolist(), phi.transform([[2.0, 3.0]]).tolist()
    (['1', 'x0', 'x1', 'x0 x1'], [[1.0, 2.0, 3.0, 6.0]])
    >>> phi.kernel([[2.0, 3.0]]).tolist()
    [[50.0]]
    """

    _fitted = Fitted(rules=(("the number of features is missing", _is_counted),))

    @property
    def kernel(self) -> AllSubsets:
        """The kernel that the features belong to."""
        return AllSubsets()

    def _learn(self, X: Any) -> None:
        d = X.shape[1]
        if d > _MOST_COLUMNS:
            raise MemoryBudgetError(
                f"AllSubsetsMap: 2^{d} = {in_figures(2**d)} features of {d} columns exceed what 64-bit integers can "
                "number. Use fewer columns, or a learner with the kernel itself (mercer.kernels.AllSubsets)."
            )
        self.kernel_ = self.kernel
        self.n_output_features_ = 2**d

    def _count_in_words(self) -> str:
        return f"2^{self.n_features_in_} = {self.n_output_features_:,}"

    def _features(self, X: Any) -> Any:
        n, d = X.shape
        width = self.n_output_features_
        if sp.issparse(X):
            features = self._sparse(X)
        else:
            self._room(n, n * width, X.dtype.itemsize, self._count_in_words())
            features = np.empty((n, width), X.dtype)
            by_rows(n, width, lambda part: subset_products(X[part], features[part]))
        with np.errstate(over="ignore"):
            bound = np.float64(max(largest_entry(X), 1.0)) ** d
        if not bound < np.finfo(X.dtype).max:
            self._require_finite(features.data if sp.issparse(features) else features)
        return features

    def _sparse(self, X: sp.csr_matrix) -> sp.csr_matrix:
        n, width = X.shape[0], self.n_output_features_
        in_row = np.diff(X.indptr)
        total = sum(2 ** int(m) for m in in_row)
        index = np.dtype(np.int32 if max(total, width) < 2**31 else np.int64)
        self._room(n, total, X.dtype.itemsize + index.itemsize, f"{total:,} entries of {self._count_in_words()}")
        indptr = np.zeros(n + 1, index)
        np.cumsum(2 ** in_row.astype(np.int64), out=indptr[1:])
        data, columns = np.empty(total, X.dtype), np.empty(total, index)

        def rows(part: slice) -> None:
            reach = slice(part.start, part.stop + 1)
            sparse_subset_products(X.data, X.indices, X.indptr[reach], data, columns, indptr[reach])

        by_rows(n, total // n, rows)
        return csr_of(data, columns, indptr, (n, width))

    def _names(self, columns: list[str]) -> list[str]:
        names = [""]
        for column in columns:
            names += [f"{name} {column}" if name else column for name in names]
        return ["1", *names[1:]]
