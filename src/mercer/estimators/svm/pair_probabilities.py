"""Probabilities of the classifiers by pairs of classes, from decision values of rows that were left out."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from itertools import combinations
from typing import Any

import numpy as np
import sklearn.svm
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if

from mercer._errors import warn_user
from mercer._types import Positions, Vector
from mercer.engine import memory
from mercer.engine.tiles import TILE, spans
from mercer.estimators.svm.left_out import Solver, deal_folds, values_of_rows_left_out
from mercer.estimators.svm.one_vs_one import JointExpansion, multiplier, pair_values
from mercer.gram import Gram, PrecomputedGram
from mercer.gram.hold import evaluated
from mercer.loops.sigmoid import fit_two_parameters
from mercer.solvers.solution import Status
from mercer.solvers.svm.pair_answers import STATUSES, PairLayout

# Whether the installed scikit-learn has deprecated the parameter, which is 1.9 and later.
DEPRECATED = inspect.signature(sklearn.svm.SVC).parameters["probability"].default == "deprecated"
_LEAST = 1e-7
# Above one half by the least that is above it in both classes.
_MORE = 2.0**-52
# The most memory that the linear systems of some rows take at once.
_BLOCK = 64 * 2**20
# Kernel matrices of up to so many bytes are evaluated once for the folds of several classes, whose small problems read
# nearly all of their parts of it.
_KEPT = 64 * 2**20


def evaluated_for_folds(gram: Gram | PrecomputedGram, classes: int) -> Gram | PrecomputedGram:
    """The kernel matrix of the fit and its folds, evaluated once where the problems of the pairs are small."""
    if isinstance(gram, Gram) and classes > 2 and gram.nbytes <= _KEPT:
        return evaluated(gram)
    return gram


def is_wanted(probability: Any) -> bool:
    """Whether the parameter asks for probabilities; its default, ``"deprecated"``, does not."""
    return not isinstance(probability, str) and bool(probability)


def _has_probabilities(learner: Any) -> bool:
    """Whether the methods are there, which the parameter alone decides, also before the fit."""
    if is_wanted(learner.probability):
        return True
    raise AttributeError(
        f"{type(learner).__name__} has predict_proba only with probability=True; {type(learner).__name__}(...)"
        ".calibrated() is a classifier with probabilities whose predict always agrees with them."
    )


class PairProbabilities(ABC):
    """What :class:`mercer.estimators.svm.pair_classifier.PairClassifier` needs for probabilities."""

    probability: Any
    random_state: Any
    classes_: np.ndarray
    class_weight_: Vector
    _probA: Vector
    _probB: Vector

    @property
    @abstractmethod
    def _expansion(self) -> JointExpansion: ...

    @abstractmethod
    def _gram_to_support(self, X: Any) -> Gram | PrecomputedGram: ...

    @available_if(_has_probabilities)
    def predict_proba(self, X: Any) -> Vector:
        """Return the probability of each class for the rows of ``X``, (m, k), in the order of ``classes_``.

        Each pair of classes has a sigmoid of its decision value, fitted to rows that were left out; more than two
        classes are coupled by least squares.

        Raises
        ------
        NotFittedError
            If the classifier was fitted with ``probability=False``.
        """
        gram = self._gram_to_support(X)
        if not len(self._probA):
            raise NotFittedError(
                f"predict_proba is not available when fitted with probability=False; call fit of this "
                f"{type(self).__name__} again, with probability=True."
            )
        k, m = len(self.classes_), gram.shape[0]
        each = 24 * (k + 1) ** 2
        # Whole tiles, so that the memory budget does not change the bits.
        step = max(min(_BLOCK, memory.budget() // 8) // each // TILE, 1) * TILE
        result = np.empty((m, k))
        for rows in spans(m, step):
            part = gram if step >= m else gram.restrict(rows, None)
            with memory.reserve(each * part.shape[0], "probabilities of the pairs of classes"):
                result[rows] = self._probabilities(pair_values(multiplier(part), self._expansion, part.shape[0]))
        return result

    @available_if(_has_probabilities)
    def predict_log_proba(self, X: Any) -> Vector:
        """Return the logarithm of :meth:`predict_proba`, (m, k)."""
        return np.log(self.predict_proba(X))

    @property
    def probA_(self) -> Vector:
        """A of the sigmoid of each pair of classes, (k (k - 1) / 2,); empty without ``probability=True``.

        ``1 / (1 + exp(A f + B))`` is the probability of the first class, where positive f stand for the first class.
        """
        return self._sigmoids("probA_")

    @property
    def probB_(self) -> Vector:
        """B of the sigmoid of each pair of classes, (k (k - 1) / 2,); empty without ``probability=True``."""
        return self._sigmoids("probB_")

    def _sigmoids(self, name: str) -> Vector:
        if DEPRECATED:
            warn_user(
                f"Attribute `{name}` was deprecated with the parameter probability, as in scikit-learn; "
                f"{type(self).__name__}(...).calibrated() gives probabilities.",
                FutureWarning,
            )
        value: Vector = getattr(self, "_" + name.removesuffix("_"))
        return value

    def _warn_of_probability(self) -> None:
        """Warn under the condition under which scikit-learn does: that the parameter is given at all."""
        name = type(self).__name__
        if DEPRECATED and not isinstance(self.probability, str):
            warn_user(
                f"The `probability` parameter of {name} was deprecated, as in scikit-learn. Use {name}(...)"
                ".calibrated(), a classifier with probabilities that agree with its predict, or leave it out.",
                FutureWarning,
            )

    def _learn_probabilities(
        self, gram: Gram | PrecomputedGram, codes: Positions, weight: Vector, solve: Solver
    ) -> None:
        """Set the sigmoids of all pairs of classes, for rows sorted by class; see ``values_of_rows_left_out``."""
        self._probA, self._probB = np.empty((2, 0))
        if not is_wanted(self.probability):
            return
        left_out = values_of_rows_left_out(gram, codes, deal_folds(codes, check_random_state(self.random_state)), solve)
        layout = PairLayout(np.bincount(codes))
        sigmoids = []
        for pair in combinations(range(layout.k), 2):
            first = np.repeat([True, False], layout.sizes[list(pair)])
            sigmoids.append(fit_sigmoid(layout.take(left_out.values, pair), first, weight[layout.rows(pair)]))
        self._probA, self._probB = np.array(sigmoids).T.copy()
        stopped = [STATUSES.index(status) for status in (Status.iteration_limit, Status.stalled)]
        early = sum(int(np.isin(part.status, stopped).sum()) for part in left_out.certificates)
        if early:
            warn_user(
                f"{type(self).__name__}: {early} of {sum(map(len, left_out.certificates))} problems of the folds for "
                "probabilities were stopped before tol was met; raise max_iter, loosen tol or lower C.",
                ConvergenceWarning,
            )

    def _probabilities(self, values: Vector) -> Vector:
        """Probabilities (m, k) from the decision values of all pairs (m, k (k - 1) / 2)."""
        first = np.clip(expit(-(self._probA * values + self._probB)), _LEAST, 1.0 - _LEAST)
        k = len(self.classes_)
        if k > 2:
            return couple(first, k)
        if (self.class_weight_ == self.class_weight_[0]).all():
            wins = values > 0
            first[wins] = np.maximum(first[wins], 0.5 + _MORE)
            first[~wins] = np.minimum(first[~wins], 0.5 - _MORE)
        return np.column_stack([first[:, 0], 1.0 - first[:, 0]])


def fit_sigmoid(values: Vector, positive: NDArray[np.bool_], weight: Vector) -> tuple[float, float]:
    r"""Fit :math:`p(f) = 1 / (1 + e^{A f + B})`, the probability of a positive row, to decision values.

    Minimizes the cross entropy with Platt's smoothed targets, :math:`(n_+ + 1) / (n_+ + 2)` for positive rows and
    :math:`1 / (n_- + 2)` for others, by Newton's method with a line search.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Decision values f of rows that the classifier was not fitted to.
    positive : ndarray of bool of shape (n,)
        Whether the rows are positive.
    weight : ndarray of shape (n,)
        Weight of each row, as a number of repetitions.

    Returns
    -------
    tuple of float
        A and B.

    References
    ----------
    Platt (2000), "Probabilistic outputs for support vector machines"; Lin, Lin and Weng (2007), "A note on Platt's
    probabilistic outputs for support vector machines", algorithm 1.

    Examples
    --------
    >>> f = np.array([-2.0, -1.0, 1.0, 2.0])
    >>> A, B = fit_sigmoid(f, f > 0, np.ones(4))
    >>> A < 0, abs(B) < 1e-9
    (True, True)
    """
    above, below = float(weight[positive].sum()), float(weight[~positive].sum())
    target = np.where(positive, (above + 1.0) / (above + 2.0), 1.0 / (below + 2.0))
    start = float(np.log((below + 1.0) / (above + 1.0)))
    A, B = fit_two_parameters(np.asarray(values, dtype=np.float64), target, np.asarray(weight, np.float64), 0.0, start)
    return float(A), float(B)


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
