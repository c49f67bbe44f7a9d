"""The stopping rule of compiled loops over pairs of classes, and the conversion of their figures to certificates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._types import Vector
from mercer.engine import memory
from mercer.solvers.solution import LARGE_GAP, Certificate, Status
from mercer.solvers.svm.pair_answers import STATUSES, PairAnswers

# Where the figures of :func:`mercer.loops.pairs.assess` have the violations.
_VIOLATIONS = {"stationarity": 2, "complementary slackness": 4, "box": 5, "sum": 6}


@dataclass(frozen=True)
class StepRule:
    """When a pair counts as solved: ``tol`` and ``stop`` as for ``SMO``, and at most ``limit`` steps.

    With ``nu`` it is the nu-SVM, with bounds for the weights of the rows; else the C-SVC.
    """

    tol: float
    stop: str
    limit: int
    intercept: bool
    convex: bool
    nu: float | None = None

    def accepts(self, figures: Vector) -> NDArray[np.bool_]:
        """Return which answers with these ``figures`` (..., FIGURES) meet the tolerance."""
        primal, dual = figures[..., 0], figures[..., 1]
        small = primal - dual <= self.tol * np.maximum(np.abs(primal), np.abs(dual)) if self.stop == "gap" else True
        return np.asarray((figures[..., 2] <= self.tol) & small)

    def has_slack(self, figures: Vector) -> NDArray[np.bool_]:
        """Return which answers have a large gap, as slacks of rounding give one where C is large."""
        primal, dual = figures[..., 0], figures[..., 1]
        large = primal - dual > LARGE_GAP * np.maximum(np.abs(primal), np.abs(dual))
        return np.asarray(large & (self.nu is None and self.convex))

    def keep(
        self,
        answers: PairAnswers,
        numbers: NDArray[np.intp],
        offsets: Vector,
        figures: Vector,
        seconds: float,
        peak_bytes: int | NDArray[np.intp],
    ) -> None:
        """Store the offsets and certificates of solved pairs."""
        table = answers.certificates
        answers.offsets[numbers] = offsets
        table.primal[numbers], table.dual[numbers], table.kkt_violation[numbers] = figures[:, :3].T
        table.iterations[numbers], table.seconds[numbers] = figures[:, 3], seconds
        table.peak_bytes[numbers] = peak_bytes
        table.status[numbers] = STATUSES.index(self._status)
        table.convex[numbers] = self.convex
        for name, column in _VIOLATIONS.items():
            table.column(name)[numbers] = figures[:, column]
        table.stored("kernel rows kept for one pair of classes at a time")[numbers] = True

    def certificate(self, figures: Vector, seconds: float, peak_bytes: int) -> Certificate:
        """Return the certificate of one solved pair, with ``figures`` (FIGURES,)."""
        primal, dual, violation, steps = figures[:4].tolist()
        violations = {name: float(figures[column]) for name, column in _VIOLATIONS.items()}
        return Certificate(
            primal,
            dual,
            violation,
            int(steps),
            seconds,
            peak_bytes,
            self._status,
            violations,
            self.convex,
            f"kernel rows kept, {memory.describe(peak_bytes)}",
        )

    @property
    def _status(self) -> Status:
        return Status.converged if self.convex else Status.stationary
