"""The two sides of a block of kernel values: the rows, and what kernels prepare from them.

``Rows`` holds one side and the operands that kernels prepare from it, once (scaled columns, norms, diagonals). A
``Frame`` says how both sides of a block are laid out.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import scipy.sparse as sp

from mercer._errors import DataError
from mercer._types import Array
from mercer.data.column_statistics import is_binary, middle, varying_columns
from mercer.data.columns import MixedRows, as_table
from mercer.data.objects import Objects
from mercer.data.vectors import as_vectors, column_names, column_positions, select_columns
from mercer.engine.gather import gather
from mercer.kernels.raw_rows import as_array, count, pick

Kind = TypeVar("Kind", bound=Objects)
Scope = tuple[Hashable, ...]
Operand = tuple[Any, ...]
Index = slice | np.ndarray


class Rows:
    """One side of a block. Prepared operands are stored; a part of the rows (``take``) reuses those of the whole."""

    def __init__(
        self, X: Any, *, names: tuple[str, ...] | None = None, parent: Rows | None = None, index: Index | None = None
    ) -> None:
        self._parent, self._index = parent, index
        self._cache: dict[Hashable, Any] = {}
        self._row_cache: dict[Hashable, Any] = {}
        self._lock = threading.RLock()
        if parent is None:
            # CSR is the sparse form that rows can be picked from.
            self._cache["raw"] = sp.csr_matrix(X) if sp.issparse(X) else as_array(X)
            self._given = X
            self.names = names or (X.names if isinstance(X, MixedRows) else column_names(X))
            self.n = count(X)
            # Row numbers tell White which pairs are one and the same row.
            self.numbers = np.arange(self.n)
        else:
            self.names = parent.names
            self.numbers = parent.numbers[index]
            self.n = len(self.numbers)

    def __reduce__(self) -> tuple[Any, ...]:
        """Without what is prepared, and the lock: these are made again."""
        if self._parent is not None:
            return Rows.take, (self._parent, self._index)
        return _rows, (self._given, self.names)

    def keep(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The object stored under ``key``, made at the first call."""
        with self._lock:
            if key not in self._cache:
                self._cache[key] = make()
            return self._cache[key]

    def holds(self, thing: Any) -> bool:
        """Whether a thing is one that is stored here."""
        with self._lock:
            return any(thing is stored for stored in self._cache.values())

    def hold(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The same for objects that depend on the rows alone: ``renewed`` rows share them."""
        with self._lock:
            return self._row_cache[key] if key in self._row_cache else self._row_cache.setdefault(key, make())

    def renewed(self) -> Rows:
        """The same rows without their prepared operands, except those that ``hold`` stores.

        A search over parameters prepares new operands for each of their values.
        """
        rows = Rows(self._given, names=self.names)
        rows._row_cache = self._row_cache
        return rows

    @property
    def raw(self) -> Any:
        """The rows as they were passed; those of a part are selected on first access."""
        return self.keep("raw", lambda: pick(self._parent.raw, self._index))  # type: ignore[union-attr,arg-type]

    @property
    def vectors(self) -> np.ndarray | sp.csr_matrix:
        """The rows as numbers; raises DataError for anything else."""
        if self._parent is not None:
            return self.keep("vectors", lambda: self._parent.vectors[self._index])  # type: ignore[union-attr]
        return self.keep("vectors", lambda: as_vectors(self.raw))

    def objects(self, kind: type[Kind]) -> Kind:
        """The rows as objects of a kind; raises DataError for anything else."""
        if self._parent is not None:
            return self.keep(kind, lambda: self._parent.objects(kind)[self._index])  # type: ignore[union-attr]
        # As they were given: an array of rows of tokens would turn True into 1.
        return self.keep(kind, lambda: kind.of(self._given))

    @property
    def dtype(self) -> np.dtype:
        """float32 for float32 input, float64 for everything else."""
        if self._parent is not None:
            return self._parent.dtype
        dtype = getattr(self.raw, "dtype", None)
        single = isinstance(dtype, np.dtype) and dtype == np.float32
        return np.dtype(np.float32) if single else np.dtype(np.float64)

    def take(self, index: Index) -> Rows:
        """The rows at ``index``; a slice costs nothing."""
        whole = isinstance(index, slice) and index == slice(0, self.n)
        return self if whole else Rows(None, parent=self, index=index)

    def derived(self, key: Hashable, make: Callable[[Any], Any]) -> Rows:
        """The rows after a map or a choice of columns, shared by all kernels that use the same."""
        if self._parent is not None:
            parent, index = self._parent, self._index
            return self.keep(key, lambda: parent.derived(key, make).take(index))  # type: ignore[arg-type]
        return self.keep(key, lambda: self._derive(key, make))

    def _derive(self, key: Hashable, make: Callable[[Any], Any]) -> Rows:
        rows = Rows(make(self.raw))
        rows._row_cache = self._row_cache.setdefault(("derived", key), {})
        return rows

    def on(self, columns: tuple[int | str, ...]) -> Rows:
        """The chosen columns, by position or name."""
        return self.derived(("on", columns), lambda _: self.root._chosen(columns))

    def _chosen(self, columns: tuple[int | str, ...]) -> Any:
        if isinstance(self.raw, MixedRows):
            return self.raw.on(column_positions(columns, self.names, self.raw.shape[1]))
        # Of a data frame, or of rows of objects, the rest may be text, so it is cut before it is read as numbers.
        if hasattr(self.raw, "iloc"):
            return self.raw.iloc[:, column_positions(columns, self.names, self.raw.shape[1])]
        if column_names(self.raw) is not None:
            # Of polars, for instance.
            return self.raw[:, column_positions(columns, self.names, self.raw.shape[1])].to_numpy()
        if isinstance(self.raw, (list, tuple)) or getattr(self.raw, "dtype", np.dtype(float)).kind == "O":
            table = as_table(self.raw)
            if table.ndim == 2:
                return table[:, column_positions(columns, self.names, table.shape[1])]
        # Whole numbers are not rounded to floats here: codes may be above 2^53.
        whole = isinstance(self.raw, np.ndarray) and self.raw.ndim == 2 and self.raw.dtype.kind in "iu"
        return select_columns(self.raw if whole else self.vectors, columns, self.names)

    @property
    def root(self) -> Rows:
        """The rows that these were taken from."""
        return self if self._parent is None else self._parent.root

    @property
    def center(self) -> Array | None:
        """A point among most of the rows, in float64: distances about it keep more digits. None for CSR."""
        if self._parent is not None:
            return self._parent.center
        X = self.vectors
        return self.keep("center", lambda: None if sp.issparse(X) else middle(X))

    @property
    def width(self) -> float:
        """Numbers in a row, in words of 64 bits if they are zeros and ones; infinite for rows that are not a table."""
        try:
            columns = self.root.vectors.shape[1]
        except DataError:
            return np.inf
        return columns / 64 if self.is_binary else columns

    @property
    def is_binary(self) -> bool:
        """Whether all rows are of zeros and ones."""
        return self.root.keep("is binary", lambda: is_binary(self.root.vectors))

    def operand(self, statistic: Any, frame: Frame, dtype: np.dtype) -> Operand:
        """What ``statistic`` prepares from these rows as one side of ``frame``."""
        key = (statistic, frame.key, dtype)
        if self._parent is not None:
            parent, index = self._parent, self._index
            return self.keep(key, lambda: tuple(gather(a, index) for a in parent.operand(statistic, frame, dtype)))
        return self.keep(key, lambda: statistic.prepare(self, frame, dtype))

    def vector(self, key: Hashable, make: Callable[[Rows], Array]) -> Array:
        """One number a row, such as ``k(x, x)``."""
        if self._parent is not None:
            parent, index = self._parent, self._index
            return self.keep(key, lambda: parent.vector(key, make)[index])
        return self.keep(key, lambda: make(self))


def _rows(X: Any, names: tuple[str, ...] | None) -> Rows:
    return Rows(X, names=names)


# A sparse side is made dense where it then has at most this many numbers: a dense product is then the faster one.
DENSE_ENTRIES = 2**25

Layout = Literal["dense", "sparse", "bits"]


@dataclass(frozen=True, eq=False)
class Frame:
    """What the two sides of a block have in common: the point about which the rows are centred, and their layout."""

    left: Rows
    right: Rows

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Frame) and self.left is other.left and self.right is other.right

    def __hash__(self) -> int:
        return hash((id(self.left), id(self.right)))

    @property
    def key(self) -> Hashable:
        """What the sides store operands under: it keeps no side, so that rows are freed once they are not used."""
        return weakref.ref(self.left), weakref.ref(self.right)

    @cached_property
    def center(self) -> Array | None:
        """The point about which distances are computed."""
        return self.right.center

    @property
    def varying(self) -> slice | np.ndarray:
        """The columns that are not constant, if the sides are the same rows and many columns are constant."""
        if self.left is not self.right:
            return slice(None)
        return self.left.keep("varying", lambda: varying_columns(self.left.vectors))

    @cached_property
    def layout(self) -> Layout:
        """``"bits"`` for zeros and ones, ``"sparse"`` for CSR too large to be made dense, else ``"dense"``."""
        if self.left.is_binary and self.right.is_binary:
            return "bits"
        A, B = self.left.vectors, self.right.vectors
        small = max(A.shape[0] * A.shape[1], B.shape[0] * B.shape[1]) <= DENSE_ENTRIES
        return "dense" if small or not (sp.issparse(A) or sp.issparse(B)) else "sparse"

    def check_columns(self) -> None:
        """Raise unless both sides have equally many columns, in the same order where both name theirs."""
        d, other_d = self.left.vectors.shape[1], self.right.vectors.shape[1]
        if d != other_d:
            raise DataError(
                f"the two sides of a kernel must have the same number of columns, but have {d} and {other_d}."
            )
        names, others = self.left.names, self.right.names
        if names and others and names != others and sorted(names) == sorted(others):
            first = next(i for i, (one, other) in enumerate(zip(names, others, strict=True)) if one != other)
            raise DataError(
                f"the two sides of a kernel have the same columns in another order: column {first} is "
                f"{names[first]!r} and {others[first]!r}. Pass Z[X.columns]."
            )
