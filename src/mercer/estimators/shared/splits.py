"""Parts of the rows that conformal prediction leaves out, and the checks of its data."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

from mercer._errors import DataError, ParameterError
from mercer.data.objects import short
from mercer.estimators.shared.cross_fit import Split
from mercer.estimators.shared.labels import check_labels
from mercer.estimators.shared.targets import check_numbers


def splits_of(cv: Any, random_state: Any, n: int, labels: np.ndarray | None) -> list[Split]:
    """Return the training rows and the others of each part, with the same shares of each class where that is possible.

    Parameters
    ----------
    cv : int or float
        The number of parts, or the share of the rows that one part has.
    random_state : int, RandomState or None
    n : int
    labels : ndarray of shape (n,), optional
        The classes of the rows.

    Raises
    ------
    ParameterError
        If ``cv`` is neither a whole number from 2 on nor a share between 0 and 1.
    DataError
        If there are fewer rows than parts, or no row would be left.

    Examples
    --------
    >>> [len(others) for _, others in splits_of(3, 0, 10, None)]
    [4, 3, 3]
    >>> [len(others) for _, others in splits_of(0.2, 0, 10, None)]
    [2]
    """
    whole = isinstance(cv, Integral) and not isinstance(cv, bool)
    if not (whole and int(cv) >= 2) and not (isinstance(cv, Real) and not isinstance(cv, bool) and 0 < float(cv) < 1):
        raise ParameterError(
            f"cv must be a number of parts, 2 or more, or the share of rows that are held out, between 0 and 1, but is "
            f"{short(cv)}."
        )
    rarest = n if labels is None else int(np.unique(labels, return_counts=True)[1].min())
    if whole:
        if n < int(cv):
            raise DataError(f"there are {n} rows, which make no {cv} parts; pass more rows, or a smaller cv.")
        split = KFold if labels is None or rarest < int(cv) else StratifiedKFold
        return list(split(int(cv), shuffle=True, random_state=random_state).split(np.empty(n), labels))
    if not 1 <= int(np.ceil(float(cv) * n)) < n:
        raise DataError(f"there are {n} rows, of which a share of {cv:g} cannot be held out; pass more rows.")
    held = ShuffleSplit if labels is None or rarest < 2 else StratifiedShuffleSplit
    return list(held(1, test_size=float(cv), random_state=random_state).split(np.empty(n), labels))


def checked_rows_and_targets(learner: Any, X: Any, y: ArrayLike) -> tuple[Any, np.ndarray]:
    """Return rows that can be indexed, and targets (n,); sets ``n_features_in_`` and the names of columns.

    Raises
    ------
    ParameterError
        If the estimator is a classifier for a regression, or the other way round.
    DataError
        If y is missing, has several columns, or another length; or if targets are missing, infinite or not numbers.
    """
    if is_classifier(learner) != is_classifier(learner.estimator):
        kind = "classifier" if is_classifier(learner) else "regressor"
        raise ParameterError(f"estimator of {type(learner).__name__} must be a {kind}, but is {learner.estimator!r}.")
    if y is None:
        raise DataError(f"{type(learner).__name__} requires y to be passed, but the target y is None.")
    if isinstance(X, (list, tuple)) and not (X and isinstance(X[0], str)):
        X = np.asarray(X)
    y = np.asarray(y)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y.ravel()
    if y.shape != (n,):
        raise DataError(f"y must have the shape ({n},) for these rows, but has {y.shape}; pass one for each.")
    if is_classifier(learner):
        y = check_labels(type(learner).__name__, y, n)
    else:
        y = check_numbers(learner, y, X, several=False)
    for name in ("n_features_in_", "feature_names_in_"):
        learner.__dict__.pop(name, None)
    if getattr(X, "ndim", 1) == 2:
        learner.n_features_in_ = int(X.shape[1])
    return X, y
