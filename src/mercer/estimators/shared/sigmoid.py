"""Probabilities from decision values: Platt's sigmoid."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from mercer._types import Matrix, Vector
from mercer.loops.sigmoid import fit_two_parameters

_LEAST = 1e-7


def fit_sigmoid(values: Vector, positive: NDArray[np.bool_], weight: Vector) -> tuple[float, float]:
    r"""Fit :math:`p(f) = 1 / (1 + e^{A f + B})`, the probability of a positive row, to decision values.

    Minimizes the cross entropy with Platt's smoothed targets, :math:`(n_+ + 1) / (n_+ + 2)` for positive rows and
    :math:`1 / (n_- + 2)` for others, by Newton's method with a line search.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Decision values f of rows that the classifier was not fitted to.
    positive : ndarray of bool of shape (n,)
        Whether the rows are positive.
    weight : ndarray of shape (n,)
        Weight of each row, as a number of repetitions.

    Returns
    -------
    tuple of float
        A and B.

    References
    ----------
    Platt (2000), "Probabilistic outputs for support vector machines"; Lin, Lin and Weng (2007), "A note on Platt's
    probabilistic outputs for support vector machines", algorithm 1.

    Examples
    --------
    >>> f = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> A, B = fit_sigmoid(f, f > 0, np.ones(4))
    >>> A < 0, abs(B) < 1e-9
    (True, True)
    """
    above, below = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0))
    start = float(np.log((below + 1.0) / (above + 1.0)))
    A, B = fit_two_parameters(np.asarray(values, dtype=np.float64), target, np.asarray(weight, np.float64), 0.0, start)
    return float(A), float(B)


def probability(values: Matrix, slopes: Vector, offsets: Vector) -> Matrix:
    """Return ``1 / (1 + exp(A f + B))`` of decision values f (m, c), away from 0 and 1.

    >>> probability(np.array([[0.0, 1e9]]), np.array([-1.0, -1.0]), np.zeros(2)).round(3).tolist()
    [[0.5, 1.0]]
    """
    return np.asarray(np.clip(expit(-(slopes * values + offsets)), _LEAST, 1.0 - _LEAST))
