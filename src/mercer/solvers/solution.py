"""What every solver returns: a value, how it ended, the certificate, and a state to start the next solve from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
State = TypeVar("State")


class Status(Enum):
    """How a solve ended. The values are the help texts."""

    converged = "The stopping rule was met: the answer is as good as was asked for."
    direct = "The answer comes from a factorisation; its quality is limited by rounding alone."
    least_squares = (
        "The system is singular, so the answer is its least-squares solution of smallest norm. "
        "Raise alpha for a unique one."
    )
    iteration_limit = (
        "max_iter was reached before the stopping rule was met. Raise max_iter, loosen tol, "
        "lower C, or scale the columns of X (see sklearn.preprocessing.StandardScaler)."
    )
    stationary = (
        "The kernel is indefinite, so the problem is not convex: this is a stationary point, "
        "and no bound on its distance from the best value exists."
    )
    stalled = (
        "Rounding stopped the progress before the stopping rule was met: no step improves the objective. "
        "Pass X as float64, loosen tol, lower C, or scale the columns of X."
    )


@dataclass(frozen=True)
class Certificate:
    """How good an answer is.

    ``primal`` and ``dual`` are the values of the two objectives at the answer; for a convex problem the best
    value lies between them, so ``gap = primal - dual`` bounds what could still be won.

    Parameters
    ----------
    primal, dual : float
        Objective values, in float64.
    kkt_violation : float
        The worst violation of an optimality condition (the residual of the linear system for direct solvers).
    iterations : int
        Steps of the innermost loop; 0 for a direct solver.
    seconds : float
        Wall-clock time of the solve.
    peak_bytes : int
        The most memory that the solver held at once in its own arrays, in bytes.
    status : Status
        How the solve ended; ``status.value`` says it in words.
    violations : dict of str to float
        The worst violation of each optimality condition, by name, where the solver tells them apart.

    Examples
    --------
    >>> c = Certificate(1.5, 1.0, 1e-4, 10, 0.1, 800, Status.converged)
    >>> c.gap, c.relative_gap
    (0.5, 0.3333333333333333)
    """

    primal: float
    dual: float
    kkt_violation: float
    iterations: int
    seconds: float
    peak_bytes: int
    status: Status
    violations: dict[str, float] = field(default_factory=dict)

    @property
    def gap(self) -> float:
        """``primal - dual``, never below zero except by rounding."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap relative to the larger objective value (1.0 at the least in the denominator's place of 0)."""
        size = max(abs(self.primal), abs(self.dual))
        return self.gap / size if size > 0 else 0.0

    def explain(self) -> str:
        """The certificate in words."""
        return (
            f"{self.status.value} Objective {self.primal:.6g}, bounded below by {self.dual:.6g}: "
            f"at most {self.gap:.3g} ({self.relative_gap:.2e} of its size) could still be won. "
            f"Worst violation of an optimality condition: {self.kkt_violation:.3g}. "
            f"{self.iterations} iterations, {self.seconds:.3g} s, {self.peak_bytes / 2**20:.1f} MiB at most."
        )

    def as_dict(self) -> dict[str, Any]:
        """Every figure, JSON-ready; the status by its name."""
        return {
            **asdict(self), "status": self.status.name, "gap": self.gap, "relative_gap": self.relative_gap
        }


@dataclass(frozen=True)
class Solution(Generic[Value, State]):
    """What a solver returns; ``state`` warm-starts the next solve of a neighbouring problem."""

    value: Value
    status: Status
    certificate: Certificate
    state: State
