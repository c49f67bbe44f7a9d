"""Kernels that are made of others whose values for all pairs of rows are stored, such as ``k * RBF(1.0)`` of ``k``."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from mercer._types import Array
from mercer.kernels.inputs import Frame, Operand, Rows
from mercer.kernels.kernel import Kernel
from mercer.kernels.modifiers import On
from mercer.kernels.objects import Compared
from mercer.kernels.statistics import Statistic


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


def expensive_parts(kernel: Kernel) -> dict[Hashable, Kernel]:
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
    parts: dict[Hashable, Kernel] = {}
    for use in kernel._uses(()):
        scope, statistic = use if isinstance(use, tuple) and len(use) == 2 else ((), None)
        if not isinstance(statistic, Compared) or any(step[0] != "on" for step in scope):
            continue
        part: Kernel = statistic.kernel
        for _, columns in reversed(scope):
            part = On(part, columns)
        if part != kernel:
            parts[use] = part
    return parts
