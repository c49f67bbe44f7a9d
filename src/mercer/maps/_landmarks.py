"""Rows that stand for all others in Nystroem's method: how they are chosen."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mercer._types import Matrix
from mercer.engine import memory
from mercer.engine.progress import Progress
from mercer.kernels import Kernel

# Rows of the first, uniform sample for leverage scores, as a multiple of the landmarks.
_FIRST = 2


def inverse_root(K: Matrix) -> Matrix:
    """``K^(-1/2)`` on the span of the eigenvectors whose eigenvalues are above rounding, 0 elsewhere.

    Examples
    --------
    >>> inverse_root(np.diag([4.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    values, vectors = scipy.linalg.eigh((K + K.T) / 2)
    large = values > len(K) * np.finfo(float).eps * max(values[-1], 0.0)
    roots = np.zeros_like(values)
    roots[large] = 1 / np.sqrt(values[large])
    root: Matrix = (vectors * roots) @ vectors.T
    return root


def centres(X: Any, m: int, rng: np.random.RandomState) -> NDArray[np.floating]:
    """The means of k-means clusters."""
    # Imported here and by name: every support vector machine imports this module, and few models need clusters.
    KMeans = importlib.import_module("sklearn.cluster").KMeans
    centers: NDArray[np.floating] = KMeans(m, n_init=1, random_state=rng).fit(X).cluster_centers_
    return centers.astype(X.dtype, copy=False)


def uniform(kernel: Kernel, X: Any, m: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Rows with equal chances, each once."""
    return np.sort(rng.choice(X.shape[0], m, replace=False))


def leverage(kernel: Kernel, X: Any, m: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Rows with chances in proportion to their ridge leverage scores, which a uniform sample of rows estimates.

    With features B of that sample, ``K`` is near ``B B'``; the score of row i is
    ``b_i' (B'B + r I)^-1 b_i + (k_ii - |b_i|^2) / r``, at most 1, with the ridge r = (trace of what the leading m
    directions leave) / m.
    """
    n = X.shape[0]
    first = uniform(kernel, X, min(n, _FIRST * m), rng)
    with memory.reserve(2 * 8 * n * len(first), f"leverage scores of {n:,} rows"):
        B = _double(kernel, X, X[first]) @ inverse_root(_double(kernel, X[first], X[first]))
        diagonal = kernel.diagonal(X).astype(np.float64)
        total = diagonal.sum()
        if not total > 0:
            return first[:m]
        # Of a kernel whose trace is 1 the scores are the same.
        B /= np.sqrt(total)
        diagonal /= total
        values, vectors = scipy.linalg.eigh(B.T @ B)
        # Where the leading directions hold all there is, the ridge is rounding, and is kept from being less.
        ridge = max((1 - values[-m:].sum()) / m, float(np.finfo(float).eps))
        squares = (B @ vectors) ** 2
        left = np.maximum(diagonal - squares.sum(axis=1), 0.0)
        scores = np.minimum(squares @ (1 / (np.maximum(values, 0.0) + ridge)) + left / ridge, 1.0)
    # Every row has a chance, so that as many can be drawn as are asked for.
    scores = np.maximum(scores, np.finfo(float).eps)
    return np.sort(rng.choice(n, m, replace=False, p=scores / scores.sum()))


def pivots(kernel: Kernel, X: Any, m: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Rows by randomly pivoted Cholesky: each with chances in proportion to what those before it leave of k(x, x).

    Fewer than ``m`` if these leave nothing but rounding.
    """
    n = X.shape[0]
    indices: list[int] = []
    progress = Progress(m, "pivots")
    with memory.reserve(8 * n * m, f"{m:,} columns of the Cholesky factor of {n:,} rows"):
        G = np.empty((m, n))
        left = kernel.diagonal(X).astype(np.float64)
        rounding = np.finfo(float).eps * left.sum()
        while len(indices) < m and left.sum() > rounding * max(len(indices), 1):
            pivot = int(rng.choice(n, p=left / left.sum()))
            count = len(indices)
            column = _double(kernel, X, X[pivot : pivot + 1])[:, 0] - G[:count].T @ G[:count, pivot]
            G[count] = column / np.sqrt(left[pivot])
            left = np.maximum(left - G[count] ** 2, 0.0)
            left[pivot] = 0.0
            indices.append(pivot)
            progress.advance()
    return np.array(indices or [0])


def _double(kernel: Kernel, X: Any, Z: Any) -> Matrix:
    """A block of kernel values in float64."""
    return kernel.block(X, Z).astype(np.float64, copy=False)
