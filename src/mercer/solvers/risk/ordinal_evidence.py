r"""The slope of kernel regression on ordered classes, by Laplace's evidence.

The slope a of the link and the scale of the latent function say the same: with v = a w and t = a phi,

.. math:: C \sum_i w_i \psi_i + \tfrac12 \|w\|^2
          = a^{-2} \Bigl( a^2 C \sum_i w_i \psi_i(v, t) + \tfrac12 \|v\|^2 \Bigr),

so the penalised likelihood alone always prefers a larger slope, which makes the penalty vanish. What distinguishes
slopes is how well the prior that the penalty stands for, a Gaussian process with the covariance C K for f, predicts the
classes. At the cut-points of the fit, and with v integrated out by Laplace's method about the minimum J of the sum in
brackets,

.. math:: \log Z(a) = -\frac{J}{a^2 C} - \tfrac12 \log |I + W^{1/2} K W^{1/2}|

It depends on a^2 C alone: C then sets the unit of f and nothing else. (Integrating the cut-points, too, with a flat
prior, was tried and dropped: flat in t the evidence grows with a without bound, flat in phi as a goes to zero.)
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar

from mercer._errors import MercerWarning, warn_user
from mercer._types import Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.solvers.risk.ordinal import NewtonPath, OrdinalAnswer, OrdinalStart, held_matrix
from mercer.solvers.risk.ordinal_problem import OrdinalProblem
from mercer.solvers.solution import Solution, Status

SLOPES = (1e-3, 1e3)
"""Where the slope is looked for."""

# Half an order of magnitude a step: the evidence is smooth on that scale.
_GRID = 13
_EXACT = 1e-3


@dataclass(frozen=True, eq=False)
class SlopeAnswer:
    """The slope, the log evidence there, and the solution of the problem in units of that slope."""

    slope: float
    log_evidence: float
    solution: Solution[OrdinalAnswer, OrdinalStart]


def slope_by_evidence(
    problem: OrdinalProblem, C: float, *, tol: float, max_iter: int, n_jobs: int | None = None, verbose: bool = False
) -> SlopeAnswer:
    """The slope of the largest evidence.

    Parameters
    ----------
    problem : OrdinalProblem
        With the weights as counts of rows, without C.
    C : float
        The price of the losses, that is the variance of the latent function in units of K.
    tol, max_iter, n_jobs, verbose
        As of :func:`mercer.solvers.risk.ordinal.OrdinalSolver`.

    Warns
    -----
    MercerWarning
        If the evidence still grows at a bound of ``SLOPES``.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> from mercer.solvers.risk.cumulative_links import LINKS
    >>> x = np.arange(12.0)
    >>> K = PrecomputedGram(np.exp(-0.1 * (x[:, None] - x) ** 2))
    >>> codes = np.array([0, 0, 1, 0, 1, 1, 1, 2, 1, 2, 2, 2])
    >>> problem = OrdinalProblem(codes, np.ones(12), LINKS["logit"], gram=K)
    >>> answer = slope_by_evidence(problem, 1.0, tol=1e-8, max_iter=50)
    >>> answer.slope > 1.0, answer.solution.status.name
    (True, 'converged')
    """
    start_time = time.perf_counter()
    with memory.track() as account, threads.workers(n_jobs), held_matrix(problem) as (K, sentence):
        search = _Search(problem, C, K, tol, max_iter, Progress(None, "slopes tried", verbose))
        low, high = (math.log(bound) for bound in SLOPES)
        grid = np.linspace(low, high, _GRID)
        best = int(np.argmax([search.value(float(t)) for t in grid]))
        if best in (0, _GRID - 1):
            warn_user(
                f"the evidence of the slope still grows at its bound of {SLOPES[best > 0]:g}; set slope to a number, "
                "or change C, which is the variance of the latent function, by some orders of magnitude.",
                MercerWarning,
            )
        around = grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)]
        optimum = minimize_scalar(
            lambda t: -search.value(t), bounds=around, options={"xatol": _EXACT}, method="bounded"
        )
        log_slope = float(optimum.x) if -optimum.fun >= search.value(float(grid[best])) else float(grid[best])
        value = search.value(log_slope)
        solution = search.path.finish(search.status, time.perf_counter() - start_time, account.peak, sentence)
    return SlopeAnswer(math.exp(log_slope), value, solution)


class _Search:
    """Evaluates the evidence; each solve starts where the last one ended."""

    def __init__(
        self, problem: OrdinalProblem, C: float, K: Vector, tol: float, max_iter: int, progress: Progress
    ) -> None:
        self._problem, self._C, self._K, self._tol, self._max_iter = problem, C, K, tol, max_iter
        self._work = np.empty_like(K)
        self._progress = progress
        self._start: OrdinalStart | None = None
        self.path: NewtonPath
        self.status = Status.converged

    def value(self, log_slope: float) -> float:
        """The log evidence."""
        scale = self._C * math.exp(2.0 * log_slope)
        problem = replace(self._problem, weight=scale * self._problem.weight)
        self.path = NewtonPath(problem, self._K, self._start, self._work)
        self.status = self.path.run(self._tol, Progress(self._max_iter, "Newton steps"), self._max_iter)
        self._start = OrdinalStart(self.path.coefficients, self.path.cuts)
        self._progress.advance()
        return log_evidence(self.path, scale)


def log_evidence(path: NewtonPath, scale: float) -> float:
    """Laplace's log evidence where a path has ended; the weights of its problem have ``scale`` as a factor."""
    objective = path.expansion.loss + 0.5 * float(path.coefficients @ path.latent)
    return -objective / scale - 0.5 * path.log_determinant()
