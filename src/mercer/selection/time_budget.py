"""The time of a search: what is left of it, and how long the next candidates will take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from mercer.selection.ranges import Point

# Estimates are exceeded by this factor.
_CAUTION = 1.2
# How much longer a fit takes at a tolerance that is smaller by a factor of 10, before it was seen.
_STEP = 2.0


@dataclass(eq=False)
class TimeBudget:
    """Seconds for a search with its refit, counted from its creation.

    Parameters
    ----------
    seconds : float

    Examples
    --------
    >>> budget = TimeBudget(100.0)
    >>> budget.learn(0, [(0.0,), (1.0,)], None, 30.0)
    >>> budget.suffices(0, [(2.0,)], None), budget.suffices(0, [(2.0,)] * 9, None)
    (True, False)
    """

    seconds: float
    refit: float = 0.0
    """How long the refit will take."""
    start: float = field(default_factory=time.perf_counter)

    def __post_init__(self) -> None:
        self._seen: list[tuple[int, Point, float | None, float]] = []

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - (time.perf_counter() - self.start)

    def learn(self, space: int, points: Sequence[Point], tol: float | None, seconds: float) -> None:
        """Remember how long some candidates took together."""
        self._seen += [(space, point, tol, seconds / len(points)) for point in points]

    def suffices(self, space: int, points: Sequence[Point], tol: float | None) -> bool:
        """Whether the time suffices for some candidates, and the refit after them."""
        expected = sum(self._expected(space, point, tol) for point in points)
        return _CAUTION * (expected + self.refit) <= self.left

    def _expected(self, space: int, point: Point, tol: float | None) -> float:
        """The time of the nearest candidate of those seen at the same tolerance, or at another."""
        if not self._seen:
            return 0.0

        def distance(seen: tuple[int, Point, float | None, float]) -> tuple[bool, float, bool]:
            apart = sum(abs(a - b) for a, b in zip(seen[1], point))
            return seen[0] != space, apart, seen[2] != tol

        nearest = min(reversed(self._seen), key=distance)
        return nearest[3] * (1.0 if nearest[2] == tol else _STEP)
