"""The Taylor features of the Gaussian kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import gammainc
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError
from mercer.data.fitted import Fitted
from mercer.data.statements import Is
from mercer.kernels import RBF
from mercer.kernels.parameters import whole
from mercer.maps._monomials import MonomialMap


def _has_scales(phi: Any) -> bool:
    scales = phi.kernel_.length_scale
    return not isinstance(scales, tuple) or len(scales) == phi.n_features_in_


class GaussianSeriesMap(MonomialMap):
    r"""The Taylor features of the Gaussian kernel up to a degree, with a bound on the truncation error.

    .. math:: \varphi_a(x) = e^{-\|u\|^2 / 2} \prod_i \frac{u_i^{a_i}}{\sqrt{a_i!}}, \qquad u_i = x_i / \ell_i, \qquad
              |a| \le p

    With all powers :math:`a` the inner products are :math:`e^{-\|u - v\|^2 / 2}`; those up to the degree p approximate
    it for rows whose norm is small in units of the length scale.

    Parameters
    ----------
    length_scale : float or sequence of float, default=1.0
        Of the kernel, in the units of the columns; one number, or one per column. Above 0.
    degree : int, default=4
        The highest degree p, a whole number of at least 1.

    Attributes
    ----------
    kernel : RBF
        The kernel that the inner products approximate.
    kernel_ : RBF
        The same kernel, as of the fit.
    n_output_features_ : int
        Number of features, ``C(d + p, p)``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has any.

    See Also
    --------
    PolynomialMap : The same monomials, with the weights of the polynomial kernel.

    Notes
    -----
    A shift of all rows by the same vector leaves the kernel unchanged but not the error: centre the columns first.
    Sparse rows give sparse features.

    References
    ----------
    A. Cotter, J. Keshet, N. Srebro, "Explicit approximations of the Gaussian kernel" (2011).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import GaussianSeriesMap
    >>> X = np.array([[0.2, 0.1], [-0.3, 0.4]])
    >>> phi = GaussianSeriesMap(length_scale=1.0, degree=4).fit(X)
    >>> F = phi.transform(X)
    >>> bool(abs(F @ F.T - phi.kernel(X)).max() <= 1.001 * phi.truncation_error(X).max() < 1e-5)
    True
    """

    kernel_: RBF
    _fitted = Fitted({"kernel_": Is(RBF)}, rules=(("the length scales do not match the columns", _has_scales),))

    def __init__(self, length_scale: Any = 1.0, degree: int = 4) -> None:
        self.length_scale = length_scale
        self.degree = degree

    @property
    def kernel(self) -> RBF:
        """The kernel that the features approximate, with the length scale of the map."""
        return RBF(self.length_scale)

    def _learn(self, X: Any) -> None:
        degree = whole(type(self).__name__, "degree", self.degree, "a whole number of at least 1")
        self.kernel_ = self.kernel
        scales = self.kernel_.length_scale
        if isinstance(scales, tuple) and len(scales) != X.shape[1]:
            raise DataError(
                f"GaussianSeriesMap has {len(scales)} length scales, but X has {X.shape[1]} columns; pass one per "
                "column."
            )
        self._set_count(degree, 0)

    def _scaled(self, X: Any) -> tuple[Any, NDArray[np.float64]]:
        """Rows in units of the length scale, and their squared lengths."""
        scales = np.broadcast_to(np.asarray(self.kernel_.length_scale, X.dtype), X.shape[1])
        if sp.issparse(X):
            X = X.copy()
            X.data /= scales[X.indices]
            with np.errstate(over="ignore"):
                squares = X.multiply(X).sum(axis=1, dtype=np.float64)
            return X, np.asarray(squares).ravel()
        with np.errstate(over="ignore"):
            X = X / scales
            return X, np.einsum("ij,ij->i", X, X, dtype=np.float64)

    def _features(self, X: Any) -> Any:
        U, squares = self._scaled(X)
        weights = np.exp(-squares / 2).astype(X.dtype)
        return self._monomials(U, weights, np.ones(self._degree + 1))

    def truncation_error(self, X: Any) -> NDArray[np.float64]:
        r"""Return how far ``<phi(x), phi(x)>`` falls short of 1, which bounds the error of every kernel value.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            ``e(x) = P(N > degree)`` for a Poisson variable N of mean ``|x / length_scale|^2``: the squared norm of the
            features omitted from ``phi(x)``. By the Cauchy-Schwarz inequality ``k(x, z)`` has an error of at most
            ``sqrt(e(x) e(z))``; for z = x this is the exact error.

        Raises
        ------
        DataError
            If the rows cannot be used.

        Examples
        --------
        >>> GaussianSeriesMap(degree=2).fit([[1.0]]).truncation_error([[1.0], [0.1]]).round(9).tolist()
        [0.080301397, 1.65e-07]
        """
        check_is_fitted(self, "n_output_features_")
        return gammainc(self._degree + 1.0, self._scaled(self._check_X(X, reset=False))[1])
