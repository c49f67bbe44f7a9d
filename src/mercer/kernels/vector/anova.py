"""A kernel of sums over all subsets of the columns, of products of hat functions: rough functions, at little cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mercer._errors import DataError
from mercer._types import Array
from mercer.engine import tiles
from mercer.kernels.inputs import Frame, Operand, Rows
from mercer.kernels.leaf import StatisticKernel
from mercer.kernels.operands import GivenRows
from mercer.kernels.pairs import Pairs, scratch
from mercer.kernels.parameters import number
from mercer.kernels.statistics import ColumnWise, Statistic, check_dense
from mercer.loops import hats

# Differences of rows that span so many widths have lost two of the digits of float32.
_FAR = 100
Numbers = float | tuple[float, ...]


@dataclass(frozen=True)
class HatProduct(ColumnWise):
    """``prod_c (1 + weight_c max(0, 1 - |x_c - z_c| / width_c))``; a number is that of all columns."""

    weight: Numbers
    width: Numbers

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        check_dense(self, side, frame)
        for name in ("weight", "width"):
            numbers = getattr(self, name)
            if isinstance(numbers, tuple) and len(numbers) != side.vectors.shape[1]:
                raise DataError(
                    f"Anova has {len(numbers)} numbers in {name}, but X has {side.vectors.shape[1]} columns; pass one "
                    "number, or one per column, or choose columns with kernel.on([...])."
                )
        return ((side.vectors - frame.center).astype(dtype), GivenRows.of(side))

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        reach = sum((np.abs(side[0]) / np.asarray(self.width)).max() for side in (left, right))
        if out.dtype == np.float64 or reach > _FAR:
            left, right = ((side[1].dense(),) for side in (left, right))
        if left[0].dtype == out.dtype:
            self.loop(left[0], np.ascontiguousarray(right[0].T), out.dtype.type(multiplier), out)
            return
        with tiles.scratch(out.shape, np.dtype(np.float64)) as values:
            self.loop(left[0], np.ascontiguousarray(right[0].T), multiplier, values)
            out[...] = values

    def loop(self, A: Array, B: Array, multiplier: Any, out: Array) -> None:
        hats.products(A, B, 1 / self._per_column(self.width, A), self._per_column(self.weight, A), multiplier, out)

    def diagonal(self, operand: Operand) -> Array:
        A = operand[0]
        return np.full(len(A), np.prod(1.0 + self._per_column(self.weight, A)), A.dtype)

    def pull(self, left: Operand, right: Operand, weights: Array) -> Array:
        """Slopes by the weights, and after them by the widths, of the sum of ``weights`` times logarithms."""
        A, B = left[1].dense(), right[1].dense()
        by_weight, by_width = np.zeros(A.shape[1]), np.zeros(A.shape[1])
        rates, own = 1 / self._per_column(self.width, A), self._per_column(self.weight, A)
        hats.pull(A, np.ascontiguousarray(B.T), rates, own, weights, by_weight, by_width)
        return np.concatenate([by_weight, by_width * rates])

    def pull_diagonal(self, operand: Operand, weights: Array) -> Array:
        own = self._per_column(self.weight, operand[0])
        return np.concatenate([weights.sum() / (1.0 + own), np.zeros(len(own))])

    @staticmethod
    def _per_column(numbers: Numbers, rows: Array) -> Array:
        return np.ascontiguousarray(np.broadcast_to(np.asarray(numbers, rows.dtype), rows.shape[1]))


@dataclass(frozen=True, repr=False)
class Anova(StatisticKernel):
    r"""Functions of single columns, of pairs of columns, and so on: a sum over all subsets of the columns.

    .. math:: k(x, z) = \prod_c \Bigl(1 + a_c \max\bigl(0, 1 - |x_c - z_c| / w_c\bigr)\Bigr)

    A set S of columns has the weight :math:`\prod_{c \in S} a_c`, so that small weights prefer functions of few
    columns. Along a column, the hat function is the probability that x and z fall into the same of bins of width w
    whose borders are drawn at random, as those of trees are. For codes of categories a width of at most 1 makes it 1
    for equal codes and 0 for different ones.

    Parameters
    ----------
    weight : float or sequence of float, default 1.0
        a, above 0; one number, or one a column.
    width : float or sequence of float, default 1.0
        w, in the units of the columns, above 0; one number, or one a column.
    tuning : tuple, optional
        Set by :meth:`fixed` and :meth:`bounded`.

    Raises
    ------
    DataError
        When evaluated, if rows are sparse, or have another number of columns.

    Examples
    --------
    >>> Anova(0.5, [2.0, 1.0])([[0.0, 3.0]], [[1.0, 3.0], [1.0, 4.0]]).tolist()
    [[1.875, 1.25]]

    References
    ----------
    Stitson et al. (1999), *Support vector regression with ANOVA decomposition kernels*. Rahimi and Recht (2008),
    *Random features for large-scale kernel machines*, section 4, for hat functions.
    """

    weight: float | tuple[float, ...] = number(1.0, per_column=True)
    width: float | tuple[float, ...] = number(1.0, per_column=True)

    def _statistic(self) -> Statistic:
        return HatProduct(self.weight, self.width)

    def _pull(self, pairs: Pairs, weights: Array, slopes: Array) -> None:
        if not slopes.size:
            return
        statistic = self._statistic()
        with scratch(weights) as inner:
            np.multiply(weights, pairs.values(statistic), out=inner)
            derivatives = pairs.pull(statistic, inner).reshape(2, -1)
        parts = [
            part if isinstance(numbers, tuple) else part.sum(keepdims=True)
            for part, numbers in zip(derivatives, (self.weight, self.width), strict=True)
        ]
        slopes += np.concatenate(parts)
