"""The mode of a latent Gaussian process, by Newton's method whose systems are solved by conjugate gradients.

A product with K takes ``2 n^2`` operations and a factorisation ``n^3 / 3``, so one factor serves as preconditioner for
several steps, until it no longer fits the curvature. In the metric of the posterior precision ``K^-1 + W`` it differs
from the right one in as many directions as K has large eigenvalues, which for smooth kernels are few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Matrix, Vector
from mercer.engine.progress import Progress
from mercer.engine.trace import record
from mercer.losses.log_loss import LogLoss, Slope
from mercer.solvers.algebra.conjugate_gradients import ConjugateGradients, of_pair, pair
from mercer.solvers.algebra.line_search import flat_step
from mercer.solvers.gaussian.latent_store import LatentStore
from mercer.solvers.solution import Certificate, Status

# Rounding in float32 changes eigenvalues by this share of the largest: it must stay small beside 1.
_SINGLE_TRACE = 0.03 / np.finfo(np.float32).eps
# A step of conjugate gradients reads K twice and the factor twice: it costs as much as a factor at about n = 150.
_ROWS_PER_STEP = 150
_MOST_STEPS = 200
# Steps without a smaller residual after which the gap may show that rounding is all that is left.
_IDLE = 4
_ROUNDING = 1e-13


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


@dataclass
class _Preconditioner:
    """``(K^-1 + D^2)^-1`` by a factor of ``I + DKD``."""

    store: LatentStore
    factor: _Inverse
    scale: Vector

    @classmethod
    def of(cls, store: LatentStore, curvature: Slope) -> _Preconditioner:
        """From the scalar that stands for the curvature of each row."""
        scale = np.sqrt(curvature.scalar)
        # The eigenvalues of I + DKD begin at 1, and the largest is at most the trace.
        coarse = float(curvature.scalar @ store.diagonal) <= _SINGLE_TRACE
        factor: _Inverse | None = store.factor_single(scale) if coarse else None
        if factor is None:
            require_factor(store, scale)
            factor = store
        return cls(store, factor, scale)

    def apply(self, residual: Matrix) -> Matrix:
        """What the step for a residual does to the latent values, and the step in weights, (2, n, c)."""
        d = self.scale[:, None]
        step = residual - d * self.factor.solve(d * self.store.product(residual))
        return pair(self.store.product(step), step)


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
    state = _State.begin(store, loss, start)
    preconditioner: _Preconditioner | None = None
    allowed = max(1, len(store) // _ROWS_PER_STEP)
    used, idle, best = 0, 0, np.inf
    progress = Progress(None, "mode")
    while (status := state.status(tol, max_iter, idle)) is None:
        curvature = loss.slope(state.F)
        if preconditioner is None or used > allowed:
            preconditioner = _Preconditioner.of(store, curvature)
        violation = state.violation
        # As exact as pays: a step that is far from the mode need not be a good one.
        direction, change, used = _newton_step(store, preconditioner, curvature, state.residual, min(0.1, violation))
        state.move(direction, change)
        idle, best = (0, violation) if violation < 0.9 * best else (idle + 1, best)
        progress.advance()
        record("Newton steps", state.steps, {"violation": state.violation})
    state.renew()
    return Mode(state.A, state.F, state.residual, _objective(loss, state.A, state.F), state.gap, state.steps, status)


@dataclass
class _State:
    """Where the search stands. F follows A by sums, and is made anew before it is believed to be good enough."""

    store: LatentStore
    loss: LogLoss
    A: Matrix
    F: Matrix
    residual: Matrix
    steps: int = 0
    renewed: int = -1
    stuck: bool = False

    @classmethod
    def begin(cls, store: LatentStore, loss: LogLoss, start: Matrix | None) -> _State:
        """From ``start``, if it is better than 0."""
        A = F = np.zeros(loss.shape)
        if start is not None and start.shape == loss.shape:
            product = store.product(start)
            if _objective(loss, start, product) < _objective(loss, A, F):
                A, F = start, product
        return cls(store, loss, A, F, loss.pull(F) - A)

    @property
    def violation(self) -> float:
        return float(np.abs(self.residual).max())

    @property
    def gap(self) -> float:
        return max(0.5 * float(np.vdot(self.residual, self.store.product(self.residual))), 0.0)

    def renew(self) -> None:
        """F anew from A."""
        self.F = self.store.product(self.A)
        self.residual = self.loss.pull(self.F) - self.A

    def move(self, direction: Matrix, change: Matrix) -> None:
        """A step along ``direction``, whose product with K is ``change``."""
        self.stuck = not direction.any()
        size = _step_size(self.loss, self.A, self.F, direction, change)
        self.A, self.F = self.A + size * direction, self.F + size * change
        self.residual = self.loss.pull(self.F) - self.A
        self.steps += 1

    def status(self, tol: float, max_iter: int, idle: int) -> Status | None:
        """How the search ends here; None where it goes on."""
        if self.violation <= tol:
            drifted = self.renewed
            self.renew()
            self.renewed = self.steps
            if self.violation <= tol:
                return Status.converged
            if 0 <= self.steps - drifted <= 1:
                return Status.stalled
        if self.stuck or (idle >= _IDLE and self.gap <= _ROUNDING * (1.0 + _objective(self.loss, self.A, self.F))):
            return Status.stalled
        return Status.iteration_limit if self.steps >= max_iter else None


def _objective(loss: LogLoss, A: Matrix, F: Matrix) -> float:
    return loss.value(F) + 0.5 * float(np.vdot(A, F))


def _newton_step(
    store: LatentStore, preconditioner: _Preconditioner, curvature: Slope, residual: Matrix, tol: float
) -> tuple[Matrix, Matrix, int]:
    """Solve ``(I + W K) x = residual``; x, ``K x``, and how many steps of conjugate gradients it took."""
    aim = tol * float(np.abs(residual).max())
    # In terms of K x the matrix is K^-1 + W, so that a pair (K x, x) needs neither K nor its inverse for a product.
    search = ConjugateGradients(lambda V: V[1] + curvature.curve(V[0]), preconditioner.apply, residual, of_pair)
    while search.advance() and np.abs(search.residual).max() > aim and search.steps < _MOST_STEPS:
        pass
    # What K maps to zero does not change the latent values: the whole step is the right one.
    Kx, x = search.x if search.x.any() else search.preconditioned
    return x, Kx, search.steps


def _step_size(loss: LogLoss, A: Matrix, F: Matrix, direction: Matrix, change: Matrix) -> float:
    """Return the length of a step of A, whose product with K is ``change``."""

    def slope(size: float) -> float:
        return -float(np.vdot(loss.pull(F + size * change) - A - size * direction, change))

    return flat_step(slope)
