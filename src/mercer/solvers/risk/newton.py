r"""Newton's method for the log loss, its systems solved by conjugate gradients in the space of the kernel.

In the coordinates A of a function the Hessian is :math:`K + K W K` and the gradient :math:`-K r`, with the curvature
W of the loss and :math:`r = G - A`. In the inner product of the space, :math:`\langle A, B \rangle =
\operatorname{tr} A^\top K B`, these are :math:`I + W K` and :math:`-r`: conjugate gradients take one product with K a
step for all columns at once, never leave the descent directions wherever they are stopped, and have nothing but the few
large eigenvalues of WK to overcome. The offset is eliminated: every point has the best one, and what is left of W is
its Schur complement.
"""

from __future__ import annotations

from collections.abc import Callable
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
from mercer.solvers.risk.logistic_problem import LogisticPoint, Quality, gap_of, inner

Multiply = Callable[[Matrix], Matrix]

# Systems are solved to this share of the length of the gradient, and better as that falls.
_LOOSE = 0.5
# The last system is solved to this share of what is wanted, since the step after it changes W.
_LAST = 0.3
_MOST_PRODUCTS = 1000
# The residual of a system may cost at most this share of what its solution has gained.
_SPOILT = 0.1
# A step is long enough where the slope along it has fallen to this share.
_FLATTENED = 0.1
# Newton's step for the offset is trusted if no class moves by more.
_FAR = 4.0
# This many steps without gain mean that rounding is all that is left.
_PATIENCE = 3


class System(Protocol):
    """How the system of a Newton step is solved, and where the steps end."""

    def direction(self, model: Model, r: Matrix, Kr: Matrix, quality: Quality) -> tuple[Matrix, Matrix]:
        """Newton's direction x and ``K x``: ``(I + W K) x = r``, as exactly as pays."""

    def is_done(self, r: Matrix, quality: Quality) -> bool:
        """Whether the point with this gradient is good enough."""


@dataclass
class Controls:
    """When to stop: the violation ``goal``, steps ``left``, and the ``rounding`` of products, as a share."""

    goal: float
    left: int
    rounding: float
    progress: Progress
    products: int = 0

    @property
    def taken(self) -> int:
        """The steps so far."""
        return (self.progress.total or 0) - self.left


@dataclass(frozen=True, eq=False)
class Model:
    """The curvature W of the loss, with the offset eliminated from it."""

    slope: Slope
    inverse: Matrix | None

    @classmethod
    def of(cls, slope: Slope, intercept: bool) -> Model:
        return cls(slope, pseudo_inverse(slope.total()) if intercept else None)

    def curve(self, Z: Matrix) -> Matrix:
        curved = self.slope.curve(Z)
        if self.inverse is not None:
            curved += self.slope.curve(np.broadcast_to(self._shift(curved), Z.shape))
        return curved

    def offset(self, Z: Matrix) -> Vector:
        """How the best offset changes with decision values that change by ``Z``."""
        return np.zeros(Z.shape[1]) if self.inverse is None else self._shift(self.slope.curve(Z))

    def _shift(self, curved: Matrix) -> Vector:
        shift: Vector = -(self.inverse @ curved.sum(axis=0))
        return shift


def pseudo_inverse(total: Matrix) -> Matrix:
    """Of the sum of W (m, m), which is singular where equal changes of all columns change nothing.

    >>> pseudo_inverse(np.array([[2.0, -2.0], [-2.0, 2.0]])).round(12).tolist()
    [[0.125, -0.125], [-0.125, 0.125]]
    """
    several = len(total) > 1
    # What is known to be singular is made regular first: an eigenvalue that should be zero is rounding otherwise.
    values, vectors = np.linalg.eigh(total + total.max() / len(total) if several else total)
    large = values > len(values) * np.finfo(float).eps * max(values[-1], 0.0)
    inverse: Matrix = (vectors[:, large] / values[large]) @ vectors[:, large].T
    if several:
        inverse -= inverse.mean(axis=0)
        inverse -= inverse.mean(axis=1)[:, None]
    return inverse


def best_offset(loss: LogLoss, products: Matrix, offset: Vector, *, limit: int = 100) -> Vector:
    """The offsets (m,) of least loss at ``products`` (n, m), from ``offset`` on, by Newton's method.

    >>> from mercer.losses.log_loss import TwoClasses
    >>> loss = TwoClasses(np.array([0, 1]), np.array([1.0, 3.0]))
    >>> best_offset(loss, np.zeros((2, 1)), np.zeros(1)) / np.log(3.0)
    array([1.])
    """
    small = 4.0 * np.finfo(float).eps * float(loss.cost.sum())
    slope = loss.slope(products + offset)
    for _ in range(limit):
        pull = slope.pull.sum(axis=0)
        if np.abs(pull).max() <= small:
            break
        step = pseudo_inverse(slope.total()) @ pull
        nearer = loss.slope(products + offset + step)
        if np.abs(step).max() > _FAR or not np.abs(nearer.pull.sum(axis=0)).max() <= 0.5 * np.abs(pull).max():
            # Far from the best offset the loss tells which step is good; next to it, it is flat to rounding.
            step = _better(loss, products + offset, step, _scaling(loss, pull))
            if not step.any():
                break
            nearer = loss.slope(products + offset + step)
        offset, slope = offset + step, nearer
    return offset


def _scaling(loss: LogLoss, pull: Vector) -> Vector:
    """The step that scales the odds of all classes by what is missing of them in total; it never goes too far."""
    totals = np.bincount(loss.codes, weights=loss.cost)
    missing = pull if len(pull) > 1 else np.array([-pull[0], pull[0]])
    step = -np.log(np.maximum(1.0 - missing / totals, np.finfo(float).eps))
    return step - step.mean() if len(pull) > 1 else step[1:] - step[:1]


