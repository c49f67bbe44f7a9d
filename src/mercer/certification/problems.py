"""The problem that a learner poses on its data, and the certificate of given coefficients for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer.certification import evaluate
from mercer.certification.given import Given
from mercer.estimators.kernel_logistic_regression import KernelLogisticRegression
from mercer.estimators.kernel_machine import KernelMachine
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.estimators.one_class_svm import OneClassSVM
from mercer.estimators.shared.certificates import joined
from mercer.estimators.shared.labels import check_labels, class_factors, encoded
from mercer.estimators.shared.weights import check_sample_weight, check_svm_weight, fit_weighted_kernel
from mercer.estimators.svc import SVC
from mercer.estimators.svm.single_expansion import check_cost
from mercer.estimators.svm.solvers import check_solver
from mercer.estimators.svr import SVR
from mercer.solvers.risk.log_loss import log_loss
from mercer.solvers.risk.logistic_problem import LogisticRisk
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.solution import Certificate
from mercer.solvers.svm.box_qp import BoxQP
from mercer.solvers.svm.pair_answers import PairLayout


def of_svc(learner: SVC, X: Any, y: Any, sample_weight: Any, given: Given) -> Certificate:
    """A certificate of all pairs of classes, whose objectives are summed."""
    X, data, _ = learner._prepare(X, y, sample_weight)
    bounds = learner._bounds(data)
    if np.isinf(bounds).any():
        raise ParameterError("C=inf means a hard margin, which has no dual bound; pass a finite C.")
    k, n = len(data.names), X.shape[0]
    weight = np.zeros(n)
    weight[data.rows] = data.weight
    # As in scikit-learn, positive stands for the second of two classes, and for the first of a pair of several.
    sign = -1.0 if k == 2 else 1.0
    A = sign * given.weights(k - 1, n, weight)[:, data.rows]
    layout = PairLayout(data.sizes)
    offsets = given.offsets(layout.pairs, allowed=learner._has_intercept)
    gram, convex = learner._class_gram(X, data)
    certificates = []
    for i in range(k):
        for j in range(i + 1, k):
            rows = layout.rows((i, j))
            y_pair = np.where(data.codes[rows] == i, 1.0, -1.0)
            problem = BoxQP.classification(
                gram.restrict(rows, rows), y_pair, bounds[rows], intercept=learner._has_intercept, convex=convex
            )
            b = None if offsets is None else sign * float(offsets[layout.number(i, j)])
            certificates.append(evaluate.of_box(problem, layout.take(A, (i, j)), b))
    return joined(certificates)


def of_svr(learner: SVR, X: Any, y: Any, sample_weight: Any, given: Given) -> Certificate:
    check_solver(learner)
    check_cost(learner)
    X, y = learner._check_X_and_numbers(X, y)
    return _of_expansion(learner, X, y, sample_weight, given, bool(learner.fit_intercept))


def of_one_class(learner: OneClassSVM, X: Any, y: Any, sample_weight: Any, given: Given) -> Certificate:
    check_solver(learner)
    X = learner._check_X(X, reset=True)
    return _of_expansion(learner, X, np.zeros(X.shape[0]), sample_weight, given, True)


def _of_expansion(
    learner: SVR | OneClassSVM, X: Any, targets: Any, sample_weight: Any, given: Given, intercept: bool
) -> Certificate:
    weight = check_svm_weight(sample_weight, X)
    beta = given.weights(1, X.shape[0], weight)[0]
    offsets = given.offsets(1, allowed=intercept)
    used = np.flatnonzero(weight)
    gram, convex = _gram(learner, X, used, weight, intercept)
    problem = learner._problem(gram, targets[used], weight[used], convex)
    return evaluate.of_box(problem, beta[used], None if offsets is None else float(offsets[0]))


def of_ridge(learner: KernelRidge, X: Any, y: Any, sample_weight: Any, given: Given) -> Certificate:
    if isinstance(learner.alpha, str):
        raise ParameterError(
            f"alpha={learner.alpha!r} has the penalty chosen by a fit; pass the number that was chosen (alpha_)."
        )
    rows, system = learner._state_problem(X, y, sample_weight)
    targets, n = system.shape[1], len(learner.y_fit_)
    given.offsets(targets, allowed=False)
    # One row of coefficients for each target, where the learner has a column.
    across = replace(given, dual_coef=np.asarray(given.dual_coef).T)
    weight = np.zeros(n)
    weight[rows] = 1.0
    return evaluate.of_system(system, across.weights(targets, n, weight)[:, rows].T)


def of_logistic(learner: KernelLogisticRegression, X: Any, y: Any, sample_weight: Any, given: Given) -> Certificate:
    learner._check_parameters()
    X = learner._check_X(X, reset=True)
    y, weight = check_labels("KernelLogisticRegression", y, X.shape[0]), check_sample_weight(sample_weight, X)
    used = np.flatnonzero(weight)
    classes, codes = encoded("KernelLogisticRegression", y, used)
    outputs, intercept = 1 if len(classes) == 2 else len(classes), bool(learner.fit_intercept)
    A = given.weights(outputs, X.shape[0], weight)[:, used].T
    offsets = given.offsets(outputs, allowed=intercept)
    gram, convex = _gram(learner, X, used, weight, intercept)
    factors = class_factors(learner.class_weight, classes, codes, weight[used])
    cost = float(learner.C) * weight[used] * factors[codes]
    problem = LogisticRisk(gram, log_loss(codes, cost, len(classes)), intercept, convex)
    return evaluate.of_logistic(problem, np.ascontiguousarray(A), offsets)


def of_machine(learner: KernelMachine, X: Any, y: Any, sample_weight: Any, given: Given) -> Certificate:
    loss, penalty = learner._check_parameters()
    X, columns, weights, weight = learner._check_data(loss, X, y, sample_weight)
    intercept = bool(learner.fit_intercept)
    used = np.flatnonzero(weight)
    C = given.weights(len(columns), X.shape[0], weight)[:, used]
    offsets = given.offsets(len(columns), allowed=intercept)
    gram, convex = _gram(learner, X, used, weight, False)
    return joined(
        [
            evaluate.of_risk(
                RegularizedRisk(gram, loss, targets, w, penalty, float(learner.alpha), intercept, convex),
                c,
                None if offsets is None else float(offsets[k]),
            )
            for k, (targets, w, c) in enumerate(zip(columns, weights, C, strict=True))
        ]
    )


def _gram(learner: Any, X: Any, used: Any, weight: Any, intercept: bool) -> tuple[Any, bool]:
    """The kernel matrix of the rows that count, in float64, and whether the problem on it is convex."""
    fit_weighted_kernel(learner, X, weight, intercept=intercept)
    gram = learner._gram(X, dtype=None if learner.kernel_ is None else np.float64)
    if len(used) < X.shape[0]:
        gram = gram.restrict(used, used)
    return gram, learner._is_convex(gram, used, X.dtype, intercept=intercept)
