r"""The jackknife+ over landmarks, without most of the predictions that it is defined by.

An end of the interval of a new row x is the number of a rank among the n numbers

.. math:: z_i = -u_i e_i - R_i \sqrt{1 + u_i^2 \tau_i}, \qquad u_i = m_i\, \psi(x)^\top \psi_i / \sigma(x)

in units of the deviation :math:`\sigma(x)`, and for the other end with :math:`u_i e_i`
(:mod:`mercer.solvers.conformal`; without deviations :math:`\sigma = 1` and :math:`\tau = 0`). With

.. math:: |u_i| \le m_i\, \|\psi_i\|\, \|\psi(x)\| / \sigma(x)

each number has bounds that need no kernel value of row i. Only rows whose bounds reach the numbers of the rank among
all bounds are looked at: of many rows and few landmarks a small part, since a single row then hardly moves a
prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Positions, Vector
from mercer.engine import lapack, memory, threads
from mercer.engine.tiles import spans
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.solvers.conformal import of_rank, tail_rank, undecided
from mercer.solvers.restricted.left_out import LeftOutRows

# New rows that are worked on at once.
_ROWS, _FEWEST = 2048, 16
# Groups of new rows whose features differ in length by at most a factor of 2; the last has all that are shorter.
_LEVELS = 10
# Arrays of new rows by the training rows that are looked at, and of all training rows.
_ARRAYS, _VECTORS = 6, 8
# Bounds are moved apart by this share against rounding.
_ROUNDING = 1e-9
_WAY_OUT = (
    "Raise the budget with mercer.config(memory=...), or use mercer.ConformalRegressor(learner, cv=0.3): one fit to "
    "70 % of the rows, whose intervals take the memory of predictions and one number for each of the other rows."
)

Deviations = Callable[[slice, Vector, Vector], Vector]


@dataclass(frozen=True, eq=False)
class Scores:
    r"""How far left-out predictions were from the targets of n rows.

    Parameters
    ----------
    radii : ndarray of shape (n, t)
        R, the sizes of the errors, or these in units of the deviations of the left-out targets.
    counts : ndarray of shape (n,) or None
        How often each row counts.
    variances : ndarray of shape (n,) or None
        :math:`\tau`, by which the squared moves raise the variances of new rows; None without deviations.
    """

    radii: Matrix
    counts: Vector | None = None
    variances: Vector | None = None

    def total(self, rows: np.ndarray | None = None) -> float:
        """The number of observations, of all rows or of marked ones."""
        if self.counts is None:
            return float(len(self.radii) if rows is None else rows.sum())
        return float((self.counts if rows is None else self.counts[rows]).sum())


def jackknife_ends(
    left_out: LeftOutRows, cross: GramMatrix, scores: Scores, coverage: float, deviations: Deviations | None = None
) -> tuple[Matrix, Matrix]:
    """Both ends, (s, t), of the intervals of s new rows.

    Parameters
    ----------
    left_out : LeftOutRows
        Of n rows over m landmarks, with t targets.
    cross : GramMatrix
        Kernel values of new rows and landmarks, (s, m), in float64.
    scores : Scores
    coverage : float
    deviations : callable, optional
        From a slice of new rows, their leverages and their explained variances to the deviations of their targets,
        above 0.

    Returns
    -------
    lower, upper : ndarray of shape (s, t)
        Infinite if there are too few rows. Below a coverage of a half the ends may cross, and are then exchanged.

    Raises
    ------
    MemoryBudgetError
        If numbers of all training rows, or those of one new row, do not fit the memory budget.
    """
    (s, m), (n, t) = cross.shape, left_out.errors.shape
    lower, upper = np.full((s, t), -np.inf), np.full((s, t), np.inf)
    rank = tail_rank(coverage, scores.total())
    if rank < 1 or not s:
        return lower, upper
    step = max(capacity(2 * 8 * m, _ROWS, parts=2), min(_FEWEST, s))
    nbytes = 2 * 8 * m * min(step, s) + 8 * _VECTORS * n + t * n
    with memory.reserve(nbytes, f"the errors of {n:,} rows and features of {step} new ones", _WAY_OUT):
        for part in spans(s, step):
            threads.checkpoint()
            K = np.empty((part.stop - part.start, m))
            cross.block(np.arange(part.start, part.stop), None, out=K)
            F, explained = left_out.features(K)
            leverages = np.einsum("ij,ij->i", F, F)
            means = lapack.multiply(F, left_out.solution)
            units = np.ones(len(F)) if deviations is None else deviations(part, leverages, explained)
            F /= units[:, None]
            low, high = np.empty((2, *means.shape))
            for rows, longest in _by_length(np.sqrt(leverages) / units):
                low[rows], high[rows] = _of_strip(left_out, scores, rank, F[rows], longest)
            ends = means + units[:, None] * low, means - units[:, None] * high
            lower[part], upper[part] = np.minimum(*ends), np.maximum(*ends)
    return lower, upper


def _by_length(lengths: Vector) -> list[tuple[Positions, float]]:
    """New rows whose features have about the same length, with the largest.

    Few long ones would make all training rows of a strip worth a look.

    >>> [(rows.tolist(), longest) for rows, longest in _by_length(np.array([1.0, 9.0, 5.0, 0.0]))]
    [([1, 2], 9.0), ([0], 1.0), ([3], 0.0)]
    """
    largest = lengths.max() or 1.0
    with np.errstate(divide="ignore"):
        levels = np.minimum(np.floor(np.log2(largest / lengths)), _LEVELS)
    groups = [np.flatnonzero(levels == level) for level in np.unique(levels)]
    return [(rows, float(lengths[rows].max())) for rows in groups]


def _of_strip(left_out: LeftOutRows, scores: Scores, rank: int, F: Matrix, longest: float) -> tuple[Matrix, Matrix]:
    """The numbers of the rank for both ends, (b, t), of new rows with scaled features (b, m), at most ``longest``."""
    chosen, ranks = _chosen(left_out, scores, rank, longest)
    positions = np.flatnonzero(chosen)
    count = len(positions)
    low, high = np.empty((2, len(F), len(ranks)))
    step = max(capacity(8 * _ARRAYS * count, len(F), parts=2), 1)
    what = f"predictions for {step} new rows, each of {count:,} rows left out"
    with memory.reserve(8 * _ARRAYS * count * min(step, len(F)), what, _WAY_OUT):
        for part in spans(len(F), step):
            moves = _moves(left_out, positions, F[part])
            for j, own in enumerate(ranks):
                low[part, j], high[part, j] = _numbers(left_out, scores, positions, moves, j, own)
    return low, high


def _chosen(left_out: LeftOutRows, scores: Scores, rank: int, longest: float) -> tuple[np.ndarray, list[float]]:
    """The rows to be looked at for some target, as marks (n,), and the rank of the ends of each target among them."""
    moved = left_out.taken * np.sqrt(left_out.leverages) * longest
    chosen, belows = np.zeros(len(moved), dtype=bool), []
    for e, R in zip(left_out.errors.T, scores.radii.T, strict=True):
        reach, spread = moved * np.abs(e) + _ROUNDING * R, R
        if scores.variances is not None:
            spread = R * np.sqrt(1.0 + moved**2 * scores.variances)
        marked, below = undecided(-spread - reach, reach - R, rank, scores.counts)
        chosen |= marked
        belows.append(below)
    return chosen, [rank - scores.total(below & ~chosen) for below in belows]


def _moves(left_out: LeftOutRows, positions: Positions, F: Matrix) -> Matrix:
    """The shares u (b, p) of left-out errors in new rows, for the training rows at some positions."""
    moves = np.empty((len(F), len(positions)))

    def see(part: slice, block: Matrix) -> None:
        lapack.solve_triangle(left_out.factor, block)
        moves[:, part] = lapack.multiply(F, block.T)

    left_out.rows.visit(see, positions)
    moves *= left_out.taken[positions]
    return moves


def _numbers(
    left_out: LeftOutRows, scores: Scores, positions: Positions, moves: Matrix, target: int, rank: float
) -> tuple[Vector, Vector]:
    """The numbers of a rank for both ends of one target, (b,) each."""
    spread: Matrix | Vector = scores.radii[positions, target]
    if scores.variances is not None:
        spread = spread * np.sqrt(1.0 + moves**2 * scores.variances[positions])
    counts = None if scores.counts is None else scores.counts[positions]
    shifts = moves * left_out.errors[positions, target]
    low = of_rank(-shifts - spread, rank, counts)
    shifts -= spread
    return low, of_rank(shifts, rank, counts)
