"""What every loss is: a convex function of one prediction, with what Newton, proximal and dual methods need of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, ParameterError
from mercer.losses.numeric import conjugate_by_tangents, prox_by_bracketing

Vector = NDArray[np.float64]
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
    name : str
        What estimators call it.
    targets : {"signs", "numbers", "counts"}
        What y holds: labels -1 and +1, any numbers, or numbers of 0 or more.
    smooth : bool
        Whether the gradient is continuous, so that Newton's method applies.

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
    targets: Targets = "numbers"
    smooth: bool = True

    @abstractmethod
    def value(self, y: Vector, f: Vector) -> Vector:
        """The loss, 0 or more."""

    @abstractmethod
    def gradient(self, y: Vector, f: Vector) -> Vector:
        """The derivative by f; where there are several, one of them."""

    @abstractmethod
    def curvature(self, y: Vector, f: Vector) -> Vector:
        """The second derivative by f, 0 or more; where there are several, one of them."""

    def conjugate(self, y: Vector, u: Vector) -> Vector:
        r""":math:`\ell^*(y, u) = \sup_f u f - \ell(y, f)`, infinite where no gradient is u."""
        return conjugate_by_tangents(self.value, self.gradient, y, u)

    def prox(self, y: Vector, v: Vector, step: Any) -> Vector:
        r"""The proximal map :math:`\arg\min_f \ell(y, f) + (f - v)^2 / (2\, \text{step})`."""
        return prox_by_bracketing(self.gradient, y, v, np.broadcast_to(step, np.shape(v)))

    def slopes(self, y: Vector) -> tuple[Vector, Vector]:
        """The least and the largest gradient by f, which bound where the conjugate is finite."""
        return np.full(np.shape(y), -np.inf), np.full(np.shape(y), np.inf)

    def tube(self, y: Vector) -> Tube | None:
        """The loss as one of straight pieces, if it is."""
        return None

    def response(self, f: Vector) -> Vector:
        """What a prediction f says of the target: f itself but for losses with a link."""
        return f

    def check_targets(self, y: Vector) -> None:
        """Raise a DataError where a target makes no sense."""
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
        raise ParameterError(f"{loss}: {name} must be {wanted}, and is {value!r}.")
    return float(value)
