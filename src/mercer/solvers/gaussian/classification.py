"""Classification with latent Gaussian processes: the problem, approximations to its posterior, and their evidence."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mercer._types import Matrix, Vector
from mercer.engine import memory, threads
from mercer.gram.hold import reserve_square
from mercer.solvers.gaussian.covariance import Covariance
from mercer.solvers.gaussian.factor import factor
from mercer.solvers.gaussian.latent_store import LatentStore
from mercer.solvers.gaussian.workspace import Workspace, Workspaces
from mercer.solvers.solution import Solution

# From this many rows on, factors that only precondition are made in float32, at half the cost.
SINGLE_FROM = 512


@dataclass(frozen=True, eq=False)
class GaussianClassification:
    """Labels of rows whose latent values have the prior N(0, K), with one such process a class where there are several.

    Parameters
    ----------
    covariance : Covariance
        Over n rows.
    codes : ndarray of shape (n,)
        The numbers of the classes of the rows, from 0.
    classes : int, default=2
        Number of classes.
    definite : bool, default=True
        Whether the covariance is positive semi-definite but for rounding. If not, its diagonal is raised until it is.
    """

    covariance: Covariance
    codes: NDArray[np.intp]
    classes: int = 2
    definite: bool = True

    @property
    def n(self) -> int:
        return self.covariance.n

    @property
    def signs(self) -> Vector:
        """-1 for the first of two classes, 1 for the second."""
        return np.where(self.codes > 0, 1.0, -1.0)

    def store(self, theta: Vector, work: Workspace) -> LatentStore:
        """K at ``theta``."""
        shape = (self.n, self.n)
        matrix = work.array("K", shape)
        self.covariance.matrix(theta, matrix)
        if not self.definite:
            trial = work.array("trial", shape)
            trial[...] = matrix
            np.einsum("ii->i", matrix)[...] += factor(trial, definite=False).jitter
        return LatentStore(matrix, work.array("single", shape, np.float32) if self.n >= SINGLE_FROM else None)


@dataclass(frozen=True, eq=False)
class Approximation:
    r"""A Gaussian in the place of the posterior, and the approximate evidence ``log p(y)``.

    Parameters
    ----------
    evidence : float
        In nats.
    gradient : ndarray of shape (p,) or None
        Its derivatives by the parameters of the covariance, if they were requested.
    weights : ndarray of shape (n, c)
        A, with the posterior mean :math:`K A`; c is 1 for two classes.
    root : ndarray of shape (n, c)
        The roots of the curvatures, D.
    factor : ndarray or None
        If it was requested, what variances are computed from. For two classes, the lower factor L of
        :math:`I + D K D = L L^\top`, (n, n). For c classes, (c + 1, n, n): :math:`E_j = D_j (I + D_j K D_j)^{-1} D_j`
        for each class, and the lower factor of their sum.
    state : ndarray
        What a neighbouring problem may start from.
    probabilities : ndarray of shape (n, c), optional
        At the mode, where the approximation has one; of the second of two classes.
    """

    evidence: float
    gradient: Vector | None
    weights: Matrix
    root: Matrix
    factor: Matrix | None
    state: Matrix
    probabilities: Matrix | None = None


@dataclass(frozen=True)
class Effort:
    """What an evaluation is to do: its limits, and what to compute in addition to the evidence."""

    tol: float = 1e-9
    max_iter: int = 100
    gradient: bool = False
    keep_factor: bool = False


class Method(Protocol):
    """One way to approximate the posterior; the start is the state of a neighbouring problem."""

    def __call__(
        self, problem: GaussianClassification, theta: Vector, work: Workspace, start: Matrix | None, effort: Effort
    ) -> Solution[Approximation, Matrix]: ...


@dataclass(frozen=True)
class Approach:
    """A method with what it needs: bytes for each entry of K, and the tolerance at which evidence is exact."""

    method: Method
    bytes_per_entry: int
    tol: float


class Evidence:
    """``theta -> (evidence, gradient)`` for a search; each evaluation starts where the last one ended.

    Parameters
    ----------
    problem : GaussianClassification
    approach : Approach
    max_iter : int, default=100
        The most steps, or sweeps, of an evaluation.
    n_jobs : int, optional
        With 1, on one thread; else on as many as BLAS has.
    start : ndarray, optional
        The state of an earlier solution.
    workspaces : Workspaces, optional
        Shared by those that work side by side.
    """

    def __init__(
        self,
        problem: GaussianClassification,
        approach: Approach,
        *,
        max_iter: int = 100,
        n_jobs: int | None = None,
        start: Matrix | None = None,
        workspaces: Workspaces | None = None,
    ) -> None:
        self.problem, self.approach, self.max_iter, self.n_jobs = problem, approach, max_iter, n_jobs
        self.start = start
        self._workspaces = Workspaces() if workspaces is None else workspaces

    @property
    def bytes_each(self) -> int:
        """What an evaluation holds."""
        return self._bytes_per_entry * self.problem.n**2

    @property
    def _bytes_per_entry(self) -> int:
        return self.approach.bytes_per_entry + (0 if self.problem.definite else 8)

    def fresh(self) -> Evidence:
        """The same with a start of its own, as each ascent of a search needs it; the arrays are shared."""
        return Evidence(
            self.problem,
            self.approach,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            start=self.start,
            workspaces=self._workspaces,
        )

    def solve(
        self, theta: Vector, *, gradient: bool = False, keep_factor: bool = False
    ) -> Solution[Approximation, Matrix]:
        """The approximation at ``theta``, with the gradient of the evidence or with what predictions need.

        Raises
        ------
        MemoryBudgetError
            If the matrices would not fit the memory budget; raised before they are allocated.
        NumericalError
            If K has NaN or infinite entries, or eigenvalues far below zero.
        """
        effort = Effort(self.approach.tol, self.max_iter, gradient, keep_factor)
        with memory.track() as account, ExitStack() as stack:
            sentence = reserve_square(stack, self.problem.n, self._bytes_per_entry, "the kernel matrix and its factors")
            work = stack.enter_context(self._workspaces.one())
            stack.enter_context(threads.workers(self.n_jobs))
            solution = self.approach.method(self.problem, theta, work, self.start, effort)
        self.start = solution.state
        certificate = replace(solution.certificate, peak_bytes=account.peak, storage=sentence)
        return replace(solution, certificate=certificate)

    def __call__(self, theta: Vector) -> tuple[float, Vector]:
        approximation = self.solve(theta, gradient=True).value
        return approximation.evidence, np.zeros(0) if approximation.gradient is None else approximation.gradient
