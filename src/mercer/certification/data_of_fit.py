"""Whether a fitted model, rows and labels belong together: checks before a certificate is computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import AnyArray, Positions, RowsLike
from mercer.certification.rows_in_blocks import RowsInBlocks
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects

# Entries of a row may differ by this share of the largest entry of their column, as they do after a round trip through
# float32.
_RTOL = 1e-6


def require_finite(model: Any) -> None:
    """Raise unless the coefficients and offsets of a fitted model are finite.

    Raises
    ------
    DataError
        With the attribute, and how many of its numbers are not finite.
    """
    for name in ("dual_coef_", "intercept_"):
        values = np.asarray(getattr(model, name, 0.0), dtype=np.float64)
        bad = int(values.size - np.isfinite(values).sum())
        if bad:
            raise DataError(
                f"{name} of this {type(model).__name__} has {bad} of {values.size} numbers that are not finite, so "
                "that its objective is not finite either and cannot be certified. Fit the model again."
            )


def landmarks_of(model: Any) -> Any:
    """The landmarks of a fitted model."""
    return model.X_fit_ if hasattr(model, "X_fit_") else model.support_vectors_


def rows_like_those_of_the_fit(model: Any, X: RowsLike | RowsInBlocks) -> Any:
    """Checked rows with the columns of those to which a model was fitted.

    Raises
    ------
    DataError
        If they have other columns.
    """
    rows = X if isinstance(X, RowsInBlocks) else model.checked_rows(X)
    columns = getattr(model, "n_features_in_", None)
    if columns is not None and len(rows.shape) == 2 and rows.shape[1] != columns:
        raise DataError(
            f"X has {rows.shape[1]} columns, but this {type(model).__name__} was fitted on {columns}. Pass the rows in "
            "the columns of the fit."
        )
    return rows


def rows_of_the_fit(model: Any, X: RowsLike | RowsInBlocks) -> Any:
    """Checked rows whose entries at ``landmark_indices_`` are the landmarks of the model.

    Landmarks that are not rows of the fit, such as means of clusters, cannot be compared.

    Raises
    ------
    DataError
        If the rows are not those of the fit.
    """
    rows, indices = rows_like_those_of_the_fit(model, X), model.landmark_indices_
    if indices is None:
        return rows
    n, name = rows.shape[0], type(model).__name__
    if len(indices) and int(indices.max()) >= n:
        raise DataError(
            f"X has {n:,} rows, but row {int(indices.max()):,} of those to which this {name} was fitted is a landmark. "
            "Pass all rows of the fit, in their order."
        )
    other = np.flatnonzero(~alike(rows[indices], landmarks_of(model)))
    if len(other):
        raise DataError(
            f"X differs from the rows to which this {name} was fitted: {len(other):,} of {len(indices):,} landmarks "
            f"are not at landmark_indices_, the first in row {int(indices[other[0]]):,}. Pass the rows of the fit, in "
            "their order and with the same scaling."
        )
    return rows


def alike(rows: Any, landmarks: Any) -> np.ndarray:
    """Which rows are the same as the landmarks beside them, up to single precision, (m,)."""
    if isinstance(rows, (Objects, MixedRows)):
        return np.asarray(rows.same(landmarks))
    if sp.issparse(rows) or sp.issparse(landmarks):
        one, other = sp.csr_matrix(rows, dtype=np.float64), sp.csr_matrix(landmarks, dtype=np.float64)
        room = _RTOL * abs(other).max(axis=0).toarray().ravel()
        apart = abs(one - other).tocoo()
        alike = np.ones(one.shape[0], dtype=bool)
        alike[apart.row[apart.data > room[apart.col]]] = False
        return alike
    room = _RTOL * np.abs(landmarks).max(axis=0, initial=0.0)
    return np.asarray((np.abs(np.asarray(rows, dtype=np.float64) - landmarks) <= room).all(axis=1))


def rows_at(rows: Any, mask: Any) -> Any:
    """Part of checked rows; of rows in blocks without reading them."""
    if len(mask) == rows.shape[0] and np.asarray(mask).dtype == bool and mask.all():
        return rows
    return rows.some(mask) if isinstance(rows, RowsInBlocks) else rows[mask]


def codes_of(model: Any, labels: AnyArray, used: Positions) -> Positions:
    """The numbers of the classes of labels (n,) at the rows with a weight; these have the classes of the fit.

    Raises
    ------
    DataError
        If they have another class, or lack one.
    """
    numbers = {label: number for number, label in enumerate(model.classes_.tolist())}
    present, places = np.unique(labels[used], return_inverse=True)
    known = np.array([numbers.get(label, -1) for label in present.tolist()], dtype=np.intp)
    if (known < 0).any():
        raise DataError(
            f"y has the label {present[known < 0].tolist()[0]!r}, which the fit did not see; pass the labels of it."
        )
    missing = np.setdiff1d(np.arange(len(numbers)), known)
    if len(missing):
        raise DataError(
            f"y has no label {model.classes_[missing].tolist()[0]!r} in a row with a weight, but the fit had; pass the "
            "labels and the weights of the fit."
        )
    return known[places]
