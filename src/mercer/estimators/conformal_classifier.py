"""Classification by any learner, with probabilities and with sets of classes whose coverage is guaranteed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from mercer._documentation import documented
from mercer._errors import DataError
from mercer._types import Matrix, RowsLike
from mercer.data.fitted import Fitted
from mercer.data.objects import short
from mercer.data.statements import Count, Is, Labels
from mercer.estimators.shared.cross_fit import CrossFitClasses
from mercer.estimators.shared.intervals import PredictionSets
from mercer.estimators.shared.splits import checked_rows_and_targets, splits_of
from mercer.estimators.shared.whole_rows import refuse_parts


@refuse_parts
@documented
class ConformalClassifier(ClassifierMixin, BaseEstimator):
    r"""A classifier with sets that contain the class of a new row, whatever the distribution is, and probabilities.

    Parameters
    ----------
    estimator : classifier
        Of Mercer or of scikit-learn, with ``predict_proba`` or ``decision_function``; copies of it are fitted.
    cv : int or float, default=5
        The number of parts of the rows, k: CV+, with k fits more. Or the share of the rows that are held out, between 0
        and 1: split conformal prediction, whose one fit is to the others.
    random_state : int, RandomState or None, default=0
        Seed of the parts.

    Attributes
    ----------
    estimator_ : classifier
        The fit to all rows; with held-out rows, to the others.
    cross_fit_ : CrossFitClasses
        The fits without a part, and how well the rows that they have not seen conform to their classes.
    classes_ : ndarray of shape (k,)
        The classes.
    n_features_in_ : int
        Number of columns, if X has columns.

    References
    ----------
    Y. Romano, M. Sesia and E. J. Candès, "Classification with valid and adaptive coverage", NeurIPS (2020), theorem 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ConformalClassifier(SVC()).fit(X, y)
    >>> model.predict_set(X[[0, 77]], coverage=0.97).labels()
    [[0], [1, 2]]
    >>> model.predict_proba(X[:2]).argmax(axis=1).tolist()
    [0, 0]
    """

    _fitted = Fitted(
        {"estimator_": Is(BaseEstimator), "cross_fit_": Is(CrossFitClasses), "classes_": Labels("k", least=2)},
        {"n_features_in_": Count("d", least=1), "feature_names_in_": Labels("d", texts=True)},
        rules=(("its parts do not match", lambda model: model.cross_fit_.fits(model.estimator_, model.classes_)),),
    )

    def __init__(self, estimator: Any, *, cv: int | float = 5, random_state: Any = 0) -> None:
        self.estimator = estimator
        self.cv = cv
        self.random_state = random_state

    def fit(self, X: RowsLike, y: ArrayLike) -> Self:
        """Fit copies of the estimator without parts of the rows, and one to all.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or other rows, n of them
        y : array-like of shape (n,)
            Classes.

        Raises
        ------
        DataError
            If y has several columns, missing labels or one class alone, or there are fewer rows than parts.
        ParameterError
            If ``cv`` is neither a number of parts nor a share, or the kernel is precomputed.
        """
        X, y = checked_rows_and_targets(self, X, y)
        self.classes_ = np.unique(y)
        if len(self.classes_) < 2:
            raise DataError(f"y has one class alone, {short(self.classes_[0])}; a classifier needs two.")
        splits = splits_of(self.cv, self.random_state, len(y), y)
        self.cross_fit_ = CrossFitClasses.of(self.estimator, X, y, self.classes_, splits)
        self.estimator_ = self.cross_fit_.models[0] if len(splits) == 1 else clone(self.estimator).fit(X, y)
        return self

    def predict(self, X: RowsLike) -> np.ndarray:
        """Return the classes that ``estimator_`` predicts, shape (m,).

        Parameters
        ----------
        X : rows as in ``fit``, m of them
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    def predict_proba(self, X: RowsLike) -> Matrix:
        """Return probabilities of the classes, shape (m, k): those of the estimator, or else sigmoids of its values.

        Parameters
        ----------
        X : rows as in ``fit``, m of them
        """
        check_is_fitted(self, "estimator_")
        if hasattr(self.estimator_, "predict_proba"):
            return np.asarray(self.estimator_.predict_proba(X))
        return self.cross_fit_.probabilities(self.estimator_, X, self.classes_)

    def predict_set(self, X: RowsLike, coverage: float = 0.9) -> PredictionSets:
        """Return sets of classes that contain those of new rows.

        Parameters
        ----------
        X : rows as in ``fit``, m of them
        coverage : float, default=0.9
            The share of new rows whose class the sets are to contain, between 0 and 1.

        Returns
        -------
        PredictionSets
            ``members`` of shape (m, k). Each set contains the predicted class. ``guaranteed`` is the coverage for
            held-out rows, and for k parts a little less than ``2 * coverage - 1``.

        Raises
        ------
        ParameterError
            If the coverage is not between 0 and 1.
        """
        check_is_fitted(self, "cross_fit_")
        return self.cross_fit_.sets(X, self.classes_, self.predict(X), coverage)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
