"""Checks of rows, targets and weights as they are read; errors name the file, the row and the column."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import AnyArray, Vector
from mercer.data.column_entries import readable
from mercer.data.table import LARGEST
from mercer.data.words import shown


def place(file: str, row: int) -> str:
    """A row of a file in words, ``row`` counted from 0.

    >>> place("a.csv", 999)
    'a.csv, row 1,000'
    """
    return f"{file}, row {row + 1:,}"


def check_finite(X: Any, file: str, row: int, names: tuple[str, ...] | None = None) -> None:
    """Raise if rows hold NaN or an infinity; ``row`` is the number of the first one in the file.

    Raises
    ------
    DataError
        With the place of the first.
    """
    values = X.data if sp.issparse(X) else X
    # The sum is finite whenever all values are, save for overflow, so the exact test runs only then.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    if sp.issparse(X):
        entry = int(np.flatnonzero(bad)[0])
        i, j, value = int(np.searchsorted(X.indptr, entry, side="right")) - 1, int(X.indices[entry]), values[entry]
    else:
        i, j = map(int, np.argwhere(bad)[0])
        value = values[i, j]
    column = f"column {j}" if names is None else f"column {shown(names[j])}"
    what = "a value is missing (NaN)" if np.isnan(value) else "a value is infinite"
    rest = int(bad.sum()) - 1
    more = f", and {rest:,} more in the rows that were read with it" if rest else ""
    raise DataError(
        f"{place(file, row + i)}, {column}: {what}{more}. Remove such rows or fill them in; in tables, "
        "Blocks.encoded() takes missing values."
    )


def checked_target(values: AnyArray, name: str, file: str, row: int) -> AnyArray:
    """Return a target (r,) or (r, t) as float64, int64 or bool, or as an array of objects if it is text.

    Raises
    ------
    DataError
        If a value is missing, infinite or neither a number nor text.
    """
    kind = values.dtype.kind
    if values.ndim not in (1, 2):
        raise DataError(f"{file}: the target {name} must have one or two dimensions, but has shape {values.shape}.")
    if kind in "OSUT":
        return _checked_objects(values, name, file, row)
    if kind not in "biuf":
        raise DataError(f"{file}: the target {name} holds {values.dtype}; a target is text, booleans or numbers.")
    if kind == "f":
        values = values.astype(np.float64, copy=False)
        rows = np.abs(values) <= LARGEST
        bad = np.flatnonzero(~(rows if rows.ndim == 1 else rows.all(axis=1)))
        if bad.size:
            value = values[bad[0]]
            what = "missing (NaN)" if np.isnan(value).any() else f"{value}, and must be at most {LARGEST:g} in size"
            raise DataError(
                f"{place(file, row + int(bad[0]))}: the target {name} is {what}. Correct the value or remove the row."
            )
    return values if kind == "f" else values.astype(np.bool_ if kind == "b" else np.int64, copy=False)


def _checked_objects(values: AnyArray, name: str, file: str, row: int) -> AnyArray:
    """Text as it is; booleans and numbers, which some readers keep as objects where values may be missing, as such."""
    if values.ndim != 1:
        raise DataError(f"{file}: the target {name} has several columns, which must hold numbers, but holds text.")
    texts = readable(values.astype(object))
    types = {type(value) for value in texts}
    if types and all(issubclass(one, (bool, np.bool_)) for one in types):
        return texts.astype(np.bool_)
    if types and all(issubclass(one, (int, np.integer)) and not issubclass(one, bool) for one in types):
        return texts.astype(np.int64)
    if types and all(issubclass(one, (int, float, np.number)) and not issubclass(one, bool) for one in types):
        return checked_target(texts.astype(np.float64), name, file, row)
    for i, value in enumerate(texts):
        if not isinstance(value, str):
            missing = type(value).__name__ in ("NoneType", "NAType") or value != value
            what = "is missing" if missing else f"is {shown(value)} beside text"
            raise DataError(f"{place(file, row + i)}: the target {name} {what}. Correct the value or remove the row.")
    return texts


def same_kind(values: AnyArray, dtype: np.dtype, name: str, file: str, row: int) -> AnyArray:
    """Return a target in the type that it has in the first block.

    Raises
    ------
    DataError
        If that would change a value.
    """
    if values.dtype == dtype:
        return values
    if values.dtype.kind != "O" and dtype.kind != "O":
        converted = values.astype(dtype)
        if (converted == values).all():
            return converted
    words = {"O": "text", "b": "booleans", "i": "whole numbers", "f": "numbers with fractions"}
    raise DataError(
        f"{place(file, row)}: the target {name} holds {words[values.dtype.kind]} from here on, but {words[dtype.kind]} "
        "in the first block. Give it the same type everywhere."
    )


def checked_weights(values: AnyArray, name: str, file: str, row: int) -> Vector:
    """Return weights (r,) in float64.

    Raises
    ------
    DataError
        If one is not a number, not finite, or negative.
    """
    try:
        weights = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{file}: the sample weights {name} are not numbers ({error}).") from error
    if weights.ndim != 1:
        raise DataError(f"{file}: the sample weights {name} must have one dimension, but have shape {weights.shape}.")
    bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST)))
    if bad.size:
        raise DataError(
            f"{place(file, row + int(bad[0]))}: the sample weight {name} is {weights[bad[0]]}; weights count rows, so "
            "they must be finite and 0 or more."
        )
    return weights
