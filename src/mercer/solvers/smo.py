"""Solving a :class:`BoxQP` by two-level decomposition, with a certificate in float64.

Minimise ``a'Qa / 2 - p'a`` subject to ``y'a = const`` and ``0 <= a <= C``. Given the lazy matrix K, returns alpha,
the offset b, and a certificate. The kernel work is done in float32 with the gradient summed in float64; the answer
is then checked in float64, and if rounding has kept it from the tolerance, the solve goes on in float64.
"""

from __future__ import annotations

import time

import numpy as np

from mercer.engine import memory, threads
from mercer.solvers.certify import check_gradient, objectives, refine_gradient
from mercer.solvers.iterate import Iterate
from mercer.solvers.problems import Array, BoxQP, BoxQPValue, GramMatrix, Vector
from mercer.solvers.solution import Certificate, Solution, Status
from mercer.solvers.working_set import by_working_sets, on_whole_matrix

# Up to this size the whole matrix is one block, and the working set is everything.
WHOLE = 2048
# Up to this size steps cost next to nothing, and the answer is made as exact as float64 allows.
EXACT = 512
_EXACT_TOL = 1e-11
_EXACT_STEPS = 200
_WORKING_SET = 1536
# The part of the tolerance that is aimed at in float32, to leave room for its rounding.
_FLOAT32_PART = 0.9


def solve_box_qp(
    problem: BoxQP,
    *,
    tol: float = 1e-3,
    max_iter: int = -1,
    cache_bytes: int = 200 * 2**20,
    n_jobs: int | None = None,
    start: Vector | None = None,
    matrix: Array | None = None,
    verbose: bool = False,
) -> Solution[BoxQPValue, Vector]:
    """Solve a box-constrained quadratic programme with one equality.

    Parameters
    ----------
    problem : BoxQP
        The problem.
    tol : float, default=1e-3
        The violation of the optimality conditions (in units of the decision function) that is good enough.
    max_iter : int, default=-1
        The most inner steps, -1 for no limit.
    cache_bytes : int, default=200 MiB
        The most memory for kept kernel rows.
    n_jobs : int, optional
        Worker threads.
    start : ndarray of shape (n,), optional
        A feasible alpha to begin with.
    matrix : ndarray of shape (n, n), optional
        The kernel matrix, where the caller has it already: in float64 for at most ``EXACT`` rows, else in float32.
    verbose : bool, default=False
        Show progress on standard error.

    Returns
    -------
    Solution
        ``value`` is a :class:`BoxQPValue`; ``state`` is alpha, for ``start`` of a neighbouring problem.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> problem = BoxQP(PrecomputedGram(np.eye(2)), np.array([1.0, -1.0]), np.array([10.0, 10.0]))
    >>> solve_box_qp(problem).value.alpha
    array([1., 1.])
    """
    begun = time.perf_counter()
    limit = max_iter if max_iter >= 0 else int(np.iinfo(np.int64).max)
    point = Iterate.begin(problem, start)
    # Held for the whole solve: BLAS threads that wait for work between two tiled products take time from the tiles.
    with threads.one_blas_thread():
        if start is not None:
            _renew_gradient(problem.gram.astype(np.float64), point)
        if len(point.beta) <= EXACT:
            held = _solve_small(problem.gram, point, tol, limit, matrix)
        else:
            held = _solve_large(problem.gram, point, tol, limit, cache_bytes, n_jobs, matrix, verbose)
    primal, dual = objectives(point)
    violation = point.violation()
    status = _status(problem.convex, violation <= tol, point.steps >= limit)
    seconds = time.perf_counter() - begun
    certificate = Certificate(primal, dual, violation, point.steps, seconds, held, status)
    alpha = np.abs(point.beta)
    return Solution(BoxQPValue(alpha, point.offset()), status, certificate, alpha)


def _solve_small(gram: GramMatrix, point: Iterate, tol: float, limit: int, matrix: Array | None) -> int:
    """In float64, to its precision if some steps do it, else to ``tol``; returns the bytes held."""
    n = len(point.beta)
    with memory.reserve(8 * n * n, "the kernel matrix"):
        K = gram.astype(np.float64).block(None, None) if matrix is None else matrix
        on_whole_matrix(K, point, min(tol, _EXACT_TOL), min(limit, _EXACT_STEPS * n))
        on_whole_matrix(K, point, tol, limit)
        point.F = point.linear - K @ point.beta
    check_gradient(point)
    return int(K.nbytes)


def _solve_large(
    gram: GramMatrix, point: Iterate, tol: float, limit: int, room: int, n_jobs: int | None, matrix: Array | None,
    verbose: bool,
) -> int:
    """In float32; again from the float64 gradient, whose changes float32 follows more closely; then in float64.

    Returns the most bytes held at once.
    """
    held = 0
    begin = point.beta.copy()
    for dtype in (np.float32, np.float32, np.float64):
        if dtype == np.float64:
            _renew_gradient(gram.astype(dtype), point)
        target = tol if dtype == np.float64 else _FLOAT32_PART * tol
        # What overflows float32 becomes infinite, which is seen below.
        with np.errstate(over="ignore"):
            nbytes = _attempt(gram, dtype, point, target, limit, room, n_jobs, matrix, verbose)
        held = max(held, nbytes)
        if dtype == np.float32 and not (np.isfinite(point.F).all() and np.isfinite(point.beta).all()):
            # The kernel overflows float32; float64 begins anew, from the gradient that it makes itself.
            point.beta = begin.copy()
            continue
        refine_gradient(gram, point)
        if point.violation() <= tol or point.steps >= limit:
            break
    return held


def _attempt(
    gram: GramMatrix, dtype: type[np.floating], point: Iterate, tol: float, limit: int, room: int,
    n_jobs: int | None, matrix: Array | None, verbose: bool,
) -> int:  # fmt: skip
    """One solve in the precision ``dtype``; returns the bytes held."""
    n = gram.shape[0]
    if n > WHOLE:
        return by_working_sets(gram.astype(dtype), point, tol, limit, _WORKING_SET, room, n_jobs, verbose)
    if matrix is not None and dtype == np.float32:
        on_whole_matrix(matrix, point, tol, limit)
        return matrix.nbytes
    nbytes = n * n * np.dtype(dtype).itemsize
    with memory.reserve(nbytes, "the kernel matrix"):
        on_whole_matrix(gram.astype(dtype).block(None, None), point, tol, limit)
    return nbytes


def _renew_gradient(gram: GramMatrix, point: Iterate) -> None:
    support = point.support
    point.F = point.linear.copy()
    if len(support):
        point.F -= gram.restrict(None, support) @ point.beta[support]


def _status(convex: bool, converged: bool, out_of_steps: bool) -> Status:
    if converged:
        return Status.converged if convex else Status.stationary
    return Status.iteration_limit if out_of_steps else Status.stalled
