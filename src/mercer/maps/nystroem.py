"""The Nystroem method."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import NumericalError
from mercer.data.fitted import Fitted
from mercer.data.objects import Objects
from mercer.data.seeds import generator
from mercer.data.statements import Floats, Maybe, RowsOfData, Whole
from mercer.engine import memory
from mercer.kernels import as_kernel
from mercer.kernels.compares import compares
from mercer.kernels.domain import checked_objects
from mercer.kernels.parameters import whole
from mercer.landmarks.choose import Names, choose, method_of, require_positive
from mercer.landmarks.roots import inverse_root
from mercer.maps._base import FeatureMap, by_rows

_NAMES = Names("NystroemMap", "n_components", "method")


def _compares_landmarks(phi: Any) -> bool:
    counted = "n_features_in_" in vars(phi)
    return counted != isinstance(phi.landmarks_, Objects) and compares(phi.kernel_, phi.landmarks_)


class NystroemMap(FeatureMap):
    r"""Features that approximate any kernel from its values at a few rows, the landmarks.

    .. math:: \varphi(x) = K_{LL}^{-1/2}\, k_L(x), \qquad
              \langle \varphi(x), \varphi(z) \rangle = k_L(x)^\top K_{LL}^{-1} k_L(z)

    with the landmarks' kernel matrix :math:`K_{LL}` and :math:`k_L(x) = (k(l, x))_{l \in L}`: the inner product of x
    and z after projection onto the span of the landmarks in feature space. Between two landmarks the kernel is exact.

    Parameters
    ----------
    kernel : str, Kernel or callable, default="rbf"
        Any positive kernel, in the forms that the estimators take. A name has gamma = 1 / d.
    n_components : int, default=100
        Number of landmarks; all training rows if there are fewer.
    method : {"uniform", "kmeans", "leverage", "rpcholesky"}, default="rpcholesky"
        How landmarks are chosen: rows with equal probability; the means of k-means clusters; rows with probability
        proportional to estimated ridge leverage scores; or by randomly pivoted Cholesky, each row with probability
        proportional to the residual of ``k(x, x)`` after the previous ones. Of many rows, all but the first look at a
        uniform sample of ``2 n_components + 6000`` rows, or of fewer if these do not fit the memory budget.
    random_state : int, RandomState or None, default=None
        Seed of the choice.

    Attributes
    ----------
    kernel_ : Kernel
        The kernel that the inner products approximate: the parameter ``kernel``, with the gamma of a name filled in.
    landmarks_ : array or CSR matrix of shape (n_output_features_, n_features_in_)
        The landmarks.
    landmark_indices_ : ndarray of shape (n_output_features_,) or None
        Their positions among the training rows; None for k-means.
    normalization_ : ndarray of shape (n_output_features_, n_output_features_)
        The inverse square root of the landmarks' kernel matrix, 0 in directions within rounding.
    n_output_features_ : int
        Number of features; fewer than ``n_components`` also if fewer pivots leave no residual.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has any.

    See Also
    --------
    RandomFourierMap : Features that do not depend on the training rows.

    Notes
    -----
    With a sample of n rows and m landmarks the choice takes m kernel values per row and :math:`O(n m^2)` operations for
    ``"rpcholesky"``, and as many values for ``"leverage"``; the inverse square root takes :math:`O(m^3)`. The
    expected trace of the residual for ``"rpcholesky"`` is at most :math:`1 + \epsilon` times that of the best
    approximation of rank r if :math:`m \ge r / \epsilon + r \log(1 / (\epsilon \eta))`, where :math:`\eta` is the share
    of the trace in the residual of the best approximation.

    References
    ----------
    C. Williams, M. Seeger, "Using the Nystroem method to speed up kernel machines" (2001); K. Zhang, I. Tsang, J. Kwok,
    "Improved Nystroem low-rank approximation and error analysis" (2008), for k-means; A. Alaoui, M. Mahoney, "Fast
    randomized kernel ridge regression with statistical guarantees" (2015), for leverage scores; Y. Chen, E. Epperly,
    J. Tropp, R. Webber, "Randomly pivoted Cholesky" (2023), theorem on the trace.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF
    >>> from mercer.maps import NystroemMap
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> phi = NystroemMap(RBF(1.0), n_components=8, random_state=0).fit(X)
    >>> F = phi.transform(X)
    >>> F.shape, bool(abs(F @ F.T - phi.kernel_(X)).max() < 1e-6)
    ((50, 8), True)
    """

    _fitted = Fitted(
        {
            "landmark_indices_": Maybe(Whole("features")),
            "landmarks_": RowsOfData("features"),
            "normalization_": Floats("features, features"),
        },
        rules=(("the kernel does not compare the landmarks", _compares_landmarks),),
    )

    def __init__(
        self, kernel: Any = "rbf", n_components: int = 100, *, method: str = "rpcholesky", random_state: Any = None
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.method = method
        self.random_state = random_state

    def _check_X(self, X: Any, *, reset: bool) -> Any:
        rows = checked_objects(self, self.kernel if reset else self.kernel_, X, reset=reset)
        return super()._check_X(X, reset=reset) if rows is None else rows

    def _learn(self, X: Any) -> None:
        kernel = as_kernel(self.kernel, X=X).with_data(X)
        require_positive(kernel, _NAMES)
        m = min(whole("NystroemMap", "n_components", self.n_components, "a whole number of at least 1"), X.shape[0])
        method = method_of(self.method, _NAMES)
        random = generator(self.random_state)
        with np.errstate(over="ignore"):
            trace = float(kernel.diagonal(X).sum(dtype=np.float64))
        if not np.isfinite(trace):
            raise NumericalError(
                f"NystroemMap: values k(x, x) of {kernel!r} overflow, or their sum. Scale the columns of X "
                "(sklearn.preprocessing.StandardScaler), or multiply the kernel by a small number."
            )
        with memory.reserve(4 * 8 * m * m, f"NystroemMap: the kernel matrix of {m:,} landmarks and its inverse root"):
            chosen = choose(kernel, X, m, method, random, names=_NAMES)
            self.landmark_indices_, self.landmarks_ = chosen.indices, chosen.rows
            K: NDArray[np.floating] = kernel.block(self.landmarks_.astype(np.float64))
            self.normalization_ = inverse_root(K.astype(np.float64, copy=False))
        self.kernel_ = kernel
        self.n_output_features_ = len(self.normalization_)

    def _features(self, X: Any) -> NDArray[np.floating]:
        n, m = X.shape[0], self.n_output_features_
        self._room(n, n * m, X.dtype.itemsize, f"{m:,}")
        out = np.empty((n, m), X.dtype)
        landmarks = self.landmarks_.astype(np.float64, copy=False)

        def rows(part: slice) -> None:
            # In float64: where the root is large, kernel values cancel.
            with np.errstate(over="ignore", invalid="ignore"):
                out[part] = self.kernel_.block(X[part].astype(np.float64, copy=False), landmarks) @ self.normalization_
            self._require_finite(out[part])

        by_rows(n, m, rows)
        return out
