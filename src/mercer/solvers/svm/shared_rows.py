"""Problems that state each row twice, as nu-SVR does, on the matrix of the rows once.

Both weights of a row have the same row of K and, with a common linear term, the same gradient. So half of the gradients
and a quarter of the matrix suffice.
"""

from __future__ import annotations

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import threads
from mercer.loops.box import BoxWeights, set_masks
from mercer.loops.group_steps import TwoGroups, smo_steps_of_groups
from mercer.loops.picked import PickedRows
from mercer.loops.smo import StepLimits, StepRoom
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.iterate import Iterate

# Steps for each row before the problem is left to methods that do more than steps.
_STEPS = 20
# A compiled call ends after about this many element updates (0.05 s), so that Ctrl-C is answered.
_CALL = 10**8


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
    F = point.linear[:m].copy()
    _subtract(F, K, point.beta)
    beta, (rise, fall, work) = point.beta.copy(), np.empty((3, 2 * m))
    weights = BoxWeights(beta, point.lower, point.upper, np.zeros(2 * m))
    set_masks(weights, rise, fall)
    diagonal, room = K.diagonal().copy(), StepRoom(rise, fall, work, work.view(np.int64))
    least = float(np.finfo(np.float64).eps)
    rows = PickedRows(K, np.ones(m, dtype=bool), K, np.empty(0, dtype=np.intp))
    groups = TwoGroups(np.array([0, 0]), np.array([m, m]))
    left = min(limit - point.steps, int(_STEPS * m))
    while left > 0:
        portion = min(left, max(_CALL // m, 100))
        limits = StepLimits(0.9 * tol, least, portion)
        steps, _ = smo_steps_of_groups(rows, diagonal, F, weights, groups, room, limits)
        point.steps += steps
        left -= steps
        if steps < portion:
            break
        threads.checkpoint()
    point.beta = beta
    F = point.linear[:m].copy()
    _subtract(F, K, beta)
    point.F = np.tile(F, 2)


def _subtract(F: Vector, K: Array, beta: Vector) -> None:
    """``F -= K w``, where w are the weights of the rows in the expansion."""
    weights = beta.reshape(2, -1).sum(axis=0)
    moved = np.flatnonzero(weights)
    subtract_rows(F, K, moved, weights[moved])
