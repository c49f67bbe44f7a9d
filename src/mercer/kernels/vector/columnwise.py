"""Kernels that are sums or products over the columns: histograms, categories, subsets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from mercer._types import Array
from mercer.kernels.base import Definiteness, Kind
from mercer.kernels.inputs import Scope
from mercer.kernels.kernel import Kernel
from mercer.kernels.leaf import Exponential, Powers, StatisticKernel
from mercer.kernels.pairs import Pairs, scratch
from mercer.kernels.parameters import number
from mercer.kernels.statistics import Agreement, ChiSquaredDistance, Intersection, SameRow, Statistic, SubsetProduct


@dataclass(frozen=True, repr=False)
class ChiSquared(Exponential, StatisticKernel):
    """``k(x, z) = exp(-gamma sum_c (x_c - z_c)^2 / (x_c + z_c))`` for histograms (values of at least 0).

    Parameters
    ----------
    gamma : float, default 1.0
        Above 0.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    DataError
        If a value is negative (when evaluated).

    Examples
    --------
    >>> ChiSquared(1.0)([[1.0, 0.0]], [[0.0, 1.0]]).round(6).tolist()
    [[0.135335]]

    References
    ----------
    Zhang et al. (2007), *Local features and kernels for classification of texture and object categories*.
    """

    gamma: float = number(1.0)

    def _statistic(self) -> Statistic:
        return ChiSquaredDistance()

    def _multiplier(self) -> float:
        return -self.gamma

    def _multiplier_powers(self) -> Powers:
        return {"gamma": 1}


@dataclass(frozen=True, repr=False)
class AdditiveChiSquared(StatisticKernel):
    """``k(x, z) = -sum_c (x_c - z_c)^2 / (x_c + z_c)`` for histograms (values of at least 0): conditionally positive.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> AdditiveChiSquared()([[1.0, 0.0]], [[0.0, 1.0]]).tolist()
    [[-2.0]]

    References
    ----------
    Vedaldi & Zisserman (2012), *Efficient additive kernels via explicit feature maps*, of whose kernel
    ``2 x z / (x + z)`` this is twice, minus a function of either row.
    """

    def _statistic(self) -> Statistic:
        return ChiSquaredDistance()

    def _multiplier(self) -> float:
        return -1.0

    def squared_distance(self) -> Callable[[Array], Array]:
        return lambda t: 2 * t

    @property
    def definiteness(self) -> Definiteness:
        return "conditional"


@dataclass(frozen=True, repr=False)
class HistogramIntersection(StatisticKernel):
    """``k(x, z) = sum_c min(x_c, z_c)`` for histograms (values of at least 0).

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    DataError
        When evaluated, if a value is below 0, for which the kernel is not positive semi-definite, or rows are sparse.

    Examples
    --------
    >>> HistogramIntersection()([[1.0, 3.0]], [[2.0, 1.0]]).tolist()
    [[2.0]]

    References
    ----------
    Swain & Ballard (1991), *Color indexing*.
    """

    def _statistic(self) -> Statistic:
        return Intersection()


@dataclass(frozen=True, repr=False)
class Hamming(StatisticKernel):
    """``k(x, z)`` = the fraction of the columns in which ``x`` and ``z`` agree; for categories and codes.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> Hamming()([[1, 2, 3, 4]], [[1, 2, 0, 0]]).tolist()
    [[0.5]]
    """

    def _statistic(self) -> Statistic:
        return Agreement()


@dataclass(frozen=True, repr=False)
class AllSubsets(StatisticKernel):
    """``k(x, z) = prod_c (1 + x_c z_c)``: a feature for every subset of the columns, the product over it.

    Parameters
    ----------
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> AllSubsets()([[1, 1, 0]], [[1, 1, 1]]).tolist()
    [[4.0]]

    References
    ----------
    Shawe-Taylor & Cristianini (2004), *Kernel Methods for Pattern Analysis*, section 9.2.
    """

    def _statistic(self) -> Statistic:
        return SubsetProduct()


@dataclass(frozen=True, repr=False)
class White(Kernel):
    """``k(x, z) = variance`` for a row with itself, else 0: independent noise on every row.

    Rows are identified by their position, so two equal rows are different, and ``k(X, Z)`` is 0.

    Parameters
    ----------
    variance : float, default 1.0
        Above 0.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Examples
    --------
    >>> White(0.5)([[1.0], [1.0]]).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """

    variance: float = number(1.0)

    def kind_of_rows(self) -> Kind:
        return "anything"

    @property
    def definiteness(self) -> Definiteness:
        return "positive"

    def _fill(self, pairs: Pairs, out: Array) -> None:
        pairs.statistic(SameRow(), self.variance, out)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        with scratch(weights) as same:
            pairs.statistic(SameRow(), 1.0, same)
            slopes[0] += np.vdot(weights, same)

    def _uses(self, scope: Scope) -> Iterator[Hashable]:
        # Through a map or a choice of columns a row is still the same row: nothing to share by scope.
        return iter(())
