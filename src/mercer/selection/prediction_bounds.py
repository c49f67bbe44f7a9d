"""Intervals of the predictions of the exact solution, from the duality gap of a fit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import expit

from mercer._types import Matrix, Positions, Vector
from mercer.estimators.kernel_logistic_regression import KernelLogisticRegression
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.estimators.svc import SVC
from mercer.estimators.svm.copies import tells_rows_apart
from mercer.estimators.svr import SVR
from mercer.selection.fold_rows import Fold, SearchData, take_rows
from mercer.solvers.ball import radius, shift_of_kinks, shift_of_slope

# Rounding of a sum of products with the weights, in units of the precision and of the sum of their sizes.
_ROUNDING = 8.0


class NoBoundError(Exception):
    """No bound is known; the message says why."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fit on one fold: the learner, its rows by positions of the search, and what it was fitted to."""

    model: Any
    rows: Callable[[Positions], Any]
    fold: Fold
    data: SearchData

    def squared_norms(self, positions: Positions) -> Vector:
        """Return k(x, x) of some rows, (m,)."""
        of_values = getattr(self.rows, "squared_norms", None)
        if of_values is not None:
            return np.asarray(of_values(positions), dtype=np.float64)
        kernel = self.model.kernel_
        if kernel is None:
            return np.asarray([self.data.X[p][p] for p in positions], dtype=np.float64)
        if tells_rows_apart(kernel):
            raise NoBoundError("the kernel has noise of each row, which predictions do not have")
        return np.asarray(kernel.diagonal(self.model.checked_rows(self.rows(positions))), dtype=np.float64)

    @property
    def targets(self) -> Any:
        """Of the training rows."""
        return np.asarray(take_rows(self.data.y, self.fold.train))

    @property
    def weight(self) -> Vector:
        """Of the training rows."""
        if self.data.weight is None:
            return np.ones(len(self.fold.train))
        return np.asarray(take_rows(self.data.weight, self.fold.train), dtype=np.float64)

    def reaches(self, positions: Positions) -> Vector:
        """Return the square roots of k(x, x), (m,)."""
        return np.sqrt(np.maximum(self.squared_norms(positions), 0.0))


Intervals = tuple[Matrix, Matrix]


def intervals(fitted: Fitted) -> Intervals:
    """Return the intervals of the values of the exact solution at the held-out rows of a fold.

    Returns
    -------
    lower, upper : ndarray of shape (m, f)
        Of f functions: one for two classes, positive for the second one; one for each pair of more classes, positive
        for its first; one for each target of a regression.

    Raises
    ------
    NoBoundError
        With the reason.
    """
    model = fitted.model
    bounds = None if model.is_on_landmarks else _BOUNDS.get(type(model))
    if bounds is None:
        raise NoBoundError(f"no bound of the predictions of {type(model).__name__} is known")
    certificate = model.certificate_
    if not certificate.convex:
        raise NoBoundError("the kernel is not positive semi-definite, so the problem is not convex")
    return bounds(fitted)


def _rounding(values: Matrix, mass: Vector, reach: Vector, most: float) -> Matrix:
    """The rounding of predictions that are sums over weights with the total size ``mass`` of each function."""
    precision = float(np.finfo(values.dtype).eps) if values.dtype.kind == "f" else 0.0
    return _ROUNDING * precision * (np.abs(values) + mass * (reach[:, None] * most))


def _sizes_of(model: Any) -> Vector:
    coefficients = model.dual_coef_
    dense = coefficients.toarray() if hasattr(coefficients, "toarray") else np.asarray(coefficients)
    return np.abs(dense)


def _of_svc(fitted: Fitted) -> Intervals:
    model, test = fitted.model, fitted.fold.test
    if not np.isfinite(model.C):
        raise NoBoundError("a hard margin has no dual bound")
    k, several = len(model.classes_), len(model.classes_) > 2
    codes = np.searchsorted(model.classes_, fitted.targets.ravel())
    cost = float(model.C) * np.maximum(fitted.weight, 0.0) * model.class_weight_[codes]
    margins = np.atleast_2d(model.margins_)
    at_train, at_test = fitted.reaches(fitted.fold.train), fitted.reaches(test)
    by_pair = copy.copy(model).set_params(decision_function_shape="ovo", break_ties=False) if several else model
    values = by_pair.decision_function(fitted.rows(test)).reshape(len(test), -1)
    lower, upper = np.empty((2, *values.shape))
    most, sizes = float(at_train.max(initial=0.0)), _sizes_of(model)
    ends = np.cumsum(model.n_support_)
    for number, (i, j) in enumerate(combinations(range(k), 2)):
        rows = np.flatnonzero(((codes == i) | (codes == j)) & (cost > 0))
        # The sign of this page: of two classes, positive means the second one.
        sign = np.where(codes[rows] == (i if several else j), 1.0, -1.0)
        margin = np.where(codes[rows] == i, margins[j - 1, rows], margins[i, rows])
        mass = _mass_of_pair(sizes, ends, i, j)
        certificate = model.certificates_[number]
        size = abs(certificate.primal) + abs(certificate.dual)
        r = radius(certificate.gap + _violated(certificate, mass) + _hidden(mass * most), size, is_pair=True)
        shift = (0.0, 0.0)
        if model.fit_intercept:
            # The loss of a row begins or ends where y = f.
            total = float(cost[rows][sign > 0].sum())
            shift = shift_of_kinks(sign * (1.0 - margin), cost[rows], total, r * at_train[rows])
        room = r * at_test + _rounding(values[:, [number]], np.array([mass]), at_test, most)[:, 0]
        lower[:, number], upper[:, number] = values[:, number] - room + shift[0], values[:, number] + room + shift[1]
    return lower, upper


