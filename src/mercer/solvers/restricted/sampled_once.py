"""The Hessian of a restricted problem from a sample of the rows whose features are needed once, strip by strip."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from mercer._types import AnyArray, Matrix, Positions, Vector
from mercer.engine import lapack
from mercer.solvers.restricted import precondition
from mercer.solvers.restricted.passes import Passes
from mercer.solvers.restricted.whitening import Whitening

# How many rows show the rounding of features in float32, and how much of the penalty its square may be.
_TRIED, _ROUNDING = 256, 0.05


@dataclass(frozen=True, eq=False)
class SampledOnce:
    r"""Kernel values of a sample of the rows; for several Hessians, :class:`precondition.Sampled` keeps the features.

    Features in float32 take half of the time. Their rounding :math:`\Delta` multiplies the estimated Hessian by at most
    :math:`1 \pm (t + 2 \sqrt t)` if :math:`\|\Delta^\top W \Delta\| \le t \alpha`, which is tried with few rows. With
    t = 0.05 that is less than the sample itself is off.

    Parameters
    ----------
    values : ndarray of shape (s, m)
    white : Whitening
        Of the m landmarks.
    targets : ndarray of shape (s, t)
    weights : ndarray of shape (s,)
        Those of the rows, times n / s.
    has_all_rows : bool
        Whether s is n.
    """

    values: Matrix
    white: Whitening
    targets: Matrix
    weights: Vector
    has_all_rows: bool

    @classmethod
    def of(cls, rows: Passes, white: Whitening, random: np.random.RandomState) -> SampledOnce:
        """Draw the sample."""
        K, part, weights, has_all_rows = precondition.draw(rows, random)
        return cls(K, white, part.targets, weights, has_all_rows)

    def products(self) -> Matrix:
        """The estimated ``Phi^T W T`` of the targets T, (m, t)."""
        return self.white.pull(self.values.T @ (self.weights[:, None] * self.targets))

    def factor(self, penalty: float) -> Matrix:
        """The Cholesky factor of the estimated ``Phi^T W Phi + penalty I``, (m, m), in the upper triangle."""
        weighted = np.flatnonzero(self.weights > 0)
        chosen = weighted[np.linspace(0, len(weighted) - 1, min(len(weighted), _TRIED)).astype(np.intp)]
        exact = self.white.features(self.values[chosen])
        largest = float((exact**2).sum(axis=1).max(initial=0.0)) * float(self.weights.sum())
        if precondition.suits_single(largest, penalty):
            # The solution for all rows is to be exact.
            single = None if self.has_all_rows else self._factor_in_single(chosen, exact, penalty)
            H = self._square(np.float32, single)
            del single
            # Some rows may be much longer than those tried.
            if precondition.suits_single(float(np.diagonal(H).sum(dtype=np.float64)), penalty):
                return precondition.factored(H.astype(np.float64), penalty)
        return precondition.factored(self._square(np.float64), penalty)

    def _square(self, dtype: DTypeLike, factor: AnyArray | None = None) -> AnyArray:
        return precondition.square(self.values, self.weights, dtype, self.white.factor if factor is None else factor)

    def _factor_in_single(self, chosen: Positions, exact: Matrix, penalty: float) -> AnyArray | None:
        """The factor of the landmarks in float32; None if it leads too far from the exact features of few rows."""
        scale = np.sqrt(self.weights[chosen] * (np.count_nonzero(self.weights) / len(chosen)))[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            factor = self.white.factor.astype(np.float32)
            features = self.values[chosen].astype(np.float32)
            lapack.solve_triangle(factor, features)
            error = scale * (features - exact)
        if not np.isfinite(error).all() or np.linalg.norm(error, 2) ** 2 > _ROUNDING * penalty:
            return None
        return factor
