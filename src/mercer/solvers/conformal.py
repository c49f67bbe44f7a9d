r"""Prediction intervals from predictions with rows left out: the jackknife+.

With :math:`f_{-i}` the fit to all rows but i, and :math:`R_i = |y_i - f_{-i}(x_i)|`, the interval of a new row x is

.. math:: \left[ q^-\{f_{-i}(x) - R_i\},\; q^+\{f_{-i}(x) + R_i\} \right]

where :math:`q^-` is the :math:`\lfloor \alpha (n + 1) \rfloor`-th smallest of the n numbers and :math:`q^+` the
:math:`\lfloor \alpha (n + 1) \rfloor`-th largest. It contains the target of x with probability :math:`1 - 2 \alpha` at
least if rows are exchangeable, for every learner that treats them alike; in practice with about :math:`1 - \alpha`.

A linear smoother :math:`f(x) = \sum_i v_i(x)\, y_i` that does not change if :math:`y_i` is replaced by its left-out
prediction needs no refit: :math:`f_{-i}(x) = f(x) - v_i(x)\, e_i` with :math:`e_i = y_i - f_{-i}(x_i)`. Kernel ridge
regression and Gaussian processes with given hyper-parameters are such smoothers, with
:math:`v(x) = (K + \alpha I)^{-1} k(x)`.

References
----------
R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of
Statistics 49 (2021). The scores of C. Gupta, A. K. Kuchibhotla and A. Ramdas, "Nested conformal prediction and
quantile out-of-bag ensemble methods", Pattern Recognition 127 (2022), divide :math:`R_i` by a deviation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Vector

# What rounding may take from a product of a share and a number of rows.
_ROUNDING = 1e-9


def tail_rank(coverage: float, total: float) -> int:
    r"""The rank :math:`\lfloor (1 - c)(n + 1) \rfloor` of an end among n numbers; 0 if there is no such number.

    >>> tail_rank(0.9, 19), tail_rank(0.9, 8)
    (2, 0)
    """
    return int(np.floor((1.0 - coverage) * (total + 1.0) + _ROUNDING))


def least_rows(coverage: float) -> int:
    """The least number of rows whose intervals are bounded.

    >>> least_rows(0.9), least_rows(0.95)
    (9, 19)
    """
    return int(np.ceil(1.0 / (1.0 - coverage) - 1.0 - _ROUNDING))


def lower_ends(values: Matrix, coverage: float, counts: Vector | None = None) -> Vector:
    """The number of rank :func:`tail_rank` in every row; minus infinity if there is none.

    Parameters
    ----------
    values : ndarray of shape (m, n)
        Overwritten.
    coverage : float
    counts : ndarray of shape (n,), optional
        How often each column counts.

    Returns
    -------
    ndarray of shape (m,)

    Examples
    --------
    >>> lower_ends(np.array([[3.0, 1.0, 2.0]]), 0.5).tolist()
    [2.0]
    >>> lower_ends(np.array([[3.0, 1.0, 2.0]]), 0.5, np.array([1.0, 3.0, 1.0])).tolist()
    [1.0]
    """
    rank = tail_rank(coverage, values.shape[1] if counts is None else float(counts.sum()))
    return np.full(len(values), -np.inf) if rank < 1 else of_rank(values, rank, counts)


def of_rank(values: Matrix, rank: float, counts: Vector | None = None) -> Vector:
    """The number of a rank from 1 on in every row, (m,).

    Parameters
    ----------
    values : ndarray of shape (m, n)
        Overwritten.
    rank : float
        A whole number without counts.
    counts : ndarray of shape (n,), optional
        How often each column counts.

    Examples
    --------
    >>> of_rank(np.array([[3.0, 1.0, 2.0]]), 3).tolist()
    [3.0]
    """
    if counts is None:
        place = round(rank) - 1
        values.partition(place, axis=1)
        return values[:, place].copy()
    order = np.argsort(values, axis=1)
    reached = np.cumsum(counts[order], axis=1) >= rank - _ROUNDING
    return np.take_along_axis(values, order, axis=1)[np.arange(len(values)), reached.argmax(axis=1)]


def undecided(
    low: Vector, high: Vector, rank: float, counts: Vector | None = None
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of n numbers between bounds may be the one of a rank; and which of them are certainly below it.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Bounds of each number.
    rank : float
    counts : ndarray of shape (n,), optional
        As for :func:`of_rank`.

    Returns
    -------
    chosen, below : ndarray of bool of shape (n,)
        The number of the rank among all has the rank less the number of those below among the chosen ones.

    Examples
    --------
    >>> chosen, below = undecided(np.array([0.0, 2.0, 3.0, 9.0]), np.array([1.0, 4.0, 5.0, 9.0]), 2)
    >>> chosen.tolist(), below.tolist()
    ([False, True, True, False], [True, False, False, False])
    """
    # The number of the rank is between those of the rank among the bounds.
    first, last = (of_rank(bound[None].copy(), rank, counts)[0] for bound in (low, high))
    return (high >= first) & (low <= last), high < first


def jackknife_plus(
    centres: Matrix, radii: Matrix, coverage: float, counts: Vector | None = None
) -> tuple[Vector, Vector]:
    """Both ends of the intervals of m new rows.

    Parameters
    ----------
    centres : ndarray of shape (m, n)
        Predictions for the new rows, each of the n training rows left out.
    radii : ndarray of shape (m, n) or (n,)
        The errors of the left-out rows, 0 or more; or these on the scale of each new row.
    coverage : float
    counts : ndarray of shape (n,), optional
        How often each training row counts.

    Returns
    -------
    lower, upper : ndarray of shape (m,)
        Infinite if there are fewer than :func:`least_rows` rows. Below a coverage of a half the ends may cross, and are
        then exchanged.

    Examples
    --------
    >>> lower, upper = jackknife_plus(np.zeros((1, 9)), np.arange(1.0, 10.0), 0.9)
    >>> lower.tolist(), upper.tolist()
    ([-9.0], [9.0])
    """
    lower = lower_ends(centres - radii, coverage, counts)
    upper = -lower_ends(-(centres + radii), coverage, counts)
    return np.minimum(lower, upper), np.maximum(lower, upper)


def nonconforming(coverage: float, rows: int) -> float:
    """The number of better conforming rows below which a class is in a prediction set: ``coverage (n + 1)``.

    >>> nonconforming(0.9, 19)
    18.0
    """
    return round(coverage * (rows + 1.0), 9)


def guaranteed_by_folds(coverage: float, rows: int, folds: int) -> float:
    r"""The probability that CV+ guarantees, by theorem 4 of the reference; for one fold the coverage itself.

    With :math:`\alpha = 1 - c` it is :math:`1 - 2 \alpha - \min\{2 (1 - 1/K) / (n/K + 1), (1 - K/n) / (K + 1)\}`.

    >>> guaranteed_by_folds(0.9, 1000, 5).__round__(4), guaranteed_by_folds(0.9, 50, 50), guaranteed_by_folds(0.9, 9, 1)
    (0.792, 0.8, 0.9)
    """
    if folds == 1:
        return coverage
    slack = min(2.0 * (1.0 - 1.0 / folds) / (rows / folds + 1.0), (1.0 - folds / rows) / (folds + 1.0))
    return max(round(2.0 * coverage - 1.0 - slack, 12), 0.0)
