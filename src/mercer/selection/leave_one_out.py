"""Leave-one-out predictions of fitted models without refitting: exact where there is a formula, else approximate."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Positions, RowsLike, Vector
from mercer.engine.tiles import spans
from mercer.estimators.gaussian_process_classifier import GaussianProcessClassifier
from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor
from mercer.estimators.kernel_logistic_regression import KernelLogisticRegression
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.estimators.shared.layout import dense
from mercer.estimators.shared.weights import check_sample_weight
from mercer.estimators.svc import SVC
from mercer.estimators.svm.one_vs_one import one_vs_rest, tally
from mercer.estimators.svr import SVR
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.protocol import GramMatrix
from mercer.solvers.gaussian.averages import logistic_average, probit_average, softmax_average
from mercer.solvers.risk.left_out_latent import left_out_latent
from mercer.solvers.svm.pair_answers import PairLayout
from mercer.solvers.svm.span import squared_spans

# Probabilities nearer to 0 or 1 are taken as this: without a curvature a row would have no variance.
_LEAST = 1e-9
_LARGEST = 1e100


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut:
    """Predictions for every training row by a fit to all others; see :func:`leave_one_out`.

    Parameters
    ----------
    predictions : ndarray of shape (n,) or (n, n_targets)
        Numbers, or classes.
    values : ndarray
        Decision values, in the layout of ``decision_function``; for regressions the predictions, and for Gaussian
        processes the means of the latent values, of shape (n,) or (n, k).
    probabilities : ndarray of shape (n, k) or None
        Of the classes, where the model has them.
    losses : ndarray of shape (n,) or (n, n_targets)
        1 for a wrong class and 0 for the right one; squared errors of regressions.
    exact : bool
        Whether they are those of refits, to rounding.
    method : str
        How they were computed.
    error_bound : float or None
        For ``SVC`` with two classes and equal weights: no more than this share of the rows is wrong in refits.
    weights : ndarray of shape (n,)
        The weights of the rows.
    """

    predictions: np.ndarray
    values: Matrix
    probabilities: Matrix | None
    losses: Matrix
    exact: bool
    method: str
    error_bound: float | None
    weights: Vector

    @property
    def loss(self) -> float:
        """The weighted mean of ``losses``: an error rate, or a mean squared error over rows and targets."""
        return float(np.average(self.losses.reshape(len(self.losses), -1).mean(axis=1), weights=self.weights))

    def __repr__(self) -> str:
        return f"<leave-one-out of {len(self.losses)} rows: loss {self.loss:.6g}, {self.method}>"


def leave_one_out(model: Any, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> LeaveOneOut:
    r"""Predict every training row of a fitted model by the fit to all other rows, without refitting.

    =============================  ==================================================================================
    model                          method
    =============================  ==================================================================================
    ``KernelRidge``                exact: :math:`y_i - c_i / [(K + \alpha I)^{-1}]_{ii}`
    ``GaussianProcessRegressor``   exact, with the fitted hyper-parameters
    ``SVC``, ``SVR``               span rule: :math:`f(x_i) - \beta_i S_i^2`, with the distance :math:`S_i` of
                                   :math:`\phi(x_i)` from the span of the free support vectors. It is exact if all
                                   other rows keep their roles (no weight, free, at the bound); then also for rows
                                   without a weight
    ``KernelLogisticRegression``   one Newton step from the solution, with the curvature there
    ``GaussianProcessClassifier``  the cavity of the Laplace approximation or of expectation propagation, with the
                                   fitted hyper-parameters
    =============================  ==================================================================================

    Parameters
    ----------
    model : estimator
        Fitted, one of those above. It is not changed.
    X : array-like or sparse matrix of shape (n, d), or other rows
        The rows of the fit, or for ``kernel="precomputed"`` their kernel matrix.
    y : array-like of shape (n,) or (n, n_targets)
        The targets of the fit.
    sample_weight : array-like of shape (n,), optional
        The weights of the fit. If the weight of a row counts several repetitions, one of them is left out.

    Returns
    -------
    LeaveOneOut

    Raises
    ------
    ParameterError
        If the model has no method, or was fitted in a way that the method does not cover.
    DataError
        If X, y or the weights are not those of the fit.
    MemoryBudgetError
        If the matrices of the method do not fit the memory budget.

    Notes
    -----
    For an ``SVC`` with two classes and equal weights, ``error_bound`` is an upper bound on the share of rows that
    refits classify wrongly: the rows with :math:`2 \alpha_i R^2 + \xi_i \ge 1`, where :math:`R^2` is at least
    :math:`k(x, x) - k(x, z)` (xi-alpha; if there is a free support vector); without an offset the rows with
    :math:`y_i f(x_i) \le \alpha_i k(x_i, x_i)`.

    References
    ----------
    V. Vapnik and O. Chapelle, "Bounds on error expectation for support vector machines", Neural Computation 12 (2000).
    M.-W. Chang and C.-J. Lin, "Leave-one-out bounds for support vector regression model selection", Neural Computation
    17 (2005). T. Joachims, "Estimating the generalization performance of an SVM efficiently", ICML (2000). T. Jaakkola
    and D. Haussler, "Probabilistic kernel regression models", AISTATS (1999). K. Rahnama Rad and A. Maleki, "A scalable
    estimate of the out-of-sample prediction error via approximate leave-one-out", J. R. Stat. Soc. B 82 (2020).
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), sections 3.6 and 5.4.2.

    Examples
    --------
    >>> from mercer import SVC, KernelRidge
    >>> from mercer.selection import leave_one_out
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> left_out = leave_one_out(SVC(C=10.0).fit(X, X[:, 0] > 0.3), X, X[:, 0] > 0.3)
    >>> left_out.exact, left_out.loss <= left_out.error_bound
    (False, True)
    >>> ridge = KernelRidge(0.1, kernel="rbf").fit(X, np.sin(3 * X[:, 0]))
    >>> leave_one_out(ridge, X, np.sin(3 * X[:, 0])).method
    'exact, from one inverse'
    """
    for kind, method in _METHODS.items():
        if isinstance(model, kind):
            check_is_fitted(model)
            return method(model, _Rows.of(model, X, y, sample_weight))
    names = ", ".join(kind.__name__ for kind in _METHODS)
    raise ParameterError(f"leave_one_out has no method for {type(model).__name__}; it has one for {names}.")


@dataclass(frozen=True, eq=False)
class _Rows:
    """What a model was fitted to."""

    X: Any
    y: np.ndarray
    weights: Vector
    n_jobs: int | None

    @classmethod
    def of(cls, model: Any, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None) -> _Rows:
        if model.is_on_landmarks:
            raise DataError(
                f"this {type(model).__name__} was fitted with approximation='nystroem' and keeps its landmarks alone; "
                "use cross-validation (sklearn.model_selection.cross_val_score)."
            )
        targets = np.asarray(y)
        given: Any = X
        n = given.shape[0] if hasattr(given, "shape") else len(given)
        if isinstance(model, (SVC, SVR)):
            count = model.shape_fit_[0]
        elif isinstance(model, KernelLogisticRegression):
            count = model.dual_coef_.shape[1]
        else:
            count = len(model.y_fit_ if isinstance(model, KernelRidge) else model.y_train_)
        if n != count or len(targets) != n:
            raise DataError(
                f"X has {n} rows and y has {len(targets)}, but this {type(model).__name__} was fitted to {count} rows; "
                "pass the rows and targets of the fit."
            )
        weights = np.ones(n) if sample_weight is None else check_sample_weight(sample_weight, np.empty((n, 1)))
        return cls(X, targets, weights, model.n_jobs)

    @property
    def left_out(self) -> Vector:
        """The share of each row that is left out; 0 for rows without a weight, which no fit has used."""
        return np.divide(np.minimum(self.weights, 1.0), self.weights, out=np.zeros(len(self.y)), where=self.weights > 0)

    def gram(self, model: Any) -> GramMatrix:
        """K in float64."""
        if model.kernel_ is None:
            return PrecomputedGram(np.asarray(self.X)).astype(np.dtype(np.float64))
        return Gram(model.kernel_, self.X, dtype=np.float64, n_jobs=self.n_jobs)

    def codes(self, model: Any) -> Positions:
        """The numbers of the classes."""
        codes = np.searchsorted(model.classes_, self.y)
        known = codes < len(model.classes_)
        if not known.all() or (model.classes_[codes] != self.y).any():
            raise DataError(f"y has labels that are not among the classes of the fit, {model.classes_.tolist()[:10]}.")
        return codes

    def regression(self, values: Matrix, *, exact: bool, method: str) -> LeaveOneOut:
        return LeaveOneOut(values, values, None, (values - self.y) ** 2, exact, method, None, self.weights)

    def classification(
        self, predictions: np.ndarray, values: Matrix, probabilities: Matrix | None, method: str, bound: float | None
    ) -> LeaveOneOut:
        losses = (predictions != self.y).astype(np.float64)
        return LeaveOneOut(predictions, values, probabilities, losses, False, method, bound, self.weights)


def _ridge(model: KernelRidge, rows: _Rows) -> LeaveOneOut:
    if not np.array_equal(model.y_fit_, rows.y):
        raise DataError("y differs from the targets of the fit; pass those.")
    return rows.regression(model.loo_predictions_, exact=True, method="exact, from one inverse")


def _process(model: GaussianProcessRegressor, rows: _Rows) -> LeaveOneOut:
    mean = np.asarray(model.leave_one_out().mean)
    return rows.regression(mean, exact=True, method="exact for the fitted hyper-parameters, from one inverse")


def _tube(model: SVR, rows: _Rows) -> LeaveOneOut:
    beta = np.zeros(len(rows.y))
    beta[model.support_] = dense(model.dual_coef_)[0]
    removed = _removed(np.abs(beta), model.C * rows.weights, rows.left_out)
    bounded = np.abs(beta) >= model.C * rows.weights * (1.0 - 1e-12)
    squares = squared_spans(
        rows.gram(model),
        np.flatnonzero((beta != 0) & ~bounded),
        np.flatnonzero((beta != 0) & bounded),
        offset=bool(model.fit_intercept),
        n_jobs=rows.n_jobs,
    )
    values = model.predict(rows.X) - _product(np.sign(beta) * removed, squares)
    return rows.regression(values, exact=False, method=_SPAN)


_SPAN = "an approximation by the span rule, exact if all other rows keep their roles"


def _removed(sizes: Vector, bounds: Vector, left_out: Vector) -> Vector:
    """How much of the size of a weight has no room without one repetition of its row."""
    return np.maximum(sizes - bounds * (1.0 - left_out), 0.0) * (left_out > 0)


def _product(weights: Vector, squares: Vector) -> Vector:
    """``weights * squares``, and 0 where the weight is."""
    return np.multiply(weights, squares, out=np.zeros(len(weights)), where=weights != 0)


def _pairs(model: SVC, rows: _Rows) -> LeaveOneOut:
    """Of every pair of classes: the values of its rows fall towards the other class."""
    codes, k = rows.codes(model), len(model.classes_)
    if not np.array_equal(codes[model.support_], np.repeat(np.arange(k), model.n_support_)):
        raise DataError("y differs from the labels of the fit; pass those.")
    if np.isinf(model.C):
        raise ParameterError("leave_one_out needs a finite C; a hard margin may not exist without a row.")
    sizes = np.zeros((k - 1, len(codes)))
    sizes[:, model.support_] = np.abs(dense(model.dual_coef_))
    bounds = float(model.C) * rows.weights * model.class_weight_[codes]
    removed = np.stack([_removed(own, bounds, rows.left_out) for own in sizes])
    roles = model.roles_.reshape(k - 1, -1)
    gram, layout = rows.gram(model), PairLayout(np.zeros(k, dtype=np.intp))
    values = _values_of_pairs(model, rows)
    for i in range(k):
        for j in range(i + 1, k):
            own, falls = np.flatnonzero((codes == i) | (codes == j)), np.zeros(len(codes))
            # The row of a class that holds its weights against another one.
            layer = np.where(codes[own] == i, j - 1, i)
            role = roles[layer, own]
            squares = squared_spans(
                gram, own[role == "free"], own[role == "bounded"], offset=bool(model.fit_intercept), n_jobs=rows.n_jobs
            )
            falls[own] = _product(removed[layer, own], squares[own])
            values[:, layout.number(i, j)] -= np.where(codes == i, falls, -falls)
    bound = _error_bound(model, rows, gram, sizes[0]) if k == 2 else None
    # Differences of infinite values would not be numbers.
    won, sums = tally(np.clip(values, -_LARGEST, _LARGEST), k, strict=True)
    predictions = model.classes_[won.argmax(axis=1)]
    if k == 2:
        values = -values[:, 0]
    elif model.decision_function_shape == "ovr":
        values = one_vs_rest(won, sums)
    return rows.classification(predictions, values, None, _SPAN, bound)


def _values_of_pairs(model: SVC, rows: _Rows) -> Matrix:
    """Decision values of all pairs, (n, k (k - 1) / 2), positive for the first class of a pair."""
    by_pair = copy.copy(model).set_params(decision_function_shape="ovo", break_ties=False)
    values = by_pair.decision_function(rows.X)
    return -values[:, None] if values.ndim == 1 else np.array(values)


def _error_bound(model: SVC, rows: _Rows, gram: GramMatrix, sizes: Vector) -> float | None:
    """The share of rows that may be wrong in refits; None if it is not known."""
    if not (rows.weights == 1.0).all() or not model.certificate_.convex:
        return None
    diagonal = np.asarray(gram.diagonal(), dtype=np.float64)
    if not model.fit_intercept:
        return float(np.mean(model.margins_ <= sizes * diagonal))
    if not (model.roles_ == "free").any():
        return None
    n = len(sizes)
    least = min(float(np.asarray(gram.block(np.arange(n)[part], None)).min()) for part in spans(n))
    return float(np.mean(2.0 * sizes * (diagonal.max() - least) + model.slacks_ >= 1.0))


def _logistic(model: KernelLogisticRegression, rows: _Rows) -> LeaveOneOut:
    codes = rows.codes(model)
    used = np.flatnonzero(rows.weights)
    values = model.decision_function(rows.X).reshape(len(codes), -1).copy()
    cost = float(model.C) * (rows.weights * model.class_weight_[codes])[used]
    gram: Any = rows.gram(model)
    values[used], _ = left_out_latent(
        gram if len(used) == len(codes) else gram.restrict(used, used),
        values[used],
        np.ascontiguousarray(model.dual_coef_[:, used].T),
        np.sqrt(cost)[:, None, None] * _roots(values[used]),
        rows.left_out[used],
        offsets=bool(model.fit_intercept),
        n_jobs=rows.n_jobs,
    )
    probabilities = _probabilities(values)
    flat = values[:, 0] if values.shape[1] == 1 else values
    predictions = model.classes_[probabilities.argmax(axis=1)]
    return rows.classification(predictions, flat, probabilities, "an approximation by one Newton step", None)


def _probabilities(values: Matrix) -> Matrix:
    if values.shape[1] == 1:
        return np.hstack([expit(-values), expit(values)])
    return np.asarray(softmax(values, axis=1))


def _roots(values: Matrix) -> np.ndarray:
    """R with the curvature ``R R'`` of the loss of each row: ``p (1 - p)``, or ``diag(p) - p p'``."""
    if values.shape[1] == 1:
        p = np.clip(expit(values), _LEAST, 1.0 - _LEAST)
        return np.sqrt(p * (1.0 - p))[:, :, None]
    return _softmax_roots(np.asarray(softmax(values, axis=1)))


def _softmax_roots(p: Matrix) -> np.ndarray:
    q = np.sqrt(np.maximum(p, _LEAST))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    # diag(q) (I - q q') diag(q), and the middle is its own square.
    return q[:, :, None] * (np.eye(p.shape[1]) - q[:, :, None] * q[:, None, :])


def _latent(model: GaussianProcessClassifier, rows: _Rows) -> LeaveOneOut:
    if model.estimators_ and model.multi_class == "one_vs_one":
        raise ParameterError(
            "leave_one_out needs probabilities of all classes, and multi_class='one_vs_one' gives none; use 'auto', "
            "'one_vs_rest' or 'multinomial'."
        )
    codes = rows.codes(model)
    if not np.array_equal(codes, model.y_train_):
        raise DataError("y differs from the labels of the fit; pass those.")
    if model.estimators_:
        each = [_latent(part, replace(rows, y=(codes == j).astype(int))) for j, part in enumerate(model.estimators_)]
        against_rest = np.stack([one.probabilities[:, 1] for one in each if one.probabilities is not None], axis=1)
        probabilities = against_rest / against_rest.sum(axis=1, keepdims=True)
        predictions = model.classes_[probabilities.argmax(axis=1)]
        return rows.classification(predictions, np.log(probabilities), probabilities, each[0].method, None)
    gram = rows.gram(model)
    slopes = np.ascontiguousarray(model.dual_coef_.T)
    two = len(model.classes_) == 2
    means, covariances = left_out_latent(
        gram,
        np.asarray(gram @ slopes, dtype=np.float64),
        slopes,
        model.W_sr_[:, None, None] if two else _softmax_roots(model.pi_),
        np.ones(len(slopes)),
        offsets=False,
        n_jobs=rows.n_jobs,
    )
    if two:
        average = probit_average if model.approximation == "ep" else logistic_average
        spread = covariances[:, 0, 0]
        probabilities = np.stack([average(-means[:, 0], spread), average(means[:, 0], spread)], axis=1)
    else:
        probabilities = softmax_average(means, covariances)
    probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
    predictions = model.classes_[probabilities.argmax(axis=1)]
    name = "expectation propagation" if model.approximation == "ep" else "the Laplace approximation"
    return rows.classification(
        predictions,
        means[:, 0] if two else means,
        probabilities,
        f"an approximation by the cavity of {name}, for the fitted hyper-parameters",
        None,
    )


_METHODS: dict[type, Callable[[Any, _Rows], LeaveOneOut]] = {
    KernelRidge: _ridge,
    GaussianProcessRegressor: _process,
    SVC: _pairs,
    SVR: _tube,
    KernelLogisticRegression: _logistic,
    GaussianProcessClassifier: _latent,
}
