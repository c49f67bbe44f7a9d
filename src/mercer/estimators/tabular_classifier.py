"""Classification on a table of any columns, with nothing to choose."""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp, ndtri
from sklearn.base import ClassifierMixin

from mercer._types import Integers, Matrix, Positions, RowsLike, Vector
from mercer.data.column_encoder import ColumnEncoder
from mercer.data.column_features import FARTHEST, UTMOST
from mercer.data.fitted import Fitted
from mercer.data.statements import Floats, Is, Labels
from mercer.engine import memory
from mercer.estimators.kernel_logistic_regression import KernelLogisticRegression
from mercer.estimators.shared.expansion import KernelExpansion
from mercer.estimators.shared.labels import check_labels, class_factors, encoded
from mercer.estimators.tabular.base import TabularModel
from mercer.estimators.tabular.new_gaps import NewGaps
from mercer.estimators.tabular.penalty import choose_cost
from mercer.gram import Gram
from mercer.kernels import Kernel

# An encoder, and rows as its features.
_Encoding = tuple[ColumnEncoder, Any]
# Classes whose targets differ by more in variance have a second kernel, in which they count alike.
_UNEQUAL = 2.0
# Scores of numbers are cut off for this share of the rarest class at most, which may be the end of a column.
_CUT_OFF = 0.25


