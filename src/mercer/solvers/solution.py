"""What every solver returns: a value, how it ended, the certificate, and a state to start the next solve from."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from mercer.data.fitted import Fitted
from mercer.data.markup import notebook_table
from mercer.data.statements import Count, Number

Value = TypeVar("Value")
State = TypeVar("State")


class Status(Enum):
    """How a solve ended. The values are the help texts."""

    converged = "The stopping rule was met: the solution has the requested tolerance."
    direct = "The solution comes from a factorisation; only rounding limits its accuracy."
    jittered = (
        "The solution comes from a factorisation, for which the diagonal of the covariance matrix had to be raised by "
        "jitter: rows are nearly equal for the kernel. Raise alpha, or pass noise, to model how much they differ."
    )
    least_squares = (
        "The system is singular; this is its least-squares solution of smallest norm. Raise alpha "
        "for a unique solution."
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
    given = "The coefficients were given, and no problem was solved: only the gap measures their accuracy."
    probable = (
        "The dual objective was estimated from a sample of the rows: the gap is the upper end of a confidence "
        "interval, and no proof."
    )
    interrupted = (
        "Ctrl-C ended the solve before the stopping rule was met: this is the best function so far. Fit again for "
        "a better one."
    )


# What the optimality conditions are, in words, by the names that solvers give to their violations.
_CONDITIONS = {
    "stationarity": "the largest distance of a decision value from the value that its weight implies",
    "complementary slackness": "the largest contribution of one row to the gap: its weight does not match its error",
    "box": "how far a weight is outside its bounds",
    "sum": "how far the weights are from the sums that they must have",
    "cut-points": "how far a cut-point is from the best one for the latent values",
    "error": "the square root of twice the gap by the length of w: the relative error of w is not larger",
    "mode": "how far the weight of some row is from the slope of its log likelihood",
    "sites": "the largest change of a site that another sweep would make, in units of the posterior",
    "residual": "the residual of the linear system, relative to the length of the targets",
    "gradient": "the length of the gradient in the space of the kernel, relative to that at the start",
    "slope": "the largest derivative of the objective by a hyper-parameter that is not at its bound",
    "jitter": "the jitter on the diagonal of the covariance matrix, in its units",
    "distance": "a bound of the distance in feature space of w from the best one",
    "norm": "the contribution of the norm to the gap",
    "margin": "by how much some row is inside a margin that must be empty",
    "eigenpair": "the longest Kv - lambda v of a pair, in units of the largest eigenvalue",
    "rounding": "how far rounding of kernel values may move an eigenvalue, in units of the largest",
    "assignment": "by how much, squared, some row is nearer to another mean than to its own, in units of k(x, x)",
    "orthogonality": "the largest inner product of two eigenvectors, or difference of a length from 1",
}
# A relative gap above this is reported as large; above the second one, it is as large as the objective itself.
LARGE_GAP = 0.01
_AS_LARGE = 0.5
# Differences of this share of the objective are rounding.
_ROUNDING = 1e-13


class _StatusByName:
    """Pickles and copies hold the name of ``status``: skops cannot load an ``Enum``."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "status": self.__dict__["status"].name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, status=Status[state["status"]])


