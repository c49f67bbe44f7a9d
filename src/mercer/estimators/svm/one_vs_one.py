"""From the answers of one-vs-one problems to scikit-learn's attributes, and from decision values to classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from mercer._types import Matrix, Vector
from mercer.engine import memory, threads
from mercer.engine.tiles import TILE
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.evaluated import EvaluatedGram
from mercer.gram.hold import capacity
from mercer.gram.protocol import GramMatrix
from mercer.kernels.plan import check_finite
from mercer.loops.tally import tally_pairs
from mercer.solvers.svm.pair_answers import PairAnswers, PairLayout

# Up to so many support vectors a class, a loop over the pairs is faster than a product for each class.
_TINY = 64
# Rows of a task of that loop: their values of a pair are in the L1 cache, and of all support vectors in L2.
_ROWS = 64
# The most memory that decision values of all pairs take at once.
_BLOCK = 256 * 2**20


@dataclass(frozen=True)
class JointExpansion:
    """The joint expansion of all pairs: which rows, their weights ``(k - 1, n_sv)``, and the offsets of the pairs.

    The row of a support vector of class i that holds its weight against class j is j - 1 if j > i, else j.
    """

    support: np.ndarray
    n_support: np.ndarray
    dual_coef: Vector
    intercept: Vector


@dataclass(frozen=True, eq=False)
class PairExpansion(KernelExpansion):
    """The functions of all pairs of classes over their support vectors, with scikit-learn's sign.

    Parameters
    ----------
    pairs : JointExpansion
        The same, positive for the first class of a pair.
    margins : ndarray of shape (k - 1, n_sv)
        Of the support vectors against the other classes.
    """

    pairs: JointExpansion = field(kw_only=True)
    margins: Vector = field(kw_only=True)

    def pair_values(self, gram: Gram | PrecomputedGram | EvaluatedGram) -> Matrix:
        """Decision values, (m, k (k - 1) / 2), positive for the first class of a pair."""
        return pair_values(multiplier(gram), self.pairs, gram.shape[0])

    def tally(self, gram: Gram | PrecomputedGram | EvaluatedGram, *, strict: bool) -> tuple[Vector, Vector]:
        """Votes and sums of decision values, (m, k) each; see :func:`tally_rows`."""
        return tally_rows(gram, self.pairs, strict=strict)

    def coefficients(self) -> Matrix:
        phi = self.feature_map()
        linear = replace(self.pairs, intercept=np.zeros_like(self.pairs.intercept))
        sign = -1.0 if len(self.pairs.n_support) == 2 else 1.0
        return sign * pair_values(self.feature_product(phi), linear, phi.n_output_features_).T

    def _squared_norms(self, gram: GramMatrix) -> tuple[Vector, Vector]:
        return squared_norms_of_pairs(gram, self.pairs)

    def _norms_without_rows(self) -> Vector:
        # Weights that sum to 0, or no offset: a'Ka is the sum of the sizes of the weights times their margins.
        terms = np.abs(self.dual_coef) * self.margins
        return np.sqrt(np.maximum(sums_of_pairs(terms, self.pairs.n_support), 0.0))


def join(answers: PairAnswers) -> JointExpansion:
    """Join the answers of all pairs of classes."""
    layout = answers.layout
    used = answers.beta.any(axis=0)
    n_support = np.add.reduceat(used, layout.starts[:-1], dtype=np.int32)
    return JointExpansion(np.flatnonzero(used), n_support, np.ascontiguousarray(answers.beta[:, used]), answers.offsets)


def pair_values(product: Callable[[slice, Vector], Vector], expansion: JointExpansion, m: int) -> Vector:
    """Decision values of all pairs, (m, k (k - 1) / 2), positive for the first class of the pair.

    ``product(part, V)`` is ``K(X, support[part]) @ V``: each class is multiplied by its own weights only.
    """
    k = len(expansion.n_support)
    layout = PairLayout(expansion.n_support)
    values = np.tile(expansion.intercept, (m, 1))
    if k == 2:
        # The weights of both classes belong to the one pair.
        every = slice(0, len(expansion.support))
        return values + product(every, expansion.dual_coef.T) if every.stop else values
    for i in range(k):
        part = layout.part(i)
        if part.start == part.stop:
            continue
        sums = product(part, expansion.dual_coef[:, part].T)
        values[:, layout.number(np.arange(i), i)] += sums[:, :i]
        values[:, layout.against_later(i)] += sums[:, i:]
    return values


def squared_norms_of_pairs(gram: GramMatrix, expansion: JointExpansion) -> tuple[Vector, Vector]:
    """``a'Ka`` of each pair over the matrix of its support vectors (n_sv, n_sv), and the size of its terms.

    A pair of classes has the weights of the first class against the second, and of the second against the first.
    """
    k = len(expansion.n_support)
    layout = PairLayout(expansion.n_support)
    squares, sizes = np.zeros((2, len(expansion.intercept)))
    lengths, product = np.sqrt(np.abs(gram.diagonal())), multiplier(gram)
    for i in range(k):
        part = layout.part(i)
        if part.start == part.stop:
            continue
        own = expansion.dual_coef[:, part]
        values = product(part, own.T)
        for j in (j for j in range(k) if j != i):
            pair, other = layout.number(min(i, j), max(i, j)), layout.part(j)
            # The row of a class that holds its weights against another one.
            mine, theirs = (j - 1 if j > i else j), (i - 1 if i > j else i)
            squares[pair] += own[mine] @ values[part, mine]
            squares[pair] += expansion.dual_coef[theirs, other] @ values[other, mine]
            sizes[pair] += np.abs(own[mine]) @ lengths[part]
    return squares, sizes**2


def sums_of_pairs(terms: Vector, n_support: np.ndarray) -> Vector:
    """The sum of each pair over terms (k - 1, n_sv), laid out as the weights of a :class:`JointExpansion`.

    Examples
    --------
    >>> sums_of_pairs(np.array([[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]]), np.array([1, 1, 1])).tolist()
    [3.0, 12.0, 48.0]
    """
    expansion = JointExpansion(np.arange(0), n_support, terms, np.zeros(len(n_support) * (len(n_support) - 1) // 2))
    return pair_values(lambda part, V: V.sum(axis=0)[None], expansion, 1)[0]


def tally(values: Vector, k: int, *, strict: bool) -> tuple[Vector, Vector]:
    """The votes for each class and the sums of its decision values, (m, k) each, from the values of all pairs.

    A value of zero is a vote for the second class of a pair if ``strict``, else for the first.
    """
    won, sums = np.zeros((2, len(values), k))
    layout = PairLayout(np.ones(k, dtype=np.intp))
    for i in range(k - 1):
        against = values[:, layout.against_later(i)]
        first = against > 0 if strict else against >= 0
        won[:, i] += first.sum(axis=1)
        won[:, i + 1 :] += ~first
        sums[:, i] += against.sum(axis=1)
        sums[:, i + 1 :] -= against
    return won, sums


def tally_rows(
    gram: Gram | PrecomputedGram | EvaluatedGram, expansion: JointExpansion, *, strict: bool
) -> tuple[Vector, Vector]:
    """What :func:`tally` returns for the rows of ``gram`` (m, n_sv), some rows at a time."""
    k, m = len(expansion.n_support), gram.shape[0]
    tiny = k > 2 and len(expansion.support) <= _TINY * k
    each = 16 * len(expansion.support) if tiny else 8 * len(expansion.intercept)
    # Whole tiles, so that the memory budget does not change the bits.
    of_tile = max(each, 1) * TILE
    step = max(capacity(of_tile, min(_BLOCK // of_tile, -(-m // TILE)), parts=4), 1) * TILE
    won, sums = np.zeros((2, m, k))
    for begin in range(0, m, step):
        rows = slice(begin, min(begin + step, m))
        part = gram if step >= m else gram.restrict(rows, None)
        with memory.reserve(each * (rows.stop - begin), "decision values of the pairs of classes"):
            if tiny:
                _tally_tiny(part, expansion, strict, won[rows], sums[rows])
            else:
                values = pair_values(multiplier(part), expansion, part.shape[0])
                won[rows], sums[rows] = tally(values, k, strict=strict)
    return won, sums


def multiplier(gram: GramMatrix) -> Callable[[slice, Vector], Vector]:
    """The ``product`` of :func:`pair_values` by a kernel matrix (m, n_sv)."""
    return lambda part, V: np.asarray(gram.restrict(None, part) @ V, dtype=np.float64)


def _tally_tiny(
    gram: Gram | PrecomputedGram | EvaluatedGram, expansion: JointExpansion, strict: bool, won: Vector, sums: Vector
) -> None:
    """Where classes have few support vectors, a loop over the pairs that keeps no value."""
    K = gram.block(None, None)
    if isinstance(gram, Gram):
        check_finite(K, gram.kernel)
    ends = np.cumsum(expansion.n_support)

    def task(rows: slice) -> Callable[[], None]:
        def add() -> None:
            columns = np.ascontiguousarray(K[rows].T, dtype=np.float64)
            of_class = np.zeros((2, len(ends), columns.shape[1]))
            tally_pairs(columns, expansion.dual_coef, ends, expansion.intercept, strict, *of_class)
            won[rows], sums[rows] = of_class[0].T, of_class[1].T

        return add

    threads.run([task(slice(begin, begin + _ROWS)) for begin in range(0, len(K), _ROWS)], gram.n_jobs)


def one_vs_rest(won: Vector, sums: Vector) -> Vector:
    """Votes of each class, (m, k), with ties broken by the sum of its decision values ``s`` as ``s / (3 |s| + 3)``."""
    return won + sums / (3.0 * (np.abs(sums) + 1.0))
