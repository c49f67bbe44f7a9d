"""How landmarks are chosen among rows: all functions but ``uniform`` are for samples of rows of a limited size."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from mercer._types import Matrix, Positions, Vector
from mercer.engine import lapack, memory
from mercer.gram import Gram
from mercer.gram.pivots import randomly_pivoted_cholesky
from mercer.kernels import Kernel
from mercer.landmarks.roots import inverse_root
from mercer.solvers.clustering.kmeans import Clustering, solve, working_bytes
from mercer.solvers.clustering.primal_means import Coordinates
from mercer.solvers.clustering.starts import Start

# More assignments than these change the means, but hardly the span of the landmarks.
_ASSIGNMENTS = 20


def uniform(n: int, m: int, random: np.random.RandomState, weight: Vector | None) -> Positions:
    """Return m of n positions in ascending order, each once, drawn in proportion to the weights.

    >>> uniform(5, 2, np.random.RandomState(0), np.array([0.0, 1.0, 0.0, 2.0, 0.0])).tolist()
    [1, 3]
    """
    chances = None if weight is None else weight / weight.sum()
    return np.sort(random.choice(n, m, replace=False, p=chances)).astype(np.intp, copy=False)


def pivots(kernel: Kernel, X: Any, m: int, random: np.random.RandomState, weight: Vector | None) -> Positions:
    """Return rows by randomly pivoted Cholesky; fewer than ``m`` if these leave nothing but rounding, at least one."""
    with ExitStack() as stack:
        gram = Gram(kernel, X, dtype=np.float64)
        result = randomly_pivoted_cholesky(gram, m, random, stack, weight=weight)
    return result.pivots if len(result.pivots) else np.zeros(1, np.intp)


def leverage(kernel: Kernel, X: Any, m: int, random: np.random.RandomState, weight: Vector | None) -> Positions:
    """Return rows with chances in proportion to their ridge leverage scores, estimated from a part of the rows.

    With features B of that part, ``K`` is near ``B B'``; the score of row i is
    ``b_i' (B'B + r I)^-1 b_i + (k_ii - |b_i|^2) / r``, at most 1, with the ridge r = (trace of what the leading m
    directions leave) / m. A row of weight w has the score of w rows.
    """
    n = X.shape[0]
    first = uniform(n, min(n, m), random, weight)
    with memory.reserve(leverage_bytes(n, m), f"leverage scores of {n:,} rows"):
        B = lapack.multiply(_double(kernel, X, X[first]), inverse_root(_double(kernel, X[first], X[first])))
        diagonal = kernel.diagonal(X).astype(np.float64)
        if weight is not None:
            B *= np.sqrt(weight)[:, None]
            diagonal *= weight
        scores = _ridge_scores(B, diagonal, m)
    if scores is None:
        return first
    # Every row has a positive chance, so that the requested number can be drawn.
    scores = np.maximum(scores, np.finfo(float).eps)
    return np.sort(random.choice(n, m, replace=False, p=scores / scores.sum())).astype(np.intp, copy=False)


def leverage_bytes(n: int, m: int) -> int:
    """Memory for :func:`leverage`."""
    return 2 * 8 * n * min(n, m)


def _ridge_scores(B: Matrix, diagonal: Vector, m: int) -> Vector | None:
    """Return the scores of all rows, or None if the kernel is 0; B is overwritten."""
    total = diagonal.sum()
    if not total > 0:
        return None
    # Of a kernel whose trace is 1 the scores are the same.
    B /= np.sqrt(total)
    diagonal = diagonal / total
    values, vectors = scipy.linalg.eigh(lapack.multiply(B.T, B))
    # Where the leading directions hold all there is, the ridge is rounding, and is kept from being less.
    ridge = max((1 - values[-m:].sum()) / m, float(np.finfo(float).eps))
    squares = lapack.multiply(B, vectors) ** 2
    left = np.maximum(diagonal - squares.sum(axis=1), 0.0)
    scores: Vector = squares @ (1 / (np.maximum(values, 0.0) + ridge)) + left / ridge
    return np.minimum(scores, 1.0)


def centres(X: Any, m: int, random: np.random.RandomState, weight: Vector | None) -> NDArray[np.floating]:
    """Return the means of at most m clusters of the rows of an array or CSR matrix, as an array of its dtype."""
    # Distances of rows far from the origin would cancel.
    middle = None if sp.issparse(X) else np.average(X, axis=0, weights=weight).astype(np.float64, copy=False)
    problem = Clustering(
        Coordinates(X, X.shape, middle),
        np.ones(X.shape[0]) if weight is None else weight,
        m,
        Start("k-means++"),
        n_init=1,
        max_iter=_ASSIGNMENTS,
        tol=1e-4,
        random=random,
    )
    partition = solve(problem).value
    assert partition.centres is not None
    # Clusters without rows have the mean of another one.
    means: Matrix = partition.centres[np.unique(partition.source)]
    return (means if middle is None else means + middle).astype(X.dtype, copy=False)


def centres_bytes(n: int, m: int) -> int:
    """Memory for :func:`centres`."""
    return working_bytes(n, m, dual=False)


def _double(kernel: Kernel, X: Any, Z: Any) -> Matrix:
    """A block of kernel values in float64."""
    return kernel.block(X, Z).astype(np.float64, copy=False)
