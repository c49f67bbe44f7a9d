"""From the answers of one-vs-one problems to scikit-learn's attributes, and from decision values to classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import DTypeLike

from mercer.solvers.pairwise import Answer
from mercer.solvers.problems import Vector
from mercer.solvers.solution import Certificate, Status

_WORST = (Status.converged, Status.direct, Status.stationary, Status.stalled, Status.iteration_limit)


@dataclass(frozen=True)
class Expansion:
    """The joint expansion of all pairs: which rows, their weights ``(k - 1, n_sv)``, and the offsets of the pairs.

    The row of a support vector of class i that holds its weight against class j is j - 1 if j > i, else j.
    """

    support: np.ndarray
    n_support: np.ndarray
    dual_coef: Vector
    intercept: Vector


def spread(parts: Iterable[np.ndarray], sizes: np.ndarray, dtype: DTypeLike = np.float64) -> np.ndarray:
    """Values of the rows of each pair of classes with ``sizes`` rows as one array (k - 1, n), rows sorted by class.

    Row j of a row of class c is against the j-th class that is not c.

    >>> spread([np.array([1, 2]), np.array([3, 4]), np.array([5, 6])], np.array([1, 1, 1]), int).tolist()
    [[1, 2, 4], [3, 5, 6]]
    """
    k = len(sizes)
    ends = np.cumsum(sizes)
    values = np.zeros((k - 1, int(sizes.sum())), dtype)
    for (i, j), part in zip(combinations(range(k), 2), parts):
        values[j - 1, ends[i] - sizes[i] : ends[i]] = part[: sizes[i]]
        values[i, ends[j] - sizes[j] : ends[j]] = part[sizes[i] :]
    return values


def gather(values: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """The values of each pair of classes; what :func:`spread` made one array of."""
    ends = np.cumsum(sizes)
    return [
        np.concatenate([values[j - 1, ends[i] - sizes[i] : ends[i]], values[i, ends[j] - sizes[j] : ends[j]]])
        for i, j in combinations(range(len(sizes)), 2)
    ]


def join(answers: list[Answer], sizes: np.ndarray) -> Expansion:
    """Join the answers of all pairs of classes with ``sizes`` rows, sorted by class."""
    weights = spread((answer.value.beta for answer in answers), sizes)
    support = np.flatnonzero(weights.any(axis=0))
    n_support = np.histogram(support, bins=np.concatenate([[0], np.cumsum(sizes)]))[0].astype(np.int32)
    offsets = np.array([answer.value.offset for answer in answers])
    return Expansion(support, n_support, np.ascontiguousarray(weights[:, support]), offsets)


def total(answers: list[Answer], seconds: float, peak_bytes: int) -> Certificate:
    """One certificate for all pairs: objectives and steps add up, the worst violation and status stand for all."""
    parts = [answer.certificate for answer in answers]
    names = {name for part in parts for name in part.violations}
    return Certificate(
        primal=float(sum(part.primal for part in parts)),
        dual=float(sum(part.dual for part in parts)),
        kkt_violation=max(part.kkt_violation for part in parts),
        iterations=sum(part.iterations for part in parts),
        seconds=seconds,
        peak_bytes=peak_bytes,
        status=max((part.status for part in parts), key=_WORST.index),
        violations={name: max(part.violations.get(name, 0.0) for part in parts) for name in sorted(names)},
    )


def pair_values(product: Callable[[slice, Vector], Vector], expansion: Expansion, m: int) -> Vector:
    """Decision values of all pairs, (m, k (k - 1) / 2), positive for the first class of the pair.

    ``product(part, V)`` is ``K(X, support[part]) @ V``: each class is multiplied by its own weights only.
    """
    k = len(expansion.n_support)
    ends = np.cumsum(expansion.n_support)
    values = np.tile(expansion.intercept, (m, 1))
    column = {pair: number for number, pair in enumerate(combinations(range(k), 2))}
    for i in range(k):
        part = slice(int(ends[i] - expansion.n_support[i]), int(ends[i]))
        if part.start == part.stop:
            continue
        sums = product(part, expansion.dual_coef[:, part].T)
        for j in range(k):
            if j != i:
                values[:, column[min(i, j), max(i, j)]] += sums[:, j - 1 if j > i else j]
    return values


def votes(values: Vector, k: int) -> np.ndarray:
    """The class with most votes, (m,); of equals, the first."""
    counts = np.zeros((len(values), k), dtype=np.int64)
    for number, (i, j) in enumerate(combinations(range(k), 2)):
        first = values[:, number] > 0
        counts[:, i] += first
        counts[:, j] += ~first
    return counts.argmax(axis=1)


def one_vs_rest(values: Vector, k: int) -> Vector:
    """Votes of each class, (m, k), with ties broken by the sum of its decision values ``s`` as ``s / (3 |s| + 3)``."""
    counts = np.zeros((len(values), k))
    sums = np.zeros((len(values), k))
    for number, (i, j) in enumerate(combinations(range(k), 2)):
        value = values[:, number]
        counts[:, i] += value >= 0
        counts[:, j] += value < 0
        sums[:, i] += value
        sums[:, j] -= value
    return counts + sums / (3.0 * (np.abs(sums) + 1.0))
