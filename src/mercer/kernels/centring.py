"""Kernels that are centred in feature space, by the means over rows that they keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import ParameterError
from mercer._types import Array
from mercer.data.fitted import Fitted
from mercer.data.objects import Objects
from mercer.data.statements import Each, Maybe, Numbers, Word
from mercer.data.vectors import as_vectors, column_names
from mercer.kernels.algebra import Unary
from mercer.kernels.base import ATOM, Definiteness, Expression
from mercer.kernels.inputs import Rows
from mercer.kernels.kernel import OPERATIONS
from mercer.kernels.modifiers import On
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.pairs import MatchedPairs, Pairs, TilePairs
from mercer.kernels.plan import Plan, diagonal
from mercer.loops import sides

# Units of rounding of the terms, below which the norm of a centred row is 0.
_ROUNDING = 16.0


class FrozenArray:
    """An array as a value: read-only, compared and hashed by its content; with the names of its columns, if any."""

    _fitted = Fitted(
        {"array": Numbers(), "names": Maybe(Each(Word()))},
        rules=(("the names do not match the columns", lambda a: a.names is None or a.array.shape[1] == len(a.names)),),
    )

    def __init__(self, array: Any, names: tuple[str, ...] | None = None) -> None:
        self.array = np.array(array, order="C")
        self.array.setflags(write=False)
        self.names = names
        # Kernels are keys of what is kept for every tile, so the bytes are read once only.
        self._hash = hash((self.array.shape, self.array.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle forgets that an array is read-only.
        return FrozenArray, (self.array, self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FrozenArray):
            return NotImplemented
        same_type = self.array.dtype == other.array.dtype and self.names == other.names
        return same_type and np.array_equal(self.array, other.array)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self.array.tolist())

    def __len__(self) -> int:
        return len(self.array)


def _rows(reference: FrozenArray | Objects) -> Rows:
    return Rows(reference) if isinstance(reference, Objects) else Rows(reference.array, names=reference.names)


def _kind(kernel: Expression) -> type[Objects] | None:
    """What the first part of a kernel on objects compares; None for a kernel on vectors."""
    if isinstance(kernel, ObjectKernel):
        return kernel.rows_of
    return next((kind for _, child in kernel.children() if (kind := _kind(child)) is not None), None)


def _chooses_objects(kernel: Expression) -> bool:
    """Whether a part of a kernel compares objects in chosen columns of a table."""
    if isinstance(kernel, On):
        return _kind(kernel.kernel) is not None
    return any(_chooses_objects(child) for _, child in kernel.children())


@dataclass(frozen=True, repr=False)
class Centered(Unary):
    """The kernel about the mean of reference rows in feature space.

    ``k(x, z) - m(x) - m(z) + mean_rs k(r, s)`` with ``m(x) = mean_r k(x, r)`` over the reference rows.

    Parameters
    ----------
    kernel : Kernel
    reference : array-like of shape (n, d), or other rows that the kernel takes
        The reference rows.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.
    """

    reference: FrozenArray | Objects

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.reference, FrozenArray):
            if _chooses_objects(self.kernel):
                raise ParameterError(
                    f"centered() takes rows of one kind, but {self.kernel!r} compares columns of a table. Center a sum "
                    "term by term, each on its own columns: kernel.centered(X[columns]).on(columns)."
                )
            kind = _kind(self.kernel)
            if kind is not None:
                object.__setattr__(self, "reference", kind.of(self.reference, "the reference rows of centered()"))
                return
            X = as_vectors(self.reference, "the reference rows of centered()")
            # float64, as the means are: what is printed then builds an equal kernel.
            array = (X if isinstance(X, np.ndarray) else X.toarray()).astype(np.float64)
            object.__setattr__(self, "reference", FrozenArray(array, column_names(self.reference)))

    def _expression(self) -> str:
        return f"{self.kernel._inside(ATOM)}.centered({self.reference!r})"

    @property
    def definiteness(self) -> Definiteness:
        # On vectors that sum to 0 is all that centring leaves: conditional kernels become positive ones.
        return "indefinite" if self.kernel.definiteness == "indefinite" else "positive"

    def _anchors(self, rows: Rows) -> Rows:
        """The reference rows, prepared once for all tiles of a matrix."""
        return rows.root.keep(("reference", self), lambda: _rows(self.reference))

    def _means(self, rows: Rows, reference: Rows | None = None) -> Array:
        reference = reference or self._anchors(rows)
        plan = Plan(self.kernel, rows, reference, np.dtype(np.float64))
        out = np.zeros(rows.n)
        # A plain loop: this runs inside a worker, where the pool must not be used again.
        for start in range(0, rows.n, 512):
            part = slice(start, min(start + 512, rows.n))
            block = np.empty((part.stop - start, reference.n))
            plan.fill(part, slice(0, reference.n), block)
            out[part] = block.mean(axis=1)
        return out

    def _grand_mean(self, pairs: Pairs) -> float:
        reference = self._anchors(pairs.right)
        return reference.keep("grand mean", lambda: float(self._means(reference, reference).mean()))

    def _fill(self, pairs: Pairs, out: Array) -> None:
        left, right = pairs.vectors(("mean", self), self._means)
        self.kernel._fill(pairs, out)
        grand = self._grand_mean(pairs)
        if not isinstance(pairs, MatchedPairs):
            sides.center(out, left, right, grand)
            return
        size = np.abs(out) + 2 * np.abs(left) + abs(grand) + self._mean_square(pairs)
        out -= left + right
        out += grand
        # Of a row that is the mean nothing is left but rounding, of either sign.
        out[np.abs(out) <= _ROUNDING * np.finfo(out.dtype).eps * size] = 0

    def _mean_square(self, pairs: Pairs) -> float:
        """The mean of ``|k(r, r)|``: in its units the means are rounded."""
        reference = self._anchors(pairs.right)
        return reference.keep("mean square", lambda: float(np.abs(diagonal(self.kernel, reference)).mean()))

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        reference = self._anchors(pairs.right)
        self.kernel._pull(pairs, weights, slopes)
        for side, sums in zip(pairs.sides(), pairs.sums(weights), strict=True):
            self._pull_against(side.left, slice(0, side.left.n), reference, -np.asarray(sums), slopes)
        slopes += weights.sum() * reference.keep("grand slopes", lambda: self._grand_slopes(reference, slopes.size))

    def _grand_slopes(self, reference: Rows, size: int) -> Array:
        """Slopes of ``mean_rs k(r, s)``."""
        slopes = np.zeros(size)
        share = np.full(reference.n, 1 / reference.n)
        self._pull_against(reference, slice(0, reference.n), reference, share, slopes)
        return slopes

    def _pull_against(self, left: Rows, rows: slice, reference: Rows, sums: Array, slopes: Array) -> None:
        """Pull through ``sum_i sums_i mean_r k(x_i, r)``."""
        pairs = TilePairs(left, reference, (rows, slice(0, reference.n)), np.dtype(np.float64), {})
        self.kernel._pull(pairs, np.repeat(sums[:, None] / reference.n, reference.n, axis=1), slopes)


OPERATIONS.update(centered=Centered)
