"""What a kernel is defined on: vectors, objects of one kind, or tables whose columns are of several kinds."""

from __future__ import annotations

from typing import Any

from mercer._errors import DataError
from mercer.data.columns import MixedRows, checked_table
from mercer.data.objects import Anything, Objects
from mercer.data.vectors import column_names, column_positions
from mercer.kernels.base import Expression
from mercer.kernels.modifiers import On
from mercer.kernels.objects import ObjectKernel


def rows_of(kernel: Expression, X: Any) -> Any:
    """``X`` in the form that the kernel compares; unchanged for kernels on vectors.

    Raises
    ------
    DataError
        If the rows are not what the kernel is defined on.
    """
    kind = kernel.kind_of_rows()
    if isinstance(kind, type):
        return _leaf(kernel).read_rows(X)
    if kind == "table":
        return _with_members_read(kernel, MixedRows.of(X, _kinds_of_columns(kernel, X)))
    if kind == "anything" and not isinstance(X, (Objects, MixedRows)) and are_objects(X):
        return Anything.of(X)
    return X


def _leaf(kernel: Expression) -> ObjectKernel:
    """The first part of a kernel on objects that reads them."""
    if isinstance(kernel, ObjectKernel):
        return kernel
    return next(_leaf(child) for _, child in kernel.children() if isinstance(child.kind_of_rows(), type))


def _with_members_read(kernel: Expression, rows: MixedRows) -> MixedRows:
    """The table with the members of its columns of bags as the kernels on them compare them."""
    columns = list(rows.columns)
    for choice in choices(kernel):
        if isinstance(choice.kernel.kind_of_rows(), type):
            for position in column_positions(choice.columns, rows.names, len(columns)):
                columns[position] = _leaf(choice.kernel).read_rows(columns[position])
    unchanged = all(new is old for new, old in zip(columns, rows.columns, strict=True))
    return rows if unchanged else MixedRows(columns, rows.names)


def are_objects(X: Any) -> bool:
    """Return whether the rows are certainly not vectors.

    >>> are_objects(["a", "b"]), are_objects([[1.0], [2.0]])
    (True, False)
    """
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
    d = checked_table(X).shape[1]
    kinds: dict[int, type[Objects] | None] = {}
    for choice in choices(kernel):
        kind = choice.kernel.kind_of_rows()
        for position in column_positions(choice.columns, names, d):
            own = kind if isinstance(kind, type) else None
            if kinds.setdefault(position % d, own) is not own:
                raise DataError(f"column {position} is used both as numbers and as objects by {kernel!r}.")
    return kinds


def choices(kernel: Expression) -> list[On]:
    """Every outermost choice of columns in a kernel."""
    if isinstance(kernel, On):
        return [kernel]
    return [choice for _, child in kernel.children() for choice in choices(child)]
