"""The search for the hyper-parameters of Gaussian processes on ordered classes, from several starts."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

from mercer._errors import MercerWarning, NumericalError, warn_user
from mercer._types import Vector
from mercer.engine import memory, threads
from mercer.kernels.parameters import Parameter
from mercer.solvers.gaussian.ordinal import OrdinalEvidence, OrdinalProcess
from mercer.solvers.gaussian.search import MultiStart, Objective, Optimizer, Search, warn_of_bounds

# In units of one over the prior deviation of f. Further up a row's likelihood is nearly a box: its mode is at a wall,
# where Laplace's approximation sees next to no curvature, and the evidence grows while the classes are lost.
_SLOPES = (1e-3, 30.0)
_LEAST_VARIANCE = 1e-280

# Bounds of the first cut-point and of the logarithms of the gaps: far beyond any use, and finite.
_FIRST_CUT = (-1e6, 1e6)
_LOG_GAP = (-30.0, 15.0)


def search_ordinal(
    process: OrdinalProcess,
    parameters: tuple[Parameter, ...],
    starts: list[Vector],
    log_prior: Objective | None,
    *,
    max_iter: int,
    optimizer: Optimizer | None,
    n_jobs: int | None,
) -> Search:
    """Maximise the evidence from every start; the ascents run side by side, as far as memory allows.

    Parameters
    ----------
    process : OrdinalProcess
    parameters : tuple of Parameter
        Those of the kernel, and the slope if it is free: what ``theta`` begins with, before the cut-points.
    starts : list of ndarray of shape (p,)
    log_prior : callable, optional
        Of ``parameters`` alone.
    max_iter : int
        Newton steps to a mode.
    optimizer : callable, optional
        In the place of L-BFGS-B.
    n_jobs : int, optional

    Warns
    -----
    MercerWarning
        If one of ``parameters`` ended at a bound; the slope at its upper one if labels have no noise.
    """
    front = search_bounds(parameters)
    bounds = np.vstack([front, [_FIRST_CUT], *[[_LOG_GAP]] * (process.cuts - 1)])
    prior = _padded(log_prior, len(front))
    searches: list[Search | None] = [None] * len(starts)

    def task(number: int) -> Callable[[], None]:
        def work() -> None:
            evidence = OrdinalEvidence(process, max_iter)
            searches[number] = MultiStart(optimizer=optimizer, n_jobs=n_jobs).maximise(
                evidence, starts[number], bounds, prior
            )

        return work

    tasks = [task(number) for number in range(len(starts))]
    if len(tasks) == 1:
        tasks[0]()
    else:
        threads.run(tasks, memory.workers(OrdinalEvidence(process).bytes_each, n_jobs))
    search = Search(tuple(trial for one in searches if one is not None for trial in one.trials))
    own = process.covariance.size
    best = dataclasses.replace(search.best, theta=search.best.theta[:own])
    warn_of_bounds(Search((best,)), front[:own], [p.name for p in parameters[:own]])
    if process.slope is None:
        _warn_of_slope(search.theta[own], *front[own])
    return search


def slope_parameter(variance: float) -> Parameter:
    """The slope as a hyper-parameter, for f of that variance before any row is seen.

    Examples
    --------
    >>> slope_parameter(4.0).value, slope_parameter(4.0).bounds
    (0.5, (0.0005, 15.0))
    """
    if variance != 0 and not _LEAST_VARIANCE < variance < 1.0 / _LEAST_VARIANCE:
        raise NumericalError(
            f"k(x, x) is {variance:.3g} in the mean, and the square of a slope of that scale leaves float64; "
            "scale the columns of X (sklearn.preprocessing.StandardScaler)."
        )
    unit = 1.0 / math.sqrt(variance) if variance > 0 else 1.0
    low, high = _SLOPES
    return Parameter("slope", unit, (low * unit, high * unit), "log", True)


def search_bounds(parameters: tuple[Parameter, ...]) -> Vector:
    """Bounds of parameters on the scales of their transforms, (p, 2).

    Examples
    --------
    >>> search_bounds((Parameter("slope", 1.0, (1.0, 100.0), "log", True),)).round(3).tolist()
    [[0.0, 4.605]]
    """
    for p in parameters:
        if p.transform == "log" and not 0 < p.bounds[0] <= p.bounds[1] < math.inf:
            raise NumericalError(
                f"the search of {p.name} has the bounds {p.bounds}, since kernel values leave the range of float64; "
                "scale the columns of X (sklearn.preprocessing.StandardScaler)."
            )
    rows = [[dataclasses.replace(p, value=bound).theta for bound in p.bounds] for p in parameters]
    return np.asarray(rows, dtype=np.float64).reshape(-1, 2)


def _warn_of_slope(slope: float, low: float, high: float) -> None:
    """Warn of a slope that ended at a bound; all as logarithms."""
    close = 1e-3 * (high - low)
    if min(slope - low, high - slope) > close:
        return
    words = "upper bound: labels without noise" if high - slope <= close else "lower bound: labels of noise alone"
    warn_user(
        f"the search left the slope at its {words} on the scale of the kernel. To use another value, set slope to a "
        "number.",
        MercerWarning,
    )


def _padded(log_prior: Objective | None, size: int) -> Objective | None:
    """The log prior of the first ``size`` hyper-parameters as one of all."""
    if log_prior is None:
        return None

    def whole(theta: Vector) -> tuple[float, Vector]:
        value, front = log_prior(theta[:size])
        return value, np.concatenate([front, np.zeros(len(theta) - size)])

    return whole
