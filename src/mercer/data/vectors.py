"""Coercion of numeric input to the two forms that vector kernels read: a C-ordered array, or CSR."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of the columns of a data frame; None for anything else."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "to_numpy"):
        return None
    return tuple(str(name) for name in columns)


def as_vectors(X: Any, name: str = "X") -> np.ndarray | sp.csr_matrix:
    """Return ``X`` as a C-ordered ``(n, d)`` array of float32 or float64, or as CSR; copied only if necessary.

    Raises
    ------
    DataError
        If ``X`` is not two-dimensional, is empty, or contains text, NaN or an infinity.

    Examples
    --------
    >>> as_vectors([[1, 2], [3, 4]]).dtype
    dtype('float64')
    """
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        if X.dtype not in (np.float32, np.float64):
            refuse_unreal(X, name)
            X = X.astype(np.float64)
        X = with_sums(X)
        _check(X.data, X.shape, name)
        return X
    refuse_unreal(X, name)
    try:
        array = np.asarray(X.to_numpy() if column_names(X) is not None else X)
        if array.dtype not in (np.float32, np.float64):
            refuse_unreal(array, name)
            array = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{name} must be a table of numbers, but is not: {error}. "
            "Encode text and categories first (sklearn.preprocessing.OneHotEncoder)."
        ) from error
    array = np.ascontiguousarray(array)
    _check(array, array.shape, name)
    return array


def refuse_unreal(values: Any, name: str) -> None:
    """Raise an error if ``values`` are masked, complex, dates or times: NumPy would convert them silently.

    Raises
    ------
    DataError
        If they are, or a column of a data frame is.

    Examples
    --------
    >>> refuse_unreal(np.ma.masked_array([1.0, 2.0], [0, 1]), "y")
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: y has 1 masked entries; fill them in (y.filled(...), sklearn.impute.SimpleImputer).
    """
    if np.ma.is_masked(values):
        raise DataError(
            f"{name} has {int(np.ma.getmaskarray(values).sum())} masked entries; fill them in ({name}.filled(...), "
            "sklearn.impute.SimpleImputer)."
        )
    types = values.dtypes if column_names(values) is not None else [getattr(values, "dtype", None)]
    kinds = {getattr(dtype, "kind", ""): dtype for dtype in types}
    if "c" in kinds:
        raise DataError(
            f"Complex data not supported: {name} holds complex numbers ({kinds['c']}); pass their real and imaginary "
            "parts as columns."
        )
    for kind in {"m", "M"} & kinds.keys():
        raise DataError(f"{name} holds dates or times ({kinds[kind]}); pass numbers, such as days since a date.")


def with_sums(X: Any) -> Any:
    """Return ``X``; for CSR with unsorted columns or duplicate entries a sorted copy with the duplicates summed.

    Examples
    --------
    >>> X = sp.csr_array(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
    >>> with_sums(X).data.tolist(), X.data.tolist()
    ([3.0], [1.0, 2.0])
    """
    if sp.issparse(X) and not X.has_canonical_format:
        # In a copy: the caller's matrix stays as it is.
        X = X.copy()
        X.sum_duplicates()
    return X


def _check(values: np.ndarray, shape: tuple[int, ...], name: str) -> None:
    if len(shape) != 2:
        hint = f"{name}.reshape(-1, 1) for one column, {name}.reshape(1, -1) for one row"
        raise DataError(f"{name} must have two dimensions (rows, columns), but has shape {shape}; use {hint}.")
    if shape[0] == 0 or shape[1] == 0:
        raise DataError(f"{name} is empty: its shape is {shape}. At least one row and one column are needed.")
    # The sum is finite whenever all values are, save for overflow, so the exact test runs only then.
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not np.isfinite(total) and not np.isfinite(values).all():
        bad = ~np.isfinite(values)
        kind = "NaN" if np.isnan(values).any() else "infinity"
        where = f", first in row {np.argwhere(bad)[0][0]}" if values.ndim == 2 else ""
        raise DataError(
            f"{name} contains {kind} in {int(bad.sum())} places{where}; "
            "drop those rows or fill them in (sklearn.impute.SimpleImputer)."
        )


def select_columns(
    X: np.ndarray | sp.csr_matrix, columns: tuple[int | str, ...], names: tuple[str, ...] | None
) -> np.ndarray | sp.csr_matrix:
    """Return the chosen columns of ``X``, by position or by name."""
    part = X[:, column_positions(columns, names, X.shape[1])]
    return part if sp.issparse(part) else np.ascontiguousarray(part)


def column_positions(columns: tuple[int | str, ...], names: tuple[str, ...] | None, d: int) -> list[int]:
    """Return the positions of the chosen columns among ``d``.

    Raises
    ------
    DataError
        If a column does not exist, or the columns have no names.

    Examples
    --------
    >>> column_positions(("b", 0), ("a", "b"), 2)
    [1, 0]
    """
    positions = []
    for column in columns:
        if isinstance(column, str):
            if names is None:
                raise DataError(
                    f"the kernel uses the column {column!r} by name, but X has no column names; "
                    "pass a pandas DataFrame, or use column positions."
                )
            if column not in names:
                raise DataError(f"there is no column {column!r}; the columns are {', '.join(names[:20])}.")
            if names.count(column) > 1:
                raise DataError(
                    f"{names.count(column)} columns are named {column!r}, at the positions "
                    f"{', '.join(str(i) for i, name in enumerate(names) if name == column)}; rename them, or use "
                    "positions."
                )
            positions.append(names.index(column))
        elif not -d <= column < d:
            raise DataError(f"the kernel uses column {column}, but X has {d} columns.")
        else:
            positions.append(column)
    return positions
