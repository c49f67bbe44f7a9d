"""The linear system of kernel ridge regression and of everything that is Gaussian: the problem and its value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mercer._errors import DataError, ParameterError
from mercer._types import Matrix, Vector
from mercer.engine import arrays
from mercer.gram.protocol import GramMatrix
from mercer.solvers.rounding import product_rounding

# Targets between 2 to the power of minus so much and so much have squares far from the ends of float64.
_USUAL = 400


@dataclass(frozen=True, eq=False)
class LinearSystem:
    r"""Weighted, regularised least squares over a kernel matrix, one column of coefficients a target.

    .. math:: \min_{c} \sum_i w_i (t_i - (Kc)_i)^2 + \mu\, c^\top K c
              \quad\Longleftrightarrow\quad (K + \mu W^{-1})\, c = t

    Solvers work on the symmetric form :math:`(SKS + \mu I) z = S t` with :math:`S = W^{1/2}` and
    :math:`c = S z`, which stays well conditioned for weights of any size.

    Parameters
    ----------
    gram : GramMatrix
        K, symmetric, (n, n), in the precision in which the residual is to be small.
    targets : array-like of shape (n, k)
        The columns t.
    shifts : array-like of shape (k,)
        The penalty mu of every column, zero or above.
    weights : array-like of shape (n,), optional
        Positive weights; ones by default. Rows of weight zero belong left out.
    convex : bool, default=True
        Whether K is positive semi-definite. If not, the answer is a stationary point.

    Raises
    ------
    DataError
        If lengths differ, or a target is not finite.
    ParameterError
        If a shift is negative or not finite, or a weight is not positive and finite.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.gram import PrecomputedGram
    >>> LinearSystem(PrecomputedGram(np.eye(2)), [[1.0], [2.0]], [0.5]).shape
    (2, 1)
    """

    gram: GramMatrix
    targets: ArrayLike
    shifts: ArrayLike
    weights: ArrayLike | None = None
    convex: bool = True

    def __post_init__(self) -> None:
        n = self.gram.shape[0]
        targets = np.asarray(self.targets, dtype=np.float64)
        shifts = np.asarray(self.shifts, dtype=np.float64)
        weights = np.ones(n) if self.weights is None else np.asarray(self.weights, dtype=np.float64)
        if self.gram.shape != (n, n) or targets.ndim != 2 or len(targets) != n or weights.shape != (n,):
            raise DataError(
                f"a system over {n} rows needs targets of shape ({n}, k), weights of shape ({n},) and a square "
                f"matrix; the shapes are targets {targets.shape}, weights {weights.shape}, K {self.gram.shape}."
            )
        if shifts.shape != (targets.shape[1],):
            raise DataError(f"{targets.shape[1]} targets need the same number of shifts; the shape is {shifts.shape}.")
        if not np.isfinite(targets).all():
            i, j = np.argwhere(~np.isfinite(targets))[0]
            raise DataError(f"every target must be finite; the one at row {i}, column {j} is {targets[i, j]}.")
        if not (np.isfinite(shifts).all() and (shifts >= 0).all()):
            raise ParameterError(f"every shift must be finite and at least 0; they are {shifts[:5]}.")
        if not (np.isfinite(weights).all() and (weights > 0).all()):
            raise ParameterError(
                f"every weight must be positive and finite; the smallest is {weights.min()}, the largest "
                f"{weights.max()}. Leave out rows whose weight is zero."
            )
        object.__setattr__(self, "targets", targets)
        object.__setattr__(self, "shifts", shifts)
        object.__setattr__(self, "weights", None if (weights == 1.0).all() else weights)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and targets."""
        return np.asarray(self.targets).shape[0], np.asarray(self.targets).shape[1]

    def scaled(self) -> ScaledGram:
        """``SKS``."""
        return ScaledGram(self.gram, None if self.weights is None else np.sqrt(np.asarray(self.weights)))

    def groups(self) -> list[tuple[float, NDArray[np.intp]]]:
        """Columns by their shift, the largest shift first: what it takes to solve one, the smaller ones need too."""
        shifts = np.asarray(self.shifts)
        return [(float(mu), np.flatnonzero(shifts == mu)) for mu in np.unique(shifts)[::-1]]

    def in_unit_size(self) -> tuple[LinearSystem, NDArray[np.intp]]:
        """The system with each target divided by a power of two that makes it about 1, and the exponents, (k,).

        Squares of targets below 1e-154 vanish, and with them every length. The answer times ``2**exponent`` is that of
        this system. Targets of a usual size stay as they are.

        >>> from mercer.gram import PrecomputedGram
        >>> unit, powers = LinearSystem(PrecomputedGram(np.eye(2)), [[2.0**-600], [0.0]], [0.5]).in_unit_size()
        >>> unit.targets.tolist(), powers.tolist()
        ([[0.5], [0.0]], [-599])
        """
        targets = np.asarray(self.targets)
        powers = np.frexp(np.abs(targets).max(axis=0, initial=0.0))[1].astype(np.intp)
        powers[np.abs(powers) < _USUAL] = 0
        return (replace(self, targets=np.ldexp(targets, -powers)) if powers.any() else self), powers

    def objectives(self, z: Matrix, residual: Matrix, *, least_squares: bool = False) -> tuple[float, float]:
        """Sums over the targets of the primal objective, and of the dual objective at ``2 mu z``, with their rounding.

        In terms of the residual ``r = St - (SKS + mu I) z`` the primal is ``||r + mu z||^2 + mu z'(St - r - mu z)``
        and the dual is less by ``||r||^2``: no difference of large numbers is taken. Without a penalty, what least
        squares leaves of the targets is orthogonal to the range of K and is its own dual solution: the gap is nothing.

        The residual itself is a difference, and off by the rounding d of ``SKSz``. With that the primal is at most
        ``|d|'|2 r + mu z| + ||d||^2`` more, and the dual is at most ``mu |d|'|z|`` less.
        """
        b = self.scaled().apply_scale(np.asarray(self.targets))
        shifts, r = np.asarray(self.shifts), residual
        loss = ((r + shifts * z) ** 2).sum(axis=0)
        penalty = shifts * (z * (b - r - shifts * z)).sum(axis=0)
        gap = (r**2).sum(axis=0)
        if least_squares:
            gap = np.where(shifts == 0, 0.0, gap)
        primal = loss + penalty
        with np.errstate(over="ignore", invalid="ignore"):
            d = product_rounding(self.scaled().diagonal(), z)
            above = (d * np.abs(2.0 * r + shifts * z)).sum(axis=0) + (d**2).sum(axis=0)
            below = shifts * (d * np.abs(z)).sum(axis=0)
        return float((primal + above).sum()), float((primal - gap - below).sum())


