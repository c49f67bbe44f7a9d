"""Decision values for the pairs of classes, of rows that were left out of the fit (cross-fitting)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer._types import Positions, Vector
from mercer.estimators.svm.one_vs_one import join, multiplier, pair_values
from mercer.gram.protocol import GramMatrix
from mercer.solvers.svm.pair_answers import Certificates, PairAnswers, PairLayout

FOLDS = 5

Solver = Callable[[GramMatrix, Positions, Positions], PairAnswers]


@dataclass(frozen=True)
class LeftOut:
    """``values`` (k - 1, n) of the rows, laid out as by ``PairLayout``, and the certificates of each fold's problems.

    Values are positive for the first class of a pair.
    """

    values: Vector
    certificates: list[Certificates]


def deal_folds(codes: Positions, random: np.random.RandomState) -> Positions:
    """Return the number of the fold of each row, (n,): the rows of each class are dealt in random order.

    Examples
    --------
    >>> deal_folds(np.array([0, 0, 0, 0, 0, 1, 1]), np.random.RandomState(0)).tolist()
    [1, 2, 0, 3, 4, 0, 1]
    """
    order = np.concatenate([random.permutation(np.flatnonzero(codes == code)) for code in np.unique(codes)])
    folds = np.empty(len(codes), dtype=np.intp)
    folds[order] = np.arange(len(codes)) % FOLDS
    return folds


def values_of_rows_left_out(gram: GramMatrix, codes: Positions, folds: Positions, solve: Solver) -> LeftOut:
    """Return decision values of each row for the pairs of its class, from a fit without the rows of its fold.

    Where all rows of a class are left out, its pairs are decided for the other class, with the value 1.

    Parameters
    ----------
    gram : Gram or PrecomputedGram
        K of all rows, sorted by class; folds are restrictions of it.
    codes, folds : ndarray of int of shape (n,)
        The number of the class and of the fold of each row.
    solve : callable
        ``solve(gram, rows, sizes)`` solves the problems of the pairs for the kernel matrix of some ``rows``, of which
        each class that occurs has ``sizes``.
    """
    k = int(codes.max()) + 1
    values, certificates = np.empty((k - 1, len(codes))), []
    for fold in range(FOLDS):
        out, rows = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        sizes = np.bincount(codes[rows], minlength=k)
        present = np.flatnonzero(sizes)
        of_pairs = np.empty((len(out), 0))
        if len(out) and len(present) > 1:
            answers = solve(gram.restrict(rows, rows), rows, sizes[present])
            expansion = join(answers)
            against = gram.restrict(out, rows[expansion.support])
            of_pairs = pair_values(multiplier(against), expansion, len(out))
            certificates.append(answers.certificates)
        for code in np.unique(codes[out]):
            mine = codes[out] == code
            values[:, out[mine]] = _against_others(of_pairs[mine], int(code), k, present).T
    return LeftOut(values, certificates)


def _against_others(of_pairs: Vector, code: int, k: int, present: Positions) -> Vector:
    """The values (m, k - 1) of rows of a class against each other class, from the pairs of the classes ``present``."""
    others = np.delete(np.arange(k), code)
    first, second = np.minimum(others, code), np.maximum(others, code)
    has_rows = np.zeros(k, dtype=bool)
    has_rows[present] = True
    # 1 where only the first class is present, -1 where only the second is.
    values = np.tile(has_rows[first].astype(np.float64) - has_rows[second], (len(of_pairs), 1))
    solved = has_rows[first] & has_rows[second]
    layout = PairLayout(np.ones(len(present), dtype=np.intp))
    numbers = layout.number(np.searchsorted(present, first[solved]), np.searchsorted(present, second[solved]))
    values[:, solved] = of_pairs[:, numbers]
    return values


def balanced(weights: Vector, bounds: Vector, sizes: NDArray[np.intp]) -> Vector:
    """Return ``weights`` (k - 1, n) that are nearly feasible with those of each pair of classes summing to zero.

    Those of the class of a pair that has more are made smaller in proportion: first the ones below their ``bounds``
    (n,), since a weight at its bound most often stays there. Laid out as by ``PairLayout(sizes)``.

    Examples
    --------
    >>> balanced(np.array([[1.0, 0.5, -1.0, -0.25]]), np.ones(4), np.array([2, 2])).tolist()
    [[1.0, 0.25, -1.0, -0.25]]
    """
    layout = PairLayout(sizes)
    size = np.abs(weights)
    free = size < bounds * (1.0 - 1e-12)
    own, other = layout.sums(size)
    movable, _ = layout.sums(np.where(free, size, 0.0))
    excess = np.maximum(own - other, 0.0)
    of_free = np.minimum(excess, movable)
    return weights * np.where(free, 1.0 - _ratio(of_free, movable), 1.0 - _ratio(excess - of_free, own - movable))


def _ratio(part: Vector, whole: Vector) -> Vector:
    """``part / whole``, and 0 where the whole is zero."""
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
