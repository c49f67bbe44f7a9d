"""Problems whose matrix is stored: steps among the rows that may still move, on a copy of their part of the matrix.

Far from the margin most weights are at a bound, and stay there. A step among q of n rows costs q / n of one among all,
and the part of these rows is small enough for a cache.

Source: the idea of shrinking is from Joachims (1999), "Making large-scale SVM learning practical".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.engine import memory
from mercer.gram.hold import fits
from mercer.gram.protocol import GramMatrix
from mercer.loops.picked import pick_entries
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.svm.block import Block, Rounding, Stall, padded, resolves
from mercer.solvers.svm.certify import PAIRS, keep_step
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.whole_matrix import CRAWL, ROUND, interior_round, newton_round, on_square, square_of

# A row at a bound counts as active from this share of the violation before its weight would move, and no further than
# the second number.
_NEAR = 0.5
_WIDEST = 0.2
# Steps for each row among all rows first, since easy problems need no more.
_FIRST = 0.25
# With more than this share of the rows active, a copy of their part takes longer than it saves.
_MOST = 0.5
# Part of the violation to reach among the active rows, before the gradients of all rows are computed.
_DEEP = 0.1
_FLOAT_PART = 0.9
# Up to this many active rows, their part is in float64: its steps take as long as in float32, and the matrix of their
# free weights, which may be singular, has fewer errors.
_DOUBLE = 512
# Free sets are tried when the steps have taken about as long as their factorisations, which is m**3 / (10 q) steps
# among q rows, of which m are free; at least this many, which take a millisecond as the calls do, and after a failure
# this much later.
_FACTOR_STEPS, _FEWEST, _LATER = 10, 4000, 4
# Where free sets fail, an interior point method on this many active rows takes less time than the steps that follow.
_INTERIOR = 450


def active_rows(point: Iterate, gap: float) -> NDArray[np.intp]:
    """Return rows with a free weight, and those that would leave their bound at the current offset, or nearly so.

    What is near depends on the violation ``gap`` of the point.
    """
    distance = min(_NEAR * gap, _WIDEST)
    rising, falling = point.sides()
    offsets = point.offsets() or (0.0,)
    mask = point.free.copy()
    for part, offset in zip(point.parts(), offsets):
        mask[part] |= (rising[part] > offset - distance) | (-falling[part] < offset + distance)
    return np.flatnonzero(mask)


def by_active_rows(K: Array, exact: GramMatrix | None, point: Iterate, tol: float, max_iter: int) -> int:
    """Move ``point`` until its violation is at most ``tol``, the steps are used up, or rounding stops it.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        In float32 or float64.
    exact : GramMatrix or None
        The same matrix in float64, if it is stored.
    point : Iterate
        Changed; its gradient must be that of its weights.
    tol : float
        In float32 the point may be left above it, to a solve in float64.
    max_iter : int
        The most steps that the point may have taken.

    Returns
    -------
    int
        The largest number of bytes that was reserved.
    """
    solver = _ActiveRows(K, exact, point, tol, max_iter)
    solver.solve()
    return solver.peak_bytes


class _ActiveRows:
    def __init__(self, K: Array, exact: GramMatrix | None, point: Iterate, tol: float, max_iter: int) -> None:
        self.K, self.exact, self.point, self.tol, self.max_iter = K, exact, point, tol, max_iter
        self.diagonal = K.diagonal().copy()
        self.peak_bytes, self._wait = 0, 1
        self._square: Array | None = None

    def solve(self) -> None:
        point, n, single = self.point, len(self.K), self.K.dtype == np.float32
        stall, crawls = Stall(self.K.dtype), point.steps + CRAWL * n
        begin = point.beta
        self._among_all(int(_FIRST * n))
        while point.violation() > self.tol and point.steps < self.max_iter:
            if single and not resolves(self.K.dtype, self.diagonal, point, self.tol, begin):
                return
            if point.steps >= crawls:
                # In float32 what is left is for a solve in float64, which has more ways to end it.
                if not single:
                    interior_round(self.K, point)
                    self._among_all(self.max_iter)
                return
            rows = active_rows(point, point.violation())
            if len(rows) > _MOST * n or not self._among(rows):
                self._among_all(ROUND * n)
            keep_step(PAIRS, point)
            rounding = Rounding.of(self.diagonal, point)
            if not np.isfinite(point.F).all() or stall.reached(point.dual(), point.violation(), rounding):
                return

    def _among_all(self, most: int) -> None:
        if self._square is None:
            self._square = square_of(self.K, self.point)
        on_square(self._square, self.point, self.tol, min(self.max_iter, self.point.steps + most))

    def _among(self, rows: NDArray[np.intp]) -> bool:
        """Solve among some rows, and bring the gradients of all up to date; return whether there was room for it."""
        q = len(rows)
        dtype = np.dtype(np.float64) if self.exact is not None and q <= _DOUBLE else self.K.dtype
        nbytes = dtype.itemsize * (q + 1) ** 2
        if not fits(nbytes):
            return False
        point = self.point
        part = point.take(rows)
        with memory.reserve(nbytes, "the kernel matrix of the active rows"):
            square, inside = padded(q, point.sums == 0, np.empty((q + 1) ** 2, dtype))
            self._pick(rows, inside)
            self._solve(square, inside, rows, part)
        self.peak_bytes = max(self.peak_bytes, nbytes)
        change = part.beta - point.beta[rows]
        # A copy, since a start from elsewhere may share its weights.
        point.beta = point.beta.copy()
        point.beta[rows], point.steps = part.beta, part.steps
        moved = np.flatnonzero(change)
        subtract_rows(point.F, self.K, rows[moved], change[moved])
        if not np.isfinite(part.F).all():
            point.F[rows] = np.nan
        return True

    def _pick(self, rows: NDArray[np.intp], out: Array) -> None:
        """Copy the part of the matrix, in the precision of ``out``."""
        if self.exact is not None and out.dtype == np.float64:
            self.exact.block(rows, rows, out=out)
        else:
            pick_entries(self.K, rows, rows, out)

    def _solve(self, square: Array, inside: Array, rows: NDArray[np.intp], part: Iterate) -> None:
        """Steps on the part, and free sets where these take as long."""
        q, free = len(rows), int(np.count_nonzero(part.free))
        goal = max(_FLOAT_PART * self.tol, _DEEP * part.violation())
        patience = int(self._wait * max(_FEWEST, free**3 / (_FACTOR_STEPS * q)))
        most = min(part.steps + patience, self.max_iter)
        change = Block(q, square.dtype).solve(square, inside.diagonal(), part, 0.9 * goal, most - part.steps)
        moved = np.flatnonzero(change)
        subtract_rows(part.F, inside, moved, change[moved])
        nbytes = 16 * q * q
        # Steps that ended earlier have reached the goal, but for their rounding.
        if part.steps < most or part.steps >= self.max_iter or not fits(2 * nbytes):
            return
        with memory.reserve(nbytes, "the kernel matrix of the active rows in float64 and a factor"):
            block = inside
            if inside.dtype != np.float64:
                self._pick(rows, block := np.empty((q, q)))
            if not self._solve_at_once(block, part):
                self._wait = _LATER
                newton_round(block, part)
        self.peak_bytes = max(self.peak_bytes, int(square.nbytes) + nbytes)

    @staticmethod
    def _solve_at_once(block: Array, part: Iterate) -> bool:
        """Move all weights of a part at once to a better point; return whether one was found."""
        if interior_round(block, part, free_sets_only=True):
            return True
        few = len(block) <= _INTERIOR and not part.tube
        return few and interior_round(block, part, free_sets=False)
