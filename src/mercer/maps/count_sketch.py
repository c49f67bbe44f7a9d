"""Sketches of the features of the polynomial kernel, without computing the features themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer.data.fitted import Fitted
from mercer.data.seeds import generator
from mercer.data.statements import Is, Whole
from mercer.kernels import Polynomial
from mercer.kernels.parameters import whole
from mercer.maps._base import FeatureMap, by_rows


def _are_hashes(phi: Any) -> bool:
    return phi.places_.shape == (phi.kernel_.degree, vars(phi).get("n_features_in_", 0) + 1) and bool(phi.signs_.all())


class CountSketchMap(FeatureMap):
    r"""A sketch of the polynomial kernel's features by hashing and FFT, whose inner products approximate the kernel.

    With :math:`u = (\sqrt s\, x, \sqrt c)`, so that :math:`(s \langle x, z \rangle + c)^p = \langle u, v \rangle^p`,
    and p independent hashes :math:`h_j` of its entries to D positions, with signs :math:`\sigma_j`,

    .. math:: \varphi(x) = \mathcal F^{-1}\Bigl(\prod_{j=1}^p \mathcal F(C_j u)\Bigr), \qquad
              (C_j u)_q = \sum_{i : h_j(i) = q} \sigma_j(i)\, u_i

    which is the count sketch of all products of p entries of u, in time :math:`O(p (d + D \log D))` per row.

    Parameters
    ----------
    degree : int, default=2
        A whole number of at least 1.
    scale : float, default=1.0
        Above 0.
    offset : float, default=1.0
        At least 0.
    n_components : int, default=100
        Number D of features.
    random_state : int, RandomState or None, default=None
        Seed of the hashes.

    Attributes
    ----------
    kernel : Polynomial
        The kernel that the inner products approximate.
    kernel_ : Polynomial
        The same kernel, as of the fit.
    places_ : ndarray of shape (degree, n_features_in_ + 1)
        The hashes; the last entry belongs to the offset.
    signs_ : ndarray of shape (degree, n_features_in_ + 1)
        The signs, 1 or -1.
    n_output_features_ : int
        Number of features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has any.

    See Also
    --------
    PolynomialMap : The features themselves.

    Notes
    -----
    Inner products are unbiased estimates of the kernel's values, with a variance of at most
    :math:`(2 + 3^p)\, k(x, x)\, k(z, z) / D`, so errors decrease as :math:`D^{-1/2}`.

    References
    ----------
    N. Pham, R. Pagh, "Fast and scalable polynomial kernels via explicit feature maps" (2013); H. Avron, H. L. Nguyen,
    D. P. Woodruff, "Subspace embeddings for the polynomial kernel" (2014), for the bound of the variance.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.maps import CountSketchMap
    >>> X = np.array([[1.0, 2.0], [0.5, -1.0]])
    >>> phi = CountSketchMap(degree=2, n_components=20_000, random_state=0).fit(X)
    >>> F = phi.transform(X)
    >>> F.shape, bool(abs(F @ F.T - phi.kernel(X)).max() < 0.05 * phi.kernel(X).max())
    ((2, 20000), True)
    """

    kernel_: Polynomial
    _fitted = Fitted(
        {
            "kernel_": Is(Polynomial),
            "places_": Whole("degree, places", below="features"),
            "signs_": Whole("degree, places", least=-1, below=2),
        },
        rules=(("the hashes do not match the kernel and the columns", _are_hashes),),
    )

    def __init__(
        self,
        degree: int = 2,
        scale: float = 1.0,
        offset: float = 1.0,
        n_components: int = 100,
        *,
        random_state: Any = None,
    ) -> None:
        self.degree = degree
        self.scale = scale
        self.offset = offset
        self.n_components = n_components
        self.random_state = random_state

    @property
    def kernel(self) -> Polynomial:
        """The kernel that the features approximate, with the parameters of the map."""
        return Polynomial(self.degree, self.scale, self.offset)

    def _learn(self, X: Any) -> None:
        self.kernel_ = self.kernel
        shape = (self.kernel_.degree, X.shape[1] + 1)
        count = whole(type(self).__name__, "n_components", self.n_components, "a whole number of at least 1")
        rng = generator(self.random_state)
        self.places_ = rng.randint(count, size=shape)
        self.signs_ = 2 * rng.randint(2, size=shape) - 1
        self.n_output_features_ = count

    def _features(self, X: Any) -> NDArray[np.floating]:
        n, count = X.shape[0], self.n_output_features_
        # The result, and transforms of a few rows beside it.
        self._room(n, n * count, X.dtype.itemsize, f"{count:,}")
        out = np.empty((n, count), X.dtype)
        sketches = [self._sketch(j, X.dtype) for j in range(len(self.places_))]

        def rows(part: slice) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                if len(sketches) == 1:
                    out[part] = _sketched(X[part], *sketches[0])
                else:
                    product = scipy.fft.rfft(_sketched(X[part], *sketches[0]))
                    for sketch in sketches[1:]:
                        product *= scipy.fft.rfft(_sketched(X[part], *sketch))
                    out[part] = scipy.fft.irfft(product, n=count)
            self._require_finite(out[part])

        by_rows(n, count, rows)
        return out

    def _sketch(self, j: int, dtype: np.dtype) -> tuple[sp.csc_array, NDArray[np.floating]]:
        """The matrix of hash ``j``, shape (D, d), and what it makes of the offset, shape (D,)."""
        places, signs = self.places_[j], self.signs_[j].astype(dtype)
        d, count = len(places) - 1, self.n_output_features_
        values = signs[:-1] * dtype.type(math.sqrt(self.kernel_.scale))
        fixed = np.zeros(count, dtype)
        fixed[places[-1]] = signs[-1] * dtype.type(math.sqrt(self.kernel_.offset))
        return sp.csc_array((values, places[:-1], np.arange(d + 1)), shape=(count, d)), fixed


def _sketched(X: Any, matrix: sp.csc_array, fixed: NDArray[np.floating]) -> NDArray[np.floating]:
    """``matrix @ x + fixed`` for every row x."""
    product = X @ matrix.T
    return np.asarray(product.todense() if sp.issparse(product) else product) + fixed
