"""The general problem of kernel methods: a loss of the predictions and a penalty of the norm."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.data.objects import short
from mercer.gram.protocol import GramMatrix
from mercer.losses import HalfSquare, Loss, Penalty


@dataclass(frozen=True, eq=False)
class RegularizedRisk:
    r"""A convex loss of the predictions and a convex, non-decreasing penalty of the norm.

    .. math:: \min_{c, b} \sum_i w_i \ell(y_i, f_i) + \alpha R(\|w\|), \qquad f = K c + b, \quad \|w\|^2 = c^\top K c

    By the representer theorem its solution is one over all functions of the kernel's space. The dual is

    .. math:: \max_u -\sum_i w_i \ell^*(y_i, u_i / w_i) - \alpha R^*(s / \alpha), \qquad s^2 = u^\top K u

    where the multipliers u sum to 0 if there is an offset b. At the solution
    :math:`u_i = w_i \ell'(y_i, f_i) = -\lambda c_i`, where :math:`\lambda = \alpha R'(\|w\|) / \|w\|` is
    the factor of :math:`\tfrac12 \|w\|^2` with the same solution.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n), in the precision in which the answer is to be certified.
    loss : Loss
    targets : ndarray of shape (n,)
        As the loss takes them.
    weights : ndarray of shape (n,), optional
        Positive weights; ones by default. Rows of weight zero belong left out.
    penalty : Penalty, default=HalfSquare()
        R.
    alpha : float, default=1.0
        The factor of the penalty, above 0.
    intercept : bool, default=False
        Whether there is an offset b; else it is 0.
    convex : bool, default=True
        Whether K is positive semi-definite. If not, the answer is a stationary point.

    Raises
    ------
    DataError
        If lengths differ, a target or weight is not finite, or the loss cannot use a target.
    ParameterError
        If alpha or a weight is not above 0 and finite.

    References
    ----------
    B. Schoelkopf, R. Herbrich and A. J. Smola, "A generalized representer theorem", COLT (2001);
    R. T. Rockafellar, "Convex analysis" (1970), theorem 31.1 for the dual.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.losses import Squared
    >>> RegularizedRisk(PrecomputedGram(np.eye(2)), Squared(), [1.0, 2.0]).weights
    array([1., 1.])
    """

    gram: GramMatrix
    loss: Loss
    targets: Vector
    weights: Vector | None = None
    penalty: Penalty = field(default_factory=HalfSquare)
    alpha: float = 1.0
    intercept: bool = False
    convex: bool = True

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        targets = np.asarray(self.targets, dtype=np.float64)
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if self.gram.shape != (n, n) or targets.shape != (n,) or weights.shape != (n,):
            raise DataError(
                f"a problem over {n} rows needs targets and weights of shape ({n},) and a square matrix; the shapes "
                f"are targets {targets.shape}, weights {weights.shape}, K {self.gram.shape}."
            )
        if not np.isfinite(targets).all():
            at = int(np.argmin(np.isfinite(targets)))
            raise DataError(f"every target must be finite, and the one in row {at} is {targets[at]}.")
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ParameterError(
                f"every weight must be positive and finite, and they reach from {weights.min()} to {weights.max()}. "
                "Leave out rows whose weight is zero."
            )
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise ParameterError(f"alpha must be a finite number above 0, but is {short(self.alpha)}.")
        self.loss.check_targets(targets)
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "weights", weights)

    @property
    def weight(self) -> Vector:
        """The weights, (n,)."""
        return np.asarray(self.weights)

    def risk(self, f: Vector) -> float:
        """The weighted sum of the losses at predictions f."""
        with np.errstate(over="ignore"):
            return float(self.weight @ self.loss.value(self.targets, f))
