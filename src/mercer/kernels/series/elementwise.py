"""Kernels on vectors, for series of one length."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mercer._errors import DataError, ParameterError
from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.series import Series
from mercer.kernels.algebra import Unary
from mercer.kernels.inputs import Rows, Scope
from mercer.kernels.objects import ObjectKernel
from mercer.kernels.pairs import Pairs

_STEP = ("elementwise",)


@dataclass(frozen=True, repr=False)
class Elementwise(Unary, ObjectKernel):
    """``kernel(vec(x), vec(z))`` for series x and z of one length, whose values at equal times are compared.

    ``vec`` writes the channels of a series (T, c) one time after the other: T c columns for ``kernel``. It is the
    simplest kernel on series, for use in sums and products with others and in columns of mixed tables.

    Parameters
    ----------
    kernel : Kernel
        Any kernel on vectors.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``kernel`` is not a kernel on vectors.
    DataError
        When evaluated, if series differ in length, or a row is not a series.

    Notes
    -----
    With an RBF kernel it is a function of the Euclidean distance, the simplest of the measures compared by Bagnall et
    al. (2017), "The great time series classification bake off". It assigns a large distance to equal series that are
    slightly out of step; use ``GlobalAlignment`` for these.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> Elementwise(RBF(1.0))([[0.0, 1.0], [0.0, 2.0]]).round(4).tolist()
    [[1.0, 0.6065], [0.6065, 1.0]]
    """

    rows_of: ClassVar[type[Objects]] = Series

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel.kind_of_rows() not in ("vectors", "anything"):
            raise ParameterError(f"Elementwise takes a kernel on vectors, but got {self.kernel!r}.")

    def _vectors(self, X: Any) -> np.ndarray:
        rows = self.read_rows(X)
        assert isinstance(rows, Series)
        odd = np.flatnonzero(rows.lengths != rows.lengths[0])
        if odd.size:
            raise DataError(
                f"row {odd[0]} of X is a series of length {rows.lengths[odd[0]]}, and the first of length "
                f"{rows.lengths[0]}; to compare series of different lengths use GlobalAlignment, or resample them to "
                "one length."
            )
        return np.stack([item.ravel() for item in rows])

    def _seen_by_parts(self, rows: Rows) -> Rows:
        return rows.derived(_STEP, self._vectors)

    def _through(self, pairs: Pairs) -> Pairs:
        left = self._seen_by_parts(pairs.left)
        right = left if pairs.right is pairs.left else self._seen_by_parts(pairs.right)
        widths = left.root.vectors.shape[1], right.root.vectors.shape[1]
        if widths[0] != widths[1]:
            raise DataError(
                f"the series of one side have {widths[0]} values, and those of the other {widths[1]}; to compare "
                "series of different lengths use GlobalAlignment, or resample them to one length."
            )
        return pairs.seen(left, right, _STEP)

    def _fill(self, pairs: Pairs, out: Array) -> None:
        self.kernel._fill(self._through(pairs), out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        self.kernel._pull(self._through(pairs), weights, slopes)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        return self.kernel._uses((*scope, _STEP))