class TabularClassifier(ClassifierMixin, TabularModel):
    r"""Classification on a data frame or array, with nothing to choose: labels, their probabilities, and relevance.

    Kernel logistic regression with the kernel of :class:`TabularRegressor`: a smooth term, a rough one, and one for
    each column of text, with a length scale for each column in each, or above 100 columns for those that are about
    equally associated with the classes. The length scales and the shares of the terms maximise the evidence of a
    Gaussian process for targets of 1 for a class and -1 for the others, summed over the classes. In this sum a class of
    few rows counts little. Where classes differ much in size, a second search counts all alike, and the kernel is the
    mean of both where left-out rows have the smaller loss with it. That of the second search compares scores of numbers
    that are cut off farther out than 2.5 where a class has fewer than one row in 40: at no more than a quarter of its
    share. The penalty C has the least log loss in left-out rows, in five folds or one by one of at most 20 rows; where
    a class has fewer than 30 rows, which say little of C, it is also drawn to what the evidence expects.

    Parameters
    ----------
    kinds : dict of str to {"number", "category", "date", "text"}, optional
        Kinds of columns that are not what they seem, such as numbers that are codes of categories. The columns of an
        array are called x0, x1, ... By default text is a number where at least 95 % of the entries are numbers in
        digits or words such as NA; digits with leading zeros are categories. Other text is a category where values
        repeat, and text where more than half of over 20 values differ, or where sentences are seldom repeated.
    search_rows : int, default=1500
        Most rows by which the kernel and the penalty are learnt, drawn at random with the classes in their shares; the
        fit then uses all.
    max_rows : int, optional
        Most rows that the fit uses, drawn likewise. None for as many as the memory budget allows, at most 20,000.
        Where rows are left out, a warning and ``certificate_.storage`` say so.
    class_weight : dict or "balanced", optional
        Factor of each class's probability, after which probabilities are divided by their sum, as if the class had so
        many times its rows: the kernel and the fit stay the same. ``"balanced"`` counts all classes alike, so that rare
        ones are predicted too; a dict has the costs of missing a class.
    warm_start : bool, default=False
        Whether another call of ``fit`` begins the search for the kernel where the previous one ended, which takes
        fewer evaluations on similar rows.
    random_state : int, RandomState or None, default=0
        Seed of the draws.
    n_jobs : int, optional
        Number of threads; None for all cores. The result is bitwise the same for any number.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The classes, sorted.
    class_weight_ : ndarray of shape (k,)
        The factors of the classes, if there are any.
    model_ : KernelLogisticRegression
        The fitted classifier, on encoded rows; its ``C`` is the one that was chosen.
    encoder_ : ColumnEncoder
        The fitted encoding of the columns.
    kinds_ : dict of str to str
        What each column was taken for.
    kernel_ : Kernel
        The learnt kernel, on encoded rows.
    noise_ : float
        Variance of the noise of the targets in the search, as a share of their variance.
    gap_noise_ : ndarray of shape (g,)
        For each column with missing values, the variance that the search gave to a row without a value there.
    relevance_ : ndarray of shape (n_features_in_,)
        For each column, how much the decision values f change without it, relative to their variance:
        :math:`\mathrm E (f(x) - f(x'))^2 / (2 \operatorname{Var} f)`, where x' is x with that column from another row.
        It is about 1 at most for columns that are independent; those of columns that act together overlap.
    search_ : Search
        The search for the parameters of the kernel; the first one where there are two.
    n_rows_ : int
        Number of different rows that were learnt from.
    certificate_ : Certificate
        That of the logistic regression; its iterations include the evaluations of ``search_``.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has names that are all texts.

    See Also
    --------
    TabularRegressor : The same for numbers.
    KernelLogisticRegression : With a kernel of your choice.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, "Gaussian Processes for Machine Learning" (2006), section 6.5, for
    regression on targets of 1 and -1; C. Elkan, "The foundations of cost-sensitive learning" (2001), for the factors of
    classes.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from mercer import TabularClassifier
    >>> rng = np.random.default_rng(0)
    >>> homes = pd.DataFrame({"size": rng.uniform(40, 140, 80), "town": rng.choice(["Ulm", "Zug"], 80)})
    >>> label = np.where(homes["size"] > np.where(homes["town"] == "Zug", 60, 100), "expensive", "cheap")
    >>> model = TabularClassifier().fit(homes, label)
    >>> model.predict(pd.DataFrame({"size": [80.0, 80.0], "town": ["Ulm", "Zug"]})).tolist()
    ['cheap', 'expensive']
    """

    # A label says less about a column than a number does: targets of 1 and -1 are not normal, and fit noise sooner.
    _deviation = 0.25
    # Without noise the process goes through every label, and the length scales fit the rows that contradict others.
    _least_noise = 0.03
    _fitted = Fitted(
        {"model_": Is(KernelLogisticRegression), "classes_": Labels("k", least=2)},
        {"class_weight_": Floats("k", least=float(np.finfo(np.float64).tiny))},
        rules=(("classes differ from those of the model", lambda m: np.array_equal(m.classes_, m.model_.classes_)),),
    )

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        search_rows: int = 1500,
        max_rows: int | None = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.kinds = kinds
        self.search_rows = search_rows
        self.max_rows = max_rows
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the encoding, the kernel and the penalty, and fit the logistic regression.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (n, d)
            Columns of numbers, categories, dates and text; values may be missing.
        y : array-like of shape (n,)
            Labels.
        sample_weight : float or array-like of shape (n,), optional
            Weight of each row, as a number of repetitions.

        Returns
        -------
        self

        Raises
        ------
        DataError, ParameterError, MemoryBudgetError
            If the table or a parameter cannot be used, a label is missing, there are fewer than two classes, or even
            the search exceeds the memory budget.

        Warns
        -----
        MercerWarning
            If rows are left out.
        """
        start_time = time.perf_counter()
        self._check_parameters()
        X = self._check_table(X, reset=True)
        name = type(self).__name__
        X, y, weights = self._with_weights(X, check_labels(name, y, len(X)), sample_weight)
        self.classes_, codes = encoded(name, y)
        self.__dict__.pop("class_weight_", None)
        if self.class_weight is not None:
            totals = np.ones(len(y)) if weights is None else weights
            self.class_weight_ = class_factors(self.class_weight, self.classes_, codes, totals)
        with memory.track() as account:
            features, y, weights, kept = self._encode(X, y, weights, farthest=_farthest(y, weights))
            codes = encoded(name, y)[1]
            rows, random = self._kept_rows(len(y), codes)
            kernel, cost, features = self._choose(self._encodings(X, features, kept), codes, rows, weights)
            used = np.sort(rows)
            self.model_ = KernelLogisticRegression(C=cost, kernel=kernel, n_jobs=self.n_jobs)
            self.model_.fit(features[used], y[used], None if weights is None else weights[used])
            self.relevance_ = self._relevance(self.model_.decision_function, features, random)
        self.certificate_ = self._certified(len(y), time.perf_counter() - start_time, account.peak)
        return self

    def _encodings(self, X: Any, features: Any, kept: Positions) -> tuple[_Encoding, _Encoding]:
        """With scores of numbers that are cut off where they are by default, and as they are; the same in most tables.

        ``features`` are the ``kept`` rows of X in the encoding as it is.
        """
        usual = as_it_is = (self.encoder_, features)
        if self.encoder_.farthest > FARTHEST:
            encoder = self.encoder_.cut_off(FARTHEST)
            usual = (encoder, encoder.transform(X)[kept])
        return usual, as_it_is

    def _choose(
        self, encodings: tuple[_Encoding, _Encoding], codes: Positions, rows: Positions, weights: Vector | None
    ) -> tuple[Kernel, float, Any]:
        """The kernel and the penalty that some rows choose, and the features they are for; sets ``encoder_``.

        In the evidence a class counts by the variance of its targets, and one of few rows next to nothing. Where
        classes differ much in it, a second search gives them the same, and the mean of both kernels is taken where
        left-out rows have the smaller loss with it: one set of length scales is not right for all classes. What is rare
        may also be at the end of a column, so that this kernel compares scores that are cut off farther out.
        """
        (self.encoder_, features), (far_encoder, far) = encodings
        targets = _contrasts(codes, len(self.classes_), weights)
        kernel = self._learn(features, targets, rows, weights).kernel
        few = rows[: self.search_rows]
        cost, loss = self._cost(kernel, features, codes, few, weights)
        variances = np.average(np.square(targets), axis=0, weights=weights)
        if variances.max() <= _UNEQUAL * variances.min():
            return kernel, cost, features
        other = copy.copy(self)
        # The parameters of the other search are not a start for this one.
        other.__dict__.pop("search_", None)
        alike = other._learn(far, targets / np.sqrt(variances), rows, weights).kernel
        own, others = (float(np.mean(k.diagonal(far[few]))) for k in (kernel, alike))
        both = 0.5 * kernel + (0.5 * own / others) * alike
        other_cost, other_loss = self._cost(both, far, codes, few, weights)
        if other_loss >= loss:
            return kernel, cost, features
        self.encoder_ = far_encoder
        return both, other_cost, far

    def _cost(
        self, kernel: Kernel, features: Any, codes: Positions, rows: Positions, weights: Vector | None
    ) -> tuple[float, float]:
        """The penalty that some rows choose, and their loss when they are left out."""
        with memory.reserve(8 * len(rows) ** 2, "the kernel matrix of the rows of the search"):
            K = Gram(kernel, features[rows], dtype=np.float64, n_jobs=self.n_jobs).dense()
            variance = float(np.mean(np.diagonal(K)))
            K /= variance
            counts = None if weights is None else weights[rows]
            cost, loss = choose_cost(K, codes[rows], self.n_jobs, weights=counts, variance=variance)
            return cost / variance, loss

    def decision_function(self, X: RowsLike) -> Matrix:
        """Return decision values.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)

        Returns
        -------
        ndarray of shape (m,) or (m, k)
            For two classes (m,), the logarithm of the odds of ``classes_[1]``; else (m, k).
        """
        features, gaps = self._encoded(X)
        values = self.model_.decision_function(features)
        if gaps is not None:
            logarithms = self._averaged_logarithms(gaps)
            values[gaps.rows] = logarithms[:, 1] - logarithms[:, 0] if values.ndim == 1 else logarithms
        return values + self._added[0] if values.ndim == 1 else values + self._added

    @property
    def _added(self) -> Vector:
        """What the factors of the classes add to each decision value, (1,) or (k,)."""
        added = np.log(self.class_weight_) if self._has_factors else np.zeros(len(self.classes_))
        return added[1:] - added[:1] if len(added) == 2 else added

    @property
    def _has_factors(self) -> bool:
        return hasattr(self, "class_weight_")

    def _averaged(self, gaps: NewGaps) -> Matrix:
        """Probabilities of rows with new gaps, over what the entries may be."""
        return np.asarray(gaps.predicted(self.model_.predict_proba).mean(axis=0))

    def _averaged_logarithms(self, gaps: NewGaps) -> Matrix:
        return np.asarray(np.log(np.maximum(self._averaged(gaps), np.finfo(float).tiny)))

    @property
    def _training_features(self) -> Any:
        return self.model_.X_fit_

    @property
    def _expansion(self) -> KernelExpansion:
        functions = self.model_._expansion
        return dataclasses.replace(functions, offsets=functions.offsets + self._added)

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)
            Categories that were not seen in training are allowed. A number or date that is missing where none was in
            training is averaged over those of training rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        return self.predict_with_proba(X)[0]

    def predict_proba(self, X: RowsLike) -> Matrix:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)

        Returns
        -------
        ndarray of shape (m, k)
            Each row sums to one.
        """
        return self.predict_with_proba(X)[1]

    def predict_with_proba(self, X: RowsLike) -> tuple[np.ndarray, Matrix]:
        """Return the most probable class of each row, and the probabilities of all, in one pass over the rows.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)

        Returns
        -------
        labels : ndarray of shape (m,)
            As from :meth:`predict`.
        probabilities : ndarray of shape (m, k)
            As from :meth:`predict_proba`.
        """
        features, gaps = self._encoded(X)
        probabilities = self.model_.predict_proba(features)
        if gaps is not None:
            probabilities[gaps.rows] = self._averaged(gaps)
        if self._has_factors:
            probabilities *= self.class_weight_
            probabilities /= probabilities.sum(axis=1, keepdims=True)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)]), probabilities

    def predict_log_proba(self, X: RowsLike) -> Matrix:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : pandas.DataFrame or array-like of shape (m, d)

        Returns
        -------
        ndarray of shape (m, k)
        """
        features, gaps = self._encoded(X)
        logarithms = self.model_.predict_log_proba(features)
        if gaps is not None:
            logarithms[gaps.rows] = self._averaged_logarithms(gaps)
        if self._has_factors:
            logarithms += np.log(self.class_weight_)
            logarithms -= logsumexp(logarithms, axis=1, keepdims=True)
        return logarithms


def _farthest(y: np.ndarray, weights: Vector | None) -> float:
    """Where normal scores may be cut off: farther out for classes that are rare among several.

    >>> [round(_farthest(np.minimum(np.arange(n) // 3, 2), None), 2) for n in (30, 300, 3000)]
    [2.5, 2.81, 3.48]
    """
    counts = np.bincount(np.unique(y, return_inverse=True)[1], weights)
    if len(counts) == 2:
        return FARTHEST
    return float(np.clip(-ndtri(_CUT_OFF * counts.min() / counts.sum()), FARTHEST, UTMOST))


def _contrasts(codes: Integers, k: int, weights: Vector | None = None) -> Matrix:
    """Targets 1 for a class and -1 for the others, one column for two classes, centred, with a common scale."""
    targets = np.where(codes[:, None] == np.arange(k), 1.0, -1.0)[:, 1 if k == 2 else 0 :]
    targets -= np.average(targets, axis=0, weights=weights)
    squares = np.square(targets).mean(axis=1)
    return np.asarray(targets / np.sqrt(np.average(squares, weights=weights)))
