r"""The weights of a sum of kernels for support vector machines, with a duality gap.

.. math:: \min_{\gamma \in \Delta} J(\gamma), \qquad
          J(\gamma) = \max_\beta\; \ell(\beta) - \tfrac12 \sum_m \gamma_m\, \beta^\top K_m \beta

where the maximum is the dual of a machine with the kernel :math:`\sum_m \gamma_m k_m`, and :math:`\Delta` the simplex
(A. Rakotomamonjy, F. Bach, S. Canu and Y. Grandvalet, "SimpleMKL", J. Mach. Learn. Res. 9, 2008). Each feasible
:math:`\beta`, also of an inexact solution, gives a plane below the convex function J. The least value of the highest
plane bounds the optimum from below, and each primal objective from above. The level method (Z. Xu, R. Jin, I. King and
M. Lyu, "An extended level method for efficient multiple kernel learning", NIPS 2008) goes to the nearest point at which
no plane is above a level between the two bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog, minimize

from mercer._types import Matrix, Vector
from mercer.engine import threads
from mercer.engine.progress import Progress
from mercer.engine.trace import record

# The level lies at this share of the way from the lower to the upper bound.
_LEVEL = 0.3
# Weights below this are zero.
_ZERO = 1e-9
# This many machines in a row that do not bring the bounds closer by this share end the search: in exact arithmetic each
# does, and next to rounding none will.
_IDLE, _CLOSER = 10, 1e-3


@dataclass(frozen=True, eq=False)
class Machine:
    """A machine solved for some weights: its primal objective, the linear part of the dual, and ``beta' K_m beta``."""

    primal: float
    linear: float
    squares: Vector


@dataclass(frozen=True, eq=False)
class KernelWeights:
    """The weights (m,), and bounds on the least value of J: ``upper`` is that of the weights."""

    weights: Vector
    lower: float
    upper: float
    iterations: int

    @property
    def relative_gap(self) -> float:
        return (self.upper - self.lower) / max(abs(self.upper), np.finfo(float).tiny)


@dataclass(frozen=True)
class LevelMethod:
    """Minimises J over the simplex.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative gap between the bounds at which it stops.
    max_iter : int, default=100
        Most machines that are solved. Ten in a row that do not bring the bounds closer also end the search.

    Examples
    --------
    >>> solve = lambda weights: Machine(1.0 - weights @ [0.2, 0.8], 1.0, np.array([0.4, 1.6]))
    >>> LevelMethod().minimise(solve, 2).weights.round(2).tolist()
    [0.0, 1.0]
    """

    tol: float = 1e-3
    max_iter: int = 100

    def minimise(self, solve: Callable[[Vector], Machine], count: int) -> KernelWeights:
        """Minimise over ``count`` weights; ``solve`` solves the machine for some weights."""
        weights = np.full(count, 1.0 / count)
        best, upper, lower = weights, np.inf, -np.inf
        linear: list[float] = []
        slopes: list[Vector] = []
        progress = Progress(None, "weights of kernels")
        idle, least = 0, np.inf
        while len(linear) < self.max_iter and idle < _IDLE:
            threads.checkpoint()
            machine = solve(weights)
            linear.append(machine.linear)
            slopes.append(-0.5 * machine.squares)
            if machine.primal < upper:
                best, upper = weights, machine.primal
            floor, corner = _least_of_planes(np.array(linear), np.array(slopes))
            lower = max(lower, floor)
            record("weights of kernels", len(linear), {"primal": upper, "dual": lower})
            progress.advance(note=f"machines, gap {upper - lower:.3g}")
            if upper - lower <= self.tol * abs(upper):
                break
            idle = 0 if upper - lower < (1.0 - _CLOSER) * least else idle + 1
            least = min(least, upper - lower)
            level = lower + _LEVEL * (upper - lower)
            weights = _below_level(np.array(linear), np.array(slopes), level, best, corner)
        return KernelWeights(np.where(best < _ZERO, 0.0, best), lower, upper, len(linear))


def _least_of_planes(linear: Vector, slopes: Matrix) -> tuple[float, Vector]:
    """The least value of ``max_k linear_k + slopes_k' w`` over the simplex, and where it is."""
    planes, count = slopes.shape
    # One scale for all, since the solver has absolute tolerances.
    scale = max(float(np.abs(linear).max()), float(np.abs(slopes).max()), np.finfo(float).tiny)
    solution = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=np.column_stack([slopes / scale, -np.ones(planes)]),
        b_ub=-linear / scale,
        A_eq=np.append(np.ones(count), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, 1.0)] * count + [(None, None)],
        method="highs",
    )
    if solution.x is None:
        return -np.inf, np.full(count, 1.0 / count)
    corner = np.clip(solution.x[:count], 0.0, None)
    # By the multipliers, which sum to one: a bound that holds whatever the tolerance of the solver is.
    multipliers = np.clip(-np.asarray(solution.ineqlin.marginals), 0.0, None)
    multipliers /= max(float(multipliers.sum()), np.finfo(float).tiny)
    bound = float(multipliers @ linear + (multipliers @ slopes).min())
    return bound, np.asarray(corner / corner.sum())


def _below_level(linear: Vector, slopes: Matrix, level: float, center: Vector, inside: Vector) -> Vector:
    """The point of the simplex nearest to ``center`` where no plane is above the level; ``inside`` is such a point."""
    scale = max(float(np.abs(slopes).max()), np.finfo(float).tiny)
    solution = minimize(
        lambda w: (0.5 * float((w - center) @ (w - center)), w - center),
        inside,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(center),
        constraints=[
            {"type": "eq", "fun": lambda w: float(w.sum()) - 1.0, "jac": lambda w: np.ones_like(w)},
            {"type": "ineq", "fun": lambda w: (level - linear - slopes @ w) / scale, "jac": lambda w: -slopes / scale},
        ],
        options={"ftol": 1e-12, "maxiter": 200},
    )
    weights = np.clip(np.nan_to_num(solution.x), 0.0, None)
    total = float(weights.sum())
    # Any point of the simplex will do: the bounds hold wherever planes come from.
    return np.asarray(weights / total) if total > 0 else inside
