"""Files in the format of libsvm: how they are recognised and read, and the places of their faults."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer.data.table import is_number
from mercer.data.text_files import DAMAGE, TextFile, damaged, wrong_encoding

_LIBSVM_LINE = re.compile(r"[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")
# Characters that are read at a time; they become about as many bytes of CSR.
_CHUNK = 2**22
_MOST_FEATURES = 2**31 - 1


def looks_like_libsvm(file: TextFile) -> bool:
    """Whether the first line of a file is an example in this format."""
    try:
        with file.open() as lines:
            return _LIBSVM_LINE.fullmatch(lines.readline().strip()) is not None
    except (UnicodeError, OSError):
        return False


def read_parts(file: TextFile) -> Iterator[tuple[sp.csr_matrix, np.ndarray]]:
    """Yield the rows of a file and their labels, some megabytes of text at a time.

    Column ``j`` is the feature ``j`` of the file, so that two files of one data set always agree; the matrices have all
    columns that a file can have.

    Raises
    ------
    DataError
        If the file does not have this form; the message gives line and column.
    """
    # Imported here and by name: scikit-learn's data sets bring packages that no other format needs.
    load = importlib.import_module("sklearn.datasets").load_svmlight_file
    try:
        with file.open(newline=None) as text:
            while lines := text.readlines(_CHUNK):
                data = BytesIO("".join(lines).encode())
                try:
                    X, y = load(data, n_features=_MOST_FEATURES, zero_based=True)
                except (ValueError, IndexError, OverflowError) as error:
                    raise DataError(_fault(file, str(error))) from error
                if X.shape[0]:
                    yield sp.csr_matrix(X), np.asarray(y)
    except DAMAGE as error:
        raise DataError(damaged(file.path, error)) from error
    except UnicodeError as error:
        raise DataError(wrong_encoding(file)) from error


def first_feature(X: sp.csr_matrix) -> np.ndarray:
    """The feature 0 of all rows, (n,), however many columns there may be."""
    values, entries = np.zeros(X.shape[0]), np.flatnonzero(X.indices == 0)
    values[np.searchsorted(X.indptr, entries, side="right") - 1] = X.data[entries]
    return values


def require_features(column: np.ndarray, width: int, source: str) -> None:
    """Raise if a file is a kernel matrix: rows ``label 0:i 1:K(x_i, x_1) ... n:K(x_i, x_n)`` with i = 1, ..., n.

    Parameters
    ----------
    column : ndarray of shape (n,)
        The feature 0 of all rows.
    width : int
        The number of features, with this one.
    source : str
        The file, in the message.

    Raises
    ------
    DataError
        If the file has the form that LIBSVM calls a precomputed kernel.
    """
    n = len(column)
    if n > 1 and width == n + 1 and np.array_equal(column, np.arange(1.0, n + 1)):
        raise DataError(
            f"{source} is a kernel matrix of {n} rows in LIBSVM's form (the feature 0 counts the rows), not a table of "
            "features. In Python: X, y = sklearn.datasets.load_svmlight_file(file, zero_based=True), and "
            'SVC(kernel="precomputed").fit(X[:, 1:].toarray(), y).'
        )


def _fault(file: TextFile, message: str) -> str:
    """The message for a file that cannot be read, with the place of its first fault."""
    with file.open() as lines:
        for number, line in enumerate(lines, start=1):
            last = -1
            for position, match in enumerate(re.finditer(r"\S+", line.partition("#")[0])):
                place = f"{file}, line {number}, column {match.start() + 1}"
                if position == 0 and not is_number(match[0]):
                    return f"{place}: the label {match[0]!r} is not a number; a line is 'label index:value ...'."
                if position == 0 or match[0].startswith("qid:"):
                    continue
                index, _, value = match[0].partition(":")
                if not index.isdigit() or not is_number(value):
                    return f"{place}: {match[0]!r} is not of the form index:value with two numbers."
                if len(index) > len(str(_MOST_FEATURES)) or int(index) >= _MOST_FEATURES:
                    return f"{place}: the index {index} is too large; the largest is {_MOST_FEATURES - 1}."
                if int(index) <= last:
                    return f"{place}: the index {index} follows {last}; indices within a line must increase."
                last = int(index)
    return f"{file} cannot be read as a libsvm file: {message}."
