"""Columns of a table converted to the types of their kinds: numbers, and categories as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError, SchemaError
from mercer._optional import optional
from mercer._types import Positions, Vector
from mercer.data.schema import NO_VALUE, Locate, category_text
from mercer.data.table import LARGEST
from mercer.data.text_columns import read_numbers
from mercer.data.words import shown

_TRUE = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}


def as_kinds(frame: Any, kinds: Mapping[str, str], source: str, locate: Locate) -> Any:
    """Return a frame with every column converted as by :func:`as_kind`, numeric ones all at once.

    Raises
    ------
    SchemaError, DataError
        As :func:`as_kind`.
    """
    pandas = optional("pandas", "encoding columns")
    dtypes = dict(zip(frame.columns, frame.dtypes, strict=True))
    numbers = [n for n, kind in kinds.items() if kind == "number" and getattr(dtypes[n], "kind", "") in "fiu"]
    # Extension types may hold gaps that are not NaN.
    numbers = [name for name in numbers if isinstance(dtypes[name], np.dtype)]
    block = frame[numbers].to_numpy(dtype=np.float64)
    large = np.flatnonzero((np.abs(block) > LARGEST).any(axis=0))
    for place in large[:1]:
        as_kind(frame[numbers[place]], numbers[place], "number", source, locate)
    numeric, plain = pandas.DataFrame(block, columns=numbers), set(numbers)
    rest = {n: as_kind(frame[n], n, kind, source, locate) for n, kind in kinds.items() if n not in plain}
    if not rest:
        return numeric
    others = pandas.DataFrame(rest)
    for name, kind in kinds.items():
        if kind == "category":
            others[name] = others[name].astype(object)
    return pandas.concat([numeric, others], axis=1)[list(kinds)]


def as_kind(column: Any, name: str, kind: str, source: str, locate: Locate) -> np.ndarray:
    """Return a column as floats, NaN where missing, or a category as an object array of text, ``"(missing)"`` there.

    Raises
    ------
    SchemaError
        If there is text where numbers or booleans are expected; the message gives its place.
    DataError
        If a number is infinite, or so large that its square is.
    """
    missing = column.isna().to_numpy()
    if kind == "category":
        entries = column.to_numpy(dtype=object)
        # Most are text already.
        texts = [value if type(value) is str else category_text(value) for value in entries]
        values = np.array(texts, dtype=object)
        values[missing] = NO_VALUE
        return values
    if kind == "boolean":
        words = (None if gap else str(v).strip().lower() for v, gap in zip(column, missing, strict=True))
        numbers = np.array([np.nan if word is None else _TRUE.get(word, np.inf) for word in words])
        bad, expected = np.flatnonzero(numbers == np.inf), "true or false is"
    else:
        numbers, bad = _numbers(column, missing)
        expected = "a number is"
    if bad.size:
        row = int(bad[0])
        seen = shown(category_text(column.iloc[row]))
        raise SchemaError(
            f"{source}, {locate(row)}, column {shown(name)}: {expected} expected, but {seen} was found "
            f"({bad.size} of {len(numbers)} rows). Correct it."
        )
    large = np.flatnonzero(np.abs(numbers) > LARGEST)
    if large.size:
        value = numbers[large[0]]
        what = "infinite" if np.isinf(value) else f"{value:g}, and {LARGEST:g} is the largest that can be scaled"
        raise DataError(
            f"{source}, {locate(int(large[0]))}, column {shown(name)}: the value is {what} "
            f"({large.size} of {len(numbers)} rows). Correct it, or remove the row."
        )
    return numbers


def _numbers(column: Any, missing: NDArray[np.bool_]) -> tuple[Vector, Positions]:
    """Numbers (n,), NaN where one is missing, and the positions of entries that are neither."""
    types = optional("pandas", "encoding columns").api.types
    if types.is_numeric_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan), np.zeros(0, dtype=np.intp)
    values, known = np.full(len(column), np.nan), np.flatnonzero(~missing)
    read = read_numbers(column.iloc[known].tolist())
    values[known] = read.values
    return values, known[read.strange]
