"""What several kernels are functions of, stored for all pairs of rows: values of other kernels, and distances."""

from __future__ import annotations

import numpy as np

from mercer._types import Array
from mercer.engine import tiles
from mercer.kernels.base import Expression
from mercer.kernels.inputs import Frame, Index, Operand, Rows, Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.modifiers import On
from mercer.kernels.objects import Compared
from mercer.kernels.statistics import Dot, Statistic

Use = tuple[Scope, Statistic]
"""A statistic with the choices of columns that come before it."""


class StoredValues(Statistic):
    """A statistic of which an array has the values for all pairs of rows, (n, n)."""

    def __init__(self, values: Array) -> None:
        self._values = values

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        return (np.arange(side.n),)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        values = self._values[_window(left[0])][:, _window(right[0])]
        np.multiply(values, multiplier, out=out, casting="same_kind")

    def diagonal(self, operand: Operand) -> Array:
        return self._values[operand[0], operand[0]]


def _window(positions: np.ndarray) -> slice | np.ndarray:
    """A slice where the positions follow each other, as in tiles."""
    first, n = int(positions[0]), len(positions)
    return slice(first, first + n) if positions[-1] - first == n - 1 and (np.diff(positions) == 1).all() else positions


def expensive_parts(kernel: Kernel) -> dict[Use, Kernel]:
    """Return the parts of a kernel that compare objects pair by pair, each with the statistic that it computes.

    A part on chosen columns is a kernel of the whole rows. Those behind a map are left out.

    Examples
    --------
    >>> from mercer.kernels import RBF, Spectrum, Subsequence
    >>> k = Subsequence(2)
    >>> list(expensive_parts(k.on(["t"]) * RBF(1.0).on(["a"])).values()), list(expensive_parts(k ** 2).values())
    ([Subsequence(2).on(['t'])], [Subsequence(2)])
    >>> expensive_parts(k), expensive_parts(Spectrum(2) * RBF(1.0))
    ({}, {})
    """
    parts: dict[Use, Kernel] = {}
    for use in kernel._uses(()):
        scope, statistic = use if isinstance(use, tuple) and len(use) == 2 else ((), None)
        if not isinstance(statistic, Compared) or any(step[0] != "on" for step in scope):
            continue
        part: Kernel = statistic.kernel
        for _, columns in reversed(scope):
            part = On(part, columns)
        if part != kernel:
            parts[scope, statistic] = part
    return parts


def vector_statistics(kernel: Expression) -> list[Use]:
    """Return the distances and inner products of whole rows that a kernel is a function of.

    Examples
    --------
    >>> from mercer.kernels import RBF, Matern, Polynomial
    >>> vector_statistics(RBF(1.0)) == vector_statistics(Matern(3.0)) != vector_statistics(Polynomial(2))
    True
    >>> vector_statistics(RBF(1.0).on([0]))
    []
    """
    uses = dict.fromkeys(use for use in kernel._uses(()) if isinstance(use, tuple) and use[0] == ())
    return [use for use in uses if isinstance(use[1], Statistic) and (use[1].is_distance or isinstance(use[1], Dot))]


def all_pairs(statistic: Statistic, rows: Rows, n_jobs: int | None) -> Array:
    """Return a distance or inner product of whole rows for all pairs, (n, n), in float64.

    The tiles are those of a kernel matrix, so that kernel values come out with the same bits from either.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> _, distance = vector_statistics(RBF(3.0))[0]
    >>> all_pairs(distance, Rows(np.array([[0.0], [1.0], [3.0]])), 1).tolist()
    [[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]]
    """
    operand = rows.operand(statistic, Frame(rows, rows), np.dtype(np.float64))

    def fill(left: Index, right: slice, out: Array) -> None:
        statistic.fill(tuple([part[left] for part in operand]), tuple([part[right] for part in operand]), 1.0, out)

    out = np.empty((rows.n, rows.n))
    tiles.dense(fill, out, True, n_jobs)
    return out
