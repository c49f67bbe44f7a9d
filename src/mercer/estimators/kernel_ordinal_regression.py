"""Kernel regression on ordered classes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from mercer._errors import IndefiniteKernelError, ParameterError
from mercer._registered import CommandLine
from mercer._types import CheckedRows, RowsLike, Vector
from mercer.data.distinct import equal_rows
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Floats, Is, Labels, Number, Word
from mercer.engine import memory
from mercer.estimators.ordinal.likelihood import OrdinalLikelihood
from mercer.estimators.ordinal.ordered import DECISIONS, OrderedLabels, class_probabilities, decide, ordered_labels
from mercer.estimators.shared.along import FromAttributes
from mercer.estimators.shared.certificates import warn_if_stopped
from mercer.estimators.shared.expansion import values_of
from mercer.estimators.shared.labels import class_factors
from mercer.estimators.shared.parameters import (
    require_choice,
    require_flags,
    require_positive,
    require_slope,
    require_whole,
)
from mercer.estimators.shared.statements import ASCENDING, FitRows
from mercer.estimators.shared.weights import check_sample_weight, fit_weighted_kernel
from mercer.kernels.convert import KernelLike
from mercer.solvers.risk.cumulative_links import LINKS
from mercer.solvers.risk.ordinal import OrdinalAnswer, OrdinalSolver, OrdinalStart
from mercer.solvers.risk.ordinal_evidence import slope_by_evidence
from mercer.solvers.risk.ordinal_problem import OrdinalProblem
from mercer.solvers.solution import Certificate, Solution


class KernelOrdinalRegression(ClassifierMixin, OrdinalLikelihood):
    r"""Ordinal regression: ordered classes, separated by cut-points on the scale of a function in a kernel's space.

    The classes are 1 < ... < k, their cut-points :math:`-\infty = \phi_0 < \phi_1 < \dots < \phi_k = \infty`, and

    .. math:: P(t = j \mid x) = F(a (\phi_j - f(x))) - F(a (\phi_{j-1} - f(x))), \qquad
              \min_{f, \phi}\; C \sum_i -\log P(t_i \mid x_i) + \tfrac12 \|f\|^2

    for f in the space of the kernel, :math:`f(x) = \sum_i c_i k(x_i, x)`, with the distribution function F of the link
    and the slope a. With the logistic link and two classes this is logistic regression with an intercept,
    ``-a phi_1``, that is not penalised. The problem is convex in f and the cut-points together, and is solved to the
    precision of float64 by Newton's method.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the sum of the losses against half the squared norm, above 0.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        A name (``"linear"``, ``"poly"``, ``"rbf"``, ``"sigmoid"``, ...), a kernel of :mod:`mercer.kernels`, a
        function ``(X, Z) -> block``, or ``"precomputed"``.
    degree, gamma, coef0 : int, float or {"scale", "auto"}, float, defaults 3, "scale", 0.0
        For named kernels. ``"scale"`` is ``1 / (d * variance of X)`` (weighted by ``sample_weight``), ``"auto"``
        is ``1 / d``.
    link : {"logit", "probit", "cloglog", "loglog"}, default="logit"
        F: the logistic or the normal distribution, ``1 - exp(-exp(z))`` (proportional hazards) or ``exp(-exp(-z))``.
    slope : float or "evidence", default=1.0
        The slope a. It cannot be learned from the penalised likelihood, where it is redundant with C: a with C gives
        the probabilities of a slope of 1 with ``a^2 C``. By convention it is 1. ``"evidence"`` finds the slope of
        largest Laplace evidence, which alone determines the smoothness; C is then the prior variance of f in units of
        the kernel, which sets the unit of f, and no probability depends on it.
    classes : sequence or "sorted", optional
        All labels from the lowest to the highest, such as ``["low", "middle", "high"]``; also for classes that may be
        missing in y. Three or more classes whose labels are text need it, unless all are numbers ("1", "2", "10"), or
        y is an ordered categorical of pandas. ``"sorted"`` takes text in alphabetical order ("1 low", "2 middle").
    decision : {"mode", "median", "mean"}, default="mode"
        What ``predict`` returns: the most probable class, the class in which the distribution function reaches one
        half (best for the mean absolute error), or the one nearest to the expected number of the class.
    class_weight : dict or "balanced", optional
        Factors of C by class; ``"balanced"`` makes them inversely proportional to the weight of the class.
    tol : float, default=1e-8
        How far, in units of 1 + the largest latent value, the function may be from optimal.
    max_iter : int, default=100
        Maximum number of Newton steps.
    warm_start : bool, default=False
        Start from the solution of the last fit, if it had as many rows and classes.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` returns a stationary point, marked as such in
        ``certificate_``, and warns; True does so silently; False raises an error. A precomputed matrix or a function
        is checked for this; if this is True, it counts as indefinite.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    n_jobs : int, optional
        Number of worker threads, all cores by default. The result is bitwise the same for any number.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes in their order.
    thresholds_ : ndarray of shape (k - 1,)
        The cut-points, in units of f. A class of ``classes`` without rows lies between two equal cut-points (infinite
        ones at an end of the scale) and has probability 0.
    slope_ : float
        a.
    dual_coef_ : ndarray of shape (n_samples,)
        The coefficients of f; they sum to 0.
    X_fit_ : ndarray or csr_matrix of shape (n_samples, n_features)
        The training rows; for ``"precomputed"`` an empty array.
    coef_ : ndarray of shape (p,)
        w in the p features of ``feature_map_``, for linear kernels (where they are the columns of X), polynomial and
        all-subsets kernels, and sums, products and powers of these.
    feature_map_ : mercer.maps.ExplicitMap
        The fitted map to the features of ``coef_``, which names them (``get_feature_names_out``).
    norm_ : ndarray of shape (1,)
        :math:`\|w\|` in the feature space of any kernel; not for ``"precomputed"``.
    log_evidence_ : float
        Laplace's log evidence at ``slope_``; with ``slope="evidence"`` only.
    class_weight_ : ndarray of shape (k,)
        Factors of C by class, 1 for classes without rows.
    n_iter_ : int
        Newton steps.
    certificate_ : Certificate
        Primal objective, the dual one (a lower bound of the best value), and how far latent values and cut-points are
        from optimal.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"``).

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError
        From ``fit``: one class only, unknown labels or bad weights, text labels without an order, an invalid parameter,
        a kernel that is not positive semi-definite on weights that sum to 0, a problem that exceeds the memory
        budget.

    Notes
    -----
    Equal rows are merged: a survey of a thousand answers of which two hundred are distinct costs as much as two
    hundred. A weight counts repetitions exactly.

    ``log_likelihood``, ``gradient`` and ``hessian`` return the log likelihood and its derivatives with respect to
    latent values and cut-points, to check derivations. For the logistic link, with ``y_{ij} = F(a (phi_j - f_i))``, the
    gradient by f_i is ``d_i = a (y_{i,t} + y_{i,t-1} - 1)`` and the Hessian by the weights of features is ``-Phi' R
    Phi`` with ``r_i = a^2 (y_{i,t} (1 - y_{i,t}) + y_{i,t-1} (1 - y_{i,t-1}))``, above 0. Some derivations give r_i
    with a minus sign, or with a in place of a^2; both are wrong.

    To estimate a slope together with f, the scale of f must be fixed by other means; see ``slope``.

    References
    ----------
    P. McCullagh, "Regression models for ordinal data", J. R. Stat. Soc. B 42 (1980), 109-142.
    W. Chu and Z. Ghahramani, "Gaussian processes for ordinal regression", JMLR 6 (2005), 1019-1041.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelOrdinalRegression
    >>> X = np.linspace(0, 3, 31)[:, None]
    >>> y = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [1.0, 2.0])]
    >>> model = KernelOrdinalRegression(C=100.0, classes=["low", "middle", "high"]).fit(X, y)
    >>> model.predict([[0.2], [1.5], [2.9]]).tolist()
    ['low', 'middle', 'high']
    >>> model.certificate_.relative_gap < 1e-9, bool(model.thresholds_[0] < model.thresholds_[1])
    (True, True)
    """

    _command_line = CommandLine(
        "ordinal", advised=False, choice=lambda model: f"the order {' < '.join(map(str, model.classes_.tolist()))}"
    )
    shares_matrices = True
    _fitted = Fitted(
        {
            "classes_": Labels("k", least=2),
            "class_weight_": Floats("k", least=0),
            "slope_": Number(least=0),
            "thresholds_": Floats("cuts", finite=False),
            "dual_coef_": Floats("n"),
            "X_fit_": FitRows("n", kept=False),
            "certificate_": Is(Certificate),
            "n_iter_": Count(),
        },
        {"log_evidence_": Number()},
        {"link": Word(tuple(LINKS)), "decision": Word(DECISIONS)},
        {"cuts": lambda k: k - 1},
        (ASCENDING,),
    )

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: KernelLike = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        link: str = "logit",
        slope: float | str = 1.0,
        classes: ArrayLike | None = None,
        decision: str = "mode",
        class_weight: dict[Any, float] | str | None = None,
        tol: float = 1e-8,
        max_iter: int = 100,
        warm_start: bool = False,
        allow_indefinite: bool | str = "warn",
        verbose: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.link = link
        self.slope = slope
        self.classes = classes
        self.decision = decision
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.allow_indefinite = allow_indefinite
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit_along(
        self, parameter: str, values: Sequence[float], X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> list[Self]:
        """Fit a copy for each value of the penalty, from the strongest penalty to the weakest.

        Parameters
        ----------
        parameter : str
            ``"C"``.
        values : sequence of float
            Its values, ascending.
        X, y, sample_weight
            As for ``fit``.

        Returns
        -------
        list of KernelOrdinalRegression
            In the order of the values.
        """
        return FromAttributes().fit_along(self, parameter, values, X, y, sample_weight)

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,)
            Labels.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        self
        """
        start_time = time.perf_counter()
        self._check_parameters()
        X = self._check_X(X, reset=True)
        weight = check_sample_weight(sample_weight, X)
        labels = ordered_labels(type(self).__name__, y, self.classes, weight, self.link)
        fit_weighted_kernel(self, X, weight, intercept=True)
        factors = self._class_factors(labels, weight)
        used = np.flatnonzero(weight)
        with memory.track() as account:
            problem, whole = self._problem(X, labels, weight * factors[labels.codes], used)
            start = self._start(problem, used)
            slope, solution, evidence = self._solve(problem, start)
            answer = solution.value
            # Cut-points of a centred matrix are moved to where the function of the kernel itself has them.
            shift = float(np.mean(problem.gram @ answer.coefficients)) if problem.centred else 0.0
        self.classes_, self.class_weight_, self.slope_ = labels.names, factors, slope
        self.thresholds_ = labels.all_cuts(answer.cuts + shift) / slope
        self.dual_coef_ = np.zeros(X.shape[0])
        self.dual_coef_[used] = answer.row_coefficients(problem) / slope
        self.X_fit_ = np.empty((0, 0)) if whole is None else X
        if evidence is not None:
            self.log_evidence_ = evidence
        self._certify(solution, slope, time.perf_counter() - start_time, account.peak)
        return self

    def latent(self, X: RowsLike) -> Vector:
        """Return f at each row: the scale on which the cut-points lie.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
        """
        return values_of(self, X)[:, 0]

    def predict_proba(self, X: RowsLike) -> Vector:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m, k)
            In the order of ``classes_``.
        """
        latent = self.latent(X)
        return class_probabilities(LINKS[self.link], self.slope_ * latent, self.slope_ * self.thresholds_)

    def predict_log_proba(self, X: RowsLike) -> Vector:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m, k)
            In the order of ``classes_``.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the class of each row, by ``decision``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,)
        """
        check_is_fitted(self)
        return np.asarray(self.classes_[decide(self.predict_proba(X), self.decision)])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # Cut-points cannot separate classes that are not in order along the function.
        tags.classifier_tags.poor_score = True
        return tags

    def _check_parameters(self) -> None:
        require_positive(self, "C", "tol")
        require_whole(self, "max_iter", "a whole number of 1 or more")
        require_choice(self, "link", tuple(LINKS))
        require_choice(self, "decision", DECISIONS)
        require_flags(self, "warm_start")
        require_slope(self)
        if isinstance(self.slope, str) and self.allow_indefinite is True:
            raise ParameterError(
                "slope='evidence' needs a positive semi-definite kernel, which the prior of the evidence has as its "
                "covariance; set slope to a number, or allow_indefinite=False."
            )

    def _class_factors(self, labels: OrderedLabels, weight: Vector) -> Vector:
        """Factors of C for all classes; those that no row has count for nothing."""
        class_weight: Any = self.class_weight
        present = labels.names[labels.seen]
        if isinstance(class_weight, dict):
            unseen = set(labels.names[~labels.seen].tolist())
            class_weight = {name: factor for name, factor in class_weight.items() if name not in unseen}
        used = np.flatnonzero(weight)
        factors = np.ones(len(labels.names))
        factors[labels.seen] = class_factors(class_weight, present, labels.ranks[used], weight[used])
        return factors

    def _problem(self, X: CheckedRows, labels: OrderedLabels, weight: Vector, used: Any) -> tuple[OrdinalProblem, Any]:
        """The problem over the rows with a weight, equal ones at one point; the rows, or None for a matrix."""
        gram: Any = self._gram(X, dtype=None if self.kernel_ is None else np.float64)
        points, owner = used, None
        if self.kernel_ is not None:
            first, groups = equal_rows(X[used])
            if len(first) < len(used):
                points, owner = used[first], groups
        if len(points) < X.shape[0]:
            gram = gram.restrict(points, points)
        convex = self._is_convex(gram, points, X.dtype, intercept=True)
        if not convex and isinstance(self.slope, str):
            raise IndefiniteKernelError(
                "slope='evidence' needs a positive semi-definite kernel, because its matrix is the covariance of the "
                "prior, and this one is indefinite. Choose another kernel, or set slope to a number."
            )
        # Else all that is known is that the kernel is positive on weights that sum to 0.
        positive = self.kernel_ is not None and self.kernel_.definiteness == "positive"
        centred = convex and (self._is_taken_on_trust() or not positive)
        problem = OrdinalProblem(
            labels.ranks[used], weight[used], LINKS[self.link], owner, gram=gram, convex=convex, centred=centred
        )
        return problem, None if self.kernel_ is None else X

    def _start(self, problem: OrdinalProblem, used: Any) -> OrdinalStart | None:
        """The last answer, in units of a slope of 1."""
        if not self.warm_start or not hasattr(self, "dual_coef_") or isinstance(self.slope, str):
            return None
        cuts = np.unique(self.thresholds_[np.isfinite(self.thresholds_)])
        weights = self.dual_coef_
        if len(weights) <= used[-1] or len(cuts) != problem.classes - 1:
            return None
        coefficients = self.slope_ * problem.at_points(weights[used])
        shift = float(np.mean(problem.gram @ coefficients)) if problem.centred else 0.0
        return OrdinalStart(coefficients, self.slope_ * cuts - shift)

    def _solve(
        self, problem: OrdinalProblem, start: OrdinalStart | None
    ) -> tuple[float, Solution[OrdinalAnswer, OrdinalStart], float | None]:
        """The slope, the solution in units of a slope of 1, and the log evidence where it chose the slope."""
        tol, max_iter = float(self.tol), int(self.max_iter)
        if isinstance(self.slope, str):
            choice = slope_by_evidence(
                problem, float(self.C), tol=tol, max_iter=max_iter, n_jobs=self.n_jobs, verbose=bool(self.verbose)
            )
            return choice.slope, choice.solution, choice.log_evidence
        slope = float(self.slope)
        problem = replace(problem, weight=float(self.C) * slope**2 * problem.weight)
        solution = OrdinalSolver(tol=tol, max_iter=max_iter, n_jobs=self.n_jobs, verbose=bool(self.verbose)).solve(
            problem, start
        )
        return slope, solution, None

    def _certify(self, solution: Solution[Any, Any], slope: float, seconds: float, peak_bytes: int) -> None:
        """Set the certificate, in units of the objective that the user knows; warn if the solve did not end well."""
        certificate: Certificate = solution.certificate
        self.certificate_ = replace(
            certificate,
            primal=certificate.primal / slope**2,
            dual=certificate.dual / slope**2,
            kkt_violation=certificate.kkt_violation / slope,
            violations={name: value / slope for name, value in certificate.violations.items()},
            seconds=seconds,
            peak_bytes=peak_bytes,
        )
        self.n_iter_ = certificate.iterations
        warn_if_stopped(self)
