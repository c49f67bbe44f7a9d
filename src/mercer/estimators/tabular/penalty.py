"""The penalty of logistic regression with a given kernel, chosen by the log loss of folds of the rows."""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit, log_softmax

from mercer._types import Array, Positions, Vector
from mercer.gram import PrecomputedGram
from mercer.solvers.risk.log_loss import log_loss
from mercer.solvers.risk.logistic import LogisticSolver
from mercer.solvers.risk.logistic_problem import LogisticPoint, LogisticRisk

# Penalties are tried upwards in these steps, until two in a row make the loss larger.
_COSTS = tuple(10.0 ** (0.5 * step) for step in range(-2, 9))
_FOLDS = 5
# Where no row can be left out.
_DEFAULT = 10.0
_TOLERANCE = 1e-2


def choose_cost(K: Array, codes: Positions, n_jobs: int | None = None, *, weights: Vector | None = None) -> float:
    """The C of kernel logistic regression with the least log loss of left-out rows.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix of rows in random order, with a diagonal of 1.
    codes : ndarray of shape (n,)
        Numbers of their classes, all of which occur.
    n_jobs : int, optional
        Threads.
    weights : ndarray of shape (n,), optional
        How often each row counts.
    """
    weights = np.ones(len(codes)) if weights is None else weights
    folds = _folds(codes)
    if not (folds >= 0).any():
        return _DEFAULT
    gram = PrecomputedGram(K, finite=True)
    starts: list[LogisticPoint | None] = [None] * _FOLDS
    losses: list[float] = []
    for cost in _COSTS:
        loss = 0.0
        for fold in range(_FOLDS):
            rows = np.flatnonzero(folds == fold)
            losses_of_rows, starts[fold] = _left_out(gram, codes, rows, cost * weights, starts[fold], n_jobs)
            loss += float(weights[rows] @ losses_of_rows)
        losses.append(loss)
        if len(losses) > 2 and min(losses[-2:]) > losses[-3]:
            break
    return _COSTS[int(np.argmin(losses))]


def _folds(codes: Positions) -> Positions:
    """The fold of each row, the classes in equal shares; -1 for classes with too few rows to do without one."""
    folds = np.full(len(codes), -1)
    offset = 0
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        if len(rows) >= _FOLDS:
            folds[rows] = (np.arange(len(rows)) + offset) % _FOLDS
            offset += len(rows)
    return folds


def _left_out(
    gram: PrecomputedGram,
    codes: Positions,
    left_out: Positions,
    costs: Vector,
    start: LogisticPoint | None,
    n_jobs: int | None,
) -> tuple[Vector, LogisticPoint]:
    """The loss of rows (n_left_out,) by a fit to all others with ``costs`` (n,), and that fit."""
    rest = np.setdiff1d(np.arange(len(codes)), left_out)
    k = int(codes.max()) + 1
    loss = log_loss(codes[rest], costs[rest], k)
    problem = LogisticRisk(gram.restrict(rest, rest), loss)
    point = LogisticSolver(tol=_TOLERANCE, n_jobs=n_jobs).solve(problem, start).value
    values = gram.block(left_out, rest) @ point.weights + point.offset
    if k == 2:
        own = log_expit(np.where(codes[left_out] == 1, values[:, 0], -values[:, 0]))
    else:
        own = log_softmax(values, axis=1)[np.arange(len(left_out)), codes[left_out]]
    return -own, point
