"""Inner steps on a dense block of the kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import threads
from mercer.loops.box import BoxWeights, set_masks
from mercer.loops.picked import PickedRows
from mercer.loops.smo import Groups, StepLimits, StepRoom, smo_steps
from mercer.solvers.svm.iterate import Iterate

# A compiled call ends after about this many element updates (0.05 s), so that Ctrl-C is answered.
_CALL = 10**8
# Rounds without progress beyond rounding after which a solve is given up as stalled.
_PATIENCE = 20
# A violation is the difference of the extremes of many gradients, which random errors set this many times apart.
_EXTREMES = 8.0
# The violation is less where it is less than this part of what it was.
_LESS = 0.9
# The box of the row that stands for the offset: wider than any weight, and its width can still be multiplied.
_WIDE = 1e150
# Rows of a block are all there.
_NOWHERE = np.empty(0, dtype=np.intp)


def padded(q: int, pad: bool, room: Array) -> tuple[Array, Array]:
    """Return a matrix, with ``pad`` one more row and column of zeros, and its part of shape (q, q).

    The row of zeros stands for the offset where that is 0: a step that pairs a weight with it moves one weight alone.
    """
    size = q + pad
    whole = room[: size * size].reshape(size, size)
    if pad:
        whole[q] = 0
        whole[:, q] = 0
    return whole, whole[:q, :q]


class Block:
    """Work arrays for inner steps on at most ``size`` rows."""

    def __init__(self, size: int, dtype: np.dtype) -> None:
        self.dtype = np.dtype(dtype)
        self._F, self._diagonal = np.empty((2, size + 1), self.dtype)
        self._room = np.empty((4, size + 1), self.dtype)
        self._present = np.ones(size + 1, dtype=bool)

    def solve(self, K: Array, diagonal: Array, part: Iterate, tolerance: float, max_steps: int) -> Vector:
        """Improve the weights of ``part`` in place until its violation is small; return their change.

        ``K`` is the block of its rows with the row of zeros of :func:`padded` if there is no sum to keep, or of half as
        many where both groups of weights have the same rows. The gradient is left as it was.
        """
        if part.groups is not None and (np.diff(part.groups) < 0).any():
            return self._solve_in_order(K, diagonal, part, tolerance, max_steps)
        q, size = len(part.beta), max(len(part.beta), len(K))
        self._F[:q], self._F[q:size] = part.F, 0
        self._diagonal[: len(diagonal)], self._diagonal[len(diagonal) :] = diagonal, 0
        # With the offset as one more weight, where it is 0.
        ends = (part.beta, 0.0), (part.lower, -_WIDE), (part.upper, _WIDE)
        beta, lower, upper = (np.append(values, end)[:size] for values, end in ends)
        weights = BoxWeights(beta, lower, upper, np.where(upper < _WIDE, part.tube, 0.0))
        part.steps += self._steps(K, weights, _groups(part, len(K)), tolerance, max_steps)
        if not np.isfinite(self._F[:q]).all():
            # A row of the block that was used is not finite. The caller tries float64, or raises.
            part.F = np.full(q, np.nan)
            return np.zeros(q)
        change = beta[:q] - part.beta
        part.beta = beta[:q]
        return change

    def _solve_in_order(self, K: Array, diagonal: Array, part: Iterate, tolerance: float, max_steps: int) -> Vector:
        """The same where groups are not one behind the other."""
        order = np.argsort(np.asarray(part.groups), kind="stable")
        inner, change = part.take(order), np.zeros(len(order))
        change[order] = self.solve(K[np.ix_(order, order)], diagonal[order], inner, tolerance, max_steps)
        part.beta, part.steps = part.beta.copy(), inner.steps
        part.beta[order] = inner.beta
        if not np.isfinite(inner.F).all():
            part.F = np.full(len(order), np.nan)
        return change

    def _steps(self, K: Array, weights: BoxWeights, groups: Groups, tolerance: float, max_steps: int) -> int:
        """Make steps from the weights, in place; return their number."""
        q, size, total = len(K), len(weights.beta), 0
        F, room = self._F[:size], StepRoom.of(self._room[:, :size])
        rows = PickedRows(K, self._present[:q], K, _NOWHERE)
        least = float(np.finfo(self.dtype).eps)
        set_masks(weights, room.rise, room.fall)
        while total < max_steps:
            limits = StepLimits(tolerance, least, min(max_steps - total, max(_CALL // q, 100)))
            steps, _, _ = smo_steps(rows, self._diagonal[:q], F, weights, groups, room, limits)
            total += steps
            if steps < limits.max_steps:
                break
            threads.checkpoint()
        return total


def _groups(part: Iterate, rows: int) -> Groups:
    """The groups of the weights of a part, on a block of so many rows."""
    if part.groups is None:
        return Groups((0,), (rows,), (0,))
    q, first = len(part.beta), int(np.count_nonzero(part.groups == 0))
    return Groups((0, first), (first, q), (0, first if rows == q else 0))


class Stall:
    """Detects when a solve makes no more progress than rounding errors."""

    def __init__(self, dtype: np.dtype) -> None:
        self._eps = float(np.finfo(dtype).eps)
        self._best, self._least, self._idle = -np.inf, np.inf, 0

    def reached(self, dual: float, violation: float, rounding: Rounding) -> bool:
        """Whether the last rounds neither raised the dual objective by more than rounding nor reduced the violation.

        Next to the optimum the objective has no digits left for what a round gains, which goes with the square of the
        ``violation``. Where the violation itself is no more than rounding, the objective does not count.
        """
        risen = dual > self._best + max(self._eps * abs(dual), rounding.gain)
        if violation < _LESS * self._least or (violation > rounding.gradient and risen):
            self._best, self._least, self._idle = max(dual, self._best), min(violation, self._least), 0
        else:
            self._idle += 1
        return self._idle >= _PATIENCE


@dataclass(frozen=True)
class Rounding:
    """Bounds on rounding errors in float64: of a gradient, and of the gain of the objective in a round."""

    gradient: float
    gain: float

    @classmethod
    def of(cls, diagonal: Array, point: Iterate) -> Rounding:
        """Compute the bounds; a step at a violation v gains about ``v**2 / max K_ii``, a round has one for each row."""
        largest = float(np.abs(diagonal).max())
        with np.errstate(over="ignore"):
            share = float(np.finfo(np.float64).eps) * float(np.abs(point.beta).sum())
        return cls(share * largest, len(point.beta) * share * share * largest)

    @classmethod
    def typical(cls, diagonal: Array, point: Iterate) -> Rounding:
        """The error of ``beta'K beta`` from independent errors of the gradients, if a round recomputes all of them."""
        scale = float(np.finfo(np.float64).eps) * float(np.abs(diagonal).max())
        with np.errstate(over="ignore"):
            return cls(0.0, scale * float(point.beta @ point.beta))


def resolves(dtype: np.dtype, diagonal: Array, point: Iterate, tol: float, begin: Vector | None = None) -> bool:
    """Whether the remaining violation is above the rounding of gradients in this precision.

    In float32 it counts as such if rounding is at most ``tol``. Otherwise, and in float64 for any ``tol``, the
    violation of the point must be larger than rounding. Where the gradient was exact at the weights ``begin``, only
    what has changed since then has errors, beside its own rounding.
    """
    half, largest = 0.5 * float(np.finfo(dtype).eps), float(np.abs(diagonal).max())
    if begin is None:
        rounding = half * largest * float(np.linalg.norm(point.beta))
    else:
        rounding = half * (largest * float(np.linalg.norm(point.beta - begin)) + float(np.abs(point.F).max()))
    # A NaN goes on, to be found where the block is made.
    if np.dtype(dtype) == np.float32 and not rounding > tol:
        return True
    return not point.violation() <= _EXTREMES * rounding
