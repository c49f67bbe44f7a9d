"""Warn if a model fits its own rows worse than the best constant."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import MercerWarning, warn_user
from mercer._types import Vector
from mercer.losses.loss import Loss

# Losses other than the squared one have their lowest value near the mean, not at it: no more than this is a difference.
_SLACK = 0.01
_ROUNDINGS = 1e3
EQUAL = 1e-3
"""Equal targets have a warning of their own: predictions that agree with them to this share are as good."""
# Quantiles of the targets among which is nearly the best constant, whatever the loss.
_LEVELS = np.linspace(0.0, 1.0, 21)


def warn_if_worse_than_mean(learner: str, y: Vector, fitted: Vector, weight: Vector | None, remedy: str) -> bool:
    """Warn if the squared error of ``fitted`` is above that of the mean of ``y``, both (n,) or (n, t), for a target.

    ``weight`` (n,) weighs the rows; ``remedy`` ends the message. Returns whether there was a warning.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warned = warn_if_worse_than_mean("Model", np.array([9.0, 11.0]), np.array([5.0, 6.0]), None, "Center y.")
    >>> print(caught[0].message)
    Model: the mean squared error on the training rows is 20.5, but that of their mean alone is 1. Center y.
    """
    targets, fitted = y.reshape(len(y), -1), fitted.reshape(len(y), -1)
    share = np.full(len(y), 1.0) if weight is None else np.asarray(weight, dtype=np.float64)
    if len(y) < 2 or not share.max() > 0:
        return False
    share = share / share.max()
    share = share / share.sum()
    # In units in which no square overflows.
    unit = np.maximum(np.abs(targets).max(axis=0), np.abs(fitted).max(axis=0))
    unit[unit == 0] = 1.0
    targets, fitted = targets / unit, fitted / unit
    errors = share @ (targets - fitted) ** 2
    spread = share @ (targets - share @ targets) ** 2
    rounding = (_ROUNDINGS * np.finfo(fitted.dtype).eps) ** 2
    allowed = np.where(np.ptp(targets[share > 0], axis=0) == 0, EQUAL**2, rounding)
    worse = np.flatnonzero(~(errors <= (1.0 + _SLACK) * spread + allowed))
    if not len(worse):
        return False
    j = int(worse[0])
    which = "" if targets.shape[1] == 1 else f" for column {j} of y"
    with np.errstate(over="ignore"):
        ours, mean = errors[j] * unit[j] ** 2, spread[j] * unit[j] ** 2
    warn_user(
        f"{learner}: the mean squared error on the training rows{which} is {ours:.3g}, but that of their mean alone is "
        f"{mean:.3g}. {remedy}",
        MercerWarning,
    )
    return True


def warn_if_worse_than_constant(
    learner: str, loss: Loss, y: Vector, values: Vector, weight: Vector, remedy: str
) -> None:
    """Warn if the mean of a ``loss`` of numbers at ``values`` (n,) is above that of a constant for ``y`` (n,).

    The constants are the mean and some quantiles of y, or the logarithm of the mean for counts.

    Examples
    --------
    >>> import warnings
    >>> from mercer.losses import Huber
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     y = np.array([9.0, 10.0, 11.0])
    ...     warn_if_worse_than_constant("Model", Huber(), y, np.array([5.0, 6.0, 5.0]), np.ones(3), "Center y.")
    >>> print(caught[0].message)
    Model: the mean huber loss on the training rows is 4.17, but that of the constant 10 is 0.333. Center y.
    """
    if len(y) < 2:
        return
    mean = float(np.average(y, weights=weight))
    if loss.targets == "counts":
        constants = np.log([mean]) if mean > 0 else np.empty(0)
    else:
        constants = _constants(y, mean)
    with np.errstate(over="ignore"):
        ours = float(np.average(loss.value(y, values), weights=weight))
        theirs = [float(np.average(loss.value(y, np.full(len(y), c)), weights=weight)) for c in constants]
        # What rounding of the predictions may cost, at the largest slope that the rows have.
        slope = np.average(np.abs(loss.gradient(y, values)), weights=weight)
    rounding = _ROUNDINGS * np.finfo(np.float64).eps * float(np.abs(y).max()) * float(slope)
    best = int(np.argmin(theirs)) if theirs else -1
    if best < 0 or not ours > (1.0 + _SLACK) * theirs[best] + rounding:
        return
    warn_user(
        f"{learner}: the mean {loss.name} loss on the training rows is {ours:.3g}, but that of the constant "
        f"{constants[best]:.3g} is {theirs[best]:.3g}. {remedy}",
        MercerWarning,
    )


def words_on_constant(loss: Loss, y: Vector, price: Vector, objective: float, *, intercept: bool) -> str:
    """What to say where a constant, whose norm is 0, has a lower objective than a fitted function; else nothing.

    Parameters
    ----------
    loss : Loss
        Of numbers.
    y, price : ndarray of shape (n,)
        Targets, and the factors of their losses.
    objective : float
        Half of the squared norm and the losses of the function.
    intercept : bool
        Whether there is an offset; otherwise 0 is the only constant.

    Examples
    --------
    >>> from mercer.losses import EpsilonInsensitive
    >>> y, price = np.array([9.0, 10.0, 11.0]), np.full(3, 100.0)
    >>> words_on_constant(EpsilonInsensitive(0.5), y, price, 150.0, intercept=True)
    'The function is worse than a constant: its objective is 150, and that of the constant 9.5 is 100.'
    >>> words_on_constant(EpsilonInsensitive(0.5), y, price, 50.0, intercept=True)
    ''
    """
    constants = _constants(y, float(np.average(y, weights=price))) if intercept else np.zeros(1)
    with np.errstate(over="ignore"):
        theirs = [float(price @ loss.value(y, np.full(len(y), c))) for c in constants]
    best = int(np.argmin(theirs))
    return _worse(objective, theirs[best], f"that of the constant {constants[best]:.4g}")


def words_on_pairs(prices: Vector, objective: float, *, intercept: bool) -> str:
    """What to say where constants have a lower objective than the functions of all pairs of classes; else nothing.

    Parameters
    ----------
    prices : ndarray of shape (k,)
        The sum of the factors of the hinge losses of each class.
    objective : float
        The sum over all pairs of classes of half the squared norm and the losses.
    intercept : bool
        Whether there are offsets; otherwise 0 is the only constant.

    Examples
    --------
    >>> words_on_pairs(np.array([10.0, 30.0]), 25.0, intercept=True)
    'The function is worse than a constant: its objective is 25, and that of a constant for the class with more weight \
is 20.'
    >>> words_on_pairs(np.array([10.0, 30.0]), 15.0, intercept=True)
    ''
    """
    ascending, others = np.sort(prices), np.arange(len(prices))[::-1]
    # A constant of 1 or -1 costs 2 for a row of the other class, and 0 costs 1 for each row.
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = 2.0 * float(ascending @ others) if intercept else (len(prices) - 1) * float(prices.sum())
    constant = "a constant for the class with more weight" if intercept else "the constant 0"
    return _worse(objective, theirs, f"that of {constant}{' in each pair' * (len(prices) > 2)}")


def _worse(objective: float, constant: float, what: str) -> str:
    if not objective > constant:
        return ""
    return f"The function is worse than a constant: its objective is {objective:.4g}, and {what} is {constant:.4g}."


def _constants(y: Vector, mean: float) -> Vector:
    """Among these is nearly the best one, whatever the loss."""
    return np.append(np.quantile(y, _LEVELS), mean)


def warn_if_worse_than_majority(learner: str, codes: NDArray[np.integer], predicted: Any, remedy: str) -> None:
    """Warn if ``predicted`` (n,) has more errors than the most frequent of the labels ``codes`` (n,) for all rows.

    A difference that another sample would show by chance does not count. ``remedy`` ends the message.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_if_worse_than_majority("Model", np.array([0] * 9 + [1]), np.ones(10), "Scale X.")
    >>> print(caught[0].message)
    Model: 9 of the 10 training rows are misclassified, but only 1 would be if all were assigned the most frequent \
class. Scale X.
    """
    n, wrong = len(codes), int(np.count_nonzero(predicted != codes))
    fewest = n - int(np.unique(codes, return_counts=True)[1].max())
    if wrong > fewest + np.sqrt(fewest):
        warn_user(
            f"{learner}: {wrong} of the {n} training rows are misclassified, but only {fewest} would be if all were "
            f"assigned the most frequent class. {remedy}",
            MercerWarning,
        )


def no_offset_remedy(y: Vector) -> str:
    """Return the advice for a model without an intercept that is worse than the mean.

    Examples
    --------
    >>> no_offset_remedy(np.array([100.0, 102.0]))[:57]
    'The model has no offset, but y has the mean 101: subtract'
    """
    means = np.mean(y, axis=0)
    what = f"y has the mean {np.mean(means):.3g}" if np.size(means) == 1 else "the columns of y have means of their own"
    return (
        f"The model has no offset, but {what}: subtract it "
        "(sklearn.compose.TransformedTargetRegressor(model, transformer=StandardScaler())), add a constant to the "
        "kernel (kernel + mercer.kernels.Constant(c)), or scale the columns of X."
    )
