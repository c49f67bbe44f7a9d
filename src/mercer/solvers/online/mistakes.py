"""Novikoff's bound on the mistakes of a perceptron, from the margin that it has reached."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._types import Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Number
from mercer.solvers.online.problem import PerceptronProblem, PerceptronState

# This many units in the last place of the longest row, for each update, are rounding of f.
_ROUNDING = 16.0


@dataclass(frozen=True)
class MistakeBound:
    r"""What is known of a perceptron that began with w = 0.

    If a function of length 1 has :math:`y_i f(x_i) \ge \gamma > 0` at all rows, and no :math:`\phi(x_i)` is longer than
    R, there are at most :math:`(R^2 + 2 m) / \gamma^2` updates, where m is the margin below which a row is learned from
    (Novikoff's theorem for m = 0). The function that was learned is such a function if it separates the rows.

    Parameters
    ----------
    margin : float
        The least :math:`y_i f(x_i) / \|w\|` over the training rows, less the rounding of f; for several classes over
        all functions. At most 0 if a row is on the wrong side, or no further inside than rounding.
    radius : float
        R, the largest :math:`\sqrt{k(x, x) + c}`.
    mistakes : int
        Updates over all passes, and functions.
    bound : float
        No perceptron makes more of them on these rows, in any order and over any number of passes; the sum over the
        functions for several classes, and infinite if not all of them separate the rows.

    Examples
    --------
    >>> bound = MistakeBound(0.5, 1.0, 3, 4.0)
    >>> bound.separated
    True
    >>> print(bound.explain())
    Separated: every training row is at least 0.5 inside its side, where the longest row has the length 1.
    3 updates; Novikoff's bound for this margin is 4, in any order and over any number of passes.
    """

    margin: float
    radius: float
    mistakes: int
    bound: float
    _fitted: ClassVar[Fitted] = Fitted({"radius": Number(least=0), "mistakes": Count()})

    @property
    def separated(self) -> bool:
        """Whether every training row is on its side."""
        return self.margin > 0

    def explain(self) -> str:
        """What the figures mean."""
        if not self.separated:
            return (
                f"Not separated: some training row is up to {-self.margin:.3g} on the wrong side; the longest row "
                f"has the length {self.radius:.3g}.\n{self.mistakes} updates; without a margin nothing bounds them. "
                "More passes (max_iter) may end with one, if the kernel separates the classes at all."
            )
        return (
            f"Separated: every training row is at least {self.margin:.3g} inside its side, where the longest row has "
            f"the length {self.radius:.3g}.\n{self.mistakes} updates; Novikoff's bound for this margin is "
            f"{self.bound:.6g}, in any order and over any number of passes."
        )

    def as_dict(self) -> dict[str, Any]:
        """Every figure, JSON-ready."""
        return {**asdict(self), "separated": self.separated}


def bound_mistakes(
    problem: PerceptronProblem, expansion: PerceptronState, values: Vector, mistakes: int
) -> MistakeBound | None:
    """The bound from the last functions, with their values at all rows, (k, n); None if a length is not positive.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> x = np.array([1.0, 2.0, -1.0])
    >>> problem = PerceptronProblem(PrecomputedGram(np.outer(x, x)), np.array([1, 1, 0]), np.array([1]))
    >>> expansion = PerceptronState(np.array([[1.0, 0.0, 0.0]]), np.zeros((1, 3)))
    >>> bound = bound_mistakes(problem, expansion, np.array([[1.0, 2.0, -1.0]]), 1)
    >>> round(bound.margin, 9), bound.radius, round(bound.bound, 9)
    (1.0, 2.0, 4.0)
    """
    squares = np.einsum("kp,kp->k", expansion.theta, values)
    longest = float(np.asarray(problem.gram.diagonal(), dtype=np.float64).max()) + problem.constant
    if not (squares > 0).all() or longest < 0:
        return None
    signs = np.where(problem.codes == problem.positive[:, None], 1.0, -1.0)
    rounding = _ROUNDING * float(np.finfo(problem.gram.dtype).eps) * longest * mistakes
    margins = ((signs * values[:, : len(problem.codes)]).min(axis=1) - rounding) / np.sqrt(squares)
    bound = math.inf
    if (margins > 0).all():
        bound = float(((longest + 2.0 * problem.margin) / margins**2).sum())
    return MistakeBound(float(margins.min()), math.sqrt(longest), mistakes, bound)
