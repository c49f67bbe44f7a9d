"""Intervals of Gaussian process regression: the jackknife+ with errors in units of their deviations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import threads
from mercer.estimators.shared.intervals import LeftOutErrors, intervals_by_strips, warn_if_few
from mercer.gram.protocol import GramMatrix
from mercer.solvers.gaussian.left_out_moves import left_out_moves
from mercer.solvers.gaussian.posterior import LeftOut, Posterior

# Of the largest variance of a target: a deviation of 0 is not a unit.
_LEAST = 1e-12


def common_noise(noise: Vector, variances: Vector) -> float:
    """The variance of the noise of a new target, from those of n targets (n,), which have ``variances`` in all."""
    return float(np.mean(noise)) + _LEAST * float(variances.max())


@dataclass(frozen=True, eq=False)
class NewRows:
    """What a process needs of m new rows.

    Parameters
    ----------
    cross : GramMatrix of shape (m, n)
        Kernel values with the training rows.
    prior : callable or None
        Variances of the function in some of the rows before any row was seen. Without them errors are not divided by
        deviations.
    basis : callable
        Values of the basis functions of the mean in some of the rows.
    """

    cross: GramMatrix
    prior: Callable[[slice], Vector] | None
    basis: Callable[[slice], Matrix | None]


def intervals_of_posterior(
    posterior: Posterior, targets: Matrix, noise: Vector, rows: NewRows, coverage: float, *, n_jobs: int | None
) -> tuple[Matrix, Matrix]:
    """Both ends, (m, t), in the units of the targets of the posterior.

    Parameters
    ----------
    posterior : Posterior
    targets : ndarray of shape (n, t)
    noise : ndarray of shape (n,)
        Variances of the noise of the targets; that of a new target is their mean.
    rows : NewRows
    coverage : float
    n_jobs : int, optional
    """
    left_out: LeftOut = posterior.leave_one_out(targets)
    errors, variance = targets - left_out.mean, left_out.variance[:, 0]
    warn_if_few(len(targets), coverage)
    radii = np.abs(errors)
    common = common_noise(noise, variance)
    if rows.prior is not None:
        radii = radii / np.sqrt(np.maximum(variance - noise, 0.0) + common)[:, None]

    def strip(part: slice) -> tuple[Matrix, Matrix, Matrix | None]:
        block = np.array(rows.cross.block(np.arange(part.start, part.stop), None), dtype=np.float64, order="C")
        before = None if rows.prior is None else rows.prior(part)
        mean, moves, function = left_out_moves(posterior, block, before, rows.basis(part))
        if function is None:
            return mean, moves, None
        return mean, moves, np.sqrt(function[:, None] + moves**2 * variance + common)

    with threads.workers(n_jobs):
        return intervals_by_strips(strip, rows.cross.shape[0], LeftOutErrors(errors, radii, None), coverage)
