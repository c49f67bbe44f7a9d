"""Probabilities of the one-vs-one classifiers, from decision values of left-out rows."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Self

import numpy as np
import sklearn.svm
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from mercer._errors import warn_user
from mercer._types import CheckedRows, Matrix, Positions, Vector
from mercer.engine import memory
from mercer.engine.tiles import TILE, spans
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.certificates import STOPPED
from mercer.estimators.shared.sigmoid import fit_sigmoid
from mercer.estimators.svm.left_out import LeftOut
from mercer.estimators.svm.one_vs_one import PairExpansion, multiplier, pair_values
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.hold import capacity, evaluated
from mercer.solvers.svm.pair_answers import STATUSES, PairLayout

# Whether the installed scikit-learn has deprecated the parameter, which is 1.9 and later.
DEPRECATED = inspect.signature(sklearn.svm.SVC).parameters["probability"].default == "deprecated"
_LEAST = 1e-7
# The smallest step above one half for which both probabilities change.
_MORE = 2.0**-52
# The most memory for the linear systems that are solved together.
_BLOCK = 64 * 2**20
# Kernel matrices of up to this many bytes are evaluated once for all folds of several classes, because their small
# problems read nearly all entries.
_KEPT = 64 * 2**20


def evaluated_for_folds(gram: Gram | PrecomputedGram, classes: int) -> Gram | PrecomputedGram:
    """Return the kernel matrix for the fit and its folds, evaluated once if the problems of the pairs are small."""
    if isinstance(gram, Gram) and classes > 2 and gram.nbytes <= _KEPT:
        return evaluated(gram)
    return gram


def is_wanted(probability: Any) -> bool:
    """Whether the parameter requests probabilities; its default, ``"deprecated"``, does not."""
    return not isinstance(probability, str) and bool(probability)


def has_probabilities(learner: KernelEstimator) -> bool:
    """Whether the learner has ``predict_proba``; this depends on its parameter only, also before the fit."""
    if is_wanted(learner.probability):
        return True
    raise AttributeError(
        f"{type(learner).__name__} has predict_proba only with probability=True; {type(learner).__name__}(...)"
        ".calibrated() is a classifier with probabilities whose predict always agrees with them."
    )


def warn_of_parameter(learner: str, probability: Any) -> None:
    """Warn if the parameter is given at all, as scikit-learn does."""
    if DEPRECATED and not isinstance(probability, str):
        warn_user(
            f"The `probability` parameter of {learner} was deprecated, as in scikit-learn. Use {learner}(...)"
            ".calibrated(), a classifier with probabilities that agree with its predict, or leave it out.",
            FutureWarning,
        )


def warn_of_attribute(learner: str, name: str) -> None:
    """Warn that ``probA_`` or ``probB_`` was read, as scikit-learn does."""
    if DEPRECATED:
        warn_user(
            f"Attribute `{name}` was deprecated with the parameter probability, as in scikit-learn; "
            f"{learner}(...).calibrated() gives probabilities.",
            FutureWarning,
        )


def sigmoid_slopes_of(model: KernelEstimator) -> Vector:
    """A of the sigmoid of each pair of classes, (k (k - 1) / 2,); empty without ``probability=True``.

    ``1 / (1 + exp(A f + B))`` is the probability of the first class, where positive f means the first class.
    """
    warn_of_attribute(type(model).__name__, "probA_")
    return np.asarray(model._probA)


def sigmoid_offsets_of(model: KernelEstimator) -> Vector:
    """B of the sigmoid of each pair of classes, (k (k - 1) / 2,); empty without ``probability=True``."""
    warn_of_attribute(type(model).__name__, "probB_")
    return np.asarray(model._probB)


@dataclass(frozen=True, eq=False)
class PairSigmoids:
    """A and B of the sigmoid of each pair of classes, (p,) each; empty without ``probability=True``."""

    A: Vector
    B: Vector

    @classmethod
    def fit(cls, learner: str, rows: LeftOut, codes: Positions, weight: Vector) -> Self:
        """Fit sigmoids to decision values of left-out rows, sorted by class; warn if folds were stopped early."""
        layout = PairLayout(np.bincount(codes))
        sigmoids = []
        for pair in combinations(range(layout.k), 2):
            first = np.repeat([True, False], layout.sizes[list(pair)])
            sigmoids.append(fit_sigmoid(layout.take(rows.values, pair), first, weight[layout.rows(pair)]))
        stopped = [STATUSES.index(status) for status in STOPPED]
        early = sum(int(np.isin(part.status, stopped).sum()) for part in rows.certificates)
        if early:
            warn_user(
                f"{learner}: {early} of {sum(map(len, rows.certificates))} problems of the folds for probabilities "
                "were stopped before tol was met; raise max_iter, loosen tol or lower C.",
                ConvergenceWarning,
            )
        return cls(*np.array(sigmoids).T.copy())

    def predict(self, f: PairExpansion, X: CheckedRows, *, agree: bool) -> Matrix:
        """Return class probabilities (m, k) at new rows; for two classes, ``agree`` with the decision values."""
        gram, k = f.gram(X), len(f.pairs.n_support)
        m, each = gram.shape[0], 24 * (k + 1) ** 2
        # Whole tiles, so that the memory budget does not change the bits.
        step = max(capacity(each * TILE, _BLOCK // (each * TILE), parts=8), 1) * TILE
        result = np.empty((m, k))
        for rows in spans(m, step):
            part = gram if step >= m else gram.restrict(rows, None)
            with memory.reserve(each * part.shape[0], "probabilities of the pairs of classes"):
                result[rows] = self._of_values(pair_values(multiplier(part), f.pairs, part.shape[0]), k, agree)
        return result

    def _of_values(self, values: Matrix, k: int, agree: bool) -> Matrix:
        """Probabilities (m, k) from the decision values of all pairs (m, k (k - 1) / 2)."""
        first = np.clip(expit(-(self.A * values + self.B)), _LEAST, 1.0 - _LEAST)
        if k > 2:
            return couple(first, k)
        if agree:
            wins = values > 0
            first[wins] = np.maximum(first[wins], 0.5 + _MORE)
            first[~wins] = np.minimum(first[~wins], 0.5 - _MORE)
        return np.column_stack([first[:, 0], 1.0 - first[:, 0]])


def couple(first: Vector, k: int) -> Vector:
    r"""Return probabilities of ``k`` classes, (m, k), from those of the pairs of classes.

    Minimizes :math:`\sum_i \sum_{j \ne i} (r_{ji} p_i - r_{ij} p_j)^2` over p that sum to 1, by solving its linear
    optimality conditions; the solution is never negative.

    Parameters
    ----------
    first : ndarray of shape (m, k (k - 1) / 2)
        :math:`r_{ij}`: the probability of class i in the pair i < j, in the order (0, 1), (0, 2), ..., (1, 2), ...
    k : int
        The number of classes.

    References
    ----------
    Wu, Lin and Weng (2004), "Probability estimates for multi-class classification by pairwise coupling", equation (21).

    Examples
    --------
    >>> couple(np.array([[0.5, 0.5, 0.5], [0.9, 0.9, 0.5]]), 3).round(3).tolist()
    [[0.333, 0.333, 0.333], [0.818, 0.091, 0.091]]
    """
    pairs = np.triu_indices(k, 1)
    r = np.zeros((len(first), k, k))
    r[:, pairs[0], pairs[1]] = np.clip(first, _LEAST, 1.0 - _LEAST)
    r[:, pairs[1], pairs[0]] = 1.0 - r[:, pairs[0], pairs[1]]
    system = np.zeros((len(first), k + 1, k + 1))
    system[:, :k, :k] = -r * r.transpose(0, 2, 1)
    system[:, np.arange(k), np.arange(k)] = np.square(r).sum(axis=1)
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((len(first), k + 1, 1))
    right[:, k] = 1.0
    p = np.maximum(np.linalg.solve(system, right)[:, :k, 0], np.finfo(np.float64).eps)
    return p / p.sum(axis=1, keepdims=True)
