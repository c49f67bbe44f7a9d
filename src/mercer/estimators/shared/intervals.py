"""Prediction intervals: what learners return, and the jackknife+ over strips of new rows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import MercerWarning, ParameterError, warn_user
from mercer._types import Matrix, Vector
from mercer.data.objects import short
from mercer.engine import memory, threads
from mercer.engine.tiles import spans
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.solvers.conformal import jackknife_plus, least_rows
from mercer.solvers.linear.left_out_moves import Moves, left_out_moves
from mercer.solvers.linear.linear_system import LinearSystem

# New rows that are worked on at once, and arrays of these by the training rows.
_ROWS = 256
_FEWEST = 8
_ARRAYS = 6

JACKKNIFE = "jackknife+ by exact leave-one-out"

_LEAST = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """Intervals that are to contain the targets of new rows.

    Parameters
    ----------
    lower, upper : ndarray of shape (m,) or (m, n_targets)
        The ends, in the units of y. Infinite if there are too few rows for the coverage.
    coverage : float
        The share of new targets that the intervals are meant to contain.
    method : str
        How they were computed.
    guaranteed : float
        Whatever the distribution of the rows, an interval contains the target of a new row with this probability at
        least, if all rows are exchangeable; 0 if nothing is guaranteed.
    """

    lower: Matrix
    upper: Matrix
    coverage: float
    method: str
    guaranteed: float

    def __repr__(self) -> str:
        return f"<intervals of {len(self.lower)} rows: {self.explain()}>"

    def explain(self) -> str:
        """The requested coverage, how the intervals were computed, and what is guaranteed, in one sentence.

        >>> ends = np.zeros(2), np.ones(2)
        >>> Intervals(*ends, 0.9, "jackknife+", 0.8).explain()
        'coverage 90 % by jackknife+, of which 80 % is guaranteed for exchangeable rows'
        >>> Intervals(*ends, 0.9, "quantiles of errors", 0.0).explain()
        'coverage 90 % by quantiles of errors, without a guarantee'
        """
        return _explained(self)


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets:
    """Sets of classes that are to contain those of new rows.

    Parameters
    ----------
    members : ndarray of bool of shape (m, k)
        Whether a class is in the set of a row.
    classes : ndarray of shape (k,)
        The classes.
    coverage : float
        The share of new rows whose class the sets are meant to contain.
    method : str
        How they were computed.
    guaranteed : float
        As for :class:`Intervals`.
    """

    members: NDArray[np.bool_]
    classes: np.ndarray
    coverage: float
    method: str
    guaranteed: float

    def __repr__(self) -> str:
        return f"<prediction sets of {len(self.members)} rows: {self.explain()}>"

    def labels(self) -> list[list[Any]]:
        """The classes in each set.

        >>> PredictionSets(np.array([[True, False], [True, True]]), np.array(["a", "b"]), 0.9, "CV+", 0.8).labels()
        [['a'], ['a', 'b']]
        """
        return [self.classes[row].tolist() for row in self.members]

    def explain(self) -> str:
        """The requested coverage, how the sets were computed, and what is guaranteed, in one sentence."""
        return _explained(self)


def _explained(prediction: Intervals | PredictionSets) -> str:
    certain = f"of which {100 * prediction.guaranteed:.3g} % is guaranteed for exchangeable rows"
    sure = prediction.guaranteed >= prediction.coverage
    ending = "guaranteed for exchangeable rows" if sure else certain if prediction.guaranteed else "without a guarantee"
    return f"coverage {100 * prediction.coverage:g} % by {prediction.method}, {ending}"


def check_coverage(coverage: Any) -> float:
    """Return the coverage.

    Raises
    ------
    ParameterError
        If it is not a number between 0 and 1.
    """
    number = isinstance(coverage, (int, float, np.number)) and not isinstance(coverage, bool)
    # A share that rounds to none or all has no interval.
    if not number or not _LEAST <= float(coverage) <= 1 - _LEAST:
        raise ParameterError(
            f"coverage must be a number between 0 and 1, the share of new targets that intervals are to contain, as in "
            f"coverage=0.9, but is {short(coverage)}."
        )
    return float(coverage)


def guaranteed_by_jackknife(coverage: float) -> float:
    """The probability that the jackknife+ and CV+ guarantee: ``1 - 2 (1 - coverage)``.

    >>> guaranteed_by_jackknife(0.9), guaranteed_by_jackknife(0.4)
    (0.8, 0.0)
    """
    return max(round(2.0 * coverage - 1.0, 12), 0.0)


def warn_if_few(rows: float, coverage: float) -> None:
    """Warn if there are too few rows for bounded intervals."""
    if rows < least_rows(coverage):
        warn_user(
            f"intervals of coverage {coverage:g} are unbounded for {rows:g} rows; they need {least_rows(coverage)} at "
            "least. Ask for a smaller coverage, or fit to more rows.",
            MercerWarning,
        )


@dataclass(frozen=True, eq=False)
class LeftOutErrors:
    """The training rows of a linear smoother, each predicted by the others.

    Parameters
    ----------
    errors : ndarray of shape (n, t)
        Targets minus left-out predictions.
    radii : ndarray of shape (n, t)
        Their sizes; or these in units of the deviations of the left-out targets.
    counts : ndarray of shape (n,) or None
        How often each row counts.
    """

    errors: Matrix
    radii: Matrix
    counts: Vector | None

    @classmethod
    def plain(cls, errors: Matrix, counts: Vector | None) -> LeftOutErrors:
        """With radii that are the sizes of the errors: all intervals are about equally wide."""
        return cls(errors, np.abs(errors), counts)

    @property
    def total(self) -> float:
        """The number of observations."""
        return float(len(self.errors) if self.counts is None else self.counts.sum())


# From a slice of new rows to predictions (b, t), shares of the left-out errors (b, n), and deviations (b, n) or None.
Strip = Callable[[slice], tuple[Matrix, Matrix, Matrix | None]]


def intervals_by_strips(strip: Strip, rows: int, left_out: LeftOutErrors, coverage: float) -> tuple[Matrix, Matrix]:
    """Both ends, (rows, t), of the intervals of new rows, some of which are worked on at a time."""
    n, t = left_out.errors.shape
    lower, upper = np.empty((rows, t)), np.empty((rows, t))
    step = max(capacity(8 * _ARRAYS * n, _ROWS), _FEWEST)
    with memory.reserve(8 * _ARRAYS * n * min(step, rows), f"predictions for {step} new rows, each row left out"):
        for part in spans(rows, step):
            threads.checkpoint()
            values, moves, deviations = strip(part)
            for j in range(t):
                centres = values[:, j : j + 1] - moves * left_out.errors[:, j]
                radii = left_out.radii[:, j]
                ends = jackknife_plus(
                    centres, radii if deviations is None else deviations * radii, coverage, left_out.counts
                )
                lower[part, j], upper[part, j] = ends
    return lower, upper


def intervals_of_system(
    system: LinearSystem,
    cross: GramMatrix,
    coefficients: Matrix,
    left_out: LeftOutErrors,
    coverage: float,
    *,
    n_jobs: int | None,
) -> tuple[Matrix, Matrix]:
    """Both ends, (m, t), for rows whose kernel values with those of a solved system are ``cross``, (m, n)."""
    warn_if_few(left_out.total, coverage)
    m, t = cross.shape[0], coefficients.shape[1]
    lower, upper = np.empty((m, t)), np.empty((m, t))
    for shift, columns in system.groups():
        own = coefficients[:, columns]
        with ExitStack() as stack, threads.workers(n_jobs):
            moves = left_out_moves(system, shift, stack, n_jobs=n_jobs)

            def strip(part: slice, own: Matrix = own, moves: Moves = moves) -> tuple[Matrix, Matrix, None]:
                block = np.asarray(cross.block(np.arange(part.start, part.stop), None), dtype=np.float64)
                return block @ own, moves(block), None

            chosen = LeftOutErrors(left_out.errors[:, columns], left_out.radii[:, columns], left_out.counts)
            lower[:, columns], upper[:, columns] = intervals_by_strips(strip, m, chosen, coverage)
    return lower, upper
