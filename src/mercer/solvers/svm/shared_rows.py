"""Problems that state each row twice, as nu-SVR does, on the matrix of the rows once.

Both weights of a row have the same row of K, so that a quarter of the matrix suffices: fits with 600 to 2000 rows are
twice as fast.
"""

from __future__ import annotations

import numpy as np

from mercer._types import Array, Vector
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.block import Block
from mercer.solvers.svm.iterate import Iterate

# Steps for each row before the problem is left to methods that do more than steps.
_STEPS = 20


def on_shared_rows(K: Array, point: Iterate, tol: float, limit: int) -> None:
    """Move ``point``, whose sums are exact, until its violation is at most ``tol`` or the steps are used up.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        The matrix of the rows, in float64.
    point : Iterate
        Weights of the first group, one for each row, and behind them those of the second.
    tol : float
        The violation of the optimality conditions that is small enough.
    limit : int
        The most steps of the whole solve.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.svm.box_qp import BoxQP
    >>> K, groups = np.eye(2), np.array([0, 0, 1, 1])
    >>> lower, upper = np.array([0.0, 0.0, -1.0, -1.0]), np.array([1.0, 1.0, 0.0, 0.0])
    >>> gram, linear = PrecomputedGram(np.tile(K, (2, 2))), np.array([3.0, 0.0, 3.0, 0.0])
    >>> problem = BoxQP(gram, linear, lower, upper, totals=(0.5, -0.5), groups=groups)
    >>> point = Iterate.begin(problem, np.array([0.0, 0.5, -0.5, 0.0]))
    >>> on_shared_rows(K, point, 1e-3, 100)
    >>> point.beta.tolist()
    [0.5, 0.0, 0.0, -0.5]
    """
    m = len(K)
    point.F = _gradient(point, K)
    most = min(limit - point.steps, int(_STEPS * m))
    Block(2 * m, K.dtype).solve(K, K.diagonal(), point, 0.9 * tol, most)
    point.F = _gradient(point, K)


def _gradient(point: Iterate, K: Array) -> Vector:
    """``linear - K w``, where w are the weights of the rows in the expansion, for the weights of either group."""
    m = len(K)
    F, weights = point.linear[:m].copy(), point.beta.reshape(2, m).sum(axis=0)
    moved = np.flatnonzero(weights)
    subtract_rows(F, K, moved, weights[moved])
    return np.tile(F, 2)
