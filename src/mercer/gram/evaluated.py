"""A kernel matrix that was evaluated once for many problems, in the precisions that the memory budget allows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from mercer._types import Array, Positions, Vector
from mercer.engine import arrays, tiles
from mercer.gram.hold import check_finite, reserve_whole, whole_matrix
from mercer.gram.operator import Gram
from mercer.gram.precomputed import PrecomputedGram
from mercer.gram.protocol import GramMatrix


class EvaluatedGram(GramMatrix):
    """One matrix with a form for each precision: an array of its entries, or, where that did not fit, a lazy matrix.

    Solvers take their steps in float32 and check the answer in float64, and many problems over parts of one matrix
    need both. Parts share the arrays.

    Parameters
    ----------
    forms : dict of dtype to GramMatrix
        The same matrix in float32 and in float64.
    dtype : {float32, float64}
        The precision of this view.
    squared_norms : ndarray of shape (n,), optional
        k(x, x) of the rows, for a matrix of new rows and the rows of a fit, which does not contain them.

    Examples
    --------
    >>> K = np.array([[2.0, 0.1], [0.1, 3.0]])
    >>> gram = EvaluatedGram({np.dtype(t): PrecomputedGram(K.astype(t)) for t in ("f4", "f8")}, np.float64)
    >>> gram.astype(np.float32).restrict([1], [0]).block().dtype, (gram @ np.ones(2)).tolist()
    (dtype('float32'), [2.1, 3.1])
    """

    def __init__(
        self, forms: Mapping[np.dtype, GramMatrix], dtype: DTypeLike, squared_norms: Vector | None = None
    ) -> None:
        self._forms, self._dtype = forms, np.dtype(dtype)
        self.squared_norms = squared_norms
        self.n_jobs: int | None = None
        self._form = forms[self._dtype]

    @classmethod
    def evaluate(cls, gram: Gram, stack: ExitStack) -> EvaluatedGram | None:
        """Evaluate a lazy symmetric matrix in float64 and float32, or in float32 alone; None if neither fits.

        Parameters
        ----------
        gram : Gram
        stack : ExitStack
            Keeps the memory reserved until it is closed.
        """
        n, m = gram.shape
        double, single = np.dtype(np.float64), np.dtype(np.float32)
        dtype, _ = reserve_whole((n, m), stack, {double: 6 * n * m, single: 4 * n * m})
        if dtype is None:
            return None
        entries = arrays.empty((n, m), dtype)
        if dtype == double:
            gram.astype(double).dense(entries)
        else:
            _round_into(entries, gram.astype(double))
        check_finite(entries)
        forms: dict[np.dtype, GramMatrix] = {kind: gram.astype(kind) for kind in (double, single)}
        forms[dtype] = PrecomputedGram(entries, finite=True)
        # Another thread may have reserved the rest in the meantime.
        if dtype == double and reserve_whole((n, m), stack, {single: 0})[0] is not None:
            # What overflows float32 is seen by the solvers, which then take float64.
            forms[single] = PrecomputedGram(tiles.converted(entries, single))
        return cls(forms, double)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._form.shape

    @property
    def dtype(self) -> np.dtype:
        """The precision of the entries of this view."""
        return self._dtype

    def __matmul__(self, V: Any) -> Array:
        """``K @ V`` for ``V`` of shape ``(m,)`` or ``(m, k)``."""
        product: Array = self._form @ V
        return product

    def block(self, rows: Any = None, columns: Any = None, out: Array | None = None) -> Array:
        """Return a dense part."""
        return self._form.block(rows, columns, out)

    def fill(self, rows: Any, columns: slice, out: Array) -> None:
        """Write a part into an array, in this thread."""
        self._form.fill(rows, columns, out)

    def diagonal(self) -> Array:
        """Return ``K_ii`` in float64."""
        return self._forms[np.dtype(np.float64)].diagonal()

    def restrict(self, rows: Any = None, columns: Any = None) -> EvaluatedGram:
        """Return the part at some rows and columns; nothing is copied."""
        forms = {dtype: form.restrict(rows, columns) for dtype, form in self._forms.items()}
        norms = self.squared_norms
        return EvaluatedGram(forms, self._dtype, norms if norms is None or rows is None else norms[rows])

    def for_new_rows(self, positions: Positions, fitted: Positions) -> EvaluatedGram:
        """Return the part of new rows and the rows of a fit, with k(x, x) of the former; nothing is copied."""
        part = self.restrict(positions, fitted)
        norms = np.asarray(self.restrict(positions, positions).diagonal(), dtype=np.float64)
        return EvaluatedGram(part._forms, self._dtype, norms)

    def with_entries(self, rows: Positions, columns: Positions, values: Vector) -> EvaluatedGram:
        """Return a copy with other values at some entries (rows[i], columns[i])."""
        entries = self.block()
        entries[rows, columns] = values
        return EvaluatedGram({self._dtype: PrecomputedGram(entries, symmetric=False)}, self._dtype, self.squared_norms)

    def astype(self, dtype: DTypeLike) -> EvaluatedGram:
        """Return the view in another precision."""
        return EvaluatedGram(self._forms, dtype, self.squared_norms)

    def stored_array(self) -> Array | None:
        """Return the entries of this precision as an array, or None if they are computed."""
        return self._form.stored_array()

    def stored(self) -> tuple[Array, Positions] | None:
        """Return an array with the entries, and the positions of the rows and columns of a symmetric part of it."""
        return self._form.stored()

    def stored_is_finite(self) -> bool:
        """Whether all entries of that array are finite."""
        return self._form.stored_is_finite()

    def stored_as(self, dtype: DTypeLike) -> Array | None:
        """Return the entries if they are stored in a C-ordered array of that precision."""
        return self._forms[np.dtype(dtype)].stored_as(dtype)


def _round_into(out: Array, gram: Gram) -> None:
    """Write the entries of a float64 matrix into a float32 array, tile by tile.

    They are the same as where both forms are stored. Entries that are computed in float32 differ from these by many
    roundings, and the memory budget would lead solvers to other answers within their tolerance.
    """

    def fill(rows: slice, columns: slice, tile: Array) -> None:
        with tiles.scratch(tile.shape, gram.dtype) as exact, np.errstate(over="ignore"):
            gram.fill(rows, columns, exact)
            tile[...] = exact

    tiles.dense(fill, out, gram.symmetric, gram.n_jobs, gram.tile)


def compact(gram: GramMatrix, stack: ExitStack) -> GramMatrix:
    """Return a part of a stored matrix with its float32 entries side by side, for many solves, if they fit.

    Parameters
    ----------
    gram : GramMatrix
        A symmetric part of a matrix that is stored, or any other, which is returned as it is.
    stack : ExitStack
        Keeps the memory reserved until it is closed.
    """
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    # Where only one precision is stored, the view may be the other one.
    if gram.astype(single).stored() is None or gram.stored_as(single) is not None:
        return gram
    dtype, _ = reserve_whole(gram.shape, stack, {single: 0})
    if dtype is None:
        return gram
    with np.errstate(over="ignore"):
        entries = whole_matrix(gram, single)
    return EvaluatedGram({single: PrecomputedGram(entries), double: gram.astype(double)}, gram.dtype)


def gathered(gram: EvaluatedGram, stack: ExitStack) -> EvaluatedGram:
    """Return a part of a stored matrix with its entries side by side, for many products; itself if they do not fit.

    Parameters
    ----------
    gram : EvaluatedGram
    stack : ExitStack
        Keeps the memory reserved until it is closed.
    """
    dtype, _ = reserve_whole(gram.shape, stack, {gram.dtype: 0})
    if dtype is None or gram.stored_array() is not None:
        return gram
    entries = PrecomputedGram(whole_matrix(gram, dtype), symmetric=False, finite=gram.stored_is_finite())
    return EvaluatedGram({dtype: entries}, dtype, gram.squared_norms)
