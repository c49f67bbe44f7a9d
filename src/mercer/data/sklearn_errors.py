"""What to do next, added to what scikit-learn's checks of the input say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn import config_context

from mercer._errors import DataError

_OTHER_ROWS = "For rows that are not vectors (series, trees, graphs, images) pass a matching kernel of mercer.kernels."
_ON_DEVICE = (
    "Mercer computes on the processor: pass NumPy arrays, by tensor.cpu().numpy() in PyTorch, array.get() in CuPy."
)
# Parts of messages of scikit-learn and libraries of arrays that say what was wrong and not what Mercer needs.
_ADVICE = (
    ("device type tensor to numpy", _ON_DEVICE),
    ("Implicit conversion to a NumPy array is not allowed", _ON_DEVICE),
    (
        "X contains NaN",
        "Fill missing values in (sklearn.impute.SimpleImputer), drop those rows, or use TabularClassifier or "
        "TabularRegressor, which take them as they are.",
    ),
    ("contains infinity", "Drop those rows or replace the values; numpy.isfinite shows where they are."),
    (
        "could not convert string to float",
        "Encode text and categories first (sklearn.preprocessing.OneHotEncoder), or use what takes such tables: "
        "TabularRegressor, TabularClassifier, kernels on columns, such as RBF(1.0).on(['size']) + "
        "Spectrum(3).on(['name']), and `mercer fit` for files. For rows of text pass a kernel on strings, such as "
        "mercer.kernels.Spectrum(3).",
    ),
    (
        "too large to convert to float",
        "A whole number has too many digits for a float; divide it and those beside it, or give their logarithms.",
    ),
    ("setting an array element with a sequence", f"Rows of numbers must have equal lengths. {_OTHER_ROWS}"),
    ("float() argument must be", _OTHER_ROWS),
    ("Found array with dim", _OTHER_ROWS),
    ("feature names should match", "Pass the columns of the fit in their order: X[list(model.feature_names_in_)]."),
    ("features as input", "Pass the columns that the model was fitted on."),
    ("while a minimum of", "Check how X was selected; it needs rows and columns."),
    ("inconsistent numbers of samples", "Pass one target for each row of X."),
    ("should be a 1d array", "Pass one label for each row of X."),
)
_NATIVELY = re.compile(r"\s+\w+ does not accept missing values encoded as NaN natively")


@contextmanager
def advised() -> Iterator[None]:
    """Raise what scikit-learn finds wrong with the input as a DataError that also says what to do.

    Arrays of other libraries become NumPy's, also where scikit-learn's ``array_api_dispatch`` would keep them.

    >>> with advised():
    ...     raise ValueError("y should be a 1d array.")
    Traceback (most recent call last):
        ...
    mercer._errors.DataError: y should be a 1d array. Pass one label for each row of X.
    """
    try:
        with config_context(array_api_dispatch=False):
            yield
    except DataError:
        raise
    except (ValueError, OverflowError) as error:
        raise DataError(_with_advice(error)) from error
    except TypeError as error:
        # scikit-learn's contract requires this class.
        raise TypeError(_with_advice(error)) from error


def _with_advice(error: Exception) -> str:
    # scikit-learn goes on to learners of its own.
    message = _NATIVELY.split(str(error))[0].rstrip()
    advice = next((what_to_do for part, what_to_do in _ADVICE if part in message), "")
    if advice and message[-1:] not in ".!?:":
        message += "."
    return f"{message} {advice}".rstrip()
