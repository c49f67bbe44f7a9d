"""Support vector regression with a tube of given width."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from mercer._errors import MercerWarning, warn_user
from mercer._registered import CommandLine
from mercer._types import RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Maybe, Whole
from mercer.estimators.shared.baseline import words_on_constant
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.estimators.shared.in_parts import in_parts, row_source
from mercer.estimators.shared.landmark_numbers import fit_along_numbers, is_left_open
from mercer.estimators.shared.on_blocks import RowSource
from mercer.estimators.shared.parameters import require_flags, require_number
from mercer.estimators.shared.restricted import require_approximation
from mercer.estimators.shared.restricted_risk import (
    Task,
    keep_landmarks,
    of_all_rows,
    one_form,
    refuse_certificate,
    solve_on_landmarks,
)
from mercer.estimators.shared.statements import SupportRows
from mercer.estimators.shared.targets import warn_of_constant
from mercer.estimators.shared.weights import check_svm_weight, fit_weighted_kernel
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.estimators.svm.chosen_by_folds import CHOICE, FoldChoice
from mercer.estimators.svm.single_expansion import (
    OF_ALL_ROWS,
    TUBE,
    SingleExpansion,
    check_cost,
    describe_tube,
    warn_if_tol_is_coarse,
)
from mercer.estimators.svm.solvers import BESIDE_LANDMARKS, check_solver
from mercer.gram.protocol import GramMatrix
from mercer.kernels.convert import KernelLike
from mercer.losses import EpsilonInsensitive
from mercer.solvers.solution import Certificate
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.solver import BoxSolver


class SVR(RegressorMixin, SingleExpansion):
    r"""Support vector regression with any kernel: errors up to epsilon are free; each solution has a certificate.

    It solves

    .. math:: \min_{w, b, \xi^\pm \ge 0} \tfrac12 \|w\|^2 + \sum_i C_i (\xi^+_i + \xi^-_i) \quad\text{s.t.}\quad
              -\varepsilon - \xi^-_i \le y_i - \langle w, \phi(x_i) \rangle - b \le \varepsilon + \xi^+_i,
              \qquad C_i = C \cdot \text{sample\_weight}_i

    through its dual, in which only the kernel appears:

    .. math:: \min_\beta \tfrac12 \beta^\top K \beta - y^\top \beta + \varepsilon \sum_i |\beta_i|
              \quad\text{s.t.}\quad |\beta_i| \le C_i,\; \sum_i \beta_i = 0,
              \qquad f(x) = \sum_i \beta_i k(x_i, x) + b

    A weight counts repetitions exactly: a row of weight 3 gives the same function as the row three times, and a row of
    weight 0 has no effect.

    Parameters
    ----------
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto", "cv"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    tol : float, default=1e-3
        The violation of the optimality conditions, in units of y, at which the solver stops;
        with ``stop="gap"`` also the relative duality gap. Up to 512 rows are solved to the precision of float64 for
        any ``tol``, if 200 steps per row suffice. With an approximation: the largest gap of the objective over the
        landmarks, as a share of it.
    C : float or "cv", default=1.0
        Weight of the sum of the errors beyond epsilon against half the squared norm, above 0. ``"cv"`` chooses it by
        :class:`~mercer.KernelSearchCV` with five folds, within its time budget of a minute; likewise ``epsilon`` and
        ``gamma``.
    epsilon : float or "cv", default=0.1
        Half the width of the tube, in units of y, 0 or more.
    shrinking : bool, default=True
        Accepted for compatibility; the solver chooses its working sets by itself.
    cache_size : float, default=200
        Memory for stored kernel rows, in MB (of 2^20 bytes). More is used if most rows turn out to be support vectors
        and the whole kernel matrix fits the memory budget.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    max_iter : int, default=-1
        Maximum number of steps; -1 for no limit. With an approximation, of passes over the rows; -1 for 1000.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a stationary point, marked as such in
        ``certificate_``, and warns; True does so silently; False raises an error. A precomputed matrix or a function
        is checked for this; if this is True, it counts as indefinite.
    warm_start : bool, default=False
        Start from the weights of the last fit if it had as many rows, row by row: they are clipped to the new bounds
        and scaled to the sums that the problem requires. Parameters, targets and rows may have changed.
        The solution is the same within ``tol``; it takes fewer steps if the problems are similar.
    stop : {"kkt", "gap"}, default="kkt"
        Whether ``tol`` bounds the violation of the optimality conditions alone, or the relative duality gap as well.
    fit_intercept : bool, default=True
        Whether there is an offset b. Without it the sum of the weights is free, f lies in the space of the kernel,
        and the kernel must be positive semi-definite, not only conditionally.
    solver : {"smo", "projected-gradient", "accelerated-projected-gradient"} or BoxSolver, default="smo"
        The projected gradients are for teaching: they reach the same solution, far more slowly. A value such as
        ``mercer.solvers.SMO(tol=1e-6)`` has its own ``tol``, ``stop``, ``max_iter``, ``cache_bytes``, ``n_jobs`` and
        ``verbose``, which replace those of this estimator.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` restricts f to the span of few rows, the landmarks: :math:`f(x) = \sum_j \beta_j k(x, z_j) + b`.
        Time is then linear in the number of rows, and no matrix of rows and landmarks is kept. It needs a positive
        kernel.
    n_landmarks : int or "auto", default=1000
        With an approximation: the number of landmarks, all rows if there are fewer. ``"auto"`` doubles it from 100 on,
        until the loss of a fifth of the rows (5000 at most), which are held out, no longer falls by more than the
        standard error of the difference and 0.1 %, or memory ends; then it fits to all rows.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves.
    random_state : int, RandomState or None, default=None
        Seed of the choice of landmarks.

    Attributes
    ----------
    C_, gamma_, epsilon_ : float
        The values that ``"cv"`` has chosen.
    search_ : FoldSearch
        With ``"cv"``, the candidates with their scores and bounds (``search_.table``), and whether the best is certain.
    support_ : ndarray of shape (n_sv,)
        Positions of the support vectors; not with an approximation.
    support_vectors_ : array or CSR of shape (n_sv, d)
        Their rows; empty for ``"precomputed"``; with an approximation, the landmarks.
    n_support_ : ndarray of shape (1,)
        Their number; not with an approximation.
    landmark_path_ : LandmarkPath
        With ``n_landmarks="auto"``: the numbers that were tried, with the held-out losses; printed as a table.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them,
        or the rows came in parts.
    dual_coef_ : array or CSR of shape (1, n_sv)
        The weights of the expansion, :math:`\beta_i = \alpha_i - \alpha_i^*`; with an approximation, an array of the
        coefficients of the landmarks.
    intercept_ : ndarray of shape (1,)
        b; 0 without ``fit_intercept``.
    coef_ : array or CSR of shape (1, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these. CSR after a fit to CSR, as the two above.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,)
        :math:`\|w\|` in the feature space of any kernel.
    slacks_above_, slacks_below_ : ndarray of shape (n,)
        :math:`\xi^+` and :math:`\xi^-`: how far each training target lies above and below the tube, in units of y;
        not with an approximation.
    roles_ : ndarray of str of shape (n,)
        ``"inside"`` the tube (weight zero), ``"on"`` its edge, or ``"outside"`` (weight at its bound, with positive
        slack). A row of sample weight 0 is outside if its target is, else inside. Not with an approximation.
    certificate_ : Certificate
        Primal and dual objective, worst violation, steps, time and memory. With an approximation the problem is that
        over the landmarks, the violation is the length of the gradient, and steps are passes over the rows.
    n_iter_ : int
        Steps.
    fit_status_ : int
        0 if the tolerance was met, else 1.
    shape_fit_ : tuple
        Shape of X.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"``).

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: targets or weights that cannot be used, an invalid parameter, a kernel that is not
        positive semi-definite, a problem that exceeds the memory budget.

    Warns
    -----
    MercerWarning
        If all targets are equal, or lie within one tube: the prediction is then the same for every row. If they differ
        by less than ``tol``, which ended the fit too early.
    ConvergenceWarning
        If ``max_iter`` or rounding ended the fit before ``tol`` was met.

    Notes
    -----
    Sources: Vapnik (1995), "The nature of statistical learning theory", chapter 6; Smola and Schoelkopf (2004),
    "A tutorial on support vector regression", equations (3) and (10).

    Examples
    --------
    >>> from mercer import SVR
    >>> X, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.2, 1.9, 9.0, 4.0]
    >>> model = SVR(kernel="linear", C=10.0, epsilon=0.5).fit(X, y)
    >>> model.predict([[1.0], [4.0]]).round(6).tolist()
    [1.35, 4.5]
    >>> model.roles_.tolist(), float(model.slacks_above_[3].round(6))
    (['inside', 'inside', 'on', 'outside', 'on'], 5.05)
    """

    _command_line = CommandLine("svr", left_open="C")
    _choice = FoldChoice(("C", "gamma", "epsilon"))
    may_leave_landmarks_open = True
    _beside_landmarks = BESIDE_LANDMARKS
    _fitted = Fitted(
        {"support_vectors_": SupportRows("s")},
        {
            "support_": Whole("s", below="n"),
            "n_support_": Whole("1", total="s"),
            "landmark_indices_": Maybe(Whole("s", below="n", distinct=True)),
            **TUBE.always,
            **CHOICE.sometimes,
        },
        rules=(one_form(*OF_ALL_ROWS, *TUBE.always),),
    )
    slacks_above_ = of_all_rows("slacks_above_", "They are the differences of targets and predictions, less epsilon.")
    slacks_below_ = of_all_rows("slacks_below_", "They are the differences of predictions and targets, less epsilon.")
    roles_ = of_all_rows("roles_", "Compare predictions with targets.")

    def __init__(
        self,
        *,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        C: float | str = 1.0,
        epsilon: float | str = 0.1,
        shrinking: bool = True,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
        warm_start: bool = False,
        stop: str = "kkt",
        fit_intercept: bool = True,
        solver: str | BoxSolver = "smo",
        approximation: str | None = None,
        n_landmarks: int | str = 1000,
        landmarks: Any = "rpcholesky",
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.C = C
        self.epsilon = epsilon
        self.shrinking = shrinking
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite
        self.warm_start = warm_start
        self.stop = stop
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state

    @takes_parts
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix, (n, n). Blocks, which have targets and weights of their
            own, are read once for each pass of the solver. Blocks and Dask need an approximation.
        y : array-like of shape (n,)
            Targets.
        sample_weight : float or array-like of shape (n,), optional
            Factors of C for each row. Rows of weight 0 or below are left out, negative ones with a warning.

        Returns
        -------
        self
        """
        if is_left_open(self):
            return fit_along_numbers(self, X, y, sample_weight)
        if require_approximation(self):
            self._choice.refuse_on_landmarks(self)
        source = row_source(self, X, y, sample_weight)
        if self._choice.left_open(self):
            return self._choice.fit(self, X, y, sample_weight)
        self._choice.forget(self)
        self._check_parameters()
        if source is not None:
            return self._fit_on_landmarks(source)
        X, y = self._check_X_and_numbers(X, y)
        weight = check_svm_weight(sample_weight, X)
        warn_of_constant(y, weight)
        learned = self._learn(X, y, weight, intercept=self.fit_intercept)
        describe_tube(self, learned, float(self.epsilon), weight)
        self._report(lambda: self._beside_constant(y, weight))
        self._warn_if_flat(y, weight)
        warn_if_tol_is_coarse(self, y, weight)
        return self

    def _fit_on_landmarks(self, source: RowSource) -> Self:
        """Fit a function over landmarks."""
        X, y, sample_weight = source.training()
        X, y = self._check_X_and_numbers(X, y)
        weight = check_svm_weight(sample_weight, X)
        warn_of_constant(y, weight)
        intercept = bool(self.fit_intercept)
        fit_weighted_kernel(self, X, weight, intercept=intercept)
        source = source.checked(X, y, weight)
        loss = EpsilonInsensitive(float(self.epsilon))
        task = Task.of_numbers(loss, y[weight > 0], float(self.C), intercept=intercept)
        fitted = solve_on_landmarks(self, source, [task], intercept=intercept, passes=int(self.max_iter))
        keep_landmarks(self, fitted, (*OF_ALL_ROWS, *TUBE.always))
        self.shape_fit_ = (source.n, *X.shape[1:])
        self.n_iter_ = fitted.certificate.iterations
        # The objective is that of all rows.
        self._report(str if len(y) < source.n else lambda: self._beside_constant(y, weight))
        return self

    @in_parts
    def predict(self, X: RowsLike) -> Vector:
        """Return the prediction for each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
            In float64.
        """
        return self._values(X)

    def certificate_of(
        self, coefficients: GivenCoefficients, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Certificate:
        """Return the certificate of coefficients for the problem of a fit; see :func:`mercer.certify`.

        Parameters
        ----------
        coefficients : GivenCoefficients
            Laid out as ``dual_coef_`` and ``intercept_``.
        X, y, sample_weight
            As for :meth:`fit`.

        Returns
        -------
        Certificate
        """
        refuse_certificate(self)
        self._choice.require_values(self)
        self._check_parameters()
        X, y = self._check_X_and_numbers(X, y)
        return self._certificate_of(coefficients, X, y, sample_weight, intercept=bool(self.fit_intercept))

    @property
    def learns_kernel(self) -> bool:
        """Whether the fit chooses parameters by folds, so that no other fit can share its kernel matrix."""
        return bool(self._choice.left_open(self))

    def _check_data(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self._check_parameters()
        X, y = self._check_X_and_numbers(X, y)
        fit_weighted_kernel(self, X, check_svm_weight(sample_weight, X), intercept=self.fit_intercept)

    def _check_parameters(self) -> None:
        self._choice.refuse_loo(self)
        check_solver(self)
        check_cost(self, self._choice.or_word(self, "C"))
        require_flags(self, "fit_intercept")
        or_word = self._choice.or_word(self, "epsilon")
        require_number(self, "epsilon", f"a finite number of at least 0{or_word}", lambda value: 0 <= value < np.inf)

    def _problem(self, gram: GramMatrix, targets: Vector, weight: Vector, convex: bool) -> BoxQP:
        bound = self.C * weight
        totals = (0.0,) if self.fit_intercept else ()
        return BoxQP(gram, targets, -bound, bound, tube=float(self.epsilon), totals=totals, convex=convex)

    def _beside_constant(self, y: Vector, weight: Vector) -> str:
        """What the warning of a solver that stopped early says about a function that is worse than a constant."""
        used = weight > 0
        return words_on_constant(
            EpsilonInsensitive(float(self.epsilon)),
            y[used],
            float(self.C) * weight[used],
            self.certificate_.primal,
            intercept=bool(self.fit_intercept),
        )

    def _warn_if_flat(self, y: Vector, weight: Vector) -> None:
        """Warn if targets that differ all lie within one tube, so that the prediction is the same for all rows."""
        used = y[weight > 0]
        if len(used) > 1 and not self.dual_coef_.size and 0 < np.ptp(used) <= 2 * self.epsilon:
            warn_user(
                f"SVR: all targets lie between {used.min():.3g} and {used.max():.3g}, within one tube "
                f"of width 2 epsilon = {2 * self.epsilon:.3g}, so there is no support vector and the prediction is "
                f"{self.intercept_[0]:.3g} for every row. Lower epsilon (the standard deviation of y is "
                f"{used.std():.3g}), or scale y.",
                MercerWarning,
            )
