"""The entry point for certificates of fits over landmarks for the problem of all rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Positions, RowsLike, Vector
from mercer.certification.data_of_fit import codes_of, require_finite, rows_at, rows_of_the_fit
from mercer.certification.finding import Finding, joined
from mercer.certification.landmark_certificate import LandmarkCertificate
from mercer.certification.of_any_loss import LogLossOfRows, LossOfRows, of_loss, of_smooth
from mercer.certification.of_landmark_box import BoxLoss, of_box
from mercer.certification.of_landmark_ridge import of_ridge
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
from mercer.losses.log_loss import log_loss
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
        finding = _FINDINGS[kind](_Fit(model, checked, y, check_sample_weight(sample_weight, checked), sample))
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


@dataclass(frozen=True, eq=False)
class _Fit:
    """A fitted model with the data that it is compared with."""

    model: Any
    checked: Any
    y: Any
    weight: Vector
    sample: RowSample | None

    @cached_property
    def used(self) -> Positions:
        """The rows with a weight."""
        return np.flatnonzero(self.weight)

    def numbers(self, several: bool = False) -> Any:
        """The targets of the rows with a weight."""
        return check_numbers(self.model, self.y, self.checked, several=several)[self.used]

    def codes(self) -> Positions:
        """The numbers of the classes of the rows with a weight."""
        labels = check_labels(type(self.model).__name__, self.y, self.checked.shape[0])
        return codes_of(self.model, labels, self.used)

    def rows(self, coefficients: Matrix, counts: Any = None, parts: int = 1) -> RowsOfFit:
        """Functions at those of the rows with a weight that count, which are one of several parts."""
        mask = self.weight > 0
        if counts is not None:
            mask[self.used] = counts
        sample = self.sample if self.sample is None or parts == 1 else self.sample.shared(parts)
        return RowsOfFit(self.model, rows_at(self.checked, mask), np.ascontiguousarray(coefficients), sample)

    def require_rows(self, functions: int, name: str) -> None:
        """Raise if the sample is too small for the intervals of several functions."""
        least = _EACH * functions
        if self.sample is not None and self.sample.rows < min(least, len(self.used)):
            raise ParameterError(
                f"n_rows is {self.sample.rows}, but intervals of {functions} {name} hold together from {least} rows "
                "on, and from fewer they would be too short. Pass a larger n_rows, or None for all rows."
            )


def _ridge(fit: _Fit) -> Finding:
    model, numbers = fit.model, fit.numbers(several=True)
    targets = numbers.reshape(len(numbers), -1)
    coefficients = model.dual_coef_.reshape(len(model.dual_coef_), -1)
    if targets.shape[1] != coefficients.shape[1]:
        raise DataError(
            f"y has {targets.shape[1]} targets, but the fit had {coefficients.shape[1]}; pass the targets of the fit."
        )
    fit.require_rows(targets.shape[1], "targets")
    alphas = np.broadcast_to(np.asarray(model.alpha_, dtype=np.float64), targets.shape[1])
    return of_ridge(fit.rows(coefficients), targets, fit.weight[fit.used], alphas)


def _logistic(fit: _Fit) -> Finding:
    model, codes = fit.model, fit.codes()
    fit.require_rows(len(model.dual_coef_), "functions")
    cost = float(model.C) * fit.weight[fit.used] * model.class_weight_[codes]
    counts = cost > 0
    risk = LogLossOfRows(log_loss(codes[counts], cost[counts], len(model.classes_)), bool(model.fit_intercept))
    return of_smooth(fit.rows(model.dual_coef_.T, counts), risk, 1.0, model.intercept_)


def _hinge(fit: _Fit) -> Finding:
    model, codes = fit.model, fit.codes()
    costs, k = float(model.C) * fit.weight[fit.used] * model.class_weight_[codes], len(model.classes_)
    pairs, parts = list(combinations(range(k), 2)), []
    for number, (i, j) in enumerate(pairs):
        chosen = ((codes == i) | (codes == j)) & (costs > 0)
        # As in a fit, positive stands for the second of two classes, and for the first of a pair of several.
        signs = np.where(codes[chosen] == (j if k == 2 else i), 1.0, -1.0)
        loss = BoxLoss.hinge(signs, costs[chosen], intercept=bool(model.fit_intercept))
        rows = fit.rows(model.dual_coef_[[number]].T, chosen, len(pairs))
        parts.append(of_box(rows, loss, float(model.intercept_[number])))
    return joined(parts, "pair of classes")


def _tube(fit: _Fit) -> Finding:
    model, costs = fit.model, float(fit.model.C) * fit.weight[fit.used]
    loss = BoxLoss(fit.numbers(), -costs, costs, float(model.epsilon), bool(model.fit_intercept))
    return of_box(fit.rows(model.dual_coef_.T), loss, float(model.intercept_[0]))


def _machine(fit: _Fit) -> Finding:
    model, loss, weight = fit.model, fit.model.loss_, fit.weight[fit.used]
    if isinstance(loss, OwnLoss):
        raise ParameterError(
            f"the loss {loss.name} is user-defined, and its conjugate is known only approximately, from below, so that "
            "no bound would be proven. Pass a model with a loss of mercer.losses."
        )
    if loss.targets == "signs":
        codes = fit.codes()
        weight, k = weight * model.class_weight_[codes], len(model.classes_)
        columns = [np.where(codes == number, 1.0, -1.0) for number in ([1] if k == 2 else range(k))]
    else:
        columns = [fit.numbers()]
        loss.check_targets(columns[0])
    problems = [(loss, column) for column in columns]
    return _of_losses(fit, problems, weight, float(model.alpha), intercept=bool(model.fit_intercept))


def _quantiles(fit: _Fit) -> Finding:
    model, targets = fit.model, fit.numbers()
    problems: list[tuple[Loss, Vector]] = [(Quantile(float(level)), targets) for level in model.quantiles_]
    finding = _of_losses(fit, problems, float(model.C) * fit.weight[fit.used], 1.0, intercept=True)
    if len(problems) > 1 or np.ndim(model.quantiles) == 0:
        return finding
    return replace(finding, bound=lambda X: finding.bound(X)[:, None])


def _of_losses(
    fit: _Fit, problems: Sequence[tuple[Loss, Vector]], weight: Vector, alpha: float, *, intercept: bool
) -> Finding:
    """One function for each loss with its targets, for the same rows and weights."""
    model, counts, parts = fit.model, weight > 0, []
    for number, (loss, targets) in enumerate(problems):
        rows = fit.rows(model.dual_coef_[[number]].T, counts, len(problems))
        risk = LossOfRows(loss, targets[counts], weight[counts], intercept)
        parts.append(of_loss(rows, risk, alpha, float(model.intercept_[number])))
    return joined(parts, "function")


_FINDINGS: dict[type, Callable[[_Fit], Finding]] = {
    KernelRidge: _ridge,
    KernelLogisticRegression: _logistic,
    SVC: _hinge,
    SVR: _tube,
    KernelMachine: _machine,
    KernelQuantileRegression: _quantiles,
}
