"""Sums of squares of numbers in any unit: spreads and scores of targets whose plain squares would leave float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer._types import AnyArray, Vector

# Below and above these powers of two, squares of squares come near the ends of float64.
_USUAL = 100
# Errors of so many units are as bad as larger ones; squares of their squares are finite.
_MOST_UNITS = 1e70


def root_mean_square(values: AnyArray) -> Vector:
    r""":math:`\sqrt{\sum_i v_{ij}^2 / n}` of every column, (t,), of numbers (n,) or (n, t) of any size.

    The numbers are divided by a power of two first, so that those of a usual size give the same bits as without it.

    >>> root_mean_square(np.array([3e-170, 4e-170, 0.0, 0.0])).tolist()
    [2.5e-170]
    """
    columns, powers = _in_unit_size(values)
    return np.asarray(np.ldexp(np.sqrt(np.mean(columns**2, axis=0)), powers))


def standard_deviation(values: AnyArray) -> float:
    """Return the standard deviation of all entries of an array, of any size, with their number as the divisor.

    >>> round(standard_deviation(np.array([1e-160, 3e-160])) / 1e-160, 12)
    1.0
    """
    return float(root_mean_square((values - values.mean()).ravel())[0])


def r_squared(truth: AnyArray, predicted: AnyArray) -> float:
    r"""Return :math:`1 - \sum_i (y_i - f_i)^2 / \sum_i (y_i - \bar y)^2` of numbers of any size.

    Parameters
    ----------
    truth, predicted : ndarray of shape (n,) or (n, t)
        Several targets have the mean of their scores.

    Returns
    -------
    float
        As in scikit-learn, 0 for wrong predictions of a constant target, and 1 for right ones.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 3.0])
    >>> r_squared(y, y + 1.0), r_squared(2.0**-600 * y, 2.0**-600 * (y + 1.0))
    (-0.5, -0.5)
    """
    errors, of_errors = _in_unit_size(truth - predicted)
    spread, of_spread = _in_unit_size(truth - truth.mean(axis=0))
    lost, whole = (errors**2).sum(axis=0), (spread**2).sum(axis=0)
    shares = np.where(lost > 0, 1.0, 0.0)
    known = whole > 0
    with np.errstate(over="ignore"):
        shares[known] = np.ldexp(lost[known] / whole[known], 2 * (of_errors - of_spread)[known])
    return float((1.0 - shares).mean())


def squared_errors(truth: AnyArray, predicted: AnyArray) -> Vector:
    """Return squared errors of each row, (n,), averaged over the targets, in a unit that depends on ``truth`` alone.

    The unit is that of the targets, or for very small and very large ones a power of two, so that errors of several
    predictions of the same targets can be compared.

    >>> squared_errors(np.array([1.0, 2.0]), np.array([1.0, 4.0])).tolist()
    [0.0, 4.0]
    """
    power = int(np.frexp(np.abs(truth).max(initial=0.0))[1])
    errors = truth - predicted
    if abs(power) > _USUAL:
        with np.errstate(over="ignore"):
            errors = np.ldexp(errors, -power)
    bounded = np.clip(errors, -_MOST_UNITS, _MOST_UNITS)
    return np.asarray((bounded**2).reshape(len(truth), -1).mean(axis=1))


def _in_unit_size(values: AnyArray) -> tuple[AnyArray, NDArray[np.intp]]:
    """Columns, each divided by a power of two that makes it at most 1, and the exponents, (t,)."""
    columns = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    powers = np.frexp(np.abs(columns).max(axis=0, initial=0.0))[1].astype(np.intp)
    return np.ldexp(columns, -powers), powers
