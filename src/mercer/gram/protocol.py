r"""The interface of a kernel matrix K, (n, m), for solvers: nothing about kernels, data, or the source of its entries.

Any class with these members can stand for K: :class:`mercer.gram.Gram` evaluates them by tiles,
:class:`mercer.gram.PrecomputedGram` reads an array, and a matrix on another device would work as well. A class that
derives from :class:`GramMatrix` may omit the members that have a default.

============================ ============================================ =======================================
member                       what it is                                   who uses it
============================ ============================================ =======================================
``shape``, ``dtype``         (n, m), and the precision of the entries     all
``K @ V``                    the product with (m,) or (m, k)              all but the perceptron and SMO on small K
``block(rows, columns)``     a dense part, written into ``out`` if given  all: the whole, pivots, working sets, chunks
``diagonal()``               ``K_ii`` in float64                          all but the risks with ordered outputs
``restrict(rows, columns)``  a part, as K itself                          svm, clustering, online, curvature, pairs
``astype(dtype)``            the same in another precision                svm, risk, clustering, :mod:`mercer.gram.hold`
``fill(rows, columns, out)`` a part as one tile, in the calling thread    svm (kept rows), online (look-ahead), Gaussian
                                                                          predictions
``expensive``                whether an entry is worth keeping            svm (kept rows), online (look-ahead)
``cheap``                    whether it never is                          svm (kept rows)
``width``                    how many columns an entry is computed from   svm (whole matrix)
``explicit_features(most)``  F with ``K = F F^T``, or None                linear, svm, risk (fewer features than rows)
``leading()``                a cheaper matrix close to K, or None         svm (first rounds)
``stored_array()``           the entries as an array, or None             :mod:`mercer.gram.hold`, perceptron
``stored()``                 the same without a copy of a symmetric part  curvature, svm (pairs of classes)
``stored_is_finite()``       whether no entry of it is NaN or infinite    svm (pairs of classes)
``stored_as(dtype)``         the same if that takes no copy               svm (certificate, whole matrix)
============================ ============================================ =======================================

"Subtract these rows times these changes" is :class:`mercer.gram.row_store.RowStore`, on ``restrict`` and
``fill``.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from mercer._types import Array, Positions
from mercer.gram.features import ExplicitFeatures


@runtime_checkable
class GramMatrix(Protocol):
    """The interface of a kernel matrix for solvers, which never see the kernel or the data."""

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> Any: ...
    def __matmul__(self, V: Any) -> Any: ...
    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array: ...
    def fill(self, rows: Any, columns: slice, out: Array) -> None: ...
    def diagonal(self) -> Array: ...
    def restrict(self, rows: Any = None, columns: Any = None) -> GramMatrix: ...
    def astype(self, dtype: Any) -> GramMatrix: ...

    @property
    def expensive(self) -> bool:
        """Whether an entry takes much longer to compute than to read from memory."""
        return False

    @property
    def cheap(self) -> bool:
        """Whether an entry takes less time to compute than to store it and to read it again."""
        return False

    @property
    def width(self) -> float:
        """How many numbers of a row the computation of an entry reads, about; 0 if the entries are stored."""
        return 0

    def explicit_features(self, most: int, most_dense: int | None = None) -> ExplicitFeatures | None:
        """F, (n, p), with ``K = F F^T`` for a symmetric K; None if it is not known to have at most ``most`` columns,
        or ``most_dense`` where F is dense."""
        return None

    def leading(self) -> GramMatrix | None:
        """A much cheaper matrix that is close to this one."""
        return None

    def stored_array(self) -> Array | None:
        """The entries as an array in their own precision, do not modify it; None if they are computed."""
        return None

    def stored(self) -> tuple[Array, Positions] | None:
        """An array with the entries of a symmetric matrix, and the positions of its rows and columns in it."""
        return None

    def stored_is_finite(self) -> bool:
        """Whether all entries of that array are finite; False if this is not known."""
        return False

    def stored_as(self, dtype: Any) -> Array | None:
        """The entries if they are stored in a C-ordered array of that precision already."""
        return None
