"""What an online learner is to learn from, and what it has learned so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mercer._types import Integers, Vector
from mercer.data.statements import Count, Either, Flag, Floats, Number, Table, Whole
from mercer.loops import online as loops
from mercer.losses import Loss, Softmax

STRATEGIES = {"truncation": loops.OLDEST, "smallest": loops.SMALLEST, "projection": loops.PROJECTION, "merging": -1}


@dataclass(frozen=True, eq=False)
class OnlineProblem:
    r"""What a row teaches: :math:`f \leftarrow (1 - \eta \alpha) f - \eta\, \partial_f \ell(y, f(x))\, k(x, \cdot)`.

    Parameters
    ----------
    loss : Loss or Softmax
    alpha : float, default=0.0
        The regulariser.
    intercept : bool, default=True
        Whether there is an offset, which is neither shrunk nor forgotten.
    budget : int, optional
        The most support points.
    strategy : {"truncation", "smallest", "projection", "merging"}, default="truncation"
        What happens when the budget is exceeded.
    """

    loss: Loss | Softmax
    alpha: float = 0.0
    intercept: bool = True
    budget: int | None = None
    strategy: str = "truncation"

    def rule(self) -> loops.Rule:
        """What a step does, in the form that the loops take."""
        budget = -1 if self.budget is None else self.budget
        loss = self.loss.code, self.loss.parameter
        return loops.Rule(self.alpha, self.intercept, *loss, STRATEGIES[self.strategy], budget)

    @property
    def slope(self) -> float:
        """The largest derivative of the loss by one value."""
        return self.loss.steepest(np.array([-1.0, 1.0]))


@dataclass
class OnlineState:
    """What has been learned: ``f = sum_i theta_i k(x_i, .) + bias`` over the rows ``rows`` of a matrix, or ``points``.

    ``born`` (m,) is the step that last changed each term; ``lost`` (k,) bounds the length of what f would be without
    the budget less what it is; ``shrinkage`` are the factors of the last steps, no more than the budget; ``least`` is
    the least budget so far; ``truncated`` says that nothing but the oldest term has ever been dropped. ``inverse``
    (m, m) belongs to the Gram matrix of the rows, and has been changed ``stale`` times since it was computed; before
    the first projection it is empty.
    """

    theta: Vector
    bias: Vector
    lost: Vector
    born: NDArray[np.int64]
    rows: Integers
    points: Vector
    inverse: Vector
    shrinkage: Vector = field(default_factory=lambda: np.empty(0))
    steps: int = 0
    changes: int = 0
    stale: int = 0
    longest: float = 0.0
    least: int = -1
    truncated: bool = True

    @classmethod
    def empty(cls, outputs: int, columns: int = 0) -> OnlineState:
        """Of functions that are zero."""
        whole = np.empty(0, dtype=np.int64)
        return cls(
            np.zeros((outputs, 0)),
            np.zeros(outputs),
            np.zeros(outputs),
            whole,
            whole.copy(),
            np.zeros((0, columns)),
            np.zeros((0, 0)),
        )

    def truncation_bound(self, problem: OnlineProblem) -> float:
        r"""A bound of ``lost`` that is known without looking: :math:`\frac{CR}{\alpha} \prod (1 - \eta_t \alpha)`.

        The product is over the last B steps, B the budget; C is the largest slope of the loss, R the largest
        :math:`\sqrt{k(x, x)}`. What is dropped was learned at least B steps ago, and in all of the steps before those
        no more than :math:`CR \sum_i \eta_i \prod_{j > i} (1 - \eta_j \alpha)`, where
        :math:`\alpha \sum_i \eta_i \prod_{j > i} (1 - \eta_j \alpha) \le 1`. For steps of one size it is the bound of
        Kivinen, Smola and Williamson (2004), proposition 1. Infinite where it does not hold.
        """
        if self.least < 0 or self.steps <= self.least:
            return 0.0
        if not self.truncated or problem.alpha == 0.0 or not np.isfinite(problem.slope):
            return float("inf")
        decay = float(np.prod(self.shrinkage[-self.least :]))
        return problem.slope * self.longest / problem.alpha * decay


STATE_TABLE = Table(
    {
        "theta": Floats("o, s"),
        "bias": Floats("o"),
        "lost": Floats("o", least=0, finite=False),
        "born": Whole("s"),
        "inverse": Either(Floats("0, 0"), Floats("s, s")),
        "shrinkage": Floats("last"),
        "steps": Count(),
        "changes": Count(),
        "stale": Count(),
        "longest": Number(least=0),
        "least": Count(least=-1),
        "truncated": Flag(),
    }
)
"""What the state in a model file must be, whose rows are kept elsewhere."""
