"""What a kernel is defined on: vectors, objects of one kind, or tables whose columns are of several kinds."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import _check_feature_names, _check_n_features

from mercer._errors import DataError, ParameterError
from mercer.data.advice import advised
from mercer.data.columns import MixedRows
from mercer.data.objects import Anything, Objects
from mercer.data.vectors import column_names, column_positions
from mercer.kernels.algebra import Constant
from mercer.kernels.base import Expression
from mercer.kernels.convert import as_kernel
from mercer.kernels.function import FromFunction
from mercer.kernels.kernel import Kernel
from mercer.kernels.modifiers import On, Warped
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.vector.columnwise import White

Kind = type[Objects] | Literal["vectors", "table", "anything"]


def kind_of_rows(kernel: Expression) -> Kind:
    """The kind of objects that a kernel compares; or ``"vectors"``, ``"table"`` for columns of several kinds, or
    ``"anything"`` where only functions of the user's own look at the rows.

    Raises
    ------
    ParameterError
        If its parts are defined on different things.

    Examples
    --------
    >>> from mercer.kernels import RBF, Spectrum
    >>> kind_of_rows(2.0 * Spectrum(3) + 1.0), kind_of_rows(RBF(1.0).on([0]) * Spectrum(3).on([1]))
    (<class 'mercer.data.strings.Strings'>, 'table')
    """
    if isinstance(kernel, ObjectKernel):
        return kernel.rows_of
    if isinstance(kernel, On):
        return "table" if _holds_objects(kernel.kernel) else "vectors"
    if isinstance(kernel, (FromFunction, Warped, Constant, White)):
        return "anything"
    kinds = {child: kind_of_rows(child) for _, child in kernel.children()}
    definite = {kind: child for child, kind in kinds.items() if kind != "anything"}
    if not kernel.children():
        return "vectors"
    if len(definite) == 2 and set(definite) == {"table", "vectors"} and isinstance(definite["vectors"], On):
        return "table"
    if len(definite) > 1:
        (one, first), (other, second) = list(definite.items())[:2]
        raise ParameterError(
            f"{first!r} compares {_called(one)} and {second!r} compares {_called(other)}, so no row is both; say which "
            "columns of a table each is for, as in mercer.kernels.product_of."
        )
    return next(iter(definite), "anything")


def _called(kind: Kind) -> str:
    return kind if isinstance(kind, str) else kind.kind


def _holds_objects(kernel: Expression) -> bool:
    """Whether what a choice of columns leaves is compared as objects."""
    kind = kind_of_rows(kernel)
    return kind not in ("vectors", "anything")


def rows_of(kernel: Expression, X: Any) -> Any:
    """``X`` in the form that the kernel compares; as it is where it is for vectors.

    Raises
    ------
    DataError
        If the rows are not what the kernel is defined on.
    """
    kind = kind_of_rows(kernel)
    if isinstance(kind, type):
        return kind.of(X)
    if kind == "table":
        return MixedRows.of(X, _kinds_of_columns(kernel, X))
    if kind == "anything" and not isinstance(X, (Objects, MixedRows)) and _are_objects(X):
        return Anything.of(X)
    return X


def checked_rows(kernel: Any, X: Any, name: str, one_column: bool = False) -> Any:
    """``X`` in the form that ``kernel`` compares; vectors as an array or CSR of float32 or float64.

    The kernel is anything that :func:`mercer.kernels.as_kernel` takes. With ``one_column``, n numbers are rows of one.

    Raises
    ------
    DataError
        If the rows cannot be used; with ``name``.

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
    try:
        with advised():
            return check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C", input_name=name)
    except DataError as error:
        raise DataError(f"{name} cannot be used: {error}") from error


def checked_objects(learner: Any, kernel: Any, X: Any, *, reset: bool) -> Objects | MixedRows | None:
    """``X`` for a learner of scikit-learn's kind as objects, or as columns of several kinds; None for vectors.

    ``kernel`` is what the learner was given as such. Names and numbers of columns are kept, or checked, as
    scikit-learn does.
    """
    rows = _rows_of_given(kernel, X)
    if rows is None:
        return None
    if reset:
        # Objects have no columns, and those of an earlier fit on vectors are not theirs.
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(learner, name):
                delattr(learner, name)
    if isinstance(rows, MixedRows):
        _check_feature_names(learner, X, reset=reset)
        _check_n_features(learner, rows, reset=reset)
    return rows


def _rows_of_given(kernel: Any, X: Any) -> Objects | MixedRows | None:
    """``X`` as what a kernel, or a function of the user's own, compares; None for vectors."""
    if not isinstance(kernel, Kernel) and (isinstance(kernel, type) or not callable(kernel)):
        return None
    rows = rows_of(as_kernel(kernel), X)
    return rows if isinstance(rows, (Objects, MixedRows)) else None


def _are_objects(X: Any) -> bool:
    """Whether the rows are surely no vectors."""
    if hasattr(X, "iloc") or hasattr(X, "tocsr") or not hasattr(X, "__len__") or not len(X):
        return False
    if hasattr(X, "dtype"):
        return X.ndim == 1 and X.dtype.kind in "OUS"
    return not isinstance(X[0], (list, tuple, int, float)) and getattr(X[0], "ndim", None) != 1


def _kinds_of_columns(kernel: Expression, X: Any) -> dict[int, type[Objects] | None]:
    """The columns of a table that a kernel asks for, and what each is to be read as."""
    if isinstance(X, MixedRows):
        return {}
    names = column_names(X)
    d = (X if hasattr(X, "iloc") else np.asarray(X, dtype=object)).shape[-1]
    found: dict[int, type[Objects] | None] = {}
    for chosen in choices(kernel):
        kind = kind_of_rows(chosen.kernel)
        for position in column_positions(chosen.columns, names, d):
            own = kind if isinstance(kind, type) else None
            if found.setdefault(position % d, own) is not own:
                raise DataError(f"column {position} is asked for both as numbers and as objects by {kernel!r}.")
    return found


def choices(kernel: Expression) -> list[On]:
    """Every outermost choice of columns in a kernel."""
    if isinstance(kernel, On):
        return [kernel]
    return [choice for _, child in kernel.children() for choice in choices(child)]
