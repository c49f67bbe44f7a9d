"""What the solvers of a regularised risk return."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mercer._types import Vector


@dataclass(frozen=True, eq=False)
class RiskValue:
    """The answer of a :class:`RegularizedRisk`.

    Parameters
    ----------
    c : ndarray of shape (n,)
        The coefficients of the expansion.
    b : float
        The offset.
    Kc : ndarray of shape (n,)
        The product ``K c``.
    u : ndarray of shape (n,)
        The dual solution: a gradient of the weighted losses.
    lam : float
        The factor of half the squared norm that has the same solution.
    """

    c: Vector
    b: float
    Kc: Vector
    u: Vector
    lam: float

    @property
    def norm(self) -> float:
        """``||w||``."""
        return math.sqrt(max(float(self.c @ self.Kc), 0.0))
