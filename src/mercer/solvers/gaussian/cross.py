"""A kernel with parameters as solvers over landmarks see it: values of rows and landmarks, and pullbacks."""

from __future__ import annotations

from typing import Protocol

from mercer._types import Matrix, Vector


class CrossValues(Protocol):
    """Kernel values of n rows with m landmarks at known parameters.

    Noise between a row and itself (``White`` terms) is kept apart: the other values are those of the function.
    """

    def landmarks(self) -> Matrix:
        """The matrix of the landmarks, (m, m), in float64."""
        ...

    def block(self, rows: slice, out: Matrix) -> None:
        """Write the values of some rows with all landmarks."""
        ...

    def diagonals(self) -> tuple[Vector, Vector]:
        """The variances of the function in all rows, and those of the noise of ``White`` terms, (n,) each."""
        ...

    def pull_landmarks(self, weights: Matrix) -> Vector:
        """``sum_jl weights_jl d k(z_j, z_l) / d theta``."""
        ...

    def pull_block(self, rows: slice, weights: Matrix) -> Vector:
        """``sum_ij weights_ij d k(x_i, z_j) / d theta`` over some rows i and all landmarks j."""
        ...

    def pull_diagonals(self, function: Vector, noise: Vector) -> Vector:
        """The same for weights of both variances of all rows."""
        ...


class CrossCovariance(Protocol):
    """Kernel values of fixed rows and landmarks, which depend on parameters ``theta``."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and landmarks."""
        ...

    @property
    def size(self) -> int:
        """Parameters."""
        ...

    def at(self, theta: Vector) -> CrossValues:
        """The values at some parameters."""
        ...
