"""The result of comparing a fit over landmarks with the problem of all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._types import Matrix, Vector
from mercer.certification.rows_of_fit import RowsOfFit


@dataclass(frozen=True, eq=False)
class Finding:
    """The result for one problem.

    Parameters
    ----------
    primal : float
        The objective of the function.
    gaps : tuple of two floats
        An interval of its gap.
    distance : float
        A bound of the distance in the space of the kernel, the largest one of several functions.
    bound : callable
        From new rows to bounds of the predictions.
    evaluated, rows : int
        Of how many rows the kernel values with all others were evaluated, and how many there are.
    rows_error : float
        A bound of the root mean square error at the rows.
    each : str
        For several problems: what their rows are counted for, such as ``"pair of classes"``.
    """

    primal: float
    gaps: tuple[float, float]
    distance: float
    bound: Callable[[Any], Matrix]
    evaluated: int
    rows: int
    rows_error: float = np.inf
    each: str = ""

    @property
    def is_proven(self) -> bool:
        """Whether all pairs of rows were evaluated."""
        return self.evaluated >= self.rows

    @property
    def storage(self) -> str:
        """What the certificate says of the kernel matrix."""
        n = self.rows
        if self.is_proven:
            part = f"all pairs of the rows of each {self.each}" if self.each else f"all pairs of {n:,} rows"
        else:
            part = f"the pairs of {self.evaluated:,} of {n:,} rows"
            part += f", counted for each {self.each}" if self.each else ""
        return f"evaluated for {part}, and not stored"


@dataclass(frozen=True, eq=False)
class BallBound:
    """From new rows to bounds of decision values or predictions, (m,) or (m, k).

    Parameters
    ----------
    rows : RowsOfFit
    ball : float
        How far the exact functions may be, in the space of the kernel.
    interval : callable, optional
        From what the functions may be off at the rows of the fit, (n,), to an interval of the best change of the
        offset; None without an offset.
    """

    rows: RowsOfFit
    ball: float
    interval: Callable[[Vector], tuple[float, float]] | None

    def __call__(self, X: Any) -> Matrix:
        out = self._reach(self.rows.lengths_of(self.rows.new_rows(X)))
        if self.interval is not None:
            low, high = self.interval(self._reach(self.rows.lengths)[:, 0])
            out += max(-low, high, 0.0) if math.isfinite(low) and math.isfinite(high) else math.inf
        return out[:, 0] if out.shape[1] == 1 else out

    def _reach(self, lengths: Vector) -> Matrix:
        """Rounding, and the ball, at rows of these lengths."""
        return self.rows.rounding(lengths) + self.ball * lengths[:, None]


def joined(parts: Sequence[Finding], each: str) -> Finding:
    """Several problems as one: sums of objectives, and a column of bounds for each."""
    if len(parts) == 1:
        return parts[0]

    def bound(X: Any) -> Matrix:
        return np.column_stack([part.bound(X) for part in parts])

    low, high = (float(sum(part.gaps[end] for part in parts)) for end in (0, 1))
    return Finding(
        sum(part.primal for part in parts),
        (low, high),
        max(part.distance for part in parts),
        bound,
        sum(part.evaluated for part in parts),
        sum(part.rows for part in parts),
        each=each,
    )
