"""Classification by stochastic subgradient descent, in a feature space and with kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError, warn_user
from mercer._types import RowsLike, Vector
from mercer.data.distinct import distinct_rows
from mercer.data.sklearn_errors import advised
from mercer.estimators.online.sgd_forms import SGDForms, Training
from mercer.estimators.shared.baseline import warn_if_worse_than_majority
from mercer.estimators.shared.certificates import write_result
from mercer.estimators.shared.labels import all_classes, check_labels, class_codes, class_factors, encoded, winners
from mercer.estimators.shared.parameters import (
    require_choice,
    require_flags,
    require_positive,
    require_seed,
    require_whole,
)
from mercer.estimators.shared.weights import check_sample_weight
from mercer.kernels.convert import KernelLike
from mercer.loops.losses import GIVEN
from mercer.losses import Loss, as_loss, check_own_loss
from mercer.solvers.solution import Status
from mercer.solvers.svm.stochastic import MarginRisk, StochasticDescent

_REMEDY = "Scale the columns of X, lower alpha, or pass fit_intercept=True."
_ORDER = {True: "shuffled", False: "given", "uniform": "uniform"}


class KernelSGDClassifier(ClassifierMixin, SGDForms):
    r"""Linear classification in a feature space by stochastic subgradient descent, with or without kernels.

    For each class against the rest (for two classes, once) it solves

    .. math:: \min_w \tfrac{\alpha}{2} \|w\|^2 + \frac{1}{\sum_i s_i} \sum_i s_i \, \ell(y_i \langle w, \phi(x_i)
              \rangle)

    (:math:`s_i` is the weight of a row) by steps of length :math:`1 / (\alpha (t + t_0))` at single rows, and takes the
    mean of all iterates. In the primal form w is a vector in the space of an explicit map :math:`\phi`; in the kernel
    form it is :math:`\sum_j a_j \phi(x_j)`, and only kernel values appear. Both make the same steps. With the hinge and
    :math:`C = 1 / (\alpha n)` it is the support vector machine without offset (``SVC(fit_intercept=False)``). If the
    penalty is written as :math:`\lambda \|w\|^2`, then :math:`\alpha = 2 \lambda`.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "log_loss", "modified_huber"} or object, default="hinge"
        The loss :math:`\ell` of the margin; ``"logistic"`` is another name for the log loss. Also a loss of
        :mod:`mercer.losses` for labels, or a user-defined object with ``value(y, f)``, ``gradient(y, f)`` and ``targets
        = "signs"`` (see :class:`mercer.losses.OwnLoss`), whose steps run in Python.
    kernel : str, Kernel, sklearn GP kernel or callable, default="rbf"
        As in :class:`mercer.SVC`; also ``"precomputed"``. Not used if ``feature_map`` is a map.
    gamma, degree, coef0 : float or {"scale", "auto"}, int, float, defaults "scale", 3, 0.0
        For named kernels.
    feature_map : transformer, "identity", "auto" or None, default="auto"
        The map of the primal form: anything with ``fit`` and ``transform``, or ``"identity"`` for the columns of X.
        None selects the kernel form; so does ``"auto"``, except for the linear kernel, whose map is the identity.
    alpha : float, default=1e-4
        Weight of half the squared norm against the mean loss, above 0; ``1 / (C n)`` of the support vector machines.
    fit_intercept : bool, default=False
        Whether to add a feature of value 1 (in the kernel form, 1 to the kernel). Its coefficient is the offset and
        is regularised like all others, which keeps the problem strongly convex.
    learning_rate : {"damped", "pegasos"}, default="damped"
        ``"pegasos"``: steps :math:`1/(\alpha t)`. The first iterates then have size :math:`1/\alpha`, and it takes many
        passes until they no longer dominate the mean; the squared hinge may overflow. ``"damped"``: :math:`t_0 = \max_i
        k(x_i, x_i) / \alpha` times the largest weight (of mean 1) and the largest second derivative of the loss (1 for
        the hinge), so that no step overshoots; a user-defined loss provides it as the attribute ``step_bound``.
    max_iter : int, default=1000
        Maximum number of passes over the rows.
    tol : float, default=1e-2
        The relative duality gap at which the solver stops. It is checked after 1, 2, 4, 8, ... passes.
    average : bool, default=True
        Whether to take the mean of all iterates; if not, the last one.
    shuffle : bool or "uniform", default=True
        True: equal rows are merged and their weights added, and each pass takes them in a new random order, so that
        neither the order of the rows nor repeated rows matter. ``"uniform"``: the same rows, drawn independently with
        probability proportional to weight. False: all rows in their given order.
    random_state : int, RandomState or None, default=None
        Seed of the random orders.
    class_weight : dict or "balanced", optional
        Factors of :math:`s_i` by class, in each of the problems: rows of a class with factor 2 count twice.
    warm_start : bool, default=False
        Whether ``fit`` continues from the last fit: its kernel or map, its w and its count of steps.
    verbose : bool, default=False
        Show progress, and the result, on standard error.
    n_jobs : int, optional
        Worker threads for kernel values; the steps themselves come one after the other. The result is bitwise the same
        for any number.
    allow_indefinite : bool or "warn", default="warn"
        For a kernel that is not positive semi-definite: ``"warn"`` makes the same steps, without a bound on the
        objective, and warns; True makes them silently; False raises an error.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes, sorted.
    coef_ : ndarray of shape (1 or k, p)
        w, one row for two classes; in the kernel form for kernels with a finite feature map.
    norm_ : ndarray of shape (1 or k,)
        :math:`\|w\|`; not for ``"precomputed"``.
    dual_coef_ : ndarray of shape (1 or k, n_sv)
        The :math:`a_j`; in the kernel form only.
    support_ : ndarray of shape (n_sv,)
        Positions of their rows in X, the first among equal rows; after ``fit`` in the kernel form.
    support_vectors_ : array or CSR of shape (n_sv, d)
        The rows; in the kernel form, empty for ``"precomputed"``.
    intercept_ : ndarray of shape (1 or k,)
        Offsets; 0 without ``fit_intercept``.
    certificate_ : Certificate
        Primal objective of the solution and a dual bound, both summed over the problems, computed in float64 over all
        rows; after ``fit``, not after ``partial_fit``, which does not see all rows. The bound comes from the slopes of
        the loss that the steps met; see :class:`mercer.solvers.svm.stochastic.StochasticDescent`.
    n_iter_ : int
        Passes of the last fit.
    t_ : int
        Steps so far, over all calls.
    kernel_ : Kernel
        The kernel with its parameters (None for ``"precomputed"`` or if a map replaces it).
    feature_map_ : transformer
        The fitted map, if one was given; else the map to the features of ``coef_``, if there are finitely many.

    Raises
    ------
    DataError, ParameterError, IndefiniteKernelError, MemoryBudgetError, NumericalError
        From ``fit`` and ``partial_fit``: bad data or weights, an invalid parameter, a kernel that is not
        positive semi-definite, a problem that exceeds the memory budget, numbers that overflow.

    Notes
    -----
    Sources: Shalev-Shwartz, Singer, Srebro and Cotter (2011), "Pegasos: primal estimated sub-gradient solver for
    SVM"; Baros, "Kernel methods", section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelSGDClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "other")
    >>> model = KernelSGDClassifier(alpha=0.01, random_state=0).fit(X, y)
    >>> model.predict([[1.0, 1.0], [1.0, -1.0]]).tolist(), model.certificate_.relative_gap <= 1e-2
    (['same', 'other'], True)
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        kernel: KernelLike = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        feature_map: Any = "auto",
        alpha: float = 1e-4,
        fit_intercept: bool = False,
        learning_rate: str = "damped",
        max_iter: int = 1000,
        tol: float = 1e-2,
        average: bool = True,
        shuffle: bool | str = True,
        random_state: int | np.random.RandomState | None = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        verbose: bool = False,
        n_jobs: int | None = None,
        allow_indefinite: bool | str = "warn",
    ) -> None:
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.feature_map = feature_map
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.tol = tol
        self.average = average
        self.shuffle = shuffle
        self.random_state = random_state
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.allow_indefinite = allow_indefinite

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit to rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            For ``kernel="precomputed"``, the kernel matrix, (n, n).
        y : array-like of shape (n,)
            Labels.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions: except for ``shuffle=False`` and ``"precomputed"``, a row of
            weight 3 makes the same steps as the row three times.

        Returns
        -------
        self
        """
        self._check_parameters()
        go_on = self.warm_start and hasattr(self, "_walk")
        if go_on:
            self._check_columns(X)
        X = self._check_X(X, reset=True)
        y, weight = check_labels(type(self).__name__, y, X.shape[0]), check_sample_weight(sample_weight, X)
        used = np.flatnonzero(weight)
        classes, codes = encoded(type(self).__name__, y, used)
        if go_on:
            self._require_same(classes)
        self.classes_ = classes
        rows, weight = used, weight[used]
        if self.shuffle and not self._is_precomputed:
            first, weight = distinct_rows(X[used], codes, weight)
            rows, codes = used[first], codes[first]
        factors = self._class_factors(codes, weight)
        inputs = None if go_on else self._begin(X, rows, weight)
        weight = weight * factors[codes]
        training = self._training(X, rows, inputs)
        coefficients = self._descend(training, codes, weight * (len(rows) / weight.sum()))
        labels = np.searchsorted(classes, y[used])
        most = np.bincount(labels).max() / len(labels)
        # Unless the loss is user-defined, an error costs at least log 2: a low objective has no room for many errors.
        if self._loss().code == GIVEN or self.certificate_.primal > np.log(2.0) * (1.0 - most):
            if len(rows) == len(used) and self.kernel_ is not None and self._is_taken_on_trust():
                # From the matrix of the fit, since a function would be called for all these pairs again.
                labels, predicted = codes, winners(training.rows.evaluate(coefficients)[0].T)
            else:
                predicted = winners(self.decision_function(X))[used]
            warn_if_worse_than_majority("KernelSGDClassifier", labels, predicted, _REMEDY)
        return self

    def _descend(self, training: Training, codes: NDArray[np.integer], weights: Vector) -> Vector:
        """Solve over all rows, and set what a fit sets; the coefficients of all rows."""
        risk, rng = self._risk(training, codes, weights), check_random_state(self.random_state)
        solution = self._solver().solve(risk, training.walk, rng)
        # Those that are kept are fewer.
        coefficients = training.walk.mean() if self.average else training.walk.last()
        self._keep(training, sort=True)
        self.n_iter_ = solution.value.epochs
        self.certificate_ = solution.certificate
        write_result(self)
        if solution.status is Status.iteration_limit:
            warn_user(f"KernelSGDClassifier: {solution.status.value} Here C is 1 / (alpha n).", ConvergenceWarning)
        return coefficients

    def partial_fit(
        self, X: RowsLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """One pass over the rows ``X`` (n, d) with labels ``y`` (n,), from where the last call has ended.

        The kernel or map, and ``gamma="scale"``, come from the rows of the first call. As more rows may come, weights
        are plain factors of the loss, and equal rows are not merged.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
        y : array-like of shape (n,)
        classes : array-like of shape (k,), optional
            All classes that will ever occur; needed in the first call.
        sample_weight : array-like of shape (n,), optional
        """
        self._check_parameters()
        self._check_partial()
        first = not hasattr(self, "_walk")
        X = self._check_X(X, reset=first)
        y, weight = check_labels(type(self).__name__, y, X.shape[0]), check_sample_weight(sample_weight, X)
        self.classes_ = all_classes(type(self).__name__, classes, None if first else self.classes_)
        rows = np.flatnonzero(weight)
        codes = class_codes(y[rows], self.classes_)
        inputs = self._begin(X, rows, weight[rows]) if first else None
        training = self._training(X, rows, inputs)
        factors = self._class_factors(codes, weight[rows])
        risk = self._risk(training, codes, weight[rows] * factors[codes])
        self._solver().pass_once(risk, training.walk, check_random_state(self.random_state))
        self._keep(training, sort=False)
        self.n_iter_ = 1
        if hasattr(self, "certificate_"):
            del self.certificate_
        return self

    def decision_function(self, X: RowsLike) -> Vector:
        """Return decision values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            For ``kernel="precomputed"``, kernel values of new and training rows, (m, n).

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            For two classes (m,), positive for ``classes_[1]``; else (m, k).
        """
        check_is_fitted(self, "classes_")
        X = self._check_X(X, reset=False)
        if self._primal:
            values = np.asarray(self._mapped(X) @ self.coef_.T, dtype=np.float64) + self.intercept_
        else:
            values = self._expansion.values(X)
        return values.ravel() if len(self.classes_) == 2 else values

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the class of each row.

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

    def _solver(self) -> StochasticDescent:
        return StochasticDescent(
            max_epochs=self.max_iter,
            tol=self.tol,
            average=self.average,
            damped=self.learning_rate == "damped",
            order=_ORDER[self.shuffle],
            verbose=bool(self.verbose),
        )

    def _risk(self, training: Training, codes: NDArray[np.integer], weights: Vector) -> MarginRisk:
        positive = np.array([1]) if self._outputs == 1 else np.arange(self._outputs)
        convex = self._primal or self._convex
        return MarginRisk(training.rows, codes, positive, weights, float(self.alpha), self._loss(), convex)

    def _loss(self) -> Loss:
        return as_loss(self.loss, "signs")

    def _check_parameters(self) -> None:
        require_positive(self, "alpha", "tol")
        require_whole(self, "max_iter", "a whole number of passes, at least 1")
        loss = self._loss()
        check_own_loss(loss)
        if self.learning_rate == "damped" and not np.isfinite(loss.step_bound):
            raise ParameterError(
                f"the loss {loss.name!r} does not say how far a step may go without overshooting; give it the "
                'attribute step_bound, a bound on its second derivative, or pass learning_rate="pegasos".'
            )
        require_choice(self, "learning_rate", ("damped", "pegasos"))
        require_choice(self, "shuffle", tuple(_ORDER))
        require_flags(self, "fit_intercept", "average", "warm_start")
        require_seed(self)
        map_ = self.feature_map
        if map_ not in ("auto", "identity", None) if isinstance(map_, str | None) else not hasattr(map_, "transform"):
            raise ParameterError(
                f"feature_map must have fit and transform, or be 'identity', 'auto' or None, but is {map_!r}."
            )

    def _check_columns(self, X: Any) -> None:
        """Raise unless a fit to ``X`` can go on from the last one; what is not a table raises later."""
        with advised():
            shape = np.shape(X)
        least = 1 + int(self.support_.max(initial=-1)) if self._is_precomputed else self.n_features_in_
        most = np.inf if self._is_precomputed else least
        if len(shape) == 2 and not least <= shape[1] <= most:
            raise DataError(
                f"with warm_start, X must have the {least} columns of the last fit, but has {shape[1]}; set "
                "warm_start=False to start again."
            )

    def _check_partial(self) -> None:
        if self._is_precomputed:
            raise ParameterError(
                'partial_fit needs kernel values between new and earlier rows, which kernel="precomputed" cannot give; '
                "pass a kernel, or use fit."
            )
        if isinstance(self.class_weight, str):
            raise ParameterError(
                f"class_weight={self.class_weight!r} needs all rows at once, but partial_fit receives only some of "
                "them; pass a dict of factors, or sample_weight."
            )

    def _require_same(self, classes: np.ndarray) -> None:
        """Raise unless a fit that goes on has the classes of the last one."""
        if not np.array_equal(classes, self.classes_):
            raise DataError(
                f"with warm_start, y must have the classes of the last fit, {self.classes_[:10].tolist()}, but has "
                f"{classes[:10].tolist()}; set warm_start=False to start again."
            )

    def _class_factors(self, codes: NDArray[np.integer], weight: Vector) -> Vector:
        """Factors of the loss by class, (k,); "balanced" counts rows by their weight."""
        return class_factors(self.class_weight, self.classes_, codes, weight)
