"""Clusters around means in the feature space of a kernel."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError, warn_user
from mercer._types import Array, CheckedRows, RowsLike, Vector
from mercer.estimators.distances.clusters import CLUSTERS, DistinctRows, MeanSpace, check_start, rows_of
from mercer.estimators.distances.diagonal import diagonal_of_new
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.certificates import write_result
from mercer.estimators.shared.expansion import KernelExpansion, feature_map_of, unless_stored
from mercer.estimators.shared.layout import read_only
from mercer.estimators.shared.parameters import require_choice, require_number, require_seed
from mercer.estimators.shared.weights import check_sample_weight, fit_weighted_kernel
from mercer.gram import Gram
from mercer.gram.protocol import GramMatrix
from mercer.kernels.convert import KernelLike
from mercer.solvers.clustering.kmeans import Clustering, Partition, solve
from mercer.solvers.solution import Solution


class KernelKMeans(ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, KernelEstimator):
    r"""k-means clustering in the feature space of a kernel.

    .. math:: \min_\ell \sum_i w_i \|\phi(x_i) - m_{\ell_i}\|^2, \qquad
              m_c = \frac{\sum_{\ell_i = c} w_i \phi(x_i)}{\sum_{\ell_i = c} w_i}, \qquad
              \|\phi(x) - m_c\|^2 = k(x, x) - 2 \sum_i a_{ic}\, k(x, x_i) + \sum_{ij} a_{ic} a_{jc}\, k(x_i, x_j)

    with the shares :math:`a_{ic}` of the rows in the means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at most the number of rows.
    kernel : str, Kernel, scikit-learn kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ``"laplacian"``, ``"chi2"``, ``"cosine"``), a
        kernel, a function ``(X, Z) -> block``, or ``"precomputed"``. Conditionally positive kernels are allowed.
    gamma : float or {"scale", "auto"}, optional
        For named kernels; None is ``1 / n_features`` (1 for ``"chi2"``).
    degree : int, default=3
        Degree of ``"poly"``.
    coef0 : float, default=1
        Constant term of ``"poly"`` and ``"sigmoid"``.
    init : {"k-means++", "random"} or array-like, default="k-means++"
        The initial means. ``"k-means++"`` draws rows far from each other in feature space, ``"random"`` any rows. An
        array of n_clusters whole numbers names the rows that are the first means; one of n_samples whole numbers from 0
        to n_clusters - 1 is a first partition (if both numbers are equal, it names rows); one of shape (n_clusters,
        n_features) contains points whose images are the first means.
    n_init : int or "auto", default="auto"
        Number of starts, of which the best result counts; ``"auto"`` is 10 for ``"random"`` and 1 otherwise. An array
        is always one start.
    max_iter : int, default=300
        Maximum number of iterations of a run.
    tol : float, default=0
        A run also ends when the squared shifts of all means add up to this share of the variance in feature space. At
        0 it ends when no row changes its cluster.
    approximation : {"nystroem"}, optional
        None for the kernel itself; ``"nystroem"`` keeps the means in the span of some rows in feature space, which
        needs no kernel matrix and evaluates each kernel value at most once, for very large data.
    n_landmarks : int, default=300
        Number of rows that span the means for ``"nystroem"``.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that has no feature space: ``"warn"`` puts rows where the formula is smallest, ends a run when the
        inertia no longer decreases, and warns; True does so silently; False raises an error.
    random_state : int, RandomState or None, default=None
        Seed of starts and landmarks.
    verbose : bool, default=False
        Whether fits of more than two seconds report their progress on standard error.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    labels_ : ndarray of int of shape (n_samples,)
        The cluster of each row: the one with the nearest mean.
    inertia_ : float
        The weighted sum of squared distances of rows from the nearest mean, in float64.
    inertia_history_ : ndarray
        The inertia of each partition about its own means, from the first partition on, and of the result. It never
        rises; before the last partition it has float32 accuracy if the kernel matrix did not fit the budget.
    n_iter_ : int
        Iterations of the best run.
    dual_coef_ : ndarray of shape (n_samples, n_clusters)
        Shares of the rows of X, in their order, in the means :math:`m_c = \sum_i` ``dual_coef_[i, c]``
        :math:`\phi(x_i)`: columns that sum to 1. Not for ``"nystroem"``, whose means are not made of rows.
    X_fit_ : ndarray or csr_matrix of shape (n_samples, n_features)
        The rows; not for ``"precomputed"``, ``kernel="linear"`` or ``"nystroem"``.
    cluster_centers_ : ndarray of shape (n_clusters, n_coordinates)
        The means: in the columns of X for ``kernel="linear"``, in the features of ``map_`` for ``"nystroem"``, and in
        those of ``feature_map_`` for other kernels with a finite feature map.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map of such a kernel, which names the features (``get_feature_names_out``).
    norm_ : ndarray of shape (n_clusters,)
        Lengths of the means in feature space.
    map_ : NystroemMap
        The features for ``"nystroem"``.
    kernel_ : Kernel or None
        The kernel; None for ``"precomputed"``.
    certificate_ : Certificate
        The inertia, how far a row is from being nearest to its own mean, time and memory.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    See Also
    --------
    KernelPCA : Coordinates in feature space.

    Notes
    -----
    Names and meanings are those of ``sklearn.cluster.KMeans``, which gives the same results with ``kernel="linear"``
    and the same start (``tol`` refers to the total variance of all columns, and 0 is the default). Integer weights are
    the same as repeated rows. Empty clusters get the row that is farthest from its mean; if there are fewer distinct
    rows than clusters, the last clusters stay empty and a warning says so.

    With the status ``converged`` and ``tol=0`` every row is nearest to the mean of its own cluster, in float64: no
    further step of the method improves the result. Other partitions may be better; more starts (``n_init``) search for
    them.

    With ``"nystroem"`` distances are still those in feature space, but from means in the span of the landmarks: the
    inertia is that of the kernel itself, and an upper bound on the inertia of the same labels with free means.

    References
    ----------
    I. Dhillon, Y. Guan and B. Kulis, "Kernel k-means, spectral clustering and normalized cuts" (2004), section 2.
    D. Arthur and S. Vassilvitskii, "k-means++: the advantages of careful seeding" (2007). C. Elkan, "Using the triangle
    inequality to accelerate k-means" (2003), lemma 1. R. Chitta, R. Jin, T. Havens and A. Jain, "Approximate kernel
    k-means: solution to large scale kernel clustering" (2011), section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelKMeans
    >>> X = np.array([[-5.0], [-4.9], [-0.1], [0.0], [0.1], [4.9], [5.0]])
    >>> model = KernelKMeans(2, kernel="poly", degree=2, gamma=1.0, coef0=0, init=[0, 3]).fit(X)
    >>> model.labels_.tolist(), model.certificate_.status.name
    ([0, 0, 1, 1, 1, 0, 0], 'converged')
    >>> KernelKMeans(2, kernel="linear", init=[0, 2]).fit([[0.0], [1.0], [9.0], [11.0]]).cluster_centers_.tolist()
    [[0.5], [10.0]]
    """

    _fitted = CLUSTERS

    feature_map_ = property(feature_map_of)

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        kernel: KernelLike = "rbf",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 0.0,
        approximation: str | None = None,
        n_landmarks: int = 300,
        allow_indefinite: bool | str = "warn",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool | int = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.allow_indefinite = allow_indefinite
        self.random_state = random_state
        self.verbose = verbose
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find clusters of the rows ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            For ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples).
        y : ignored
        sample_weight : float or array-like of shape (n_samples,), optional
            Weights, 0 or more. A row of weight 0 is assigned to the nearest cluster.

        Raises
        ------
        DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
            If the data or a parameter cannot be used, or the problem exceeds the memory budget; see the messages.

        Warns
        -----
        ConvergenceWarning
            If ``max_iter`` ended the best run, or there are fewer distinct rows than clusters.
        """
        self._check_parameters()
        X = self._check_X(X, reset=True)
        weight = check_sample_weight(sample_weight, X)
        if self.n_clusters > X.shape[0]:
            raise ParameterError(
                f"n_samples={X.shape[0]} should be >= n_clusters={self.n_clusters}: each cluster needs a row; ask for "
                "at most as many clusters as there are rows."
            )
        check_start(self.init, int(self.n_clusters), X, self._is_precomputed)
        fit_weighted_kernel(self, X, weight, intercept=True)
        precomputed = self._is_precomputed
        rows = rows_of(X, weight, merge=not (precomputed or self._is_partition(X)), square=precomputed)
        # Landmarks save the whole matrix, of which an examination takes a sample.
        if self.kernel_ is not None and self.approximation is not None:
            gram: Any = Gram(self.kernel_, rows.X, n_jobs=self.n_jobs)
        else:
            gram = self._gram(rows.X)
        convex = self._is_convex(gram, rows.first, X.dtype, intercept=True)
        solution = self._solve(X, rows, gram, convex)
        self._take(solution, rows, X, weight)
        self._report(len(rows.weight))
        return self

    def _is_partition(self, X: CheckedRows) -> bool:
        """Whether ``init`` puts rows into clusters, which it may do with equal rows in different ways."""
        return not isinstance(self.init, str) and np.shape(self.init) == (X.shape[0],) != (self.n_clusters,)

    def _solve(self, X: CheckedRows, rows: DistinctRows, gram: GramMatrix, convex: bool) -> Solution[Partition, None]:
        random = check_random_state(self.random_state)
        for name in ("map_", "_center"):
            self.__dict__.pop(name, None)
        has_start = not isinstance(self.init, str)
        k = int(self.n_clusters) if has_start else min(int(self.n_clusters), len(rows.weight))
        several = 10 if not has_start and self.init == "random" else 1
        n_init = 1 if has_start else several if isinstance(self.n_init, str) else int(self.n_init)
        landmarks = None if self.approximation is None else int(self.n_landmarks)
        space = MeanSpace.of(self.kernel_, rows, landmarks, random, self.n_jobs)
        if space.map is not None:
            self.map_ = space.map
        if space.center is not None:
            self._center = space.center
        with ExitStack() as stack:
            data, norms = space.coordinates(rows, int(self.n_clusters), stack)
            return solve(
                Clustering(
                    gram if data is None else data,
                    rows.weight,
                    k,
                    space.start(self.init, int(self.n_clusters), X, rows),
                    n_init,
                    int(self.max_iter),
                    float(self.tol),
                    random,
                    norms,
                    convex,
                    bool(self.verbose),
                    self.n_jobs,
                )
            )

    def _take(self, solution: Solution[Partition, None], rows: DistinctRows, X: Any, weight: Vector) -> None:
        clusters = solution.value
        for name in ("_member", "_part", "_source", "_first", "_merged", "X_fit_", "cluster_centers_"):
            self.__dict__.pop(name, None)
        spare = int(self.n_clusters) - len(clusters.squares)
        # Clusters that no row is left for lie on the first one.
        column = np.concatenate([np.arange(len(clusters.squares)), np.zeros(spare, np.intp)])
        self._squares = clusters.squares[column]
        if clusters.centres is not None:
            centre = getattr(self, "_center", None)
            self.cluster_centers_ = clusters.centres[column] + (0.0 if centre is None else centre)
        elif self.kernel_ is not None:
            self.X_fit_, self._first, self._merged = X, rows.first.astype(np.intp), clusters.shares
        if self.approximation is None:
            self._member, self._part = np.full(X.shape[0], -1, np.int32), np.zeros(X.shape[0])
            self._member[rows.kept] = clusters.members[rows.owner]
            self._part[rows.kept] = clusters.shares[rows.owner] * (weight[rows.kept] / rows.weight[rows.owner])
            self._source = clusters.source[column]
        self._own = X.diagonal().astype(np.float64) if self.kernel_ is None else None
        self.inertia_ = clusters.inertia
        self.inertia_history_ = clusters.history
        self.n_iter_ = solution.certificate.iterations
        self.certificate_ = solution.certificate
        labels = np.full(X.shape[0], -1, np.int32)
        labels[rows.kept] = clusters.labels[rows.owner]
        if not rows.kept.all():
            labels[~rows.kept] = self.predict(X[~rows.kept])
        self.labels_ = labels

    def _report(self, distinct: int) -> None:
        """Warn if the result is degenerate or not converged."""
        write_result(self)
        used = len(np.unique(self.labels_))
        if used < self.n_clusters:
            warn_user(
                f"{used} clusters were found instead of n_clusters={self.n_clusters}, since there are {distinct} "
                "distinct rows, or some that are equal for this kernel; ask for fewer clusters.",
                ConvergenceWarning,
            )
        if self.certificate_.status.name == "iteration_limit":
            warn_user(
                f"rows still changed their clusters after max_iter={self.max_iter} iterations; raise max_iter, or pass "
                "a tol above 0.",
                ConvergenceWarning,
            )

    def predict(self, X: RowsLike) -> NDArray[np.int32]:
        """The cluster of the nearest mean for each row, (m,).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (m, n_samples).
        """
        X = self._new_rows(X)
        result: NDArray[np.int32] = (self._squares - 2 * self._inner(X)).argmin(axis=1).astype(np.int32)
        return result

    def transform(self, X: RowsLike, *, diagonal: ArrayLike | None = None) -> Array:
        """Distances in feature space of rows from the means, (m, n_clusters), in the precision of X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (m, n_samples).
        diagonal : array-like of shape (m,), optional
            For ``kernel="precomputed"``: ``k(x, x)`` of the new rows, which the matrix does not contain. It may be
            omitted if it is the same number for all training rows, which is then used for the new rows.
        """
        X = self._new_rows(X)
        return np.sqrt(self._squared(X, diagonal)).astype(X.dtype, copy=False)

    def score(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        diagonal: ArrayLike | None = None,
    ) -> float:
        """Minus the weighted sum of squared distances of rows from their nearest means.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            As for :meth:`transform`.
        y : ignored
        sample_weight : float or array-like of shape (m,), optional
            Weight of each row, as a number of repetitions.
        diagonal : array-like of shape (m,), optional
            As for :meth:`transform`.

        Returns
        -------
        float
        """
        X = self._new_rows(X)
        return -float(check_sample_weight(sample_weight, X) @ self._squared(X, diagonal).min(axis=1))

    def fit_predict(
        self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> NDArray[np.int32]:
        """Fit and return ``labels_``.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        ndarray of int of shape (n_samples,)
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def fit_transform(self, X: RowsLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Array:
        """Fit and return the distances of the rows from the means.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
        """
        self.fit(X, sample_weight=sample_weight)
        own = self._own
        return self.transform(X) if own is None else self.transform(X, diagonal=own)

    @property
    def dual_coef_(self) -> Vector:
        """Shares of the rows of X in the means, (n_samples, n_clusters).

        Raises
        ------
        AttributeError
            For ``approximation="nystroem"``, whose means are not made of rows.
        """
        check_is_fitted(self)
        if not hasattr(self, "_member"):
            raise AttributeError("the means are not sums of rows for approximation='nystroem'; see cluster_centers_.")
        return self._coefficients_of(self._member, self._part)

    @property
    def norm_(self) -> Vector:
        """Lengths of the means in feature space, (n_clusters,)."""
        check_is_fitted(self)
        centres = vars(self).get("cluster_centers_")
        return read_only(np.sqrt(self._squares) if centres is None else np.linalg.norm(centres, axis=1))

    @unless_stored
    def cluster_centers_(self) -> Vector:
        """The means in the features of ``feature_map_``, for kernels that have one."""
        check_is_fitted(self)
        return read_only(self._expansion.coefficients())

    @property
    def _expansion(self) -> KernelExpansion:
        if "cluster_centers_" in vars(self):
            raise AttributeError("the means are points, not sums of rows; see cluster_centers_.")
        if self.kernel_ is None:
            return KernelExpansion(None, np.empty((0, 0)), self.dual_coef_.T)
        # Equal rows are one row, with the sum of their shares.
        shares = self._coefficients_of(self._member[self._first], self._merged)
        return KernelExpansion(self.kernel_, self.X_fit_[self._first], shares.T, n_jobs=self.n_jobs)

    @property
    def _n_features_out(self) -> int:
        """Number of columns that ``transform`` returns."""
        return len(self._squares)

    @property
    def _space(self) -> MeanSpace:
        attributes = vars(self)
        return MeanSpace(self.kernel_, attributes.get("map_"), attributes.get("_center"), self.n_jobs)

    def _inner(self, X: CheckedRows) -> Vector:
        """Inner products of rows and means."""
        if "cluster_centers_" in vars(self):
            return self._space.inner(X, self.cluster_centers_)
        return self._expansion.values(X, np.float64)

    def _coefficients_of(self, member: NDArray[np.integer], share: Vector) -> Vector:
        """Shares of rows in the means, (m, k), from the cluster that each row is a part of and its share there."""
        return np.where(member[:, None] == self._source, share[:, None], 0.0)

    def _squared(self, X: CheckedRows, diagonal: ArrayLike | None) -> Vector:
        """Squared distances from the means; what is within rounding of 0 is 0."""
        if self.kernel_ is None:
            assert self._own is not None
            way_out = "compute the nearest means without distances (predict)"
            own = diagonal_of_new(diagonal, self._own, X.shape[0], X.dtype, way_out)
        elif diagonal is None:
            own = self._space.diagonal(X)
        else:
            raise ParameterError("diagonal applies only to kernel='precomputed'; leave it out.")
        result: Vector = np.maximum(own[:, None] - 2 * self._inner(X) + self._squares, 0.0)
        return result

    def _check_parameters(self) -> None:
        def whole(value: float) -> bool:
            return value >= 1 and value == int(value)

        for name in ("n_clusters", "max_iter", "n_landmarks"):
            require_number(self, name, "a whole number of at least 1", lambda v: np.isfinite(v) and whole(v))
        if not (isinstance(self.n_init, str) and self.n_init == "auto"):
            require_number(
                self, "n_init", "'auto' or a whole number of at least 1", lambda v: np.isfinite(v) and whole(v)
            )
        require_number(self, "tol", "a finite number of 0 or more", lambda v: 0 <= v < np.inf)
        require_choice(self, "approximation", (None, "nystroem"))
        require_seed(self)
        if self.approximation is not None and self._is_precomputed:
            raise ParameterError(
                "approximation='nystroem' needs rows, and kernel='precomputed' has none; pass rows and a kernel."
            )
