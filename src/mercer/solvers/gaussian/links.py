"""How labels depend on latent values: losses, their slopes and curvatures, in the space of the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp, softmax

from mercer._types import Matrix, Vector


class Curvature(Protocol):
    """The second derivatives of the loss: a positive semi-definite block for each row."""

    @property
    def scalar(self) -> Vector:
        """One number a row that stands for its block, (n,)."""

    def apply(self, V: Matrix) -> Matrix:
        """``W V`` for ``V`` of shape (n, c)."""


class Link(Protocol):
    """The loss ``-log p(y | f)`` of the labels at latent values ``F`` of shape (n, c)."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def loss(self, F: Matrix) -> float:
        """The sum over the rows."""

    def slope(self, F: Matrix) -> Matrix:
        """``d log p(y | f) / d f``, (n, c)."""

    def curvature(self, F: Matrix) -> Curvature: ...


class PairedLink(Link, Protocol):
    """A loss whose second derivatives are sums over pairs of latent values: ``W_i = sum_ab w_i,ab e e'``.

    Here ``e = e_a - e_b``, or ``e_a`` for the only pair (0, 0) of one latent value, and no w is negative.
    """

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs (a, b)."""

    def pair_weights(self, F: Matrix) -> Matrix:
        """``w``, (n, pairs)."""

    def pull_pairs(self, F: Matrix, nu: Matrix) -> Matrix:
        """``sum_ab nu_i,ab d w_i,ab / d f_ij``, (n, c), for ``nu`` of shape (n, pairs)."""


@dataclass(frozen=True, eq=False)
class DiagonalCurvature:
    """One latent value a row."""

    scalar: Vector

    def apply(self, V: Matrix) -> Matrix:
        """``W V``."""
        return self.scalar[:, None] * V


@dataclass(frozen=True, eq=False)
class Logistic:
    r"""Two classes, one latent value: :math:`p(y \mid f) = 1 / (1 + e^{-y f})`.

    Parameters
    ----------
    signs : ndarray of shape (n,)
        The labels, -1 or 1.

    Examples
    --------
    >>> link = Logistic(np.array([1.0, -1.0]))
    >>> round(link.loss(np.zeros((2, 1))), 6), link.slope(np.zeros((2, 1))).ravel().tolist()
    (1.386294, [0.5, -0.5])
    """

    signs: Vector

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.signs), 1

    def loss(self, F: Matrix) -> float:
        """The sum over the rows."""
        return float(np.logaddexp(0.0, -self.signs * F[:, 0]).sum())

    def slope(self, F: Matrix) -> Matrix:
        """``d log p / d f``, (n, 1)."""
        return (self.signs * expit(-self.signs * F[:, 0]))[:, None]

    def curvature(self, F: Matrix) -> DiagonalCurvature:
        """``p (1 - p)``."""
        return DiagonalCurvature(expit(F[:, 0]) * expit(-F[:, 0]))

    def skew(self, F: Matrix) -> Vector:
        """The third derivative of the loss as a share of the second, ``1 - 2 p``, (n,)."""
        return -np.tanh(0.5 * F[:, 0])

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The one latent value."""
        return [(0, 0)]

    def pair_weights(self, F: Matrix) -> Matrix:
        """``p (1 - p)``, (n, 1)."""
        return self.curvature(F).scalar[:, None]

    def pull_pairs(self, F: Matrix, nu: Matrix) -> Matrix:
        """``nu p (1 - p) (1 - 2 p)``, (n, 1)."""
        return nu * self.pair_weights(F) * self.skew(F)[:, None]


@dataclass(frozen=True, eq=False)
class SoftmaxCurvature:
    """``diag(p_i) - p_i p_i'`` for the class probabilities ``p`` (n, c) of each row."""

    probabilities: Matrix

    @property
    def scalar(self) -> Vector:
        """The mean of the eigenvalues, except for the one that is 0."""
        p = self.probabilities
        return (p * (1.0 - p)).sum(axis=1) / (p.shape[1] - 1)

    def apply(self, V: Matrix) -> Matrix:
        """``W V``."""
        weighted = self.probabilities * V
        return weighted - self.probabilities * weighted.sum(axis=1, keepdims=True)


@dataclass(frozen=True, eq=False)
class Softmax:
    r"""Classes with a latent value each: :math:`p(y = k \mid f) = e^{f_k} / \sum_j e^{f_j}`.

    Parameters
    ----------
    codes : ndarray of shape (n,)
        Numbers of the classes of the rows.
    classes : int
        Number of classes.

    Examples
    --------
    >>> link = Softmax(np.array([0, 2]), 3)
    >>> link.slope(np.zeros((2, 3))).round(4).tolist()
    [[0.6667, -0.3333, -0.3333], [-0.3333, -0.3333, 0.6667]]
    """

    codes: NDArray[np.intp]
    classes: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.classes

    def loss(self, F: Matrix) -> float:
        """The sum over the rows."""
        return float((logsumexp(F, axis=1) - F[np.arange(len(F)), self.codes]).sum())

    def slope(self, F: Matrix) -> Matrix:
        """``d log p / d f``, (n, c)."""
        slope = -softmax(F, axis=1)
        rows = np.arange(len(F))
        # Not 1 - p: where p is next to 1, what the others have keeps its digits.
        slope[rows, self.codes] = 0.0
        slope[rows, self.codes] = -slope.sum(axis=1)
        return slope

    def curvature(self, F: Matrix) -> SoftmaxCurvature:
        """``diag(p) - p p'``."""
        return SoftmaxCurvature(np.asarray(softmax(F, axis=1)))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs of different classes."""
        return [(a, b) for a in range(self.classes) for b in range(a + 1, self.classes)]

    def pair_weights(self, F: Matrix) -> Matrix:
        """``p_a p_b``, (n, pairs)."""
        p = self.curvature(F).probabilities
        first, second = np.array(self.pairs).T
        return p[:, first] * p[:, second]

    def pull_pairs(self, F: Matrix, nu: Matrix) -> Matrix:
        """By ``d (p_a p_b) / d f_j = p_a p_b ([a = j] + [b = j] - 2 p_j)``, (n, c)."""
        p, weighted = self.curvature(F).probabilities, nu * self.pair_weights(F)
        out = -2.0 * p * weighted.sum(axis=1, keepdims=True)
        for column, pair in zip(weighted.T, self.pairs, strict=True):
            out[:, pair] += column[:, None]
        return out
