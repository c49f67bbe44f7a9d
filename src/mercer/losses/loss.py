"""What every loss is: a convex function of one prediction, with what Newton, proximal and dual methods need of it."""

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
from mercer.loops.losses import GIVEN
from mercer.losses.numeric import conjugate_by_tangents, prox_by_bracketing

Targets = Literal["signs", "numbers", "counts"]


@dataclass(frozen=True, eq=False)
class Tube:
    r"""A loss of straight pieces, :math:`\max(0, a (r - \varepsilon), b (-r - \varepsilon))` of ``r = centre - f``.

    Parameters
    ----------
    centre : ndarray of shape (n,)
    above, below : ndarray of shape (n,)
        The slopes a and b, zero or above.
    width : float
        Half the width :math:`\varepsilon` of the tube that costs nothing.
    """

    centre: Vector
    above: Vector
    below: Vector
    width: float


class Loss(ABC):
    r"""A convex loss :math:`\ell(y, f)` of a prediction f for a target y, in prediction space: no X, no kernel.

    Everything is element by element: ``y`` and ``f`` have one shape, and so has the answer.

    Attributes
    ----------
    name, aliases : str, tuple of str
        What estimators call it.
    targets : {"signs", "numbers", "counts"}
        What y holds: labels -1 and +1, any numbers, or numbers of 0 or more.
    smooth : bool
        Whether the gradient is continuous, so that Newton's method applies.
    code : int
        What compiled loops know it by; see :mod:`mercer.loops.losses`.
    parameter : float
        The number that those loops need beside it, such as the width of a tube; 0 where there is none.
    step_bound : float
        A step of length s along a gradient at a row x does not overshoot if ``s * k(x, x) * step_bound <= 1``: the
        largest second derivative; for losses of straight pieces their largest slope, as a margin or a residual then
        moves by at most 1. Infinite where there is no bound.

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
        """The number that compiled loops need beside ``code``, such as the width of a tube; 0 where there is none."""
        return 0.0

    @abstractmethod
    def value(self, y: Vector, f: Vector) -> Vector:
        """The loss.

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
        """The derivative by f.

        Parameters
        ----------
        y, f : ndarray of shape (n,)
            Targets and predictions.

        Returns
        -------
        ndarray of shape (n,)
            Where there are several derivatives, one of them.
        """

    @abstractmethod
    def curvature(self, y: Vector, f: Vector) -> Vector:
        """The second derivative by f.

        Parameters
        ----------
        y, f : ndarray of shape (n,)
            Targets and predictions.

        Returns
        -------
        ndarray of shape (n,)
            0 or more; where there are several, one of them.
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
            Infinite where no gradient is u.
        """
        return conjugate_by_tangents(self.value, self.gradient, y, u)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        r"""The proximal map :math:`\arg\min_f \ell(y, f) + (f - v)^2 / (2\, \text{step})`.

        Parameters
        ----------
        y, v : ndarray of shape (n,)
            Targets, and the points that f stays near to.
        step : float or ndarray of shape (n,)
            Above 0.

        Returns
        -------
        ndarray of shape (n,)
        """
        return prox_by_bracketing(self.gradient, y, v, np.broadcast_to(step, np.shape(v)))

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        """The least and the largest gradient by f, which bound where the conjugate is finite.

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
        """The loss as one of straight pieces.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.

        Returns
        -------
        Tube or None
            None if it is not one of straight pieces.
        """
        return None

    def steepest(self, y: Vector) -> float:
        """The largest slope, in size, for any of the targets.

        Parameters
        ----------
        y : ndarray of shape (n,)
            Targets.

        Returns
        -------
        float
            Infinite where there is no bound.
        """
        return float(max(np.abs(side).max(initial=0.0) for side in self.slopes(y)))

    def response(self, f: Vector) -> Vector:
        """What a prediction says of the target: the prediction itself but for losses with a link.

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
        """Raise an error where a target makes no sense.

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


def require(loss: str, name: str, value: Any, wanted: str, accepts: Callable[[float], bool]) -> float:
    """``value`` as a float that ``accepts`` takes.

    Raises
    ------
    ParameterError
        If it is no number, or another one than is ``wanted``.

    Examples
    --------
    >>> require("Huber", "delta", 2, "a number above 0", lambda value: value > 0)
    2.0
    """
    if not isinstance(value, Real) or isinstance(value, bool) or not accepts(float(value)):
        raise ParameterError(f"{loss}: {name} must be {wanted}, but is {value!r}.")
    return float(value)
