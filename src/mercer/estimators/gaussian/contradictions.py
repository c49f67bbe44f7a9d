"""Warn of targets that the model cannot explain: far from their predictions, beside the deviations that it states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from mercer._errors import MercerWarning, warn_user
from mercer._types import Array, CheckedRows, Matrix, Vector
from mercer.data.objects import short

if TYPE_CHECKING:
    from mercer.estimators.gaussian_process_regressor import GaussianProcessRegressor

# Standard deviations: more than any of a million residuals has if the noise is as stated.
_FAR = 10.0
# Root mean square, of all: 95 % intervals then hold half of the targets.
_FAR_IN_ALL = 3.0


class ContradictionWarning(MercerWarning, ConvergenceWarning):
    """Targets contradict the noise that is stated, so that rounding decides where a search ends, or all deviations."""


def warn_of_contradictions(model: GaussianProcessRegressor, X: CheckedRows, variances: Vector) -> None:
    """Warn if a target is missed by many standard deviations of the noise, whose variances in the rows are (n,).

    The residual of row i is ``variances_i alpha_i``. If the model holds, ``sqrt(variances_i) alpha_i`` is normal with a
    variance below 1; else the log evidence is of the size of its square, and rounding decides it.
    """
    alpha = model.alpha_.reshape(len(variances), -1)
    size = np.abs(alpha).max(axis=1) * np.sqrt(variances)
    row = int(np.argmax(size))
    if not size[row] > _FAR:
        _warn_of_scale(model, alpha)
        return
    miss = np.abs(variances[row] * alpha[row] * model._y_scale).max()
    why = _equal_rows(model, X, variances, row) or (
        f"the function that fits best misses the target of row {row} by {miss:.3g}"
    )
    warn_user(
        f"GaussianProcessRegressor: {why}, which noise of the variance {variances[row]:.3g} does not explain. The log "
        f"evidence, {model.log_marginal_likelihood_value_:.6g}, is then decided by rounding, and so is where a search "
        "ends. Pass noise=0.1, from where the variance of the noise is searched, or raise alpha.",
        ContradictionWarning,
    )


def _warn_of_scale(model: GaussianProcessRegressor, alpha: Matrix) -> None:
    """Warn if targets are far from their predictions as a whole, in units of the deviations that are stated.

    With the factor L of the covariance, entry i of ``inv(L) (y - mean)`` is the error of the prediction of row i by
    those before it, divided by its deviation, and ``(y - mean).T alpha`` is the sum of their squares.
    """
    n = len(alpha)
    ratio = float((model.y_train_.reshape(n, -1) * alpha).sum(axis=0).max()) / n
    if ratio > _FAR_IN_ALL**2:
        warn_user(
            f"GaussianProcessRegressor: the targets are {np.sqrt(ratio):.3g} times as far from their predictions by "
            "other rows as the model states, so its deviations are too small. Multiply the kernel by "
            f"Constant({ratio:.3g}), which a search then improves.",
            ContradictionWarning,
        )


def _equal_rows(model: GaussianProcessRegressor, X: CheckedRows, variances: Vector, row: int) -> str:
    """Name a row that equals ``row`` for the kernel, as far as the noise goes, but not in its target."""
    if model.mean == "linear":
        # Then rows that are equal for the kernel may differ.
        return ""
    targets = model.y_train_.reshape(len(variances), -1)
    noise = variances + variances[row]
    gap = np.where(_distances(model, X, row) <= noise, np.abs(targets - targets[row]).max(axis=1), 0.0)
    other = int(np.argmax(gap / np.sqrt(noise)))
    if gap[other] <= _FAR * np.sqrt(noise[other]):
        return ""
    one, two = sorted((row, other))
    name = "the kernel" if model.kernel_ is None else repr(model.kernel_)
    target, of_two = (short(_given(model, targets[i]).tolist()) for i in (one, two))
    return (
        f"equal rows have different targets: rows {one} and {two} are equal for {name}, and have the targets {target} "
        f"and {of_two}"
    )


def _distances(model: GaussianProcessRegressor, X: CheckedRows, row: int) -> Vector:
    """The squared distances of a row to all, in the feature space of the kernel."""
    if model.kernel_ is None:
        matrix: Matrix = np.asarray(X)
        diagonal, values = matrix.diagonal(), matrix[row]
    else:
        diagonal, values = model.kernel_.diagonal(X), model.kernel_(X[row : row + 1], X)[0]
    distances = diagonal + diagonal[row] - 2.0 * values
    # What is rounding alone is 0.
    return np.where(distances <= 1e-12 * (diagonal + diagonal[row]), 0.0, distances)


def _given(model: GaussianProcessRegressor, target: Vector) -> Array:
    """A row of targets in the units of y."""
    return np.asarray(target * model._y_scale + model._y_mean).round(10).squeeze()
