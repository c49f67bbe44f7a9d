"""What a solver of a restricted problem knows of the rows: how to pass over them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mercer._errors import DataError
from mercer._types import Matrix, Positions, Vector
from mercer.engine import arrays, strips, tiles
from mercer.gram.hold import check_finite, first_rows_in_single, held_in_single
from mercer.gram.operator import Gram
from mercer.gram.protocol import GramMatrix

# Rows whose kernel values in float32 are in memory at once while those of a sample become float64.
_STRIP = 1024


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows: their targets (s, t), their weights (s, 1), and marks (s,) for a visit to write, if they are kept."""

    targets: Matrix
    weights: Matrix
    marks: NDArray[np.bool_] | None = None


Visit = Callable[[Part, Matrix], tuple[Matrix, Vector]]
Revise = Callable[[Part, Matrix], Matrix]


@dataclass(frozen=True, eq=False)
class Residuals:
    """A visit with ``U = weights * (targets - F)`` and its squares, which compiled passes make by themselves.

    Parameters
    ----------
    exponents : ndarray of int of shape (t,), optional
        Targets are divided by two to these powers.
    beside_zero : bool
        Whether the same for predictions of 0 is beside it.
    of_zero : bool
        Whether the targets are 0 instead.
    """

    exponents: Positions | None = None
    beside_zero: bool = False
    of_zero: bool = False

    def __call__(self, part: Part, F: Matrix) -> tuple[Matrix, Vector]:
        """What a pass adds up of a part, for its predictions."""
        targets = self.targets(part.targets)
        k = F.shape[1]
        left = np.hstack([targets[:, :k] - F, targets[:, k:]])
        weighted = part.weights * left
        return weighted, (weighted * left).sum(axis=0)

    def targets(self, targets: Matrix) -> Matrix:
        """Those that predictions are taken from."""
        if self.of_zero:
            return np.zeros_like(targets)
        if self.exponents is not None:
            targets = np.ldexp(targets, -self.exponents)
        return np.hstack([targets, targets]) if self.beside_zero else targets


class Passes(Protocol):
    """Rows that are seen one part at a time, as often as needed: in memory, in files or on other machines."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows n, landmarks m, targets t."""

    def sweep(self, V: Matrix, visit: Visit, widths: tuple[int, int]) -> tuple[Matrix, Vector]:
        """``K^T U`` and sums over parts, with ``U, numbers = visit(part, K[part] @ V)``; see :func:`strips.sweep`."""

    def single(self) -> Passes | None:
        """The same rows with kernel values in float32, or None if these are not cheaper."""

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""


@runtime_checkable
class RevisableRows(Passes, Protocol):
    """Rows whose targets may change from pass to pass."""

    def revised(
        self, V: Matrix, revise: Revise, visit: Visit, widths: tuple[int, int]
    ) -> tuple[RevisableRows, Matrix, Vector]:
        """The rows with the targets ``revise(part, K[part] @ V)``, and what a sweep over these returns; one pass."""


@runtime_checkable
class RowsWithState(RevisableRows, Protocol):
    """Rows for which numbers are kept from pass to pass."""

    def marked(self, most: int) -> tuple[Matrix, Part] | None:
        """The rows that the last pass has marked: what ``sample`` returns; None if there are more than ``most``."""


@runtime_checkable
class HoldableRows(Passes, Protocol):
    """Rows whose kernel values may be in memory for many passes."""

    def held_in_single(self, stack: ExitStack) -> Passes | None:
        """The same rows with kernel values in float32, in memory until the stack is closed where they fit well."""