@dataclass(frozen=True)
class Certificate(_StatusByName):
    """How good an answer is.

    ``primal`` and ``dual`` are the values of the two objectives at the answer; for a convex problem the best
    value lies between them, so ``gap = primal - dual`` bounds what could still be gained.

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
    convex : bool, default=True
        Whether the problem is convex. With an indefinite kernel it is not, and ``dual`` bounds nothing.
    storage : str, default=""
        Where the kernel matrix was, as "held whole in float32, 381.5 MiB of 4.0 GiB"; empty where nothing was chosen.

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
    convex: bool = True
    storage: str = ""
    _fitted: ClassVar[Fitted] = Fitted({"iterations": Count(), "seconds": Number(least=0), "peak_bytes": Count()})

    @property
    def gap(self) -> float:
        """``primal - dual``, never below zero except by rounding."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """The gap relative to the larger of the two objective values in size; 0 where both are 0.

        Where the optimum is about 0 it means little: the two values may then be tiny and their quotient still about 1.
        There the gap itself counts.

        >>> Certificate(1e-12, -1e-12, 0.0, 10, 0.1, 800, Status.converged).relative_gap
        2.0
        """
        size = max(abs(self.primal), abs(self.dual))
        if not math.isfinite(size):
            return self.gap
        return self.gap / size if size > 0 else 0.0

    def explain(self) -> str:
        """What the certificate means, and what to change where it is not what was hoped for.

        >>> print(Certificate(2.0, 1.998, 1e-4, 10, 0.1, 800, Status.converged, {"sum": 0.0}).explain())
        converged: The stopping rule was met: the solution has the requested tolerance.
        Objective 2, and no solution has less than 1.998: at most 0.002 can still be gained (0.1 % of the objective).
        Worst violation of the optimality conditions: 0.0001.
          sum: 0, how far the weights are from the sums that they must have.
        Cost: 10 iterations, 0.1 s, 0.0 MiB at most.
        To do: nothing. For a smaller gap, choose a smaller tol, or stop="gap" if the learner has it.
        """
        happened = self.status.value.split(". ")[0].rstrip(".")
        lines = [f"{self.status.name}: {happened}.", *self._bound()]
        lines.append(f"Worst violation of the optimality conditions: {self.kkt_violation:.3g}.")
        for name, value in self.violations.items():
            meaning = _CONDITIONS.get(name)
            lines.append(f"  {name}: {value:.3g}" + (f", {meaning}." if meaning else "."))
        if self.storage:
            lines.append(f"Kernel matrix: {self.storage}.")
        memory = f"{self.peak_bytes / 2**20:.1f} MiB at most"
        lines.append(f"Cost: {self.iterations} iterations, {self.seconds:.3g} s, {memory}.")
        lines.append(f"To do: {self._advice()}")
        return "\n".join(lines)

    def _bound(self) -> list[str]:
        """What is known of the best value."""
        if self._unbounded:
            return [
                f"Objective {self.primal:.6g}. The kernel is indefinite, so the difference to the dual value "
                f"{self.dual:.6g} bounds nothing: another stationary point may be better by any amount."
            ]
        if not (math.isfinite(self.primal) and math.isfinite(self.dual)):
            below = f"no solution has less than {self.dual:.6g}" if math.isfinite(self.dual) else "nothing bounds it"
            return [f"Objective {self.primal:.6g}, and {below}: how much can still be gained is not known."]
        gap = max(self.gap, 0.0)
        text = f"Objective {self.primal:.6g}, and no solution has less than {self.dual:.6g}: "
        if self._is_exact():
            return [text + "nothing can be gained beyond rounding."]
        text += f"at most {gap:.3g} can still be gained"
        if self._as_large():
            return [
                text + ".",
                "The gap is as large as the objective itself: the solution may be far from optimal. If the optimal "
                f"value is 0 or close to it, only the gap of {gap:.3g} itself matters.",
            ]
        return [f"{text} ({100.0 * self.relative_gap:.2g} % of the objective)."]

    @property
    def _unbounded(self) -> bool:
        return not self.convex or self.status is Status.stationary

    def _is_exact(self) -> bool:
        """Whether rounding alone makes the gap."""
        return self.gap <= _ROUNDING * max(abs(self.primal), abs(self.dual))

    def _as_large(self) -> bool:
        """Whether 0 lies between the bounds, or next to them as seen from their distance."""
        return self.relative_gap > _AS_LARGE

    def _advice(self) -> str:
        if self._unbounded and self.status not in (Status.iteration_limit, Status.stalled):
            return (
                "for a solution with a guarantee, use a positive semi-definite kernel. With this one, compare several "
                "by validation; other starts or tolerances may end elsewhere."
            )
        if self.status is Status.iteration_limit:
            return "raise max_iter; or make the problem easier: a larger tol, a smaller C, columns of X of one scale."
        if self.status is Status.stalled:
            return "pass X as float64 and scale its columns; a larger tol or a smaller C asks for less." + (
                ""
                if self._unbounded
                else " The bounds hold nevertheless: if the gap is small enough, the solution is good enough."
            )
        if self.status is Status.interrupted:
            return "nothing if the gap is small enough, which is true for this function; otherwise fit again."
        if self.status is Status.least_squares:
            return "raise alpha, so that the solution is unique; or leave out rows that repeat others."
        if self.status is Status.jittered:
            return "raise alpha, or pass noise=..., so that the covariance matrix needs no jitter; or leave out rows."
        if self.status is Status.given:
            return "nothing, if the gap is small enough. Otherwise fit the learner, or improve them at their source."
        if self.status is Status.direct or not math.isfinite(self.dual) or self._is_exact():
            return "nothing."
        if self._as_large():
            return (
                f"nothing if a gap of {self.gap:.3g} is small compared with the objectives of interest. Otherwise the "
                'solution is inaccurate although tol was met: choose stop="gap" if the learner has it, a smaller tol, '
                "or a smaller C."
            )
        if self.relative_gap > LARGE_GAP:
            return 'the gap is large although tol was met; choose stop="gap" if the learner has it, or a smaller tol.'
        return 'nothing. For a smaller gap, choose a smaller tol, or stop="gap" if the learner has it.'

    def _repr_html_(self) -> str:
        figures = [
            ("status", f"{self.status.name}: {self.status.value}"),
            ("objective", self.primal),
            ("no solution has less than", self.dual if not self._unbounded else "not known: the kernel is indefinite"),
            ("violation of optimality", self.kkt_violation),
            ("iterations", self.iterations),
            ("seconds", self.seconds),
            ("to do", self._advice()),
        ]
        return notebook_table("Certificate", (), figures)

    def as_dict(self) -> dict[str, Any]:
        """Every figure, JSON-ready; the status by its name."""
        return {**asdict(self), "status": self.status.name, "gap": self.gap, "relative_gap": self.relative_gap}


@dataclass(frozen=True)
class Solution(_StatusByName, Generic[Value, State]):
    """What a solver returns; ``state`` warm-starts the next solve of a neighbouring problem."""

    value: Value
    status: Status
    certificate: Certificate
    state: State
