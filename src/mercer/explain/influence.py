"""What leaving out each row of a fit does to predictions, in closed form."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.utils.validation import check_is_fitted

from mercer._errors import ParameterError
from mercer._types import Matrix, RowsLike, Vector
from mercer.data.objects import short
from mercer.engine import memory, threads
from mercer.estimators.gaussian.options import mean_functions
from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor
from mercer.estimators.kernel_ridge import KernelRidge
from mercer.gram import Gram
from mercer.solvers.linear import cholesky

# Matrices of all rows and the new ones that are in memory at once.
_COPIES = 4


def influence(model: Any, X: RowsLike | None = None) -> Matrix:
    r"""Return how the prediction for each row changes if a row of the fit is left out, without refits.

    For predictions :math:`f(x) = v(x)^\top y` that are linear in the targets, as those of kernel ridge regression with
    :math:`v(x) = (K + \alpha I)^{-1} k(X, x)` and of Gaussian processes,

    .. math:: f_{-i}(x) - f(x) = -v_i(x)\, (y_i - f_{-i}(x_i))

    exactly, with the prediction :math:`f_{-i}(x_i)` for the row that is left out. The kernel, the penalty and the noise
    are those of the fit.

    Parameters
    ----------
    model : KernelRidge or GaussianProcessRegressor
        Fitted to all rows.
    X : array-like of shape (m, d), or other rows, optional
        The rows to predict for; by default those of the fit. For ``kernel="precomputed"``, their kernel values with the
        rows of the fit, (m, n), which must be given.

    Returns
    -------
    ndarray of shape (m, n) or (m, n, n_targets)
        ``influence[j, i]`` is the prediction for row j of X by a fit without row i, minus the one by the fit to all. A
        positive number says that row i lowers the prediction. For integer weights one repetition of row i is left out;
        a row of weight 0 has no influence.

    Raises
    ------
    ParameterError
        If the model has no such formula, or was fitted over landmarks.
    MemoryBudgetError
        If the matrices of the rows do not fit the memory budget.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Notes
    -----
    With a mean function of a Gaussian process v contains its coefficients, and with ``normalize_y`` the mean of the
    targets also changes. The cost is that of a prediction for X with deviations.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), section 5.4.2. R. D. Cook,
    "Detection of influential observation in linear regression", Technometrics 19 (1977).

    Examples
    --------
    >>> from mercer import KernelRidge
    >>> from mercer.explain import influence
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], np.array([0.0, 1.0, 2.0, 9.0])
    >>> model = KernelRidge(1.0, kernel="rbf").fit(X, y)
    >>> changes = influence(model, [[2.5]])
    >>> refit = KernelRidge(1.0, kernel=model.kernel_).fit(X[:3], y[:3])
    >>> np.allclose(changes[:, 3], refit.predict([[2.5]]) - model.predict([[2.5]]))
    True
    """
    if not isinstance(model, (KernelRidge, GaussianProcessRegressor)):
        raise ParameterError(
            f"influence is known in closed form for KernelRidge and GaussianProcessRegressor, and not for "
            f"{short(model)}. For SVC, SVR and others, mercer.selection.leave_one_out predicts each row without itself."
        )
    check_is_fitted(model)
    if model.is_on_landmarks:
        raise ParameterError(
            f"this {type(model).__name__} was fitted with approximation='nystroem' and keeps its landmarks alone; fit "
            "it to all rows for influence."
        )
    if X is None and model.kernel_ is None:
        raise ParameterError("the rows of a precomputed kernel matrix are not stored; pass X, their kernel values.")
    with threads.workers(model.n_jobs):
        if isinstance(model, KernelRidge):
            rows = model.X_fit_ if X is None else model._new_rows(X)
            return _of_ridge(model, rows)
        rows = model.X_train_ if X is None else model._new_rows(X)
        return _of_process(model, rows)


def _reserved(n: int, m: int, targets: int) -> Any:
    nbytes = 8 * _COPIES * n * (m + n) + 8 * n * m * targets
    return memory.reserve(nbytes, "the influence of each row of the fit", "Pass fewer rows X at a time.")


def _cross(model: Any, fitted: Any, rows: Any) -> Matrix:
    """Kernel values of the rows of the fit and new rows, (n, m)."""
    if model.kernel_ is None:
        return np.ascontiguousarray(np.asarray(rows, dtype=np.float64).T)
    functions = model._expansion
    return np.asarray(Gram(functions.kernel, fitted, rows, dtype=np.float64, n_jobs=model.n_jobs).dense())


def _of_ridge(model: KernelRidge, rows: Any) -> Matrix:
    n, m, several = len(model.y_fit_), rows.shape[0], model.y_fit_.shape[1:]
    targets = several[0] if several else 1
    weights = np.ones(n) if model.sample_weight_fit_ is None else model.sample_weight_fit_
    # The share of a row that is left out: all of it, or one of its repetitions.
    share = np.divide(np.minimum(weights, 1.0), weights, out=np.zeros(n), where=weights > 0)
    alphas = np.broadcast_to(np.asarray(model.alpha_, dtype=np.float64), (targets,))
    with _reserved(n, m, targets):
        errors = (model.y_fit_ - model.loo_predictions_).reshape(n, -1) * share[:, None]
        cross = _cross(model, model.X_fit_, rows)
        changes = np.zeros((m, n, targets))
        for alpha in np.unique(alphas):
            mine = alphas == alpha
            changes[:, :, mine] = -_smoother(model, float(alpha), cross).T[:, :, None] * errors[:, mine]
    return changes if several else changes[:, :, 0]


def _smoother(model: KernelRidge, alpha: float, cross: Matrix) -> Matrix:
    """``(K + alpha W^-1)^-1 k(X, x)``, (n, m); 0 for rows without a weight."""
    targets = 1 if model.y_fit_.ndim == 1 else model.y_fit_.shape[1]
    used, system = model._system(np.full(targets, alpha), model.certificate_.convex)
    system = dataclasses.replace(system, targets=cross[used], shifts=np.full(cross.shape[1], alpha))
    V = np.zeros_like(cross)
    V[used] = cholesky.solve(system, n_jobs=model.n_jobs).value
    return V


def _of_process(model: GaussianProcessRegressor, rows: Any) -> Matrix:
    n, m, several = len(model.alpha_), rows.shape[0], model.y_train_.shape[1:]
    targets = model.y_train_.reshape(n, -1)
    with _reserved(n, m, targets.shape[1]):
        left_out = model._posterior.leave_one_out(targets)
        errors = (targets - left_out.mean) * np.ravel(model._y_scale)
        V = _means(model, rows)
        changes = -V.T[:, :, None] * errors
        if model.normalize_y and model.mean == "zero":
            changes += _of_moved_mean(model, V)
    return changes if several else changes[:, :, 0]


def _means(model: GaussianProcessRegressor, rows: Any) -> Matrix:
    """The weights of the targets in the means of new rows, (n, m).

    With basis functions H, ``A^-1 (k - H b)`` with ``b = G^-1 (H^T A^-1 k - h)`` and ``G = H^T A^-1 H``.
    """
    factor = np.ascontiguousarray(model.L_), True
    cross = _cross(model, model.X_train_, rows)
    H, h = (mean_functions(model.mean, X, model._center) for X in (model.X_train_, rows))
    if H is None or h is None:
        return np.asarray(scipy.linalg.cho_solve(factor, cross))
    solved = scipy.linalg.cho_solve(factor, H)
    coefficients = np.linalg.lstsq(H.T @ solved, solved.T @ cross - h.T, rcond=None)[0]
    return np.asarray(scipy.linalg.cho_solve(factor, cross - H @ coefficients))


def _of_moved_mean(model: GaussianProcessRegressor, V: Matrix) -> Matrix:
    """Without a row the mean of the targets changes, to which predictions far from all rows return."""
    n = len(V)
    if n < 2:
        return np.zeros((V.shape[1], n, 1))
    targets = model.y_train_.reshape(n, -1) * np.ravel(model._y_scale)
    moves = -targets / (n - 1)
    factor = np.ascontiguousarray(model.L_), True
    inverse = scipy.linalg.cho_solve(factor, np.eye(n))
    # The weights without row i are V - V_i A^-1[:, i] / A^-1[i, i], and what they sum to is not lost.
    sums: Vector = V.sum(axis=0)[:, None] - V.T * (inverse.sum(axis=0) / np.diag(inverse))
    return (1.0 - sums)[:, :, None] * moves
