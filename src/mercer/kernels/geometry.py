"""Squared distances in the feature space of a kernel, so that nearby rows remain distinct.

``d(x, z)^2 = k(x, x) - 2 k(x, z) + k(z, z)`` loses its digits to cancellation if rows are close. A kernel that falls
with a distance ``t`` of the rows is ranked by ``t`` instead, which orders rows in the same way, and the squared
distance follows from ``t`` without a difference of numbers that are nearly equal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mercer._types import Array
from mercer.kernels.algebra import Constant, Scaled, Sum
from mercer.kernels.kernel import Kernel
from mercer.kernels.leaf import StatisticKernel
from mercer.kernels.modifiers import On
from mercer.kernels.statistics import SquaredDistance, Statistic
from mercer.kernels.vector.dot import Linear


@dataclass(frozen=True)
class Ranking:
    """A matrix that orders rows by their distance in feature space, and the way from its entries to that distance.

    Attributes
    ----------
    kernel : Kernel or None
        The kernel of the matrix; None for a precomputed one.
    finish : callable, optional
        From entries (the distance ``t``, 0 or more) to squared distances. None: the matrix is that of the kernel
        itself, and the squared distance is ``k(x, x) - 2 k(x, z) + k(z, z)``.
    """

    kernel: Kernel | None
    finish: Callable[[Array], Array] | None = None


@dataclass(frozen=True, repr=False)
class _Distance(StatisticKernel):
    """``t = |multiplier| * statistic`` of another kernel."""

    of: Any = None

    def _statistic(self) -> Statistic:
        statistic: Statistic = self.of._statistic()
        return statistic

    def _multiplier(self) -> float:
        return abs(float(self.of._multiplier()))

    def _expression(self) -> str:
        return repr(self.of)


@dataclass(frozen=True, repr=False)
class _Euclidean(StatisticKernel):
    """``|x - z|^2``."""

    def _statistic(self) -> Statistic:
        return SquaredDistance()

    def _expression(self) -> str:
        return "Linear()"


def ranking(kernel: Kernel) -> Ranking:
    """How rows are ranked by their distance in the feature space of ``kernel``.

    The distances of RBF, Laplacian, Periodic, ChiSquared, RationalQuadratic, Matern with nu of 1/2 and of infinity,
    NegativeDistance, AdditiveChiSquared and Linear keep full precision, as do those of such a kernel times a number,
    plus a number, and on chosen columns.

    Examples
    --------
    >>> from mercer.kernels import RBF
    >>> rank = ranking(2.0 * RBF(1.0))
    >>> t = rank.kernel([[0.0]], [[1e-9]])
    >>> float(rank.finish(t)[0, 0])
    2e-18
    >>> float(4 - 4 * RBF(1.0)([[0.0]], [[1e-9]])[0, 0])
    0.0
    """
    if isinstance(kernel, Scaled):
        inner = ranking(kernel.kernel)
        # The factor of k is one of the squared distance.
        return Ranking(kernel) if inner.finish is None else Ranking(inner.kernel, _times(kernel.factor, inner.finish))
    if isinstance(kernel, Sum):
        # A constant has no distances.
        terms = [term for term in kernel.terms if not isinstance(term, Constant)]
        inner = ranking(terms[0]) if len(terms) == 1 else Ranking(kernel)
        return Ranking(kernel) if inner.finish is None else inner
    if isinstance(kernel, On):
        inner = ranking(kernel.kernel)
        if inner.kernel is None or inner.finish is None:
            return Ranking(kernel)
        return replace(inner, kernel=inner.kernel.on(kernel.columns))
    if isinstance(kernel, Linear):
        return Ranking(_Euclidean(), np.copy)
    finish = kernel.squared_distance()
    return Ranking(kernel) if finish is None else Ranking(_Distance(of=kernel), finish)


def _times(factor: float, finish: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda t: finish(t) * t.dtype.type(factor)
