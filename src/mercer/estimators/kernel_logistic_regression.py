"""Kernel logistic regression."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, log_softmax, softmax
from sklearn.base import ClassifierMixin

from mercer._registered import CommandLine
from mercer._types import CheckedRows, Matrix, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats, Is, Labels, Maybe, Whole
from mercer.engine import memory
from mercer.estimators.shared.along import FitsAlongPenalty, FromAttributes
from mercer.estimators.shared.certificates import warn_if_stopped
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, norm_of, values_of
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.estimators.shared.in_parts import in_parts, row_source
from mercer.estimators.shared.labels import check_labels, class_factors, encoded, winners
from mercer.estimators.shared.landmark_numbers import fit_along_numbers, is_left_open
from mercer.estimators.shared.on_blocks import ArrayRows, RowSource, require_checkpoint
from mercer.estimators.shared.parameters import require_flags, require_number, require_positive, require_whole
from mercer.estimators.shared.restricted import NO_WARM_START, require_approximation
from mercer.estimators.shared.restricted_risk import ClassTargets, Task, forget, refuse_certificate, solve_on_landmarks
from mercer.estimators.shared.statements import FitRows, outputs
from mercer.estimators.shared.weights import check_sample_weight, fit_weighted_kernel, weighted_gram
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.estimators.svm.chosen_by_folds import CHOICE, FoldChoice
from mercer.kernels.convert import KernelLike
from mercer.losses import Logistic
from mercer.losses.log_loss import log_loss
from mercer.solvers import evaluate
from mercer.solvers.restricted.criteria import Smooth, SoftmaxCriterion
from mercer.solvers.risk.logistic import LogisticSolver
from mercer.solvers.risk.logistic_problem import LogisticPoint, LogisticRisk
from mercer.solvers.solution import Certificate

# Over landmarks a step is several passes, for its direction and its point.
_PASSES_PER_STEP = 10


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows with a weight: positions in X, numbers of their classes, and weights."""

    used: NDArray[np.intp]
    codes: NDArray[np.intp]
    weight: Vector


