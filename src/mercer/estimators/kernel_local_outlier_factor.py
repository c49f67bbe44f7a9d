"""Novelty detection by densities of neighbourhoods in the feature space of a kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._registered import CommandLine
from mercer._types import RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats
from mercer.engine import settings
from mercer.estimators.distances.neighbors import KernelNeighbors, check_count
from mercer.kernels.convert import KernelLike

# Breunig's threshold for clusters is between 1 and 2; scikit-learn's "auto" is this one.
_OFFSET = -1.5
# As scikit-learn's, but relative to distances, so that the unit of the rows does not matter.
_SMALLEST = 1e-10


class KernelLocalOutlierFactor(OutlierMixin, KernelNeighbors):
    r"""How dense the rows are around a row, relative to its neighbours, in the feature space of any kernel.

    With :math:`N(x)` the k nearest training rows of x and :math:`d_k(z)` the distance of z from its k-th neighbour,

    .. math:: \mathrm{lrd}(x) = \Big[ \frac1k \sum_{z \in N(x)} \max(d(x, z), d_k(z)) \Big]^{-1}, \qquad
              \mathrm{LOF}(x) = \frac1k \sum_{z \in N(x)} \frac{\mathrm{lrd}(z)}{\mathrm{lrd}(x)}

    The factor is about 1 within a cluster of any density, and larger for rows that are more isolated than their
    neighbours are.

    Parameters
    ----------
    n_neighbors : int, default=20
        k. With n training rows, n - 1 at most are used.
    kernel : str, Kernel, scikit-learn kernel or callable, default="linear"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ``"laplacian"``, ``"chi2"``, ``"cosine"``), a
        kernel, a function ``(X, Z) -> block``, or ``"precomputed"``. With the linear kernel distances are Euclidean.
        Conditionally positive kernels also define distances.
    gamma : float or {"scale", "auto"}, optional
        For named kernels; None is ``1 / n_features`` (1 for ``"chi2"``).
    degree : int, default=3
        Degree of ``"poly"``.
    coef0 : float, default=1
        Constant term of ``"poly"`` and ``"sigmoid"``.
    allow_indefinite : bool or "warn", default="warn"
        Has no effect; accepted so that learners are interchangeable. Squared distances below 0 count as 0.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    negative_outlier_factor_ : ndarray of shape (n_samples,)
        The negative factors of the training rows, each without itself as a neighbour.
    n_neighbors_ : int
        The number of neighbours that is used.
    offset_ : float
        -1.5, so that ``decision_function = score_samples - offset_``. For a given share of outliers, take a percentile
        of ``negative_outlier_factor_`` as the threshold of ``score_samples``.
    X_fit_ : ndarray or csr_matrix of shape (n_samples, n_features)
        The training rows; for ``"precomputed"``, the matrix.
    n_samples_fit_ : int
        Number of training rows.
    kernel_ : Kernel or None
        The kernel; None for ``"precomputed"``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    See Also
    --------
    OneClassSVM : One region for all rows, from few of them.

    Notes
    -----
    With ``kernel="linear"`` the scores are those of ``sklearn.neighbors.LocalOutlierFactor(novelty=True)``. Means of
    distances are bounded from below by 1e-10 of the mean of :math:`d_k`, where scikit-learn adds 1e-10.
    There is no ``certificate_``, since nothing is minimised.

    Distances by kernels that fall to 0, such as RBF, grow to a limit: a row far from all others may then have a factor
    near 1. Take a large length scale, the linear kernel, or ``NegativeDistance``, whose distances have no limit.

    References
    ----------
    M. Breunig, H.-P. Kriegel, R. Ng and J. Sander, "LOF: identifying density-based local outliers" (2000),
    definitions 5 to 7. L. Latecki, A. Lazarevic and D. Pokrajac, "Outlier detection with kernel density functions"
    (2007), on other local densities by kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelLocalOutlierFactor
    >>> dense, sparse = np.arange(8.0) / 100, np.arange(8.0) + 5
    >>> model = KernelLocalOutlierFactor(3).fit(np.r_[dense, sparse][:, None])
    >>> model.predict([[0.035], [0.5], [8.5]]).tolist()
    [1, -1, 1]
    """

    n_neighbors_: int
    _command_line = CommandLine(advised=False, without_certificate=KernelNeighbors._command_line.without_certificate)
    _fitted = Fitted(
        {
            "n_neighbors_": Count(least=1, most="n"),
            "negative_outlier_factor_": Floats("n"),
            "_radii": Floats("n", least=0),
            "_densities": Floats("n", least=0),
        },
        parameters={"n_neighbors": Count(least=1)},
    )

    def __init__(
        self,
        n_neighbors: int = 20,
        *,
        kernel: KernelLike = "linear",
        gamma: float | str | None = None,
        degree: int = 3,
        coef0: float = 1,
        allow_indefinite: bool | str = "warn",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.allow_indefinite = allow_indefinite
        self.n_jobs = n_jobs

    def fit(self, X: RowsLike, y: ArrayLike | None = None) -> Self:
        """Keep the rows, with the densities around them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            For ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples).
        y : ignored

        Raises
        ------
        DataError, ParameterError, KernelValueError
            If the data or a parameter cannot be used; see the messages.

        Warns
        -----
        MercerWarning
            If there are no more than ``n_neighbors`` rows.
        """
        settings.resolve_jobs(self.n_jobs)
        asked = check_count(self.n_neighbors)
        X = self._check_X(X, reset=True)
        n = X.shape[0]
        if n < 2:
            raise DataError(f"a density needs at least two rows, but X has n_samples = {n}.")
        self._keep(X)
        self.n_neighbors_ = min(asked, n - 1)
        if asked > n - 1:
            warn_user(
                f"{type(self).__name__}: n_neighbors = {asked}, but each of the {n} rows has only {n - 1} others, "
                "which are used. Pass a smaller n_neighbors, or more rows.",
                MercerWarning,
            )
        distances, indices = self.kneighbors()
        self._radii = distances[:, -1].astype(np.float64)
        self._densities = self._density(distances, indices)
        self.negative_outlier_factor_ = self._scores(self._densities, indices)
        return self

    def score_samples(self, X: RowsLike | None, *, diagonal: ArrayLike | None = None) -> Vector:
        """Return negative local outlier factors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features), or None
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n_samples). None for the training
            rows, each without itself as a neighbour. A training row that is passed is a neighbour of itself.
        diagonal : array-like of shape (m,), optional
            As for :meth:`kneighbors`.

        Returns
        -------
        ndarray of shape (m,)
            About -1 inside, lower outside.
        """
        check_is_fitted(self)
        distances, indices = self.kneighbors(X, diagonal=diagonal)
        return self._scores(self._density(distances, indices), indices)

    def decision_function(self, X: RowsLike | None, *, diagonal: ArrayLike | None = None) -> Vector:
        """Return ``score_samples(X) - offset_``, (m,): positive inside, negative outside.

        Parameters
        ----------
        X, diagonal
            As for :meth:`score_samples`.
        """
        return self.score_samples(X, diagonal=diagonal) - self.offset_

    def predict(self, X: RowsLike | None, *, diagonal: ArrayLike | None = None) -> NDArray[np.intp]:
        """Return +1 for rows that are inside, -1 for the others, (m,).

        Parameters
        ----------
        X, diagonal
            As for :meth:`score_samples`.
        """
        return np.where(self.decision_function(X, diagonal=diagonal) >= 0, 1, -1).astype(np.intp)

    @property
    def offset_(self) -> float:
        """The threshold of ``score_samples``."""
        return _OFFSET

    def _count(self, n_neighbors: Any, among_themselves: bool) -> int:
        return super()._count(self.n_neighbors_ if n_neighbors is None else n_neighbors, among_themselves)

    def _density(self, distances: NDArray[Any], indices: NDArray[np.intp]) -> Vector:
        """The local reachability density of rows with these neighbours."""
        reach = np.maximum(distances, self._radii[indices]).mean(axis=1)
        smallest = _SMALLEST * float(self._radii.mean())
        # Where each row has k equal ones, any distance is far.
        density: Vector = 1.0 / np.maximum(reach, smallest or np.sqrt(np.finfo(np.float64).tiny))
        return density

    def _scores(self, densities: Vector, indices: NDArray[np.intp]) -> Vector:
        scores: Vector = -(self._densities[indices].mean(axis=1) / densities)
        return scores
