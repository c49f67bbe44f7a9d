"""The explicit map of any kernel that has finitely many features."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._errors import ParameterError
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats
from mercer.kernels import Kernel, Linear, as_kernel
from mercer.maps._base import FeatureMap
from mercer.maps._finite import Features, features_of
from mercer.maps._monomials import in_figures


def _is_counted(phi: Any) -> bool:
    features = features_of(phi.kernel_, phi._example)
    return features is not None and features.count == phi.n_output_features_


class ExplicitMap(FeatureMap):
    r"""The features of a kernel with a finite feature map, such as a sum of linear and polynomial kernels.

    .. math:: \langle \varphi(x), \varphi(z) \rangle = k(x, z)

    Features of ``c * k`` are :math:`\sqrt{c}` times those of k; those of a sum are the features of all terms side by
    side; those of a product, all products of one feature of each factor; those of ``k ** p``, the weighted monomials of
    degree p in the features of k; those of ``k.normalized()``, the features of k divided by their norm in each row.

    Parameters
    ----------
    kernel : Kernel or str, default=None
        ``Linear``, ``Polynomial``, ``AllSubsets`` or a constant, or a combination of them by ``+``, ``*``, ``**``
        (whole powers), ``on``, ``warped`` and ``normalized``. None means ``Linear()``.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel whose values equal the inner products.
    n_output_features_ : int
        Number of features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has any.

    Raises
    ------
    ParameterError
        From ``fit``: if the kernel is not one of these.

    See Also
    --------
    PolynomialMap, AllSubsetsMap : The maps of these kernels.

    Notes
    -----
    Learners with such a kernel have the attributes ``coef_``, whose columns belong to these features, and
    ``feature_map_``, the fitted map.

    References
    ----------
    Shawe-Taylor & Cristianini (2004), *Kernel Methods for Pattern Analysis*, section 3.4.

    Examples
    --------
    >>> from mercer.kernels import Linear, Polynomial
    >>> from mercer.maps import ExplicitMap
    >>> phi = ExplicitMap(Linear().on([0]) * Polynomial(2).on([1])).fit([[1.0, 2.0]])
    >>> phi.get_feature_names_out().tolist()
    ['x0 * 1', 'x0 * x1', 'x0 * x1^2']
    >>> F = phi.transform([[1.0, 2.0], [3.0, -1.0]])
    >>> (F @ F.T).round(9).tolist(), phi.kernel_([[1.0, 2.0], [3.0, -1.0]]).tolist()
    ([[25.0, 3.0], [3.0, 36.0]], [[25.0, 3.0], [3.0, 36.0]])
    """

    # A row with which user-defined maps are called, to see how many columns they return.
    _example: NDArray[np.float64]
    _fitted = Fitted({"_example": Floats("1, d")}, rules=(("the features do not match the kernel", _is_counted),))

    def __init__(self, kernel: Any = None) -> None:
        self.kernel = kernel

    def _learn(self, X: Any) -> None:
        kernel: Kernel = Linear() if self.kernel is None else as_kernel(self.kernel, X=X)
        example = np.asarray(X[:1].toarray() if sp.issparse(X) else X[:1], dtype=np.float64)
        features = features_of(kernel, example)
        if features is None:
            raise ParameterError(
                f"{kernel!r} is not known to have finitely many features. ExplicitMap takes Linear, Polynomial, "
                "AllSubsets and constants, their sums, products and powers, and these on some columns, warped or "
                "normalized; for other kernels there are NystroemMap and RandomFourierMap, which approximate them."
            )
        self.kernel_, self._example = kernel, example
        self.n_output_features_ = features.count

    @property
    def _parts(self) -> Features:
        features = features_of(self.kernel_, self._example)
        assert features is not None
        return features

    def _features(self, X: Any) -> Any:
        if not sp.issparse(X):
            count = self.n_output_features_
            self._room(X.shape[0], X.shape[0] * count, X.dtype.itemsize, in_figures(count))
        features = self._parts.values(X)
        self._require_finite(features.data if sp.issparse(features) else features)
        # Features of the linear kernel are the columns, and what is returned is not X itself.
        return features.copy() if features is X else features

    def _names(self, columns: list[str]) -> list[str]:
        return self._parts.names(columns)
