"""Check what the solvers assume of a loss or a penalty: convex, finite, row by row, with the right gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.losses.loss import Loss

# The number of targets that are examined, and of predictions for each of them.
_TARGETS = 64
_POINTS = 24
# Steps of the proximal map, relative to the spread of the predictions looked at.
_PROX_STEPS = (0.05, 2.0)
# Rounding, relative to the values compared, and the error of a difference in place of a derivative.
_ROUNDING = 1e-9
_DIFFERENCE = 1e-4
_STEP = 1e-5
# The error of conjugates and proximal maps that come from a search.
_SEARCHED = 1e-6


def check_loss(loss: Loss, y: Any) -> None:
    r"""Raise an error if samples show a loss not to be convex, finite and row by row, or its gradient to be wrong.

    The samples are predictions around the targets and around zero, from a thousandth to a hundred times the spread of
    the targets. Convexity requires :math:`\ell((f + g) / 2) \le (\ell(f) + \ell(g)) / 2`; a gradient must lie between
    the difference quotients on either side and between the slopes; the conjugate must be :math:`u f - \ell(f)` at a
    gradient u; and no prediction next to the result of the proximal map may be better. A loss that passes is not
    thereby proved valid.

    Parameters
    ----------
    loss : Loss
    y : array-like of shape (n,)
        The training targets.

    Raises
    ------
    ParameterError
        If a sample violates a requirement; the message says which one, and where.

    Examples
    --------
    >>> from mercer.losses import OwnLoss
    >>> class Welsch:
    ...     def value(self, y, f):
    ...         return 1 - np.exp(-((y - f) ** 2))
    ...
    ...     def gradient(self, y, f):
    ...         return 2 * (f - y) * np.exp(-((y - f) ** 2))
    >>> check_loss(OwnLoss(Welsch()), [0.0])
    Traceback (most recent call last):
        ...
    mercer._errors.ParameterError: Welsch is not convex: between the predictions ... for the target 0 ...
    """
    targets = np.unique(np.asarray(y, dtype=np.float64))
    targets = targets[np.unique(np.linspace(0, len(targets) - 1, _TARGETS).round().astype(np.intp))]
    t, f = _sample(loss, targets)
    with np.errstate(all="ignore"):
        _require_numbers(loss, targets, np.zeros(len(targets)), "be finite where solvers begin")
        _require_numbers(loss, t, f, "be a number")
        value, gradient, curvature = loss.value(t, f), loss.gradient(t, f), loss.curvature(t, f)
        _require_rows(loss, value, t, f)
        shape = (len(targets), -1)
        _require_convex(loss, t.reshape(shape), f.reshape(shape), value.reshape(shape))
        _require_gradient(loss, t, f, value, gradient)
        if loss.smooth:
            _require_curvature(loss, t, f, curvature)
        _require_conjugate(loss, t, f, value, gradient)
        for part in _PROX_STEPS:
            _require_prox(loss, t, f, part * float(np.ptp(f)))


def _sample(loss: Loss, targets: Vector) -> tuple[Vector, Vector]:
    """Targets and predictions, (targets * points,) each: half around the target, half around 0."""
    if loss.targets == "numbers":
        spread, centres = float(np.ptp(targets)) or float(np.abs(targets).max()) or 1.0, targets
    else:
        spread, centres = 4.0, np.log1p(targets) if loss.targets == "counts" else targets
    sizes = np.geomspace(1e-3, 2.0, _POINTS // 4) * spread
    steps = np.concatenate([-sizes[::-1], sizes])
    f = np.sort(np.concatenate([centres[:, None] + steps, np.broadcast_to(steps, (len(targets), len(steps)))], axis=1))
    return np.repeat(targets, f.shape[1]), f.ravel()


def _require_numbers(loss: Loss, t: Vector, f: Vector, requirement: str) -> None:
    """Finite at the prediction 0; elsewhere a value may overflow, but none may be NaN, and no curvature negative."""
    for part in ("value", "gradient", "curvature"):
        values = getattr(loss, part)(t, f)
        bad = np.isnan(values) | (np.isinf(values) & (not f.any())) | ((values < 0) & (part == "curvature"))
        if bad.any():
            at = int(np.argmax(bad))
            raise ParameterError(
                f"{loss.name}.{part} must {requirement}{', 0 or more' if part == 'curvature' else ''}, but is "
                f"{values[at]} for the target {t[at]:g} and the prediction {f[at]:g}."
            )


def _require_rows(loss: Loss, value: Vector, t: Vector, f: Vector) -> None:
    """A loss looks at each row by itself, so that the order of the rows does not matter."""
    alone = loss.value(t[::-1].copy(), f[::-1].copy())[::-1]
    wrong = np.flatnonzero(np.abs(alone - value) > _ROUNDING * (np.abs(value) + 1e-300))
    if len(wrong):
        raise ParameterError(
            f"{loss.name}.value must treat each row independently, but gives {value[wrong[0]]:g} or "
            f"{alone[wrong[0]]:g} for one row, depending on the order of the rows."
        )


def _require_convex(loss: Loss, t: Vector, f: Vector, value: Vector) -> None:
    """No chord lies below the loss at its middle; chords of all lengths."""
    n = f.shape[1]
    size = np.abs(np.where(np.isfinite(value), value, 0.0)).max(axis=1, keepdims=True)
    for distance in (1, 2, n // 4, n // 2, n - 1):
        left, right = slice(None, n - distance), slice(distance, None)
        middle = 0.5 * (f[:, left] + f[:, right])
        midpoint = loss.value(np.repeat(t[:, 0], n - distance), middle.ravel()).reshape(middle.shape)
        excess = midpoint - 0.5 * (value[:, left] + value[:, right])
        wrong = excess > _ROUNDING * size
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            raise ParameterError(
                f"{loss.name} is not convex: between the predictions {f[i, j]:.6g} and {f[i, j + distance]:.6g} for "
                f"the target {t[i, 0]:g} it is {midpoint[i, j]:.6g} in the middle, above the mean "
                f"{midpoint[i, j] - excess[i, j]:.6g} of its ends. Choose a convex loss."
            )


def _require_gradient(loss: Loss, t: Vector, f: Vector, value: Vector, gradient: Vector) -> None:
    """The gradient of a convex loss lies between the changes of the loss to either side."""
    step = _step(f)
    low = (value - loss.value(t, f - step)) / step
    high = (loss.value(t, f + step) - value) / step
    slack = _DIFFERENCE * np.maximum(np.abs(low), np.abs(high)) + _ROUNDING * np.abs(value) / step
    wrong = np.flatnonzero((gradient < low - slack) | (gradient > high + slack))
    if len(wrong):
        at = wrong[0]
        raise ParameterError(
            f"{loss.name}.gradient is not the derivative of its value: for the target {t[at]:g} and the prediction "
            f"{f[at]:.6g} it is {gradient[at]:.6g}, and the loss changes by {low[at]:.6g} to {high[at]:.6g} for each "
            "unit there. Check its sign and its factors."
        )


def _step(f: Vector) -> Vector:
    """Of differences in place of derivatives."""
    return _STEP * np.maximum(np.abs(f), 1e-2 * max(float(np.abs(f).max()), 1e-300))


def _require_curvature(loss: Loss, t: Vector, f: Vector, curvature: Vector) -> None:
    """The curvature is the derivative of the gradient where that has one: the larger of two one-sided differences."""
    step = _step(f)
    slopes = loss.gradient(t, f)
    sides = [(loss.gradient(t, f + s * step) - slopes) / (s * step) for s in (1.0, -1.0)]
    low, high = np.minimum(*sides), np.maximum(*sides)
    slack = 1e-2 * np.maximum(np.abs(low), np.abs(high)) + _DIFFERENCE * float(np.abs(curvature).max(initial=0.0))
    # Rounding of a difference of gradients.
    slack = slack + _ROUNDING * np.abs(slopes) / step
    wrong = np.flatnonzero((curvature < low - slack) | (curvature > high + slack))
    if len(wrong):
        at = wrong[0]
        raise ParameterError(
            f"{loss.name}.curvature is not the derivative of its gradient: for the target {t[at]:g} and the prediction "
            f"{f[at]:.6g} it is {curvature[at]:.6g}, and the gradient changes by {low[at]:.6g} to {high[at]:.6g} for "
            "each unit there. Check it, or leave it out."
        )


def _require_conjugate(loss: Loss, t: Vector, f: Vector, value: Vector, gradient: Vector) -> None:
    """Slopes bound the gradients, and the conjugate at a gradient is where Fenchel's inequality is an equality."""
    low, high = loss.slopes(t)
    beyond = np.flatnonzero(
        (gradient < low - _ROUNDING * (1.0 + np.abs(low))) | (gradient > high + _ROUNDING * (1.0 + np.abs(high)))
    )
    if len(beyond):
        at = beyond[0]
        raise ParameterError(
            f"{loss.name}.slopes must bound the gradients, and for the target {t[at]:g} they are {low[at]:.6g} and "
            f"{high[at]:.6g}, where the gradient at {f[at]:.6g} is {gradient[at]:.6g}."
        )
    expected = gradient * f - value
    conjugate = loss.conjugate(t, np.clip(gradient, low, high))
    size = np.abs(gradient * f) + np.abs(value)
    usable = np.isfinite(expected) & (np.abs(gradient) < np.sqrt(np.finfo(np.float64).max))
    wrong = np.flatnonzero(
        usable & ~(np.abs(conjugate - expected) <= _SEARCHED * size + _ROUNDING * size.max(where=usable, initial=0.0))
    )
    if len(wrong):
        at = wrong[0]
        raise ParameterError(
            f"{loss.name}.conjugate(y, u) must be the largest u f - value(y, f); for the target {t[at]:g} and u = "
            f"{gradient[at]:.6g}, the gradient at f = {f[at]:.6g}, it is {conjugate[at]:.6g} in the place of "
            f"{expected[at]:.6g}. Check it, or leave it out."
        )


def _require_prox(loss: Loss, t: Vector, v: Vector, step: float) -> None:
    """No prediction next to what the proximal map returns is better."""
    prox = loss.prox(t, v, np.full_like(v, step))

    def objective(f: Vector) -> Vector:
        return loss.value(t, f) + (f - v) ** 2 / (2.0 * step)

    minimum, away = objective(prox), _DIFFERENCE * (np.abs(v) + np.abs(prox) + 1e-2 * float(np.abs(v).max()))
    for side in (-1.0, 1.0):
        other = objective(prox + side * away)
        wrong = np.flatnonzero(~(minimum <= other + _ROUNDING * np.abs(other)))
        if len(wrong):
            at = wrong[0]
            raise ParameterError(
                f"{loss.name}.prox(y, v, step) must be the f of least value(y, f) + (f - v)^2 / (2 step); for the "
                f"target {t[at]:g}, v = {v[at]:.6g} and step = {step:.6g} it is {prox[at]:.6g}, and "
                f"{prox[at] + side * away[at]:.6g} is better. Check it, or leave it out."
            )
