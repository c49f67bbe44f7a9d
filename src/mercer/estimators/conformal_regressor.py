"""Regression by any learner, with intervals whose coverage is guaranteed."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import check_is_fitted

from mercer._documentation import documented
from mercer._types import RowsLike, Vector
from mercer.data.fitted import Fitted
from mercer.data.statements import Count, Is, Labels
from mercer.estimators.shared.cross_fit import CrossFitNumbers
from mercer.estimators.shared.intervals import Intervals
from mercer.estimators.shared.splits import checked_rows_and_targets, splits_of
from mercer.estimators.shared.whole_rows import refuse_parts


@refuse_parts
@documented
class ConformalRegressor(RegressorMixin, BaseEstimator):
    r"""A regressor with intervals that contain new targets, whatever the distribution is: CV+ or split conformal.

    ``KernelRidge`` and ``GaussianProcessRegressor`` need no such wrapper: their ``interval`` is exact leave-one-out.
    Over landmarks it leaves the landmarks as they are, and fits to folds choose them anew: only the latter guarantee
    coverage for landmarks that are chosen among the rows.

    Parameters
    ----------
    estimator : regressor
        Of Mercer or of scikit-learn; copies of it are fitted.
    cv : int or float, default=5
        The number of parts of the rows, k: CV+, with k fits more. Or the share of the rows that are held out, between 0
        and 1: split conformal prediction, whose one fit is to the others.
    random_state : int, RandomState or None, default=0
        Seed of the parts.

    Attributes
    ----------
    estimator_ : regressor
        The fit to all rows; with held-out rows, to the others.
    cross_fit_ : CrossFitNumbers
        The fits without a part, and the errors of the rows that they have not seen.
    n_features_in_ : int
        Number of columns, if X has columns.

    References
    ----------
    R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+", Annals of
    Statistics 49 (2021), theorem 4.

    Examples
    --------
    >>> from mercer import SVR
    >>> X = np.linspace(0, 3, 60)[:, None]
    >>> y = np.sin(X).ravel() + 0.1 * np.cos(40 * X).ravel()
    >>> model = ConformalRegressor(SVR()).fit(X, y)
    >>> intervals = model.interval([[1.5]], coverage=0.9)
    >>> bool(intervals.lower[0] < 1.0 < intervals.upper[0]), intervals.method
    (True, 'CV+ of 5 folds')
    """

    _fitted = Fitted(
        {"estimator_": Is(BaseEstimator), "cross_fit_": Is(CrossFitNumbers)},
        {"n_features_in_": Count("d", least=1), "feature_names_in_": Labels("d", texts=True)},
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

        Raises
        ------
        DataError
            If y has several columns, holds NaN, infinity or what is not a number, or there are fewer rows than parts.
        ParameterError
            If ``cv`` is neither a number of parts nor a share, or the kernel is precomputed.
        """
        X, y = checked_rows_and_targets(self, X, y)
        splits = splits_of(self.cv, self.random_state, len(y), None)
        self.cross_fit_ = CrossFitNumbers.of(self.estimator, X, y, splits)
        self.estimator_ = self.cross_fit_.models[0] if len(splits) == 1 else clone(self.estimator).fit(X, y)
        return self

    def predict(self, X: RowsLike) -> Vector:
        """Return the predictions of ``estimator_``, shape (m,).

        Parameters
        ----------
        X : rows as in ``fit``, m of them
        """
        check_is_fitted(self, "estimator_")
        return np.asarray(self.estimator_.predict(X))

    def interval(self, X: RowsLike, coverage: float = 0.9) -> Intervals:
        """Return intervals that contain the targets of new rows.

        Parameters
        ----------
        X : rows as in ``fit``, m of them
        coverage : float, default=0.9
            The share of new targets that the intervals are to contain, between 0 and 1.

        Returns
        -------
        Intervals
            ``lower`` and ``upper`` of shape (m,). ``guaranteed`` is the coverage for held-out rows, and for k parts a
            little less than ``2 * coverage - 1``.

        Raises
        ------
        ParameterError
            If the coverage is not between 0 and 1.

        Warns
        -----
        MercerWarning
            If there are too few rows for bounded intervals.
        """
        check_is_fitted(self, "cross_fit_")
        return self.cross_fit_.interval(X, coverage)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags
