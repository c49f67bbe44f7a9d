"""The mode of a latent Gaussian process, by Newton's method whose systems are solved by conjugate gradients.

A product with K takes ``2 n^2`` operations and a factorisation ``n^3 / 3``, so one factor serves as preconditioner for
several steps, until it no longer fits the curvature. In the metric of the posterior precision ``K^-1 + W`` it differs
from the right one in as many directions as K has large eigenvalues, which for smooth kernels are few.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine.progress import Progress
from mercer.losses.log_loss import LogLoss
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients, of_pair, pair
from mercer.solvers.gaussian.latent_store import LatentStore
from mercer.solvers.risk.logistic_problem import LogisticPoint, Quality
from mercer.solvers.risk.newton import Controls, Model, descend
from mercer.solvers.solution import Certificate, Status

# Rounding in float32 changes eigenvalues by this share of the largest: it must stay small beside 1.
_SINGLE_TRACE = 0.03 / np.finfo(np.float32).eps
# A step of conjugate gradients reads K twice and the factor twice: it costs as much as a factor at about n = 150.
_ROWS_PER_STEP = 150
_MOST_STEPS = 200
# What rounding does to the objective, as a share of it; products that follow from sums are renewed this often.
_ROUNDING = 1e-14
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class Mode:
    """The answer, and how good it is.

    ``weights`` A and ``latent`` F = K A have the shape (n, c); ``residual`` is ``d log p / d f - A``, which is 0 at the
    mode; ``objective`` is the negative log of the posterior up to a constant, and ``gap`` bounds what it could still
    lose.
    """

    weights: Matrix
    latent: Matrix
    residual: Matrix
    objective: float
    gap: float
    iterations: int
    status: Status

    @property
    def violation(self) -> float:
        """The largest entry of the residual, in units of probability."""
        return float(np.abs(self.residual).max())


def certify(mode: Mode, seconds: float) -> Certificate:
    """The certificate of a mode: of the negative log of the posterior, up to a constant."""
    dual = mode.objective - mode.gap
    violations = {"mode": mode.violation}
    return Certificate(mode.objective, dual, mode.violation, mode.iterations, seconds, 0, mode.status, violations)


class _Inverse(Protocol):
    def solve(self, V: Matrix) -> Matrix: ...


def require_factor(store: LatentStore, scale: Vector) -> None:
    """Factor ``I + DKD``, or raise."""
    if not store.factor(scale):
        raise NumericalError(
            "the matrix I + W^1/2 K W^1/2 is not positive definite, so the kernel matrix has an eigenvalue far below "
            "zero, or entries that overflow. Choose another kernel, repair the matrix with "
            "mercer.validity.nearest(K), or scale the columns of X."
        )


def find_mode(
    store: LatentStore, loss: LogLoss, *, start: Matrix | None = None, tol: float = 1e-9, max_iter: int = 100
) -> Mode:
    r"""Minimise :math:`-\log p(y \mid F) + \tfrac12 \operatorname{tr} A^\top K A` over A, with F = K A.

    Parameters
    ----------
    store : LatentStore
        Holds K; what it holds above its diagonal is lost.
    loss : LogLoss
    start : ndarray of shape (n, c), optional
        Weights A to begin with, as of a neighbouring problem; used if they are better than none.
    tol : float, default=1e-9
        The largest entry of :math:`\nabla \log p - A` to stop at.
    max_iter : int, default=100
        Maximum number of Newton steps.

    Notes
    -----
    The problem is convex, and its dual at :math:`\beta = \nabla \log p(y \mid F)` is known in closed form: the gap is
    :math:`\tfrac12 \operatorname{tr} (\beta - A)^\top K (\beta - A)`, with no difference of large numbers.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), algorithms 3.1 and 3.3,
    whose systems are solved here without a factorisation for every step and class.
    """
    system = _Preconditioned(store, tol)
    controls = Controls(tol, max_iter, _ROUNDING, Progress(max_iter, "mode"))
    point = LogisticPoint.zero(loss.shape)
    if start is not None and start.shape == loss.shape:
        other = replace(point, weights=start, products=store.product(start))
        point = other if other.objective(loss) < point.objective(loss) else point
    for _ in range(_ROUNDS):
        point, _ = descend(loss, False, point, store.product, controls, system=system)
        # Sums of products have drifted from K A, and what K takes to nothing may be missing from A.
        for weights in (point.weights, loss.pull(point.products)):
            point = replace(point, weights=weights, products=store.product(weights))
            residual = loss.pull(point.products) - weights
            if (is_good := np.abs(residual).max() <= tol) or controls.left == 0:
                break
        if is_good or controls.left == 0:
            break
    gap = 0.5 * float(np.vdot(residual, store.product(residual)))
    if point.squared_norm < 0 or (gap < 0 and not is_good):
        # Rounding, or a matrix that is not a covariance.
        require_factor(store, np.sqrt(loss.slope(np.zeros(loss.shape)).scalar))
    status = Status.converged if is_good else Status.stalled if controls.left else Status.iteration_limit
    return Mode(point.weights, point.products, residual, point.objective(loss), max(gap, 0.0), controls.taken, status)


class _Preconditioned:
    """Conjugate gradients, preconditioned with ``(K^-1 + D^2)^-1`` by one factor of ``I + DKD`` for several steps."""

    def __init__(self, store: LatentStore, tol: float) -> None:
        self.store, self.tol = store, tol
        self.factor: _Inverse | None = None
        self.used, self.allowed = 0, max(1, len(store) // _ROWS_PER_STEP)

    def is_done(self, r: Matrix, quality: Quality) -> bool:
        return bool(np.abs(r).max() <= self.tol)

    def direction(self, model: Model, r: Matrix, Kr: Matrix, quality: Quality) -> tuple[Matrix, Matrix]:
        """Far from the mode a step need not be exact."""
        if self.factor is None or self.used > self.allowed:
            self._renew(model.slope.scalar)
        size = float(np.abs(r).max())
        aim = min(0.1, size) * size
        # In terms of K x the matrix is K^-1 + W, so that a pair (K x, x) needs neither K nor its inverse for a product.
        search = ConjugateGradients(
            lambda V: V[1] + model.curve(V[0]), self._precondition, r, of_pair, first=self._precondition(r, Kr)
        )
        while search.advance() and np.abs(search.residual).max() > aim and search.steps < _MOST_STEPS:
            pass
        self.used = search.steps
        # What K maps to zero does not change the latent values: the whole step is the right one.
        Kx, x = search.x if search.x.any() else search.preconditioned
        return x, Kx

    def _renew(self, curvature: Vector) -> None:
        """The factor for the scalar that stands for the curvature of each row."""
        self.scale = np.sqrt(curvature)
        # The eigenvalues of I + DKD begin at 1, and the largest is at most the trace.
        coarse = float(curvature @ self.store.diagonal) <= _SINGLE_TRACE
        self.factor = self.store.factor_single(self.scale) if coarse else None
        if self.factor is None:
            require_factor(self.store, self.scale)
            self.factor = self.store

    def _precondition(self, r: Matrix, Kr: Matrix | None = None) -> Matrix:
        """What the step for a residual does to the latent values, and the step in weights, (2, n, c)."""
        assert self.factor is not None
        d = self.scale[:, None]
        step = r - d * self.factor.solve(d * (self.store.product(r) if Kr is None else Kr))
        return pair(self.store.product(step), step)
