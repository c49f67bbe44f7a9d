"""Squared distances from the leading directions of the rows: cheap and close approximations.

Rows of many columns, such as images, vary in few directions. With ``x = P x + r``, where P projects on the directions
that hold most of the variance, ``|x - z|^2 = |P x - P z|^2 + |r_x|^2 + |r_z|^2 - 2 <r_x, r_z>``, and the last term is
small unless the rows are very similar. Without it an entry costs as much as one of rows with that few columns.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array
from mercer.kernels.inputs import Frame, Operand, Rows
from mercer.kernels.operands import squared_norms
from mercer.kernels.statistics import SquaredDistance, Statistic
from mercer.loops.distances import finish_leading_distances

# Below this share of the squared norms, leading parts are equal but for rounding.
_EQUAL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}
# Rows from which the directions are found, and the share of their variance that the leading ones hold.
_SAMPLE = 4096
_SHARE = 0.95


def leading_directions(A: Array) -> Array:
    """The fewest orthonormal directions that hold 95 % of the variance of rows ``A`` about 0, (d, q).

    >>> leading_directions(np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.1]])).shape
    (2, 1)
    """
    part = A[:: -(-len(A) // _SAMPLE)].astype(np.float64)
    variances, directions = np.linalg.eigh(part.T @ part)
    negligible = np.cumsum(variances) <= (1 - _SHARE) * variances.sum()
    return directions[:, np.count_nonzero(negligible) :]


@dataclass(frozen=True)
class LeadingDistance(Statistic):
    """:class:`SquaredDistance` without the inner products of the rows' residuals outside the leading directions."""

    scales: tuple[float, ...] = ()

    def _mean(self, frame: Frame) -> Array:
        """Of the rows of the right side about their centre."""
        side, exact = frame.right, SquaredDistance(self.scales)
        return side.keep(
            ("mean", exact), lambda: side.operand(exact, frame, np.dtype(np.float32))[0].mean(axis=0, dtype=np.float64)
        )

    def directions(self, frame: Frame) -> Array:
        """Of the rows of the right side, made once."""
        side, exact = frame.right, SquaredDistance(self.scales)
        return side.keep(
            ("leading directions", self.scales),
            lambda: leading_directions(side.operand(exact, frame, np.dtype(np.float32))[0] - self._mean(frame)),
        )

    def prepare(self, side: Rows, frame: Frame, dtype: np.dtype) -> Operand:
        A, *_ = side.operand(SquaredDistance(self.scales), frame, dtype)
        A = A - self._mean(frame).astype(dtype)
        leading = A @ self.directions(frame).astype(dtype)
        shorter = squared_norms(leading, dtype)
        return leading, shorter, np.maximum(squared_norms(A, dtype) - shorter, 0)

    def fill(self, left: Operand, right: Operand, multiplier: float, out: Array) -> None:
        (A, a, rest_a), (B, b, rest_b) = left, right
        np.matmul(A, B.T, out=out)
        real = out.dtype.type
        finish_leading_distances(out, a, b, rest_a, rest_b, real(multiplier), real(_EQUAL[out.dtype]))

    def diagonal(self, operand: Operand) -> Array:
        return np.zeros_like(operand[1])
