"""Series compared by all ways to align them: the global alignment kernel, and its normalised form."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer._errors import KernelValueError
from mercer.data.objects import Objects
from mercer.data.series import Series
from mercer.engine.tiles import Array
from mercer.kernels.kernel import Kernel
from mercer.kernels.objects import Packed, PairKernel
from mercer.kernels.parameters import number, whole
from mercer.kernels.series.packed import PackedSeries, compare, compare_self, packed
from mercer.loops.series import alignments, self_alignments


@dataclass(frozen=True, repr=False)
class _Alignment(PairKernel):
    """What both forms share: the logarithms of the kernel's values."""

    sigma: float = number(1.0)
    triangular: int = 0

    rows_of: ClassVar[type[Objects]] = Series

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = "a whole number, 0 for no band"
        triangular = whole("GlobalAlignment", "triangular", self.triangular, allowed, low=0)
        object.__setattr__(self, "triangular", triangular)

    def _logarithms(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        slope = np.empty((1, 1))
        compare(alignments, left, right, self.sigma, self.triangular, symmetric, False, out, slope)

    def _sloped(self, left: Packed, right: Packed, weights: Array) -> tuple[Array, Array, Array]:
        """Logarithms, their derivatives, and weights for them; of equal sides, one half stands for both."""
        symmetric = left.same(right)
        values = np.full(weights.shape, -np.inf)
        slopes = np.zeros(weights.shape)
        compare(alignments, left, right, self.sigma, self.triangular, symmetric, True, values, slopes)
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
    sigma : float, default=1.0
        In the units of the values. Cuturi (2011) advises the median distance of points times the square root of the
        median length, times 0.1 to 10.
    triangular : int, default=0
        ``w(d) = max(0, 1 - |d| / triangular)``: points further apart in time are not aligned, and series whose lengths
        differ by as much have the value 0. With 0, ``w = 1``.

    Raises
    ------
    ParameterError
        If ``sigma`` is not above 0, or ``triangular`` is no whole number from 0 on.
    DataError
        When evaluated, if a row is no series, or the numbers of channels differ.
    KernelValueError
        When evaluated, if a value is beyond float64, as it can be from 400 times on; ``.normalized()`` never is.

    Notes
    -----
    Cuturi, Vert, Birkenes and Matsui (2007), "A kernel for time series based on global alignments"; Cuturi (2011),
    "Fast global alignment kernels": ``k / (1 + k) = g / 2`` is positive, so that the kernel is.

    Its values span hundreds of orders of magnitude, and the diagonal dominates: learners want the normalised form,
    which is computed from logarithms.

    Examples
    --------
    >>> k = GlobalAlignment(2.0)
    >>> k([[1.0, 2.0, 3.0]], [[1.0, 2.0, 2.0, 3.0]]).round(3).tolist()
    [[15.358]]
    >>> k.normalized()([[1.0, 2.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]]).round(6).tolist()
    [[1.0, 0.656297], [0.656297, 1.0]]
    """

    def normalized(self) -> Kernel:
        """``k(x, z) / sqrt(k(x, x) k(z, z))``, from logarithms: also where ``k(x, x)`` is beyond float64."""
        return NormalizedGlobalAlignment(self.sigma, self.triangular, tuning=self.tuning)

    def _packing(self) -> Hashable:
        return "series"

    def _pack(self, objects: Series) -> PackedSeries:
        return packed(objects)

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        self._logarithms(left, right, out, symmetric)
        self._exponentiate(np.triu(out) if symmetric else out, out)

    def _compare_self(self, rows: Packed) -> Array:
        values, slopes = np.empty(len(rows)), np.empty(len(rows))
        compare_self(self_alignments, rows.store, rows.index, self.sigma, self.triangular, values, slopes)
        return self._exponentiate(values, values)

    def _exponentiate(self, logarithms: Array, out: Array) -> Array:
        with np.errstate(over="ignore"):
            np.exp(logarithms, out=out)
        if np.isinf(out).any():
            raise KernelValueError(
                f"values of {self!r} are beyond the range of float64, the largest exp({logarithms.max():.4g}); use "
                "its normalised form, kernel.normalized(), which is computed from logarithms."
            )
        return out

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        values, slopes, weights = self._sloped(left, right, weights)
        return np.array([np.vdot(weights, slopes * self._exponentiate(values, values))])


class _WithSelf(NamedTuple):
    """Packed series, and the logarithm of each with itself and its derivative."""

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    channels: int
    value: NDArray[np.float64]
    slope: NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class NormalizedGlobalAlignment(_Alignment):
    """``k(x, z) / sqrt(k(x, x) k(z, z))`` of :class:`GlobalAlignment`, whose ``normalized()`` makes it.

    The same as ``tslearn.metrics.gak``.

    Parameters
    ----------
    sigma : float, default=1.0
    triangular : int, default=0
        As there.

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

    def _packing(self) -> Hashable:
        return "series and themselves", self.sigma, self.triangular

    def _pack(self, objects: Series) -> _WithSelf:
        store = packed(objects)
        value, slope = np.empty(len(objects)), np.empty(len(objects))
        compare_self(self_alignments, store, np.arange(len(value)), self.sigma, self.triangular, value, slope)
        return _WithSelf(*store, value, slope)

    def _compare(self, left: Packed, right: Packed, out: Array, symmetric: bool) -> None:
        self._logarithms(left, right, out, symmetric)
        self._normalize(left, right, np.triu(out) if symmetric else out, out)

    def _normalize(self, left: Packed, right: Packed, logarithms: Array, out: Array) -> Array:
        np.subtract(logarithms, 0.5 * left.store.value[left.index][:, None], out=out)
        out -= 0.5 * right.store.value[right.index]
        return np.exp(out, out=out)

    def _compare_self(self, rows: Packed) -> Array:
        return np.ones(len(rows))

    def _pull_pairs(self, left: Packed, right: Packed, weights: Array) -> Array:
        values, slopes, weights = self._sloped(left, right, weights)
        slopes -= 0.5 * left.store.slope[left.index][:, None]
        slopes -= 0.5 * right.store.slope[right.index]
        return np.array([np.vdot(weights, slopes * self._normalize(left, right, values, values))])

    def _pull_self(self, rows: Packed, weights: Array) -> Array:
        return np.zeros(1)

