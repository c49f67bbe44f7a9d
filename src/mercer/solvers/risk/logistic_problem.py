"""The problem of kernel logistic regression, and points that may solve it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.solvers.matrix import GramMatrix
from mercer.solvers.risk.log_loss import LogLoss, Matrix, Vector

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
    r"""How good a point is that has the best offset for its function.

    The probabilities of the point are a dual solution, with weights G in the place of A, and the gap between the two
    objectives is half of :math:`\operatorname{tr} (G - A)^\top K (G - A)`, which is the squared length of the gradient.

    Parameters
    ----------
    primal : float
        The primal objective.
    squared_gradient : float
        Twice the gap.
    squared_norm : float
        The squared length of w.
    """

    primal: float
    squared_gradient: float
    squared_norm: float

    @property
    def violation(self) -> float:
        """The length of the gradient by that of w; the relative error of w is not larger.

        >>> Quality(4.0, 0.01, 4.0).violation, Quality(1.0, 1e-30, 0.0).violation < 1e-9
        (0.05, True)
        """
        size = max(abs(self.squared_norm), _NONE * abs(self.primal), float(np.finfo(float).tiny))
        return float(np.sqrt(abs(self.squared_gradient) / size))
