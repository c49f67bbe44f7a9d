"""The log loss of classes, by decision values: its value, its slope and its curvature, row by row.

Two classes have one column of decision values, positive for the second class; more have a column each (softmax).
Everything is stated by the probabilities of the classes that a row is *not* of, so that nothing is lost where the
probability of its own class is next to one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py

from mercer._types import Matrix, Vector
from mercer.losses.margin import Logistic

# The product of a relative change and its logarithm is finite up to here.
_LARGEST = 1e300
_LOGISTIC = Logistic()


class Slope(ABC):
    """The loss next to some decision values.

    ``pull`` (n, m) is minus its gradient, each row times its cost; ``probabilities`` (n, m) are of the classes, or
    of the second of two. The second derivatives W are sums over pairs of columns, ``W_i = sum_ab w_i,ab e e'``. Here
    ``e = e_a - e_b``, or ``e_a`` for the only pair (0, 0) of one column, and no w is negative.
    """

    pull: Matrix
    probabilities: Matrix

    @property
    @abstractmethod
    def scalar(self) -> Vector:
        """The mean of the eigenvalues of W in each row, (n,), except for the one that is 0."""

    @abstractmethod
    def pair_weights(self) -> Matrix:
        """``w``, (n, pairs)."""

    @abstractmethod
    def pull_pairs(self, nu: Matrix) -> Matrix:
        """``sum_ab nu_i,ab d w_i,ab / d f_ij``, (n, m), for ``nu`` of shape (n, pairs)."""

    @abstractmethod
    def curve(self, Z: Matrix) -> Matrix:
        """``W Z``, the change of the gradient with decision values that change by ``Z`` (n, m)."""

    @abstractmethod
    def total(self) -> Matrix:
        """The sum of W over the rows, (m, m)."""

    @abstractmethod
    def shares(self, change: Matrix) -> tuple[Matrix, Matrix]:
        """Cost times probability of every class (n, k), and the ``change`` (n, m) of these relative to them."""

    def divergence(self, change: Matrix) -> tuple[float, float]:
        r"""How far the probabilities are from those that are changed by ``change`` / cost.

        Returns
        -------
        part : float
            How much of the change leaves every probability at least 0; at most 1.
        divergence : float
            :math:`\sum_i c_i \operatorname{KL}(q_i \,\|\, p_i)` of the probabilities q with that part of the change.
        """
        weighted, relative = self.shares(change)
        lowest = float(relative.min())
        if np.isinf(lowest):
            return 0.0, 0.0
        part = 1.0 if lowest >= -1.0 else -1.0 / lowest
        relative = np.maximum(part * relative, -1.0)
        # Each row of changes sums to zero, so that this has no term below zero and no difference of large ones.
        terms = xlog1py(1.0 + relative, relative) - relative
        return part, float(np.einsum("ij,ij->", weighted, np.maximum(terms, 0.0)))


@dataclass(frozen=True, eq=False)
class LogLoss(ABC):
    """The loss of rows whose classes have the numbers ``codes`` (n,) and that count as much as ``cost`` (n,) says."""

    codes: NDArray[np.intp]
    cost: Vector

    @property
    @abstractmethod
    def columns(self) -> int:
        """Columns of decision values."""

    @property
    def shape(self) -> tuple[int, int]:
        """Of the decision values."""
        return len(self.codes), self.columns

    @property
    @abstractmethod
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of columns that the second derivatives are sums over."""

    @abstractmethod
    def value(self, F: Matrix) -> float:
        """The sum over the rows at decision values ``F`` (n, m)."""

    @abstractmethod
    def pull(self, F: Matrix) -> Matrix:
        """Minus the gradient, (n, m)."""

    @abstractmethod
    def slope(self, F: Matrix) -> Slope:
        """What Newton's method needs to know at ``F``."""


class TwoClasses(LogLoss):
    r"""``log(1 + exp(-s f))`` with ``s = 1`` for class 1 and -1 for class 0.

    Examples
    --------
    >>> loss = TwoClasses(np.array([0, 1]), np.ones(2))
    >>> round(loss.value(np.zeros((2, 1))), 4), loss.pull(np.zeros((2, 1))).ravel()
    (1.3863, array([-0.5,  0.5]))
    """

    @property
    def columns(self) -> int:
        return 1

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return [(0, 0)]

    @property
    def _signs(self) -> Matrix:
        return np.where(self.codes == 1, 1.0, -1.0)[:, None]

    def value(self, F: Matrix) -> float:
        return float(self.cost @ _LOGISTIC.value(self._signs, F)[:, 0])

    def pull(self, F: Matrix) -> Matrix:
        missing: Matrix = -self.cost[:, None] * _LOGISTIC.gradient(self._signs, F)
        return missing

    def slope(self, F: Matrix) -> Slope:
        return _TwoClassSlope(self.pull(F), expit(F), expit(-F), self.cost)


@dataclass(frozen=True, eq=False)
class _TwoClassSlope(Slope):
    pull: Matrix
    probabilities: Matrix
    first: Matrix
    cost: Vector

    @property
    def scalar(self) -> Vector:
        return self.pair_weights()[:, 0]

    def pair_weights(self) -> Matrix:
        return self.cost[:, None] * self.first * self.probabilities

    def pull_pairs(self, nu: Matrix) -> Matrix:
        return nu * self.pair_weights() * (self.first - self.probabilities)

    def shares(self, change: Matrix) -> tuple[Matrix, Matrix]:
        weighted = self.cost[:, None] * np.hstack([self.first, self.probabilities])
        return weighted, _relative(np.hstack([-change, change]), weighted)

    def curve(self, Z: Matrix) -> Matrix:
        return self.pair_weights() * Z

    def total(self) -> Matrix:
        return self.pair_weights().sum(keepdims=True)


