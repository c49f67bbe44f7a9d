"""Sums of losses as Newton's method over landmarks sees them: values, slopes and curvatures of the rows of one part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy.special import softmax, xlogy

from mercer._types import Matrix, Vector
from mercer.losses import Loss
from mercer.losses.softmax import Softmax

# Each envelope is this many times closer than the one before.
_CLOSER = 2.0
# Of a smooth loss with curvatures of about 1, the envelope of this width is nearly the loss.
_NEGLIGIBLE = 0.05


class Slopes(NamedTuple):
    """At the predictions of s rows, (s, k).

    ``values`` (s,) are those of the loss, ``smooth`` (s,) those of what the steps minimise, which is the loss itself if
    it is smooth, ``slopes`` (s, k) its derivatives, and ``conjugates`` (s, k) the conjugate of the loss at these.
    """

    values: Vector
    smooth: Vector
    slopes: Matrix
    conjugates: Matrix


class Balanced(NamedTuple):
    """Multipliers with the sum 0 for each output, as sums over the rows of those before.

    ``mixing`` (2, k, k): the new multipliers of a row are ``parts[0] @ mixing[0] + parts[1] @ mixing[1]``.
    ``conjugate`` is at least the sum of the conjugates of the loss at these.
    """

    mixing: Matrix
    conjugate: float


class Criterion(Protocol):
    """A convex loss of the k predictions of a row.

    ``terms`` is how many sums over the rows it needs for each prediction to bound the conjugates of other multipliers.
    """

    terms: ClassVar[int]

    def slopes(self, y: Matrix, F: Matrix) -> Slopes:
        """What a step needs."""

    def curved(self, y: Matrix, F: Matrix, D: Matrix) -> Matrix:
        """The second derivatives at F times directions D, (s, k)."""

    def curvature(self, y: Matrix, F: Matrix) -> Vector:
        """The mean over the predictions of the second derivatives by each of them, (s,)."""

    def closer(self) -> Criterion | None:
        """The next one, closer to the loss, or None if this is the loss itself."""

    def parts(self, y: Matrix, at: Slopes) -> tuple[Matrix, Matrix]:
        """Two parts of the slopes, (s, 2, k), and the terms (s, c, k), whose weighted sums ``balanced`` takes."""

    def balanced(self, sums: Matrix, terms: Matrix) -> Balanced:
        """Feasible multipliers of a problem with offsets, from the sums of the parts (2, k) and of the terms (c, k)."""


def _by_sign(loss: Loss, y: Matrix, at: Slopes) -> tuple[Matrix, Matrix]:
    """The slopes above and below 0, and for each side the conjugates at the slopes and at 0."""
    above = at.slopes > 0
    rest = loss.conjugate(y, np.zeros_like(y))
    parts = [np.where(side, at.slopes, 0.0) for side in (above, ~above)]
    terms = [np.where(side, part, 0.0) for part in (at.conjugates, rest) for side in (above, ~above)]
    return np.stack(parts, axis=1), np.stack(terms, axis=1)


def _shrunk(sums: Matrix, terms: Matrix) -> Balanced:
    r"""Shrink the multipliers of the larger side: :math:`\ell^*(s u) \le s \ell^*(u) + (1 - s) \ell^*(0)`."""
    least = np.min(np.abs(sums), axis=0)
    shares = np.divide(least, np.abs(sums), out=np.ones_like(sums), where=np.abs(sums) > least)
    # A loss without a least value has an infinite conjugate at 0.
    rest = np.multiply(1.0 - shares, terms[2:], out=np.zeros_like(shares), where=shares < 1.0)
    return Balanced(np.stack([np.diag(side) for side in shares]), float((shares * terms[:2] + rest).sum()))


@dataclass(frozen=True)
class Smooth:
    """A loss with a continuous gradient.

    Examples
    --------
    >>> from mercer.losses import Logistic
    >>> found = Smooth(Logistic()).slopes(np.ones((1, 1)), np.zeros((1, 1)))
    >>> found.slopes.tolist(), round((found.values + found.conjugates).item(), 12)
    ([[-0.5]], 0.0)
    """

    loss: Loss
    terms: ClassVar[int] = 4

    def slopes(self, y: Matrix, F: Matrix) -> Slopes:
        values, slopes = self.loss.value(y, F), self.loss.gradient(y, F)
        sums = values.sum(axis=1)
        # By the equality of Fenchel and Young.
        return Slopes(sums, sums, slopes, slopes * F - values)

    def curved(self, y: Matrix, F: Matrix, D: Matrix) -> Matrix:
        return self.loss.curvature(y, F) * D

    def curvature(self, y: Matrix, F: Matrix) -> Vector:
        return np.asarray(self.loss.curvature(y, F).mean(axis=1))

    def closer(self) -> None:
        return None

    def parts(self, y: Matrix, at: Slopes) -> tuple[Matrix, Matrix]:
        return _by_sign(self.loss, y, at)

    def balanced(self, sums: Matrix, terms: Matrix) -> Balanced:
        return _shrunk(sums, terms)


@dataclass(frozen=True)
class Envelope:
    r"""The envelope of Moreau of a loss, :math:`\min_p \ell(y, p) + (f - p)^2 / (2 \mu)`.

    It is smooth, below a loss with slopes of at most s by at most :math:`\mu s^2 / 2`, and its slopes are slopes of the
    loss, so that they make a dual solution. While :math:`\mu` is large, rows far from their targets have a curvature.

    With multipliers u in a second column of the targets it is :math:`\min_p \ell(y, p) + u (f - p) + (f - p)^2 /
    (2 \mu)`, the augmented Lagrangian of :math:`p = f`, which has the solution of the loss itself if u is a dual
    solution, however large :math:`\mu` is.

    Parameters
    ----------
    loss : Loss
    width : float
        mu.

    Examples
    --------
    >>> from mercer.losses import Hinge
    >>> found = Envelope(Hinge(), 0.5).slopes(np.ones((2, 1)), np.array([[0.9], [0.0]]))
    >>> found.values.round(2).tolist(), found.smooth.round(2).tolist(), found.slopes.round(2).tolist()
    ([0.1, 1.0], [0.01, 0.75], [[-0.2], [-1.0]])
    """

    loss: Loss
    width: float
    terms: ClassVar[int] = 4

    def slopes(self, y: Matrix, F: Matrix) -> Slopes:
        target, u, p = self._nearest(y, F)
        slopes, at_p = u + (F - p) / self.width, self.loss.value(target, p)
        smooth = (at_p + self.width / 2 * (slopes**2 - u**2)).sum(axis=1)
        return Slopes(self.loss.value(target, F).sum(axis=1), smooth, slopes, slopes * p - at_p)

    @property
    def augments(self) -> bool:
        """Whether multipliers are useful; a smooth loss takes the place of its last envelope."""
        return not self.loss.smooth

    def revised(self, y: Matrix, F: Matrix) -> Matrix:
        """Targets whose multipliers are the slopes."""
        return np.hstack([y[:, :1], self.slopes(y, F).slopes])

    def curved(self, y: Matrix, F: Matrix, D: Matrix) -> Matrix:
        return self._curvatures(y, F) * D

    def curvature(self, y: Matrix, F: Matrix) -> Vector:
        return np.asarray(self._curvatures(y, F).mean(axis=1))

    def _nearest(self, y: Matrix, F: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Targets, multipliers, and p."""
        target, u = y[:, :1], y[:, 1:] if y.shape[1] > 1 else np.zeros((len(y), 1))
        # Maps that search for the point take vectors.
        p = self.loss.prox(target[:, 0], (F + self.width * u)[:, 0], self.width)
        return target, u, p[:, None]

    def _curvatures(self, y: Matrix, F: Matrix) -> Matrix:
        """``c / (1 + mu c)`` with the curvature c of the loss at the nearest point p, which is infinite at a kink."""
        target, u, p = self._nearest(y, F)
        curvature = self.loss.curvature(target, p)
        curvature = curvature / (1.0 + self.width * curvature)
        if self.loss.smooth:
            return np.asarray(curvature)
        # At a kink the slope is between those of the pieces.
        slopes = u + (F - p) / self.width
        least, most = self.loss.slopes(target)
        rounding = 1e-9 * (most - least)
        kink = (slopes > least + rounding) & (slopes < most - rounding) & (np.abs(slopes) > rounding)
        return np.where(kink, 1.0 / self.width, curvature)

    def closer(self) -> Criterion | None:
        if self.loss.smooth and self.width <= _NEGLIGIBLE:
            return Smooth(self.loss)
        return Envelope(self.loss, self.width / _CLOSER)

    def parts(self, y: Matrix, at: Slopes) -> tuple[Matrix, Matrix]:
        return _by_sign(self.loss, y[:, :1], at)

    def balanced(self, sums: Matrix, terms: Matrix) -> Balanced:
        return _shrunk(sums, terms)


