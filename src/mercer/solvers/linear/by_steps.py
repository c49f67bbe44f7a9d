"""Kernel systems by conjugate gradients: what products with the matrix and with explicit features have in common."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Protocol

import numpy as np

from mercer._errors import MercerWarning, warn_user
from mercer._types import Matrix
from mercer.engine import memory, threads
from mercer.solvers.linear.cholesky import relative
from mercer.solvers.linear.linear_system import LinearSystem, LinearSystemState
from mercer.solvers.solution import Certificate, Solution, Status


class Run(Protocol):
    """One solution: ``steps`` counts what ``unit`` names, and ``storage`` says where the matrix is."""

    steps: int
    unit: str
    storage: str

    def columns(self, b: Matrix, shift: float) -> tuple[Matrix, Matrix, Status]:
        """The answers for targets with one shift, their residuals, and how the steps have ended."""

    def remedy(self) -> str:
        """What the user may do where the residual is too large."""


def solve_by_steps(
    system: LinearSystem, begin: Callable[[LinearSystem, ExitStack], Run], method: str, tol: float, n_jobs: int | None
) -> Solution[Matrix, LinearSystemState]:
    """Solve the columns of each shift together; warn where the residual is above ``tol``.

    Parameters
    ----------
    system : LinearSystem
        Convex, with shifts above 0.
    begin : callable
        From the system in units of about 1, and a stack that holds memory, to the run.
    method : str
        Its name in the state of the solution.
    tol : float
        Of the message.
    n_jobs : int or None
        Threads.
    """
    start_time = time.perf_counter()
    with memory.track() as account, threads.workers(n_jobs), ExitStack() as stack:
        unit, powers = system.in_unit_size()
        run = begin(unit, stack)
        b = unit.scaled().apply_scale(np.asarray(unit.targets))
        z, residual, status = np.zeros_like(b), b.copy(), Status.converged
        for shift, columns in unit.groups():
            z[:, columns], residual[:, columns], own = run.columns(np.ascontiguousarray(b[:, columns]), shift)
            status = own if own is not Status.converged else status
    violation = float(relative(residual, b).max(initial=0.0))
    z, residual = np.ldexp(z, powers), np.ldexp(residual, powers)
    if status is not Status.converged:
        warn_user(
            f"conjugate gradients ended with a relative residual of {violation:.1e} after {run.steps} {run.unit}, "
            f"above tol = {tol:g}. {run.remedy()}",
            MercerWarning,
        )
    primal, dual = system.objectives(z, residual)
    seconds = time.perf_counter() - start_time
    certificate = Certificate(primal, dual, violation, run.steps, seconds, account.peak, status, storage=run.storage)
    return Solution(system.scaled().apply_scale(z), status, certificate, LinearSystemState(method, violation))
