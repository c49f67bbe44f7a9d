"""The problem of kernel logistic regression, and points that may solve it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.gram.protocol import GramMatrix
from mercer.losses.log_loss import LogLoss, Slope
from mercer.solvers.rounding import product_rounding

# A function whose squared norm is less than this share of the objective is next to none: rounding must not look large
# beside it.
_NONE = 1e-10


def inner(A: Matrix, B: Matrix) -> float:
    """The sum of the products of entries."""
    return float(np.einsum("ij,ij->", A, B))


@dataclass(frozen=True, eq=False)
class LogisticRisk:
    r"""Regularised log loss:

    .. math:: \min_{A, b} \; \sum_i c_i \, \ell_{y_i}\bigl((K A)_i + b\bigr) + \tfrac12 \operatorname{tr} A^\top K A

    with m columns, one for each class, or one for two classes. Its dual is over probabilities :math:`p_i`, with the
    entropy :math:`H(p) = -\sum_j p_j \log p_j`:

    .. math:: \max_p \; \sum_i c_i H(p_i) - \tfrac12 \operatorname{tr} G^\top K G, \qquad G_i = c_i (e_{y_i} - p_i)

    where the columns of G sum to zero if there is an offset b. For two classes G is :math:`c_i ([y_i = 1] - p_i)`.

    Parameters
    ----------
    gram : GramMatrix
        K, (n, n); in float64, since the answer is judged by it.
    loss : LogLoss
        Holds the classes and the costs c.
    intercept : bool, default=True
        Whether there is b.
    convex : bool, default=True
        Whether K is positive semi-definite (with an offset: on vectors that sum to zero).
    """

    gram: GramMatrix
    loss: LogLoss
    intercept: bool = True
    convex: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """Rows n and columns m."""
        return len(self.loss.codes), self.loss.columns

    def rounding(self, point: LogisticPoint) -> float:
        """How far either objective may be off at a point, since products with K are.

        An error d of ``K A`` changes the loss by ``G d`` to first order and half the squared norm by ``A d / 2``.
        """
        sizes = np.maximum(np.abs(point.weights), np.abs(self.loss.pull(point.decision)))
        diagonal = np.asarray(self.gram.diagonal(), dtype=np.float64)
        return 1.5 * inner(sizes, product_rounding(diagonal, sizes))


@dataclass(frozen=True, eq=False)
class LogisticPoint:
    """Weights A (n, m), their products ``K A`` (n, m), and offsets b (m,)."""

    weights: Matrix
    products: Matrix
    offset: Vector

    @classmethod
    def zero(cls, shape: tuple[int, int]) -> LogisticPoint:
        """The function that is zero."""
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape[1]))

    @property
    def decision(self) -> Matrix:
        """Decision values, (n, m)."""
        return self.products + self.offset

    @property
    def squared_norm(self) -> float:
        """``tr A'KA``, the squared length of w."""
        return inner(self.weights, self.products)

    def objective(self, loss: LogLoss) -> float:
        """The primal objective."""
        return loss.value(self.decision) + 0.5 * self.squared_norm


@dataclass(frozen=True)
class Quality:
    """How good a point is.

    Parameters
    ----------
    primal : float
        The primal objective.
    gap : float
        Its distance from a dual one.
    squared_norm : float
        The squared length of w.
    """

    primal: float
    gap: float
    squared_norm: float

    def figures(self) -> dict[str, float]:
        """What traces keep."""
        return {"primal": self.primal, "dual": self.primal - self.gap, "violation": self.violation}

    @property
    def violation(self) -> float:
        """A bound of the relative error of w: ``|w - w*|`` is at most the square root of twice the gap.

        >>> Quality(4.0, 0.005, 4.0).violation, Quality(1.0, 1e-30, 0.0).violation < 1e-9
        (0.05, True)
        """
        size = max(abs(self.squared_norm), _NONE * abs(self.primal), float(np.finfo(float).tiny))
        return float(np.sqrt(2.0 * self.gap / size))


def gap_of(slope: Slope, gradient: Matrix, squared: float) -> float:
    r"""The gap between a point with the best offset for its function and the better one of two dual solutions.

    The one is the probabilities of the point; its gap is half of ``squared``, the squared length
    :math:`\operatorname{tr} R^\top K R` of the gradient. The other is the probabilities that the weights stand for,
    :math:`q_i = e_{y_i} - A_i / c_i`; its gap is :math:`\sum_i c_i \operatorname{KL}(q_i \| p_i)`. It is the better
    one next to the answer, but q may be negative somewhere. Then a mixture of both is taken, with the share s of the
    first one: :math:`\sum_i c_i \operatorname{KL}(q_i \| p_i) + \tfrac12 s^2 \operatorname{tr} R^\top K R`.

    Parameters
    ----------
    slope : Slope
        Of the loss at the point.
    gradient : ndarray of shape (n, m)
        :math:`R = G - A`.
    squared : float
        What is below zero is rounding.
    """
    part, divergence = slope.divergence(gradient)
    squared = max(squared, 0.0)
    return min(0.5 * squared, divergence + 0.5 * (1.0 - part) ** 2 * squared)