def in_single(rows: Passes, stack: ExitStack, *, partly: bool = False) -> Passes | None:
    """Rows with kernel values in float32 for many passes, in memory where they fit; None if these are not cheaper.

    With ``partly``, some are in memory where not all fit.
    """
    single = rows.held_in_single(stack) if isinstance(rows, HoldableRows) else rows.single()
    return single.with_first_rows(stack) if partly and isinstance(single, StoredRows) else single


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows in memory.

    Parameters
    ----------
    gram : GramMatrix
        Kernel values of rows and landmarks, (n, m), in the precision of the passes: float64 for a solver.
    targets : ndarray of shape (n, t)
    weights : ndarray of shape (n,)
    n_jobs : int, optional
    first : FirstRows, optional
        The first rows of the matrix in memory, which passes over a lazy one evaluate once.
    """

    gram: GramMatrix
    targets: Matrix
    weights: Vector
    n_jobs: int | None = None
    first: strips.FirstRows | None = None
    _marks: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_marks", np.zeros(self.gram.shape[0], dtype=bool))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows n, landmarks m, targets t."""
        return (*self.gram.shape, self.targets.shape[1])

    def sweep(self, V: Matrix, visit: Visit, widths: tuple[int, int]) -> tuple[Matrix, Vector]:
        """``K^T U`` and sums over strips of rows."""
        if isinstance(visit, Residuals) and isinstance(self.gram, Gram) and self.first is None:
            targets = np.ascontiguousarray(visit.targets(self.targets))
            found = self.gram.pull_residuals(V, targets, self.weights, self.n_jobs)
            if found is not None:
                check_finite(found[0])
                return found

        def strip(rows: slice, values: Matrix) -> tuple[Matrix, Vector]:
            return visit(self._part(rows), values)

        return self._sweep(V, strip, widths)

    def revised(
        self, V: Matrix, revise: Revise, visit: Visit, widths: tuple[int, int]
    ) -> tuple[StoredRows, Matrix, Vector]:
        """The rows with the targets ``revise(part, K[part] @ V)``, and what a sweep over these returns; one pass."""
        width = revise(self._part(slice(0)), np.empty((0, V.shape[1]))).shape[1]
        rows = replace(self, targets=np.empty((self.gram.shape[0], width)))

        def strip(part: slice, values: Matrix) -> tuple[Matrix, Vector]:
            rows.targets[part] = revise(self._part(part), values)
            return visit(rows._part(part), values)

        return rows, *self._sweep(V, strip, widths)

    def _part(self, rows: slice | Positions) -> Part:
        return Part(self.targets[rows], self.weights[rows, None], self._marks[rows])

    def _sweep(self, V: Matrix, strip: strips.Visit, widths: tuple[int, int]) -> tuple[Matrix, Vector]:
        gram, dtype = self.gram, np.dtype(self.gram.dtype)
        stored = gram.stored_as(dtype)
        entries = (self.first or gram.fill) if stored is None else stored
        with np.errstate(over="ignore", invalid="ignore"):
            products, sums = strips.sweep(entries, gram.shape, dtype, V, strip, widths, self.n_jobs)
        check_finite(products)
        return products, sums

    def single(self) -> StoredRows | None:
        """The same rows with kernel values in float32; None for values that are stored."""
        if self.gram.dtype == np.float32 or self.gram.stored_array() is not None:
            return None
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return replace(self, gram=self.gram.astype(np.float32))
        except DataError:
            # Squared distances leave the range of float32.
            return None

    def held_in_single(self, stack: ExitStack) -> StoredRows | None:
        """The same rows with kernel values in float32, in memory until the stack is closed where they fit well."""
        lazy = self.single()
        if self.gram.dtype == np.float32 or (lazy is None and self.gram.stored_array() is None):
            return None
        gram = held_in_single(self.gram if lazy is None else lazy.gram, stack)
        return lazy if gram is None else replace(self, gram=gram)

    def with_first_rows(self, stack: ExitStack) -> StoredRows:
        """The same rows in float32, some in memory until the stack is closed, unless all are there."""
        if self.gram.stored_array() is not None:
            return self
        return replace(self, first=first_rows_in_single(self.gram, stack))

    def sample(self, count: int, random: np.random.RandomState) -> tuple[Matrix, Part]:
        """A uniform sample of rows: their kernel values in float64, targets and weights."""
        n = self.gram.shape[0]
        chosen = np.arange(n) if count >= n else np.sort(random.choice(n, count, replace=False))
        return self._block(None if count >= n else chosen), self._part(chosen)

    def marked(self, most: int) -> tuple[Matrix, Part] | None:
        """The rows that the last pass has marked: what ``sample`` returns; None if there are more than ``most``."""
        chosen = np.flatnonzero(self._marks)
        return None if len(chosen) > most else (self._block(chosen), self._part(chosen))

    def _block(self, rows: Positions | None) -> Matrix:
        n, m = self.gram.shape
        count, dtype = n if rows is None else len(rows), np.dtype(self.gram.dtype)
        # Callers have reserved the memory: without ``out``, a block would ask for it again.
        values = arrays.empty((count, m), np.dtype(np.float64))
        if dtype == np.float64:
            return np.asarray(self.gram.block(rows, None, out=values))
        chosen = np.arange(n) if rows is None else rows
        some = arrays.empty((min(count, _STRIP), m), dtype)
        for part in tiles.spans(count, _STRIP):
            values[part] = self.gram.block(chosen[part], None, out=some[: part.stop - part.start])
        return values
