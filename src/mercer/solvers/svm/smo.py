r"""Solving a :class:`BoxQP` by sequential minimal optimisation on three levels, with a certificate in float64.

Minimise ``beta'K beta / 2 - c'beta + tube |beta|`` subject to ``l <= beta <= u`` and the sums of groups of weights.
Given the lazy matrix K, returns beta, the offsets, and a certificate. The kernel work is done in float32 with the
gradient summed in float64; the answer is then checked in float64 over all rows, and if rounding has kept it from the
tolerance, the solve goes on from there, in the end in float64.

All levels move one kind of state, the :class:`Iterate` (weights, box, gradient, steps): a level takes a part of it,
lets the level below move the part, and brings the gradient of the other rows up to date::

    SMO.solve            all rows, the certificate in float64
       |
       |  n > 2048                                         n <= 2048
       v                                                       |
    by_active_sets       rows that may still move              |
       |                 (nested samples, then all)            |
       v                                                       v
    by_working_sets      at most 1536 rows;          on_whole_matrix
       |                 RowStore updates F of the rest        |
       |                                                       |
       +---------------------------+---------------------------+
                                   v
                         Block.solve    pairs of weights on a dense block: smo_steps
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Array, Vector
from mercer.data.objects import short
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.gram.features import FEATURES_STORAGE, ExplicitFeatures
from mercer.gram.hold import REMEDY, as_it_is, fits, held_whole, hold_exact, reserve_whole, whole_matrix
from mercer.gram.protocol import GramMatrix
from mercer.loops.stored_rows import subtract_rows
from mercer.solvers.solution import Solution
from mercer.solvers.svm.active_set import by_active_sets
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.certify import (
    PAIRS,
    check_gradient,
    gradient_rounding,
    keep_step,
    objectives,
    renew_gradient,
    squares_of,
)
from mercer.solvers.svm.coordinates import CoordinateDescent, descent_bytes, is_cheaper, most_cheap
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.kept_matrix import KeptMatrix
from mercer.solvers.svm.shared_rows import on_shared_rows
from mercer.solvers.svm.shrinking import by_active_rows
from mercer.solvers.svm.solver import BoxSolver, Start, certified, ended
from mercer.solvers.svm.whole_matrix import on_whole_matrix

# Up to this size the whole matrix is one block, and the working set is everything.
WHOLE = 2048
# Up to this size all of a stored matrix is one block: its rows are read where they lie.
STORED = 8192
# Up to this size steps cost next to nothing, and the answer is made as exact as float64 allows.
EXACT = 512
EXACT_TOL = 1e-11
_EXACT_STEPS = 200
# Steps for each row on a stored matrix in float64: in float32 they take half as long, but the copy as long as these.
_FEW = 2
# The part of the tolerance that is aimed at in float32, to leave room for its rounding.
_FLOAT32_PART = 0.9
# Solves in float32 before float64 takes over, and in float64; a large problem leaves rows out in its last round, so
# it has more.
_ATTEMPTS = 4
# In float64 it is tried again where the last time has lessened the violation to this part.
_LESS = 0.5
# If the gap must be small, a round aims at this part of the violation that would do if the two were in proportion.
_GAP_PART = 0.5
# Steps for each row where rounding may be larger than the tolerance.
_BEYOND = 200
_GAP_ROUNDS = 12


@dataclass(frozen=True, kw_only=True)
class SMO(BoxSolver):
    """Sequential minimal optimisation: pairs of weights, in working sets of rows, in sets of active rows.

    Parameters
    ----------
    tol : float, default=1e-3
        The violation of the optimality conditions (in units of the decision function) that is small enough. Up to 512
        rows are solved to the precision of float64, whatever ``tol`` is, where 200 steps a row get there.
    stop : {"kkt", "gap"}, default="kkt"
        With ``"gap"`` it goes on until the relative duality gap is at most ``tol``, too, or the gap itself at most
        ``tol**2 / (2 max K_ii)``, which counts where the optimum is about 0: since the gap bounds half the squared
        distance of w to the best one, <w, phi(x)> is then within ``tol`` of the best for every row x.
    max_iter : int, default=-1
        The most inner steps, -1 for no limit.
    n_jobs : int, optional
        Worker threads.
    verbose : bool, default=False
        Show progress on standard error.
    cache_bytes : int, default=209715200
        The most memory for kernel rows that are kept, in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP.classification(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    >>> SMO().solve(problem).value.beta
    array([ 1., -1.])
    """

    cache_bytes: int = 200 * 2**20

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.cache_bytes, bool) or not isinstance(self.cache_bytes, Integral) or self.cache_bytes < 0:
            raise ParameterError(
                f"SMO: cache_bytes must be a whole number of at least 0, but is {short(self.cache_bytes)}."
            )

    @property
    def kept_bytes(self) -> int:
        """``cache_bytes``."""
        return int(self.cache_bytes)

    def solve(self, problem: BoxQP, start: Start | None = None) -> Solution[BoxQPValue, Vector]:
        begin = time.perf_counter()
        start = Start() if start is None else start
        point = Iterate.begin(problem, start.beta)
        solver = _Solver(problem, self, start)
        # Held for the whole solve: BLAS threads that wait for work between two tiled products take time from the tiles.
        with threads.one_blas_thread():
            if start.beta is not None and start.gradient is not None:
                point.F = start.gradient.copy()
            elif point.beta.any():
                renew_gradient(problem.gram, point)
            solver.known = point.beta.copy(), point.F.copy()
            keep_step(PAIRS, point)
            solver.solve(point, self.tol)
            values = objectives(point)
            allowed = _Allowed.of(problem.gram, self.tol) if self.stop == "gap" else None
            if allowed is not None:
                values = _close_gap(solver, point, allowed, values)
        keep_step(PAIRS, point)
        converged = point.violation() <= self.tol and (allowed is None or allowed.excess(*values) <= 1)
        status = ended(problem.convex, converged, point.steps >= self.limit)
        seconds = time.perf_counter() - begin
        return certified(problem, point, values, status, seconds, solver.peak_bytes, solver.storage)


@dataclass(frozen=True)
class _Allowed:
    """The largest acceptable gap: relative to the objective or, if that is about 0, absolute."""

    relative: float
    absolute: float

    @classmethod
    def of(cls, gram: GramMatrix, tol: float) -> _Allowed:
        """See ``stop`` of :class:`SMO`."""
        largest = float(gram.diagonal().max())
        return cls(tol, 0.5 * tol**2 / largest if largest > 0 else 0.0)

    def excess(self, primal: float, dual: float) -> float:
        """The gap in units of the allowed gap."""
        limit = max(self.relative * max(abs(primal), abs(dual)), self.absolute)
        return (primal - dual) / limit if limit > 0 else 0.0


def _close_gap(solver: _Solver, point: Iterate, allowed: _Allowed, values: tuple[float, float]) -> tuple[float, float]:
    """Continue with smaller tolerances until the gap is small enough, or nothing changes any more."""
    aim = allowed.relative
    for _ in range(_GAP_ROUNDS):
        excess = allowed.excess(*values)
        if excess <= 1 or point.steps >= solver.limit:
            break
        aim *= max(0.1, min(_GAP_PART, _GAP_PART / excess))
        solver.solve(point, aim)
        values = objectives(point)
    return values


class _Solver:
    """Moves an iterate with an exact gradient; ``peak_bytes`` is the peak of the reserved memory."""

    def __init__(self, problem: BoxQP, rules: SMO, start: Start) -> None:
        self.totals, self.convex = np.asarray(problem.totals), problem.convex
        self.gram, self.once, self.rules, self.limit = problem.gram, problem.once, rules, rules.limit
        self.matrix, self.kept = start.matrix, start.kept
        # Whether the rounding of K beta may be larger than the tolerance.
        self.is_beyond_rounding = False
        self.peak_bytes, self.storage = 0, "" if self.matrix is None else held_whole(self.matrix)
        # Weights and their gradient in float64, which later ones are computed from.
        self.known: tuple[Vector, Vector] | None = None

    @cached_property
    def stored(self) -> Array | None:
        """The matrix, if it is small and stored in float64."""
        return _stored(self.gram)

    def solve(self, point: Iterate, tol: float) -> None:
        """Solve until the violation is at most ``tol``, the steps are used up, or rounding stops it."""
        if len(point.beta) <= EXACT:
            self._small(point, tol)
        else:
            rounding = gradient_rounding(squares_of(self.gram, self.once), point) if self.convex else 0.0
            self.is_beyond_rounding = rounding > tol
            if self.is_beyond_rounding:
                self.limit = min(self.rules.limit, point.steps + _BEYOND * len(point.beta))
            self._large(point, tol)

    def _small(self, point: Iterate, tol: float) -> None:
        """Solve in float64, to its precision if a few steps suffice, else to ``tol``."""
        n = len(point.beta)
        with ExitStack() as stack:
            K = self.matrix
            if K is None:
                storage = hold_exact(self.gram, stack, beside=0, required=REMEDY)
                K, self.storage = storage.array, storage.sentence
            assert K is not None
            point.fill(self.totals)
            point.F = point.linear - K @ point.beta
            # The violation is in units of the linear part: targets far below 1 are solved as exactly as all others.
            # Without a linear part the kernel alone gives the unit.
            size = float(np.abs(point.linear if point.linear.any() else point.F).max(initial=0.0))
            exact = EXACT_TOL * size if 0 < size < 1 else EXACT_TOL
            on_whole_matrix(K, point, min(tol, exact), min(self.limit, point.steps + _EXACT_STEPS * n))
            on_whole_matrix(K, point, tol, self.limit)
            point.F = point.linear - K @ point.beta
        check_gradient(point)
        self.peak_bytes = max(self.peak_bytes, 0 if self.matrix is None and self.stored is not None else int(K.nbytes))

    def _large(self, point: Iterate, tol: float) -> None:
        """Solve in float32, again from the float64 gradient, which shows the remaining errors, and then in float64."""
        if self.matrix is None and (self._on_what_is_there(point, tol) or self._by_features(point, tol)):
            return
        attempts = 2 if len(point.beta) <= WHOLE else _ATTEMPTS
        with ExitStack() as stack:
            kept = KeptMatrix(stack) if self.kept is None else self.kept
            self._attempts(point, tol, (np.float32,) * attempts + (np.float64,) * _ATTEMPTS, kept)

    def _attempts(
        self, point: Iterate, tol: float, precisions: tuple[type[np.floating], ...], kept: KeptMatrix
    ) -> None:
        """Solve in one precision after the other, each time from a gradient in float64, until that is enough."""
        begin, least = point.beta.copy(), np.inf
        for dtype in precisions:
            # What overflows float32 becomes infinite, which is seen below.
            with np.errstate(over="ignore"):
                self._attempt(dtype, point, tol if dtype == np.float64 else _FLOAT32_PART * tol, kept)
            if dtype == np.float32 and not (np.isfinite(point.F).all() and np.isfinite(point.beta).all()):
                # The kernel overflows float32; float64 begins anew.
                point.beta = begin.copy()
                renew_gradient(self.gram, point, self.known)
                continue
            check_gradient(point)
            renew_gradient(self.gram, point, self.known)
            self.known = point.beta.copy(), point.F.copy()
            violation = point.violation()
            if violation <= tol or point.steps >= self.limit or (dtype == np.float64 and violation > _LESS * least):
                break
            least = min(least, violation)

    def _on_what_is_there(self, point: Iterate, tol: float) -> bool:
        """Solve on a matrix that is smaller than the problem's, or stored; return whether that was enough."""
        if self.once is not None and self.once.shape[0] <= WHOLE:
            with ExitStack() as stack:
                storage = hold_exact(self.once, stack, beside=0)
                if storage.array is None:
                    return False
                self.storage = storage.sentence
                point.fill(self.totals)
                on_shared_rows(storage.array, point, tol, self.limit)
            self.peak_bytes = max(self.peak_bytes, 0 if _stored(self.once) is not None else storage.array.nbytes)
            check_gradient(point)
            self.known = point.beta.copy(), point.F.copy()
            return point.violation() <= tol or point.steps >= self.limit
        if self.stored is None:
            return False
        # As many steps as cost no more than a copy in float32.
        self._whole(self.stored, point, tol, min(self.limit, point.steps + _FEW * len(self.stored)))
        check_gradient(point)
        renew_gradient(self.gram, point, self.known)
        self.known = point.beta.copy(), point.F.copy()
        return point.violation() <= tol or point.steps >= self.limit

    def _features(self) -> ExplicitFeatures | None:
        """Explicit features, where there are at most as many as rows and coordinate descent can use them.

        They are not kept: later steps need the memory, which is reserved for the descent only.
        """
        n = self.gram.shape[0]
        if not self.convex or len(self.totals) > 1 or n <= WHOLE or self.rules.max_iter >= 0:
            return None
        if self.kept is not None and self.kept.square is not None:
            return None
        features = self.gram.explicit_features(n, most_cheap(n))
        return features if features is not None and is_cheaper(features.entries, features.shape[1], n) else None

    def _by_features(self, point: Iterate, tol: float) -> bool:
        """Solve in the space of explicit features; return whether that was enough."""
        features = self._features()
        nbytes = 0 if features is None else features.nbytes + descent_bytes(*features.shape)
        if features is None or not fits(nbytes):
            return False
        with memory.reserve(nbytes, f"{features.shape[1]} explicit features"):
            CoordinateDescent(features, tol, Progress(None, "passes", self.rules.verbose)).solve(point, self.totals)
        check_gradient(point)
        self.peak_bytes = max(self.peak_bytes, nbytes)
        self.known, self.storage = (point.beta.copy(), point.F.copy()), FEATURES_STORAGE
        # Steps on the entries of K, whose rounding is larger than that of the features, would not come closer either.
        return point.violation() <= tol or self.is_beyond_rounding

    def _attempt(self, dtype: type[np.floating], point: Iterate, tol: float, kept: KeptMatrix) -> None:
        """One solve in the precision ``dtype``."""
        n = len(point.beta)
        stored = self.gram.stored_as(dtype) if n <= STORED else None
        if stored is not None:
            self._whole(stored, point, tol, self.limit)
            nbytes, self.storage = 0, as_it_is(self.gram.astype(dtype))
        elif self.matrix is not None and dtype == np.float32:
            self._whole(self.matrix, point, tol, self.limit)
            nbytes = self.matrix.nbytes
        elif n > WHOLE:
            rules = replace(
                self.rules, tol=tol, max_iter=int(self.limit) if self.is_beyond_rounding else self.rules.max_iter
            )
            nbytes, exact, self.storage = by_active_sets(self.gram.astype(dtype), point, self.totals, rules, kept)
            if exact:
                self.known = point.beta.copy(), point.F.copy()
        else:
            nbytes = n * n * np.dtype(dtype).itemsize
            with ExitStack() as stack:
                _, self.storage = reserve_whole((n, n), stack, {dtype: 0}, required=REMEDY)
                self._whole(whole_matrix(self.gram, dtype), point, tol, self.limit)
        self.peak_bytes = max(self.peak_bytes, nbytes)

    def _exact_entries(self) -> GramMatrix | None:
        """K in float64 if it is stored, or if memory for float32 alone was left and entries take little time.

        Parts of it do not then depend on the memory budget, and neither does the answer.
        """
        exact = self.gram.astype(np.float64)
        single = self.gram.astype(np.float32).stored() is not None
        return exact if exact.stored() is not None or (single and not exact.expensive) else None

    def _whole(self, K: Array, point: Iterate, tol: float, limit: int) -> None:
        moved = np.flatnonzero(change := point.fill(self.totals))
        subtract_rows(point.F, K, moved, change[moved])
        if point.groups is not None:
            on_whole_matrix(K, point, tol, limit)
            return
        nbytes = by_active_rows(K, self._exact_entries(), point, tol, limit)
        self.peak_bytes = max(self.peak_bytes, nbytes)


def small_matrix(gram: GramMatrix, stack: ExitStack) -> Array | None:
    """Return all of K for several solves, in the precision of ``Start.matrix``; None if it is not small."""
    n = gram.shape[0]
    if n > WHOLE:
        return None
    dtype, _ = reserve_whole((n, n), stack, {np.float64 if n <= EXACT else np.float32: 0}, required=REMEDY)
    with np.errstate(over="ignore"):
        return whole_matrix(gram, dtype)


def _stored(gram: GramMatrix) -> Array | None:
    """Return the whole matrix, if its size allows and it is stored in float64."""
    few = gram.shape[0] <= WHOLE
    return gram.stored_as(np.float64) if few else None
