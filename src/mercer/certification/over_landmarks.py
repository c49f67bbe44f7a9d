"""The entry point for certificates of fits over landmarks for the problem of all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError
from mercer._types import Positions, RowsLike, Vector
from mercer.certification.data_of_fit import codes_of, require_finite, rows_at, rows_of_the_fit
from mercer.certification.finding import Finding, joined
from mercer.certification.landmark_certificate import LandmarkCertificate
from mercer.certification.of_any_loss import LossOfRows, of_loss
from mercer.certification.of_landmark_box import BoxLoss, of_box
from mercer.certification.of_landmark_losses import of_logistic, of_ridge
from mercer.certification.rows_in_blocks import of_blocks
from mercer.certification.rows_of_fit import RowsOfFit
from mercer.data.blocks.blocks import Blocks
from mercer.data.objects import short
from mercer.data.seeds import generator
from mercer.engine import memory, threads
from mercer.estimators.kernel_logistic_regression import KernelLogisticRegression
from mercer.estimators.kernel_machine import KernelMachine
from mercer.estimators.kernel_quantile_regression import KernelQuantileRegression
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.estimators.shared.labels import check_labels
from mercer.estimators.shared.targets import check_numbers
from mercer.estimators.shared.weights import check_sample_weight
from mercer.estimators.svc import SVC
from mercer.estimators.svr import SVR
from mercer.kernels.parameters import whole
from mercer.losses import Loss, OwnLoss, Quantile
from mercer.solvers.restricted.exact import RowSample
from mercer.solvers.solution import Status

# An interval from fewer rows says nothing.
_FEWEST = 10
# So many rows for each of several intervals from the same rows: from fewer they hold together less often than stated.
_EACH = 2


def certify_landmarks(
    model: Any,
    X: RowsLike | Blocks,
    y: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    n_rows: int | None = None,
    confidence: float = 0.95,
    random_state: Any = 0,
) -> LandmarkCertificate:
    r"""Certify how far a fit over landmarks is from the exact one, without computing the latter.

    The certificate of the fit itself is for functions over its landmarks. This one is for functions over all rows: the
    slopes of the losses at the function make a solution of the dual problem, whose objective takes one pass over all
    pairs of rows, :math:`n^2 / 2` kernel values, and no memory for them. (Machines of several classes and quantiles of
    several levels take one for each function.) The least objective of all functions is between ``dual`` and ``primal``,
    and predictions are within ``prediction_bound`` of those of the exact learner.

    Parameters
    ----------
    model : KernelRidge, KernelLogisticRegression, SVC, SVR, KernelMachine or KernelQuantileRegression
        Fitted with ``approximation="nystroem"``. A loss of a :class:`KernelMachine` is one of :mod:`mercer.losses`.
    X : array-like or sparse matrix of shape (n, d), other rows, or Blocks
        Those of the fit. Blocks, which have targets and weights of their own, need ``n_rows``; they are read
        twice at most, and then four times for each function or pair of classes, six times where multipliers next to
        kinks of the loss are solved for.
    y : array-like of shape (n,) or (n, n_targets)
        The targets or labels of the fit.
    sample_weight : array-like of shape (n,), optional
        The weights of the fit.
    n_rows : int, optional
        Of how many rows, drawn at random, the pairs with all others are evaluated; at least 10, and 2 for each target
        or class. The dual objective is then estimated, and the status is ``probable``. None for all rows.
    confidence : float, default=0.95
        With ``n_rows``: that of the interval of the gap, and of all bounds together: the interval of each of p targets,
        functions or pairs of classes has the confidence ``1 - (1 - confidence) / p``. A Student interval is
        widened by a share of the largest deviation of a row, which falls as ``1 / n_rows``.
    random_state : int, RandomState or None, default=0
        With ``n_rows``: the seed.

    Returns
    -------
    LandmarkCertificate
        Its method ``prediction_bound`` has error bars for new rows.

    Raises
    ------
    TypeError
        If this learner has no such certificate.
    ParameterError
        If the fit was not over landmarks, a parameter is out of its range, the loss is user-defined, or all pairs of
        rows in blocks are requested.
    DataError
        If the data cannot be used, are not those of the fit (rows other than the landmarks at ``landmark_indices_``,
        other columns, numbers of targets or classes), or coefficients of the model are not finite.

    References
    ----------
    S. Boyd and L. Vandenberghe, "Convex Optimization" (2004), sections 5.5.1 and 9.1.2.

    Examples
    --------
    >>> from mercer import KernelRidge, certify_landmarks
    >>> from mercer.kernels import RBF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 1))
    >>> y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=300)
    >>> model = KernelRidge(0.1, kernel=RBF(1.0), approximation="nystroem", n_landmarks=12, random_state=0).fit(X, y)
    >>> certificate = certify_landmarks(model, X, y)
    >>> certificate.relative_gap < 0.01, certificate.confidence
    (True, 1.0)
    >>> exact = KernelRidge(0.1, kernel=RBF(1.0)).fit(X, y)
    >>> new = np.linspace(-2, 2, 9)[:, None]
    >>> bool((abs(model.predict(new) - exact.predict(new)) <= certificate.prediction_bound(new)).all())
    True
    """
    start_time = time.perf_counter()
    kind = next((kind for kind in _FINDINGS if isinstance(model, kind)), None)
    if kind is None:
        names = ", ".join(kind.__name__ for kind in _FINDINGS)
        raise TypeError(f"certify_landmarks takes {names}, but got {model!r}.")
    check_is_fitted(model)
    if not hasattr(model, "landmark_indices_"):
        raise ParameterError(
            f"{model!r} was not fitted over landmarks; certificate_ is that of all rows, and mercer.certify takes "
            "coefficients of all rows."
        )
    require_finite(model)
    sample = _sample(n_rows, confidence, random_state)
    with memory.track() as account, threads.workers(model.n_jobs), threads.one_blas_thread():
        rows: Any = X
        if isinstance(X, Blocks):
            rows, y, sample_weight = of_blocks(X, y, sample_weight, None if sample is None else sample.rows)
        checked = rows_of_the_fit(model, rows)
        weight = check_sample_weight(sample_weight, checked)
        used = np.flatnonzero(weight)
        part = rows_at(checked, weight > 0)
        finding = _FINDINGS[kind](model, part, checked, y, weight[used], used, sample)
    gap = finding.gaps[1]
    return LandmarkCertificate(
        primal=finding.primal,
        dual=finding.primal - gap,
        kkt_violation=finding.distance,
        iterations=0,
        seconds=time.perf_counter() - start_time,
        peak_bytes=account.peak,
        status=Status.given if finding.is_proven else Status.probable,
        violations={"distance": finding.distance},
        storage=finding.storage,
        gap_interval=finding.gaps,
        confidence=1.0 if finding.is_proven else float(confidence),
        rows_error=finding.rows_error,
        _at=finding.bound,
    )


def _sample(n_rows: Any, confidence: Any, random_state: Any) -> RowSample | None:
    if n_rows is None:
        return None
    count = whole("certify_landmarks", "n_rows", n_rows, f"a whole number of at least {_FEWEST}, or None", _FEWEST)
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise ParameterError(f"confidence must be a number between 0 and 1, but is {short(confidence)}.")
    return RowSample(count, float(confidence), generator(random_state))


def _require_rows(sample: RowSample | None, functions: int, n: int, name: str) -> None:
    """Raise if a sample of n rows is too small for the intervals of several functions."""
    least = _EACH * functions
    if sample is not None and sample.rows < min(least, n):
        raise ParameterError(
            f"n_rows is {sample.rows}, but intervals of {functions} {name} hold together from {least} rows on, and "
            "from fewer they would be too short. Pass a larger n_rows, or None for all rows."
        )


def _ridge(
    model: Any, part: Any, checked: Any, y: Any, weight: Vector, used: Positions, sample: RowSample | None
) -> Finding:
    numbers = check_numbers(model, y, checked, several=True)
    targets = numbers.reshape(len(numbers), -1)[used]
    coefficients = model.dual_coef_.reshape(len(model.dual_coef_), -1)
    if targets.shape[1] != coefficients.shape[1]:
        raise DataError(
            f"y has {targets.shape[1]} targets, but the fit had {coefficients.shape[1]}; pass the targets of the fit."
        )
    _require_rows(sample, targets.shape[1], len(targets), "targets")
    state = RowsOfFit(model, part, model.X_fit_, coefficients, sample)
    alphas = np.broadcast_to(np.asarray(model.alpha_, dtype=np.float64), targets.shape[1])
    return of_ridge(state, targets, weight, alphas)


def _logistic(
    model: Any, part: Any, checked: Any, y: Any, weight: Vector, used: Positions, sample: RowSample | None
) -> Finding:
    codes = codes_of(model, check_labels(type(model).__name__, y, checked.shape[0]), used)
    _require_rows(sample, len(model.dual_coef_), len(codes), "functions")
    state = RowsOfFit(model, part, model.X_fit_, np.ascontiguousarray(model.dual_coef_.T), sample)
    cost = float(model.C) * weight * model.class_weight_[codes]
    counts = cost > 0
    if not counts.all():
        state = RowsOfFit(model, rows_at(part, counts), model.X_fit_, state.coefficients, sample)
        codes, cost = codes[counts], cost[counts]
    k, intercept = len(model.classes_), bool(model.fit_intercept)
    return of_logistic(state, codes, cost, k, model.intercept_, intercept=intercept)


def _hinge(
    model: Any, part: Any, checked: Any, y: Any, weight: Vector, used: Positions, sample: RowSample | None
) -> Finding:
    codes = codes_of(model, check_labels(type(model).__name__, y, checked.shape[0]), used)
    costs, k = float(model.C) * weight * model.class_weight_[codes], len(model.classes_)
    pairs, parts = list(combinations(range(k), 2)), []
    sample = None if sample is None else sample.shared(len(pairs))
    for number, (i, j) in enumerate(pairs):
        chosen = np.flatnonzero(((codes == i) | (codes == j)) & (costs > 0))
        # As in a fit, positive stands for the second of two classes, and for the first of a pair of several.
        signs = np.where(codes[chosen] == (j if k == 2 else i), 1.0, -1.0)
        rows, coefficients = rows_at(part, chosen), model.dual_coef_[[number]].T.copy()
        state = RowsOfFit(model, rows, model.support_vectors_, coefficients, sample)
        offset = float(model.intercept_[number])
        parts.append(of_box(state, BoxLoss.hinge(signs, costs[chosen], intercept=bool(model.fit_intercept)), offset))
    return joined(parts, "pair of classes")


def _tube(
    model: Any, part: Any, checked: Any, y: Any, weight: Vector, used: Positions, sample: RowSample | None
) -> Finding:
    targets = check_numbers(model, y, checked, several=False)[used]
    costs = float(model.C) * weight
    state = RowsOfFit(model, part, model.support_vectors_, model.dual_coef_.T.copy(), sample)
    loss = BoxLoss(targets, -costs, costs, float(model.epsilon), bool(model.fit_intercept))
    return of_box(state, loss, float(model.intercept_[0]))


def _machine(
    model: Any, part: Any, checked: Any, y: Any, weight: Vector, used: Positions, sample: RowSample | None
) -> Finding:
    loss = model.loss_
    if isinstance(loss, OwnLoss):
        raise ParameterError(
            f"the loss {loss.name} is user-defined, and its conjugate is known only approximately, from below, so that "
            "no bound would be proven. Pass a model with a loss of mercer.losses."
        )
    if loss.targets == "signs":
        codes = codes_of(model, check_labels(type(model).__name__, y, checked.shape[0]), used)
        weight, k = weight * model.class_weight_[codes], len(model.classes_)
        columns = [np.where(codes == number, 1.0, -1.0) for number in ([1] if k == 2 else range(k))]
    else:
        columns = [check_numbers(model, y, checked, several=False)[used]]
        loss.check_targets(columns[0])
    problems = [(loss, column) for column in columns]
    return _of_losses(model, part, problems, weight, float(model.alpha), sample, intercept=bool(model.fit_intercept))


def _quantiles(
    model: Any, part: Any, checked: Any, y: Any, weight: Vector, used: Positions, sample: RowSample | None
) -> Finding:
    targets = check_numbers(model, y, checked, several=False)[used]
    problems: list[tuple[Loss, Vector]] = [(Quantile(float(level)), targets) for level in model.quantiles_]
    finding = _of_losses(model, part, problems, float(model.C) * weight, 1.0, sample, intercept=True)
    if len(problems) > 1 or np.ndim(model.quantiles) == 0:
        return finding
    return replace(finding, bound=lambda X: finding.bound(X)[:, None])


def _of_losses(
    model: Any,
    part: Any,
    problems: Sequence[tuple[Loss, Vector]],
    weight: Vector,
    alpha: float,
    sample: RowSample | None,
    *,
    intercept: bool,
) -> Finding:
    """One function for each loss with its targets, for the same rows and weights."""
    counts = weight > 0
    rows = rows_at(part, counts)
    sample = None if sample is None else sample.shared(len(problems))
    parts = []
    for number, (loss, targets) in enumerate(problems):
        state = RowsOfFit(model, rows, model.support_vectors_, model.dual_coef_[[number]].T.copy(), sample)
        risk = LossOfRows(loss, targets[counts], weight[counts], intercept)
        parts.append(of_loss(state, risk, alpha, float(model.intercept_[number])))
    return joined(parts, "function")


_FINDINGS: dict[type, Callable[..., Finding]] = {
    KernelRidge: _ridge,
    KernelLogisticRegression: _logistic,
    SVC: _hinge,
    SVR: _tube,
    KernelMachine: _machine,
    KernelQuantileRegression: _quantiles,
}
