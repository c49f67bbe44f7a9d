"""Diagonals of kernel matrices with gradients, with and without the noise of ``White`` terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer._types import Array
from mercer.kernels.base import Expression
from mercer.kernels.inputs import Rows, Scope
from mercer.kernels.pairs import MatchedPairs
from mercer.kernels.statistics import SameRow


class EqualPairs(MatchedPairs):
    """The pairs ``(x_i, z_i)`` for rows z_i that are equal to x_i and not the same ones: ``White`` terms are 0."""

    def values(self, statistic: Any) -> Array:
        if isinstance(statistic, SameRow):
            return np.zeros(self.left.n)
        return super().values(statistic)

    def seen(self, left: Rows, right: Rows, step: Any) -> EqualPairs:
        scope: Scope = (*self.scope, step)
        return EqualPairs(left, self.dtype, scope)


def _pairs(rows: Rows, noise: bool) -> MatchedPairs:
    return (MatchedPairs if noise else EqualPairs)(rows, np.dtype(np.float64))


def diagonal_of(kernel: Expression, rows: Rows, *, noise: bool = True) -> Array:
    """Return ``k(x_i, x_i)`` for every row, in float64; without ``noise``, ``White`` terms count as 0.

    ``White`` terms must be terms of sums and may have factors, as in ``RBF() + 0.1 * White()``.

    >>> from mercer.kernels import RBF, White
    >>> diagonal_of(2.0 * RBF(1.0) + White(0.5), Rows(np.zeros((2, 1))), noise=False).tolist()
    [2.0, 2.0]
    """
    out = np.empty(rows.n)
    kernel._fill(_pairs(rows, noise), out)
    return out


def pull_diagonal(kernel: Expression, rows: Rows, weights: Array, *, noise: bool = True) -> Array:
    """Return ``sum_i weights_i d k(x_i, x_i) / d theta`` over the free parameters; ``noise`` as for the diagonal.

    >>> from mercer.kernels import RBF, White
    >>> kernel, rows = 2.0 * RBF(1.0) + White(0.5), Rows(np.zeros((2, 1)))
    >>> pull_diagonal(kernel, rows, np.ones(2)).tolist(), pull_diagonal(kernel, rows, np.ones(2), noise=False).tolist()
    ([4.0, 0.0, 1.0], [4.0, 0.0, 0.0])
    """
    slopes = np.zeros(len(kernel.parameters))
    if any(p.free for p in kernel.parameters):
        kernel._pull(_pairs(rows, noise), np.array(weights, dtype=np.float64), slopes)
    return np.array([p.chain(s) for p, s in zip(kernel.parameters, slopes, strict=True) if p.free])
