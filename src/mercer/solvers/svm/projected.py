"""Solve a :class:`BoxQP` by projected gradient steps, plain or accelerated: slow, but short and easy to read."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Vector
from mercer.engine import memory, settings, threads
from mercer.engine.progress import Progress
from mercer.gram.protocol import GramMatrix
from mercer.solvers.solution import Solution
from mercer.solvers.svm.box_qp import BoxQP, BoxQPValue
from mercer.solvers.svm.certify import check_gradient, keep_step, objectives, renew_gradient
from mercer.solvers.svm.iterate import Iterate
from mercer.solvers.svm.solver import BoxSolver, Start, certified, ended

_POWER_STEPS = 12
# What power iteration may have missed of the largest eigenvalue; a step that shows more raises the estimate.
_HEADROOM = 1.05
_TINY = 1e-300
_EPS = float(np.finfo(np.float64).eps)
# Steps without a better dual objective after which rounding is taken to have stopped the progress.
_PATIENCE = 200
# Vectors of length n that are stored at the same time.
_VECTORS = 20


@dataclass(frozen=True, kw_only=True)
class ProjectedGradient(BoxSolver):
    r"""Projected gradient steps, plain or accelerated.

    .. math:: \beta \leftarrow \operatorname{prox}\bigl(\beta + \tfrac1L (c - K \beta)\bigr), \qquad
              \operatorname{prox}(v) = \arg\min_{b \text{ feasible}} \tfrac12 \|b - v\|^2
              + \tfrac{\varepsilon}{L} \|b\|_1,

    where L is the largest eigenvalue of K on the directions that keep the sums, found by power iteration. If a
    step meets more curvature than that, L is raised and the step is repeated, so that every step of the plain form
    improves the objective. A step costs one product with the lazy matrix K, which is never stored.

    The accelerated form takes its steps from a point extrapolated along the last one, and begins anew where that
    points uphill. It needs a convex problem; without one the plain form is used. The error in the objective falls as
    1/t in the plain and as 1/t^2 in the accelerated form, both far slower than that of
    :class:`mercer.solvers.svm.smo.SMO`.

    Parameters
    ----------
    tol : float, default=1e-3
        The violation of the optimality conditions (in units of the decision function) that is small enough.
    stop : {"kkt", "gap"}, default="kkt"
        With ``"gap"``, the relative duality gap must be at most ``tol`` as well.
    max_iter : int, default=-1
        The most steps; -1 for no limit, which may take long where K is badly conditioned (Ctrl-C ends it).
    n_jobs : int, optional
        Worker threads for products with a matrix that does not bring its own number of them.
    verbose : bool, default=False
        Show progress on standard error.
    accelerated : bool, default=False
        Whether to extrapolate (FISTA with restarts).

    Notes
    -----
    Sources: Daumé (2017), "A Course in Machine Learning", section 11.5, for projected gradient on the dual; Beck and
    Teboulle (2009), "A fast iterative shrinkage-thresholding algorithm", equations 4.1 to 4.3; O'Donoghue and Candès
    (2015), "Adaptive restart for accelerated gradient schemes", section 3.2 (the gradient scheme).

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP.classification(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    >>> ProjectedGradient(tol=1e-9).solve(problem).value.beta.round(6)
    array([ 1., -1.])
    """

    accelerated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.accelerated not in (True, False):
            raise ParameterError(f"ProjectedGradient: accelerated must be True or False, but is {self.accelerated!r}.")

    def solve(self, problem: BoxQP, start: Start | None = None) -> Solution[BoxQPValue, Vector]:
        begin = time.perf_counter()
        gram = problem.gram.astype(np.float64)
        vectors = memory.reserve(8 * _VECTORS * len(problem.linear), "the vectors of projected gradient")
        current = replace(settings.current(), n_jobs=settings.resolve_jobs(self.n_jobs))
        with settings.inherited(current), memory.track() as account, vectors:
            beta = None if start is None else start.beta
            # The walk begins at the nearest feasible weights.
            nearest = None if beta is None else project(problem, np.asarray(beta, dtype=np.float64))
            point = Iterate.begin(problem, nearest)
            point.fill(np.asarray(problem.totals))
            walk = _Acceleration(problem, gram, point, self.accelerated and problem.convex)
            progress = Progress(None, "projected gradient steps", self.verbose)
            while not (done := self.accepts(point)) and point.steps < self.limit and walk.idle < _PATIENCE:
                threads.checkpoint()
                walk.step()
                progress.advance()
                keep_step("projected gradient", point)
        status = ended(problem.convex, done, walk.idle < _PATIENCE)
        return certified(problem, point, objectives(point), status, time.perf_counter() - begin, account.peak)


@dataclass
class _Acceleration:
    """The state of the method: the current point, and the origin of the next gradient step."""

    problem: BoxQP
    gram: GramMatrix
    point: Iterate
    accelerated: bool

    def __post_init__(self) -> None:
        renew_gradient(self.gram, self.point)
        # Steps of a hundred widths of the box are long enough, also where K hardly curves.
        floor = np.abs(self.problem.linear).max() / (100.0 * (self.problem.upper - self.problem.lower).max())
        self.curvature = max(_HEADROOM * largest_curvature(self.problem, self.gram), float(floor), _TINY)
        self.origin, self.gradient = self.point.beta, self.point.F
        self.momentum = 1.0
        self.best = self.point.dual()
        self.idle = 0

    def step(self) -> None:
        """Make one projected gradient step from ``origin``, and choose the next origin."""
        point, before, slope_before = self.point, self.point.beta, self.point.F
        while True:
            beta = project(self.problem, self.origin + self.gradient / self.curvature, 1.0 / self.curvature)
            point.beta = beta
            renew_gradient(self.gram, point)
            change = beta - self.origin
            size = float(change @ change)
            bend = float(change @ (self.gradient - point.F)) / size if size > 0 else 0.0
            # A little more curvature does no harm, and may be rounding where the step is short.
            if bend <= self.curvature * _HEADROOM:
                break
            self.curvature = _HEADROOM * bend
        point.steps += 1
        self._extrapolate(before, slope_before)
        value = point.dual()
        self.idle = 0 if value > self.best else self.idle + 1
        self.best = max(self.best, value)

    def _extrapolate(self, before: Vector, slope_before: Vector) -> None:
        """Set the next origin; its gradient needs no product, because it is affine in the weights."""
        beta, F = self.point.beta, self.point.F
        step = beta - before
        if not self.accelerated or (self.origin - beta) @ step > 0:
            self.momentum, self.origin, self.gradient = 1.0, beta, F
            return
        later = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * self.momentum**2))
        factor = (self.momentum - 1.0) / later
        self.momentum = later
        self.origin, self.gradient = beta + factor * step, F + factor * (F - slope_before)


def largest_curvature(problem: BoxQP, gram: GramMatrix) -> float:
    """Estimate, from below, the largest eigenvalue of K on directions that keep the sums of ``problem``."""
    direction = np.random.default_rng(0).standard_normal(gram.shape[0])
    best = 0.0
    for _ in range(_POWER_STEPS):
        for part in _parts(problem):
            direction[part] -= direction[part].mean()
        length = float(np.linalg.norm(direction))
        if length == 0.0:
            break
        direction /= length
        product = np.asarray(gram @ direction, dtype=np.float64)
        best = max(best, float(direction @ product))
        direction = product
    if not np.isfinite(best):
        point = Iterate.begin(problem, None)
        point.F = product
        check_gradient(point)
    return best


def _parts(problem: BoxQP) -> list[slice | np.ndarray]:
    """Return the rows of each sum; nothing if there is none."""
    if problem.groups is not None:
        return [np.flatnonzero(problem.groups == number) for number in (0, 1)]
    return [slice(None)] if problem.totals else []


def project(problem: BoxQP, v: Vector, price: float = 0.0) -> Vector:
    r"""The feasible weights :math:`\beta` that minimise ``|beta - v|^2 / 2 + price * tube * |beta|_1``.

    Parameters
    ----------
    problem : BoxQP
        Gives the box, the sums and the tube.
    v : ndarray of shape (n,)
        The point to project.
    price : float, default=0.0
        The step length; 0 for the nearest feasible point.

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP(PrecomputedGram(np.eye(2)), np.zeros(2), np.zeros(2), np.ones(2), totals=(1.0,))
    >>> project(problem, np.array([0.9, 0.5]))
    array([0.7, 0.3])
    """
    threshold = price * problem.tube
    beta = _shrunk(v, problem.lower, problem.upper, threshold)
    for part, total in zip(_parts(problem), problem.totals):
        beta[part] = _with_sum(v[part], problem.lower[part], problem.upper[part], threshold, total)
    return beta


def _shrunk(v: Vector, lower: Vector, upper: Vector, threshold: float) -> Vector:
    """Return ``v`` moved towards 0 by ``threshold`` and clipped to the bounds, which have 0 between them."""
    towards = np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0) if threshold else v
    return np.clip(towards, lower, upper)


def _with_sum(v: Vector, lower: Vector, upper: Vector, threshold: float, total: float) -> Vector:
    """``_shrunk(v - m)`` with the multiplier m for which it adds up to ``total``.

    The sum falls in m and is linear between knots, at which a weight leaves a bound or zero or arrives there. Sorting
    them gives m up to the rounding of sums over many knots, which a few Newton steps remove.
    """
    projection = _shrunk(v, lower, upper, threshold)
    if abs(projection.sum() - total) <= _EPS * np.abs(projection).sum():
        # Moved by rounding alone, weights of zero would become tiny ones.
        return projection
    knots = np.concatenate([v - threshold - upper, v - threshold, v + threshold, v + threshold - lower])
    turns = np.repeat([-1.0, 1.0, -1.0, 1.0], len(v))
    order = np.argsort(knots, kind="stable")
    knots, slopes = knots[order], np.cumsum(turns[order])
    sums = upper.sum() + np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(knots))])
    # The sums fall; the last knot at which they are no lower than the total begins the segment.
    at = max(int(np.searchsorted(-sums, -total, side="right")) - 1, 0)
    multiplier = knots[at] + ((total - sums[at]) / slopes[at] if slopes[at] < 0 else 0.0)
    beta = _shrunk(v - multiplier, lower, upper, threshold)
    for _ in range(4):
        excess = beta.sum() - total
        free = int(((beta > lower) & (beta < upper) & (beta != 0)).sum())
        if excess == 0 or free == 0:
            break
        multiplier += excess / free
        better = _shrunk(v - multiplier, lower, upper, threshold)
        if abs(better.sum() - total) >= abs(excess):
            break
        beta = better
    return beta