@dataclass(frozen=True)
class SoftmaxCriterion:
    r"""The log loss of several classes, from indicators (s, k) of the classes.

    Its multipliers are :math:`p - y` with probabilities p, so that feasible ones predict each class as often as it is
    there. Where a class is predicted too often, a share of its probability is given to those that are not. With the
    conjugate :math:`\sum_c p_c \log p_c`, whose derivatives are at most 1 by what is added, that costs at most what is
    given away and what the class itself loses.
    """

    loss: Softmax = field(default_factory=Softmax)
    terms: ClassVar[int] = 1

    def slopes(self, y: Matrix, F: Matrix) -> Slopes:
        values, p = self.loss.value(y, F), softmax(F, axis=1)
        # The conjugate is the negative entropy of the probabilities.
        return Slopes(values, values, p - y, xlogy(p, p))

    def curved(self, y: Matrix, F: Matrix, D: Matrix) -> Matrix:
        p = softmax(F, axis=1)
        return np.asarray(p * (D - (p * D).sum(axis=1, keepdims=True)))

    def curvature(self, y: Matrix, F: Matrix) -> Vector:
        p = softmax(F, axis=1)
        return np.asarray((p * (1 - p)).mean(axis=1))

    def closer(self) -> None:
        return None

    def parts(self, y: Matrix, at: Slopes) -> tuple[Matrix, Matrix]:
        return np.stack([at.slopes + y, -y], axis=1), at.conjugates[:, None]

    def balanced(self, sums: Matrix, terms: Matrix) -> Balanced:
        predicted, excess = sums[0], sums.sum(axis=0)
        given, taken = np.maximum(excess, 0.0), np.maximum(-excess, 0.0)
        shares = np.divide(given, predicted, out=np.zeros_like(given), where=given > 0)
        kept = 1.0 - shares
        mixing = np.diag(kept) + np.outer(shares, taken / (taken.sum() or 1.0))
        conjugate = kept @ terms[0] + predicted @ xlogy(kept, kept) + given.sum()
        return Balanced(np.stack([mixing, np.eye(len(excess))]), float(conjugate))
