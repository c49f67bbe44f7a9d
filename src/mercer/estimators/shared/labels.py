"""Check labels, number them by class, and compute the weights of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mercer._errors import DataError, ParameterError
from mercer._types import Positions, Vector
from mercer.data.objects import short
from mercer.data.sklearn_errors import advised
from mercer.data.vectors import refuse_unreal
from mercer.estimators.shared.targets import require_finite


def check_labels(learner: str, y: ArrayLike, n: int) -> np.ndarray:
    """Return one label for each of ``n`` rows, as a 1-D array; ``learner`` is the name in messages."""
    if y is None:
        raise DataError(
            f"{learner} requires y to be passed, but the target y is None; pass one label for each row of X."
        )
    if np.ma.is_masked(y):
        refuse_unreal(y, "y")
    with advised():
        y = column_or_1d(y, warn=True)
    missing = np.flatnonzero(_is_missing(y))
    if len(missing):
        raise DataError(
            f"Input y contains NaN, or another missing value: {len(missing)} labels are missing, the first "
            f"({y[missing[0]]}) in row {missing[0]}; drop these rows, or add labels."
        )
    if y.dtype.kind == "f":
        require_finite(y)
    with advised():
        check_classification_targets(y)
    if len(y) != n:
        raise DataError(f"X has {n} rows and y has {len(y)} labels; pass one label for each row.")
    return y


def _is_missing(y: np.ndarray) -> NDArray[np.bool_]:
    """Return where labels are missing: None, NaN, or missing values of pandas, which need not be installed."""
    if y.dtype.kind == "f":
        return np.isnan(y)
    if y.dtype.kind != "O":
        return np.zeros(len(y), dtype=bool)
    nothing = {type(None).__name__, "NAType", "NaTType"}
    return np.array(
        [
            type(label).__name__ in nothing or (isinstance(label, float | np.floating) and bool(np.isnan(label)))
            for label in y
        ]
    )


def encoded(learner: str, y: np.ndarray, used: Positions | None = None) -> tuple[np.ndarray, Positions]:
    """Return the sorted classes (k,) of labels (n,), and the class number of each; only of the rows ``used``.

    Raises
    ------
    DataError
        If there are fewer than two classes.

    Examples
    --------
    >>> classes, codes = encoded("Learner", np.array(["b", "a", "b", "c"]), np.array([0, 1, 2]))
    >>> classes.tolist(), codes.tolist()
    (['a', 'b'], [1, 0, 1])
    """
    classes, codes = np.unique(y if used is None else y[used], return_inverse=True)
    require_two_classes(learner, classes, unused=used is not None and len(used) < len(y))
    return classes, codes


def require_two_classes(learner: str, classes: np.ndarray, name: str = "y", *, unused: bool = False) -> None:
    """Raise unless there are two classes; ``name`` is the argument, and ``unused`` says that some rows do not count.

    Raises
    ------
    DataError
        With the class.
    """
    if len(classes) < 2:
        raise DataError(
            f"{learner} needs at least two classes, but {name} has {len(classes)} class(es): {classes[:1].tolist()}"
            f"{', not counting rows of weight 0' if unused else ''}; also pass rows of another class."
        )


def all_classes(learner: str, classes: ArrayLike | None, before: np.ndarray | None) -> np.ndarray:
    """Return the sorted classes of a call of partial_fit; those of earlier calls if it names none.

    Raises
    ------
    DataError
        If the first call names none, or fewer than two, or a later one others.

    Examples
    --------
    >>> all_classes("Learner", ["b", "a"], None).tolist()
    ['a', 'b']
    """
    if classes is None:
        if before is None:
            raise DataError("the first call of partial_fit needs classes, the list of all labels that can occur.")
        return before
    names = np.unique(np.asarray(classes))
    require_two_classes(learner, names, "classes")
    if before is not None and not np.array_equal(names, before):
        raise DataError(
            f"classes must be those of the first call, {before[:10].tolist()}, but are {names[:10].tolist()}."
        )
    return names


def class_codes(y: np.ndarray, classes: np.ndarray) -> NDArray[np.intp]:
    """Return the class number of each label, (n,).

    Raises
    ------
    DataError
        If a label is not one of the classes.

    Examples
    --------
    >>> class_codes(np.array(["b", "a", "b"]), np.array(["a", "b"])).tolist()
    [1, 0, 1]
    """
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    unknown = np.flatnonzero(classes[codes] != y)
    if len(unknown):
        raise DataError(
            f"y has the label {y[unknown].tolist()[0]!r}, which is not among the classes, "
            f"{classes[:10].tolist()}; name all classes in the first call of partial_fit."
        )
    return codes


def winners(values: NDArray[np.floating]) -> NDArray[np.intp]:
    """Return class numbers for decision values (m,) or (m, 1) of two classes, or (m, k); the first of equal ones.

    Examples
    --------
    >>> winners(np.array([-1.0, 2.0])).tolist(), winners(np.array([[0.1, 0.3, 0.3]])).tolist()
    ([0, 1], [1])
    """
    if values.ndim == 1 or values.shape[1] == 1:
        return (values.ravel() > 0).astype(np.intp)
    return values.argmax(axis=1)


def class_factors(class_weight: Any, classes: np.ndarray, codes: NDArray[np.integer], weight: Vector) -> Vector:
    """Return the factors of the ``classes`` (k,) for ``class_weight``; "balanced" counts rows by ``weight`` (n,).

    ``codes`` (n,) are the numbers of the classes of the rows.

    Raises
    ------
    ParameterError
        If it is not a dict, holds a value that is not a factor, or names a class that is not there while others have no
        factor.

    Examples
    --------
    >>> class_factors("balanced", np.array([0, 1]), np.array([0, 1, 1]), np.array([1.0, 1.0, 2.0]))
    array([2.        , 0.66666667])
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray(weight.sum() / (len(classes) * np.bincount(codes, weights=weight)))
    if class_weight is None:
        return np.ones(len(classes))
    if not isinstance(class_weight, dict):
        raise ParameterError(
            f"class_weight must be a dict of factors by class, 'balanced' or None, but is {short(class_weight)}."
        )
    try:
        factors = np.asarray(compute_class_weight(class_weight, classes=classes, y=classes), dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(
            f"class_weight must have a number for each class by its name in y, but is {short(class_weight)}; the "
            f"classes are {classes[:10].tolist()}."
        ) from error
    if not (np.isfinite(factors) & (factors > 0)).all():
        raise ParameterError(f"class_weight must be finite numbers above 0, and gives {factors.tolist()}.")
    return factors
