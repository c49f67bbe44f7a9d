"""The general problem of kernel methods: any convex loss, any penalty of the norm."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if

from mercer._errors import ParameterError
from mercer._types import AnyArray, CheckedRows, RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats, Is, Labels, Maybe, Whole
from mercer.engine import memory
from mercer.estimators.shared.along import FitsAlongPenalty, FromSolutions
from mercer.estimators.shared.certificates import joined, warn_if_stopped
from mercer.estimators.shared.expansion import KernelExpansion, coef_of, feature_map_of, of_support, values_of
from mercer.estimators.shared.given_coefficients import GivenCoefficients
from mercer.estimators.shared.in_parts import in_parts, row_source
from mercer.estimators.shared.labels import check_labels, class_factors, encoded, winners
from mercer.estimators.shared.landmark_numbers import fit_along_numbers, is_left_open
from mercer.estimators.shared.left_out_baseline import warn_if_risk_is_worse
from mercer.estimators.shared.on_blocks import RowSource
from mercer.estimators.shared.parameters import require_choice, require_flags, require_positive, require_whole
from mercer.estimators.shared.restricted import OWN_SOLVER, Beside, require_approximation
from mercer.estimators.shared.restricted_risk import (
    ClassTargets,
    Task,
    criterion_of,
    forget,
    keep_landmarks,
    of_all_rows,
    one_form,
    refuse_certificate,
    solve_on_landmarks,
)
from mercer.estimators.shared.statements import GIVEN_COLUMNS, SupportRows, outputs
from mercer.estimators.shared.targets import warn_of_constant
from mercer.estimators.shared.weights import check_sample_weight, fit_weighted_kernel, weighted_gram
from mercer.estimators.shared.what_fits import naming_what_fits
from mercer.estimators.shared.whole_rows import takes_parts
from mercer.kernels.convert import KernelLike
from mercer.losses import (
    HalfSquare,
    Loss,
    OwnPenalty,
    Penalty,
    as_loss,
    as_penalty,
    check_own_loss,
    check_penalty,
    is_logistic,
    loss_named,
)
from mercer.solvers import evaluate
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.solve import METHODS, RiskSolver, shared_gram
from mercer.solvers.risk.stationary import StationarySolver
from mercer.solvers.risk.values import RiskValue
from mercer.solvers.solution import Certificate, Solution


def _classifies(machine: KernelMachine) -> bool:
    """Whether the loss is one of labels; ``fit`` raises for what is not a loss."""
    loss = loss_named(machine.loss) if isinstance(machine.loss, str) else machine.loss
    return bool(getattr(loss, "targets", "numbers") == "signs")


def _agrees(machine: KernelMachine) -> bool:
    attributes = vars(machine)
    count = len(machine.classes_) if "classes_" in attributes else None
    labels = "classes_" in attributes and "class_weight_" in attributes
    return labels == (machine.loss_.targets == "signs") == _classifies(machine) and len(machine.norm_) == outputs(count)


def _has_probabilities(machine: KernelMachine) -> bool:
    return is_logistic(machine.loss)


class KernelMachine(FitsAlongPenalty):
    r"""Any convex loss of the predictions with any convex, non-decreasing penalty on the norm and any kernel.

    .. math:: \min_w \sum_i w_i\, \ell(y_i, f(x_i)) + \alpha\, R(\|w\|), \qquad f(x) = \sum_i c_i\, k(x, x_i) + b

    where b is 0 unless ``fit_intercept`` is set. By the representer theorem it is a problem in the coefficients c. With
    a loss for labels it classifies (one machine for each class against the rest, or one for two classes); otherwise it
    predicts numbers. A weight counts repetitions exactly: a row of weight 3 gives the same machine as the row three
    times, and a row of weight 0 has no effect.

    Parameters
    ----------
    loss : str or object, default="squared"
        For numbers ``"squared"``, ``"epsilon_insensitive"``, ``"huber"``, ``"quantile"`` (the median), ``"poisson"``
        (counts, 0 or more); for labels ``"hinge"``, ``"squared_hinge"``, ``"logistic"``, ``"modified_huber"``;
        scikit-learn's ``"squared_error"`` and ``"log_loss"`` are understood; a loss of :mod:`mercer.losses`, such as
        ``Huber(delta=2.0)``; or a user-defined object with ``value(y, f)`` and ``gradient(y, f)``, see
        :class:`mercer.losses.OwnLoss`.
    regularizer : {"l2", "norm"}, Penalty or callable, default="l2"
        R: :math:`\tfrac12 \|w\|^2`, :math:`\|w\|`, a penalty such as ``mercer.losses.Ball(3.0)`` or
        ``mercer.losses.NormPower(4.0)``, or a function of the norm that returns a number or infinity.
    alpha : float, default=1.0
        Weight of the penalty against the sum of the losses, above 0; ``1 / C`` of the support vector machines.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    tol : float, default=1e-6
        The relative duality gap at which the solver stops. Up to 512 rows the gap is as small as rounding allows.
    max_iter : int, default=-1
        Maximum number of steps for each problem; -1 for no limit. With an approximation, of passes over the rows; -1
        for 1000.
    solver : {"auto", "newton", "newton-cg", "multipliers", "box"}, default="auto"
        Newton's method for smooth losses (with lazy products of K if it does not fit the memory budget), the box solver
        of the support vector machines for piecewise linear losses, the method of multipliers for others.
    class_weight : dict or "balanced", optional
        Factors of the loss by class.
    cache_size : float, default=200
        Memory for the kernel rows that the box solver stores, in MB (of 2^20 bytes).
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a stationary point, marked as such in
        ``certificate_``, and warns; True does so silently; False raises an error. A precomputed matrix or a function is
        checked for this; if this is True, it counts as indefinite. Stationary points exist for ``"l2"`` and losses that
        are smooth or piecewise linear.
    fit_intercept : bool, default=False
        Whether there is an offset b, which is not penalised.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    approximation : {None, "nystroem"}, default=None
        ``"nystroem"`` restricts f to the span of few rows, the landmarks:
        :math:`f(x) = \sum_j c_j k(x, z_j) + b`. Time is then linear in the number of rows. The matrix of rows and
        landmarks need not be kept; for smooth losses its values in float32 are, where they take at most a quarter of
        the free memory. It needs a positive kernel, ``regularizer="l2"``, and of a user-defined loss the method
        ``curvature``.
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
    support_ : ndarray of shape (n_sv,)
        Positions of the rows with a coefficient; not with an approximation.
    support_vectors_ : array or CSR of shape (n_sv, d)
        These rows; empty for ``"precomputed"``; with an approximation, the landmarks.
    landmark_path_ : LandmarkPath
        With ``n_landmarks="auto"``: the numbers that were tried, with the held-out losses; printed as a table.
    landmark_indices_ : ndarray of shape (n_landmarks,) or None
        With an approximation: the positions of the landmarks among the training rows; None if they are none of them,
        or the rows came in parts.
    dual_coef_ : ndarray of shape (1, n_sv) or (k, n_sv)
        Their coefficients c, one row for each class if there are more than two.
    coef_ : ndarray of shape (1, p) or (k, p)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    intercept_ : ndarray of shape (1,) or (k,)
        b.
    norm_ : ndarray of shape (1,) or (k,)
        :math:`\|w\|`.
    l2_factor_ : ndarray of shape (1,) or (k,)
        The factor of :math:`\tfrac12 \|w\|^2` with the same solution, :math:`\alpha R'(\|w\|) / \|w\|`.
    classes_ : ndarray of shape (k,)
        The classes, sorted; for losses of labels.
    class_weight_ : ndarray of shape (k,)
        Factors of the loss by class.
    loss_ : Loss
    regularizer_ : Penalty
    certificate_ : Certificate
        Primal and dual objective in float64 (sums over the classes), worst violation, steps, time and memory. With an
        approximation the problem is that over the landmarks, the violation is the length of the gradient, and steps are
        passes over the rows.
    n_iter_ : int
        Steps.
    fit_status_ : int
        0 if the tolerance was met, else 1.
    kernel_ : Kernel or None
        The kernel with its parameters (None for ``"precomputed"``).
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: targets or weights that cannot be used, a loss or penalty that is not convex or does not return a
        number for each row, a kernel that is not positive semi-definite, a problem that exceeds the memory budget.

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` or rounding ended the fit before ``tol`` was met.

    Notes
    -----
    With ``loss="hinge"`` and ``alpha=1/C`` it is ``SVC(C, fit_intercept=False)``, with ``"squared"`` it is
    ``KernelRidge(alpha)``, and with ``"logistic"`` and ``alpha=1/C`` kernel logistic regression; objectives differ by
    the factors C, 2 and C.

    References
    ----------
    S. Shalev-Shwartz and S. Ben-David, "Understanding machine learning" (2014), theorem 16.1; B. Schoelkopf, R.
    Herbrich and A. J. Smola, "A generalized representer theorem", COLT (2001).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelMachine, losses
    >>> X = np.linspace(0, 6, 61)[:, None]
    >>> y = np.sin(X).ravel()
    >>> y[::10] += 5.0
    >>> model = KernelMachine(losses.Huber(0.1), losses.Ball(2.0), gamma=0.5).fit(X, y)
    >>> float(np.abs(model.predict(X) - np.sin(X).ravel()).max()) < 0.2, model.norm_.round(6).tolist()
    (True, [2.0])
    >>> model.certificate_.relative_gap < 1e-6
    True
    """

    _continuation = FromSolutions()
    shares_matrices = True
    may_leave_landmarks_open = True
    _beside_landmarks = (
        Beside(
            "regularizer",
            "l2",
            'Pass regularizer="l2".',
            lambda model: isinstance(as_penalty(model.regularizer), HalfSquare),
        ),
        Beside("solver", "auto", OWN_SOLVER),
    )
    _fitted = Fitted(
        {
            "loss_": Is(Loss),
            "regularizer_": Is(Penalty),
            "support_vectors_": SupportRows("s"),
            "dual_coef_": Floats("o, s"),
            "intercept_": Floats("o"),
            "norm_": Floats("o", least=0),
            "l2_factor_": Floats("o", finite=False),
            "n_iter_": Count(),
            "certificate_": Is(Certificate),
            "fit_status_": Count(most=1),
        },
        {
            "classes_": Labels("k", least=2),
            "class_weight_": Floats("k", least=0),
            "support_": Whole("s"),
            "landmark_indices_": Maybe(Whole("s", distinct=True)),
        },
        rules=(GIVEN_COLUMNS, one_form("support_"), ("the loss and the classes do not agree", _agrees)),
    )

    support_ = of_all_rows("support_", "Landmarks are at landmark_indices_, and in support_vectors_.")
    feature_map_ = property(feature_map_of)
    coef_ = property(coef_of)

    def __init__(
        self,
        loss: Any = "squared",
        regularizer: Any = "l2",
        *,
        alpha: float = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = -1,
        solver: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        cache_size: float = 200,
        allow_indefinite: bool | str = "warn",
        fit_intercept: bool = False,
        n_jobs: int | None = None,
        verbose: bool = False,
        approximation: str | None = None,
        n_landmarks: int | str = 1000,
        landmarks: Any = "rpcholesky",
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.regularizer = regularizer
        self.alpha = alpha
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.class_weight = class_weight
        self.cache_size = cache_size
        self.allow_indefinite = allow_indefinite
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.approximation = approximation
        self.n_landmarks = n_landmarks
        self.landmarks = landmarks
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        if _classifies(self):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        else:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
            counts = self.loss == "poisson" or getattr(self.loss, "targets", None) == "counts"
            tags.target_tags.positive_only = counts
        return tags

    @takes_parts
    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their labels or targets.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), Blocks or a collection of Dask
            For ``kernel="precomputed"``, the kernel matrix, (n, n). Blocks, which have targets and weights of their
            own, are read once for each pass of the solver. Blocks and Dask need an approximation.
        y : array-like of shape (n,)
            Labels or targets, depending on the loss.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        self
        """
        if is_left_open(self):
            return fit_along_numbers(self, X, y, sample_weight)
        start_time = time.perf_counter()
        loss, penalty = self._check_parameters()
        source = row_source(self, X, y, sample_weight)
        if source is not None:
            return self._fit_on_landmarks(source, loss, penalty)
        X, columns, weights, weight = self._check_data(loss, X, y, sample_weight)
        used = np.flatnonzero(weight)
        gram, convex = weighted_gram(self, X, weight, intercept=False)
        problem = RegularizedRisk(
            gram, loss, columns[0], weights[0], penalty, float(self.alpha), bool(self.fit_intercept), convex
        )
        with memory.track() as account, naming_what_fits(self, X.shape[0]):
            solutions = self._solve(problem, columns, weights)
        self.loss_, self.regularizer_ = loss, penalty
        self._keep(X, used, solutions)
        self.certificate_ = replace(
            joined([s.certificate for s in solutions]),
            seconds=time.perf_counter() - start_time,
            peak_bytes=account.peak,
        )
        self.fit_status_ = int(warn_if_stopped(self))
        warn_if_risk_is_worse("KernelMachine", problem, solutions[0].value, self.n_jobs)
        return self

    def _fit_on_landmarks(self, source: RowSource, loss: Loss, penalty: Penalty) -> Self:
        """Fit functions over landmarks."""
        X, y, sample_weight = source.training()
        X, y, weight = self._check_rows(loss, X, y, sample_weight)
        intercept = bool(self.fit_intercept)
        if loss.targets == "signs":
            source = source.classified(self, X, y, weight)
            positive = [1] if len(self.classes_) == 2 else range(len(self.classes_))
            targets = [ClassTargets(self.classes_, self.class_weight_, k) for k in positive]
            tasks = [Task(signs, criterion_of(loss, np.ones(1))) for signs in targets]
        else:
            source = source.checked(X, y, weight)
            tasks = [Task.of_numbers(loss, y[weight > 0], 1.0, intercept=intercept)]
        check_own_loss(loss, tasks[0].targets(y[weight > 0])[0][:, 0])
        fit_weighted_kernel(self, X, weight, intercept=False)
        fitted = solve_on_landmarks(
            self, source, tasks, intercept=intercept, alpha=float(self.alpha), passes=int(self.max_iter)
        )
        self.loss_, self.regularizer_ = loss, penalty
        keep_landmarks(self, fitted, ["support_"])
        self.norm_, self.l2_factor_ = fitted.norms, np.full(len(fitted.norms), float(self.alpha))
        self.n_iter_ = fitted.certificate.iterations
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
        loss, penalty = self._check_parameters()
        X, columns, weights, weight = self._check_data(loss, X, y, sample_weight)
        intercept = bool(self.fit_intercept)
        C = coefficients.weights(len(columns), X.shape[0], weight)[:, weight > 0]
        offsets = coefficients.offsets(len(columns), allowed=intercept)
        gram, convex = weighted_gram(self, X, weight, intercept=False)
        certificates = []
        for k, (targets, w, c) in enumerate(zip(columns, weights, C, strict=True)):
            problem = RegularizedRisk(gram, loss, targets, w, penalty, float(self.alpha), intercept, convex)
            certificates.append(evaluate.of_risk(problem, c, None if offsets is None else float(offsets[k])))
        return joined(certificates)

    @in_parts
    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the class of each row, or the prediction for it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
            For ``loss="poisson"`` the predicted mean.
        """
        values = values_of(self, X)
        if not hasattr(self, "classes_"):
            return self.loss_.response(values[:, 0])
        return self.classes_[winners(values)]

    @available_if(_classifies)
    @in_parts
    def decision_function(self, X: RowsLike) -> Vector:
        """Decision values: (m,) for two classes, positive for ``classes_[1]``; else (m, k)."""
        values = values_of(self, X)
        return values[:, 0] if values.shape[1] == 1 else values

    @available_if(_has_probabilities)
    def predict_proba(self, X: RowsLike) -> Vector:
        """Probabilities of the classes, (m, k); if more than two, of each against the rest, scaled to sum to 1."""
        share = expit(values_of(self, X))
        if share.shape[1] == 1:
            return np.column_stack([expit(-values_of(self, X)), share])
        return share / share.sum(axis=1, keepdims=True)

    def score(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the accuracy of the predicted classes, or ``R^2`` of the predictions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            As for :meth:`predict`.
        y : array-like of shape (m,)
            Labels or targets.
        sample_weight : array-like of shape (m,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        float
        """
        measure = accuracy_score if _classifies(self) else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    @property
    def _expansion(self) -> KernelExpansion:
        return of_support(self)

    def _check_parameters(self) -> tuple[Loss, Penalty]:
        loss, penalty = as_loss(self.loss), as_penalty(self.regularizer)
        require_positive(self, "alpha", "tol", "cache_size")
        require_whole(self, "max_iter", "a whole number, -1 for no limit", least=-1)
        require_choice(self, "solver", METHODS)
        require_flags(self, "fit_intercept")
        if isinstance(penalty, OwnPenalty):
            check_penalty(penalty)
        if self.class_weight is not None and loss.targets != "signs":
            raise ParameterError(f"class_weight needs a loss of labels, but {loss.name!r} is not one; leave it out.")
        require_approximation(self)
        return loss, penalty

    def _check_data(
        self, loss: Loss, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, list[Vector], list[Vector], Vector]:
        """X; targets and weights of each problem over the rows with a weight; and all weights."""
        X, checked, weight = self._check_rows(loss, X, y, sample_weight)
        if loss.targets == "signs":
            columns, weights = self._signs(checked, weight)
        else:
            columns, weights = [checked[weight > 0]], [weight[weight > 0]]
        check_own_loss(loss, columns[0])
        return X, columns, weights, weight

    def _check_rows(
        self, loss: Loss, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None
    ) -> tuple[Any, AnyArray, Vector]:
        """Rows, labels or targets, and weights."""
        if loss.targets == "signs":
            X = self._check_X(X, reset=True)
            labels = check_labels(type(self).__name__, y, X.shape[0])
            return X, labels, check_sample_weight(sample_weight, X)
        X, y = self._check_X_and_numbers(X, y)
        weight = check_sample_weight(sample_weight, X)
        loss.check_targets(y[weight > 0])
        warn_of_constant(y, weight)
        forget(self, "classes_", "class_weight_")
        return X, y, weight

    def _signs(self, y: np.ndarray, weight: Vector) -> tuple[list[Vector], list[Vector]]:
        """Labels of the rows with a weight as signs, each class against the rest, and weights; sets the classes."""
        used = np.flatnonzero(weight)
        classes, codes = encoded(type(self).__name__, y, used)
        weight = weight[used]
        self.classes_ = classes
        self.class_weight_ = class_factors(self.class_weight, classes, codes, weight)
        positive = [1] if len(classes) == 2 else range(len(classes))
        columns = [np.where(codes == k, 1.0, -1.0) for k in positive]
        return columns, [weight * self.class_weight_[codes]] * len(columns)

    def _solve(
        self, problem: RegularizedRisk, columns: list[Vector], weights: list[Vector]
    ) -> list[Solution[RiskValue, Vector]]:
        options: dict[str, Any] = {
            "tol": float(self.tol),
            "max_iter": int(self.max_iter),
            "cache_bytes": int(self.cache_size * 2**20),
            "n_jobs": self.n_jobs,
            "verbose": bool(self.verbose),
        }
        with ExitStack() as stack:
            shared = problem.gram if len(columns) == 1 else shared_gram(problem.gram, stack)
            problems = [
                replace(problem, gram=shared, targets=y, weights=w) for y, w in zip(columns, weights, strict=True)
            ]
            if not problem.convex:
                return [StationarySolver(**options).solve(p) for p in problems]
            solver = RiskSolver(**options | {"method": self.solver})
            starts = self._continuation.starts(self, len(problems))
            solutions = [solver.solve(p, start) for p, start in zip(problems, starts, strict=True)]
            self._continuation.keep(self, [solution.value for solution in solutions])
            return solutions

    def _keep(self, X: CheckedRows, used: NDArray[np.intp], solutions: list[Solution[RiskValue, Vector]]) -> None:
        """Set the attributes that hold the expansion."""
        forget(self, "landmark_indices_")
        coefficients = np.stack([s.value.c for s in solutions])
        support = np.flatnonzero(coefficients.any(axis=0))
        self.support_ = used[support].astype(np.int32)
        self.support_vectors_ = np.empty((0, 0)) if self.kernel_ is None else X[self.support_]
        self.dual_coef_ = np.ascontiguousarray(coefficients[:, support])
        self.intercept_ = np.array([s.value.b for s in solutions])
        self.norm_ = np.array([s.value.norm for s in solutions])
        self.l2_factor_ = np.array([s.value.lam for s in solutions])
        self.n_iter_ = max(1, sum(s.certificate.iterations for s in solutions))
