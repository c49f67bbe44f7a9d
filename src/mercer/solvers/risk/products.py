"""Many products of a kernel matrix with a few columns: it is kept in the precisions that there is room for."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np

from mercer._types import Array, Matrix
from mercer.engine import memory, tiles
from mercer.gram import PrecomputedGram
from mercer.gram.features import FEATURES_STORAGE, ExplicitFeatures
from mercer.gram.hold import Storage, check_finite, fits, hold, reserve_whole
from mercer.gram.protocol import GramMatrix

# Up to this many rows a float64 matrix is small enough to work on alone.
WHOLE = 2048
# Two products with features in float64 take the place of one with K in float32.
_GAIN = 4


def stored_products(gram: GramMatrix, stack: ExitStack, beside: int = 0) -> Storage:
    """K (n, m) for products with float64: stored in float64 if that and ``beside`` more bytes fit, else lazy."""
    storage = hold(gram, stack, {np.float64: beside})
    if storage.array is not None and storage.gram is not gram:
        check_finite(storage.array)
    return storage


def entry_bytes(n: int) -> tuple[int, ...]:
    """Memory of :class:`Products` for each pair of n rows, the most first: what is used is the first that fits.

    >>> entry_bytes(1000), entry_bytes(5000)
    ((8, 0), (12, 4, 0))
    """
    return (12, 4, 0) if n > WHOLE else (8, 0)


def read_less(entries: float, p: int, n: int) -> bool:
    """Whether products with p features of ``entries`` numbers take less time than those with K of n rows.

    >>> read_less(5000 * 100, 100, 5000), read_less(5000 * 4000, 4000, 5000), read_less(1000 * 2, 2, 1000)
    (True, False, False)
    """
    return n > WHOLE and p <= n and _GAIN * entries <= n * n


def reserved_features(gram: GramMatrix, stack: ExitStack) -> ExplicitFeatures | None:
    """Explicit features of K, whose products read less than those with K; None if there are none, or no room."""
    n = gram.shape[0]
    features = gram.explicit_features(n, n // _GAIN) if n > WHOLE else None
    if features is None or not read_less(features.entries, features.shape[1], n) or not fits(features.nbytes):
        return None
    stack.enter_context(memory.reserve(features.nbytes, f"{features.shape[1]} explicit features"))
    return features


class Products:
    """``K V`` for a float64 ``V`` (n, m): ``exact``, and ``quick`` in float32 where that is faster.

    Up to 2048 rows one float64 matrix serves for both. Above, a float32 matrix is kept for ``quick`` and a float64 one
    for ``exact`` (12 n^2 bytes); without room for both the float32 one alone; without room for that, none: the
    products are then evaluated by tiles. Explicit features, where they are fewer than the rows, take the place of all
    of these.

    Parameters
    ----------
    gram : GramMatrix
        Symmetric, (n, n), in float64 or a precomputed matrix.
    stack : ExitStack
        Holds the memory.
    """

    def __init__(self, gram: GramMatrix, stack: ExitStack) -> None:
        n = gram.shape[0]
        self.features = reserved_features(gram, stack)
        self.mixed = n > WHOLE and self.features is None
        if self.features is not None:
            self.sentence = FEATURES_STORAGE
            return
        storage = stored_products(gram, stack, beside=(entry_bytes(n)[0] - 8) * n * n)
        self._gram, self.sentence = storage.gram, storage.sentence
        self._single = self._in_single(storage.array, stack) if self.mixed else storage.gram

    def _in_single(self, array: Array | None, stack: ExitStack) -> GramMatrix:
        if array is None:
            storage = hold(self._gram.astype(np.float32), stack, {np.float32: 0})
            self.sentence = storage.sentence
            if storage.array is not None:
                check_finite(storage.array)
            return storage.gram
        if array.dtype == np.float32:
            return self._gram
        dtype, _ = reserve_whole(array.shape, stack, {np.float32: 0})
        if dtype is None:
            return self._gram.astype(np.float32)
        return PrecomputedGram(tiles.converted(array, dtype))

    def exact(self, V: Matrix) -> Matrix:
        """In float64."""
        if self.features is not None:
            return self.features @ self.features.pull(V)
        return np.asarray(self._gram @ V, dtype=np.float64)

    def quick(self, V: Matrix) -> Matrix:
        """In the precision of the matrix that is kept, or in float32."""
        if not self.mixed:
            return self.exact(V)
        # Columns of length 1: nothing under- or overflows.
        size = np.abs(V).max(axis=0)
        size[size == 0] = 1.0
        return np.asarray(self._single @ (V / size).astype(np.float32), dtype=np.float64) * size
