"""The explicit map of the polynomial kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer.data.fitted import Fitted
from mercer.data.statements import Is
from mercer.kernels import Polynomial
from mercer.kernels.vector.monomials import degree_factors
from mercer.maps._base import largest_entry
from mercer.maps._monomials import MonomialMap


class PolynomialMap(MonomialMap):
    r"""All monomials of the columns up to a degree, weighted so that their inner products are the polynomial kernel.

    .. math:: \varphi_a(x) = \sqrt{\frac{p!}{a_1! \cdots a_d!\, (p - |a|)!}\, s^{|a|} c^{p - |a|}}\; x^a,
              \qquad \langle \varphi(x), \varphi(z) \rangle = (s \langle x, z \rangle + c)^p

    with p the degree, s the scale and c the offset, for all powers :math:`a` of the d columns with :math:`|a| = \sum_i
    a_i \le p`, each once. There are :math:`\binom{d + p}{p}` of them; with an offset of 0 only the :math:`\binom{d + p
    - 1}{p}` with :math:`|a| = p` remain.

    Parameters
    ----------
    degree : int, default=2
        A whole number of at least 1.
    scale : float, default=1.0
        Above 0.
    offset : float, default=1.0
        At least 0.

    Attributes
    ----------
    kernel : Polynomial
        The kernel whose values equal the inner products.
    kernel_ : Polynomial
        The same kernel, as of the fit.
    n_output_features_ : int
        Number of features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has any.

    See Also
    --------
    mercer.kernels.Polynomial : The kernel.

    Notes
    -----
    Features are ordered by degree, and within a degree by their columns, like those of scikit-learn's
    ``PolynomialFeatures``, which have no weights. Sparse rows give sparse features. Each feature takes one
    multiplication.

    References
    ----------
    Schoelkopf & Smola (2002), *Learning with Kernels*, section 2.1; the weights are those of the
    multinomial theorem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import PolynomialMap
    >>> X = np.array([[1.0, 2.0], [3.0, -1.0]])
    >>> phi = PolynomialMap(degree=2).fit(X)
    >>> phi.get_feature_names_out().tolist()
    ['1', 'x0', 'x1', 'x0^2', 'x0 x1', 'x1^2']
    >>> F = phi.transform(X)
    >>> (F @ F.T).round(9).tolist(), phi.kernel(X).tolist()
    ([[36.0, 4.0], [4.0, 121.0]], [[36.0, 4.0], [4.0, 121.0]])
    """

    kernel_: Polynomial
    _fitted = Fitted(
        {"kernel_": Is(Polynomial)},
        rules=(
            ("the degree does not match the kernel", lambda phi: phi._degree == phi.kernel_.degree),
            ("the lowest degree is wrong", lambda phi: phi._lowest == (0 if phi.kernel_.offset > 0 else phi._degree)),
        ),
    )

    def __init__(self, degree: int = 2, scale: float = 1.0, offset: float = 1.0) -> None:
        self.degree = degree
        self.scale = scale
        self.offset = offset

    @property
    def kernel(self) -> Polynomial:
        """The kernel that the features belong to, with the parameters of the map."""
        return Polynomial(self.degree, self.scale, self.offset)

    def _learn(self, X: Any) -> None:
        self.kernel_ = self.kernel
        degree = self.kernel_.degree
        self._set_count(degree, 0 if self.kernel_.offset > 0 else degree)
        self._factors()

    def _factors(self) -> NDArray[np.float64]:
        """``sqrt(p! / (p - t)! c^(p - t))`` for each degree ``t``; the scale goes to the columns."""
        p, factors = self.kernel_.degree, degree_factors(self.kernel_.degree, self.kernel_.offset)
        if not np.isfinite(factors).all():
            raise NumericalError(
                f"PolynomialMap: the weights of degree={p} with offset={self.kernel_.offset:g} overflow. Use a lower "
                "degree, or divide scale and offset by the offset, which divides the kernel by its power."
            )
        return factors

    def _features(self, X: Any) -> Any:
        if self.kernel_.scale != 1.0:
            X = X * X.dtype.type(math.sqrt(self.kernel_.scale))
        factors = self._factors()
        features = self._monomials(X, np.ones(X.shape[0], X.dtype), factors)
        with np.errstate(over="ignore", invalid="ignore"):
            bound = (factors * np.float64(max(largest_entry(X), 1.0)) ** np.arange(len(factors))).max()
        if not bound < np.finfo(X.dtype).max:
            self._require_finite(features.data if hasattr(features, "indptr") else features)
        return features
