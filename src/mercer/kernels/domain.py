"""The rows passed to a learner, in the form that its kernel compares."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from mercer._errors import DataError
from mercer._sklearn import check_feature_names, check_n_features
from mercer.data.columns import MixedRows
from mercer.data.objects import Objects
from mercer.data.sklearn_errors import advised
from mercer.data.vectors import refuse_unreal
from mercer.kernels.convert import as_kernel, read_expression
from mercer.kernels.kernel import Kernel
from mercer.kernels.kinds import rows_of


def checked_rows(kernel: Any, X: Any, name: str, one_column: bool = False) -> Any:
    """``X`` in the form that ``kernel`` compares; vectors as an array or CSR of float32 or float64.

    The kernel is anything that :func:`mercer.kernels.as_kernel` takes. With ``one_column``, n numbers are rows of one.

    Raises
    ------
    DataError
        If the rows cannot be used; the message contains ``name``.

    Examples
    --------
    >>> checked_rows("rbf", [[1, 2], [3, 4]], "X").dtype
    dtype('float64')
    """
    rows = _rows_of_given(kernel, X)
    if rows is not None:
        return rows
    if one_column and not sp.issparse(X) and np.ndim(X) == 1:
        X = np.asarray(X)[:, None]
    refuse_unreal(X, name)
    try:
        with advised():
            return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", input_name=name)
    except DataError as error:
        raise DataError(f"{name} cannot be used: {error}") from error


def checked_objects(learner: Any, kernel: Any, X: Any, *, reset: bool) -> Objects | MixedRows | None:
    """``X`` for a learner of scikit-learn's kind as objects, or as columns of several kinds; None for vectors.

    ``kernel`` is the learner's parameter. Names and numbers of columns are kept, or checked, as scikit-learn does.
    """
    early = not reset and isinstance(kernel, Kernel) and kernel.kind_of_rows() == "table"
    if early:
        # Before the columns are read: columns in another order would only be reported as being of the wrong kind.
        check_feature_names(learner, X, reset=False)
    rows = _rows_of_given(kernel, X)
    if rows is None:
        return None
    if reset:
        # Objects have no columns, and those of an earlier fit on vectors are not theirs.
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(learner, name):
                delattr(learner, name)
    if isinstance(rows, MixedRows):
        if not early:
            check_feature_names(learner, X, reset=reset)
        check_n_features(learner, rows, reset=reset)
    return rows


def _rows_of_given(kernel: Any, X: Any) -> Objects | MixedRows | None:
    """``X`` in the form that a kernel or a user-defined function compares; None for vectors."""
    kernel = read_expression(kernel)
    if not isinstance(kernel, Kernel) and (isinstance(kernel, type) or not callable(kernel)):
        return None
    rows = rows_of(as_kernel(kernel), X)
    return rows if isinstance(rows, (Objects, MixedRows)) else None
