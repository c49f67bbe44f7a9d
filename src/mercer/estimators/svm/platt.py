"""From decision values to probabilities: Platt's sigmoid, and the coupling of the pairs of many classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer._types import Vector
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


def couple(first: Vector, k: int) -> Vector:
    r"""Return probabilities of ``k`` classes, (m, k), from those of the pairs of classes.

    Minimizes :math:`\sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2` over p that sum to 1, by solving its linear
    optimality conditions; the solution is never negative.

    Parameters
    ----------
    first : ndarray of shape (m, k (k - 1) / 2)
        :math:`r_{ij}`: the probability of class i in the pair i < j, in the order (0, 1), (0, 2), ..., (1, 2), ...
    k : int
        The number of classes.

    References
    ----------
    Wu, Lin and Weng (2004), "Probability estimates for multi-class classification by pairwise coupling", equation (21).

    Examples
    --------
    >>> couple(np.array([[0.5, 0.5, 0.5], [0.9, 0.9, 0.5]]), 3).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.818, 0.091, 0.091]]
    """
    pairs = np.triu_indices(k, 1)
    r = np.zeros((len(first), k, k))
    r[:, pairs[0], pairs[1]] = np.clip(first, _LEAST, 1.0 - _LEAST)
    r[:, pairs[1], pairs[0]] = 1.0 - r[:, pairs[0], pairs[1]]
    system = np.zeros((len(first), k + 1, k + 1))
    system[:, :k, :k] = -r * r.transpose(0, 2, 1)
    system[:, np.arange(k), np.arange(k)] = np.square(r).sum(axis=1)
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((len(first), k + 1, 1))
    right[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :k, 0], np.finfo(np.float64).eps)
    return p / p.sum(axis=1, keepdims=True)
