"""Penalties of ridge regression as users give them: numbers, or the criterion that chooses one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Vector
from mercer.data.objects import short
from mercer.solvers.linear.penalty_path import CRITERIA, Criterion

# Left-out errors of fewer rows are as often least for a model that is worse than the mean of the targets.
_ENOUGH_ROWS = 6


def criterion_of(alpha: Any) -> Criterion | None:
    """Return the criterion that chooses the penalty; None if ``alpha`` is the penalty itself.

    Raises
    ------
    ParameterError
        If no criterion has that name.
    """
    if not isinstance(alpha, str):
        return None
    criterion = next((name for name in CRITERIA if name == alpha), None)
    if criterion is None:
        raise ParameterError(
            f"alpha must be a number, one for each target, 'loo', 'gcv' or 'evidence', but is {short(alpha)}."
        )
    return criterion


def warn_if_few(learner: str, criterion: Criterion, n: int) -> None:
    """Warn if a penalty is to be chosen by so few rows that the choice is luck."""
    if n < _ENOUGH_ROWS:
        warn_user(
            f"{learner}: alpha={criterion!r} chooses the penalty by {n} row{'s' if n > 1 else ''}, which is too few: "
            "the choice is luck, and predictions may be worse than the mean of the targets. Pass alpha as a number, or "
            f"{_ENOUGH_ROWS} rows or more.",
            MercerWarning,
        )


def choices_of(alpha: Any, alphas: Any) -> Vector | None:
    """Return the penalties to choose from; None for any.

    Raises
    ------
    ParameterError
        If they are not penalties, or ``alpha`` is one already.
    """
    if alphas is None:
        return None
    if not isinstance(alpha, str):
        raise ParameterError(
            f"alphas are penalties to choose from, but alpha={short(alpha)} is already chosen; pass alpha='loo', "
            "'gcv' or 'evidence', or leave out alphas."
        )
    return check_penalties(alphas)


def penalties_of(alpha: Any, n_targets: int) -> Vector:
    """Return the penalty of every target, (n_targets,).

    Raises
    ------
    ParameterError
        If they are not numbers, their number is wrong, or one is negative or not finite.

    Examples
    --------
    >>> penalties_of(0.5, 2)
    array([0.5, 0.5])
    """
    try:
        values = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"alpha must be a number or one for each target, but is {short(alpha)}.") from error
    if values.ndim > 1 or values.size not in (1, n_targets):
        raise ParameterError(
            f"alpha must be one number or one for each of the {n_targets} targets, but has the shape {values.shape}."
        )
    wrong = values[~(np.isfinite(values) & (values >= 0))]
    if wrong.size:
        raise ParameterError(f"alpha must be finite and at least 0, but is {wrong.flat[0]}.")
    return np.broadcast_to(values.ravel(), n_targets) if values.size == 1 else values


def check_penalties(alphas: Any) -> Vector:
    """Penalties to choose from, as an array of one dimension.

    Raises
    ------
    ParameterError
        If no penalty is given, or one is negative or not finite.

    Examples
    --------
    >>> check_penalties([1, 10])
    array([ 1., 10.])
    """
    try:
        penalties = np.asarray(alphas, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"alphas must be numbers, but is {short(alphas)}.") from error
    if penalties.ndim != 1 or not penalties.size:
        raise ParameterError(f"alphas must be a list of one number or more, but has the shape {penalties.shape}.")
    wrong = penalties[~(np.isfinite(penalties) & (penalties >= 0))]
    if wrong.size:
        raise ParameterError(f"alphas must be finite and at least 0, and one is {wrong[0]}.")
    return penalties
