"""The time of a search: how much is left, and how long the next candidates will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mercer.loops.compilation import working_time
from mercer.selection.ranges import Point

# Estimates are exceeded by this factor.
_CAUTION = 1.2
# How much longer a fit takes at a tolerance that is smaller by a factor of 10, before it was seen.
_STEP = 2.0
# Candidates that share a matrix, and start from one another, take time by this power of their number.
_SHARED = 0.5


@dataclass(eq=False)
class TimeBudget:
    """Seconds for a search with its refit, counted from its creation without those in which loops are compiled.

    Parameters
    ----------
    seconds : float

    Examples
    --------
    >>> budget = TimeBudget(100.0)
    >>> budget.learn(0, [(0.0,), (1.0,)], None, 30.0)
    >>> budget.suffices(0, [(2.0,)], None), budget.suffices(0, [(2.0,)] * 20, None)
    (True, False)
    """

    seconds: float
    refit: float = 0.0
    """How long the refit will take."""
    start: float = field(default_factory=working_time)

    def __post_init__(self) -> None:
        self._seen: list[_Seen] = []

    @property
    def left(self) -> float:
        """Seconds left."""
        return self.seconds - (working_time() - self.start)

    def learn(self, space: int, points: Sequence[Point], tol: float | None, seconds: float) -> None:
        """Remember how long some candidates took together."""
        self._seen.append(_Seen(space, tuple(points), tol, seconds))

    def suffices(self, space: int, points: Sequence[Point], tol: float | None) -> bool:
        """Whether the time suffices for some candidates that are fitted together, and the refit after them."""
        expected = max(self._expected(space, point, tol, len(points)) for point in points)
        return _CAUTION * (expected + self.refit) <= self.left

    def _expected(self, space: int, point: Point, tol: float | None, count: int) -> float:
        """The time of so many candidates, from that of those that are nearest to one of them."""
        if not self._seen:
            return 0.0

        def distance(seen: _Seen) -> tuple[bool, float, bool]:
            apart = min(sum(abs(a - b) for a, b in zip(other, point)) for other in seen.points)
            return seen.space != space, apart, seen.tol != tol

        nearest = min(reversed(self._seen), key=distance)
        return nearest.seconds * (count / len(nearest.points)) ** _SHARED * (1.0 if nearest.tol == tol else _STEP)


@dataclass(frozen=True)
class _Seen:
    """Candidates that were fitted together, and how long that took."""

    space: int
    points: tuple[Point, ...]
    tol: float | None
    seconds: float
