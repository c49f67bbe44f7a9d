"""A kernel matrix whose rows and columns have mean zero: centring in feature space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import lapack, tiles
from mercer.gram.protocol import GramMatrix


@dataclass(frozen=True)
class Centring:
    """What centring takes: the mean of every row of K, and the mean of all entries; and the diagonal that it leaves.

    Parameters
    ----------
    row_means : ndarray of shape (n,)
    mean : float
    diagonal : ndarray of shape (n,)
        That of the centred matrix; its sum is the variance in feature space, times n.
    largest : float
        The largest absolute value on the diagonal of K: products with K are rounded in its units.
    """

    row_means: Vector
    mean: float
    diagonal: Vector
    largest: float

    @classmethod
    def of(cls, row_means: Vector, diagonal: Vector) -> Centring:
        """From the means of the rows and the diagonal of K."""
        mean = float(row_means.mean())
        largest = float(np.abs(diagonal).max())
        return cls(row_means, mean, diagonal - 2.0 * row_means + mean, largest)


class CentredMatrix:
    r""":math:`HKH` with :math:`H = I - \tfrac1n 1 1^\top`, K being an array that is overwritten.

    Examples
    --------
    >>> matrix = CentredMatrix(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> matrix.array.tolist(), (matrix @ np.array([[1.0], [0.0]])).ravel().tolist()
    ([[0.5, -0.5], [-0.5, 0.5]], [0.5, -0.5])
    """

    def __init__(self, array: Vector) -> None:
        self.array = array
        self.centring = Centring.of(array.mean(axis=1), array.diagonal().copy())
        means, mean = self.centring.row_means, self.centring.mean
        for rows in tiles.spans(len(array)):
            array[rows] -= means - mean
            array[rows] -= means[rows, None]

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], self.array.shape[1]

    def __matmul__(self, V: Array) -> Array:
        return lapack.multiply(self.array, V)


class CentredGram:
    """The same matrix as products only: nothing of the size of K is stored.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> (CentredGram(PrecomputedGram(np.eye(2))) @ np.array([[1.0], [0.0]])).ravel().tolist()
    [0.5, -0.5]
    """

    def __init__(self, gram: GramMatrix) -> None:
        self._gram = gram
        n = gram.shape[0]
        self.centring = Centring.of(
            np.asarray(gram @ np.full(n, 1.0 / n), dtype=np.float64), gram.diagonal().astype(np.float64)
        )

    @property
    def shape(self) -> tuple[int, int]:
        return self._gram.shape

    def __matmul__(self, V: Array) -> Array:
        product: Array = np.asarray(self._gram @ (V - V.mean(axis=0)), dtype=np.float64)
        return product - product.mean(axis=0)