class KernelLogisticRegression(ClassifierMixin, FitsAlongPenalty):
    r"""Logistic regression in the space of any kernel: probabilities of two or more classes, with a certificate.

    For more than two classes it solves the multinomial (softmax) problem, all classes at once:

    .. math:: \min_{w, b} \; \sum_i C_i \, \Bigl(\log \sum_j e^{f_j(x_i)} - f_{y_i}(x_i)\Bigr)
              + \tfrac12 \sum_j \|w_j\|^2, \qquad f_j(x) = \langle w_j, \phi(x) \rangle + b_j
              = \sum_i a_{ji}\, k(x_i, x) + b_j

    with :math:`C_i = C \cdot \text{sample\_weight}_i \cdot \text{class\_weight}_{y_i}`. Two classes have one function,
    with the loss :math:`\log(1 + e^{\mp f})`. Both are scikit-learn's ``LogisticRegression`` in the feature space.

    Parameters
    ----------
    C : float or "cv", default=1.0
        Weight of the sum of the losses against half the squared norm, above 0; smaller values give smoother
        probabilities. ``"cv"`` chooses it with the best accuracy over five stratified folds, along a path with one
        kernel matrix, as :class:`~mercer.KernelSearchCV` with ``random_state=0``; not for rows in parts. The choice is
        in ``C_`` and ``search_``.
    kernel : str, Kernel, scikit-learn kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    gamma : float or {"scale", "auto"}, default="scale"
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    degree, coef0 : int, float, defaults 3, 0.0
        For named kernels.
    tol : float, default=1e-4
        The relative error :math:`\|w - w^*\| / \|w\|` at which the solver stops, as bounded by the duality gap. Up to
        512 rows the solution is as accurate as float64 allows, for any ``tol``. With an approximation: the largest gap
        of the objective over the landmarks, as a share of it.
    class_weight : dict or "balanced", optional
        Factors of C by class; ``"balanced"`` makes them inversely proportional to the weight of the class.
    fit_intercept : bool, default=True
        Whether there are offsets b, which are not penalised. With several classes they sum to zero.
    max_iter : int, default=100
        Maximum number of Newton steps; with an approximation, of ten passes over the rows.
    warm_start : bool, default=False
        Start from the solution of the last fit, if it had as many rows and classes and is better than zero. The
        solution is the same within the tolerance, except with an indefinite kernel.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a stationary point, marked as such in
        ``certificate_``, and warns; True does so silently; False raises an error. A precomputed matrix or a function
        is checked for this; if this is True, it counts as indefinite.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` restricts the functions to the span of few rows, the landmarks:
        :math:`f_j(x) = \sum_l a_{jl} k(x, z_l) + b_j`. Time is then linear in the number of rows. The matrix of rows
        and landmarks need not be kept; its values in float32 are, where they take at most a quarter of the free memory.
        It needs a positive kernel.
    n_landmarks : int or "auto", default=1000
        With an approximation: the number of landmarks, all rows if there are fewer. ``"auto"`` doubles it from 100 on,
        until the loss of a fifth of the rows (5000 at most), which are held out, no longer falls by more than the
        standard error of the difference and 0.1 %, or memory ends; then it fits to all rows.
    landmarks : {"rpcholesky", "leverage", "kmeans", "uniform"} or rows of the kind of X, default="rpcholesky"
        How landmarks are chosen, as for :class:`mercer.maps.NystroemMap`, or the landmarks themselves.
    checkpoint : str or Path, optional
        With an approximation: a file of the passes over the rows that are done. After an interruption the same fit goes
        on from there, and ends with the same bits; at the end the file is removed. Then ``random_state=None`` stands
        for 0.
    random_state : int, RandomState or None, default=None
        Seed of the choice of landmarks.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes, sorted.
    dual_coef_ : ndarray of shape (1, n) or (k, n)
        The coefficients a: :math:`C_i` times the indicator of the class minus its probability, within the tolerance;
        they sum to zero over the classes. One row for two classes, that of ``classes_[1]``. With an approximation, the
        coefficients of the landmarks.
    intercept_ : ndarray of shape (1,) or (k,)
        Offsets b; 0 without ``fit_intercept``.
    coef_ : ndarray of shape (1, p) or (k, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,) or (k,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    X_fit_ : ndarray or csr_matrix of shape (n, d)
        The training rows; empty for ``"precomputed"``; with an approximation, the landmarks.
    landmark_path_ : LandmarkPath
        With ``n_landmarks="auto"``: the numbers that were tried, with the held-out losses; printed as a table.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them,
        or the rows came in parts or with a checkpoint.
    n_iter_ : ndarray of shape (1,)
        Newton steps; with an approximation, passes over the rows.
    class_weight_ : ndarray of shape (k,)
        Factors of C by class.
    certificate_ : Certificate
        Primal objective, and the dual one (entropies of probabilities minus half a squared norm), in float64 over all
        rows; its ``kkt_violation`` is the bound on the relative error of w. With an approximation the problem is that
        over the landmarks, and the violation is the length of the gradient.
    fit_status_ : int
        0 if the tolerance was met, else 1.
    C_, search_
        With ``C="cv"``: the chosen value, and a :class:`~mercer.estimators.svm.chosen_by_folds.FoldSearch`.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"``).
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError, NumericalError
        From ``fit``: one class only or bad weights, an invalid parameter, a kernel that is not positive
        semi-definite, a problem that exceeds the memory budget, values that overflow.

    See Also
    --------
    mercer.solvers.risk.logistic.LogisticSolver : The solver, and its cost.

    Notes
    -----
    A weight counts repetitions exactly: a row of weight 3 gives the same function as the row three times, and a row of
    weight 0 has no effect. A conditionally positive kernel, such as the negative distance, is allowed if there is an
    intercept.

    References
    ----------
    J. Zhu and T. Hastie, "Kernel logistic regression and the import vector machine", J. Comput. Graph. Statist. 14
    (2005), 185-205.

    Examples
    --------
    >>> from mercer import KernelLogisticRegression
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> model = KernelLogisticRegression(C=10.0, gamma=2.0).fit(X, np.abs(X[:, 0]) > 0.5)
    >>> model.predict_proba([[0.0], [0.5], [1.0]])[:, 1].round(2).tolist()
    [0.01, 0.47, 0.98]
    >>> model.certificate_.gap < 1e-9
    True
    >>> chosen = KernelLogisticRegression(C="cv", gamma=2.0).fit(X, np.abs(X[:, 0]) > 0.5)
    >>> chosen.search_.best["C"] == chosen.C_
    True
    """

    certificate_: Certificate

    shares_matrices = True
    may_leave_landmarks_open = True
    _continuation = FromAttributes()
    _command_line = CommandLine("logistic")
    _beside_landmarks = (NO_WARM_START,)
    _choice = FoldChoice(("C",))
    _fitted = Fitted(
        {
            "classes_": Labels("k", least=2),
            "class_weight_": Floats("k", least=0),
            "dual_coef_": Floats("outputs, n"),
            "intercept_": Floats("outputs"),
            "X_fit_": FitRows("n", kept=False),
            "n_iter_": Whole("1"),
            "certificate_": Is(Certificate),
            "fit_status_": Count(most=1),
        },
        {"landmark_indices_": Maybe(Whole("n", distinct=True)), **CHOICE.sometimes},
        derived={"outputs": outputs},
    )

    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)
    norm_ = property(norm_of)

    def __init__(
        self,
        *,
        C: float | str = 1.0,
        kernel: KernelLike = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        tol: float = 1e-4,
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
        max_iter: int = 100,
        warm_start: bool = False,
        verbose: bool = False,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
        approximation: str | None = None,
        n_landmarks: int | str = 1000,
        landmarks: Any = "rpcholesky",
        checkpoint: str | Path | None = None,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.checkpoint = checkpoint
        self.random_state = random_state

    @takes_parts
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix, (n, n). Blocks, which have labels and weights of their own,
            are read once for each pass of the solver; of collections of Dask, the workers return sums. Both need an
            approximation.
        y : array-like of shape (n,)
            Labels.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        if is_left_open(self):
            return fit_along_numbers(self, X, y, sample_weight)
        source = row_source(self, X, y, sample_weight)
        if self._choice.left_open(self) and (source is None or isinstance(source, ArrayRows)):
            return self._choice.fit(self, X, y, sample_weight)
        self._choice.forget(self)
        if source is not None:
            self._choice.require_values(self)
            return self._fit_on_landmarks(source)
        X, weight, used, classes, codes = self._check_data(X, y, sample_weight)
        forget(self, "landmark_indices_")
        last = self._last_point(X.shape[0], used, len(classes))
        fit_weighted_kernel(self, X, weight, intercept=bool(self.fit_intercept))
        self.classes_ = classes
        self.class_weight_ = class_factors(self.class_weight, classes, codes, weight[used])
        rows = _Rows(used, codes, weight[used])
        with memory.track() as account:
            self._solve(X, rows, last)
        self.certificate_ = replace(
            self.certificate_, seconds=time.perf_counter() - start_time, peak_bytes=account.peak
        )
        self.fit_status_ = int(warn_if_stopped(self))
        return self

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
        X, weight, used, classes, codes = self._check_data(X, y, sample_weight)
        outputs, intercept = 1 if len(classes) == 2 else len(classes), bool(self.fit_intercept)
        A = coefficients.weights(outputs, X.shape[0], weight)[:, used].T
        offsets = coefficients.offsets(outputs, allowed=intercept)
        gram, convex = weighted_gram(self, X, weight, intercept=intercept)
        factors = class_factors(self.class_weight, classes, codes, weight[used])
        cost = float(self.C) * weight[used] * factors[codes]
        problem = LogisticRisk(gram, log_loss(codes, cost, len(classes)), intercept, convex)
        return evaluate.of_logistic(problem, np.ascontiguousarray(A), offsets)

    @in_parts
    def decision_function(self, X: RowsLike) -> Matrix:
        """Return decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            For two classes (m,), the logarithm of the odds of ``classes_[1]``; else (m, k).
        """
        values = values_of(self, X)
        return values.ravel() if len(self.classes_) == 2 else values

    @in_parts
    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
        """
        values = self.decision_function(X)
        return self.classes_[winners(values)]

    @in_parts
    def predict_proba(self, X: RowsLike) -> Matrix:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m, k)
            Each row sums to one.
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.stack([expit(-values), expit(values)], axis=1)
        return np.asarray(softmax(values, axis=1))

    @in_parts
    def predict_log_proba(self, X: RowsLike) -> Matrix:
        """Return the logarithms of the probabilities, also where the probabilities underflow to zero.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m, k)
        """
        values = self.decision_function(X)
        if values.ndim == 1:
            return np.stack([log_expit(-values), log_expit(values)], axis=1)
        return np.asarray(log_softmax(values, axis=1))

    @property
    def _expansion(self) -> KernelExpansion:
        return KernelExpansion(self.kernel_, self.X_fit_, self.dual_coef_, self.intercept_, n_jobs=self.n_jobs)

    def _solve(self, X: CheckedRows, rows: _Rows, start: LogisticPoint | None) -> None:
        """State the problem over the rows with a weight, solve it, and set what was learned."""
        whole: Any = self._gram(X, dtype=None if self.kernel_ is None else np.float64)
        gram = whole if len(rows.used) == X.shape[0] else whole.restrict(rows.used, rows.used)
        intercept = bool(self.fit_intercept)
        convex = self._is_convex(gram, rows.used, X.dtype, intercept=intercept)
        cost = float(self.C) * rows.weight * self.class_weight_[rows.codes]
        problem = LogisticRisk(gram, log_loss(rows.codes, cost, len(self.classes_)), intercept, convex)
        solution = LogisticSolver(
            tol=float(self.tol), max_iter=int(self.max_iter), n_jobs=self.n_jobs, verbose=bool(self.verbose)
        ).solve(problem, start)
        point = solution.value
        self.dual_coef_ = np.zeros((problem.shape[1], X.shape[0]))
        self.dual_coef_[:, rows.used] = point.weights.T
        self.intercept_ = point.offset
        self.X_fit_ = np.empty((0, 0)) if self.kernel_ is None else X
        self.n_iter_ = np.array([solution.state.steps], dtype=np.int32)
        self.certificate_ = solution.certificate

    def _fit_on_landmarks(self, source: RowSource) -> Self:
        """Fit functions over landmarks."""
        X, y, sample_weight = source.training()
        self._check_parameters()
        X = self._check_X(X, reset=True)
        weight = check_sample_weight(sample_weight, X)
        source = source.classified(self, X, y, weight)
        fit_weighted_kernel(self, X, weight, intercept=bool(self.fit_intercept))
        k, costs = len(self.classes_), float(self.C) * self.class_weight_
        if k == 2:
            task = Task(ClassTargets(self.classes_, costs, 1), Smooth(Logistic()))
        else:
            task = Task(ClassTargets(self.classes_, costs), SoftmaxCriterion(), k)
        fitted = solve_on_landmarks(
            self, source, [task], intercept=bool(self.fit_intercept), passes=_PASSES_PER_STEP * int(self.max_iter)
        )
        self.dual_coef_, self.intercept_ = fitted.dual_coef, fitted.offsets
        if k > 2:
            # Of equal functions for all classes only their size remains, which rounding has left.
            self.dual_coef_ = self.dual_coef_ - self.dual_coef_.mean(axis=0)
            self.intercept_ = self.intercept_ - self.intercept_.mean()
        self.X_fit_, self.landmark_indices_ = fitted.landmarks.rows, fitted.landmarks.indices
        self.n_iter_ = np.array([fitted.certificate.iterations], dtype=np.int32)
        self.certificate_ = fitted.certificate
        self.fit_status_ = int(warn_if_stopped(self))
        return self

    def _last_point(self, n: int, used: NDArray[np.intp], classes: int) -> LogisticPoint | None:
        """The answer of the last fit, where this one may start from it."""
        if not self.warm_start or not hasattr(self, "dual_coef_"):
            return None
        if self.dual_coef_.shape[1] != n or len(self.classes_) != classes:
            return None
        weights = np.ascontiguousarray(self.dual_coef_[:, used].T)
        return LogisticPoint(weights, np.zeros_like(weights), self.intercept_)

    @property
    def learns_kernel(self) -> bool:
        """Whether the fit chooses C by folds, so that no other fit can share its kernel matrix."""
        return bool(self._choice.left_open(self))

    def _check_data(
        self, X: Any, y: Any, sample_weight: ArrayLike | None
    ) -> tuple[CheckedRows, Vector, NDArray[np.intp], np.ndarray, NDArray[np.intp]]:
        """Check all; return the rows, weights, positions with a weight, the classes, and their numbers there."""
        self._check_parameters()
        X = self._check_X(X, reset=True)
        y, weight = check_labels(type(self).__name__, y, X.shape[0]), check_sample_weight(sample_weight, X)
        used = np.flatnonzero(weight)
        return X, weight, used, *encoded(type(self).__name__, y, used)

    def _check_parameters(self) -> None:
        self._choice.refuse_loo(self)
        words = f"a finite number above 0{self._choice.or_word(self, 'C')}"
        require_number(self, "C", words, lambda value: 0 < value < np.inf)
        require_positive(self, "tol")
        require_whole(self, "max_iter", "a whole number of Newton steps, at least 1")
        require_flags(self, "fit_intercept", "warm_start")
        require_checkpoint(self)
        require_approximation(self)
