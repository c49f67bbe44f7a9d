"""Check numeric targets, and warn of those that are usually mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length

from mercer._errors import DataError, MercerWarning, warn_user
from mercer._sklearn import check_y
from mercer._types import CheckedRows, Vector
from mercer.data.sklearn_errors import advised
from mercer.data.target import outlier_words, outlying
from mercer.data.vectors import refuse_unreal

if TYPE_CHECKING:
    from mercer.estimators.shared.base import KernelEstimator

# Numbers may be up to this share of the largest one, so that sums of them can be computed.
_SHARE = 1e-8
_SQUARABLE = 1e152


def check_numbers(learner: KernelEstimator, y: ArrayLike, X: CheckedRows, *, several: bool) -> Vector:
    """Return one number for each row of ``X``, (n,), or with ``several`` also (n, t), in float64.

    Raises
    ------
    DataError
        If there are more or fewer, or one is not finite or not a number.

    Examples
    --------
    >>> check_numbers("Learner", [1, 2], np.eye(2), several=False)
    array([1., 2.])
    """
    refuse_unreal(y, "y")
    require_finite(y)
    with advised():
        # Text becomes numbers below, where the error names it.
        y = check_y(y, multi_output=several, y_numeric=False, estimator=learner)
        check_consistent_length(X, y)
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        name = learner if isinstance(learner, str) else type(learner).__name__
        example = next((entry for entry in np.ravel(y).tolist() if not _is_number(entry)), None)
        raise DataError(
            f"{name} learns numbers, but y holds {example!r:.80} (dtype {y.dtype}); pass numbers, or use a classifier "
            "for labels."
        ) from error
    except OverflowError as error:
        raise DataError("y holds a whole number with too many digits for a float; divide y by a number.") from error
    # Predictions have the precision of X.
    dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
    if np.abs(numbers).max(initial=0.0) > _SHARE * np.finfo(dtype).max:
        raise DataError(
            f"y reaches {np.abs(numbers).max():.3g}, where sums of predictions overflow {np.dtype(dtype)}, the "
            "precision of X; divide y by a number."
        )
    return numbers


def _is_number(entry: Any) -> bool:
    try:
        float(entry)
    except (TypeError, ValueError):
        return False
    return True


def require_finite(y: ArrayLike) -> None:
    """Raise if a number among the targets is NaN or infinite; what is not numbers passes.

    Raises
    ------
    DataError
        With the first row, and how many there are.

    Examples
    --------
    >>> require_finite([1.0, np.nan, 2.0])
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: Input y contains NaN. The targets of 1 of 3 rows are not finite, first nan in row 1; ...
    """
    try:
        numbers = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return
    if numbers.ndim == 0 or np.isfinite(numbers).all():
        return
    rows = numbers.reshape(len(numbers), -1)
    bad = np.flatnonzero(~np.isfinite(rows).all(axis=1))
    # In the words of scikit-learn, which its checks of estimators require.
    what = "NaN" if np.isnan(rows).any() else "infinity or a value too large for dtype('float64')"
    first = rows[bad[0]][~np.isfinite(rows[bad[0]])][0]
    raise DataError(
        f"Input y contains {what}. The targets of {bad.size} of {len(rows)} rows are not finite, first {first} in row "
        f"{bad[0]}; drop these rows, or replace the values."
    )


def require_squares(y: Vector) -> None:
    """Raise if squares of the targets, and with them the objective, overflow float64.

    Raises
    ------
    DataError
        For targets above 1e152; sums of ten thousand of their squares are finite.
    """
    largest = float(np.abs(y).max(initial=0.0))
    if largest > _SQUARABLE:
        raise DataError(f"y reaches {largest:.3g}, whose square overflows float64; divide y by a number.")


def warn_of_constant(y: Vector, weights: Vector | None) -> None:
    """Warn if ``y`` (n,) or (n, t) has one value in all rows with a weight.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_constant(np.array([2.0, 2.0, 3.0]), np.array([1.0, 1.0, 0.0]))
    >>> str(caught[0].message)[:36]
    'y has the value 2 in every row, so t'
    """
    used = y if weights is None else y[weights > 0]
    if len(used) < 2 or not y.size:
        return
    constant = np.flatnonzero(np.atleast_1d((used == used[0]).all(axis=0)))
    if len(constant):
        which = "y has" if y.ndim == 1 else f"column {constant[0]} of y has"
        value = used[0] if y.ndim == 1 else used[0, constant[0]]
        warn_user(
            f"{which} the value {value:g} in every row, so there is nothing to learn; check that y is the target.",
            MercerWarning,
        )


def warn_of_outlier(y: Vector, weights: Vector | None) -> None:
    """Warn if one of the targets (n,) makes up nearly all of the squared errors that a fit minimises.

    Examples
    --------
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_outlier(np.append(np.linspace(-1.0, 1.0, 99), 1e6), None)
    >>> str(caught[0].message)[:30]
    'one target, in row 99, is 1.71'
    """
    found = outlying(y, weights)
    if found is not None:
        row, distance = found
        warn_user(
            f"one target, in row {row}, is {outlier_words(distance)} Correct it, leave the row out, or use a loss "
            "that is not squared, as SVR() or KernelMachine(loss='huber').",
            MercerWarning,
        )