def _better(loss: LogLoss, decision: Matrix, newton: Vector, scaling: Vector) -> Vector:
    """The one of several steps with the least loss, or zero."""
    newton = newton * min(1.0, _FAR / max(float(np.abs(newton).max()), np.finfo(float).tiny))
    steps = [np.zeros_like(newton), newton, 0.25 * newton, scaling]
    return steps[int(np.argmin([loss.value(decision + step) for step in steps]))]


def descend(
    loss: LogLoss,
    intercept: bool,
    point: LogisticPoint,
    multiply: Multiply,
    controls: Controls,
    anchor: Matrix | float = 0.0,
    system: System | None = None,
) -> tuple[LogisticPoint, Quality]:
    """Newton steps from ``point`` until it is good enough, or steps run out, or rounding stops them.

    Parameters
    ----------
    loss : LogLoss
    intercept : bool
        Whether there is an offset.
    point : LogisticPoint
        Where to begin.
    multiply : callable
        ``V -> K V``.
    controls : Controls
        Counts the steps and the products.
    anchor : ndarray of shape (n, m), default=0
        A part of the decision values that stays as it is.
    system : System, optional
        By default, conjugate gradients until the violation is at most the goal.

    Returns
    -------
    point, quality
        The quality is that of the products that the point has, which accumulate the rounding of ``multiply``.

    Raises
    ------
    NumericalError
        If products overflow.
    """
    least, waited, best = (np.inf, np.inf), 0, None
    system = _InKernelSpace(multiply, controls) if system is None else system
    while True:
        if intercept:
            point = replace_offset(loss, point, anchor)
        slope = loss.slope(point.decision + anchor)
        gradient = slope.pull - point.weights
        products = multiply(gradient)
        controls.products += 1
        squared = inner(gradient, products)
        primal = loss.value(point.decision + anchor) + 0.5 * point.squared_norm
        if not np.isfinite(squared) or not np.isfinite(primal):
            raise NumericalError(
                "products with the kernel matrix overflow. Scale the columns of X "
                "(sklearn.preprocessing.StandardScaler), or scale the kernel down."
            )
        quality = Quality(primal, gap_of(slope, gradient, squared), point.squared_norm)
        record("Newton steps", controls.taken, quality.figures)
        gained = primal < least[0] - controls.rounding * abs(least[0]) or quality.gap < 0.5 * least[1]
        waited = 0 if gained else waited + 1
        least = min(least[0], primal), min(least[1], quality.gap)
        if system.is_done(gradient, quality):
            return point, quality
        if best is None or quality.violation <= best[1].violation:
            best = point, quality
        if controls.left == 0 or waited == _PATIENCE or squared <= 0:
            return best
        model = Model.of(slope, intercept)
        direction, along = system.direction(model, gradient, products, quality)
        turn = model.offset(along)
        length = _length(loss, point, direction, along + turn, anchor)
        point = LogisticPoint(
            point.weights + length * direction, point.products + length * along, point.offset + length * turn
        )
        controls.left -= 1
        controls.progress.advance()


def replace_offset(loss: LogLoss, point: LogisticPoint, anchor: Matrix | float = 0.0) -> LogisticPoint:
    """The same function with its best offset."""
    return LogisticPoint(point.weights, point.products, best_offset(loss, point.products + anchor, point.offset))


@dataclass(frozen=True)
class _InKernelSpace:
    """Conjugate gradients with K itself as the preconditioner."""

    multiply: Multiply
    controls: Controls

    def is_done(self, r: Matrix, quality: Quality) -> bool:
        return quality.violation <= self.controls.goal

    def direction(self, model: Model, r: Matrix, Kr: Matrix, quality: Quality) -> tuple[Matrix, Matrix]:
        """Solved as well as the distance from the answer asks for.

        What conjugate gradients leave, R, is added to the answer where that does not spoil it. The weights are then
        ``G - W K x``, so that they stand for probabilities next to those of the new point, and the gap is small.
        """
        squared = inner(r, Kr)
        share = min(_LOOSE, float(np.sqrt(squared / abs(quality.primal))))
        enough, goal = share**2 * squared, (_LAST * self.controls.goal) ** 2 * abs(quality.squared_norm)

        def precondition(R: Matrix) -> Matrix:
            self.controls.products += 1
            return pair(self.multiply(R), R)

        # In terms of K x the matrix is K^-1 + W, and K its preconditioner: pairs (K x, x) need no inverse.
        search = ConjugateGradients(lambda V: V[1] + model.curve(V[0]), precondition, r, of_pair, first=pair(Kr, r))
        left = squared
        for _ in range(min(2 * r.size + 10, _MOST_PRODUCTS)):
            if not search.advance():
                # Only rounding, or a function that is not a kernel, bends downwards.
                break
            KR, R = search.preconditioned
            squared, left = inner(R, KR), inner(KR, model.curve(KR))
            if not squared > enough or left <= goal:
                break
        (Kx, x), (KR, R) = search.x, search.preconditioned
        # The quadratic model has fallen by half of this, and R changes it by half of the difference.
        gain = inner(r, Kx)
        return (x, Kx) if left - squared > _SPOILT * gain else (x + R, Kx + KR)


def _length(loss: LogLoss, point: LogisticPoint, direction: Matrix, turn: Matrix, anchor: Matrix | float) -> float:
    start = point.decision + anchor

    def slope(t: float) -> float:
        return inner(point.weights + t * direction - loss.pull(start + t * turn), turn)

    return flat_step(slope, left=_FLATTENED, longest=np.inf)
