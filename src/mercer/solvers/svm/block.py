"""Inner steps on a dense block of the kernel matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import threads
from mercer.loops.smo import set_masks, smo_steps, smo_steps_in_groups
from mercer.loops.smo_double import smo_double_steps
from mercer.solvers.svm.iterate import Iterate

# A compiled call ends after about this many element updates (0.05 s), so that Ctrl-C is answered.
_CALL = 10**8
# From this many rows on the block is in no cache, and steps go by two pairs at a time.
_STREAMED = 8192
# Rounds without progress beyond rounding after which a solve is given up as stalled.
_PATIENCE = 20
# A violation is the difference of the extremes of many gradients, which random errors set so many times apart.
_EXTREMES = 8.0
# The violation is less where it is less than this part of what it was.
_LESS = 0.9
# The box of the row that stands for the offset: wider than any weight, and its width can still be multiplied.
_WIDE = 1e150


def padded(q: int, pad: bool, room: Array) -> tuple[Array, Array]:
    """A matrix with, if ``pad``, one more row and column of zeros; and its part of shape (q, q).

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
        self._F, self._rise, self._fall, self._work, self._diagonal = np.empty((5, size + 1), self.dtype)
        self._present = np.ones(size + 1, dtype=bool)
        self._bits = self._work.view(f"i{self.dtype.itemsize}")

    def solve(
        self, K: Array, diagonal: Array, point: Iterate, rows: np.ndarray, tolerance: float, max_steps: int
    ) -> np.ndarray:
        """Improve ``point.beta[rows]`` in place until the violation within ``rows`` is small; returns the change.

        ``K`` is the block, with the row of zeros of :func:`padded` if there is no sum to keep.
        """
        q = len(rows)
        pad = len(K) - q
        self._F[:q], self._diagonal[:q] = point.F[rows], diagonal
        self._F[q], self._diagonal[q] = 0, 0
        before = point.beta[rows]
        beta, lower, upper = (
            np.append(v, w)[: q + pad]
            for v, w in ((before, 0.0), (point.lower[rows], -_WIDE), (point.upper[rows], _WIDE))
        )
        groups = None if point.groups is None else point.groups[rows]
        self._steps(K, point, groups, beta, lower, upper, tolerance, max_steps)
        if not np.isfinite(self._F[:q]).all():
            # A row of the block that was used is not finite. The caller tries float64, or raises.
            point.F[rows] = np.nan
            return np.zeros(q)
        point.beta[rows] = beta[:q]
        return beta[:q] - before

    def _steps(
        self,
        K: Array,
        point: Iterate,
        groups: np.ndarray | None,
        beta: Vector,
        lower: Vector,
        upper: Vector,
        tolerance: float,
        max_steps: int,
    ) -> None:
        q = len(beta)
        F, rise, fall, work, bits = self._F[:q], self._rise[:q], self._fall[:q], self._work[:q], self._bits[:q]
        diagonal, present = self._diagonal[:q], self._present[:q]
        tube = np.where(upper < _WIDE, point.tube, 0.0)
        least = float(np.finfo(self.dtype).eps * max(diagonal.max(), np.finfo(np.float32).tiny))
        while max_steps > 0:
            portion = min(max_steps, max(_CALL // q, 100))
            if groups is None and q >= _STREAMED:
                set_masks(beta, lower, upper, tube, rise, fall)
                second = np.empty_like(work)
                steps, _ = smo_double_steps(
                    K,
                    diagonal,
                    F,
                    beta,
                    lower,
                    upper,
                    tube,
                    rise,
                    fall,
                    work,
                    bits,
                    second,
                    second.view(bits.dtype),
                    tolerance,
                    least,
                    portion,
                )
            elif groups is None:
                set_masks(beta, lower, upper, tube, rise, fall)
                steps, _, _ = smo_steps(
                    K, present, diagonal, F, beta, lower, upper, tube, rise, fall, work, bits, tolerance, least, portion
                )
            else:
                steps, _ = smo_steps_in_groups(
                    K,
                    present,
                    diagonal,
                    F,
                    beta,
                    lower,
                    upper,
                    tube,
                    groups,
                    rise,
                    fall,
                    work,
                    bits,
                    tolerance,
                    least,
                    portion,
                )
            point.steps += steps
            max_steps -= steps
            if steps < portion:
                break
            threads.checkpoint()


class Stall:
    """Notices when a solve makes no more progress than rounding does."""

    def __init__(self, dtype: np.dtype) -> None:
        self._eps = float(np.finfo(dtype).eps)
        self._best, self._least, self._idle = -np.inf, np.inf, 0

    def reached(self, dual: float, violation: float, rounding: Rounding) -> bool:
        """Whether the last rounds neither raised the dual objective by more than rounding nor lessened the violation.

        Next to the optimum the objective has no digits left for what a round gains, which goes with the square of the
        ``violation``. Where the violation itself is no more than rounding, the objective is not asked.
        """
        risen = dual > self._best + max(self._eps * abs(dual), rounding.gain)
        if violation < _LESS * self._least or (violation > rounding.gradient and risen):
            self._best, self._least, self._idle = max(dual, self._best), min(violation, self._least), 0
        else:
            self._idle += 1
        return self._idle >= _PATIENCE


@dataclass(frozen=True)
class Rounding:
    """What rounding in float64 may do: to a gradient, and to what is gained of the objective from round to round."""

    gradient: float
    gain: float

    @classmethod
    def of(cls, diagonal: Array, point: Iterate) -> Rounding:
        """At the most; a step at a violation v gains about ``v**2 / max K_ii``, and a round takes one for each row."""
        largest = float(np.abs(diagonal).max())
        with np.errstate(over="ignore"):
            share = float(np.finfo(np.float64).eps) * float(np.abs(point.beta).sum())
        return cls(share * largest, len(point.beta) * share * share * largest)

    @classmethod
    def typical(cls, diagonal: Array, point: Iterate) -> Rounding:
        """What independent errors of the gradients add up to in ``beta'K beta``, where a round renews them all."""
        scale = float(np.finfo(np.float64).eps) * float(np.abs(diagonal).max())
        with np.errstate(over="ignore"):
            return cls(0.0, scale * float(point.beta @ point.beta))


def resolves(dtype: np.dtype, diagonal: Array, point: Iterate, tol: float) -> bool:
    """Whether gradients in this precision can tell what is left to do from rounding.

    If rounding is below ``tol`` they can. Else it goes on as long as the violation that the point has is more than
    rounding: from float32 to a solve in float64, the last precision there is, which does not look at ``tol``.
    """
    rounding = 0.5 * float(np.finfo(dtype).eps) * float(np.abs(diagonal).max()) * float(np.linalg.norm(point.beta))
    # A NaN goes on, to be found where the block is made.
    if np.dtype(dtype) == np.float32 and not rounding > tol:
        return True
    return not point.violation() <= _EXTREMES * rounding
