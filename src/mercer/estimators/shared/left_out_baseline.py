"""Warn if a model predicts left-out rows worse than the mean of the other rows.

A model without an offset may interpolate its own rows, whatever their mean, and tend to zero between them. Its
errors on its own rows do not show that; the exact leave-one-out errors do.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import MemoryBudgetError, MercerWarning, NumericalError, warn_user
from mercer._types import Matrix, Positions, Vector
from mercer.estimators.shared.baseline import (
    EQUAL,
    no_offset_remedy,
    warn_if_worse_than_constant,
    warn_if_worse_than_mean,
)
from mercer.gram.hold import fits
from mercer.gram.protocol import GramMatrix
from mercer.solvers.linear import cholesky
from mercer.solvers.linear.leave_one_out import leave_one_out
from mercer.solvers.linear.linear_system import LinearSystem
from mercer.solvers.risk.regularized_risk import RegularizedRisk
from mercer.solvers.risk.values import RiskValue

# The square of a mean beside the variance from which on a model without an offset may be worse than the mean.
_LARGE = 1.0
# The relative error of leave-one-out errors of n rows is about 1 / sqrt(n); so many times that is a difference.
_DEVIATIONS = 2.0
# Rows that show cheaply whether the errors of all are worth computing.
_SAMPLE = 256
# With fewer rows there is no warning.
_FEWEST = 10
_HELD_OUT = 0.2


def has_large_offset(y: Vector, weight: Vector | None = None) -> bool:
    """Whether the mean of a target, in ``y`` (n,) or (n, t), is more than one standard deviation from zero.

    Examples
    --------
    >>> has_large_offset(np.array([-1.0, 2.0])), has_large_offset(np.array([9.0, 11.0]))
    (False, True)
    """
    targets = y.reshape(len(y), -1)
    unit = np.maximum(np.abs(targets).max(axis=0), np.finfo(float).tiny)
    mean = np.average(targets / unit, axis=0, weights=weight)
    spread = np.average((targets / unit - mean) ** 2, axis=0, weights=weight)
    return bool((mean**2 > _LARGE * spread).any())


def mean_left_out_squares(targets: Matrix, weight: Vector | None) -> Vector:
    r"""Mean squared error of the mean of all other observations, for every column of ``targets`` (n, t).

    .. math:: \frac1N \sum_i w_i \Bigl(\frac{N (y_i - \bar y)}{N - \min(1, w_i)}\Bigr)^2, \qquad N = \sum_i w_i

    Examples
    --------
    >>> mean_left_out_squares(np.array([[1.0], [2.0], [3.0]]), None)
    array([1.5])
    """
    w = np.ones(len(targets)) if weight is None else np.asarray(weight, dtype=np.float64)
    share = w / w.max()
    total = share.sum()
    left = np.minimum(1.0 / w.max(), share) / total
    share = share / total
    with np.errstate(divide="ignore", over="ignore"):
        squares: Vector = share @ ((targets - share @ targets) / (1.0 - left)[:, None]) ** 2
    return squares


def warn_if_left_out_is_worse(learner: str, y: Vector, squares: Vector, weight: Vector | None, remedy: str) -> None:
    """Warn if ``squares`` (t,), a model's mean squared leave-one-out errors, are clearly above those of the mean of y.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_if_left_out_is_worse("Model", np.arange(4.0), np.array([80.0]), None, "Center y.")
    >>> print(caught[0].message)
    Model: the mean squared error on left-out rows is 80, but that of the mean of the others is only 2.22. Center y.
    """
    worse = _worse(y, squares, weight)
    if not len(worse):
        return
    j = int(worse[0])
    mean = mean_left_out_squares(y.reshape(len(y), -1), weight)[j]
    which = "" if len(squares) == 1 else f" for column {j} of y"
    warn_user(
        f"{learner}: the mean squared error on left-out rows{which} is {squares[j]:.3g}, but that of the mean of the "
        f"others is only {mean:.3g}. {remedy}",
        MercerWarning,
    )


def _worse(y: Vector, squares: Vector, weight: Vector | None) -> NDArray[np.intp]:
    """Return the targets for which ``squares`` are clearly above those of the mean."""
    if len(y) < 2:
        return np.empty(0, dtype=np.intp)
    targets = y.reshape(len(y), -1)
    bound = (1.0 + _DEVIATIONS / np.sqrt(len(y))) * mean_left_out_squares(targets, weight)
    used = targets if weight is None else targets[np.asarray(weight) > 0]
    share = np.where(np.ptp(used, axis=0) == 0, EQUAL, 1e3 * np.finfo(float).eps)
    return np.flatnonzero(squares > bound + (share * np.abs(targets).max(axis=0)) ** 2)


def warn_if_ridge_is_worse(
    learner: str, system: LinearSystem, coefficients: Matrix, squares: Vector | None, *, n_jobs: int | None = None
) -> None:
    """Warn if the solution of a ridge system is worse than the mean, on its own rows or on rows that are left out.

    ``squares`` (k,) are the mean squared leave-one-out errors if they are known. For None they are computed only where
    the mean of a target is large beside its deviation, and a sample of the rows shows that they may be bad.
    """
    y, weight = np.asarray(system.targets), None if system.weights is None else np.asarray(system.weights)
    if warn_if_ridge_is_worse_on_own_rows(learner, system, coefficients):
        return
    if squares is None and has_large_offset(y, weight):
        squares = _suspicious_squares(system, coefficients, n_jobs)
    if squares is not None:
        warn_if_left_out_is_worse(learner, y, squares, weight, no_offset_remedy(y))


def warn_if_ridge_is_worse_on_own_rows(learner: str, system: LinearSystem, coefficients: Matrix) -> bool:
    """Warn if the solution of a ridge system is worse than the mean on its own rows; return whether it warned."""
    y, weight = np.asarray(system.targets), None if system.weights is None else np.asarray(system.weights)
    # Of the system (K + mu / w) c = y.
    shrunk = coefficients * np.asarray(system.shifts) / (1.0 if weight is None else weight[:, None])
    return warn_if_worse_than_mean(learner, y, y - shrunk, weight, no_offset_remedy(y))


def warn_if_risk_is_worse(learner: str, problem: RegularizedRisk, solution: RiskValue, n_jobs: int | None) -> None:
    """Warn if a kernel machine for numbers is worse than a constant; for the squared loss, as for ridge.

    There is no warning for losses of labels, where only the sign counts.
    """
    loss, y, weight = problem.loss, np.asarray(problem.targets), np.asarray(problem.weights)
    if loss.targets == "signs":
        return
    values = solution.Kc + solution.b
    offset = problem.intercept
    remedy = "Raise or lower alpha, or scale the columns of X."
    if not offset:
        mean = float(np.average(y, weights=weight))
        remedy = f"The model has no offset, but y has the mean {mean:.3g}: pass fit_intercept=True. {remedy}"
    if loss.name != "squared":
        warn_if_worse_than_constant(learner, loss, y, values, weight, remedy)
        return
    if warn_if_worse_than_mean(learner, y, values, weight, remedy) or offset or not np.isfinite(solution.lam):
        return
    if has_large_offset(y, weight):
        system = LinearSystem(problem.gram, y[:, None], [solution.lam], weight, problem.convex)
        squares = _suspicious_squares(system, solution.c[:, None], n_jobs)
        if squares is not None:
            warn_if_left_out_is_worse(learner, y, squares, weight, remedy)


def _suspicious_squares(system: LinearSystem, coefficients: Matrix, n_jobs: int | None) -> Vector | None:
    """Return the mean squared leave-one-out errors; None if even a sample of the rows gives no reason for a warning.

    Also None if the errors cannot be computed: the matrix is singular to working precision, or its inverse does not fit
    the memory budget. A check must not make a finished fit fail.
    """
    n = system.shape[0]
    if not fits(8 * n * n):
        return None
    # Another thread may take the free memory before the inverse reserves it.
    with suppress(NumericalError, MemoryBudgetError):
        if n > _SAMPLE:
            sample = _sample(system)
            squares = _left_out_squares(sample, cholesky.solve(sample, n_jobs=n_jobs).value, n_jobs)
            weight = None if sample.weights is None else np.asarray(sample.weights)
            if not len(_worse(np.asarray(sample.targets), squares, weight)):
                return None
        return _left_out_squares(system, coefficients, n_jobs)
    return None


def _sample(system: LinearSystem) -> LinearSystem:
    rows = np.sort(np.random.default_rng(0).choice(system.shape[0], _SAMPLE, replace=False))
    gram: Any = system.gram
    weights = None if system.weights is None else np.asarray(system.weights)[rows]
    return LinearSystem(
        gram.restrict(rows, rows), np.asarray(system.targets)[rows], system.shifts, weights, system.convex
    )


def _left_out_squares(system: LinearSystem, coefficients: Matrix, n_jobs: int | None) -> Vector:
    errors = np.asarray(system.targets) - leave_one_out(system, coefficients, n_jobs=n_jobs)
    weight = None if system.weights is None else np.asarray(system.weights)
    with np.errstate(over="ignore"):
        squares: Vector = np.average(errors**2, axis=0, weights=weight)
    return squares


def warn_if_held_out_is_worse(
    learner: str, gram: GramMatrix, y: Matrix, weight: Vector, fit: Callable[[Positions], Matrix], remedy: str
) -> None:
    """Warn if a model of four fifths of the rows predicts the others worse than the mean of the four fifths.

    First of 256 rows; only where it is worse there, which a fit that has less to learn from may be, of all.

    Parameters
    ----------
    learner : str
        Its name.
    gram : GramMatrix
        K on the rows of the fit, (n, n).
    y : ndarray of shape (n, t)
        Targets.
    weight : ndarray of shape (n,)
    fit : callable
        Gives the coefficients (m, t) of a fit to the rows of some positions (m,).
    remedy : str
        Ends the message.
    """
    n = len(y)
    if n < _FEWEST:
        return
    order = np.random.default_rng(0).permutation(n)
    worse: tuple[int, float, float] | None = None
    # A check must not make a finished fit fail.
    with suppress(MemoryBudgetError):
        for count in sorted({min(n, _SAMPLE), n}):
            n_out = int(np.ceil(_HELD_OUT * count))
            others, training = np.sort(order[:n_out]), np.sort(order[n_out:count])
            worse = _held_out_worse(gram, y, weight, others, training, fit(training))
            if worse is None:
                return
    if worse is None:
        return
    column, squares, spread = worse
    which = "" if y.shape[1] == 1 else f" for column {column} of y"
    warn_user(
        f"{learner}: fitted to four fifths of its rows, it has the mean squared error {squares:.3g}{which} on the "
        f"others, but the mean of the four fifths has only {spread:.3g}. {remedy}",
        MercerWarning,
    )


def _held_out_worse(
    gram: GramMatrix, y: Matrix, weight: Vector, others: Positions, training: Positions, coefficients: Matrix
) -> tuple[int, float, float] | None:
    """Return the first target with a worse prediction than the mean, and both mean squared errors; None if none."""
    errors = y[others] - np.asarray(gram.restrict(others, training) @ coefficients, dtype=np.float64)
    constant = y[others] - np.average(y[training], axis=0, weights=weight[training])
    with np.errstate(over="ignore"):
        squares = np.average(errors**2, axis=0, weights=weight[others])
        spread = np.average(constant**2, axis=0, weights=weight[others])
    rounding = (1e3 * np.finfo(float).eps * np.abs(y).max(axis=0)) ** 2
    worse = np.flatnonzero(squares > (1.0 + _DEVIATIONS / np.sqrt(len(others))) * spread + rounding)
    return (int(worse[0]), float(squares[worse[0]]), float(spread[worse[0]])) if len(worse) else None
