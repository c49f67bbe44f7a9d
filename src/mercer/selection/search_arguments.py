"""The arguments, targets, weights and folds of a search without a grid, checked before any work."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets

from mercer._errors import DataError, ParameterError
from mercer._types import Positions, Vector
from mercer.data.objects import short
from mercer.data.seeds import generator
from mercer.data.sklearn_errors import advised
from mercer.data.words import closest_names
from mercer.estimators.shared.base import KernelEstimator
from mercer.estimators.shared.labels import check_labels
from mercer.estimators.shared.targets import check_numbers
from mercer.estimators.shared.weights import check_sample_weight
from mercer.kernels import as_kernel
from mercer.selection.candidates import learner_of
from mercer.selection.fold_rows import Fold, SearchData
from mercer.selection.shared_fits import require_square, takes_matrices

# Targets up to this, and differences down to its inverse, have squares whose sums and quotients are numbers.
_LARGEST = 1e120


def check_arguments(search: Any) -> None:
    """Raise unless the arguments of a search's constructor can be used, as far as this can be judged without the data.

    Raises
    ------
    ParameterError
        With what is allowed, and what was passed.
    """
    if not isinstance(learner_of(search.estimator), KernelEstimator):
        raise ParameterError(
            f"KernelSearchCV knows the ranges of Mercer's learners, but estimator is {search.estimator!r}. Pass one "
            "of these, a pipeline whose last step is one, or use GridSearchCV."
        )
    budget = search.time_budget
    if isinstance(budget, bool) or not isinstance(budget, int | float | np.number) or not budget > 0:
        raise ParameterError(f"time_budget must be a number of seconds above 0, but is {short(budget)}.")
    if search.log is not None and not (isinstance(search.log, str | os.PathLike) and os.fspath(search.log)):
        raise ParameterError(f"log must be the name of a file, or None, but is {search.log!r}.")
    generator(search.random_state)
    _check_scoring(search.scoring)
    _check_cv(search.cv)
    _check_kernels(search.kernels)


def _check_scoring(scoring: Any) -> None:
    if isinstance(scoring, str) and scoring not in get_scorer_names():
        matches = closest_names(scoring, get_scorer_names())
        offer = (
            f"did you mean {' or '.join(map(repr, matches))}?" if matches else "see sklearn.metrics.get_scorer_names."
        )
        raise ParameterError(f"there is no metric {scoring!r} for scoring; {offer}")
    if not (scoring is None or isinstance(scoring, str) or hasattr(scoring, "_response_method")):
        raise ParameterError(
            f"scoring must be the name of one metric, what sklearn.metrics.make_scorer returns, or None, but is "
            f"{scoring!r}. A function that looks at the rows cannot be used here; GridSearchCV takes several "
            "metrics and such functions."
        )


def _check_cv(cv: Any) -> None:
    if isinstance(cv, Integral) and not isinstance(cv, bool):
        is_usable = int(cv) >= 2
    else:
        is_usable = cv is None or hasattr(cv, "split") or (isinstance(cv, Iterable) and not isinstance(cv, str))
    if isinstance(cv, str) or not is_usable:
        raise ParameterError(
            "cv must be a whole number of folds from 2 on, a splitter of sklearn.model_selection, or a list of pairs "
            f"of training and test rows, but is {cv!r}."
        )


def _check_kernels(kernels: Any) -> None:
    """Raise unless it is a list of kernels; whether they fit the rows is another question."""
    if kernels is None:
        return
    if (
        isinstance(kernels, str)
        or not (hasattr(kernels, "__len__") and hasattr(kernels, "__iter__"))
        or not len(kernels)
    ):
        raise ParameterError(
            "kernels must be a list of at least one kernel, such as ['rbf', mercer.kernels.Matern(1.0)], or None, but "
            f"is {kernels!r}."
        )
    for position, kernel in enumerate(kernels):
        if isinstance(kernel, str) and kernel == "precomputed":
            continue
        try:
            as_kernel(kernel, gamma=1.0)
        except ParameterError as error:
            raise ParameterError(f"kernels[{position}]: {error}") from error


def scorer_of(estimator: Any, scoring: Any) -> Any:
    """Return the metric by which candidates are compared.

    Raises
    ------
    ParameterError
        If there is none.
    """
    if scoring is None and not hasattr(estimator, "score"):
        raise ParameterError(
            f"{type(learner_of(estimator)).__name__} has no score by which candidates could be compared; pass scoring, "
            "such as 'f1' for the labels 1 and -1 in y."
        )
    scorer = check_scoring(estimator, scoring=scoring)
    needed = getattr(scorer, "_response_method", ())
    needed = (needed,) if isinstance(needed, str) else tuple(needed)
    if needed and "default" not in needed and not any(hasattr(estimator, method) for method in needed):
        raise ParameterError(
            f"scoring={scoring!r} needs {' or '.join(needed)}, which {type(learner_of(estimator)).__name__} does not "
            "have with these parameters. Choose another metric, or a learner of probabilities, such as "
            "KernelLogisticRegression."
        )
    return scorer


def search_data(
    estimator: Any, cv: Any, X: Any, y: Any, weight: Any, split: Mapping[str, Any], score_weight: Any = None
) -> SearchData:
    """Return the rows, their targets and weights, and the folds.

    Parameters
    ----------
    estimator : estimator
    cv : int, splitter or iterable
    X, y, weight
        As for ``fit``.
    split : dict
        Arguments of the splitter, such as ``groups``.
    score_weight : array-like, optional
        Weights of held-out rows in scores.

    Returns
    -------
    SearchData

    Raises
    ------
    DataError
        If targets or weights cannot be used with the estimator, or the rows cannot be split.
    """
    if X is None or y is None:
        name = type(learner_of(estimator)).__name__
        missing = "rows X are" if X is None else "target y is"
        raise DataError(
            f"KernelSearchCV({name}()) requires {'X' if X is None else 'y'} to be passed, but the {missing} None: "
            "candidates are compared by the score of their predictions."
        )
    with advised():
        (X,) = indexable(X)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        y = _checked_targets(estimator, X, y, n)
        X, y = indexable(X, y)
    if takes_matrices(estimator):
        require_square(X)
    weight = None if weight is None else _checked_weight(weight, n)
    score_weight = None if score_weight is None else _checked_weight(score_weight, n)
    folds = _folds(cv, is_classifier(estimator), X, y, split, n)
    if is_classifier(estimator):
        _check_classes(y, folds)
    if weight is not None:
        _check_weighted(np.asarray(y) if is_classifier(estimator) else None, weight, folds)
    return SearchData(X, y, weight, n, folds, score_weight=score_weight)


def _check_classes(y: Any, folds: Iterable[Fold]) -> None:
    """Raise unless the training part of each fold has two classes."""
    labels = np.asarray(y)
    for fold in folds:
        classes = set(labels[fold.train].tolist()) if labels.ndim == 1 else {None, True}
        if len(classes) < 2:
            raise DataError(
                f"the training part of fold {fold.number} has {len(fold.train)} rows of one class only"
                f"{''.join(f', {name!r}' for name in classes)}; use fewer or stratified folds, such as "
                "sklearn.model_selection.StratifiedKFold, or more rows of the other classes."
            )


def _checked_targets(estimator: Any, X: Any, y: Any, n: int) -> Any:
    learner = learner_of(estimator)
    several = get_tags(learner).target_tags.multi_output
    if is_regressor(estimator):
        y = check_numbers(learner, y, X, several=several)
        _check_size(y)
        return y
    if not is_classifier(estimator):
        return y
    if several:
        check_classification_targets(y)
        return y
    labels = check_labels(type(learner).__name__, y, n)
    # A column becomes labels here, with one warning for all fits. Anything else stays: categories may have an order.
    return labels if np.asarray(y).ndim > 1 else y


def _check_size(y: Vector) -> None:
    """Raise if squares of errors, by which candidates are compared, leave the range of float64."""
    if not y.size:
        return
    largest = float(np.abs(y).max())
    deviation = float(np.ptp(y, axis=0).max())
    if largest > _LARGEST or 0.0 < deviation < 1.0 / _LARGEST:
        problem = f"y reaches {largest:.3g}" if largest > _LARGEST else f"y differs by at most {deviation:.3g}"
        raise DataError(
            f"{problem}, and squares of errors, by which candidates are compared, leave the range of float64; scale y "
            "(sklearn.compose.TransformedTargetRegressor, or divide it by a number)."
        )


def _checked_weight(weight: Any, n: int) -> Vector:
    array = np.asarray(weight)
    if array.ndim > 1:
        raise DataError(f"sample_weight must be one number for each row, but has the shape {array.shape}.")
    if array.dtype.kind in "USO":
        raise DataError(f"sample_weight must hold numbers, but holds {array.ravel()[:1].tolist()[0]!r:.80}.")
    return check_sample_weight(weight, np.empty((n, 1)))


def _check_weighted(y: np.ndarray | None, weight: Vector, folds: Sequence[Fold]) -> None:
    """Raise unless the training part of each fold has rows that count, of labels those of two classes."""
    for fold in folds:
        counted = fold.train[weight[fold.train] > 0]
        if not len(counted) or (y is not None and y.ndim == 1 and len(np.unique(y[counted])) < 2):
            of_one = " and all are of one class" if len(counted) else ""
            raise DataError(
                f"the training part of fold {fold.number} has {len(counted)} rows with a sample_weight above 0"
                f"{of_one}. Use fewer or stratified folds, or give weights to other rows."
            )


def _folds(cv: Any, classes: bool, X: Any, y: Any, split: Mapping[str, Any], n: int) -> tuple[Fold, ...]:
    folds: list[Fold] = []
    try:
        given = cv is not None and not isinstance(cv, Integral) and not hasattr(cv, "split")
        for pair in cv if given else check_cv(cv, y, classifier=classes).split(X, y, **split):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise DataError(f"cv must give pairs of training and test rows, but fold {len(folds)} is {pair!r:.80}.")
            train, test = (
                _positions(part, n, f"the {name} part of fold {len(folds)}")
                for part, name in zip(pair, ("training", "test"))
            )
            folds.append(Fold(len(folds), train, test))
    except DataError:
        raise
    except ValueError as error:
        what_to_do = (
            "Pass groups to fit."
            if split.get("groups") is None and "groups" in str(error)
            else "Use fewer folds, or add rows."
        )
        raise DataError(f"{n} rows cannot be split by cv={cv!r}: {str(error).rstrip('.')}. {what_to_do}") from error
    if not folds:
        raise DataError("cv has no folds; pass an iterable with at least one pair of training and test rows.")
    return tuple(folds)


def _positions(part: Any, n: int, what: str) -> Positions:
    """Row numbers from row numbers or a mask."""
    array = np.asarray(part)
    if array.dtype == bool and array.shape == (n,):
        array = np.flatnonzero(array)
    if not array.size:
        raise DataError(f"{what} has no rows; each part of a fold needs some.")
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.min() < -n or array.max() >= n:
        raise DataError(f"{what} must be row numbers below {n}, or a mask of the {n} rows, but is {part!r:.80}.")
    return np.arange(n)[array]


def check_scored(metric: str, folds: Iterable[Fold]) -> None:
    """Raise if a metric by name is not defined on the test rows of a fold.

    Raises
    ------
    DataError
        For R^2 of a single row.
    """
    few = [fold.number for fold in folds if len(fold.test) < 2]
    if metric == "r2_score" and few:
        raise DataError(
            f"the score of fold {few[0]} is R^2, which needs two held-out rows, but the fold has one. Use fewer folds, "
            "so that each has two rows or more, or scoring='neg_mean_squared_error'."
        )


def offers(name: str) -> Callable[[Any], bool]:
    """Whether the best estimator of a search, or before a fit its estimator, has a method."""

    def check(search: Any) -> bool:
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    return check
