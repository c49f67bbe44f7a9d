"""The base class of losses: a convex function of one prediction, with what Newton, proximal and dual methods need."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Vector
from mercer.data.objects import short
from mercer.loops.losses import GIVEN
from mercer.losses.numeric import conjugate_by_tangents, prox_by_bracketing

Targets = Literal["signs", "numbers", "counts"]


@dataclass(frozen=True, eq=False)
class Tube:
    r"""A piecewise linear loss, :math:`\max(0, a (r - \varepsilon), b (-r - \varepsilon))` of ``r = centre - f``.

    Parameters
    ----------
    centre : ndarray of shape (n,)
    above, below : ndarray of shape (n,)
        The slopes a and b, zero or above.
    width : float
        Half the width :math:`\varepsilon` of the tube in which the loss is zero.
    """

    centre: Vector
    above: Vector
    below: Vector
    width: float


class Loss(ABC):
    r"""A convex loss :math:`\ell(y, f)` of a prediction f for a target y, in prediction space: no X, no kernel.

    All methods work element by element: ``y``, ``f`` and the result have the same shape.

    Attributes
    ----------
    name, aliases : str, tuple of str
        The names by which estimators know it.
    targets : {"signs", "numbers", "counts"}
        What y contains: labels -1 and +1, any numbers, or numbers of 0 or more.
    smooth : bool
        Whether the gradient is continuous, so that Newton's method applies.
    code : int
        Its number in compiled loops; see :mod:`mercer.loops.losses`.
    parameter : float
        The parameter of the loss in those loops, such as the width of a tube; 0 if it has none.
    step_bound : float
        A step of length s along a gradient at a row x does not overshoot if ``s * k(x, x) * step_bound <= 1``: the
        largest second derivative; for piecewise linear losses the largest slope, since a margin or a residual then
        moves by at most 1. Infinite if there is no bound.

    Examples
    --------
    >>> from mercer.losses import Huber
    >>> loss = Huber(delta=1.0)
    >>> loss.value(np.zeros(3), np.array([0.5, 1.0, 3.0]))
    array([0.125, 0.5  , 2.5  ])
    >>> loss.gradient(np.zeros(3), np.array([0.5, 1.0, 3.0]))
    array([0.5, 1. , 1. ])
    """

    name: str = ""
    aliases: ClassVar[tuple[str, ...]] = ()
    targets: Targets = "numbers"
    smooth: bool = True
    code: ClassVar[int] = GIVEN
    step_bound: float = math.inf

    @property
    def parameter(self) -> float:
        """The parameter of the loss in compiled loops, such as the width of a tube; 0 if it has none."""
        return 0.0

    @abstractmethod
    def value(self, y: Vector, f: Vector) -> Vector:
        """Return the loss.

        Parameters
        ----------
        y, f : ndarray of shape (n,)
            Targets and predictions.

        Returns
        -------
        ndarray of shape (n,)
            0 or more.
        """

    @abstractmethod
    def gradient(self, y: Vector, f: Vector) -> Vector:
        """Return the derivative with respect to f.

        Parameters
        ----------
        y, f : ndarray of shape (n,)
            Targets and predictions.

        Returns
        -------
        ndarray of shape (n,)
            A subgradient where the derivative does not exist.
        """

    @abstractmethod
    def curvature(self, y: Vector, f: Vector) -> Vector:
        """Return the second derivative with respect to f.

        Parameters
        ----------
        y, f : ndarray of shape (n,)
            Targets and predictions.

        Returns
        -------
        ndarray of shape (n,)
            0 or more; one of the one-sided values where it jumps.
        """

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        r""":math:`\ell^*(y, u) = \sup_f u f - \ell(y, f)`.

        Parameters
        ----------
        y, u : ndarray of shape (n,)
            Targets and dual values.

        Returns
        -------
        ndarray of shape (n,)
            Infinite where u is not attained as a gradient.
        """
        return conjugate_by_tangents(self.value, self.gradient, y, u)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        r"""The proximal map :math:`\arg\min_f \ell(y, f) + (f - v)^2 / (2\, \text{step})`.

        Parameters
        ----------
        y, v : ndarray of shape (n,)
            Targets, and the points that f stays close to.
        step : float or ndarray of shape (n,)
            Above 0.

        Returns
        -------
        ndarray of shape (n,)
        """
        return prox_by_bracketing(self.gradient, y, v, np.broadcast_to(step, np.shape(v)))

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        """Return the infimum and the supremum of the gradient over f: the conjugate is finite only between them.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.

        Returns
        -------
        least, largest : ndarray of shape (n,)
        """
        return np.full(np.shape(y), -np.inf), np.full(np.shape(y), np.inf)

    def tube(self, y: Vector) -> Tube | None:
        """Return the loss in the form of a tube, if it is piecewise linear.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.

        Returns
        -------
        Tube or None
            None if the loss is not of this form.
        """
        return None

    def steepest(self, y: Vector) -> float:
        """Return the largest absolute slope over all targets.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.

        Returns
        -------
        float
            Infinite if there is no bound.
        """
        return float(max(np.abs(side).max(initial=0.0) for side in self.slopes(y)))

    def response(self, f: Vector) -> Vector:
        """Map predictions to the scale of the target; the identity except for losses with a link function.

        Parameters
        ----------
        f : ndarray of shape (n,)
            Predictions.

        Returns
        -------
        ndarray of shape (n,)
        """
        return f

    def check_targets(self, y: Vector) -> None:
        """Raise an error if a target is not valid for this loss.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.

        Raises
        ------
        DataError
            If a target is not one of ``targets``.
        """
        if self.targets == "counts" and (y < 0).any():
            at = int(np.argmin(y))
            raise DataError(f"the {self.name} loss needs targets of 0 or more, and y has {y[at]:g} in row {at}.")
        if self.targets == "signs" and not np.isin(y, (-1.0, 1.0)).all():
            raise DataError(f"the {self.name} loss needs targets -1 and +1, and y holds {np.unique(y)[:5]}.")


def require(loss: str, name: str, value: Any, requirement: str, accepts: Callable[[float], bool]) -> float:
    """Return ``value`` as a float if ``accepts`` allows it.

    Raises
    ------
    ParameterError
        If it is not a number, or ``accepts`` returns False for it.

    Examples
    --------
    >>> require("Huber", "delta", 2, "a number above 0", lambda value: value > 0)
    2.0
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not accepts(float(value)):
        raise ParameterError(f"{loss}: {name} must be {requirement}, but is {short(value)}.")
    return float(value)
