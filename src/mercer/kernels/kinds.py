"""What a kernel is defined on: vectors, objects of one kind, or tables whose columns are of several kinds."""

from __future__ import annotations

from typing import Any, Literal

from mercer._errors import DataError, ParameterError
from mercer.data.columns import MixedRows, checked_table
from mercer.data.objects import Anything, Objects
from mercer.data.vectors import column_names, column_positions
from mercer.kernels.algebra import Constant
from mercer.kernels.base import Expression
from mercer.kernels.foreign import FromSklearn
from mercer.kernels.function import FromFunction
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
    if isinstance(kernel, FromSklearn):
        return "vectors" if kernel.takes_vectors else "anything"
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
        return _leaf(kernel).read_rows(X)
    if kind == "table":
        return _with_members_read(kernel, MixedRows.of(X, _kinds_of_columns(kernel, X)))
    if kind == "anything" and not isinstance(X, (Objects, MixedRows)) and _are_objects(X):
        return Anything.of(X)
    return X


def _leaf(kernel: Expression) -> ObjectKernel:
    """The first part of a kernel on objects that looks at them."""
    if isinstance(kernel, ObjectKernel):
        return kernel
    return next(_leaf(child) for _, child in kernel.children() if isinstance(kind_of_rows(child), type))


def _with_members_read(kernel: Expression, rows: MixedRows) -> MixedRows:
    """The table with the members of its columns of bags as the kernels on them compare them."""
    columns = list(rows.columns)
    for choice in choices(kernel):
        if isinstance(kind_of_rows(choice.kernel), type):
            for position in column_positions(choice.columns, rows.names, len(columns)):
                columns[position] = _leaf(choice.kernel).read_rows(columns[position])
    unchanged = all(new is old for new, old in zip(columns, rows.columns, strict=True))
    return rows if unchanged else MixedRows(columns, rows.names)


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
    d = checked_table(X).shape[1]
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
