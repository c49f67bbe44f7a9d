"""Series compared by their best alignment."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mercer._types import Array
from mercer.data.objects import Objects
from mercer.data.series import Series
from mercer.kernels.base import Definiteness, Searched
from mercer.kernels.inputs import Rows
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import positive, whole
from mercer.kernels.series.packed import PackedSeries, compare, packed, side
from mercer.kernels.series.width import bands
from mercer.loops.series import warped_squares


@dataclass(frozen=True, repr=False)
class DynamicTimeWarping(PairKernel):
    """``k(x, z) = -dtw(x, z)^exponent`` with ``dtw(x, z)^2 = min over alignments of sum |x_i - z_j|^2``: indefinite.

    ``exp(gamma * DynamicTimeWarping(exponent=2))`` is ``exp(-gamma dtw^2)``, which is indefinite as well: learners
    then warn (``allow_indefinite``). For nearest neighbours by this distance the kernel itself is enough.

    Parameters
    ----------
    window : int, optional
        Only points whose times differ by at most this much are aligned; if the lengths of two series differ, the
        band is wider by their difference, on one side. By default there is no limit.
    exponent : float, default=1.0
        Above 0.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``window`` is not a whole number of at least 0, or ``exponent`` not above 0.
    DataError
        When evaluated, if a row is not a series, or the numbers of channels differ.

    Notes
    -----
    Sakoe and Chiba (1978), "Dynamic programming algorithm optimization for spoken word recognition"; the distance is
    that of ``tslearn.metrics.dtw``, and its square that of ``aeon.distances.dtw_distance``.

    Examples
    --------
    >>> DynamicTimeWarping()([[1.0, 2.0, 3.0]], [[1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]]).tolist()
    [[0.0, -1.0]]
    """

    window: int | None = None
    exponent: float = 1.0

    rows_of: ClassVar[type[Objects]] = Series

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None:
            window = whole("DynamicTimeWarping", "window", self.window, "a whole number of at least 0, or None", low=0)
            object.__setattr__(self, "window", window)
        exponent = positive("DynamicTimeWarping", "exponent", self.exponent, "a number above 0")
        object.__setattr__(self, "exponent", exponent)

    @property
    def definiteness(self) -> Definiteness:
        return "indefinite"

    def _searched(self, rows: Rows) -> Searched:
        return {"window": bands(rows, self.window, None)}

    def _packing(self) -> Hashable:
        return "series"

    def _pack(self, objects: Series) -> PackedSeries:
        return packed(objects)

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        if symmetric:
            # The part below the diagonal is not written.
            out[...] = 0.0
        one, other = side(left, left.store), side(right, right.store, backward=True)
        compare(warped_squares, one, other, -1 if self.window is None else self.window, symmetric, out)
        # A distance of 0 stays 0 for the least of exponents, half of which is 0.
        np.power(out, self.exponent / 2, out=out, where=out > 0)
        np.subtract(0.0, out, out=out)

    def _compare_self(self, rows: Packed) -> Array:
        return np.zeros(len(rows))
