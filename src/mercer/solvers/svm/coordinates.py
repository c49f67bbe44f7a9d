r"""Box problems in the space of explicit features: dual coordinate descent, where these are fewer than the rows.

With :math:`K = F F^\top` the gradient of row i is :math:`c_i - \langle f_i, v \rangle` with :math:`v = F^\top \beta`,
so a step at a row reads that row alone (Hsieh et al. 2008). The sum that the weights must keep is left to the method of
multipliers: a pass minimises the augmented Lagrangian with the offset b as multiplier, and b then moves by what the sum
is off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Vector
from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.gram.features import ExplicitFeatures
from mercer.loops.coordinates import Box, Descent, dense_pass, sparse_pass
from mercer.solvers.svm.certify import figures
from mercer.solvers.svm.interior_features import go_on_inside, passes_before
from mercer.solvers.svm.iterate import Iterate

# A pass that meets this share of the tolerance is followed by a look at all rows.
_PART = 0.9
# A look that finds the violation still above the tolerance is followed by passes that aim lower.
_LOWER = 0.5
# Passes over all rows, or over as many of them at a time.
_MOST_PASSES = 400
# The price of a sum that is off, as a share of the mean of K_ii: with 1 there are twice as many visits.
_RHO = 0.1
# How much of the tolerance a sum may be off, in units of the offset, before the rest is spread over the free rows.
_OFF = 0.05
# Rows of zeros without an offset have no curvature.
_FLAT = 1e-12
# A descent reads all features tens of times, and steps on K compute a part of its entries once.
_GAIN = 8
# Vectors of the rows.
_VECTORS = 8
_SEED = 0x9E3779B97F4A7C15


def descent_bytes(n: int, p: int) -> int:
    """Memory of a descent for n rows and p features, in bytes, beside the features.

    >>> descent_bytes(1000, 100)
    64800
    """
    return 8 * (p + _VECTORS * n)


def most_cheap(n: int) -> int:
    """The most dense features of n rows for which a descent is cheaper.

    >>> most_cheap(4000), is_cheaper(4000 * 500, 500, 4000), is_cheaper(4000 * 501, 501, 4000)
    (500, True, False)
    """
    return n // _GAIN


def is_cheaper(entries: float, p: int, n: int) -> bool:
    """Whether p features with ``entries`` numbers are few enough for a descent beside steps on K of n rows.

    >>> is_cheaper(4000 * 100, 100, 4000), is_cheaper(4000 * 2000, 2000, 4000), is_cheaper(4000 * 100, 5000, 4000)
    (True, False, False)
    """
    return p <= n and _GAIN * entries <= n * n


@dataclass(frozen=True)
class CoordinateDescent:
    """Move an :class:`Iterate` with at most one sum to the solution.

    Parameters
    ----------
    features : ExplicitFeatures
        F, (n, p).
    tol : float
        The violation to reach.
    progress : Progress
        Counts passes.

    References
    ----------
    C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi and S. Sundararajan, "A dual coordinate descent method for
    large-scale linear SVM", ICML 2008; for the multipliers D. P. Bertsekas, "Constrained optimization and Lagrange
    multiplier methods" (1982).
    """

    features: ExplicitFeatures
    tol: float
    progress: Progress

    def solve(self, point: Iterate, totals: Vector) -> None:
        """Descend until the violation is at most the tolerance, or the passes are used up; the gradient is exact."""
        n, has_sum = len(point.beta), len(totals) > 0
        total, aim, left = float(totals[0]) if has_sum else 0.0, _PART * self.tol, _MOST_PASSES * n
        state = _State.begin(self.features, point, has_sum)
        patience = passes_before(self.features.shape[1]) * n
        while left > 0:
            visits = self._passes(state, total, aim, int(min(left, patience)))
            left -= visits
            point.beta = state.descent.beta.copy()
            if has_sum:
                balance(point, total)
            self.renew(point)
            record("coordinates", _MOST_PASSES * n - left, lambda: figures(point))
            if point.violation() <= self.tol:
                break
            if visits < patience:
                aim *= _LOWER
            elif go_on_inside(self.features, point, totals, self.tol):
                state = _State.begin(self.features, point, has_sum)
                if point.violation() <= self.tol:
                    break
            else:
                patience = np.inf
            state.descent.beta[:] = point.beta
        point.steps += _MOST_PASSES * n - left

    def renew(self, point: Iterate) -> None:
        """Set the exact gradient."""
        v = self.features.pull(point.beta[:, None])
        point.F = point.linear - (self.features @ v)[:, 0]

    def _passes(self, state: _State, total: float, aim: float, left: int) -> int:
        """Passes until one over all rows meets the aim; returns the visits."""
        box, descent = state.box, state.descent
        numbers, n = descent.numbers, len(descent.beta)
        descent.v[:] = self.features.pull(descent.beta[:, None])[:, 0]
        numbers[0] = descent.beta.sum() - total if box.rho else 0.0
        active = visits = 0
        while visits < left:
            if not active:
                descent.order[:], active = np.arange(n), n
                numbers[2], numbers[3] = -np.inf, np.inf
            before, active = active, state.visit(self.features, active)
            visits += before
            self.progress.advance()
            off = abs(box.rho * numbers[0])
            numbers[1] += box.rho * numbers[0]
            low, high = float(numbers[4]), float(numbers[5])
            if high - low <= aim and off <= _OFF * self.tol:
                if before == n:
                    break
                active = 0
            numbers[2], numbers[3] = low if low < 0 else -np.inf, high if high > 0 else np.inf
        return visits


@dataclass(frozen=True, eq=False)
class _State:
    """A problem and the state of its descent, as loops take them."""

    box: Box
    descent: Descent

    @classmethod
    def begin(cls, features: ExplicitFeatures, point: Iterate, has_sum: bool) -> _State:
        """The state at a point, whose gradient need not be exact."""
        n, p = features.shape
        squares = features.squared_norms()
        rho = _RHO * float(squares.mean()) if has_sum else 0.0
        curvature = np.maximum(squares + rho, _FLAT * max(float(squares.max(initial=0.0)), 1.0))
        box = Box(point.linear, point.lower, point.upper, curvature, point.tube, rho)
        offset = point.offsets()[0] if has_sum and point.beta.any() else 0.0
        numbers = np.array([0.0, offset, -np.inf, np.inf, 0.0, 0.0])
        room = np.empty(n, np.int64), np.zeros(n, np.uint8)
        descent = Descent(point.beta.copy(), np.zeros(p), np.arange(n), *room, numbers, np.array([_SEED], np.uint64))
        return cls(box, descent)

    def visit(self, features: ExplicitFeatures, active: int) -> int:
        """One pass; returns how many rows stay."""
        threads.checkpoint()
        loop, rows = (sparse_pass, features.rows) if features.is_sparse else (dense_pass, features.matrix)
        return int(loop(rows, self.box, self.descent, active))


def balance(point: Iterate, total: float) -> None:
    """Give the weights their sum: the free ones move evenly, as far as their bounds allow.

    >>> free = Iterate(*np.zeros((5, 2)))
    >>> free.lower, free.upper, free.beta = np.full(2, -1.0), np.ones(2), np.array([0.5, -0.25])
    >>> balance(free, 0.0)
    >>> free.beta.tolist()
    [0.375, -0.375]
    """
    rows = np.flatnonzero(point.free)
    for _ in range(8):
        missing = total - float(point.beta.sum())
        if not len(rows) or missing == 0:
            break
        moved = np.clip(point.beta[rows] + missing / len(rows), point.lower[rows], point.upper[rows])
        point.beta[rows] = moved
        rows = rows[(moved > point.lower[rows]) & (moved < point.upper[rows])]
    point.fill(np.array([total]))
