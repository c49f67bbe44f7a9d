r"""Kernel regression on ordered classes, stated: its losses, their derivatives, and the cut-points.

min over f, t   sum_i w_i psi(t_{j_i - 1} - f(x_i), t_{j_i} - f(x_i)) + 1/2 ||f||^2     s.t.   t_1 < ... < t_{k-1}

given a Gram matrix, the class j_i of every row, weights w_i > 0 and a cumulative link. With a log-concave density the
problem is jointly convex in f and t. Several rows may stand at one point, as answers to the same questions do: the
Gram matrix is that of the points.

Source: McCullagh, "Regression models for ordinal data" (1980), for the model; Chu and Ghahramani, "Gaussian processes
for ordinal regression" (2005), for kernels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from mercer._types import Positions, Vector
from mercer.gram.protocol import GramMatrix
from mercer.solvers.algebra.line_search import halved_step
from mercer.solvers.risk.cumulative_links import Link, Slopes

Ends = tuple[Vector, Vector, Vector]


@dataclass(frozen=True, eq=False)
class OrdinalLosses:
    """The weighted losses of n rows at m points, without a kernel.

    Parameters
    ----------
    codes : ndarray of int, shape (n,)
        Numbers of the classes, 0, ..., k - 1, in their order.
    weight : ndarray of shape (n,)
        Above 0.
    link : Link
    owner : ndarray of int, shape (n,), optional
        The point of each row; by default row i stands at point i.
    n_classes : int, optional
        The number k of classes, if not all of them have a row; by default the largest code + 1.
    """

    codes: Positions
    weight: Vector
    link: Link
    owner: Positions | None = None
    n_classes: int | None = None

    @property
    def points(self) -> int:
        """The number m of points."""
        return len(self.codes) if self.owner is None else int(self.owner.max()) + 1

    @cached_property
    def classes(self) -> int:
        """The number k of classes."""
        return int(self.codes.max()) + 1 if self.n_classes is None else self.n_classes

    def at_rows(self, values: Vector) -> Vector:
        """Values at the points (m,) for every row (n,)."""
        return values if self.owner is None else values[self.owner]

    def at_points(self, values: Vector) -> Vector:
        """Sums over the rows (n,) of every point (m,)."""
        if self.owner is None:
            return values
        return np.asarray(np.bincount(self.owner, values, self.points), dtype=np.float64)

    def ends(self, latent: Vector, cuts: Vector) -> Ends:
        """Upper and lower ends of the rows' intervals seen from their latent values, and their lengths."""
        padded = np.concatenate(([-np.inf], cuts, [np.inf]))
        g = self.at_rows(latent)
        upper, lower = padded[1:], padded[:-1]
        return upper[self.codes] - g, lower[self.codes] - g, (upper - lower)[self.codes]

    def loss(self, latent: Vector, cuts: Vector) -> float:
        """The sum of the weighted losses."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.total(self.link.value(*self.ends(latent, cuts)))

    def total(self, losses: Vector) -> float:
        """The weighted sum of the losses of the rows (n,), infinite where it is not a number."""
        value = float(self.weight @ losses)
        return value if np.isfinite(value) else np.inf

    def expand(self, latent: Vector, cuts: Vector, fixed_cuts: bool = False) -> QuadraticLoss:
        """The losses to second order; with ``fixed_cuts`` in the latent values alone."""
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = self.link.slopes(*self.ends(latent, cuts))
            return QuadraticLoss.in_latent(self, slopes) if fixed_cuts else QuadraticLoss.of(self, slopes)


@dataclass(frozen=True, eq=False)
class OrdinalProblem(OrdinalLosses):
    """The problem over m points and n rows; every class has a row.

    Parameters
    ----------
    codes, weight, link, owner
        As for :class:`OrdinalLosses`.
    gram : GramMatrix
        K, symmetric, (m, m).
    convex : bool, default=True
        Whether K is positive semi-definite; if not, a stationary point is looked for.
    centred : bool, default=False
        Take K with the mean of the points as the origin of feature space. That moves latent values and cut-points by
        the same number, and is needed where K is positive semi-definite only on weights that sum to zero, as those of
        an optimal answer do.
    """

    gram: GramMatrix = field(kw_only=True)
    convex: bool = field(default=True, kw_only=True)
    centred: bool = field(default=False, kw_only=True)

    @property
    def points(self) -> int:
        """The number m of points."""
        return self.gram.shape[0]

    def shares_as_cuts(self) -> Vector:
        """The best cut-points for latent values of zero: those that give every class its share of the weight."""
        mass = np.bincount(self.codes, self.weight, self.classes)
        below = np.cumsum(mass)
        cuts = self.link.quantile(below[:-1] / below[-1])
        if np.isfinite(cuts).all() and (np.diff(cuts) > 0).all():
            return np.asarray(cuts)
        # A share that rounds to 0 or 1, or to that of a neighbour.
        return np.linspace(-1.0, 1.0, self.classes - 1) if self.classes > 2 else np.zeros(1)


@dataclass(frozen=True, eq=False)
class QuadraticLoss:
    """The sum of the losses to second order, in the latent values at the points and in the cut-points.

    ``loss`` is the sum itself and ``slopes`` what the rows add. ``by_row`` (n,) is the slope by the latent value of
    each row, ``slope`` (m,) and ``curvature`` (m,) are sums over the rows of a point, ``cut_slope`` is of shape
    (k - 1,), ``cut_curvature`` of (k - 1, k - 1), tridiagonal, and ``cross`` of (m, k - 1); without the cut-points
    these are of length 0.
    """

    loss: float
    slopes: Slopes
    by_row: Vector
    slope: Vector
    curvature: Vector
    cut_slope: Vector
    cut_curvature: Vector
    cross: Vector

    @classmethod
    def of(cls, problem: OrdinalLosses, slopes: Slopes) -> QuadraticLoss:
        """From the losses of the rows."""
        w, codes, k = problem.weight, problem.codes, problem.classes
        by_row = w * slopes.latent
        upper, lower = w * slopes.cross_upper, w * slopes.cross_lower
        mixed = w * slopes.mixed

        def ends(at_upper: Vector, at_lower: Vector) -> Vector:
            """Sums by cut-point: over the class below it, and over the class above."""
            below, above = np.bincount(codes, at_upper, k), np.bincount(codes, at_lower, k)
            return np.asarray(below[:-1] + above[1:], dtype=np.float64)

        curvature = np.diag(ends(-upper - mixed, -lower - mixed))
        beside = np.bincount(codes, mixed, k)[1:-1]
        inner = np.arange(k - 2)
        curvature[inner, inner + 1] = curvature[inner + 1, inner] = beside
        return cls(
            problem.total(slopes.value),
            slopes,
            by_row,
            problem.at_points(by_row),
            problem.at_points(w * slopes.curvature),
            ends(w * slopes.upper, w * slopes.lower),
            curvature,
            cross_at_points(problem, upper, lower),
        )

    @classmethod
    def in_latent(cls, problem: OrdinalLosses, slopes: Slopes) -> QuadraticLoss:
        """The same for cut-points that do not move."""
        by_row = problem.weight * slopes.latent
        nothing = np.zeros(0)
        return cls(
            problem.total(slopes.value),
            slopes,
            by_row,
            problem.at_points(by_row),
            problem.at_points(problem.weight * slopes.curvature),
            nothing,
            np.zeros((0, 0)),
            np.zeros((problem.points, 0)),
        )

    def cut_step(self) -> Vector:
        """Newton's step in the cut-points alone."""
        return solve_small(self.cut_curvature, -self.cut_slope)


