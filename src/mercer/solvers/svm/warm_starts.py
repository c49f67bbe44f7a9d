"""Start a problem from the answer of another one over the same rows with the same kernel."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import numpy as np

from mercer._types import Array, Vector
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.kept_matrix import KeptMatrix
from mercer.solvers.svm.smo import small_matrix
from mercer.solvers.svm.solver import Start

# What rounding has left next to a bound would count as free.
_AT_BOUND = 1.0 - 1e-12


def outward(count: int) -> list[tuple[int, int | None]]:
    """Return the order in which to solve for ascending values: from the middle up, then from the middle down.

    Each with the one that it starts from. With a larger C weights at their bounds stay there; where C is so small
    that nearly all are, it is quicker to come from above.

    >>> outward(4)
    [(2, None), (3, 2), (1, 2), (0, 1)]
    """
    middle = count // 2
    up = [(number, number - 1) for number in range(middle + 1, count)]
    return [(middle, None), *up, *((number, number + 1) for number in range(middle - 1, -1, -1))]


class WarmStarts:
    r"""Remembers the last problem and its answer; starts the next one, which may differ in all but the matrix K.

    Where the sums of the weights are zero (or there is none), the start is the best point on the ray through the last
    weights that is in the new box: :math:`s \beta` with

    .. math:: s = \min\Bigl(\min_i \frac{u_i}{|\beta_i|},\;
              \frac{c^\top \beta - \varepsilon |\beta|_1}{\beta^\top K \beta}\Bigr).

    Its gradient :math:`c - s K \beta` follows from the last one, so that a start costs no evaluation of the kernel.
    From C to a larger one, s is the ratio of the two as long as weights are at their bound, which they stay at.

    Parameters
    ----------
    held : ExitStack
        Keeps the memory of a small kernel matrix reserved, which is made once for all problems.

    Attributes
    ----------
    convex : bool or None
        Whether the last problem was convex, which K decides; None before the first one.

    Notes
    -----
    A copy goes on from the same answer by itself.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.svm.smo import SMO
    >>> gram, y, warm_starts = PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), WarmStarts(ExitStack())
    >>> problem = BoxQP.classification(gram, y, np.full(2, 0.25))
    >>> warm_starts.keep(problem, SMO().solve(problem).value)
    >>> start = warm_starts.start(BoxQP.classification(gram, y, np.full(2, 0.5)))
    >>> start.beta, start.gradient
    (array([ 0.5, -0.5]), array([ 0.5, -0.5]))
    """

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._product: Vector | None = None
        self._beta = np.empty(0)
        self._matrix: Array | None = None
        # A matrix of many rows, which the first solve makes if it needs most of it.
        self._kept = KeptMatrix(stack)
        self.convex: bool | None = None

    def matrix(self, gram: GramMatrix) -> Array | None:
        """Return the whole of a small matrix for :class:`Start`."""
        if self._matrix is None:
            self._matrix = small_matrix(gram, self._stack)
        return self._matrix

    def keep(self, problem: BoxQP, value: BoxQPValue) -> None:
        """Remember an answer."""
        self._beta, self._product = value.beta, problem.linear - value.gradient
        self.convex = problem.convex

    def start(self, problem: BoxQP, move: Callable[[Vector, BoxQP], Vector] | None = None) -> Start:
        """Return a feasible start and its gradient, as far as they are known.

        ``move`` makes the last weights feasible for a problem whose sums are not zero; the gradient is then not known.
        """
        if self._product is None:
            return Start(kept=self._kept)
        if any(problem.totals):
            return Start(None if move is None else move(self._beta, problem), kept=self._kept)
        scale = self._scale(problem)
        return Start(_boxed(scale * self._beta, problem), problem.linear - scale * self._product, kept=self._kept)

    def _scale(self, problem: BoxQP) -> float:
        support = np.flatnonzero(self._beta)
        beta = self._beta[support]
        bound = np.where(beta > 0, problem.upper[support], -problem.lower[support])
        most = float((bound / np.abs(beta)).min(initial=np.inf))
        gain = float(problem.linear[support] @ beta - problem.tube * np.abs(beta).sum())
        curvature = float(beta @ self._product[support]) if self._product is not None else 0.0
        best = max(gain, 0.0) / curvature if curvature > 0 else 1.0
        return min(most, best) if np.isfinite(min(most, best)) else 0.0


def feasible(weights: Vector, problem: BoxQP) -> Vector:
    """``weights`` (n,) of an earlier fit moved into the box and to the sums of a problem over the rows once or twice.

    They are clipped. What a sum then has too much is taken from the weights of that sign, in proportion, and what it
    has too little is added to the weights in proportion to the room that they have, those that are not zero first.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP(PrecomputedGram(np.eye(3)), np.zeros(3), -np.ones(3), np.ones(3))
    >>> feasible(np.array([3.0, -0.5, 0.25]), problem)
    array([ 0.4, -0.5,  0.1])
    """
    beta = _boxed(np.tile(weights, len(problem.linear) // len(weights)), problem)
    for number, total in enumerate(problem.totals):
        rows = slice(None) if problem.groups is None else problem.groups == number
        beta[rows] = _with_sum(beta[rows], problem.lower[rows], problem.upper[rows], total)
    return beta


def _boxed(beta: Vector, problem: BoxQP) -> Vector:
    """Clipped, and at a bound where only rounding separates a weight from it."""
    beta = np.where(beta > _AT_BOUND * problem.upper, problem.upper, beta)
    return np.where(beta < _AT_BOUND * problem.lower, problem.lower, beta)


def _with_sum(beta: Vector, lower: Vector, upper: Vector, total: float) -> Vector:
    missing = total - float(beta.sum())
    if missing < 0:
        return -_with_sum(-beta, -upper, -lower, -total)
    room = upper - beta
    # Back towards zero keeps zeros; then weights that exist; then all.
    for part in (np.maximum(-beta, 0.0), np.where(beta != 0, room, 0.0), room):
        capacity = float(part.sum())
        if capacity >= missing:
            return beta + part * (missing / capacity) if missing > 0 else beta
    return upper.copy()
