"""The value of a sum ``sum_i a_i k(z_i, x)`` split into those of parts of x, by the structure of the kernel.

A sum of kernels is split term by term, and a kernel with counted features feature by feature. Factors, normalisation
and centring change the coefficients ``a_i`` alone, so that the values still sum to the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from mercer._types import Vector
from mercer.explain.result import Part, cut
from mercer.gram import Gram
from mercer.kernels import Kernel
from mercer.kernels.algebra import Constant, Scaled, Sum
from mercer.kernels.centring import Centered
from mercer.kernels.inputs import Rows
from mercer.kernels.modifiers import Normalized, On, ScaledBy, Warped
from mercer.kernels.plan import check_finite
from mercer.kernels.vector.columnwise import White

_LONGEST_TERM = 60


class Columns(NamedTuple):
    """Where the columns that a kernel sees stand in the rows of the model, and their names."""

    positions: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def numbered(cls, names: tuple[str, ...]) -> Columns:
        """Return all columns with these names.

        >>> Columns.numbered(("age", "size")).on((1,))
        Columns(positions=(1,), names=('size',))
        """
        return cls(tuple(range(len(names))), names)

    def on(self, chosen: tuple[Any, ...]) -> Columns:
        """Return some of them, by position or name."""
        at = [self.names.index(c) if isinstance(c, str) else int(c) for c in chosen]
        return Columns(tuple(self.positions[c] for c in at), tuple(self.names[c] for c in at))


@dataclass(frozen=True, eq=False)
class Sides:
    """The row x, the rows ``z_i`` with their coefficients, and the columns of both, if they are vectors or tables."""

    x: Rows
    Z: Rows
    weights: Vector
    columns: Columns

    def seen(self, see: Callable[[Rows], Rows], columns: Columns | None = None) -> Sides:
        """Return both sides through a map or a choice of columns."""
        return replace(self, x=see(self.x), Z=see(self.Z), columns=self.columns if columns is None else columns)

    def value(self, kernel: Kernel) -> float:
        """Return the whole sum for a kernel."""
        return float((Gram(kernel, self.x, self.Z, dtype=np.float64) @ self.weights)[0])


@dataclass(frozen=True, eq=False)
class Split:
    """Parts of x with their values, and the object that the places of the parts are in, if it is one."""

    parts: list[Part]
    values: Vector
    item: Any = None

    def times(self, factor: float) -> Split:
        return replace(self, values=factor * self.values)


def joined(splits: list[Split]) -> Split:
    """Return all parts together; the object is kept if all that have places are parts of the same one."""
    parts = [part for split in splits for part in split.parts]
    placed = [split for split in splits if any(part.places for part in split.parts)]
    item = placed[0].item if placed else None
    if any(split.item is not item for split in placed):
        item = None
    return Split(parts, np.concatenate([split.values for split in splits]) if splits else np.zeros(0), item)


def constant(value: float) -> Split:
    """Return what is the same for all rows, or depends on the size of the row alone."""
    return Split([Part("constant", "constant")], np.array([value]))


def whole(kernel: Kernel, sides: Sides) -> Split:
    """Return a term as one part: what becomes of a kernel in a sum if it has no parts itself."""
    part = Part("term", cut(repr(kernel), _LONGEST_TERM), tuple(sorted(_compared(kernel, sides.columns))))
    return Split([part], np.array([sides.value(kernel)]))


def _compared(kernel: Any, columns: Columns) -> set[int]:
    """The columns that a kernel compares; none if its rows are objects."""
    if isinstance(kernel, On):
        return _compared(kernel.kernel, columns.on(kernel.columns))
    inside = [child for _, child in kernel.children()]
    if not inside or isinstance(kernel, Warped):
        return set(columns.positions)
    return set().union(*(_compared(child, columns) for child in inside))


@singledispatch
def split(kernel: Any, sides: Sides) -> Split | None:
    """Split the sum over a kernel; None if the kernel has no parts that add up."""
    return None


@split.register
def _sum(kernel: Sum, sides: Sides) -> Split:
    terms = []
    for term in kernel.terms:
        inner = split(term, sides) or whole(term, sides)
        name = cut(repr(term), _LONGEST_TERM)
        parts = [part if part.kind == "constant" else part._replace(term=part.term or name) for part in inner.parts]
        terms.append(replace(inner, parts=parts))
    return joined(terms)


@split.register
def _scaled(kernel: Scaled, sides: Sides) -> Split | None:
    inner = split(kernel.kernel, sides)
    return None if inner is None else inner.times(kernel.factor)


@split.register
def _constant(kernel: Constant, sides: Sides) -> Split:
    return constant(kernel.value * float(sides.weights.sum()))


@split.register
def _white(kernel: White, sides: Sides) -> Split:
    # A new row shares its noise with no row of the fit.
    return Split([], np.zeros(0))


@split.register
def _normalized(kernel: Normalized, sides: Sides) -> Split | None:
    """``k(z, x) / (|z| |x|)``: the coefficients are divided by the norms of their rows, the values by that of x."""
    weights = sides.weights * kernel._inverse_norms(sides.Z)
    inner = split(kernel.kernel, replace(sides, weights=weights))
    return None if inner is None else inner.times(float(kernel._inverse_norms(sides.x)[0]))


@split.register
def _scaled_by(kernel: ScaledBy, sides: Sides) -> Split | None:
    inner = split(kernel.kernel, replace(sides, weights=sides.weights * kernel._values(sides.Z)))
    return None if inner is None else inner.times(float(kernel._values(sides.x)[0]))


@split.register
def _on(kernel: On, sides: Sides) -> Split | None:
    return split(kernel.kernel, sides.seen(kernel._seen_by_parts, sides.columns.on(kernel.columns)))


@split.register
def _warped(kernel: Warped, sides: Sides) -> Split | None:
    seen = sides.seen(kernel._seen_by_parts)
    shape = np.shape(seen.x.raw)
    stem = getattr(kernel.map, "__name__", type(kernel.map).__name__).strip("<>")
    names = tuple(f"{stem}{i}" for i in range(shape[1])) if len(shape) == 2 else ()
    return split(kernel.kernel, replace(seen, columns=Columns.numbered(names)))


@split.register
def _centered(kernel: Centered, sides: Sides) -> Split | None:
    """Minus the mean over reference rows: these are further rows, with a share each of minus all coefficients."""
    inner = split(kernel.kernel, sides)
    if inner is None:
        return None
    reference = kernel._anchors(sides.Z)
    total = float(sides.weights.sum())
    shares = np.full(reference.n, -total / reference.n)
    of_reference = split(kernel.kernel, replace(sides, Z=reference, weights=shares))
    assert of_reference is not None
    rest = total * float(kernel._means(reference, reference).mean()) - float(sides.weights @ kernel._means(sides.Z))
    check_finite(np.array([rest]), kernel)
    # The parts are those of x, whatever the other rows are.
    summed = replace(inner, values=inner.values + of_reference.values)
    return joined([summed, constant(rest)])
