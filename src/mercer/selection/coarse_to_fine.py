"""From a coarse grid in the logarithms to the best point: the order in which points of a space are tried."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from mercer.selection.ranges import FINEST, Axis, Point

# Up to so many axes all neighbours are tried, with more those along an axis.
_BOX = 2


class CoarseToFine:
    """Points of one space, from a coarse grid to a quarter of its spacing around the best.

    Parameters
    ----------
    axes : sequence of Axis

    Examples
    --------
    >>> plan = CoarseToFine([Axis("C", (0.0, 2.0), -4.0, 4.0, 2.0)])
    >>> plan.coarse()
    [(0.0,), (2.0,)]
    >>> plan.next({(0.0,): 0.5, (2.0,): 0.7})
    [(4.0,)]
    >>> plan.next({(0.0,): 0.5, (2.0,): 0.7, (4.0,): 0.1})
    [(1.0,), (3.0,)]
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.axes = tuple(axes)
        self._spacing = [axis.spacing for axis in axes]

    def coarse(self) -> list[Point]:
        """All combinations of the values of the main axes, the other axes at their middle."""
        values = [axis.start if axis.main else (axis.middle,) for axis in self.axes]
        return [tuple(map(_rounded, point)) for point in product(*values)]

    def next(self, scores: Mapping[Point, float]) -> list[Point]:
        """Return the points to try next, none at the end.

        Parameters
        ----------
        scores : dict of point to float
            Of all points that were tried; NaN where a fit failed.

        Returns
        -------
        list of point
            Neighbours of the best that were not tried, at the first spacing that has some.
        """
        usable = {point: score for point, score in scores.items() if not math.isnan(score)}
        if not usable or not self.axes:
            return []
        best = self.best(usable)
        while True:
            around = [point for point in self._around(best) if point not in scores]
            if around:
                return around
            if all(spacing <= FINEST for spacing in self._spacing):
                return []
            self._spacing = [spacing if spacing <= FINEST else 0.5 * spacing for spacing in self._spacing]

    def best(self, scores: Mapping[Point, float]) -> Point:
        """The best point; among equals the one that is nearest to the middle."""
        return min(scores, key=lambda point: (-scores[point], self.distance(point), point))

    def distance(self, point: Point) -> float:
        """The squared distance from the middle, in units of the coarse spacing."""
        return sum(((a - axis.middle) / axis.spacing) ** 2 for a, axis in zip(point, self.axes))

    def order(self, point: Point) -> tuple[float, float]:
        """What points are sorted by: kernels that are cheap to evaluate first, then the nearest to the middle."""
        return sum(value for value, axis in zip(point, self.axes) if axis.values), self.distance(point)

    def _around(self, best: Point) -> list[Point]:
        """The neighbours of a point at the spacing of now, inside the limits of the axes."""
        steps: list[tuple[int, ...]] = []
        main = [number for number, axis in enumerate(self.axes) if axis.main]
        if len(main) <= _BOX:
            for signs in product((-1, 0, 1), repeat=len(main)):
                steps.append(tuple(signs[main.index(n)] if n in main else 0 for n in range(len(best))))
        along = range(len(best)) if len(main) > _BOX else [n for n in range(len(best)) if n not in main]
        for n in along:
            steps += [tuple(sign if m == n else 0 for m in range(len(best))) for sign in (-1, 1)]
        points = (
            tuple(_rounded(value + sign * spacing) for value, sign, spacing in zip(best, signs, self._spacing))
            for signs in steps
            if any(signs)
        )
        return [point for point in points if self._is_inside(point)]

    def _is_inside(self, point: Point) -> bool:
        return all(axis.low - 1e-9 <= value <= axis.high + 1e-9 for value, axis in zip(point, self.axes))


def _rounded(value: float) -> float:
    """The same float for one point that is reached by different ways."""
    return round(value, 9) + 0.0
