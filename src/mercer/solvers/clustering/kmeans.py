"""k-means in feature space: restarts, in low precision if K is not stored, and an answer that is certified."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from mercer._errors import NumericalError
from mercer._types import Vector
from mercer.engine import memory, threads
from mercer.engine.progress import Progress
from mercer.gram.hold import hold
from mercer.gram.protocol import GramMatrix
from mercer.solvers.clustering.descent import Descent, Rules
from mercer.solvers.clustering.dual_means import DualMeans
from mercer.solvers.clustering.entries import Entries
from mercer.solvers.clustering.means import Assignment, Labels, Means, inertia, squares
from mercer.solvers.clustering.primal_means import Coordinates, PrimalMeans
from mercer.solvers.clustering.starts import Start, first_labels
from mercer.solvers.solution import Certificate, Solution, Status


@dataclass(frozen=True)
class Clustering:
    r""":math:`\min_\ell \sum_i w_i \|\phi(x_i) - m_{\ell_i}\|^2`, each m the weighted mean of the rows with its label.

    Parameters
    ----------
    rows : GramMatrix or Coordinates
        The matrix K, or coordinates of the rows in feature space.
    weight : ndarray of shape (n,)
        Above 0.
    k : int
        Number of clusters, at most n.
    start : Start
    n_init : int
        Number of starts.
    max_iter : int
        Assignments of each run at the most.
    tol : float
        A run ends when the squared shifts of the means add up to this share of the variance.
    random : RandomState
    norms : ndarray of shape (n,), optional
        ``k(x, x)``, for coordinates that leave out a part of the feature space.
    convex : bool, default=True
        Whether the kernel is positive; else distances need not obey the triangle inequality.
    verbose : bool, default=False
    n_jobs : int, optional
    """

    rows: GramMatrix | Coordinates
    weight: Vector
    k: int
    start: Start
    n_init: int
    max_iter: int
    tol: float
    random: np.random.RandomState
    norms: Vector | None = None
    convex: bool = True
    verbose: bool = False
    n_jobs: int | None = None


@dataclass(frozen=True)
class Partition:
    """The answer.

    Attributes
    ----------
    labels : ndarray of int of shape (n,)
        The nearest mean of each row.
    members : ndarray of int of shape (n,)
        The cluster whose mean each row is a part of: its label, but for runs that ended before labels settled.
    shares : ndarray of shape (n,)
        Of each row in that mean: ``m_c = sum_{i in c} shares_i phi(x_i)``.
    source : ndarray of int of shape (k,)
        The cluster whose mean each cluster has: its own, or the first one's where it is empty.
    centres : ndarray of shape (k, d) or None
        The means in coordinates.
    squares : ndarray of shape (k,)
        Squared norms of the means.
    inertia : float
        The weighted sum of squared distances from the nearest mean.
    history : ndarray
        Inertia of every partition about its own means, from the first, and of the answer.
    """

    labels: Labels
    members: Labels
    shares: Vector
    source: Labels
    centres: Vector | None
    squares: Vector
    inertia: float
    history: Vector


def solve(problem: Clustering) -> Solution[Partition, None]:
    """The best of several runs.

    Where K does not fit the budget, runs take a matrix in float32, stored or evaluated; the best of them goes on in
    float64 until every row is nearest to its own mean, so that the answer does not depend on the precision.

    Raises
    ------
    MemoryBudgetError
        If not even a few numbers for each row and cluster fit.
    NumericalError
        If kernel values, or what is computed of them, overflow.
    """
    start_time = time.perf_counter()
    n, k = problem.rows.shape[0], problem.k
    with memory.track() as account, ExitStack() as stack, threads.workers(problem.n_jobs):
        dual = not isinstance(problem.rows, Coordinates)
        stack.enter_context(memory.reserve(working_bytes(n, k, dual), f"distances of {n} rows from {k} means"))
        exact, rough, sentence = _means(problem, stack)
        _require_range(exact, problem)
        progress = Progress(None, "k-means", problem.verbose)
        run = _best_run(problem, rough or exact, progress)
        rules = Rules(problem.max_iter, _least_shift(problem, exact))
        final = Descent(exact, problem.weight, run.labels, run.steps, rules, progress)
        status, assignment = final.finish(last=run.settled)
        partition = _partition(problem, final, assignment, run.history)
    if status is Status.stalled and not problem.convex:
        status = Status.stationary
    size = float(np.abs(exact.norms).max())
    violation = float(assignment.excess.max()) / size if size > 0 else 0.0
    peak = account.peak + (problem.rows.nbytes if isinstance(problem.rows, Coordinates) else 0)
    certificate = Certificate(
        partition.inertia,
        -np.inf,
        violation,
        final.steps,
        time.perf_counter() - start_time,
        peak,
        status,
        {"assignment": violation},
        problem.convex,
        sentence,
    )
    return Solution(partition, status, certificate, None)


def _require_range(means: Means, problem: Clustering) -> None:
    """Raise before the runs if squared distances, or those of sums of rows, would not be finite."""
    largest, weight = float(np.abs(means.norms).max()), max(float(problem.weight.sum()), 1.0)
    # A distance is at most twice a norm, and the squared norm of a sum that norm times the square of the weight.
    if not 4 * weight * weight * largest < np.finfo(np.float64).max:
        raise NumericalError(
            f"k(x, x) is up to {largest:.3g}, so sums of distances overflow float64. Scale the columns of X "
            "(sklearn.preprocessing.StandardScaler), or multiply the kernel by a small number."
        )


def working_bytes(n: int, k: int, dual: bool) -> int:
    """What iterations hold: distances and two tables beside; where K is all there is, products.

    >>> working_bytes(10, 2, dual=False)
    480
    """
    table = 8 * n * k
    return 6 * table if dual else 3 * table


def _means(problem: Clustering, stack: ExitStack) -> tuple[Means, Means | None, str]:
    """What gives exact answers, what is cheaper for the way there if that is something else, and where K is."""
    weight, k = problem.weight, problem.k
    if isinstance(problem.rows, Coordinates):
        norms = problem.rows.norms(problem.n_jobs) if problem.norms is None else problem.norms
        return PrimalMeans(problem.rows, norms, weight, k, problem.n_jobs), None, ""
    gram = problem.rows
    norms = np.asarray(gram.diagonal(), dtype=np.float64)

    def dual(gram: GramMatrix) -> DualMeans:
        return DualMeans(Entries(gram, problem.n_jobs), norms, weight, k, problem.n_jobs)

    # A quarter of the matrix must be free beside it: iterations need room, too.
    quarter = gram.shape[0] ** 2
    storage = hold(gram, stack, {np.float64: 2 * quarter, np.float32: quarter})
    if gram.stored_array() is not None or (storage.array is not None and storage.array.dtype == np.float64):
        return dual(storage.gram), None, storage.sentence
    rough = gram.astype(np.float32) if storage.array is None else storage.gram
    return dual(gram.astype(np.float64)), dual(rough), storage.sentence


def _least_shift(problem: Clustering, means: Means) -> float:
    """The squared shift of the means that ends a run."""
    if not problem.tol:
        return 0.0
    means.begin(np.zeros(problem.rows.shape[0], np.int32))
    return problem.tol * max(inertia(means, problem.weight), 0.0) / float(problem.weight.sum())


def _best_run(problem: Clustering, means: Means, progress: Progress) -> Descent:
    """The run with the lowest inertia, the first of equals; its means may be those of a later one."""
    rules = Rules(problem.max_iter, _least_shift(problem, means))
    best: Descent | None = None
    for _ in range(problem.n_init):
        labels = first_labels(problem.start, means, problem.weight, problem.k, problem.random)
        run = Descent(means, problem.weight, labels, problem.start.steps, rules, progress)
        run.explore()
        if best is None or run.history[-1] < best.history[-1]:
            best = run
    assert best is not None
    return best


def _partition(problem: Clustering, run: Descent, assignment: Assignment, history: list[float]) -> Partition:
    """The answer, with clusters without rows behind the others, their means that of the first one."""
    size = run.means.size
    order = np.argsort(size == 0, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    source = np.where(size[order] > 0, order, order[0])
    value = float(np.einsum("i,i->", problem.weight, np.maximum(assignment.squared, 0.0)))
    centres = None
    if isinstance(run.means, PrimalMeans):
        centres = (run.means.sums[source] / size[source, None]).copy()
    shares = problem.weight / size[run.labels]
    steps = np.array([*history[:-1], *run.history, value])
    return Partition(
        number[assignment.labels].astype(np.int32),
        number[run.labels].astype(np.int32),
        shares,
        number[source].astype(np.int32),
        centres,
        squares(run.means)[source],
        value,
        steps,
    )
