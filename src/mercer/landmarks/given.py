"""Landmarks that the user gives: rows of the kind of X, each once."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._errors import DataError, MercerWarning, warn_user
from mercer.data.columns import MixedRows
from mercer.data.distinct import equal_rows
from mercer.data.objects import Objects
from mercer.kernels import Kernel
from mercer.kernels.domain import checked_rows


def given_rows(kernel: Kernel, X: Any, rows: Any, called: str) -> Any:
    """Return given rows in the form in which the kernel compares them with ``X``, equal ones once.

    ``called`` is what messages call them, such as ``"KernelRidge: landmarks"``.

    Raises
    ------
    DataError
        If they are not rows of the kind of ``X``, or have other columns.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> given_rows(RBF(1.0), np.eye(2), [[1, 2], [3, 4]], "KernelRidge: landmarks").tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    try:
        landmarks = checked_rows(kernel, rows, "landmarks")
    except DataError as error:
        raise DataError(
            f"{called} cannot be used as rows beside those of X: {error} Give rows of the kind of X, or a name of a "
            "method."
        ) from error
    _require_alike(X, landmarks, called)
    first, _ = equal_rows(landmarks)
    total = landmarks.shape[0]
    if len(first) < total:
        warn_user(
            f"{called} has {total - len(first)} rows that repeat others. They are left out, and {len(first)} of "
            f"{total} landmarks remain.",
            MercerWarning,
        )
        landmarks = landmarks[np.sort(first)]
    return landmarks.astype(X.dtype, copy=False)


def _require_alike(X: Any, landmarks: Any, called: str) -> None:
    """Raise unless both are of one kind and have the same columns."""
    if _kind(landmarks) != _kind(X):
        raise DataError(
            f"{called} holds {_kind(landmarks)}, but X holds {_kind(X)}. Give rows of the kind of X, or a name of a "
            "method."
        )
    if isinstance(X, Objects):
        return
    if landmarks.shape[1] != X.shape[1]:
        raise DataError(
            f"{called} has {landmarks.shape[1]} columns, but X has {X.shape[1]}. Give rows with the columns of X."
        )
    own, theirs = getattr(landmarks, "names", None), getattr(X, "names", None)
    if own and theirs and own != theirs:
        raise DataError(
            f"{called} has the columns {', '.join(own)}, but X has {', '.join(theirs)}. Give the columns of X, in its "
            "order."
        )


def _kind(rows: Any) -> str:
    if isinstance(rows, MixedRows):
        return "a table of mixed columns"
    return rows.kind if isinstance(rows, Objects) else "rows of numbers"
