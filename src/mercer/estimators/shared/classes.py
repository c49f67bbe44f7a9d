"""Classes: those of learners that see their rows in parts, and the one that decision values stand for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError


def require_two_classes(learner: str, classes: np.ndarray, name: str) -> None:
    """Raise unless there are two classes; ``name`` is what they were found in.

    Raises
    ------
    DataError
        With the class.
    """
    if len(classes) < 2:
        raise DataError(
            f"{learner} needs two classes at least, and {name} has {len(classes)} class(es): "
            f"{classes[:1].tolist()}; pass rows of another class, too."
        )


def all_classes(learner: str, classes: Any, before: np.ndarray | None) -> np.ndarray:
    """The classes that a call of partial_fit names, sorted; those of the calls before if it names none.

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
            raise DataError("the first call of partial_fit needs classes, all labels that will ever occur.")
        return before
    found = np.unique(np.asarray(classes))
    require_two_classes(learner, found, "classes")
    if before is not None and not np.array_equal(found, before):
        raise DataError(
            f"classes must stay what they were in the first call, {before[:10].tolist()}, but are "
            f"{found[:10].tolist()}."
        )
    return found


def class_codes(y: np.ndarray, classes: np.ndarray) -> NDArray[np.intp]:
    """The number of the class of each label, (n,).

    Raises
    ------
    DataError
        If a label is none of the classes.

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
    """The number of the class for decision values (m,) or (m, 1) of two classes, or (m, k); of equal ones, the first.

    Examples
    --------
    >>> winners(np.array([-1.0, 2.0])).tolist(), winners(np.array([[0.1, 0.3, 0.3]])).tolist()
    ([0, 1], [1])
    """
    if values.ndim == 1 or values.shape[1] == 1:
        return (values.ravel() > 0).astype(np.intp)
    return values.argmax(axis=1)
