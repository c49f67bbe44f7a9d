"""Series compared by all ways to align them: the global alignment kernel, and its normalised form."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from mercer._errors import KernelValueError
from mercer._types import Array, Vector
from mercer.data.objects import Objects
from mercer.data.series import Series
from mercer.engine import threads
from mercer.kernels.base import Searched
from mercer.kernels.inputs import Rows
from mercer.kernels.kernel import Kernel
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import number, whole
from mercer.kernels.series.packed import PackedSeries, compare, packed, reversed_each, side
from mercer.kernels.series.width import alignment_width, bands, known
from mercer.loops.series import LocalKernel, alignments, self_alignments

_NO_SLOPES = np.empty((0, 0))


class _WithSelf(NamedTuple):
    """Packed series, and of each the logarithm of the kernel with itself, its derivative, and what scales cells."""

    series: PackedSeries
    logarithm: Vector
    slope: Vector
    shrink: Vector
    shrink_backward: Vector

    def of(self, rows: Packed) -> tuple[Array, Array]:
        """Half the logarithms of some rows, and half their derivatives."""
        return 0.5 * self.logarithm[rows.index], 0.5 * self.slope[rows.index]


@dataclass(frozen=True, repr=False)
class _Alignment(PairKernel):
    """The common part: sums over alignments in the scale of the normalised kernel, where they are at most 1."""

    sigma: float | str = number("median", rules=("median",))
    triangular: int = 0

    rows_of: ClassVar[type[Objects]] = Series

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = "a whole number, 0 for no band"
        triangular = whole("GlobalAlignment", "triangular", self.triangular, allowed, low=0)
        object.__setattr__(self, "triangular", triangular)

    @property
    def _width(self) -> float:
        return known("GlobalAlignment", "sigma", self.sigma)

    @property
    def _local(self) -> LocalKernel:
        return LocalKernel(self._width, self.triangular)

    def _numbers_of(self, rows: Rows) -> dict[str, float]:
        return {"sigma": alignment_width(rows.objects(Series))}

    def _searched(self, rows: Rows) -> Searched:
        return {"triangular": bands(rows, self.triangular, 0)}

    def _packing(self) -> Hashable:
        return "series and themselves", self._width, self.triangular

    def _pack(self, objects: Series) -> _WithSelf:
        series, n = packed(objects), len(objects)
        logarithm, slope = np.empty(n), np.empty(n)
        shrink = np.zeros(len(series.forward) // series.channels)
        rows = side(Packed(series, np.arange(n)), series, shrink=shrink)
        steps = float(np.square(series.lengths, dtype=np.float64).sum())
        threads.interruptible(self_alignments, (rows, self._local, logarithm, slope), steps)
        return _WithSelf(series, logarithm, slope, shrink, reversed_each(shrink, series))

    def _scaled(self, left: Packed, right: Packed, symmetric: bool, out: Array, slopes: Array | None = None) -> None:
        """Write ``k(x, z) / sqrt(k(x, x) k(z, z))``, and ``dk / d sigma`` so scaled; of equal sides the upper half."""
        if symmetric:
            # The part below the diagonal is not written.
            out[...] = 0.0
        one = side(left, left.store.series, shrink=left.store.shrink)
        other = side(right, right.store.series, backward=True, shrink=right.store.shrink_backward)
        compare(alignments, one, other, self._local, symmetric, out, _NO_SLOPES if slopes is None else slopes)
        # Rounding leaves equal series beside 1.
        np.minimum(out, 1.0, out=out)
        if symmetric:
            np.fill_diagonal(out, 1.0)

    def _sloped(self, left: Packed, right: Packed, weights: Array) -> tuple[Array, Array, Array]:
        """Values and slopes in that scale, and weights for them; of equal sides, one half stands for both."""
        symmetric = left.same(right)
        values, slopes = np.zeros(weights.shape), np.zeros(weights.shape)
        self._scaled(left, right, symmetric, values, slopes)
        if symmetric:
            weights = np.triu(weights) + np.tril(weights, -1).T
        return values, slopes, weights


@dataclass(frozen=True, repr=False)
class GlobalAlignment(_Alignment):
    """``sum over alignments pi of prod_(i, j) in pi k(x_i, z_j)``, local kernel ``k = g / (2 - g)``.

    ``g(x_i, z_j) = w(i - j) exp(-|x_i - z_j|^2 / (2 sigma^2))``; an alignment goes from the first two points to the
    last two, by steps of one in either series or in both.

    Parameters
    ----------
    sigma : float or "median", default="median"
        In the units of the values. ``"median"`` is the median distance between points of the series times the square
        root of the median length (Cuturi 2011), of the training rows of a learner, or of the rows passed to
        ``with_data``. Widths of 0.1 to 10 times this value are worth trying.
    triangular : int, default=0
        ``w(d) = max(0, 1 - |d| / triangular)``: points further apart in time are not aligned, and series whose lengths
        differ by as much have the value 0. With 0, ``w = 1``.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    ParameterError
        If ``sigma`` is not above 0, or ``triangular`` is not a whole number of at least 0. When evaluated, if
        ``sigma`` is still ``"median"``.
    DataError
        When evaluated, if a row is not a series, or the numbers of channels differ.
    KernelValueError
        When evaluated, if a value overflows float64, which is possible for series of 400 times or more;
        ``.normalized()`` never overflows, for any lengths and scales of the series.

    Notes
    -----
    Cuturi, Vert, Birkenes and Matsui (2007), "A kernel for time series based on global alignments"; Cuturi (2011),
    "Fast global alignment kernels": ``k / (1 + k) = g / 2`` is positive, and therefore so is the kernel.

    Its values span hundreds of orders of magnitude, and the diagonal dominates: learners work better with the
    normalised form, whose sums are computed in its own scale. Values below ``1e-300 sqrt(k(x, x) k(z, z))`` are 0.

    Examples
    --------
    >>> k = GlobalAlignment(2.0)
    >>> k([[1.0, 2.0, 3.0]], [[1.0, 2.0, 2.0, 3.0]]).round(3).tolist()
    [[15.358]]
    >>> k.normalized()([[1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]]).round(6).tolist()
    [[1.0, 0.656297], [0.656297, 1.0]]
    """

    def normalized(self) -> Kernel:
        """``k(x, z) / sqrt(k(x, x) k(z, z))``, computed in that scale: also where ``k(x, x)`` is beyond float64."""
        return NormalizedGlobalAlignment(self.sigma, self.triangular, tuning=self.tuning)

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        self._scaled(left, right, symmetric, out)
        self._unscale(left, right, out)

    def _compare_self(self, rows: Packed) -> Array:
        half, _ = rows.store.of(rows)
        return self._exponentials(2.0 * half)

    def _unscale(self, left: Packed, right: Packed, values: Array) -> None:
        """Multiply by ``sqrt(k(x, x) k(z, z))``, which may be beyond float64 where the products are not."""
        with np.errstate(divide="ignore"):
            logarithms = np.log(values)
        logarithms += left.store.of(left)[0][:, None]
        logarithms += right.store.of(right)[0]
        values[...] = self._exponentials(logarithms)

    def _exponentials(self, logarithms: Array) -> Array:
        with np.errstate(over="ignore"):
            values: Array = np.exp(logarithms)
        if np.isinf(values).any():
            raise KernelValueError(
                f"values of {self!r} exceed the range of float64 (the largest is exp({logarithms.max():.4g})); use "
                "its normalised form, kernel.normalized(), whose values are at most 1."
            )
        return values

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        _, slopes, weights = self._sloped(left, right, weights)
        self._unscale(left, right, slopes)
        return np.array([np.vdot(weights, slopes)])


@dataclass(frozen=True, repr=False)
class NormalizedGlobalAlignment(_Alignment):
    """``k(x, z) / sqrt(k(x, x) k(z, z))`` of :class:`GlobalAlignment`, whose ``normalized()`` makes it.

    The same as ``tslearn.metrics.gak``.

    Parameters
    ----------
    sigma : float or "median", default="median"
    triangular : int, default=0
        As there.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> import numpy as np
    >>> long = np.sin(np.arange(2000.0)), np.sin(0.1 + np.arange(1900.0))
    >>> GlobalAlignment(1.0).normalized()(long).round(4).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """

    def _expression(self) -> str:
        return f"{GlobalAlignment(self.sigma, self.triangular)!r}.normalized()"

    def normalized(self) -> Kernel:
        """This kernel: ``k(x, x)`` is 1."""
        return self

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        self._scaled(left, right, symmetric, out)

    def _compare_self(self, rows: Packed) -> Array:
        return np.ones(len(rows))

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        values, slopes, weights = self._sloped(left, right, weights)
        slopes -= values * (left.store.of(left)[1][:, None] + right.store.of(right)[1])
        return np.array([np.vdot(weights, slopes)])

    def _pull_self(self, rows: Packed, weights: Array) -> Array:
        return np.zeros(1)
