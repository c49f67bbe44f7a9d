"""The target of a table: which task it poses, and its values in the form that estimators take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import Vector
from mercer.data.column_entries import readable
from mercer.data.notation import in_another_notation
from mercer.data.schema import DATE
from mercer.data.table import LARGEST, MISSING, is_number, row_place
from mercer.data.text_columns import are_codes
from mercer.data.words import check_task, listing, shown

# Whole numbers are classes where there are at most so many different ones, each on average in so many rows.
_FEW_VALUES = ((10, 5), (30, 100))
# Among more than 10, counts have values that are rarer than this, and codes that stand in groups need fewer rows.
_RARE, _GROUPED = 10, 20
# Whole numbers with more different values are never meant as classes.
_MOST_CLASSES = 100
# Beyond it, float64 does not have every whole number.
_LARGEST_CLASS = 2.0**53
# A target with this share of the squares about the mean of the others, among at least so many, is not like them.
_OUTLYING, _FEWEST = 0.9, 10
# Squares of smaller differences have few digits, or none.
_SMALLEST = 1e-150


@dataclass(frozen=True)
class Target:
    """A target ready for learning: its name, ``"classification"`` or ``"regression"`` and why, the values (n,)."""

    name: str
    task: str
    why: str
    values: np.ndarray


def read_target(
    values: Any,
    name: str,
    task: str | None = None,
    locate: Callable[[int], str] = row_place,
    asked: str = "that was asked for",
) -> Target:
    """Determine the task that a target poses, and check its values.

    Text, booleans and codes such as ``007`` are classes. Numbers are classes if they are whole and few values repeat
    often: two values, at most 10 with at least 5 rows each on average, or at most 30 with at least 100 on average and
    10 for the rarest. Counts have rarer values at their ends, and are quantities. Up to 30 values in groups, such as 1
    to 10 and 14 to 16, are codes of classes with at least 20 rows each on average.

    Parameters
    ----------
    values : array-like of shape (n,)
        A column of a data frame, or an array.
    name : str
        The name of the target.
    task : {"classification", "regression"}, optional
        The task that the user requests; used if the values allow it.
    locate : callable
        Maps a row number to a description of its place, for messages.
    asked : str, default="that was asked for"
        Why it is this task, if one is requested.

    Raises
    ------
    DataError
        If values are missing or infinite, if there is only one class, or if there is text where a number is needed.

    Examples
    --------
    >>> target = read_target(["yes", "no", "yes"], "answer")
    >>> target.task, target.why
    ('classification', "'answer' holds text, 2 different values")
    >>> read_target([0.5, 1.5, 2.0], "price").task
    'regression'
    """
    check_task(task)
    array = _plain(values, name, locate)
    codes = array.dtype.kind == "U" and are_codes(array)
    if codes and task == "regression":
        array, codes = array.astype(np.float64), False
    if len(array) < 2:
        raise DataError(
            f"there is {len(array)} row of data; at least two are needed, and many more for a useful model."
        )
    different, counts = np.unique(array, return_counts=True)
    kind, why = _task_of(array, different, counts, name)
    if task is not None:
        kind, why = task, f"{asked}; '{name}' holds {_kind(array)}, {len(different)} different values"
    quantities = task == "regression" or (task is None and not _are_few(len(different), len(array)))
    if quantities and array.dtype.kind == "U" and not codes and in_another_notation(different.tolist()):
        raise DataError(
            f"the target {name!r} holds numbers in another notation such as {shown(array[0])} in {locate(0)}; read "
            "them with --parse-numbers, or write numbers with digits and a decimal point alone, as in 1234.5."
        )
    if quantities and array.dtype.kind == "U" and all(DATE.fullmatch(text) for text in different.tolist()):
        raise DataError(
            f"the target {name!r} holds dates such as {shown(array[0])} in {locate(0)}, which are not predicted; write "
            "them as numbers, such as the days since the first date."
        )
    if kind == "regression" and array.dtype.kind == "U":
        row = next((i for i, text in enumerate(array) if not is_number(text)), 0)
        raise DataError(
            f"a regression needs a numeric target, but {name!r} holds text ({shown(array[row])} in "
            f"{locate(row)}); "
            "for classes use a classification (--task classification, --model svc)."
        )
    if len(different) == 1:
        # Few different whole numbers count as classes, but the user may not mean them as such.
        classes = kind == "classification" and (task is not None or array.dtype.kind == "U")
        what = "one class only" if classes else "the same number everywhere"
        raise DataError(
            f"the target {name!r} is constant: it holds {what} ({_quoted(different[0].item())} in all "
            f"{len(array)} rows), "
            "so there is nothing to learn. Choose another column, or add rows that differ."
        )
    if kind == "regression":
        numbers = array.astype(np.float64)
        if not float(numbers.max() - numbers.min()) > _SMALLEST:
            raise DataError(
                f"the target {name!r} differs between rows by {numbers.max() - numbers.min():.3g} at most, so that its "
                "squares are zero to float64; multiply it by a number, as 1e200."
            )
        return Target(name, kind, why, numbers)
    if array.dtype.kind == "f" and np.abs(array).max() >= _LARGEST_CLASS:
        raise DataError(
            f"the target {name!r} holds {np.abs(array).max():g}, and numbers of that size cannot stand for classes; "
            "write the classes as text, or use a regression (--task regression, --model ridge)."
        )
    if array.dtype.kind == "f" and not (array == np.round(array)).all():
        raise DataError(
            f"the target {name!r} holds numbers with fractions ({len(different)} different values), "
            "which are "
            "quantities, not classes; use a regression (--task regression, --model ridge)."
        )
    return Target(name, kind, why, array.astype(np.int64) if array.dtype.kind == "f" else array)


def known_target(values: Any, name: str, task: str, classes: list[Any], locate: Callable[[int], str]) -> np.ndarray:
    """Return the target of new data in the form that a fitted model predicts.

    Raises
    ------
    DataError
        If it contains classes unknown to the model, or is not numeric although the model predicts numbers.
    """
    array = _plain(values, name, locate)
    if task == "regression":
        if array.dtype.kind == "U" and not are_codes(array):
            raise DataError(f"the model predicts numbers, but {name!r} holds text ({shown(array[0])} in {locate(0)}).")
        return array.astype(np.float64)
    known = np.asarray(classes)
    if known.dtype.kind == "U" and array.dtype.kind != "U":
        array = _texts(array)
    elif known.dtype.kind in "ib" and array.dtype.kind in "fiub":
        whole = (array == np.round(array)).all() and np.abs(array).max(initial=0) < _LARGEST_CLASS
        array = array.astype(np.int64) if whole else array
    strange = np.flatnonzero(~np.isin(array, known))
    if strange.size:
        value, place = array[strange[0]].item(), locate(int(strange[0]))
        raise DataError(
            f"{name!r} holds {_quoted(value)} in {place}, which is not one of the model's classes: "
            f"{listing(classes)} ({strange.size} of {len(array)} rows)."
        )
    return array.astype(known.dtype)


def outlying(y: Vector, weights: Vector | None = None) -> tuple[int, float] | None:
    """Return the row of the one target (n,) that has nearly all of the squares about the mean of the others, if any.

    Also how many standard deviations of the others it is away. A row of weight w counts as w rows, of which one is
    compared with the others. Others that are all the same number have no spread to compare it with.

    Examples
    --------
    >>> outlying(np.append(np.linspace(-1.0, 1.0, 99), 1e6))[0], outlying(np.linspace(-1.0, 1.0, 100))
    (99, None)
    """
    weights = np.ones(len(y)) if weights is None else weights
    if y.ndim != 1 or weights.sum() <= _FEWEST:
        return None
    used = np.flatnonzero(weights)
    size = float(np.abs(y[used]).max()) or 1.0
    values, counts = y[used] / size, weights[used].copy()
    row = int(np.argmax(np.abs(values - np.median(values))))
    counts[row] = max(counts[row] - 1.0, 0.0)
    mean = np.average(values, weights=counts)
    others, own = counts @ np.square(values - mean), float(np.square(values[row] - mean))
    if not 0.0 < others < (1.0 / _OUTLYING - 1.0) * own:
        return None
    return int(used[row]), float(np.sqrt(own / (others / counts.sum())))


def outlier_words(distance: float) -> str:
    """What a target means for a fit that is so many standard deviations of the others away from their mean."""
    return (
        f"{distance:.3g} times as far from the mean of the others as their standard deviation, so that squared errors "
        "are nearly all its own, and predictions for all rows may follow it."
    )


def _plain(values: Any, name: str, locate: Callable[[int], str]) -> np.ndarray:
    """The values as an array of text, booleans, integers or floats, none of them missing."""
    if hasattr(values, "isna"):
        missing = np.flatnonzero(values.isna().to_numpy())
        array = values.to_numpy()
    else:
        array = np.asarray(values)
        gaps: Any = [value is None for value in array] if array.dtype.kind == "O" else array != array
        missing = np.flatnonzero(gaps)
    if missing.size:
        raise DataError(
            f"the target {name!r} is missing ({MISSING}) in {missing.size} of {len(array)} rows, first in "
            f"{locate(int(missing[0]))}; remove those rows, because a missing target cannot be filled in."
        )
    array = readable(array)
    if array.ndim != 1:
        raise DataError(f"the target {name!r} must be one column, but is of shape {array.shape}.")
    if array.dtype.kind == "O" and len(array) and all(isinstance(value, (bool, np.bool_)) for value in array):
        return array.astype(bool)
    if array.dtype.kind in "OU":
        array = _text_or_numbers(array, name, locate)
    if array.dtype.kind == "f":
        # The largest number does not fit into float32 or float16.
        array = array.astype(np.float64, copy=False)
    bad = np.flatnonzero(~(np.abs(array) <= LARGEST)) if array.dtype.kind == "f" else missing
    if bad.size:
        raise DataError(
            f"the target {name!r} is {array[bad[0]]:g} in {locate(int(bad[0]))}, and must be a finite number of at "
            f"most {LARGEST:g} in size; correct the value or remove the row."
        )
    if array.dtype.kind not in "Ubiuf":
        raise DataError(f"the target {name!r} holds {array.dtype}; a target is text, booleans or numbers.")
    if array.dtype.kind != "u":
        return array
    # int64 has half of their range.
    return array.astype(np.int64 if array.max(initial=0) < 2**63 else np.float64)


def _texts(array: np.ndarray) -> np.ndarray:
    whole = (int(v) if isinstance(v, float) and v.is_integer() else v for v in array.tolist())
    return np.array([str(value) for value in whole], dtype=np.str_)


def _text_or_numbers(array: np.ndarray, name: str, locate: Callable[[int], str]) -> np.ndarray:
    """Text and codes as they are; as numbers if all are; an error if most of it are numbers and some is not."""
    odd = next((row for row, value in enumerate(array) if not isinstance(value, (str, Number))), None)
    if odd is not None:
        raise DataError(
            f"the target {name!r} holds {type(array[odd]).__name__} values such as {str(array[odd])[:40]!r} in "
            f"{locate(odd)}; a target is text, booleans or numbers."
        )
    texts = _texts(array)
    strange = [row for row, text in enumerate(texts) if not is_number(text)]
    if not strange:
        return texts if are_codes(texts) else texts.astype(np.float64)
    if len(strange) < 0.5 * len(texts):
        raise DataError(
            f"the target {name!r} holds text in {len(strange)} of {len(texts)} rows and numbers in the others; the "
            f"first is {shown(texts[strange[0]])} in {locate(strange[0])}. Correct those rows, or remove them."
        )
    return texts


def _quoted(value: Any) -> str:
    return shown(value) if isinstance(value, str) else repr(value)


def _kind(array: np.ndarray) -> str:
    if array.dtype.kind == "U":
        return "codes with leading zeros" if are_codes(array) else "text"
    if array.dtype.kind == "b":
        return "booleans"
    return "whole numbers" if (array == np.round(array)).all() else "numbers with fractions"


def _are_few(count: int, rows: int) -> bool:
    """Whether so many different values in so many rows are classes."""
    return count <= 2 or any(count <= most and rows >= each * count for most, each in _FEW_VALUES)


def _are_classes(numbers: Vector, counts: np.ndarray) -> bool:
    """Whether whole numbers (k,), ascending, that occur so often are classes."""
    few = _are_few(len(numbers), int(counts.sum()))
    if len(numbers) <= _FEW_VALUES[0][0] or len(numbers) > _FEW_VALUES[1][0]:
        return few
    steps = np.diff(numbers)
    # Numbers thin out towards their ends, so that a wide gap has no neighbours beyond it.
    if steps.max() > 2 * steps.min() == 2 * steps[-1]:
        return bool(counts.mean() >= _GROUPED)
    return few and bool(counts.min() >= _RARE)


def _task_of(array: np.ndarray, different: np.ndarray, counts: np.ndarray, name: str) -> tuple[str, str]:
    kind, count = _kind(array), len(different)
    why = f"'{name}' holds {kind}, {count} different value{'s' if count != 1 else ''}"
    if array.dtype.kind in "Ub":
        return "classification", why
    why = f"{why} in {len(array)} rows"
    if kind != "whole numbers" or count > _MOST_CLASSES:
        return "regression", why
    if _are_classes(different, counts):
        return "classification", why + (count > 2) * "; if they are quantities, --task regression"
    return "regression", f"{why}; if they are classes, --task classification"