def solve_small(A: Vector, b: Vector) -> Vector:
    """``A x = b``; of smallest norm where A has lost directions to underflow, as it has for cut-points far away.

    Examples
    --------
    >>> solve_small(np.diag([2.0, 0.0]), np.array([1.0, 0.0])).tolist()
    [0.5, 0.0]
    """
    try:
        return np.asarray(np.linalg.solve(A, b), dtype=np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A, b)[0], dtype=np.float64)


def cross_at_points(problem: OrdinalLosses, upper: Vector, lower: Vector) -> Vector:
    """Values of the rows at their upper and lower cut-points, summed over points: (m, k - 1)."""
    k, m = problem.classes, problem.points
    owner = np.arange(m) if problem.owner is None else problem.owner
    # With columns for the two infinite ends, which are cut off.
    place = owner * (k + 1) + problem.codes
    both = np.concatenate([place, place + 1])
    table = np.asarray(np.bincount(both, np.concatenate([lower, upper]), m * (k + 1)), dtype=np.float64)
    return table.reshape(m, k + 1)[:, 1:-1]


def widest_step(cuts: Vector, direction: Vector, share: float = 0.95) -> float:
    """The largest step, at most 1, that leaves every gap between cut-points a part of its length.

    Examples
    --------
    >>> widest_step(np.array([0.0, 1.0]), np.array([0.0, -1.9])), widest_step(np.array([0.0, 1.0]), np.ones(2))
    (0.5, 1.0)
    """
    shrink = -np.diff(direction)
    gaps = np.diff(cuts)
    closing = shrink > share * gaps
    return float(min(1.0, (share * gaps[closing] / shrink[closing]).min(initial=1.0)))


def best_cuts(problem: OrdinalProblem, latent: Vector, cuts: Vector, steps: int = 50) -> tuple[Vector, QuadraticLoss]:
    """The best cut-points for given latent values, to rounding, by Newton's method; and the expansion there."""
    expansion = problem.expand(latent, cuts)
    for _ in range(steps):
        direction, loss = expansion.cut_step(), expansion.loss
        found = _move(problem, latent, cuts, direction, expansion)
        if found is None:
            break
        step, expansion = found
        cuts = cuts + step * direction
        if loss - expansion.loss <= _slack(loss) and step == 1.0:
            break
    return cuts, expansion


def _move(
    problem: OrdinalProblem, latent: Vector, cuts: Vector, direction: Vector, expansion: QuadraticLoss
) -> tuple[float, QuadraticLoss] | None:
    """The longest step that lowers the loss, by halving, and the expansion there; None if there is none."""
    slope = float(expansion.cut_slope @ direction)

    def attempt(step: float) -> tuple[float, QuadraticLoss] | None:
        trial = problem.expand(latent, cuts + step * direction)
        is_good = trial.loss <= expansion.loss + 1e-4 * step * slope + _slack(expansion.loss)
        return (step, trial) if is_good else None

    return halved_step(attempt, widest_step(cuts, direction), 1e-10) if slope < 0.0 else None


def _slack(value: float) -> float:
    """What rounding may do to a sum of losses."""
    return 1e-15 * (1.0 + abs(value))
