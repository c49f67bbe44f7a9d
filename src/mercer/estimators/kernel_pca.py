"""Principal components in the feature space of a kernel."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted

from mercer._errors import DataError, MercerWarning, ParameterError, warn_user
from mercer._types import Array, CheckedRows, Matrix, RowsLike, Vector
from mercer.data.blocks.blocks import Blocks
from mercer.data.blocks.dask_source import is_dask
from mercer.data.columns import MixedRows
from mercer.data.fitted import Fitted
from mercer.data.objects import Objects
from mercer.data.sklearn_errors import advised
from mercer.data.statements import Either, Floats, Is, Maybe, Number, Whole, Word
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.definiteness import SPECTRUM, is_usable, judge_finding
from mercer.estimators.shared.degenerate import warn_if_degenerate
from mercer.estimators.shared.expansion import KernelExpansion, feature_map_of
from mercer.estimators.shared.in_parts import in_parts, row_source
from mercer.estimators.shared.layout import read_only
from mercer.estimators.shared.on_blocks import RowSource
from mercer.estimators.shared.parameters import require_choice, require_flags, require_number, require_seed
from mercer.estimators.shared.restricted import Beside, require_approximation
from mercer.estimators.shared.restricted_risk import forget, of_all_rows, one_form
from mercer.estimators.shared.statements import FitRows
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.gram import Gram
from mercer.gram.precomputed import symmetric_once_centred
from mercer.kernels import Kernel, as_kernel
from mercer.kernels.convert import KernelLike, rate_of_scale
from mercer.solvers.curvature import require_kernel
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.restricted.components import components
from mercer.solvers.solution import Certificate
from mercer.solvers.spectral.eigenpairs import SOLVERS, Eigenpairs, Eigenproblem, EigenState, solve

# Eigenvalues with fewer than five digits are a reason for a warning.
_ROUNDED = 1e-5
_RESTRICTED = "covariance over landmarks"
# What only a fit to all rows has.
_OF_ALL_ROWS = ("eigenvectors_", "_row_means")


def _has_both_halves(model: KernelEstimator) -> bool:
    return hasattr(model, "dual_coef_") == hasattr(model, "X_transformed_fit_")


def _has_whole_expansion(model: KernelEstimator) -> bool:
    names = ("landmark_coef_", "landmark_offsets_")
    if not hasattr(model, "landmark_indices_"):
        return not any(hasattr(model, name) for name in names)
    return all(hasattr(model, name) for name in names) and not hasattr(model, "dual_coef_")


def _signs(columns: Array) -> Vector:
    """The signs of the largest entries, by which eigenvectors are turned, as in scikit-learn; column by column."""
    return np.array([np.copysign(1.0, column[np.abs(column).argmax()]) for column in columns.T])


def _no_targets(y: Any) -> tuple[Matrix, Vector]:
    return np.zeros((len(y), 0)), np.ones(len(y))


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    r"""The directions of largest variance in the feature space of a kernel, and the coordinates of rows on them.

    With :math:`H = I - \tfrac1n 1 1^\top` and :math:`HKH v_j = \lambda_j v_j`, the j-th direction is
    :math:`\lambda_j^{-1/2} \sum_i v_{ij} (\phi(x_i) - \bar\phi)`, and the coordinate of x on it

    .. math:: t_j(x) = \lambda_j^{-1/2} \sum_i v_{ij} \langle \phi(x_i) - \bar\phi,\, \phi(x) - \bar\phi \rangle

    Parameters
    ----------
    n_components : int, optional
        From 1 to the number of rows; None for all components whose eigenvalue is above 0.
    kernel : str, Kernel, scikit-learn kernel or callable, default="linear"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ``"cosine"``, ...), a kernel, a function
        ``(X, Z) -> block``, or ``"precomputed"``. It may be indefinite.
    gamma : float or {"scale", "auto"}, optional
        For named kernels; None is ``1 / n_features``.
    degree : float, default=3
        Degree of ``"poly"``.
    coef0 : float, default=1
        Constant term of ``"poly"`` and ``"sigmoid"``.
    kernel_params : dict, optional
        Keyword arguments for a kernel that is a function.
    alpha : float, default=1.0
        Weight of the squared norm against the sum of squared errors in the ridge regression of the inverse transform.
    fit_inverse_transform : bool, default=False
        Whether to learn the inverse transform: the regression of the rows on their coordinates, with the same kernel.
    eigen_solver : {"auto", "dense", "arpack", "randomized"}, default="auto"
        ``"auto"`` is LAPACK up to 400 rows or for many components, and block Lanczos above: on the stored matrix if it
        fits the memory budget, else on kernel values that are recomputed for each product.
    tol : float, default=0
        Residual of an eigenpair in units of the largest eigenvalue, for ``"auto"`` and ``"arpack"``; 0 for the best.
    max_iter : int, optional
        Maximum number of products with a block for ``"auto"``, of restarts for ``"arpack"``.
    iterated_power : int or "auto", default="auto"
        Powers for ``"randomized"``.
    remove_zero_eig : bool, default=False
        Whether to leave out components with the eigenvalue 0.
    random_state : int, RandomState or None, default=None
        Seed of the starting vectors, for all solvers except LAPACK, and of the choice of landmarks.
    copy_X : bool, default=True
        Whether ``X_fit_`` is a copy of the rows.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel whose centred matrix has negative eigenvalues: ``"warn"`` uses its positive part and warns, True
        does so silently, and False raises an error.
    n_jobs : int, optional
        Threads that evaluate the kernel; None for all. The result is bitwise the same for any number, except for
        dense decompositions of more than 1024 rows or landmarks: LAPACK computes these on its own threads.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` restricts the directions to the span of few rows, the landmarks, and finds them from the
        covariance of the features of the Nystroem approximation. Time is then linear in the number of rows, and no
        matrix of rows and landmarks is kept. It needs a positive kernel.
    n_landmarks : int, default=1000
        With an approximation: the number of landmarks, all rows if there are fewer.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves.

    Attributes
    ----------
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of the centred matrix, descending, in float64; negative values and rounding errors are set to 0.
    eigenvectors_ : ndarray of shape (n_samples, n_components)
        Unit vectors, in float64; the largest entry of each is positive. Not with an approximation, where the largest
        coordinate of a landmark is positive.
    landmark_coef_ : ndarray of shape (n_landmarks, n_components)
        With an approximation: the coefficients of the landmarks in the coordinates of a row.
    landmark_offsets_ : ndarray of shape (n_components,)
        With an approximation: what centring adds to these coordinates.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them,
        or the rows came in parts.
    negative_eigenvalues_ : ndarray
        Negative eigenvalues beyond rounding, ascending: all of them if all components are computed, otherwise those
        that the solver found at the lower end. Nonempty only for indefinite kernels.
    components_ : ndarray of shape (n_components, p)
        Unit vectors of the components in the p features of ``feature_map_``, for kernels with a finite feature map;
        zeros for components without variance. ``transform(X)`` is ``(feature_map_.transform(X) - mean_) @
        components_.T``.
    mean_ : ndarray of shape (p,)
        The mean of the training rows in these features; not with an approximation.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map, which names the features (``get_feature_names_out``).
    dual_coef_ : ndarray of shape (n_samples, n_features)
        Coefficients of the inverse transform, if it was learned.
    X_transformed_fit_ : ndarray of shape (n_samples, n_components)
        Coordinates of the training rows, if the inverse transform was learned.
    X_fit_ : ndarray or csr_matrix of shape (n_samples, n_features)
        The training rows; for ``"precomputed"``, the matrix; with an approximation, the landmarks.
    gamma_ : float
        The gamma of a named kernel.
    kernel_ : Kernel or None
        The kernel; None for ``"precomputed"``.
    solver_ : str
        ``"dense"``, ``"block Lanczos"``, ``"arpack"`` or ``"randomized"``; with an approximation, ``"covariance over
        landmarks"``.
    certificate_ : Certificate
        The remaining variance (times n), residuals and orthogonality of the eigenpairs, time and memory.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    Raises
    ------
    DataError, ParameterError, MemoryBudgetError
        From ``fit``: rows that cannot be used, fewer than two of them, an invalid parameter, more components
        than rows, a problem that exceeds the memory budget.

    Warns
    -----
    IndefiniteKernelWarning
        If the centred matrix has negative eigenvalues, and ``allow_indefinite="warn"``.
    MercerWarning
        If the centred matrix is zero because all rows are equal, or if rounding hides how they differ.
    ConvergenceWarning
        If ``max_iter`` ended the fit before ``tol`` was met.

    Notes
    -----
    Names, defaults and meanings are those of ``sklearn.decomposition.KernelPCA``, except that a function is called for
    two blocks of rows if it can be, and that asking for more components than rows raises an error. An indefinite kernel
    has no feature space with an inner product; scikit-learn raises an error if it detects this; here its positive part
    is used, with a warning that reports the size of the negative part (``allow_indefinite``). Eigenpairs are computed
    in float64 even for float32 rows.

    References
    ----------
    B. Schölkopf, A. Smola and K.-R. Müller (1998), "Nonlinear component analysis as a kernel eigenvalue problem",
    Neural Computation 10, equations (2.10) to (2.16) and appendix A. G. Bakir, J. Weston and B. Schölkopf (2003),
    "Learning to find pre-images", equation (5), for the inverse transform.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelPCA
    >>> angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    >>> circle = np.column_stack([np.cos(angles), np.sin(angles)])
    >>> rings = np.vstack([circle, 3 * circle])
    >>> first = KernelPCA(2, kernel="rbf", gamma=0.2).fit_transform(rings)[:, 0]
    >>> bool(first[:40].min() > first[40:].max() or first[:40].max() < first[40:].min())
    True
    >>> KernelPCA(1).fit([[1.0], [2.0], [6.0]]).eigenvalues_.round(6).tolist()
    [14.0]
    """

    _beside_landmarks = (
        Beside(
            "fit_inverse_transform",
            False,
            'KernelRidge(kernel="rbf", approximation="nystroem") learns rows from the coordinates of transform.',
        ),
    )
    _if_indefinite = SPECTRUM
    _fitted = Fitted(
        {
            "X_fit_": FitRows("n"),
            "gamma_": Either(Maybe(Number()), Word(("scale", "auto"))),
            "eigenvalues_": Floats("m", least=0),
            "negative_eigenvalues_": Floats("negative", most=0),
            "solver_": Word(),
            "certificate_": Is(Certificate),
        },
        {
            "eigenvectors_": Floats("n, m"),
            "_row_means": Floats("n"),
            "dual_coef_": Floats("n, d"),
            "X_transformed_fit_": Floats("n, m"),
            "landmark_coef_": Floats("n, m"),
            "landmark_offsets_": Floats("m"),
            "landmark_indices_": Maybe(Whole("n", distinct=True)),
        },
        rules=(
            one_form(*_OF_ALL_ROWS),
            ("half of the inverse transform is missing", _has_both_halves),
            ("an expansion over landmarks is not whole", _has_whole_expansion),
        ),
    )

    eigenvectors_ = of_all_rows("eigenvectors_", "The coordinates of rows are those of transform.")

    feature_map_ = property(feature_map_of)

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: KernelLike = "linear",
        gamma: float | str | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        alpha: float = 1.0,
        fit_inverse_transform: bool = False,
        eigen_solver: str = "auto",
        tol: float = 0,
        max_iter: int | None = None,
        iterated_power: int | str = "auto",
        remove_zero_eig: bool = False,
        random_state: int | np.random.RandomState | None = None,
        copy_X: bool = True,
        allow_indefinite: bool | str = "warn",
        n_jobs: int | None = None,
        approximation: str | None = None,
        n_landmarks: int = 1000,
        landmarks: Any = "rpcholesky",
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform
        self.eigen_solver = eigen_solver
        self.tol = tol
        self.max_iter = max_iter
        self.iterated_power = iterated_power
        self.remove_zero_eig = remove_zero_eig
        self.random_state = random_state
        self.copy_X = copy_X
        self.allow_indefinite = allow_indefinite
        self.n_jobs = n_jobs
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @takes_parts
    def fit(self, X: Any, y: ArrayLike | None = None) -> Self:
        """Find the components of the rows ``X``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix of shape (n_samples, n_samples), which must be symmetric
            once it is centred. Blocks, of which targets are ignored, are read twice: for a sample of the rows, from
            which landmarks come, and for the covariance. Partitions of Dask are read as blocks, on this machine. Both
            need an approximation.
        y : ignored
        """
        self._check_parameters()
        source = row_source(self, Blocks.from_dask(X) if is_dask(X) else X, None, None)
        if source is not None:
            return self._fit_on_landmarks(source)
        checked: Any = self._check_X(X, reset=True)
        copied = bool(self.copy_X) and checked is X
        X = checked.copy() if copied else checked
        self._check_rows(X)
        original = X
        if self._is_precomputed:
            X = symmetric_once_centred(X)
        self.gamma_ = self._rate(X)
        side = self._fit_kernel(X, intercept=True, gamma=self.gamma_)
        gram = self._gram(side, dtype=None if self.kernel_ is None else np.float64)
        positive = self.kernel_ is not None and not self._is_taken_on_trust() and is_usable(self.kernel_, True)
        if self.kernel_ is not None and self._is_taken_on_trust():
            # Of its symmetry; the spectrum tells the rest.
            name, positions = repr(self.kernel_), np.arange(gram.shape[0])
            require_kernel(gram, positions, X.dtype, balanced=True, curved=True, name=name)
        with naming_what_fits(self, gram.shape[0]):
            solution = solve(
                Eigenproblem(
                    gram,
                    self.n_components,
                    self.eigen_solver,
                    float(self.tol),
                    self.max_iter,
                    None if isinstance(self.iterated_power, str) else self.iterated_power,
                    check_random_state(self.random_state),
                    positive,
                )
            )
        self._judge(solution.value)
        if self.kernel_ is not None and self._is_taken_on_trust():
            warn_if_degenerate(self, self.kernel_, gram, gram.block)
        self._take(solution.value, solution.state)
        if X is not original:
            self._row_means = original.mean(axis=0)
        self.X_fit_ = original
        self.certificate_ = solution.certificate
        self._report()
        if self.fit_inverse_transform:
            self._learn_inverse(X)
        return self

    def _fit_on_landmarks(self, source: RowSource) -> Self:
        """Find the components over landmarks."""
        X, _, weights = source.training()
        if weights is not None:
            raise DataError("KernelPCA has no sample weights, and the blocks have some; pass blocks without them.")
        X = self._check_X(X, reset=True)
        self._check_rows(X)
        self.gamma_ = self._rate(X)
        self._fit_kernel(X, intercept=False, gamma=self.gamma_)
        source = source.checked(X, None, np.ones(X.shape[0]))
        parts = source.restriction(self)
        wanted = parts.landmarks.rows.shape[0] if self.n_components is None else int(self.n_components)
        with source.rows(self, parts, _no_targets, []) as passes:
            solution = components(passes, parts.white, wanted)
        result, rows = solution.value, parts.landmarks.rows
        wanted = len(result.values)
        at_landmarks = Gram(self.kernel_, rows, dtype=np.float64, n_jobs=self.n_jobs) @ result.coefficients
        at_landmarks += result.offsets
        signs = _signs(at_landmarks)
        only_large = self.remove_zero_eig or self.n_components is None
        kept = np.flatnonzero(result.values > 0) if only_large else np.arange(wanted)
        forget(self, *_OF_ALL_ROWS, "dual_coef_", "X_transformed_fit_")
        self.eigenvalues_, self.negative_eigenvalues_ = result.values[kept], np.empty(0)
        self.landmark_coef_ = np.ascontiguousarray((result.coefficients * signs)[:, kept])
        self.landmark_offsets_ = (result.offsets * signs)[kept]
        self.X_fit_, self.landmark_indices_ = rows, parts.landmarks.indices
        self.solver_, self.certificate_ = _RESTRICTED, solution.certificate
        self._report()
        return self

    @in_parts
    def transform(self, X: RowsLike) -> Array:
        """Coordinates of the rows of ``X`` on the components, shape (m, n_components).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, n_features)
            For ``kernel="precomputed"``, kernel values of new and training rows, shape (m, n_samples).
        """
        X = self._new_rows(X)
        result = self._expansion.values(X, np.float64)
        return result.astype(X.dtype, copy=False)

    @takes_parts
    def fit_transform(self, X: Any, y: ArrayLike | None = None) -> Array:
        """Fit and return the coordinates of the rows, without evaluating the kernel again.

        Parameters
        ----------
        X, y
            As for :meth:`fit`.

        Returns
        -------
        ndarray of shape (n, n_components)
        """
        if self.is_on_landmarks:
            return self.fit(X).transform(X)
        return self.fit(X)._coordinates().astype(self.X_fit_.dtype, copy=False)

    def inverse_transform(self, X: RowsLike) -> Array:
        """Rows whose coordinates are about those given, shape (m, n_features), by kernel ridge regression.

        The mean of the features is not part of the centred coordinates; with the linear kernel the rows come back
        without their mean, as in scikit-learn.

        Parameters
        ----------
        X : array-like of shape (m, n_components)

        Raises
        ------
        NotFittedError
            If ``fit_inverse_transform`` was not set for the fit.
        """
        check_is_fitted(self)
        if not hasattr(self, "dual_coef_"):
            raise NotFittedError("there is no inverse transform; pass fit_inverse_transform=True and fit again.")
        with advised():
            X = check_array(X, dtype=[np.float64, np.float32], order="C")
        if X.shape[1] != len(self.eigenvalues_):
            raise DataError(f"X has {X.shape[1]} columns, but there are {len(self.eigenvalues_)} components.")
        gram = Gram(self.kernel_, X, self.X_transformed_fit_, dtype=np.float64, n_jobs=self.n_jobs)
        return (gram @ self.dual_coef_).astype(X.dtype, copy=False)

    @property
    def components_(self) -> Array:
        """The components in feature space, (n_components, p), for kernels with a finite feature map; read-only.

        Unit vectors, or zeros for a component without variance. The p columns belong to the features of
        ``feature_map_``: the columns of X for the linear kernel. ``transform(X)`` is
        ``(phi(X) - mean_) @ components_.T``.

        Raises
        ------
        AttributeError
            If the kernel has no finite feature map, or one of more than 100,000 features.
        """
        return read_only(self._expansion.coefficients())

    @property
    def mean_(self) -> Array:
        """The mean of the training rows in feature space, (p,), as ``components_``; read-only."""
        check_is_fitted(self)
        if "landmark_indices_" in vars(self):
            raise AttributeError(
                'mean_ needs the training rows, and a fit with approximation="nystroem" keeps its landmarks alone. It '
                "is the mean of feature_map_.transform of the training rows."
            )
        product, n = self._expansion.feature_product(self.feature_map_), self.X_fit_.shape[0]
        return read_only(product(slice(None), np.full((n, 1), 1.0 / n))[:, 0])

    @property
    def _expansion(self) -> KernelExpansion:
        check_is_fitted(self)
        if "landmark_indices_" in vars(self):
            return KernelExpansion(
                self.kernel_, self.X_fit_, self.landmark_coef_.T, self.landmark_offsets_, n_jobs=self.n_jobs
            )
        weights = self._weights()
        # The offsets are what centring the rows leaves.
        return KernelExpansion(self.kernel_, self.X_fit_, weights.T, -(self._row_means @ weights), n_jobs=self.n_jobs)

    def _weights(self) -> Matrix:
        """Coefficients of the rows in the components, (n, n_components)."""
        roots = np.sqrt(self.eigenvalues_)
        weights = np.divide(self.eigenvectors_, roots, out=np.zeros_like(self.eigenvectors_), where=roots > 0)
        # Weights that sum to 0 centre the new rows by themselves; what is left is a constant for each component.
        return np.asarray(weights - weights.mean(axis=0))

    @property
    def _n_features_out(self) -> int:
        """Number of columns that ``transform`` returns."""
        return len(self.eigenvalues_)

    def _make_kernel(self, X: CheckedRows, gamma: Any) -> Kernel:
        if self.kernel_params and callable(self.kernel) and not isinstance(self.kernel, Kernel):
            return as_kernel(partial(self.kernel, **self.kernel_params), X=X)
        return super()._make_kernel(X, gamma)

    def _rate(self, X: CheckedRows) -> Any:
        """Gamma as a number, where a word or nothing stands for it."""
        if isinstance(X, (Objects, MixedRows)):
            # These have no columns that a width could be measured by.
            return self.gamma
        if self.gamma is None or (isinstance(self.gamma, str) and self.gamma == "auto"):
            return 1.0 / X.shape[1]
        return rate_of_scale(X) if isinstance(self.gamma, str) and self.gamma == "scale" else self.gamma

    def _check_parameters(self) -> None:
        def whole(value: float, least: int) -> bool:
            return value >= least and value == int(value)

        for name, least in (("n_components", 1), ("max_iter", 1)):
            if getattr(self, name) is not None:
                require_number(self, name, f"None or a whole number of at least {least}", lambda v: whole(v, 1))
        if not (isinstance(self.iterated_power, str) and self.iterated_power == "auto"):
            require_number(self, "iterated_power", "'auto' or a whole number of at least 0", lambda v: whole(v, 0))
        require_number(self, "tol", "a finite number of 0 or more", lambda v: 0 <= v < np.inf)
        require_number(self, "alpha", "a finite number of 0 or more", lambda v: 0 <= v < np.inf)
        require_choice(self, "eigen_solver", SOLVERS)
        require_flags(self, "fit_inverse_transform", "remove_zero_eig", "copy_X")
        require_seed(self)
        require_approximation(self)
        if self.fit_inverse_transform and self._is_precomputed:
            raise ParameterError(
                "fit_inverse_transform=True needs rows, and kernel='precomputed' has none; pass rows and a kernel."
            )

    def _check_rows(self, X: CheckedRows) -> None:
        n = X.shape[0]
        if n < 2:
            raise DataError("there is 1 sample, which has no variance; at least 2 rows are needed.")
        if self.n_components is not None and self.n_components > n:
            raise ParameterError(
                f"n_components={self.n_components} exceeds the {n} rows, which span at most {n - 1} directions; pass "
                f"at most {n - 1}, or None for all."
            )
        if self.fit_inverse_transform and not isinstance(X, np.ndarray):
            what = "holds objects" if isinstance(X, (Objects, MixedRows)) else "is sparse; pass X.toarray()"
            raise DataError(f"fit_inverse_transform=True needs dense rows, and X {what}.")

    def _take(self, pairs: Eigenpairs, state: EigenState) -> None:
        """Keep the eigenpairs, with scikit-learn's choice of the signs."""
        only_large = self.remove_zero_eig or self.n_components is None
        # The values descend.
        count = int((pairs.values > 0).sum()) if only_large else len(pairs.values)
        self.eigenvalues_, vectors = pairs.values[:count].copy(), pairs.vectors[:, :count]
        # One copy, because the vectors may be as large as K.
        self.eigenvectors_ = np.multiply(vectors, _signs(vectors), out=np.empty(vectors.shape))
        self.negative_eigenvalues_ = pairs.negative
        self.solver_ = state.method
        self._row_means = state.centring.row_means
        for name in ("landmark_coef_", "landmark_offsets_", "landmark_indices_", "dual_coef_", "X_transformed_fit_"):
            if hasattr(self, name):
                delattr(self, name)

    def _judge(self, pairs: Eigenpairs) -> None:
        """Warn or raise, as ``allow_indefinite`` says, if there are negative eigenvalues."""
        if len(pairs.negative):
            lowest, largest = pairs.negative[0], pairs.values.max(initial=0.0)
            judge_finding(
                self,
                f"the centred kernel matrix has negative eigenvalues, down to {lowest:.4g} (the largest is "
                f"{largest:.4g}; see negative_eigenvalues_): the kernel is indefinite",
            )

    def _coordinates(self) -> Array:
        """Of the training rows, in float64."""
        return self.eigenvectors_ * np.sqrt(self.eigenvalues_)

    def _report(self) -> None:
        """Warn if the result is degenerate or not converged."""
        if not len(self.negative_eigenvalues_) and not self.eigenvalues_.any():
            warn_user(
                "all rows are equal for this kernel, so no direction has any variance; check the columns of X and the "
                "kernel's parameters.",
                MercerWarning,
            )
        rounding = self.certificate_.violations["rounding"]
        if self.eigenvalues_.any() and rounding > _ROUNDED:
            warn_user(
                f"the rows differ little beside the size of their kernel values: rounding may change eigenvalues by "
                f"{rounding:.1e} of the largest. Subtract the means of the columns of X first "
                "(sklearn.preprocessing.StandardScaler).",
                MercerWarning,
            )
        if self.certificate_.status.name == "iteration_limit":
            warn_user(
                f"the eigenpairs have a residual of {self.certificate_.violations['eigenpair']:.2g} after max_iter="
                f"{self.max_iter} products; raise max_iter or tol, or pass eigen_solver='dense'.",
                ConvergenceWarning,
            )

    def _learn_inverse(self, X: Array) -> None:
        """The ridge regression of the rows on their coordinates."""
        coordinates = self._coordinates()
        if not coordinates.shape[1]:
            raise DataError("there is no component to learn an inverse transform from: all rows are equal.")
        assert self.kernel_ is not None
        gram = Gram(self.kernel_, coordinates, dtype=np.float64, n_jobs=self.n_jobs)
        shifts = np.full(X.shape[1], float(self.alpha))
        convex = self.kernel_.definiteness == "positive"
        system = LinearSystem(gram, np.asarray(X, dtype=np.float64), shifts, None, convex)
        self.dual_coef_ = cholesky.solve(system, n_jobs=self.n_jobs).value
        self.X_transformed_fit_ = coordinates
