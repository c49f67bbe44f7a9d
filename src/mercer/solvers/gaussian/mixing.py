"""Faster fixed points: steps that are mixed from the last ones."""

from __future__ import annotations

import numpy as np

from mercer._types import Matrix, Vector

_MEMORY = 5
_LEAST_DAMPING = 0.1
# A residual that grows by this factor shows that the last steps no longer describe the map.
_WORSE = 2.0
_SINGULAR = 1e-10


class Mixing:
    """Anderson's mixing for ``x = x + g(x)``, with the last five steps.

    Two dozen sweeps are what expectation propagation takes where plain updates, damped as they must be, take fifty.

    References
    ----------
    H. F. Walker and P. Ni, "Anderson acceleration for fixed-point iterations", SIAM J. Numer. Anal. 49 (2011),
    1715-1735.

    Examples
    --------
    >>> mixing, x = Mixing(), np.array([0.0])
    >>> for _ in range(3):
    ...     x = x + mixing.step(x, 3.0 - 1.5 * x, np.ones(1))
    >>> x.round(9).tolist()
    [2.0]
    """

    def __init__(self) -> None:
        self.damping = 1.0
        self._points: list[Vector] = []
        self._residuals: list[Vector] = []
        self._last = np.inf

    def step(self, x: Vector, residual: Vector, scale: Vector) -> Vector:
        """What to add to ``x``; ``scale`` says in which units entries of the residual count."""
        size = float(np.abs(scale * residual).max())
        if size > _WORSE * self._last:
            self._points, self._residuals = [], []
            self.damping = max(self.damping / 2, _LEAST_DAMPING)
        self._last = size
        self._points = [*self._points[-_MEMORY:], x]
        self._residuals = [*self._residuals[-_MEMORY:], residual]
        plain = self.damping * residual
        if len(self._points) < 2:
            return plain
        dx, dg = _differences(self._points), _differences(self._residuals)
        mix, *_ = np.linalg.lstsq(scale[:, None] * dg, scale * residual, rcond=_SINGULAR)
        return np.asarray(plain - (dx + self.damping * dg) @ mix)


def _differences(vectors: list[Vector]) -> Matrix:
    return np.diff(np.stack(vectors, axis=1), axis=1)
