"""A kernel matrix whose rows and columns are multiplied by numbers: that of an integral operator with weights."""

from __future__ import annotations

import numpy as np

from mercer._types import Array, Vector
from mercer.engine import lapack
from mercer.gram.protocol import GramMatrix
from mercer.solvers.spectral.centred import Centring


def _nothing_taken(diagonal: Vector) -> Centring:
    return Centring(np.zeros(len(diagonal)), 0.0, diagonal, float(np.abs(diagonal).max()))


class ScaledMatrix:
    r""":math:`SKS` with :math:`S = \mathrm{diag}(s)`, K being an array that is overwritten.

    Examples
    --------
    >>> ScaledMatrix(np.ones((2, 2)), np.array([1.0, 2.0])).array.tolist()
    [[1.0, 2.0], [2.0, 4.0]]
    """

    def __init__(self, array: Vector, scale: Vector) -> None:
        self.array = array
        array *= scale
        array *= scale[:, None]
        self.centring = _nothing_taken(array.diagonal().copy())

    @property
    def shape(self) -> tuple[int, int]:
        return self.array.shape[0], self.array.shape[1]

    def __matmul__(self, V: Array) -> Array:
        return lapack.multiply(self.array, V)


class ScaledGram:
    """The same matrix as products only: nothing of the size of K is stored.

    Examples
    --------
    >>> from mercer.gram import PrecomputedGram
    >>> (ScaledGram(PrecomputedGram(np.ones((2, 2))), np.array([1.0, 2.0])) @ np.array([[1.0], [0.0]])).ravel().tolist()
    [1.0, 2.0]
    """

    def __init__(self, gram: GramMatrix, scale: Vector) -> None:
        self._gram, self._scale = gram, scale[:, None]
        self.centring = _nothing_taken(gram.diagonal().astype(np.float64) * scale**2)

    @property
    def shape(self) -> tuple[int, int]:
        return self._gram.shape

    def __matmul__(self, V: Array) -> Array:
        return self._scale * np.asarray(self._gram @ (self._scale * V), dtype=np.float64)