@dataclass(frozen=True, eq=False)
class ScaledGram:
    """``SKS`` with the diagonal matrix S of ``scale``; without a scale, K itself."""

    gram: GramMatrix
    scale: Vector | None = None

    def __matmul__(self, V: Matrix) -> Matrix:
        if self.scale is None:
            return np.asarray(self.gram @ V, dtype=np.float64)
        s = self.scale[:, None]
        return s * np.asarray(self.gram @ (s * V), dtype=np.float64)

    def apply_scale(self, V: Matrix) -> Matrix:
        """``S V``."""
        return V if self.scale is None else self.scale[:, None] * V

    def diagonal(self) -> Vector:
        """``s_i^2 K_ii``, in float64."""
        values = np.asarray(self.gram.diagonal(), dtype=np.float64)
        return values if self.scale is None else values * self.scale**2

    def rows(self, index: NDArray[np.intp]) -> Matrix:
        """Whole rows, (len(index), n), in float64."""
        values = np.asarray(self.gram.block(index, None), dtype=np.float64)
        return values if self.scale is None else self.scale[index][:, None] * values * self.scale

    def part(self, index: NDArray[np.intp]) -> Matrix:
        """The rows and columns of ``index``, in float64."""
        values = np.array(self.gram.block(index, index), dtype=np.float64, order="C")
        return values if self.scale is None else self.scale[index][:, None] * values * self.scale[index]

    def dense(self, dtype: np.dtype) -> NDArray[Any]:
        """The whole matrix as a new C-ordered array; entries beyond ``dtype`` become infinite."""
        out = arrays.empty(self.gram.shape, dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            self.gram.block(None, None, out)
            if self.scale is not None:
                scale = self.scale.astype(dtype)
                out *= scale
                out *= scale[:, None]
        return out


@dataclass(frozen=True)
class LinearSystemState:
    """How a system was solved.

    Parameters
    ----------
    method : str
        ``"normal equations of explicit features"``, ``"conjugate gradients on explicit features"``, ``"low rank"``,
        ``"float32 Cholesky, refined"``, ``"float64 Cholesky"``, ``"least squares"`` or ``"float64 LDL^T"``; several
        joined by ``"; "`` if the columns' shifts needed different ones.
    relative_residual : float
        The largest ``||S t - (SKS + mu I) z|| / ||S t||`` among the columns, in float64.
    """

    method: str
    relative_residual: float