def _mass_of_pair(sizes: Matrix, ends: Vector, i: int, j: int) -> float:
    """The sum of the sizes of the weights of a pair of classes."""
    first, second = slice(ends[i - 1] if i else 0, ends[i]), slice(ends[j - 1], ends[j])
    return float(sizes[j - 1, first].sum() + sizes[i, second].sum())


def _violated(certificate: Any, mass: float) -> float:
    """What the gap misses because a sum or a box is violated by rounding."""
    return float(max(certificate.violations.get("sum", 0.0), certificate.violations.get("box", 0.0))) * (1.0 + mass)


def _hidden(size: float) -> float:
    """The rounding of products of weights and kernel values in an objective of this size, squared."""
    return float(4.0 * np.finfo(np.float64).eps * size * size)


def _of_svr(fitted: Fitted) -> Intervals:
    model, train, test = fitted.model, fitted.fold.train, fitted.fold.test
    cost = float(model.C) * np.maximum(fitted.weight, 0.0)
    used = cost > 0
    at_train, at_test = fitted.reaches(train), fitted.reaches(test)
    most, mass = float(at_train.max(initial=0.0)), float(_sizes_of(model).sum())
    certificate = model.certificate_
    size = abs(certificate.primal) + abs(certificate.dual)
    r = radius(certificate.gap + _violated(certificate, mass) + _hidden(mass * most), size, is_pair=True)
    values = np.asarray(model.predict(fitted.rows(test)))[:, None]
    shift = (0.0, 0.0)
    if model.fit_intercept:
        at = np.asarray(model.predict(fitted.rows(train)), dtype=np.float64)[used]
        residual, tube = np.asarray(fitted.targets, dtype=np.float64).ravel()[used] - at, float(model.epsilon)
        reach = r * at_train[used] + _rounding(at[:, None], np.array([mass]), at_train[used], most)[:, 0]
        kinks, steps = np.concatenate([residual - tube, residual + tube]), np.tile(cost[used], 2)
        shift = shift_of_kinks(kinks, steps, float(cost[used].sum()), np.tile(reach, 2))
    room = (r * at_test)[:, None] + _rounding(values, np.array([mass]), at_test, most)
    return values - room + shift[0], values + room + shift[1]


def _of_ridge(fitted: Fitted) -> Intervals:
    model, train, test = fitted.model, fitted.fold.train, fitted.fold.test
    at_train, at_test = fitted.reaches(train), fitted.reaches(test)
    values = np.asarray(model.predict(fitted.rows(test)))
    values = values.reshape(len(test), -1)
    alpha = np.broadcast_to(np.asarray(model.alpha_, dtype=np.float64), values.shape[1])
    if not (alpha > 0).all():
        raise NoBoundError("without a penalty (alpha=0) the objective is not strongly convex")
    coefficients = np.asarray(model.dual_coef_).reshape(len(train), -1)
    targets = np.asarray(fitted.targets, dtype=np.float64).reshape(len(train), -1)
    # With the residual of the system, w is at most half of its length by the root of alpha from the best one. It is
    # known up to the rounding of its products.
    weight = np.maximum(fitted.weight, 0.0)
    length = np.linalg.norm(np.sqrt(weight)[:, None] * targets, axis=0)
    products = float(at_train @ at_train) * np.linalg.norm(coefficients, axis=0)
    noise = 4.0 * np.finfo(np.float64).eps * (length + np.sqrt(float(weight.max(initial=1.0))) * products)
    r = (model.certificate_.kkt_violation * length + noise) / (2.0 * np.sqrt(alpha))
    mass = np.abs(coefficients).sum(axis=0)
    room = at_test[:, None] * r + _rounding(values, mass, at_test, float(at_train.max(initial=0.0)))
    return values - room, values + room


def _of_logistic(fitted: Fitted) -> Intervals:
    model, train, test = fitted.model, fitted.fold.train, fitted.fold.test
    if len(model.classes_) > 2:
        raise NoBoundError("no bound of the offsets of several classes is known")
    codes = np.searchsorted(model.classes_, fitted.targets.ravel())
    cost = float(model.C) * fitted.weight * model.class_weight_[codes]
    at_train, at_test = fitted.reaches(train), fitted.reaches(test)
    certificate, most, mass = model.certificate_, float(at_train.max(initial=0.0)), float(_sizes_of(model).sum())
    size = abs(certificate.primal) + abs(certificate.dual)
    r = radius(certificate.gap + _hidden(mass * most), size)
    shift = (0.0, 0.0)
    if model.fit_intercept:
        at = np.asarray(model.decision_function(fitted.rows(train)), dtype=np.float64)
        reach = r * at_train + _rounding(at[:, None], np.array([mass]), at_train, most)[:, 0]

        def slope(change: Vector) -> float:
            return float(cost @ (expit(at + change) - codes))

        shift = shift_of_slope(slope, reach, float(cost.sum()))
    values = np.asarray(model.decision_function(fitted.rows(test)))[:, None]
    room = (r * at_test)[:, None] + _rounding(values, np.array([mass]), at_test, most)
    return values - room + shift[0], values + room + shift[1]


_BOUNDS: dict[type, Callable[[Fitted], Intervals]] = {
    SVC: _of_svc,
    SVR: _of_svr,
    KernelRidge: _of_ridge,
    KernelLogisticRegression: _of_logistic,
}
