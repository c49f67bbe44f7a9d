"""Kernels of mapped rows, on some columns, scaled by a function, or normalised."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.data.objects import short
from mercer.data.vectors import as_vectors
from mercer.kernels.algebra import Unary
from mercer.kernels.base import ATOM, Definiteness, Kind, LinearParts
from mercer.kernels.explicit import multiplied
from mercer.kernels.inputs import Rows, Scope
from mercer.kernels.kernel import OPERATIONS
from mercer.kernels.operands import unit_rows
from mercer.kernels.pairs import MatchedPairs, Pairs, scratch
from mercer.kernels.parameters import check_function
from mercer.kernels.plan import check_finite, diagonal
from mercer.loops import sides

if TYPE_CHECKING:
    from mercer.kernels.program import Lowering


@dataclass(frozen=True, repr=False)
class On(Unary):
    """The kernel on some columns only.

    Parameters
    ----------
    kernel : Kernel
    columns : int, str, or list of int or str
        Positions or names.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.
    """

    columns: tuple[int | str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        columns = self.columns
        if isinstance(columns, (str, int, np.integer)):
            columns = (columns,)
        try:
            columns = tuple(_column(c) for c in columns)
        except TypeError as error:
            raise ParameterError(f"columns must be positions or names, but are {short(self.columns)}.") from error
        if not columns:
            raise ParameterError("on() needs at least one column.")
        object.__setattr__(self, "columns", columns)

    @property
    def chooses_columns(self) -> bool:
        return True

    def _expression(self) -> str:
        return f"{self.kernel._inside(ATOM)}.on({list(self.columns)!r})"

    def kind_of_rows(self) -> Kind:
        inner = self.kernel.kind_of_rows()
        return "vectors" if inner in ("vectors", "anything") else "table"

    def _seen_by_parts(self, rows: Rows) -> Rows:
        return rows.on(self.columns)

    def _through(self, pairs: Pairs) -> Pairs:
        left = pairs.left.on(self.columns)
        right = left if pairs.right is pairs.left else pairs.right.on(self.columns)
        return pairs.seen(left, right, ("on", self.columns))

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(self._through(pairs), out)

    def _lower(self, program: Lowering) -> bool:
        with program.seen(self._seen_by_parts, ("on", self.columns)):
            return program.kernel(self.kernel)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        self.kernel._pull(self._through(pairs), weights, slopes)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        return self.kernel._uses((*scope, ("on", self.columns)))

    def _linear_parts(self, rows: Rows) -> LinearParts | None:
        return self.kernel._linear_parts(rows.on(self.columns))

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        return self.kernel._explicit_features(rows.on(self.columns), most)


def _column(column: Any) -> int | str:
    if isinstance(column, str):
        return str(column)
    if isinstance(column, (bool, np.bool_)):
        # A mask would be read as the positions 0 and 1.
        raise TypeError("a mask, not positions")
    return operator.index(column)


@dataclass(frozen=True, repr=False)
class Warped(Unary):
    """``k(map(x), map(z))``.

    Parameters
    ----------
    kernel : Kernel
    map : callable
        From rows ``(n, d)`` to rows ``(n, d')``.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.
    """

    map: Callable[[Any], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_function("warped", self.map)

    def _expression(self) -> str:
        return f"{self.kernel._inside(ATOM)}.warped({_name(self.map)})"

    def kind_of_rows(self) -> Kind:
        return "anything"

    def _seen_by_parts(self, rows: Rows) -> Rows:
        return rows.derived(("map", self.map), self._mapped)

    def _through(self, pairs: Pairs) -> Pairs:
        left = self._seen_by_parts(pairs.left)
        right = left if pairs.right is pairs.left else self._seen_by_parts(pairs.right)
        return pairs.seen(left, right, ("map", self.map))

    def _mapped(self, X: Any) -> Any:
        mapped = self.map(X)
        n = len(X) if not hasattr(X, "shape") else X.shape[0]
        rows = mapped.shape[0] if hasattr(mapped, "shape") else len(mapped)
        if rows != n:
            raise DataError(f"the map {_name(self.map)} returned {rows} rows for {n}; it must return one for each.")
        return mapped

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(self._through(pairs), out)

    def _lower(self, program: Lowering) -> bool:
        with program.seen(self._seen_by_parts, ("map", self.map)):
            return program.kernel(self.kernel)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        self.kernel._pull(self._through(pairs), weights, slopes)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        return self.kernel._uses((*scope, ("map", self.map)))


def _name(function: Any) -> str:
    return getattr(function, "__name__", None) or repr(function)


@dataclass(frozen=True, repr=False)
class ScaledBy(Unary):
    """``f(x) k(x, z) f(z)``.

    Parameters
    ----------
    kernel : Kernel
    function : callable
        f, from the rows ``(n, d)`` to ``(n,)`` numbers.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.
    """

    function: Callable[[Any], Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_function("scaled_by", self.function)

    def _expression(self) -> str:
        return f"{self.kernel._inside(ATOM)}.scaled_by({_name(self.function)})"

    def _values(self, rows: Rows) -> Array:
        values = np.asarray(self.function(rows.raw), dtype=np.float64)
        if values.shape != (rows.n,) or not np.isfinite(values).all():
            problem = f"an array of shape {values.shape}" if values.shape != (rows.n,) else "NaN or an infinity"
            raise DataError(
                f"the function {_name(self.function)} must return {rows.n} finite numbers, one a row, but returned "
                f"{problem}."
            )
        return values

    def _weigh(self, pairs: Pairs, values: Array) -> None:
        left, right = pairs.vectors(("f", self.function), self._values)
        if isinstance(pairs, MatchedPairs):
            values *= left
            values *= right
        else:
            sides.scale(values, left, right)

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(pairs, out)
        self._weigh(pairs, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        weights = weights.copy()
        self._weigh(pairs, weights)
        self.kernel._pull(pairs, weights, slopes)

    @property
    def definiteness(self) -> Definiteness:
        # A conditional kernel is one on vectors that sum to 0, and f changes which vectors do.
        return "positive" if self.kernel.definiteness == "positive" else "indefinite"


def squares_fit(rows: Rows, squares_of: Callable[[Rows], Array], dtype: np.dtype, key: Hashable = None) -> bool:
    """Whether numbers such as ``k(x, x)``, and others of their size, are in the range of a precision for all rows."""

    def look() -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            squares = squares_of(rows.root)
        info = np.finfo(dtype)
        outside = ~((squares > info.tiny / info.eps) & (squares < info.max * info.eps))
        # A row of zeros has the value 0 by right.
        return not outside.any() or not abs(rows.root.vectors[outside]).max() > 0

    return bool(rows.root.keep(("squares fit", key, dtype), look))


@dataclass(frozen=True, repr=False)
class Normalized(Unary):
    """``k(x, z) / sqrt(k(x, x) k(z, z))``, and 0 where a row has ``k(x, x) = 0``.

    Parameters
    ----------
    kernel : Kernel
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.
    """

    def _expression(self) -> str:
        return f"{self.kernel._inside(ATOM)}.normalized()"

    @property
    def definiteness(self) -> Definiteness:
        return "positive" if self.kernel.definiteness == "positive" else "indefinite"

    def _through(self, pairs: Pairs) -> Pairs:
        """Rows whose values of k overflow or underflow are replaced by unit rows, if this changes no cosine."""
        if self.kernel.homogeneity is None:
            return pairs
        left = self._in_range(pairs.left, pairs.dtype)
        right = left if pairs.right is pairs.left else self._in_range(pairs.right, pairs.dtype)
        unchanged = left is pairs.left and right is pairs.right
        return pairs if unchanged else pairs.seen(left, right, "unit rows")

    def _in_range(self, rows: Rows, dtype: np.dtype) -> Rows:
        if squares_fit(rows, lambda whole: diagonal(self.kernel, whole), dtype, self.kernel):
            return rows
        return rows.derived("unit rows", lambda raw: unit_rows(as_vectors(raw)))

    def _inverse_norms(self, rows: Rows) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            squares = diagonal(self.kernel, rows)
        check_finite(squares, self.kernel)
        if squares.min() < 0:
            raise DataError(
                f"{self.kernel!r} has k(x, x) = {squares.min():g} < 0 in row {int(squares.argmin())}, so it cannot "
                "be normalised; only positive semi-definite kernels can."
            )
        return np.divide(1.0, np.sqrt(squares), out=np.zeros_like(squares), where=squares > 0)

    def _explicit_features(self, rows: Rows, most: int) -> Any | None:
        if self.kernel.homogeneity is not None:
            rows = self._in_range(rows, np.dtype(np.float64))
        features = self.kernel._explicit_features(rows, most)
        return None if features is None else multiplied(features, self._inverse_norms(rows), rows)

    def _norms(self, pairs: Pairs) -> tuple[Array, Array]:
        return pairs.vectors(("inverse norm", self.kernel), self._inverse_norms)

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs = self._through(pairs)
        # First, since a diagonal that overflows is an error.
        left, right = self._norms(pairs)
        self.kernel._fill(pairs, out)
        # A row with itself is 1 by definition; rounding would leave it beside 1.
        if isinstance(pairs, MatchedPairs):
            out *= left
            out *= right
            np.rint(out, out=out)
        else:
            sides.cosines(out, left, right, *pairs.numbers())

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        pairs = self._through(pairs)
        left, right = self._norms(pairs)
        outer = weights * left * right if isinstance(pairs, MatchedPairs) else weights * left[:, None] * right
        self.kernel._pull(pairs, outer, slopes)
        with scratch(weights) as values:
            self._fill(pairs, values)
            by_row, by_column = pairs.sums(weights * values)
        for side, sums, norms in zip(pairs.sides(), (by_row, by_column), (left, right), strict=True):
            self.kernel._pull(side, -0.5 * sums * norms.ravel() ** 2, slopes)


OPERATIONS.update(on=On, scaled_by=ScaledBy, normalized=Normalized, warped=Warped)
