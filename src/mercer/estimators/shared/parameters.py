"""Check parameters of estimators by name."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from sklearn.utils import check_random_state

from mercer._errors import ParameterError
from mercer.data.objects import short

if TYPE_CHECKING:
    from mercer.estimators.shared.base import KernelEstimator

# What a search without a grid chooses for any learner that has a score.
_SEARCHED = ("C", "alpha", "nu", "epsilon")


def require_number(
    learner: object, name: str, requirement: str, accepts: Callable[[float], bool], advice: str = ""
) -> None:
    """Raise unless the parameter ``name`` is a number that ``accepts`` allows; ``requirement`` is for the message.

    Raises
    ------
    ParameterError
        The message has the requirement, the value and the advice.
    """
    value = getattr(learner, name)
    if not isinstance(value, Real) or isinstance(value, bool) or not accepts(_as_float(value)):
        if isinstance(value, str) and value == "cv" and name in _SEARCHED and hasattr(learner, "score"):
            own = type(learner).__name__
            advice = f"'cv' is for SVC and SVR; KernelSearchCV({own}(...)) chooses {name} by folds for {own}."
        raise ParameterError(f"{name} must be {requirement}, but is {short(value)}." + (f" {advice}" if advice else ""))


def _as_float(value: Real) -> float:
    """NaN, which no requirement accepts, for a whole number of hundreds of digits."""
    try:
        return float(value)
    except OverflowError:
        return math.nan


def require_positive(learner: object, *names: str) -> None:
    """Raise unless the named parameters are finite numbers above 0."""
    for name in names:
        require_number(learner, name, "a finite number above 0", lambda value: 0 < value < float("inf"))


def require_whole(learner: object, name: str, requirement: str, least: int = 1) -> None:
    """Raise unless the parameter ``name`` is a whole number of at least ``least``."""
    value = getattr(learner, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least:
        raise ParameterError(f"{name} must be {requirement}, but is {short(value)}.")


def require_flags(learner: object, *names: str) -> None:
    """Raise unless the named parameters are True or False."""
    for name in names:
        require_choice(learner, name, (True, False))


def is_among(value: object, choices: Collection[Any]) -> bool:
    """Whether ``value`` is one of ``choices``; False for arrays and lists.

    Examples
    --------
    >>> is_among("gap", ("kkt", "gap")), is_among(["gap"], ("kkt", "gap"))
    (True, False)
    """
    return isinstance(value, Hashable) and value in choices


def require_choice(learner: object, name: str, choices: Collection[Any]) -> None:
    """Raise unless the parameter ``name`` is one of ``choices``.

    Raises
    ------
    ParameterError
        With the choices and the value.
    """
    value = getattr(learner, name)
    if not is_among(value, choices):
        *others, last = map(repr, choices)
        raise ParameterError(f"{name} must be {', '.join(others)} or {last}, but is {short(value)}.")


def require_slope(learner: KernelEstimator) -> None:
    """Raise unless the parameter ``slope`` is a number above 0 or ``"evidence"``.

    Raises
    ------
    ParameterError
        With the value.
    """
    slope = learner.slope
    if isinstance(slope, str) and slope == "evidence":
        return
    if not isinstance(slope, Real) or isinstance(slope, bool) or not 0 < float(slope) < float("inf"):
        raise ParameterError(f"slope must be a finite number above 0 or 'evidence', but is {short(slope)}.")


def require_seed(learner: KernelEstimator) -> None:
    """Raise unless the parameter ``random_state`` is a seed.

    Raises
    ------
    ParameterError
        With the value.
    """
    try:
        check_random_state(learner.random_state)
    except ValueError as error:
        raise ParameterError(
            f"random_state must be a whole number of 0 or more, a numpy RandomState or None, but is "
            f"{short(learner.random_state)}."
        ) from error
