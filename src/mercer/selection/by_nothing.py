"""What a search is compared with: the score of predictions that know the targets alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor

from mercer._errors import MercerWarning, warn_user
from mercer.selection.fold_rows import SearchData, take_rows


def score_by_nothing(estimator: Any, scorer: Any, data: SearchData) -> float:
    """The mean score over the folds of the classes' shares, or of the mean; NaN if the metric wants decision values.

    Examples
    --------
    >>> from sklearn.metrics import get_scorer
    >>> from mercer import SVC
    >>> from mercer.selection.fold_rows import Fold
    >>> y = np.array([0, 0, 0, 1])
    >>> data = SearchData(y[:, None], y, None, 4, (Fold(0, np.array([0, 1, 3]), np.array([2])),))
    >>> score_by_nothing(SVC(), get_scorer("accuracy"), data)
    1.0
    """
    scores = []
    for fold in data.folds:
        y, options = data.targets(fold)
        model = DummyClassifier() if is_classifier(estimator) else DummyRegressor()
        model.fit(np.zeros((len(fold.train), 1)), y, **options)
        try:
            rows, options = np.zeros((len(fold.test), 1)), data.score_options(fold)
            scores.append(scorer(model, rows, take_rows(data.y, fold.test), **options))
        except (AttributeError, ValueError):  # The metric needs what predictions by nothing do not have.
            return float("nan")
    return float(np.mean(scores))


def warn_if_by_nothing(best: float, estimator: Any, scorer: Any, data: SearchData) -> None:
    """Warn if the best score is below that of predictions that know the targets alone."""
    nothing = score_by_nothing(estimator, scorer, data)
    if best < nothing:
        what = "the most frequent class" if is_classifier(estimator) else "the mean of the targets"
        warn_user(
            f"the best candidate has the score {best:.4g} in the folds, and predicting {what} has {nothing:.4g}: no "
            "candidate has learned anything that holds for other rows. Try other kernels (kernels=[...]), or look "
            "whether the columns say anything about the targets.",
            MercerWarning,
        )
