"""Random features of stationary and arc-cosine kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, ParameterError
from mercer.data.fitted import Fitted
from mercer.data.seeds import generator
from mercer.data.statements import Floats, Is, Number
from mercer.engine import memory
from mercer.kernels import RBF, ArcCosine, Kernel, Laplacian, Matern, as_kernel
from mercer.kernels.parameters import whole
from mercer.maps._base import FeatureMap, by_rows


def _are_enough(phi: Any) -> bool:
    count = phi.n_output_features_
    return phi.frequencies_.shape[1] == (count if isinstance(phi.kernel_, ArcCosine) else (count + 1) // 2)


class RandomFourierMap(FeatureMap):
    r"""Random features whose inner products approximate a stationary kernel: cosines and sines of random frequencies.

    .. math:: \varphi(x) = m^{-1/2} (\cos \omega_1^\top x, \dots, \cos \omega_m^\top x, \sin \omega_1^\top x, \dots,
              \sin \omega_m^\top x), \qquad \omega_i \sim p

    where p is the spectral density of the kernel: normal for ``RBF``, Student's t with :math:`2 \nu` degrees of freedom
    for ``Matern``, a Cauchy density for each column for ``Laplacian``. For ``ArcCosine`` of order n the features are
    :math:`\sqrt{2 / D} \max(0, \omega_i^\top x)^n` with normal weights.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        ``RBF``, ``Matern``, ``Laplacian`` or ``ArcCosine``; or ``"rbf"`` or ``"laplacian"``, with a gamma of 1 / d.
    n_components : int, default=100
        Number D of features, preferably even for a stationary kernel, where D = 2 m; if it is odd, the last frequency
        has only a cosine, at a random phase.
    orthogonal : bool, default=False
        Whether directions are drawn orthogonal to each other, in batches of as many as there are columns. Each keeps
        its distribution, and errors are smaller. Not for ``Laplacian``, whose density is not isotropic.
    random_state : int, RandomState or None, default=None
        Seed of the frequencies.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that the inner products approximate: the parameter ``kernel``, with the gamma of a name filled in.
    frequencies_ : ndarray of shape (n_features_in_, m)
        The frequencies, or the weights for ``ArcCosine``, where m = D.
    phase_ : float
        The phase added to the last angle; 0 if each frequency has a cosine and a sine.
    n_output_features_ : int
        Number of features.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has any.

    See Also
    --------
    GaussianSeriesMap : Deterministic features of the Gaussian kernel, for few columns.

    Notes
    -----
    Inner products are unbiased estimates of the kernel's values. For a stationary kernel ``k(x, z) = f(x - z)`` the
    variance is :math:`(1 + f(2 (x - z)) - 2 f(x - z)^2) / D` for an even D, and 0 for x = z; for arc-cosine kernels of
    order n it is :math:`(2 k_{2n} - k_n^2) / D`. Errors therefore decrease as :math:`D^{-1/2}`.

    References
    ----------
    A. Rahimi, B. Recht, "Random features for large-scale kernel machines" (2007); D. J. Sutherland, J. Schneider, "On
    the error of random Fourier features" (2015), for the variance; F. X. Yu et al., "Orthogonal random features"
    (2016); Y. Cho, L. K. Saul, "Kernel methods for deep learning" (2009), for the arc-cosine kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Matern
    >>> from mercer.maps import RandomFourierMap
    >>> X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, -1.0]])
    >>> phi = RandomFourierMap(Matern(2.0, nu=1.5), n_components=20_000, random_state=0).fit(X)
    >>> F = phi.transform(X)
    >>> bool(abs(F @ F.T - phi.kernel_(X)).max() < 0.03)
    True
    """

    _fitted = Fitted(
        {
            "kernel_": Is(RBF, Matern, Laplacian, ArcCosine),
            "frequencies_": Floats("d, frequencies"),
            "phase_": Number(),
        },
        rules=(("the number of frequencies does not match the features", _are_enough),),
    )

    def __init__(
        self, kernel: Any = "rbf", n_components: int = 100, *, orthogonal: bool = False, random_state: Any = None
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state

    def _learn(self, X: Any) -> None:
        kernel = as_kernel(self.kernel, X=X)
        count = whole(type(self).__name__, "n_components", self.n_components, "a whole number of at least 1")
        if not isinstance(kernel, RBF | Matern | Laplacian | ArcCosine):
            raise ParameterError(
                f"RandomFourierMap takes the kernels RBF, Matern, Laplacian and ArcCosine, but got {kernel!r}. "
                "For polynomials there is CountSketchMap."
            )
        if self.orthogonal and isinstance(kernel, Laplacian):
            raise ParameterError(
                "orthogonal=True needs a kernel whose frequencies have no preferred directions, and those of Laplacian "
                "have; use Matern(nu=0.5), which is exp(-|x - z|), or orthogonal=False."
            )
        scales = getattr(kernel, "length_scale", 1.0)
        if isinstance(scales, tuple) and len(scales) != X.shape[1]:
            raise DataError(
                f"{kernel!r} has {len(scales)} length scales, but X has {X.shape[1]} columns; pass one per column."
            )
        rng = generator(self.random_state)
        in_pairs = not isinstance(kernel, ArcCosine)
        frequencies = (count + 1) // 2 if in_pairs else count
        memory.require(16 * X.shape[1] * frequencies, f"RandomFourierMap: {frequencies:,} frequencies")
        self.kernel_ = kernel
        self.frequencies_ = self._draw(kernel, X.shape[1], frequencies, rng) / np.reshape(scales, (-1, 1))
        self.phase_ = float(rng.uniform(0, 2 * math.pi)) if in_pairs and count % 2 else 0.0
        self.n_output_features_ = count

    def _draw(self, kernel: Kernel, d: int, m: int, rng: np.random.RandomState) -> NDArray[np.float64]:
        """Frequencies in units of the inverse length scale, one a column."""
        if isinstance(kernel, Laplacian):
            return rng.standard_cauchy((d, m))
        normal = _orthogonal_normals(d, m, rng) if self.orthogonal else rng.standard_normal((d, m))
        if isinstance(kernel, Matern) and kernel.nu < math.inf:
            normal /= np.sqrt(rng.chisquare(2 * kernel.nu, m) / (2 * kernel.nu))
        return normal

    def _features(self, X: Any) -> NDArray[np.floating]:
        n, count, m = X.shape[0], self.n_output_features_, self.frequencies_.shape[1]
        self._room(n, n * count, X.dtype.itemsize, f"{count:,}")
        out = np.empty((n, count), X.dtype)
        W = self.frequencies_.astype(X.dtype, copy=False)
        scale = X.dtype.type(math.sqrt(2.0 / count))

        def rows(part: slice) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                inner = X[part] @ W
                if isinstance(self.kernel_, ArcCosine):
                    _activate(inner, self.kernel_.order, out[part])
                else:
                    inner[:, -1] += X.dtype.type(self.phase_)
                    np.cos(inner, out=out[part, :m])
                    np.sin(inner[:, : count - m], out=out[part, m:])
                out[part] *= scale
            self._require_finite(out[part])

        by_rows(n, count, rows)
        return out


def _activate(inner: NDArray[np.floating], order: int, out: NDArray[np.floating]) -> None:
    """``max(0, u)^order``; for order 0 a step, which is half way up at 0, as the kernel of a row of zeros is."""
    if order == 0:
        np.heaviside(inner, inner.dtype.type(0.5), out=out)
        return
    np.maximum(inner, 0, out=out)
    if order == 2:
        out *= out


def _orthogonal_normals(d: int, m: int, rng: np.random.RandomState) -> NDArray[np.float64]:
    """``m`` normal vectors whose directions are orthogonal, ``d`` at a time."""
    blocks = []
    for start in range(0, m, d):
        Q, R = np.linalg.qr(rng.standard_normal((d, min(d, m - start))))
        # With signs that are those of no algorithm the directions are uniform.
        blocks.append(Q * np.where(np.diagonal(R) < 0, -1.0, 1.0))
    return np.hstack(blocks) * np.sqrt(rng.chisquare(d, m))