@dataclass(frozen=True, eq=False)
class ManyClasses(LogLoss):
    r"""``log(sum_j exp(f_j)) - f_y`` of ``count`` classes.

    Examples
    --------
    >>> loss = ManyClasses(np.array([0, 2]), np.ones(2), 3)
    >>> loss.value(np.array([[800.0, 0.0, 0.0], [800.0, 0.0, 0.0]]))
    800.0
    """

    count: int

    @property
    def columns(self) -> int:
        return self.count

    @property
    def pairs(self) -> list[tuple[int, int]]:
        return _pairs(self.count)

    def _odds(self, F: Matrix) -> tuple[Matrix, Vector, Vector, Vector]:
        """``exp(f_j - f_y - t)`` with 0 for the class itself, their sum, ``exp(-t)`` and t: the largest, at least 0."""
        rows = np.arange(len(F))
        odds = F - F[rows, self.codes][:, None]
        top = odds.max(axis=1)
        odds -= top[:, None]
        np.exp(odds, out=odds)
        odds[rows, self.codes] = 0.0
        return odds, odds.sum(axis=1), np.exp(-top), top

    def value(self, F: Matrix) -> float:
        _, others, own, top = self._odds(F)
        # Where the class itself is the most probable one, "own" is exactly 1.
        with np.errstate(divide="ignore"):
            losses = np.where(top == 0.0, np.log1p(others), top + np.log(own + others))
        return float(self.cost @ losses)

    def _pull(self, F: Matrix) -> tuple[Matrix, Matrix]:
        """The pull, and the probabilities."""
        odds, others, own, _ = self._odds(F)
        rows, total = np.arange(len(F)), own + others
        probabilities = odds
        probabilities /= total[:, None]
        pull = -self.cost[:, None] * probabilities
        pull[rows, self.codes] = self.cost * (others / total)
        probabilities[rows, self.codes] = own / total
        return pull, probabilities

    def pull(self, F: Matrix) -> Matrix:
        return self._pull(F)[0]

    def slope(self, F: Matrix) -> Slope:
        pull, probabilities = self._pull(F)
        return _ManyClassSlope(pull, probabilities, self.cost[:, None] * probabilities, self.codes)


@dataclass(frozen=True, eq=False)
class _ManyClassSlope(Slope):
    pull: Matrix
    probabilities: Matrix
    weighted: Matrix
    codes: NDArray[np.intp]

    @property
    def scalar(self) -> Vector:
        return (self.weighted * (1.0 - self.probabilities)).sum(axis=1) / (self.weighted.shape[1] - 1)

    def pair_weights(self) -> Matrix:
        first, second = np.array(_pairs(self.weighted.shape[1])).T
        return self.weighted[:, first] * self.probabilities[:, second]

    def pull_pairs(self, nu: Matrix) -> Matrix:
        # By d (p_a p_b) / d f_j = p_a p_b ([a = j] + [b = j] - 2 p_j).
        weighted = nu * self.pair_weights()
        out = -2.0 * self.probabilities * weighted.sum(axis=1, keepdims=True)
        for column, pair in zip(weighted.T, _pairs(self.weighted.shape[1]), strict=True):
            out[:, pair] += column[:, None]
        return out

    def shares(self, change: Matrix) -> tuple[Matrix, Matrix]:
        return self.weighted, _relative(change, self.weighted)

    def curve(self, Z: Matrix) -> Matrix:
        # W takes equal changes of a row to nothing; against its own class nothing cancels.
        Z = Z - Z[np.arange(len(Z)), self.codes][:, None]
        Z -= np.einsum("ij,ij->i", self.probabilities, Z)[:, None]
        Z *= self.weighted
        return Z

    def total(self) -> Matrix:
        shared = self.weighted.T @ self.probabilities
        np.fill_diagonal(shared, 0.0)
        # The rows of the sum add up to zero, as those of every W do.
        return np.diag(shared.sum(axis=1)) - (shared + shared.T) / 2


def _pairs(count: int) -> list[tuple[int, int]]:
    """All pairs of different classes."""
    return [(a, b) for a in range(count) for b in range(a + 1, count)]


def _relative(change: Matrix, weighted: Matrix) -> Matrix:
    """``change / weighted``; minus infinity, which no part is small enough for, where a probability is zero."""
    nothing = np.where(change == 0, 0.0, -np.inf)
    with np.errstate(over="ignore"):
        relative = np.divide(change, weighted, out=nothing, where=weighted > 0)
    # A probability that is next to nothing is like none.
    relative[relative > _LARGEST] = -np.inf
    return relative


def log_loss(codes: NDArray[np.intp], cost: Vector | float, classes: int) -> LogLoss:
    """The loss of as many classes, two or more; ``cost`` is that of each row, or of all."""
    cost = np.broadcast_to(cost, codes.shape)
    return TwoClasses(codes, cost) if classes == 2 else ManyClasses(codes, cost, classes)
