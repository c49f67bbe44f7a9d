"""User-defined losses: any object with ``value(y, f)`` and ``gradient(y, f)``."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.losses.loss import Loss, Targets, require

# Where a gradient is taken for its limit.
_FAR = 1e8
_TARGETS: tuple[Targets, ...] = get_args(Targets)


class OwnLoss(Loss):
    r"""A user-defined loss; whatever the object does not provide is computed from its gradient.

    Parameters
    ----------
    given : object
        An object with ``value(y, f)`` and ``gradient(y, f)``, which take and return arrays. Also used, if present:
        ``curvature(y, f)``, which declares the gradient continuous; ``prox(y, v, step)``; ``conjugate(y, u)``;
        ``slopes(y)``; ``response(f)``; ``targets``, one of ``"signs"``, ``"numbers"`` and ``"counts"``; ``name``;
        ``step_bound``, a bound on the second derivative, from which stochastic learners choose their step length.

    Raises
    ------
    ParameterError
        If the object lacks ``value`` or ``gradient``, or ``targets`` is not one of the three.

    Examples
    --------
    >>> class LogCosh:
    ...     def value(self, y, f):
    ...         return np.logaddexp(f - y, y - f) - np.log(2)
    ...
    ...     def gradient(self, y, f):
    ...         return np.tanh(f - y)
    >>> loss = OwnLoss(LogCosh())
    >>> loss.smooth, loss.prox(np.zeros(1), np.array([1.0]), 1.0).round(6)
    (False, array([0.521298]))
    """

    def __init__(self, given: Any) -> None:
        missing = [part for part in ("value", "gradient") if not callable(getattr(given, part, None))]
        if missing:
            raise ParameterError(
                f"a user-defined loss needs the methods value(y, f) and gradient(y, f), but {given!r} has no "
                f"{' and no '.join(missing)}."
            )
        self.given = given
        self.smooth = callable(getattr(given, "curvature", None))
        self.name = str(getattr(given, "name", type(given).__name__))
        targets = getattr(given, "targets", "numbers")
        known = [kind for kind in _TARGETS if kind == targets]
        if not known:
            raise ParameterError(f"{self.name}.targets must be one of {', '.join(_TARGETS)}, but is {targets!r}.")
        self.targets = known[0]
        if hasattr(given, "step_bound"):
            requirement = "a finite number above 0"
            self.step_bound = require(self.name, "step_bound", given.step_bound, requirement, lambda b: 0 < b < np.inf)

    def __repr__(self) -> str:
        return f"OwnLoss({self.given!r})"

    def value(self, y: Vector, f: Vector) -> Vector:
        return self._checked("value", self.given.value(y, f), f)

    def gradient(self, y: Vector, f: Vector) -> Vector:
        return self._checked("gradient", self.given.gradient(y, f), f)

    def curvature(self, y: Vector, f: Vector) -> Vector:
        if not self.smooth:
            return np.zeros_like(f)
        return self._checked("curvature", self.given.curvature(y, f), f)

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        if not callable(getattr(self.given, "conjugate", None)):
            return super().conjugate(y, u)
        return self._checked("conjugate", self.given.conjugate(y, u), u)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        if not callable(getattr(self.given, "prox", None)):
            return super().prox(y, v, step)
        return self._checked("prox", self.given.prox(y, v, step), v)

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        if not callable(getattr(self.given, "slopes", None)):
            # Gradients far out: they rise with f, so that what is between two of them is a gradient somewhere.
            reach = _FAR * (1.0 + np.abs(y))
            with np.errstate(over="ignore", invalid="ignore"):
                ends = [self.gradient(y, y + side * reach) for side in (-1.0, 1.0)]
            return np.where(np.isnan(ends[0]), -np.inf, ends[0]), np.where(np.isnan(ends[1]), np.inf, ends[1])
        low, high = self.given.slopes(y)
        return self._checked("slopes", low, y), self._checked("slopes", high, y)

    def steepest(self, y: Vector) -> float:
        # Gradients far out tell what slopes to expect, and bound nothing.
        return super().steepest(y) if callable(getattr(self.given, "slopes", None)) else np.inf

    def response(self, f: Vector) -> Vector:
        if not callable(getattr(self.given, "response", None)):
            return f
        return self._checked("response", self.given.response(f), f)

    def _checked(self, part: str, result: Any, like: Vector) -> Vector:
        """What a method returned, as an array of the right shape."""
        try:
            array = np.asarray(result, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(
                f"{self.name}.{part} must return an array of numbers, but returned {result!r}."
            ) from error
        if array.shape != np.shape(like):
            raise ParameterError(
                f"{self.name}.{part} must return one number for each of its arguments' {np.shape(like)}, but returned "
                f"the shape {array.shape}; sums and means are taken elsewhere."
            )
        return array
