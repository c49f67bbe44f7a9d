"""Kernels with parameters, between rows and landmarks, as solvers for Gaussian processes see them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._types import Matrix, Vector
from mercer.kernels import Kernel
from mercer.kernels.diagonals import diagonal_of, pull_diagonal
from mercer.kernels.inputs import Rows
from mercer.kernels.plan import Plan, check_finite

_DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class KernelCross:
    """Values of a kernel between the rows of X and landmarks, as functions of ``kernel.theta``.

    Examples
    --------
    >>> from mercer.kernels import RBF, White
    >>> X = np.array([[0.0], [2.0]])
    >>> values = KernelCross(RBF(1.0) + White(0.5), X, X[:1]).at(np.log([2.0, 0.1]))
    >>> out = np.empty((2, 1))
    >>> values.block(slice(0, 2), out)
    >>> out.round(4).ravel().tolist(), values.landmarks().tolist(), values.diagonals()[1].round(9).tolist()
    ([1.0, 0.6065], [[1.0]], [0.1, 0.1])
    """

    kernel: Kernel
    X: Any
    landmarks: Any
    n_jobs: int | None = None
    _rows: Rows = field(init=False, repr=False)
    _columns: Rows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", self.X if isinstance(self.X, Rows) else Rows(self.X))
        object.__setattr__(self, "_columns", Rows(self.landmarks))

    @property
    def shape(self) -> tuple[int, int]:
        return self._rows.n, self._columns.n

    @property
    def size(self) -> int:
        return len(self.kernel.theta)

    def at(self, theta: Vector) -> KernelCrossValues:
        return KernelCrossValues(
            self.kernel.with_theta(theta), self._rows.renewed(), self._columns.renewed(), self.n_jobs
        )


@dataclass(frozen=True, eq=False)
class KernelCrossValues:
    """The values at parameters of the kernel."""

    kernel: Kernel
    rows: Rows
    columns: Rows
    n_jobs: int | None

    def landmarks(self) -> Matrix:
        out = np.empty((self.columns.n, self.columns.n))
        self._between_landmarks().dense(out, self.n_jobs)
        check_finite(out, self.kernel)
        return out

    def _between_landmarks(self) -> Plan:
        # As rows of two inputs, so that White terms are 0.
        return Plan(self.kernel, self.columns, self.columns.renewed(), _DOUBLE)

    def block(self, rows: slice, out: Matrix) -> None:
        self._of(rows).dense(out, self.n_jobs)
        check_finite(out, self.kernel)

    def _of(self, rows: slice) -> Plan:
        return Plan(self.kernel, self.rows.take(rows), self.columns, _DOUBLE)

    def diagonals(self) -> tuple[Vector, Vector]:
        function: Vector = np.asarray(diagonal_of(self.kernel, self.rows, noise=False), dtype=np.float64)
        whole: Vector = np.asarray(diagonal_of(self.kernel, self.rows), dtype=np.float64)
        check_finite(whole, self.kernel)
        return function, np.maximum(whole - function, 0.0)

    def pull_landmarks(self, weights: Matrix) -> Vector:
        return np.asarray(self._between_landmarks().pull(weights, self.n_jobs), dtype=np.float64)

    def pull_block(self, rows: slice, weights: Matrix) -> Vector:
        return np.asarray(self._of(rows).pull(weights, self.n_jobs), dtype=np.float64)

    def pull_diagonals(self, function: Vector, noise: Vector) -> Vector:
        of_whole = pull_diagonal(self.kernel, self.rows, noise)
        return np.asarray(of_whole + pull_diagonal(self.kernel, self.rows, function - noise, noise=False))
